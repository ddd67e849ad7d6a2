//! The books: what entries add up to, and where accounts and holds do not agree with them.
//!
//! Adds up every row that has an amount, a user and a currency, whoever posted it: a sum that leaves some out is none. Never
//! adds two currencies, never rounds, and never decides what a difference comes from.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

use jiff::Timestamp;
use jiff::civil::Date;

use crate::id::{Currency, Network, TransId, UserId};
use crate::ledger::{Account, Hold, OperationKind, Status};
use crate::money::Amount;

/// An entry as people read it, also one of another contract, of the app, or put by hand: only what moves money must read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// `<network>/<the network's id>`.
    pub trans_id: String,
    /// What it does to its conversation.
    pub status: String,
    /// Whose balance changed.
    pub user: UserId,
    /// The currency of that balance.
    pub currency: Currency,
    /// The signed change of the balance, available and held together.
    pub amount: Amount,
    /// The signed change of the held part of it.
    pub held: Amount,
    /// When held coins become available by themselves.
    pub release_at: Option<String>,
    /// What a reversal could not take back.
    pub absorbed: Amount,
    /// When it was planned, in UTC. Without it, it is in no history.
    pub received_at: Option<String>,
    /// The day that it counts to. Without it, it is in no day's sum.
    pub day: Option<Day>,
    /// Whether it is a placeholder for a credit that came, or will come, after its reversal.
    pub void: bool,
    /// The user that the caller named, where it is another one.
    pub user_received: Option<String>,
    /// The amount as it was sent.
    pub amount_received: Option<String>,
    /// What the network pays the app.
    pub payout_usd: Option<Amount>,
    /// The network's id of the offer.
    pub offer_id: Option<String>,
    /// The offer's name: a stranger's text.
    pub offer_name: Option<String>,
    /// The network's id of the goal.
    pub goal_id: Option<String>,
    /// The preset that the request was read by.
    pub preset: Option<String>,
    /// The caller's address.
    pub source_ip: Option<String>,
    /// A hash of the request.
    pub fingerprint: Option<String>,
    /// The person who decided it.
    pub by: Option<String>,
    /// Why that person did.
    pub reason: Option<String>,
    /// What a wallet was asked for, where that is what it records.
    pub operation: Option<Operation>,
}

/// What a wallet was asked for under one key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Operation {
    /// What was asked for.
    pub kind: String,
    /// The amount that was asked for, whatever moved.
    pub requested: Option<Amount>,
    /// The round of the game: `<network>/<the network's id>`.
    pub round_id: Option<String>,
    /// The caller's id of the game.
    pub game_id: Option<String>,
    /// Of a rollback the operation that it takes back, and of the mark on an operation the rollback.
    pub counterpart: Option<String>,
    /// The HTTP status of the answer that every repeat hears.
    pub answer_status: Option<String>,
}

impl Operation {
    /// What it is counted as, where it changed a balance by `amount`.
    fn counts_as(&self, amount: Amount) -> Kind {
        // What was refused is no bet and no win.
        let granted = self.answer_status.as_deref() == Some("200");
        match OperationKind::stored(&self.kind) {
            Some(OperationKind::Bet) if granted => Kind::Bet,
            Some(OperationKind::Win) if granted => Kind::Win,
            Some(OperationKind::BetRollback) if !amount.is_zero() => Kind::BetRollback,
            Some(OperationKind::WinRollback) if !amount.is_zero() => Kind::WinRollback,
            Some(
                OperationKind::Bet
                | OperationKind::Win
                | OperationKind::BetRollback
                | OperationKind::WinRollback
                | OperationKind::RoundFinish,
            ) => Kind::Unmoved,
            None => Kind::Other,
        }
    }
}

/// A network's day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Day {
    /// The network.
    pub network: Network,
    /// The day in UTC.
    pub date: Date,
}

/// An account as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Whose it is.
    pub user: UserId,
    /// Its currency.
    pub currency: Currency,
    /// Its parts.
    pub account: Account,
}

/// A row that does not read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unreadable {
    /// Which one: as much of its key as there is.
    pub row: String,
    /// What is wrong with it.
    pub problem: String,
}

/// A sum left the range of amounts: some row holds nonsense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a sum of amounts is beyond 10^20: an entry holds an amount that cannot be")]
pub struct OutOfRange;

