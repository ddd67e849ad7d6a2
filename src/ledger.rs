//! The ledger's words and its one judgement: what an entry is, what posting it can come to, and when two are the same.
//!
//! Identity is decided before validity: whether a key is known comes before any question about today's balance. This
//! file knows no network, no contract, no DynamoDB and no clock.

use std::fmt;

use jiff::Timestamp;
use jiff::civil::Date;

use crate::id::{Currency, Network, RoundId, TransId, UserId};
use crate::money::Amount;

/// Most bytes of an offer's or a goal's id kept in an entry; what is longer is cut. With [`OFFER_NAME_MAX`] and the
/// limits of the ids and of received amounts this keeps every entry under 1 KB, which a test of the store holds.
pub const OFFER_ID_MAX: usize = 40;

/// Most bytes of an offer's name kept in an entry; what is longer is cut.
pub const OFFER_NAME_MAX: usize = 64;

/// Most characters kept of a source address: the longest text of an IPv6 address.
pub const SOURCE_IP_MAX: usize = 45;

/// Most bytes of a game's id kept in an entry; what is longer is cut.
pub const GAME_ID_MAX: usize = 64;

/// Most bytes kept of who decided something, and of why.
pub const BY_MAX: usize = 64;

/// See [`BY_MAX`].
pub const REASON_MAX: usize = 256;

/// What an entry does to its conversation; the second half of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// Coins given for a finished offer.
    Credit,
    /// A credit taken back.
    Reversal,
    /// Held coins made available to their user.
    Release,
    /// Coins in suspense given to the user whom a person found.
    Assign,
    /// The same coins taken out of suspense.
    Clear,
    /// A correction by a person who worked a case of this kind.
    Adjust(CaseKind),
    /// What a wallet was asked for under one key, whatever it was.
    Operation,
    /// The mark on an operation that it was rolled back.
    Rollback,
    /// An account was opened to its player, or opened again.
    Open,
    /// An account was closed.
    Close,
    /// A player's own money came in.
    Deposit,
    /// A player's own money went out.
    Withdrawal,
}

impl Status {
    /// Every status but the corrections.
    const PLAIN: [Status; 11] = [
        Status::Credit,
        Status::Reversal,
        Status::Release,
        Status::Assign,
        Status::Clear,
        Status::Operation,
        Status::Rollback,
        Status::Open,
        Status::Close,
        Status::Deposit,
        Status::Withdrawal,
    ];

    /// The status as it is stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Credit => "credit",
            Status::Reversal => "reversal",
            Status::Release => "release",
            Status::Assign => "assign",
            Status::Clear => "clear",
            Status::Operation => "operation",
            Status::Rollback => "rollback",
            Status::Open => "open",
            Status::Close => "close",
            Status::Deposit => "deposit",
            Status::Withdrawal => "withdrawal",
            Status::Adjust(kind) => match kind {
                CaseKind::Conflict(Field::User) => "adjust_conflict_user",
                CaseKind::Conflict(Field::Currency) => "adjust_conflict_currency",
                CaseKind::Conflict(Field::Amount) => "adjust_conflict_amount",
                CaseKind::Conflict(Field::Kind) => "adjust_conflict_kind",
                CaseKind::Conflict(Field::Counterpart) => "adjust_conflict_original",
                CaseKind::Conflict(Field::Round) => "adjust_conflict_round",
                CaseKind::LateCredit => "adjust_late_credit",
                CaseKind::Overdrawn => "adjust_overdrawn",
                CaseKind::Shortfall => "adjust_shortfall",
                CaseKind::ReversalWithoutCredit => "adjust_reversal_without_credit",
                CaseKind::OverCap => "adjust_over_cap",
                CaseKind::UnknownUser => "adjust_unknown_user",
                CaseKind::SettingsBroken => "adjust_settings_broken",
                CaseKind::WinWithoutBet => "adjust_win_without_bet",
                CaseKind::WinAfterEnd => "adjust_win_after_end",
                CaseKind::ClosedAccount => "adjust_closed_account",
            },
        }
    }

    /// Reads a stored status.
    pub fn stored(text: &str) -> Option<Status> {
        Status::PLAIN.into_iter().chain(CaseKind::ALL.map(Status::Adjust)).find(|status| status.as_str() == text)
    }
}

