//! The wallet contract: a game aggregator's signed call becomes an ask, what was seen of the ledger becomes the next step,
//! and every key hears one answer for ever.
//!
//! Pure: decides everything and does nothing. One key is at most one movement of money, across players, rounds and paths.
//! An answer names balances, so it is true only of the balance that it was made for: a posting holds that balance as its
//! condition, and is made anew when the ledger tells another. Nothing is answered of money that the ledger did not decide,
//! and nothing of a request's values goes back to whoever sent one that is refused.

use jiff::Timestamp;

use crate::event::{Answer, Request};
use crate::fields::{Doubt, Fields, Value, cut};
use crate::gate::{self, Barred};
use crate::id::{Currency, IdError, Network, RoundId, TransId, UserId};
use crate::ledger::{
    Account, Case, CaseKind, Entry, Evidence, Field, GAME_ID_MAX, Guard, Operation, OperationKind, Outcome, Posting,
    Round, RoundStep, SOURCE_IP_MAX, Status, StoredAnswer, Turn, judge,
};
use crate::metrics::Flow;
use crate::money::{Amount, AmountError, Received, Scale};
use crate::preset::{Doubtful, Identity, Preset, SpentWin, Unseen, Wallet};
use crate::signature::{Key, Wire};

/// Decimals of an amount, in requests and in answers.
const DECIMALS: u8 = 2;

/// Most digits of a JSON number that a float holds whatever they are (IEEE 754, binary64): a sender that made it of one may
/// have lost what comes after. As a text it may have more.
const FLOAT_DIGITS: usize = 15;

/// What a path asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
    /// Whether the wallet is there and knows the secret.
    Ping,
    /// A player's balance.
    Balance,
    /// An operation under a key.
    Operation(OperationKind),
}

impl Path {
    /// The path as it is called.
    pub fn as_str(self) -> &'static str {
        PATHS.iter().find(|(_, path)| *path == self).map_or("", |(text, _)| text)
    }
}

/// Every path.
pub const PATHS: [(&str, Path); 7] = [
    ("/bet/debit", Path::Operation(OperationKind::Bet)),
    ("/win/credit", Path::Operation(OperationKind::Win)),
    ("/bet/rollback", Path::Operation(OperationKind::BetRollback)),
    ("/win/rollback", Path::Operation(OperationKind::WinRollback)),
    ("/round/finish", Path::Operation(OperationKind::RoundFinish)),
    ("/balance", Path::Balance),
    ("/ping", Path::Ping),
];

/// Where a request leads.
#[derive(Debug, Clone, Copy)]
pub struct Route<'a> {
    /// The network that calls.
    pub preset: &'a Preset,
    /// What is decided of its calls.
    pub wallet: &'a Wallet,
    /// What it asks for.
    pub path: Path,
}

/// What a verified request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Call {
    /// An answer, and nothing else.
    Ping,
    /// The balance of this player in this currency.
    Balance(UserId, Currency),
    /// An operation.
    Ask(Box<Ask>),
}

/// An operation that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// The key: the same in every repeat, and no other operation's.
    pub key: TransId,
    /// What is asked for.
    pub what: What,
    /// The player; where none is named, nobody in particular, see [`Ask::names_player`].
    pub player: UserId,
    /// The wallet's currency.
    pub currency: Currency,
    /// The currency that it names: the wallet's or, for a rollback, its original's.
    pub named_currency: Option<Currency>,
    /// The amount, where one was named.
    pub requested: Option<Amount>,
    /// The round.
    pub round: Option<RoundId>,
    /// The game.
    pub game_id: Option<String>,
    /// The request.
    pub evidence: Evidence,
}

impl Ask {
    /// Whether it names a player. A round that is finished for all does not, and a rollback need not.
    pub fn names_player(&self) -> bool {
        !self.player.is_suspense()
    }
}

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// To take this stake.
    Bet(Amount),
    /// To pay this win.
    Win(Amount),
    /// To take back the bet with this id.
    BetRollback(TransId),
    /// To take back the win with this id.
    WinRollback(TransId),
    /// To finish a round, for its player or for all in it.
    RoundFinish {
        /// For all.
        for_all: bool,
    },
}

impl What {
    /// The kind of it.
    pub fn kind(&self) -> OperationKind {
        match self {
            What::Bet(_) => OperationKind::Bet,
            What::Win(_) => OperationKind::Win,
            What::BetRollback(_) => OperationKind::BetRollback,
            What::WinRollback(_) => OperationKind::WinRollback,
            What::RoundFinish { .. } => OperationKind::RoundFinish,
        }
    }

    /// What it takes back.
    pub fn original(&self) -> Option<&TransId> {
        match self {
            What::BetRollback(original) | What::WinRollback(original) => Some(original),
            What::Bet(_) | What::Win(_) | What::RoundFinish { .. } => None,
        }
    }
}

/// Why a request asks for nothing.
pub type Rejection = gate::Rejection<Why>;

/// A field that cannot be used.
pub type Fault = gate::Fault<Why>;