/// What an entry is counted as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Coins given for an offer.
    Credit,
    /// A placeholder, which moves nothing.
    Void,
    /// A credit taken back.
    Reversal,
    /// Held coins made available.
    Release,
    /// Coins moved out of suspense to their user: one entry takes them, one gives them.
    Assignment,
    /// A correction by a person.
    Adjustment,
    /// A stake that a wallet took.
    Bet,
    /// A win that it paid.
    Win,
    /// A stake given back.
    BetRollback,
    /// A win taken back.
    WinRollback,
    /// A player's own money in.
    Deposit,
    /// A player's own money out.
    Withdrawal,
    /// What is recorded and moves nothing: a refused bet, a rollback of nothing, the mark on what was rolled back, the end of a
    /// round, an account opened or closed.
    Unmoved,
    /// The app's own, or put by hand.
    Other,
}

impl Row {
    /// What it is counted as.
    pub fn kind(&self) -> Kind {
        match Status::stored(&self.status) {
            Some(Status::Credit) if self.void => Kind::Void,
            Some(Status::Credit) => Kind::Credit,
            Some(Status::Reversal) => Kind::Reversal,
            Some(Status::Release) => Kind::Release,
            Some(Status::Assign | Status::Clear) => Kind::Assignment,
            Some(Status::Adjust(_)) => Kind::Adjustment,
            Some(Status::Operation) => {
                self.operation.as_ref().map_or(Kind::Other, |operation| operation.counts_as(self.amount))
            }
            Some(Status::Rollback | Status::Open | Status::Close) => Kind::Unmoved,
            Some(Status::Deposit) => Kind::Deposit,
            Some(Status::Withdrawal) => Kind::Withdrawal,
            None => Kind::Other,
        }
    }

    /// Every attribute by its name, in the order of an export. What it does not have is `None`.
    pub fn fields(&self) -> [(&'static str, Option<String>); 29] {
        let network = self.trans_id.split_once('/').map(|(network, _)| network.to_owned());
        let operation = self.operation.as_ref();
        [
            ("network", network),
            ("day", self.day.as_ref().map(|day| day.date.to_string())),
            ("received_at", self.received_at.clone()),
            ("trans_id", Some(self.trans_id.clone())),
            ("status", Some(self.status.clone())),
            ("user_id", Some(self.user.to_string())),
            ("currency", Some(self.currency.to_string())),
            ("amount", Some(self.amount.to_string())),
            ("held", Some(self.held.to_string())),
            ("release_at", self.release_at.clone()),
            ("absorbed", Some(self.absorbed.to_string())),
            ("void", Some(self.void.to_string())),
            ("user_received", self.user_received.clone()),
            ("amount_received", self.amount_received.clone()),
            ("payout_usd", self.payout_usd.map(|payout| payout.to_string())),
            ("offer_id", self.offer_id.clone()),
            ("offer_name", self.offer_name.clone()),
            ("goal_id", self.goal_id.clone()),
            ("preset", self.preset.clone()),
            ("source_ip", self.source_ip.clone()),
            ("fingerprint", self.fingerprint.clone()),
            ("by", self.by.clone()),
            ("reason", self.reason.clone()),
            ("kind", operation.map(|operation| operation.kind.clone())),
            ("requested", operation.and_then(|operation| Some(operation.requested?.to_string()))),
            ("round_id", operation.and_then(|operation| operation.round_id.clone())),
            ("game_id", operation.and_then(|operation| operation.game_id.clone())),
            ("counterpart", operation.and_then(|operation| operation.counterpart.clone())),
            ("answer_status", operation.and_then(|operation| operation.answer_status.clone())),
        ]
    }

    /// What it changes the two parts of the balance by.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`].
    pub fn change(&self) -> Result<Account, OutOfRange> {
        let available = self.amount.checked_add(self.held.negated()).ok_or(OutOfRange)?;
        Ok(Account { available, held: self.held, closed: false })
    }
}

/// How many there are, and what they add up to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Total {
    /// How many.
    pub count: u64,
    /// What they add up to, with its sign.
    pub amount: Amount,
}

impl Total {
    fn add(&mut self, amount: Amount) -> Result<(), OutOfRange> {
        self.merge(Total { count: 1, amount })
    }