/// One immutable row of the ledger, keyed by `(trans_id, status)`. A mistake is undone by another entry, never by a
/// change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The conversation that it belongs to.
    pub trans_id: TransId,
    pub status: Status,
    /// Whose balance changed.
    pub user: UserId,
    /// What it does to its conversation.
    pub currency: Currency,
    /// The signed change of that balance, available and held together.
    pub amount: Amount,
    /// What it does to the held part of the balance; `None` where it moves available coins only.
    pub held: Option<Held>,
    /// What a reversal could not take back, where the deployment bears that loss; else zero.
    pub absorbed: Amount,
    /// When its posting was planned.
    pub received_at: Timestamp,
    /// A placeholder where a credit would be: its reversal came first, and the late credit must move nothing.
    pub void: bool,
    /// The user that the caller named, where it is another one than [`Entry::user`].
    pub user_received: Option<UserId>,
    /// The request that it was made from.
    pub evidence: Evidence,
    /// What the network says that the user did.
    pub offer: Offer,
    /// The person who decided it, where it was not a network.
    pub decision: Option<Decision>,
    /// What a wallet was asked for and answered, where that is what it records.
    pub operation: Option<Operation>,
}

/// What a wallet was asked for under one key, and the answer that every repeat hears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// What was asked for.
    pub kind: OperationKind,
    /// The amount that was asked for, whatever moved; `None` where none was named.
    pub requested: Option<Amount>,
    /// The round of the game that it belongs to.
    pub round: Option<RoundId>,
    /// The caller's id of the game, at most [`GAME_ID_MAX`] bytes.
    pub game_id: Option<String>,
    /// Of a rollback the operation that it takes back, and of the mark on an operation the rollback.
    pub counterpart: Option<TransId>,
    /// The answer.
    pub answer: StoredAnswer,
}

/// What can be asked of a wallet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OperationKind {
    /// A player's stake is taken.
    Bet,
    /// A player is paid.
    Win,
    /// A stake is given back.
    BetRollback,
    /// A win is taken back.
    WinRollback,
    /// A round is over; nothing moves.
    RoundFinish,
}

impl OperationKind {
    /// Every kind.
    pub const ALL: [OperationKind; 5] = [
        OperationKind::Bet,
        OperationKind::Win,
        OperationKind::BetRollback,
        OperationKind::WinRollback,
        OperationKind::RoundFinish,
    ];

    /// The kind as it is stored.
    pub fn as_str(self) -> &'static str {
        match self {
            OperationKind::Bet => "bet",
            OperationKind::Win => "win",
            OperationKind::BetRollback => "bet_rollback",
            OperationKind::WinRollback => "win_rollback",
            OperationKind::RoundFinish => "round_finish",
        }
    }

    /// Reads a stored kind.
    pub fn stored(text: &str) -> Option<OperationKind> {
        OperationKind::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// An answer as it was given, so that it can be given again byte for byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAnswer {
    /// The HTTP status.
    pub status: u16,
    /// The body.
    pub body: String,
}

/// One player's part in a round of a game: what its bets and its end come to. Unlike an entry it changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Round {
    /// The bets that were placed and not rolled back.
    pub bets: u64,
    /// The bets that were rolled back, also those that never came.
    pub rolled_back: u64,
    /// Whether it was finished.
    pub finished: bool,
}

impl Round {
    /// Whether a win is to be expected in it.
    pub fn is_live(self) -> bool {
        self.bets > 0 && !self.finished
    }
}

/// What a posting does to its player's part in a round, or asks of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoundStep {
    /// The round.
    pub round: RoundId,
    /// The player.
    pub user: UserId,
    /// What is done.
    pub turn: Turn,
}