/// Why a field cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    #[error(transparent)]
    Doubt(#[from] Doubt),
    #[error(transparent)]
    Id(#[from] IdError),
    #[error(transparent)]
    Amount(#[from] AmountError),
    #[error("below zero")]
    Negative,
    #[error("more than two decimals")]
    Decimals,
    #[error("a number of more than {FLOAT_DIGITS} digits, which is not exact as a float: send it as a string")]
    Inexact,
    #[error("neither a whole number nor a string")]
    NoId,
    #[error("begins as our own transaction ids do")]
    LikeOurs,
    #[error("names the request itself")]
    Itself,
    #[error("not the currency of this wallet")]
    Currency,
}

/// What an ask came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happened {
    /// The stake was taken.
    Bet,
    /// The win was paid.
    Won,
    /// The original was taken back.
    RolledBack,
    /// There was nothing to take back: the original had moved nothing.
    NothingToRollBack,
    /// The original never came; should it still come, it is refused.
    Voided,
    /// The original was rolled back before, under another key.
    RolledBackBefore,
    /// The round is finished.
    Finished,
    /// The balance was less than it would have taken.
    Declined,
    /// Refused by the settings.
    Refused,
    /// The operation came after its rollback.
    Late,
    /// Known, and the same.
    Duplicate,
    /// Known, and not the same.
    Conflict,
}

impl Happened {
    /// Everything.
    pub const ALL: [Happened; 12] = [
        Happened::Bet,
        Happened::Won,
        Happened::RolledBack,
        Happened::NothingToRollBack,
        Happened::Voided,
        Happened::RolledBackBefore,
        Happened::Finished,
        Happened::Declined,
        Happened::Refused,
        Happened::Late,
        Happened::Duplicate,
        Happened::Conflict,
    ];

    /// The outcome's name in logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Happened::Bet => "bet",
            Happened::Won => "won",
            Happened::RolledBack => "rolled_back",
            Happened::NothingToRollBack => "nothing_to_roll_back",
            Happened::Voided => "voided",
            Happened::RolledBackBefore => "rolled_back_before",
            Happened::Finished => "finished",
            Happened::Declined => "declined",
            Happened::Refused => "refused",
            Happened::Late => "late",
            Happened::Duplicate => "duplicate",
            Happened::Conflict => "conflict",
        }
    }

    /// As what it moves coins; `None` where it moves none.
    pub fn flow(self) -> Option<Flow> {
        match self {
            Happened::Bet => Some(Flow::Bet),
            Happened::Won => Some(Flow::Won),
            Happened::RolledBack => Some(Flow::RolledBack),
            Happened::NothingToRollBack
            | Happened::Voided
            | Happened::RolledBackBefore
            | Happened::Finished
            | Happened::Declined
            | Happened::Refused
            | Happened::Late
            | Happened::Duplicate
            | Happened::Conflict => None,
        }
    }
}

/// Why an ask is not settled, and nothing is stored of it: the same request may be settled another day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// No such player.
    UnknownPlayer,
    /// It names another currency than the wallet's.
    OtherCurrency,
    /// It takes back what never came, and names no player.
    NoPlayer,
    /// Nothing is known under what the rollback names, and the settings want that refused.
    UnknownOriginal,
    /// What the rollback names is another kind of operation.
    OtherKind,
    /// The balance would leave the range of amounts.
    OutOfRange,
}

impl Denied {
    /// Everything.
    pub const ALL: [Denied; 6] = [
        Denied::UnknownPlayer,
        Denied::OtherCurrency,
        Denied::NoPlayer,
        Denied::UnknownOriginal,
        Denied::OtherKind,
        Denied::OutOfRange,
    ];

    /// The outcome's name in logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Denied::UnknownPlayer => "unknown_player",
            Denied::OtherCurrency => "other_currency",
            Denied::NoPlayer => "no_player",
            Denied::UnknownOriginal => "unknown_original",
            Denied::OtherKind => "other_kind",
            Denied::OutOfRange => "out_of_range",
        }
    }

    /// What the caller hears; a field that is wrong is called as the caller does.
    pub fn answer(self, route: &Route<'_>) -> Answer {
        let names = &route.wallet.names;
        let fault = |name: &str, why: &str| error(400, &format!("{name}: {why}"));
        match self {
            Denied::UnknownPlayer => error(404, "player not found"),
            Denied::OtherCurrency => fault(&names.currency, &Why::Currency.to_string()),
            Denied::NoPlayer => fault(&route.preset.parameters.user_id, "missing, and what is taken back never came"),
            Denied::UnknownOriginal => error(404, "original transaction not found"),
            Denied::OtherKind => fault(&names.original, "of another kind"),
            Denied::OutOfRange => error(503, "balance out of range"),
        }
    }
}

/// What is known of the ledger so far; each part may be out of date, and the posting decides.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// The account of this user in this currency; `None` within where there is none.
    pub account: Option<((UserId, Currency), Option<Account>)>,
    /// The entries of the original of a rollback.
    pub original: Option<Vec<Entry>>,
    /// The entries under the key itself.
    pub known: Option<Vec<Entry>>,
    /// The player's part in the round, after it was found not to be live.
    pub round: Option<Round>,
    /// Whether the round was finished for everybody in it.
    pub finished_for_all: bool,
}

/// What has to be done next for an ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The account of this user in this currency has to be seen.
    ReadAccount(UserId, Currency),
    /// The entries of the original have to be seen.
    ReadOriginal(TransId),
    /// The entries under the key have to be seen.
    ReadKnown,
    /// The round has to be finished for every player in it.
    FinishForAll(RoundId),
    /// This has to be posted, and then means this.
    Post(Box<Posting>, Happened),
    /// The key of this entry is known: this is what it came to.
    Known(Box<(Entry, Outcome)>),
    /// Nothing is done, and nothing stored.
    Deny(Denied),
}