    fn merge(&mut self, other: Total) -> Result<(), OutOfRange> {
        self.count += other.count;
        self.amount = self.amount.checked_add(other.amount).ok_or(OutOfRange)?;
        Ok(())
    }
}

/// What entries of one currency add up to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sums {
    /// Credits, also those that are held or in suspense.
    pub credits: Total,
    /// Placeholders for credits that came after their reversal.
    pub voids: u64,
    /// Reversals; the amount is below zero.
    pub reversals: Total,
    /// What came into the hold.
    pub held: Total,
    /// What left the hold to its user.
    pub released: Total,
    /// What reversals could not take back: a loss that moves no balance.
    pub absorbed: Total,
    /// Moves out of suspense: what one entry takes another one gives.
    pub assignments: Total,
    /// Corrections by a person.
    pub adjustments: Total,
    /// Stakes that a wallet took; the amount is below zero.
    pub bets: Total,
    /// Wins that it paid.
    pub wins: Total,
    /// Stakes given back.
    pub bet_rollbacks: Total,
    /// Wins taken back; the amount is below zero.
    pub win_rollbacks: Total,
    /// Players' own money in.
    pub deposits: Total,
    /// Players' own money out; the amount is below zero.
    pub withdrawals: Total,
    /// Entries of the app, and those put by hand.
    pub other: Total,
    /// All entries: the change of all balances together.
    pub net: Total,
    /// What the network pays for the credits that say it, in US dollars.
    pub payout_usd: Total,
}

impl Sums {
    /// Adds an entry.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`].
    pub fn add(&mut self, row: &Row) -> Result<(), OutOfRange> {
        match row.kind() {
            Kind::Credit => {
                self.credits.add(row.amount)?;
                if let Some(payout) = row.payout_usd {
                    self.payout_usd.add(payout)?;
                }
            }
            Kind::Void => self.voids += 1,
            Kind::Reversal => self.reversals.add(row.amount)?,
            Kind::Release => self.released.add(row.held.negated())?,
            Kind::Assignment => self.assignments.add(row.amount)?,
            Kind::Adjustment => self.adjustments.add(row.amount)?,
            Kind::Bet => self.bets.add(row.amount)?,
            Kind::Win => self.wins.add(row.amount)?,
            Kind::BetRollback => self.bet_rollbacks.add(row.amount)?,
            Kind::WinRollback => self.win_rollbacks.add(row.amount)?,
            Kind::Deposit => self.deposits.add(row.amount)?,
            Kind::Withdrawal => self.withdrawals.add(row.amount)?,
            Kind::Unmoved => {}
            Kind::Other => self.other.add(row.amount)?,
        }
        if row.held > Amount::ZERO {
            self.held.add(row.held)?;
        }
        if !row.absorbed.is_zero() {
            self.absorbed.add(row.absorbed)?;
        }
        self.net.add(row.amount)
    }

    /// Adds the sums of other entries.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`].
    pub fn merge(&mut self, other: &Sums) -> Result<(), OutOfRange> {
        self.voids += other.voids;
        self.credits.merge(other.credits)?;
        self.reversals.merge(other.reversals)?;
        self.held.merge(other.held)?;
        self.released.merge(other.released)?;
        self.absorbed.merge(other.absorbed)?;
        self.assignments.merge(other.assignments)?;
        self.adjustments.merge(other.adjustments)?;
        self.bets.merge(other.bets)?;
        self.wins.merge(other.wins)?;
        self.bet_rollbacks.merge(other.bet_rollbacks)?;
        self.win_rollbacks.merge(other.win_rollbacks)?;
        self.deposits.merge(other.deposits)?;
        self.withdrawals.merge(other.withdrawals)?;
        self.other.merge(other.other)?;
        self.net.merge(other.net)?;
        self.payout_usd.merge(other.payout_usd)
    }

    /// Whether offers are among them.
    pub fn has_offers(&self) -> bool {
        self.credits.count + self.reversals.count + self.voids > 0
    }

    /// Reversals for a thousand credits, rounded down; `None` without credits.
    pub fn reversed_permille(&self) -> Option<u64> {
        self.reversals.count.saturating_mul(1000).checked_div(self.credits.count)
    }
}