/// What can be done to a player's part in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// A bet was placed.
    Bet,
    /// A bet was rolled back.
    RolledBack,
    /// A bet that never came was rolled back.
    Voided,
    /// It was finished.
    Finished,
    /// Nothing is done: it must be live, see [`Round::is_live`].
    Live,
}

/// One user's balance in one currency.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Account {
    /// What can be spent; below zero where spent coins were reversed.
    pub available: Amount,
    /// What is credited and cannot be spent yet.
    pub held: Amount,
    /// Whether it was closed to its player.
    pub closed: bool,
}

/// What an entry does to the held part of a balance, and with it to the row that stands for these coins in the queue of
/// holds: a change above zero makes the row, one below zero takes it away, so that the coins leave the hold once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// The signed change of the held part; the rest of [`Entry::amount`] changes the available one.
    pub change: Amount,
    /// When the coins become available by themselves; `None` where they wait for a person.
    pub release_at: Option<Timestamp>,
}

/// Held coins of one conversation: what waits in the queue of holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// The conversation whose credit it is.
    pub trans_id: TransId,
    /// Whose held part they are in.
    pub user: UserId,
    /// The currency of that account.
    pub currency: Currency,
    /// The coins, above zero.
    pub amount: Amount,
    /// When they become available by themselves; `None` where they wait for a person.
    pub release_at: Option<Timestamp>,
}

/// Who decided something that no machine may decide, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Who, at most [`BY_MAX`] bytes.
    pub by: String,
    /// Why, at most [`REASON_MAX`] bytes.
    pub reason: String,
}

/// Where an entry came from: enough to find the request in a network's own log. Empty where no request was there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Evidence {
    /// The preset that the request was read by.
    pub preset: Option<Network>,
    /// The amount exactly as it was sent.
    pub amount_received: String,
    /// The caller's address as the function URL saw it.
    pub source_ip: String,
    /// The first 32 hex digits of the SHA-256 of the query as it was on the wire.
    pub fingerprint: String,
}

/// What the user did, as far as the network says; none of it moves money.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offer {
    /// The network's id of the offer, at most [`OFFER_ID_MAX`] bytes.
    pub offer_id: Option<String>,
    /// The offer's name, at most [`OFFER_NAME_MAX`] bytes.
    pub offer_name: Option<String>,
    /// The network's id of the goal within the offer, at most [`OFFER_ID_MAX`] bytes.
    pub goal_id: Option<String>,
    /// What the network pays the app, in US dollars.
    pub payout_usd: Option<Amount>,
}

impl Entry {
    /// An entry of this key that changes what is available on an account, and has nothing more to say: no request behind it.
    pub fn plain(key: (TransId, Status), account: (UserId, Currency), amount: Amount, at: Timestamp) -> Entry {
        let ((trans_id, status), (user, currency)) = (key, account);
        Entry {
            trans_id,
            status,
            user,
            currency,
            amount,
            held: None,
            absorbed: Amount::ZERO,
            received_at: at,
            void: false,
            user_received: None,
            evidence: Evidence::default(),
            offer: Offer::default(),
            decision: None,
            operation: None,
        }
    }

    /// Whether `other` has this entry's key.
    pub fn same_key(&self, other: &Entry) -> bool {
        self.trans_id == other.trans_id && self.status == other.status
    }

    /// The change of the available part of the balance; `None` out of range.
    pub fn available(&self) -> Option<Amount> {
        self.amount.checked_add(self.held_change().negated())
    }

    /// The change of the held part of the balance.
    pub fn held_change(&self) -> Amount {
        self.held.map_or(Amount::ZERO, |held| held.change)
    }

    /// The user that the caller named.
    pub fn user_claimed(&self) -> &UserId {
        self.user_received.as_ref().unwrap_or(&self.user)
    }
}