/// Where a path leads: `/<network>/<path>`, or `/<path>` where exactly one wallet is enabled.
pub fn route<'a>(enabled: &'a [Preset], path: &str) -> Option<Route<'a>> {
    let wallets = || enabled.iter().filter_map(|preset| Some((preset, preset.wallet()?)));
    let below = |preset: &Preset| path.strip_prefix('/')?.strip_prefix(preset.network.as_str());
    let named = wallets().filter_map(|(preset, wallet)| Some((preset, wallet, below(preset)?)));
    let only = wallets().take(1).filter(|_| wallets().count() == 1).map(|(preset, wallet)| (preset, wallet, path));
    // One network's name may begin with another's: what is left must be a path.
    named.chain(only).find_map(|(preset, wallet, path)| {
        let path = PATHS.iter().find(|(known, _)| *known == path).map(|(_, path)| *path)?;
        Some(Route { preset, wallet, path })
    })
}

/// Verifies a request, then reads it.
///
/// # Errors
///
/// [`Rejection`]: what the gate says, then every field that cannot be used.
pub fn read(route: &Route<'_>, keys: &[Key], currency: &Currency, request: &Request) -> Result<Call, Rejection> {
    let kind = match route.path {
        // It needs no field, and so no body either.
        Path::Ping => {
            gate::on_wire(route.preset, request, |wire, _| gate::verify(route.preset, keys, wire))?;
            return Ok(Call::Ping);
        }
        Path::Balance => None,
        Path::Operation(kind) => Some(kind),
    };
    gate::pass(route.preset, keys, request, |wire| {
        let currency = route.wallet.currency.as_ref().unwrap_or(currency);
        match kind {
            None => question(route, currency, wire),
            Some(kind) => call(route, kind, currency, wire),
        }
    })
}

/// Reads a verified question for a balance.
fn question(route: &Route<'_>, currency: &Currency, wire: &Wire<'_>) -> Result<Call, Vec<Fault>> {
    let names = &route.wallet.names;
    let mut form = Form { fields: wire.fields, faults: Vec::new() };
    let player = form.required(&route.preset.parameters.user_id, player);
    let named = form.optional(&names.currency, named_currency);
    if named.is_some_and(|named| named != *currency) {
        form.faults.push(Fault { parameter: names.currency.clone(), why: Why::Currency });
    }
    let player = player.filter(|_| form.faults.is_empty()).ok_or(form.faults)?;
    Ok(Call::Balance(player, currency.clone()))
}

/// Reads a verified call for an operation.
fn call(route: &Route<'_>, kind: OperationKind, currency: &Currency, wire: &Wire<'_>) -> Result<Call, Vec<Fault>> {
    let Route { preset, wallet, .. } = route;
    let names = &wallet.names;
    let mut form = Form { fields: wire.fields, faults: Vec::new() };
    let Identity::Field(key_name) = &preset.parameters.trans_id else { return Err(form.faults) };
    let key = form.required(key_name, |value| key(&preset.network, value));
    let named = match kind {
        OperationKind::Bet | OperationKind::Win => form.required(&preset.parameters.user_id, player),
        OperationKind::BetRollback | OperationKind::WinRollback | OperationKind::RoundFinish => {
            form.optional(&preset.parameters.user_id, player)
        }
    };
    let amount_name = &preset.parameters.amount;
    let (requested, what) = match kind {
        OperationKind::Bet => {
            let amount = form.required(amount_name, amount);
            (amount, amount.map(What::Bet))
        }
        OperationKind::Win => {
            let amount = form.required(amount_name, amount);
            (amount, amount.map(What::Win))
        }
        OperationKind::BetRollback | OperationKind::WinRollback => {
            let amount = form.optional(amount_name, amount);
            let original = form.required(&names.original, |value| original(&preset.network, value, key.as_ref()));
            let is_bet = kind == OperationKind::BetRollback;
            (amount, original.map(if is_bet { What::BetRollback } else { What::WinRollback }))
        }
        OperationKind::RoundFinish => (None, Some(What::RoundFinish { for_all: named.is_none() })),
    };
    let round_of = |value: &Value<'_>| Ok(RoundId::of(&preset.network, &id(value)?)?);
    let round = match kind {
        OperationKind::BetRollback | OperationKind::WinRollback => form.optional(&names.round_id, round_of),
        _ => form.required(&names.round_id, round_of),
    };
    let named_currency = form.optional(&names.currency, named_currency);
    let game_id = wire.fields.lenient(&names.game_id);
    let game_id = game_id.map(|text| cut(text.replace(char::is_control, " "), GAME_ID_MAX));
    let evidence = Evidence {
        preset: Some(preset.network.clone()),
        amount_received: String::new(),
        source_ip: cut(wire.request.source_ip.clone(), SOURCE_IP_MAX),
        fingerprint: gate::fingerprint(preset, wire),
    };
    let (true, Some(key), Some(what)) = (form.faults.is_empty(), key, what) else { return Err(form.faults) };
    let player = named.unwrap_or_else(|| UserId::suspense(&preset.network));
    let currency = currency.clone();
    Ok(Call::Ask(Box::new(Ask { key, what, player, currency, named_currency, requested, round, game_id, evidence })))
}