/// Whose entries are summed together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Line {
    /// The network, as text: the sums of a deployment are in its order.
    pub network: String,
    /// The currency; two are never added.
    pub currency: String,
}

/// The books of some days.
#[derive(Debug, Clone, Default)]
pub struct Books {
    /// By network and currency.
    pub lines: BTreeMap<Line, Sums>,
    /// The same by day.
    pub days: BTreeMap<(Date, Line), Sums>,
    /// The users of each line, without suspense.
    users: HashMap<Line, HashSet<UserId>>,
    /// Credits and reversals by offer.
    offers: HashMap<(Line, Offer), Sums>,
    /// Rows that could not be added up.
    pub unreadable: Vec<Unreadable>,
}

/// An offer, as far as its network named it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Offer {
    /// Its id, or nothing.
    pub id: String,
    /// Its name, or nothing: a stranger's text.
    pub name: String,
}

impl Books {
    /// Adds a row of some day; one without a day has no place here.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`].
    pub fn add(&mut self, row: Result<Row, Unreadable>) -> Result<(), OutOfRange> {
        let row = match row {
            Ok(row) => row,
            Err(unreadable) => {
                self.unreadable.push(unreadable);
                return Ok(());
            }
        };
        let Some(day) = &row.day else { return Ok(()) };
        let line = Line { network: day.network.to_string(), currency: row.currency.to_string() };
        self.lines.entry(line.clone()).or_default().add(&row)?;
        self.days.entry((day.date, line.clone())).or_default().add(&row)?;
        if matches!(row.kind(), Kind::Credit | Kind::Reversal) && (row.offer_id.is_some() || row.offer_name.is_some()) {
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            let offer = Offer { id: text(&row.offer_id), name: text(&row.offer_name) };
            self.offers.entry((line.clone(), offer)).or_default().add(&row)?;
        }
        if !row.user.as_str().starts_with("suspense/") {
            self.users.entry(line).or_default().insert(row.user);
        }
        Ok(())
    }

    /// How many users a line has.
    pub fn users(&self, line: &Line) -> usize {
        self.users.get(line).map_or(0, HashSet::len)
    }

    /// How many users all lines of a currency have together, each counted once.
    pub fn users_of(&self, currency: &str) -> usize {
        let lines = self.users.iter().filter(|(line, _)| line.currency == currency);
        lines.flat_map(|(_, users)| users).collect::<HashSet<_>>().len()
    }

    /// What all lines of each currency add up to.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`].
    pub fn totals(&self) -> Result<BTreeMap<&str, Sums>, OutOfRange> {
        let mut totals: BTreeMap<_, Sums> = BTreeMap::new();
        for (line, sums) in &self.lines {
            totals.entry(line.currency.as_str()).or_default().merge(sums)?;
        }
        Ok(totals)
    }

    /// The offers with the most credited coins, at most `most` of them.
    pub fn top_offers(&self, most: usize) -> Vec<(&Line, &Offer, &Sums)> {
        let mut offers: Vec<_> = self.offers.iter().map(|((line, offer), sums)| (line, offer, sums)).collect();
        offers.sort_by_key(|(line, offer, sums)| (std::cmp::Reverse(sums.credits.amount), *line, *offer));
        offers.truncate(most);
        offers
    }
}

/// Whose money it is.
pub type AccountKey = (UserId, Currency);

/// What every account and every hold must be, from all entries; it grows with the accounts and the open holds, not
/// with the entries.
#[derive(Debug, Default)]
pub struct Expected {
    accounts: HashMap<AccountKey, Account>,
    /// By conversation: what its entries hold. Only what is held and not yet left is kept.
    holds: HashMap<String, HeldBy>,
    /// The part of the accounts that comes from entries without a time, which no history has.
    timeless: HashMap<AccountKey, Account>,
    /// One half of what was taken back, until the other one comes.
    taken_back: HashMap<TakenBack, Half>,
    /// How many entries were added.
    pub entries: u64,
    /// How many of them are in no day's sum, and an example.
    pub without_day: Option<(u64, String)>,
    /// How many of them are in no user's history, and an example.
    pub without_time: Option<(u64, String)>,
}

/// An operation of a wallet and a rollback of it. What takes it back and the mark that it was taken back were one posting.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct TakenBack {
    original: String,
    rollback: String,
}