/// One transaction: all of it happens, or nothing does. The change of an account is never given beside the entries but
/// derived from them, so no coins can move without one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Posting {
    /// The entry that decides whether this is new.
    pub entry: Entry,
    /// Other entries that must not exist either. One that moves anything is on an account of its own.
    pub companions: Vec<Entry>,
    /// What must be true of the entry's account before the change; all of it.
    pub guards: Vec<Guard>,
    /// What it does to a player's part in a round.
    pub round: Option<RoundStep>,
    /// A user who must have no account in the entry's currency.
    pub unknown: Option<UserId>,
    /// What it opens; each id is new when the entry is.
    pub cases: Vec<Case>,
    /// The case that it settles, which must be open.
    pub closes: Option<Closing>,
}

impl Posting {
    /// All its entries, the one that decides first.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        std::iter::once(&self.entry).chain(&self.companions)
    }

    /// The posting of an entry and nothing else.
    pub fn of(entry: Entry) -> Posting {
        Posting {
            entry,
            companions: Vec::new(),
            guards: Vec::new(),
            round: None,
            unknown: None,
            cases: Vec::new(),
            closes: None,
        }
    }
}

/// A condition on the account of a posting's entry, before the change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// The account exists: the user is known to the app.
    Known,
    /// The account exists and is open to its player.
    Open,
    /// There is no account, or it is closed.
    NotOpen,
    /// The account is closed to its player.
    Closed,
    /// Nothing is held in it.
    NothingHeld,
    /// This much must be available.
    AtLeast(Amount),
    /// Less than this must be available; an account that does not exist has nothing.
    Below(Amount),
    /// Just this must be available; an account that does not exist has nothing.
    Exactly(Amount),
    /// Something was credited on this day, or a later one, and no more than this; the entry's amount counts into it.
    CreditedAtMost(Date, Amount),
    /// Nothing was credited on this day or a later one; the entry's amount is the day's first.
    FirstOf(Date),
    /// More than this was credited on this day, or a later one.
    CreditedMoreThan(Date, Amount),
}

/// What became of a posting, in order of precedence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The key is known and says the same: nothing moved.
    Replayed(Entry),
    /// The key is known and says something else: nothing moved, and a person must look.
    Conflict(Entry, Field),
    /// The key is new but a condition beside it failed: nothing moved.
    Refused(Refusal),
    /// The key is new, and the money moved.
    Posted,
}

/// The first thing in which a known entry and a new one differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Field {
    /// Whom the caller named.
    User,
    /// The currency of the account.
    Currency,
    /// The coins.
    Amount,
    /// What was asked for.
    Kind,
    /// What a rollback takes back.
    Counterpart,
    /// The round of the game.
    Round,
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Field::User => "user",
            Field::Currency => "currency",
            Field::Amount => "amount",
            Field::Kind => "kind",
            Field::Counterpart => "original",
            Field::Round => "round",
        })
    }
}

/// Which condition beside the key failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// A companion exists: the conversation changed after it was read.
    Companion,
    /// The coins are not held any more: they were released or taken back.
    Hold,
    /// A guard did not hold of the account, which is this; `None` where there is none.
    Account(Option<Account>),
    /// The player's part in the round is not as it must be, but like this.
    Round(Round),
    /// The case is not open any more: somebody else closed it.
    Case,
}

/// Whether a stored entry and a new one with its key are the same.
///
/// The amount counts as the same when it is equal or was received as the same text: a change of the coin's scale
/// between two deliveries is not the network's doing. A reversal's amount is what was credited, whatever it carries, so
/// it is not compared. A placeholder is the same as any credit. What changes with every delivery is not part of an
/// entry's identity.
pub fn judge(stored: Entry, new: &Entry) -> Outcome {
    debug_assert!(stored.same_key(new));
    let (known, sent) = (&stored.evidence.amount_received, &new.evidence.amount_received);
    let same_amount = stored.amount == new.amount || (known == sent && !sent.is_empty());
    if let (Some(known), Some(asked)) = (&stored.operation, &new.operation) {
        let differs = operations_differ(&stored, known, new, asked);
        return match differs {
            Some(field) => Outcome::Conflict(stored, field),
            None => Outcome::Replayed(stored),
        };
    }
    if stored.void {
        Outcome::Replayed(stored)
    } else if stored.user_claimed() != new.user_claimed() {
        Outcome::Conflict(stored, Field::User)
    } else if stored.currency != new.currency {
        Outcome::Conflict(stored, Field::Currency)
    } else if amount_counts(new.status) && !same_amount {
        Outcome::Conflict(stored, Field::Amount)
    } else {
        Outcome::Replayed(stored)
    }
}