/// The fields of a verified request, and what is wrong with them.
struct Form<'a> {
    fields: &'a Fields<'a>,
    faults: Vec<Fault>,
}

impl Form<'_> {
    /// Reads a field that must be there: anything doubtful in it is a fault.
    fn required<T>(&mut self, name: &str, parse: impl FnOnce(&Value<'_>) -> Result<T, Why>) -> Option<T> {
        let result = self.there(name).map_err(Why::Doubt).and_then(parse);
        result.map_err(|why| self.faults.push(Fault { parameter: name.to_owned(), why })).ok()
    }

    /// The value of a field that is there, once and not empty. Nobody replaces macros in a call: braces are part of an id.
    fn there(&self, name: &str) -> Result<&Value<'_>, Doubt> {
        let value = self.fields.once(name)?;
        if value.strict()?.is_empty() { Err(Doubt::Missing) } else { Ok(value) }
    }

    /// Reads a field that may be missing or empty; where it is there, anything doubtful in it is a fault.
    fn optional<T>(&mut self, name: &str, parse: impl FnOnce(&Value<'_>) -> Result<T, Why>) -> Option<T> {
        match self.there(name) {
            Err(Doubt::Missing) => None,
            _ => self.required(name, parse),
        }
    }
}

/// An id, which may be sent as a string or as a whole number, the same either way.
fn id(value: &Value<'_>) -> Result<String, Why> {
    let text = value.strict()?;
    let whole = text.bytes().all(|byte| byte.is_ascii_digit());
    if matches!(value, Value::Literal(_)) && !whole { Err(Why::NoId) } else { Ok(text.into_owned()) }
}

fn player(value: &Value<'_>) -> Result<UserId, Why> {
    Ok(UserId::new(&id(value)?)?)
}

/// What our own transaction ids begin with: they are the ids of the conversations.
fn ours(network: &Network) -> String {
    format!("{network}/")
}

fn key(network: &Network, value: &Value<'_>) -> Result<TransId, Why> {
    let text = id(value)?;
    if text.starts_with(&ours(network)) {
        return Err(Why::LikeOurs);
    }
    Ok(TransId::of(network, &text)?)
}

/// What a rollback names: our transaction id, or the key of the original.
fn original(network: &Network, value: &Value<'_>, key: Option<&TransId>) -> Result<TransId, Why> {
    let text = id(value)?;
    let original = TransId::of(network, text.strip_prefix(&ours(network)).unwrap_or(&text))?;
    if Some(&original) == key { Err(Why::Itself) } else { Ok(original) }
}

/// A plain decimal of at most two places, as a number or as a string.
fn amount(value: &Value<'_>) -> Result<Amount, Why> {
    let text = value.strict()?;
    let received = Received::read(&text)?;
    if received.is_negative() {
        return Err(Why::Negative);
    }
    if received.decimals() > DECIMALS.into() {
        return Err(Why::Decimals);
    }
    if matches!(value, Value::Literal(_)) && received.digits() > FLOAT_DIGITS {
        return Err(Why::Inexact);
    }
    Ok(received.cut(two_places())?)
}

fn two_places() -> Scale {
    Scale::new(DECIMALS).expect("a scale has up to eight decimals")
}

fn named_currency(value: &Value<'_>) -> Result<Currency, Why> {
    Ok(Currency::new(&value.strict()?)?)
}

/// What has to be done next for an ask, given what is seen.
pub fn next(wallet: &Wallet, ask: &Ask, seen: &Seen, now: Timestamp) -> Step {
    let step = match &ask.what {
        What::Bet(stake) => bet(ask, *stake, seen, now),
        What::Win(amount) => win(wallet, ask, *amount, seen, now),
        What::BetRollback(original) => rollback(wallet, ask, OperationKind::Bet, original, seen, now),
        What::WinRollback(original) => rollback(wallet, ask, OperationKind::Win, original, seen, now),
        What::RoundFinish { for_all } => finish(ask, *for_all, seen, now),
    };
    match step {
        Ok((posting, happened)) => Step::Post(Box::new(posting), happened),
        Err(Stop::Look(step)) => *step,
        // Identity before validity: a known key hears its answer, whatever is wrong today.
        Err(Stop::UnlessKnown(step)) => known(ask, seen, now).unwrap_or(*step),
    }
}

/// What the key came to, where it is known, or a look for it; `None` where it is new.
fn known(ask: &Ask, seen: &Seen, now: Timestamp) -> Option<Step> {
    let Some(known) = &seen.known else { return Some(Step::ReadKnown) };
    let stored = known.iter().find(|entry| entry.status == Status::Operation)?;
    let new = asked(ask, now);
    let outcome = judge(stored.clone(), &new);
    Some(Step::Known(Box::new((new, outcome))))
}

/// Why there is nothing to post yet, or at all.
enum Stop {
    Look(Box<Step>),
    /// This comes next, but not where the key is known: of that no posting decides.
    UnlessKnown(Box<Step>),
}

impl Stop {
    fn deny(denied: Denied) -> Stop {
        Stop::UnlessKnown(Box::new(Step::Deny(denied)))
    }
}

type Planned = Result<(Posting, Happened), Stop>;