/// One of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Half {
    /// The mark.
    Mark,
    /// A rollback that moved coins.
    Moved,
    /// One that moved none: it may be the second of its original, which has no mark of its own.
    Unmoved,
}

/// Coins that a conversation's entries hold.
#[derive(Debug, Clone, PartialEq, Eq)]
struct HeldBy {
    user: UserId,
    currency: Currency,
    amount: Amount,
    release_at: Option<String>,
}

impl HeldBy {
    fn release_at(&self) -> Option<Timestamp> {
        self.release_at.as_ref().and_then(|text| text.parse().ok())
    }
}

/// A time of release in words.
pub fn when(release_at: Option<Timestamp>) -> String {
    release_at.map_or_else(|| "when a person decides".to_owned(), |at| format!("{at:.0}"))
}

impl Expected {
    /// Adds an entry.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`].
    pub fn add(&mut self, row: &Row) -> Result<(), OutOfRange> {
        self.entries += 1;
        let key = || format!("{} {}", row.trans_id, row.status);
        // The index by day has only what has both.
        if row.day.is_none() || row.received_at.is_none() {
            self.without_day.get_or_insert_with(|| (0, key())).0 += 1;
        }
        let change = row.change()?;
        let account = (row.user.clone(), row.currency.clone());
        if row.received_at.is_none() {
            self.without_time.get_or_insert_with(|| (0, key())).0 += 1;
            add_to(self.timeless.entry(account.clone()).or_default(), change)?;
        }
        add_to(self.accounts.entry(account).or_default(), change)?;
        self.pair(row);
        if row.held.is_zero() {
            return Ok(());
        }
        // What holds and what ends the hold may come in either order; together they are nothing.
        let hold = self.holds.entry(row.trans_id.clone()).or_insert_with(|| HeldBy {
            user: row.user.clone(),
            currency: row.currency.clone(),
            amount: Amount::ZERO,
            release_at: None,
        });
        hold.amount = hold.amount.checked_add(row.held).ok_or(OutOfRange)?;
        if row.held > Amount::ZERO {
            hold.release_at.clone_from(&row.release_at);
        }
        if hold.amount.is_zero() {
            self.holds.remove(&row.trans_id);
        }
        Ok(())
    }

    /// Puts a mark and its rollback together, in whichever order they come; together they are nothing.
    fn pair(&mut self, row: &Row) {
        let Some(counterpart) = row.operation.as_ref().and_then(|operation| operation.counterpart.clone()) else {
            return;
        };
        let this = row.trans_id.clone();
        let (pair, half) = match Status::stored(&row.status) {
            Some(Status::Rollback) => (TakenBack { original: this, rollback: counterpart }, Half::Mark),
            Some(Status::Operation) => {
                let half = if row.amount.is_zero() { Half::Unmoved } else { Half::Moved };
                (TakenBack { original: counterpart, rollback: this }, half)
            }
            _ => return,
        };
        if self.taken_back.remove(&pair).is_none() {
            self.taken_back.insert(pair, half);
        }
    }

    /// What is left once every entry was added: marks without their rollback, and rollbacks without their mark.
    pub fn without_other_half(&mut self) -> Vec<Difference> {
        let left = self.taken_back.drain().filter_map(|(TakenBack { original, rollback }, half)| {
            let wrong = match half {
                Half::Mark => RollbackWrong::NoRollback,
                Half::Moved => RollbackWrong::NoMark,
                Half::Unmoved => return None,
            };
            Some(Difference::Rollback { original, rollback, wrong })
        });
        left.collect()
    }

    /// What the entries of a conversation hold now; `None` where that is nothing.
    pub fn held(&self, trans_id: &TransId) -> Option<Hold> {
        let held = self.holds.get(trans_id.as_str()).filter(|held| held.amount > Amount::ZERO)?;
        Some(Hold {
            trans_id: trans_id.clone(),
            user: held.user.clone(),
            currency: held.currency.clone(),
            amount: held.amount,
            release_at: held.release_at(),
        })
    }

    /// What an account's entries add up to; `None` where there are none.
    pub fn sum(&self, account: &AccountKey) -> Option<Account> {
        self.accounts.get(account).copied()
    }