/// The first thing in which a known operation and a new one under its key differ: whom, what, how much, and of what. A
/// placeholder knows neither an amount nor more than that. What only one of them names is no difference: it was filled in.
fn operations_differ(stored: &Entry, known: &Operation, new: &Entry, asked: &Operation) -> Option<Field> {
    fn other<T: PartialEq>(known: Option<&T>, asked: Option<&T>) -> bool {
        known.zip(asked).is_some_and(|(known, asked)| known != asked)
    }
    fn named(entry: &Entry) -> Option<&UserId> {
        Some(entry.user_claimed()).filter(|user| !user.is_suspense())
    }
    let differs = [
        (other(named(stored), named(new)), Field::User),
        (stored.currency != new.currency, Field::Currency),
        (known.kind != asked.kind, Field::Kind),
        (other(known.requested.as_ref(), asked.requested.as_ref()), Field::Amount),
        (other(known.counterpart.as_ref(), asked.counterpart.as_ref()), Field::Counterpart),
        (other(known.round.as_ref(), asked.round.as_ref()), Field::Round),
    ];
    differs.into_iter().find(|(differs, _)| *differs).map(|(_, field)| field)
}

/// Whether the amount of an entry is its caller's choice. That of all others is what was credited.
fn amount_counts(status: Status) -> bool {
    match status {
        Status::Credit | Status::Adjust(_) | Status::Deposit | Status::Withdrawal => true,
        Status::Reversal
        | Status::Release
        | Status::Assign
        | Status::Clear
        | Status::Operation
        | Status::Rollback
        | Status::Open
        | Status::Close => false,
    }
}

/// Judges a posting against entries already read, where its key is among them; `None` leaves it to the store.
pub fn judge_known(known: &[Entry], posting: &Posting) -> Option<Outcome> {
    known.iter().find(|entry| entry.same_key(&posting.entry)).map(|stored| judge(stored.clone(), &posting.entry))
}

/// Who has the coins of a conversation's credit: the user that a person gave them to, else the one on the credit.
pub fn holder<'a>(credit: &'a Entry, conversation: &'a [Entry]) -> &'a UserId {
    let assigned = conversation.iter().find(|entry| entry.status == Status::Assign);
    &assigned.unwrap_or(credit).user
}

/// The coins of a conversation that are held and neither released, nor given to somebody, nor taken back.
pub fn held_now(conversation: &[Entry]) -> Option<Hold> {
    let left = conversation.iter().any(|entry| entry.held_change() < Amount::ZERO);
    let credit = conversation.iter().find(|entry| entry.status == Status::Credit).filter(|_| !left)?;
    let held = credit.held.filter(|held| held.change > Amount::ZERO)?;
    Some(Hold {
        trans_id: credit.trans_id.clone(),
        user: credit.user.clone(),
        currency: credit.currency.clone(),
        amount: held.change,
        release_at: held.release_at,
    })
}

/// The posting that makes held coins available to their user.
pub fn release(hold: &Hold, now: Timestamp) -> Posting {
    let key = (hold.trans_id.clone(), Status::Release);
    Posting::of(Entry {
        held: Some(Held { change: hold.amount.negated(), release_at: hold.release_at }),
        ..Entry::plain(key, (hold.user.clone(), hold.currency.clone()), Amount::ZERO, now)
    })
}

/// Something that a machine must not decide: a row for a person to find and work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// Why it was opened.
    pub kind: CaseKind,
    /// What it is about.
    pub about: About,
    /// What happened, as a sentence for whoever opens the case.
    pub detail: String,
    /// When what it is about was planned or met.
    pub opened_at: Timestamp,
}