impl Seen {
    /// An account, as it was last seen.
    fn account(&self, user: &UserId, currency: &Currency) -> Result<Account, Stop> {
        match &self.account {
            Some((seen, account)) if (&seen.0, &seen.1) == (user, currency) => {
                account.ok_or_else(|| Stop::deny(Denied::UnknownPlayer))
            }
            _ => Err(Stop::Look(Box::new(Step::ReadAccount(user.clone(), currency.clone())))),
        }
    }
}

/// That the account is still as the answer will tell it.
fn as_seen(account: &Account) -> Vec<Guard> {
    vec![if account.closed { Guard::Known } else { Guard::Open }, Guard::Exactly(account.available)]
}

/// That a call names no other currency than this one. What names another was meant for another wallet, or for this one before
/// its settings changed.
fn in_currency(ask: &Ask, currency: &Currency) -> Result<(), Stop> {
    let is_other = ask.named_currency.as_ref().is_some_and(|named| named != currency);
    if is_other { Err(Stop::deny(Denied::OtherCurrency)) } else { Ok(()) }
}

/// Takes a stake, never more than is there.
fn bet(ask: &Ask, stake: Amount, seen: &Seen, now: Timestamp) -> Planned {
    in_currency(ask, &ask.currency)?;
    let account = seen.account(&ask.player, &ask.currency)?;
    if account.closed {
        // Kept as any refusal is: a copy on its way must not be taken once the account is open again.
        let entry = answered(asked(ask, now), StoredAnswer::of(&error(403, "account closed")));
        return Ok((Posting { guards: vec![Guard::Closed], ..Posting::of(entry) }, Happened::Refused));
    }
    let guards = as_seen(&account);
    if account.available < stake {
        let entry = answered(asked(ask, now), beyond(account.available));
        return Ok((Posting { guards, ..Posting::of(entry) }, Happened::Declined));
    }
    let entry = moving(asked(ask, now), account.available, stake.negated())?;
    Ok((
        Posting { guards, round: turn(ask.round.as_ref(), &ask.player, Turn::Bet), ..Posting::of(entry) },
        Happened::Bet,
    ))
}

/// Pays a win. That its round is live is a condition of the posting; only where it fails is the round looked at.
fn win(wallet: &Wallet, ask: &Ask, amount: Amount, seen: &Seen, now: Timestamp) -> Planned {
    in_currency(ask, &ask.currency)?;
    let account = seen.account(&ask.player, &ask.currency)?;
    let entry = moving(asked(ask, now), account.available, amount)?;
    let guards = as_seen(&account);
    let mut posting = Posting { guards, ..Posting::of(entry) };
    posting.cases.extend(to_a_closed_account(&account, &posting.entry));
    match seen.round {
        Some(round) if !round.is_live() => {
            let ended = round.finished || round.rolled_back > 0;
            let (policy, kind, refusal) = match ended {
                true => (wallet.win_after_end, CaseKind::WinAfterEnd, "the round was finished or rolled back"),
                false => (wallet.win_without_bet, CaseKind::WinWithoutBet, "there is no bet in the round"),
            };
            if policy == Doubtful::Refuse {
                let entry = answered(asked(ask, now), StoredAnswer::of(&error(409, refusal)));
                return Ok((Posting { guards: vec![Guard::Known], ..Posting::of(entry) }, Happened::Refused));
            }
            let detail = format!(
                "A win of {amount} was paid to user {} though {refusal}: round {}, bets that count {}, rolled back {}{}.",
                ask.player,
                ask.round.as_ref().map_or("none", RoundId::as_str),
                round.bets,
                round.rolled_back,
                if round.finished { ", finished" } else { "" }
            );
            posting.cases.push(Case::about(kind, &posting.entry, detail));
        }
        Some(_) | None => posting.round = turn(ask.round.as_ref(), &ask.player, Turn::Live),
    }
    Ok((posting, Happened::Won))
}