    /// The part of an account that comes from entries without a time.
    pub fn timeless(&self, account: &AccountKey) -> Option<Account> {
        self.timeless.get(account).copied()
    }

    /// Compares an account with its entries, which are then done with.
    pub fn account(&mut self, stored: &Stored) -> Option<Difference> {
        let key = (stored.user.clone(), stored.currency.clone());
        let entries = self.accounts.remove(&key);
        let wrong = account_differs(Some(stored.account), entries)?;
        Some(Difference::Account { user: key.0, currency: key.1, wrong })
    }

    /// What is left once every account was compared: entries without an account.
    pub fn without_account(&mut self) -> Vec<Difference> {
        let left = self.accounts.drain();
        let differ = left.filter_map(|((user, currency), entries)| {
            let wrong = account_differs(None, Some(entries))?;
            Some(Difference::Account { user, currency, wrong })
        });
        differ.collect()
    }

    /// Compares a row of the queue of holds with the entries, which are then done with.
    pub fn hold(&mut self, row: &Hold) -> Option<Difference> {
        let entries = self.holds.remove(row.trans_id.as_str());
        let wrong = match &entries {
            None => HoldWrong::NothingHeld,
            Some(held) if held.user != row.user || held.currency != row.currency || held.amount != row.amount => {
                HoldWrong::Coins(format!("{} {} of user {}", held.amount, held.currency, held.user))
            }
            Some(held) if held.release_at() != row.release_at => HoldWrong::Due(held.release_at()),
            Some(_) => return None,
        };
        Some(Difference::Hold {
            trans_id: row.trans_id.to_string(),
            user: row.user.clone(),
            currency: row.currency.clone(),
            amount: row.amount,
            release_at: row.release_at,
            wrong,
        })
    }

    /// What is left once every row was compared: held coins that no row of the queue stands for.
    pub fn without_hold(&mut self) -> Vec<Difference> {
        let left = self.holds.drain();
        let missing = left.map(|(trans_id, held)| Difference::Hold {
            trans_id,
            release_at: held.release_at(),
            user: held.user,
            currency: held.currency,
            amount: held.amount,
            wrong: HoldWrong::NoRow,
        });
        missing.collect()
    }
}

/// Adds a change to an account.
///
/// # Errors
///
/// [`OutOfRange`].
pub fn add_to(account: &mut Account, change: Account) -> Result<(), OutOfRange> {
    account.available = account.available.checked_add(change.available).ok_or(OutOfRange)?;
    account.held = account.held.checked_add(change.held).ok_or(OutOfRange)?;
    Ok(())
}

/// How an account differs from what its entries add up to; `None` where it does not.
pub fn account_differs(stored: Option<Account>, entries: Option<Account>) -> Option<AccountWrong> {
    let zero = Account::default();
    // Whether it is closed is no money.
    let stored = stored.map(|account| Account { closed: false, ..account });
    match (stored, entries) {
        (None, None) => None,
        (Some(stored), Some(sum)) if stored == sum => {
            (stored.held < Amount::ZERO).then_some(AccountWrong::HeldBelowZero(stored))
        }
        (None, Some(sum)) if sum == zero => None,
        (Some(stored), None) if stored == zero => Some(AccountWrong::Empty),
        (stored, entries) => Some(AccountWrong::Money { stored, entries }),
    }
}

/// Something that does not agree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Difference {
    /// An account is not what its entries add up to.
    Account { user: UserId, currency: Currency, wrong: AccountWrong },
    /// The queue of holds is not what the entries hold.
    Hold {
        trans_id: String,
        user: UserId,
        currency: Currency,
        amount: Amount,
        /// Where its row is, or would be.
        release_at: Option<Timestamp>,
        wrong: HoldWrong,
    },
    /// An operation of a wallet and the rollback that takes it back do not name each other.
    Rollback { original: String, rollback: String, wrong: RollbackWrong },
    /// A row does not read, so that nothing can be said of what it belongs to.
    Unreadable(Unreadable),
}

/// What is wrong with an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccountWrong {
    /// Its money differs.
    Money {
        /// What is stored; `None` where there is no account.
        stored: Option<Account>,
        /// What its entries add up to; `None` where there are none.
        entries: Option<Account>,
    },
    /// It agrees, but more left the hold than came into it.
    HeldBelowZero(Account),
    /// There is an account with nothing in it, and no entry.
    Empty,
    /// It changed during every reading, so that it could not be compared.
    Busy,
}