/// What a case is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum About {
    /// An entry of a conversation, recorded or not.
    Entry {
        /// The conversation.
        trans_id: TransId,
        /// The entry of it.
        status: Status,
        /// Whose account the entry in question is on.
        user: UserId,
        /// The currency of that account.
        currency: Currency,
        /// The change of the balance that is in question; zero where nobody can say.
        amount: Amount,
    },
    /// A version of the settings.
    Settings(u64),
}

/// Why a case was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CaseKind {
    /// A known key came with another user, currency or amount: the first of these that differs.
    Conflict(Field),
    /// A credit came after its reversal and moved nothing.
    LateCredit,
    /// A reversal took coins that were already spent: the balance is below zero.
    Overdrawn,
    /// A reversal found coins already spent, and took only what was left: the rest is our loss.
    Shortfall,
    /// A reversal came for a credit that we never saw.
    ReversalWithoutCredit,
    /// A credit above a cap of the network: its coins are held until a person releases them.
    OverCap,
    /// A credit for a user whom the app does not know: its coins are in suspense.
    UnknownUser,
    /// A version of the settings that does not read: the last good one stays in force.
    SettingsBroken,
    /// A win was paid in a round in which its player has no bet.
    WinWithoutBet,
    /// A win was paid in a round that was finished or rolled back.
    WinAfterEnd,
    /// Coins came to an account that is closed to its player.
    ClosedAccount,
}

impl CaseKind {
    /// Every kind.
    pub const ALL: [CaseKind; 16] = [
        CaseKind::Conflict(Field::User),
        CaseKind::Conflict(Field::Currency),
        CaseKind::Conflict(Field::Amount),
        CaseKind::Conflict(Field::Kind),
        CaseKind::Conflict(Field::Counterpart),
        CaseKind::Conflict(Field::Round),
        CaseKind::LateCredit,
        CaseKind::Overdrawn,
        CaseKind::Shortfall,
        CaseKind::ReversalWithoutCredit,
        CaseKind::OverCap,
        CaseKind::UnknownUser,
        CaseKind::SettingsBroken,
        CaseKind::WinWithoutBet,
        CaseKind::WinAfterEnd,
        CaseKind::ClosedAccount,
    ];

    /// The kind as it is stored.
    pub fn as_str(self) -> &'static str {
        match self {
            CaseKind::Conflict(_) => "conflict",
            CaseKind::LateCredit => "late_credit",
            CaseKind::Overdrawn => "overdrawn",
            CaseKind::Shortfall => "shortfall",
            CaseKind::ReversalWithoutCredit => "reversal_without_credit",
            CaseKind::OverCap => "over_cap",
            CaseKind::UnknownUser => "unknown_user",
            CaseKind::SettingsBroken => "settings_broken",
            CaseKind::WinWithoutBet => "win_without_bet",
            CaseKind::WinAfterEnd => "win_after_end",
            CaseKind::ClosedAccount => "closed_account",
        }
    }

    /// The id of a case of this kind about an entry.
    pub fn id_of(self, trans_id: &TransId, status: Status) -> String {
        let id = format!("{}/{trans_id}/{}", self.as_str(), status.as_str());
        match self {
            CaseKind::Conflict(field) => format!("{id}/{field}"),
            CaseKind::LateCredit
            | CaseKind::Overdrawn
            | CaseKind::Shortfall
            | CaseKind::ReversalWithoutCredit
            | CaseKind::OverCap
            | CaseKind::UnknownUser
            | CaseKind::SettingsBroken
            | CaseKind::WinWithoutBet
            | CaseKind::WinAfterEnd
            | CaseKind::ClosedAccount => id,
        }
    }
}

impl Case {
    /// A case about an entry.
    pub fn about(kind: CaseKind, entry: &Entry, detail: String) -> Case {
        let about = About::Entry {
            trans_id: entry.trans_id.clone(),
            status: entry.status,
            user: entry.user.clone(),
            currency: entry.currency.clone(),
            amount: entry.amount,
        };
        Case { kind, about, detail, opened_at: entry.received_at }
    }