/// Takes an operation back, once: what it moved, whatever the rollback says.
fn rollback(
    wallet: &Wallet,
    ask: &Ask,
    kind: OperationKind,
    original: &TransId,
    seen: &Seen,
    now: Timestamp,
) -> Planned {
    let Some(conversation) = &seen.original else {
        return Err(Stop::Look(Box::new(Step::ReadOriginal(original.clone()))));
    };
    let of = |status| conversation.iter().find(|entry| entry.status == status);
    let operation = of(Status::Operation).and_then(|entry| Some((entry, entry.operation.as_ref()?)));
    if operation.is_some_and(|(_, operation)| operation.kind != kind) {
        return Err(Stop::deny(Denied::OtherKind));
    }
    if let Some((mark, Operation { answer, .. })) =
        of(Status::Rollback).and_then(|mark| Some((mark, mark.operation.as_ref()?)))
    {
        let entry = on_account_of(asked(ask, now), mark);
        return Ok((Posting::of(answered(entry, answer.clone())), Happened::RolledBackBefore));
    }
    let Some((taken, operation)) = operation else {
        return match wallet.unseen {
            Unseen::NotFound => Err(Stop::deny(Denied::UnknownOriginal)),
            Unseen::Tombstone => void(ask, original, kind, seen, now),
        };
    };
    in_currency(ask, &taken.currency)?;
    let account = seen.account(&taken.user, &taken.currency)?;
    let change = taken.amount.negated();
    let guards = as_seen(&account);
    let entry = on_account_of(asked(ask, now), taken);
    let spent = change < Amount::ZERO && account.available < change.negated();
    if spent && wallet.spent_win == SpentWin::Refuse {
        let entry = answered(entry, beyond(account.available));
        return Ok((Posting { guards, ..Posting::of(entry) }, Happened::Declined));
    }
    let entry = moving(entry, account.available, change)?;
    let mark = mark(&entry, original);
    let mut cases = Vec::new();
    if spent {
        let detail =
            format!("The win of {} was spent before it was rolled back: the balance went below zero.", taken.amount);
        cases.push(Case::about(CaseKind::Overdrawn, &entry, detail));
    }
    if entry.user_claimed() != taken.user_claimed() {
        let detail = format!(
            "The rollback names user {}, the operation that it takes back user {}: it was taken back of {}.",
            entry.user_claimed(),
            taken.user_claimed(),
            taken.user
        );
        cases.push(Case::about(CaseKind::Conflict(Field::User), &mark, detail));
    }
    if let Some((named, known)) = ask.requested.zip(operation.requested).filter(|(named, known)| named != known) {
        let detail = format!(
            "The rollback names an amount of {named}, the operation that it takes back {known}: {} moved.",
            entry.amount
        );
        cases.push(Case::about(CaseKind::Conflict(Field::Amount), &mark, detail));
    }
    if let Some((named, known)) =
        ask.round.as_ref().zip(operation.round.as_ref()).filter(|(named, known)| named != known)
    {
        let detail = format!("The rollback names the round {named}, the operation that it takes back {known}.");
        cases.push(Case::about(CaseKind::Conflict(Field::Round), &mark, detail));
    }
    cases.extend(to_a_closed_account(&account, &entry));
    let counted = kind == OperationKind::Bet && operation.answer.status == 200;
    let round = operation.round.as_ref().filter(|_| counted);
    let round = turn(round, &taken.user, Turn::RolledBack);
    let happened = if change.is_zero() { Happened::NothingToRollBack } else { Happened::RolledBack };
    Ok((Posting { companions: vec![mark], guards, round, cases, ..Posting::of(entry) }, happened))
}

/// Records the rollback of an operation that never came, and a tombstone where that would be: should it still come, it is
/// refused.
fn void(ask: &Ask, original: &TransId, kind: OperationKind, seen: &Seen, now: Timestamp) -> Planned {
    in_currency(ask, &ask.currency)?;
    if !ask.names_player() {
        return Err(Stop::deny(Denied::NoPlayer));
    }
    let account = seen.account(&ask.player, &ask.currency)?;
    let entry = moving(asked(ask, now), account.available, Amount::ZERO)?;
    let tombstone = Entry {
        trans_id: original.clone(),
        void: true,
        operation: Some(Operation {
            kind,
            requested: None,
            round: ask.round.clone(),
            game_id: None,
            counterpart: None,
            answer: StoredAnswer::of(&error(409, "rolled back before it came")),
        }),
        ..entry.clone()
    };
    let round = ask.round.as_ref().filter(|_| kind == OperationKind::Bet);
    let posting = Posting {
        companions: vec![tombstone, mark(&entry, original)],
        guards: as_seen(&account),
        round: turn(round, &ask.player, Turn::Voided),
        ..Posting::of(entry)
    };
    Ok((posting, Happened::Voided))
}

/// The mark on an operation that `rollback` took it back: there can be one only.
fn mark(rollback: &Entry, original: &TransId) -> Entry {
    let operation = rollback.operation.clone();
    let operation = operation.map(|operation| Operation { counterpart: Some(rollback.trans_id.clone()), ..operation });
    Entry { trans_id: original.clone(), status: Status::Rollback, amount: Amount::ZERO, operation, ..rollback.clone() }
}