/// What is wrong with a hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HoldWrong {
    /// The row stands for coins that no entry holds.
    NothingHeld,
    /// The row says other coins than the entries, which say these.
    Coins(String),
    /// The row is due at another time than its credit says, which is this.
    Due(Option<Timestamp>),
    /// Entries hold coins, and no row stands for them.
    NoRow,
}

/// What is wrong with a rollback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RollbackWrong {
    /// It moved coins, and its original has no mark that names it: another one could move them again.
    NoMark,
    /// Its original has the mark, and there is no such rollback: none will ever take the original back.
    NoRollback,
}

/// How bad a difference is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Money differs, or will.
    Error,
    /// The money agrees; somebody should look all the same.
    Warning,
}

impl Severity {
    /// The severity in a word.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }
}

impl Difference {
    /// How bad it is.
    pub fn severity(&self) -> Severity {
        match self {
            Difference::Account { wrong: AccountWrong::Empty | AccountWrong::Busy, .. }
            | Difference::Hold { wrong: HoldWrong::Due(_), .. } => Severity::Warning,
            Difference::Account { wrong: AccountWrong::Money { .. } | AccountWrong::HeldBelowZero(_), .. }
            | Difference::Hold { wrong: HoldWrong::NothingHeld | HoldWrong::Coins(_) | HoldWrong::NoRow, .. }
            | Difference::Rollback { .. }
            | Difference::Unreadable(_) => Severity::Error,
        }
    }

    /// What it is about.
    pub fn subject(&self) -> String {
        match self {
            Difference::Account { user, currency, .. } => format!("account {user} {currency}"),
            Difference::Hold { trans_id, .. } => format!("hold {trans_id}"),
            Difference::Rollback { rollback, .. } => format!("rollback {rollback}"),
            Difference::Unreadable(unreadable) => unreadable.row.clone(),
        }
    }
}

/// What is wrong, as a sentence.
impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = |account: &Account| format!("available {}, held {}", account.available, account.held);
        match self {
            Difference::Account { wrong, .. } => match wrong {
                AccountWrong::Money { stored: Some(stored), entries: Some(sum) } => {
                    write!(f, "stored: {}; summed entries: {}", parts(stored), parts(sum))
                }
                AccountWrong::Money { stored: Some(stored), entries: None } => {
                    write!(f, "stored: {}; no entries", parts(stored))
                }
                AccountWrong::Money { stored: None, entries } => {
                    write!(f, "no account; summed entries: {}", parts(&entries.unwrap_or_default()))
                }
                AccountWrong::HeldBelowZero(account) => {
                    write!(f, "stored and summed entries: {}; more left the hold than came into it", parts(account))
                }
                AccountWrong::Empty => f.write_str("an account with nothing in it, and no entry"),
                AccountWrong::Busy => {
                    f.write_str("changed during every reading, so that it was not compared: verify it again")
                }
            },
            Difference::Hold { user, currency, amount, wrong, .. } => match wrong {
                HoldWrong::NothingHeld => {
                    write!(f, "the queue holds {amount} {currency} of user {user}; no entry holds them")
                }
                HoldWrong::Coins(held) => {
                    write!(f, "the queue holds {amount} {currency} of user {user}; the entries hold {held}")
                }
                HoldWrong::Due(at) => {
                    write!(f, "the queue and the credit say other times of release; the credit says {}", when(*at))
                }
                HoldWrong::NoRow => write!(
                    f,
                    "entries hold {amount} {currency} of user {user}; no row of the queue, so that they are never released"
                ),
            },
            Difference::Rollback { original, wrong, .. } => match wrong {
                RollbackWrong::NoMark => {
                    write!(f, "took {original} back, which has no mark of it: another rollback would do it again")
                }
                RollbackWrong::NoRollback => {
                    write!(f, "{original} is marked as taken back by it, and there is no such rollback")
                }
            },
            Difference::Unreadable(unreadable) => write!(f, "does not read: {}", unreadable.problem),
        }
    }
}

#[cfg(test)]
mod tests;