    /// The key of the case, made of what it is about, so that a fact that repeats opens it once.
    pub fn id(&self) -> String {
        match &self.about {
            About::Settings(version) => format!("{}/{version}", self.kind.as_str()),
            About::Entry { trans_id, status, .. } => self.kind.id_of(trans_id, *status),
        }
    }
}

/// A case as it stands among the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseRow {
    /// Its key.
    pub case_id: String,
    /// What it was opened for.
    pub case: Case,
    /// How it was closed; `None` while it is open.
    pub closed: Option<Closed>,
}

/// What a closed case says of its end, as far as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    /// What was done: a [`Resolution`] in its words.
    pub resolution: String,
    /// Who did it, and why.
    pub decision: Decision,
    /// When.
    pub closed_at: Option<Timestamp>,
}

/// How a case was closed, and by whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closing {
    /// The case, see [`Case::id`].
    pub case_id: String,
    /// What was done.
    pub resolution: Resolution,
    /// Who did it, and why.
    pub decision: Decision,
    /// When.
    pub closed_at: Timestamp,
}

/// What a person did about a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolution {
    /// Held coins were released to their user.
    Released,
    /// Coins in suspense were given to this user.
    Assigned(UserId),
    /// The balance of the case's user was corrected by this signed amount.
    Adjusted(Amount),
    /// Nothing was moved: there was nothing to move, or it was done elsewhere.
    Noted,
}