/// Finishes a round for its player, or for all in it.
fn finish(ask: &Ask, for_all: bool, seen: &Seen, now: Timestamp) -> Planned {
    in_currency(ask, &ask.currency)?;
    let entry = asked(ask, now);
    let body = format!(r#"{{"transaction_id":{},"status":"SUCCESS"}}"#, json(entry.trans_id.as_str()));
    let posting = Posting::of(answered(entry, StoredAnswer { status: 200, body }));
    let posting = match &ask.round {
        Some(round) if for_all && !seen.finished_for_all => {
            // A repeat must not finish what began after the first one.
            return Err(Stop::UnlessKnown(Box::new(Step::FinishForAll(round.clone()))));
        }
        _ if for_all => posting,
        round => {
            // That there is such a player is a condition of the posting: only where it fails was the account seen.
            if seen.account.is_some() {
                seen.account(&ask.player, &ask.currency)?;
            }
            Posting { guards: vec![Guard::Known], round: turn(round.as_ref(), &ask.player, Turn::Finished), ..posting }
        }
    };
    Ok((posting, Happened::Finished))
}

/// The entry that an ask is, before anything moves and is answered.
fn asked(ask: &Ask, now: Timestamp) -> Entry {
    let operation = Operation {
        kind: ask.what.kind(),
        requested: ask.requested,
        round: ask.round.clone(),
        game_id: ask.game_id.clone(),
        counterpart: ask.what.original().cloned(),
        answer: StoredAnswer { status: 200, body: String::new() },
    };
    let currency = ask.named_currency.as_ref().unwrap_or(&ask.currency).clone();
    let (key, account) = ((ask.key.clone(), Status::Operation), (ask.player.clone(), currency));
    Entry {
        evidence: ask.evidence.clone(),
        operation: Some(operation),
        ..Entry::plain(key, account, Amount::ZERO, now)
    }
}

/// The entry on the account that another one is on, and in its round, whatever round it names.
fn on_account_of(mut entry: Entry, other: &Entry) -> Entry {
    entry.currency = other.currency.clone();
    let named = std::mem::replace(&mut entry.user, other.user.clone());
    entry.user_received = Some(named).filter(|named| *named != other.user && !named.is_suspense());
    if let (Some(operation), Some(of_other)) = (&mut entry.operation, &other.operation)
        && of_other.round.is_some()
    {
        operation.round.clone_from(&of_other.round);
    }
    entry
}

fn answered(mut entry: Entry, answer: StoredAnswer) -> Entry {
    if let Some(operation) = &mut entry.operation {
        operation.answer = answer;
    }
    entry
}

/// The entry with a change of the balance, and the answer that tells of it.
fn moving(entry: Entry, before: Amount, change: Amount) -> Result<Entry, Stop> {
    let after = before.checked_add(change).ok_or_else(|| Stop::deny(Denied::OutOfRange))?;
    let body = format!(
        r#"{{"transaction_id":{},"balance_before":{},"balance_after":{},"status":"SUCCESS"}}"#,
        json(entry.trans_id.as_str()),
        before.fixed(two_places()),
        after.fixed(two_places())
    );
    Ok(answered(Entry { amount: change, ..entry }, StoredAnswer { status: 200, body }))
}

/// The answer to what would take more than there is.
fn beyond(balance: Amount) -> StoredAnswer {
    let balance = balance.fixed(two_places());
    StoredAnswer { status: 402, body: format!(r#"{{"error":"insufficient balance","balance":{balance}}}"#) }
}

fn turn(round: Option<&RoundId>, user: &UserId, turn: Turn) -> Option<RoundStep> {
    round.map(|round| RoundStep { round: round.clone(), user: user.clone(), turn })
}

/// What comes to an account that its player no longer has is owed to somebody.
fn to_a_closed_account(account: &Account, entry: &Entry) -> Option<Case> {
    (account.closed && entry.amount > Amount::ZERO).then(|| {
        let detail = format!("{} came to the account of user {}, which is closed.", entry.amount, entry.user);
        Case::about(CaseKind::ClosedAccount, entry, detail)
    })
}

/// What an outcome means, and the case that it opens. `new` is the entry that was to be posted, `meaning` what it means where
/// it was.
pub fn conclude(new: &Entry, meaning: Happened, outcome: &Outcome) -> (Happened, Option<Case>) {
    match outcome {
        Outcome::Posted | Outcome::Refused(_) => (meaning, None),
        Outcome::Replayed(stored) if stored.void => (Happened::Late, None),
        Outcome::Replayed(_) => (Happened::Duplicate, None),
        Outcome::Conflict(stored, field) => (Happened::Conflict, Some(conflict(stored, new, *field))),
    }
}

/// The answer to an ask whose entry was to be `new`: what is stored under its key. `None` where that is no wallet's entry.
pub fn answer(new: &Entry, outcome: &Outcome) -> Option<Answer> {
    let (entry, replayed) = match outcome {
        Outcome::Posted | Outcome::Refused(_) => (new, false),
        Outcome::Replayed(stored) | Outcome::Conflict(stored, _) => (stored, true),
    };
    let StoredAnswer { status, body } = &entry.operation.as_ref()?.answer;
    Some(Answer { replayed, ..Answer::json(*status, body.clone()) })
}

/// The case of a known key that came with something else.
fn conflict(stored: &Entry, new: &Entry, field: Field) -> Case {
    let told = |entry: &Entry| {
        let operation = entry.operation.as_ref();
        let optional = |text: Option<String>| text.unwrap_or_else(|| "none".to_owned());
        match field {
            Field::User => entry.user_claimed().to_string(),
            Field::Currency => entry.currency.to_string(),
            Field::Amount => {
                optional(operation.and_then(|operation| operation.requested).map(|amount| amount.to_string()))
            }
            Field::Kind => optional(operation.map(|operation| operation.kind.as_str().to_owned())),
            Field::Counterpart => {
                optional(operation.and_then(|operation| operation.counterpart.as_ref()).map(TransId::to_string))
            }
            Field::Round => optional(operation.and_then(|operation| operation.round.as_ref()).map(RoundId::to_string)),
        }
    };
    let detail = format!(
        "The key came again with another {field}: {} is recorded, {} was sent (fingerprint {}). The stored answer was \
         given, and nothing moved.",
        told(stored),
        told(new),
        new.evidence.fingerprint
    );
    let requested = new.operation.as_ref().and_then(|operation| Some((operation.kind, operation.requested?)));
    let amount = match requested {
        Some((OperationKind::Bet, stake)) => stake.negated(),
        Some((OperationKind::Win, win)) => win,
        _ => Amount::ZERO,
    };
    let about = Entry { user: stored.user.clone(), currency: stored.currency.clone(), amount, ..new.clone() };
    Case::about(CaseKind::Conflict(field), &about, detail)
}

impl StoredAnswer {
    /// An answer as it is kept.
    fn of(answer: &Answer) -> StoredAnswer {
        StoredAnswer { status: answer.status, body: answer.body.clone().into_owned() }
    }
}

/// The answer to a ping.
pub fn pong() -> Answer {
    Answer::json(200, r#"{"status":"SUCCESS"}"#)
}

/// The answer to a question for a balance.
pub fn balance(account: &Account, currency: &Currency) -> Answer {
    let available = account.available.fixed(two_places());
    Answer::json(200, format!(r#"{{"balance":{available},"currency":{}}}"#, json(currency.as_str())))
}

/// The answer to a path that leads to no wallet. One of ours is not refused for good: that nobody knows whose it is may be
/// the settings' fault, and what is refused is not sent again.
pub fn astray(path: &str) -> Answer {
    if is_ours(path) { try_again() } else { error(404, "no such path") }
}

/// Whether a path is a wallet's, under whatever name.
pub fn is_ours(path: &str) -> bool {
    PATHS.iter().any(|(known, _)| path.ends_with(known))
}

/// The answer to a request that asks for nothing.
pub fn refuse(rejection: &Rejection) -> Answer {
    match rejection {
        Rejection::UnknownNetwork => error(404, "no such path"),
        Rejection::Barred(Barred::MethodNotAllowed(method)) => {
            error(405, &format!("method not allowed: send a {method}"))
        }
        Rejection::Barred(Barred::BadSignature(_)) => error(401, "bad signature"),
        Rejection::Barred(Barred::BadSource) => error(403, "source address not allowed"),
        Rejection::Barred(Barred::Unreadable) | Rejection::Parameters(_) => {
            error(400, &rejection.why().unwrap_or_default())
        }
    }
}

/// The answer when the ledger could not be asked in time, or could not be asked at all: nothing is half done, and the same
/// request again settles it.
pub fn try_again() -> Answer {
    error(503, "try again")
}

/// An answer that says what is wrong.
fn error(status: u16, text: &str) -> Answer {
    Answer::json(status, format!(r#"{{"error":{}}}"#, json(text)))
}

/// A text as a JSON string.
fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    /// How an answer prints an amount that was sent so.
    fn printed(value: &Value<'_>) -> Result<String, Why> {
        amount(value).map(|amount| amount.fixed(two_places()))
    }

    proptest! {
        #[test]
        fn an_amount_of_two_places_is_read_and_printed_as_it_is(cents in 0u64..10u64.pow(17), places in 0usize..=2) {
            let text = format!("{}.{:02}", cents / 100, cents % 100);
            prop_assert_eq!(printed(&Value::Plain(text.as_str().into())), Ok(text.clone()));
            // Zeros at the end may be left out, and may be more.
            let shorter = format!("{}.{:0places$}", cents / 100, 0);
            prop_assert_eq!(printed(&Value::Plain(shorter.into())), Ok(format!("{}.00", cents / 100)));
            let longer = format!("0{text}000");
            prop_assert_eq!(printed(&Value::Plain(longer.into())), Ok(text.clone()));
            // As a number it is the same, up to the digits that a float holds.
            let literal = printed(&Value::Literal(&text));
            let digits = cents.to_string().trim_end_matches('0').len();
            prop_assert_eq!(literal, if digits > FLOAT_DIGITS { Err(Why::Inexact) } else { Ok(text.clone()) });
        }

        #[test]
        fn a_number_that_a_float_made_of_an_amount_is_read_as_that_amount(cents in 0u32..) {
            let amount = format!("{}.{:02}", cents / 100, cents % 100);
            // A reader of JSON that keeps a float of it prints, as JavaScript and Python do, the float's shortest text.
            let text = serde_json::from_str::<serde_json::Value>(&amount).unwrap().to_string();
            prop_assert_eq!(printed(&Value::Literal(&text)), Ok(amount));
        }

        #[test]
        fn an_amount_with_more_places_or_below_zero_is_refused(whole in 0u64..10u64.pow(12), places in "[0-9]{2,5}[1-9]") {
            let text = format!("{whole}.{places}");
            prop_assert_eq!(printed(&Value::Literal(&text)), Err(Why::Decimals));
            prop_assert_eq!(printed(&Value::Plain(text.as_str().into())), Err(Why::Decimals));
            let negative = format!("-{text}");
            prop_assert_eq!(printed(&Value::Literal(&negative)), Err(Why::Negative));
        }

        #[test]
        fn any_text_is_an_amount_of_two_places_or_refused(text in "[0-9.eE+-]{0,24}|.{0,24}") {
            for value in [Value::Plain(text.as_str().into()), Value::Literal(&text)] {
                let Ok(printed) = printed(&value) else { continue };
                // Whoever is told of an amount reads the same one that we read.
                let value = text.trim_start_matches('-').trim_start_matches('0').trim_end_matches('.');
                let expected = printed.trim_start_matches('0').trim_end_matches('.');
                let cut = |text: &str| match text.split_once('.') {
                    Some((whole, places)) => format!("{whole}.{:0<2}", places.trim_end_matches('0')),
                    None => format!("{text}.00"),
                };
                prop_assert_eq!(cut(value), cut(expected));
            }
        }
    }
}