impl fmt::Display for Resolution {
    /// As it is stored.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Resolution::Released => f.write_str("released"),
            Resolution::Assigned(user) => write!(f, "assigned to {user}"),
            Resolution::Adjusted(amount) => write!(f, "adjusted by {amount}"),
            Resolution::Noted => f.write_str("noted"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(status: Status, user: &str, amount: &str) -> Entry {
        Entry {
            trans_id: TransId::new("net/1").unwrap(),
            status,
            user: UserId::new(user).unwrap(),
            currency: Currency::new("coins").unwrap(),
            amount: Amount::stored(amount).unwrap(),
            held: None,
            absorbed: Amount::ZERO,
            received_at: Timestamp::UNIX_EPOCH,
            void: false,
            user_received: None,
            evidence: Evidence {
                preset: Network::new("net").ok(),
                amount_received: amount.into(),
                source_ip: "192.0.2.1".into(),
                fingerprint: "00".into(),
            },
            offer: Offer::default(),
            decision: None,
            operation: None,
        }
    }

    /// The field that `new` differs in from a stored credit of 10 coins to u, or `None` for a replay.
    fn differs(change: impl FnOnce(&mut Entry, &mut Entry)) -> Option<Field> {
        let (mut stored, mut new) = (entry(Status::Credit, "u", "10"), entry(Status::Credit, "u", "10"));
        change(&mut stored, &mut new);
        match judge(stored.clone(), &new) {
            Outcome::Replayed(found) => {
                assert_eq!(found, stored);
                None
            }
            Outcome::Conflict(found, field) => {
                assert_eq!(found, stored);
                Some(field)
            }
            outcome @ (Outcome::Posted | Outcome::Refused(_)) => {
                panic!("a known key came to {outcome:?}")
            }
        }
    }

    #[test]
    fn what_changes_with_every_delivery_is_not_part_of_sameness() {
        assert_eq!(
            differs(|_, new| {
                new.received_at = Timestamp::MAX;
                new.evidence.source_ip = "203.0.113.9".into();
                new.evidence.fingerprint = "ff".into();
                new.offer.offer_name = Some("renamed".into());
            }),
            None
        );
    }

    #[test]
    fn another_user_currency_or_amount_is_a_conflict_named_in_that_order() {
        let user = |new: &mut Entry| new.user = UserId::new("v").unwrap();
        let currency = |new: &mut Entry| new.currency = Currency::new("gems").unwrap();
        let amount = |new: &mut Entry| {
            new.amount = Amount::stored("11").unwrap();
            new.evidence.amount_received = "11".into();
        };
        assert_eq!(differs(|_, new| user(new)), Some(Field::User));
        assert_eq!(differs(|_, new| currency(new)), Some(Field::Currency));
        assert_eq!(differs(|_, new| amount(new)), Some(Field::Amount));
        assert_eq!(differs(|_, new| (amount(new), currency(new), user(new)).0), Some(Field::User));
        assert_eq!(differs(|_, new| (amount(new), currency(new)).0), Some(Field::Currency));
    }

    #[test]
    fn the_same_amount_in_another_notation_or_at_another_scale_is_a_replay() {
        assert_eq!(differs(|_, new| new.evidence.amount_received = "10.00".into()), None);
        assert_eq!(
            differs(|stored, new| {
                stored.amount = Amount::stored("10").unwrap();
                new.amount = Amount::stored("10.5").unwrap();
                stored.evidence.amount_received = "10.5".into();
                new.evidence.amount_received = "10.5".into();
            }),
            None
        );
    }

    #[test]
    fn two_amounts_without_the_evidence_of_a_request_are_not_the_same_for_it() {
        let changed = differs(|stored, new| {
            new.amount = Amount::stored("11").unwrap();
            stored.evidence = Evidence::default();
            new.evidence = Evidence::default();
        });
        assert_eq!(changed, Some(Field::Amount));
    }

    #[test]
    fn a_reversal_is_the_same_whatever_amount_it_carries_but_not_for_another_user() {
        let stored = entry(Status::Reversal, "u", "-10");
        assert!(matches!(judge(stored.clone(), &entry(Status::Reversal, "u", "99")), Outcome::Replayed(_)));
        let mut other = entry(Status::Reversal, "u", "-10");
        other.user_received = Some(UserId::new("v").unwrap());
        assert!(matches!(judge(stored, &other), Outcome::Conflict(_, Field::User)));
    }

    #[test]
    fn a_known_operation_differs_in_whom_what_how_much_and_of_what_and_not_in_what_one_of_them_lacks() {
        let operation = || Operation {
            kind: OperationKind::BetRollback,
            requested: Amount::stored("10"),
            round: RoundId::new("net/1").ok(),
            game_id: Some("x".into()),
            counterpart: TransId::new("net/b").ok(),
            answer: StoredAnswer { status: 200, body: "{}".into() },
        };
        let of = |operation| Entry { operation: Some(operation), ..entry(Status::Operation, "u", "0") };
        let differs = |change: &dyn Fn(&mut Entry)| {
            let mut new = of(operation());
            change(&mut new);
            match judge(of(operation()), &new) {
                Outcome::Conflict(_, field) => Some(field),
                Outcome::Replayed(_) => None,
                outcome => panic!("{outcome:?}"),
            }
        };
        let change = |change: &dyn Fn(&mut Operation)| differs(&|entry| change(entry.operation.as_mut().unwrap()));
        assert_eq!(differs(&|entry| entry.user = UserId::new("v").unwrap()), Some(Field::User));
        assert_eq!(change(&|new| new.kind = OperationKind::Win), Some(Field::Kind));
        assert_eq!(change(&|new| new.requested = Amount::stored("11")), Some(Field::Amount));
        assert_eq!(change(&|new| new.counterpart = TransId::new("net/c").ok()), Some(Field::Counterpart));
        assert_eq!(change(&|new| new.round = RoundId::new("net/2").ok()), Some(Field::Round));
        assert_eq!(change(&|new| (new.requested, new.round, new.counterpart) = (None, None, None)), None);
        assert_eq!(change(&|new| (new.game_id, new.answer.status) = (None, 402)), None);
        assert_eq!(differs(&|entry| entry.amount = Amount::stored("-5").unwrap()), None, "what moved is ours to say");
    }

    #[test]
    fn a_placeholder_is_the_same_as_any_credit() {
        assert_eq!(
            differs(|stored, new| {
                stored.void = true;
                stored.amount = Amount::ZERO;
                new.user = UserId::new("v").unwrap();
            }),
            None
        );
    }
}
