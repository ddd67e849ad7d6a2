//! The ledger on DynamoDB: this file and its parts alone know tables, item layouts, expressions and what refusals mean.
//!
//! Coins move in one way: [`Store::post`], one `TransactWriteItems` that puts the entry on condition that its key is
//! new and changes the account in the same act. Entries are never updated and never deleted. There is no state "in
//! progress", no lock and no check before the write: the database settles every race.

mod cases; // the cases
mod holds; // the queue of held coins
mod items; // how rows are laid out
mod rounds; // the players' parts in rounds
#[cfg(feature = "operator")]
mod read; // what people read: histories, days, whole tables
mod settings; // the versions of the settings

use std::fmt;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{
    AttributeValue, CancellationReason, ConditionCheck, Delete, Put, ReturnValuesOnConditionCheckFailure,
    TransactWriteItem, Update,
};
use tokio::time::Instant;

use crate::aws::chain;
use crate::id::{Currency, TransId, UserId};
use crate::ledger::{Account, Closing, Entry, Guard, Outcome, Posting, Refusal, RoundStep, Status, Turn, judge};
use crate::money::Amount;
use crate::tally;

use cases::{CLOSE, IS_OPEN, close_names, close_values};
use items::{
    Attributes, account_from, account_key, case_item, day_names, entry_from, entry_item, hold_item, hold_key, integer,
    number, round_from, round_key, string, time,
};

pub use cases::{Closes, Opened};
pub use holds::{Cursor, DuePage};
pub use items::{SHARDS, shard};
#[cfg(feature = "operator")]
pub use read::{DayShard, Page, Pages, Pick};
pub use settings::PutSettings;

/// First and longest pause, in microseconds, before a posting that met contention is tried again; the real pause is a
/// random part of it.
const PAUSE_MIN_MICROS: u64 = 20_000;
const PAUSE_MAX_MICROS: u64 = 400_000;

/// The names of the tables.
#[derive(Debug, Clone)]
pub struct Tables {
    /// The entries.
    pub transactions: String,
    /// The balances.
    pub accounts: String,
    /// The held coins.
    pub holds: String,
    /// The players' parts in the rounds of games.
    pub rounds: String,
    /// The cases.
    pub cases: String,
    /// The versions of the settings.
    pub settings: String,
}

/// The ledger.
#[derive(Debug, Clone)]
pub struct Store {
    client: Client,
    tables: Tables,
}

/// Why the ledger could not be asked. Nothing is half done, and asking again is always safe.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Contention, a stalled connection or an outage lasted longer than the time there was.
    #[error("{step} of {subject}: no answer from DynamoDB within the time budget")]
    OutOfTime { step: Step, subject: String },
    /// DynamoDB refused, or could not be reached: the problem says which.
    #[error("{step} of {subject}: {problem}")]
    Failed { step: Step, subject: String, problem: String },
}

/// What was being done when the ledger could not be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A posting's transaction.
    Post,
    /// The entries of one conversation.
    ReadConversation,
    /// One user's balance.
    ReadBalance,
    /// The players' parts in one round.
    FinishRound,
    /// The same and its entries, for a person.
    ReadRound,
    OpenCase,
    CloseCase,
    ReadCases,
    /// What is due in the queue of holds.
    ReadHolds,
    ReadSettings,
    PutSettings,
    /// A user's entries.
    ReadHistory,
    /// A part of a network's day.
    ReadDay,
    /// All rows of this kind.
    ReadTable(&'static str),
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Step::Post => "posting",
            Step::ReadConversation => "reading the entries",
            Step::ReadBalance => "reading the balance",
            Step::FinishRound => "finishing the round",
            Step::ReadRound => "reading the round",
            Step::OpenCase => "opening the case",
            Step::CloseCase => "closing the case",
            Step::ReadCases => "reading the cases",
            Step::ReadHolds => "reading the due holds",
            Step::ReadSettings => "reading the settings",
            Step::PutSettings => "putting the settings",
            Step::ReadHistory => "reading the history",
            Step::ReadDay => "reading the day",
            Step::ReadTable(rows) => return write!(f, "reading all {rows}"),
        })
    }
}

/// A step on a subject with its deadline, for whatever goes wrong in it.
struct Asking<'a> {
    step: Step,
    subject: &'a str,
    deadline: Instant,
}

impl Asking<'_> {
    /// Waits for a request no longer than the deadline; `Ok(Err(_))` is DynamoDB's or the way's own refusal.
    async fn send<T, E, R>(
        &self,
        request: impl Future<Output = Result<T, SdkError<E, R>>>,
    ) -> Result<Result<T, SdkError<E, R>>, StoreError> {
        tokio::time::timeout_at(self.deadline, request).await.map_err(|_| self.out_of_time())
    }

    fn out_of_time(&self) -> StoreError {
        StoreError::OutOfTime { step: self.step, subject: self.subject.to_owned() }
    }

    fn failed(&self, problem: impl fmt::Display) -> StoreError {
        StoreError::Failed { step: self.step, subject: self.subject.to_owned(), problem: problem.to_string() }
    }

    fn sdk<E, R>(&self, error: &SdkError<E, R>) -> StoreError
    where
        E: ProvideErrorMetadata + std::error::Error + 'static,
        R: fmt::Debug,
    {
        match error {
            SdkError::TimeoutError(_) => self.out_of_time(),
            SdkError::ServiceError(service) => {
                let meta = service.err().meta();
                self.failed(format_args!(
                    "{}: {}",
                    meta.code().unwrap_or("unnamed error"),
                    meta.message().unwrap_or("no message")
                ))
            }
            other => self.failed(chain(other)),
        }
    }
}

/// The pauses of something that met contention and is tried again: each a random part of one that doubles.
struct Backoff {
    longest_micros: u64,
}

impl Default for Backoff {
    fn default() -> Backoff {
        Backoff { longest_micros: PAUSE_MIN_MICROS }
    }
}

impl Backoff {
    /// Waits, unless the deadline comes first.
    async fn pause(&mut self, asking: &Asking<'_>) -> Result<(), StoreError> {
        let wake = Instant::now() + Duration::from_micros(fastrand::u64(0..=self.longest_micros));
        if wake >= asking.deadline {
            return Err(asking.out_of_time());
        }
        tokio::time::sleep_until(wake).await;
        tally::retry();
        self.longest_micros = (self.longest_micros * 2).min(PAUSE_MAX_MICROS);
        Ok(())
    }
}

impl Store {
    /// The ledger in these tables.
    pub fn new(client: Client, tables: Tables) -> Store {
        Store { client, tables }
    }

    /// Posts: one transaction, exactly once, whatever repeats and races.
    ///
    /// # Errors
    ///
    /// [`StoreError`]: whether the posting happened is then unknown, and posting it again settles that.
    pub async fn post(&self, posting: &Posting, deadline: Instant) -> Result<Outcome, StoreError> {
        let asking = Asking { step: Step::Post, subject: posting.entry.trans_id.as_str(), deadline };
        let (parts, actions): (Vec<_>, Vec<_>) =
            self.actions(posting).map_err(|problem| asking.failed(problem))?.into_iter().unzip();
        let mut backoff = Backoff::default();
        loop {
            // Each request gets a fresh client token from the SDK: one made of the key would turn a duplicate into a
            // success.
            let request = self.client.transact_write_items().set_transact_items(Some(actions.clone()));
            let error = match asking.send(request.send()).await? {
                Ok(_) => return Ok(Outcome::Posted),
                Err(error) => error,
            };
            match Refused::of(&error) {
                Refused::Cancelled(reasons) => match verdict(posting, &parts, reasons) {
                    Ok(Some(outcome)) => return Ok(outcome),
                    Ok(None) => {}
                    Err(problem) => return Err(asking.failed(problem)),
                },
                Refused::InProgress => {}
                Refused::Otherwise => return Err(asking.sdk(&error)),
            }
            backoff.pause(&asking).await?;
        }
    }

    /// Every entry of a conversation, as it stands at this moment.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when DynamoDB does not answer, refuses, or holds an entry that does not read.
    pub async fn conversation(&self, trans_id: &TransId, deadline: Instant) -> Result<Vec<Entry>, StoreError> {
        let asking = Asking { step: Step::ReadConversation, subject: trans_id.as_str(), deadline };
        let request = self.conversation_query(trans_id.as_str()).consistent_read(true).send();
        let output = asking.send(request).await?.map_err(|error| asking.sdk(&error))?;
        // An entry of another status is another contract's, or the app's own: it is no part of this conversation.
        let ours =
            output.items().iter().filter(|item| Attributes(item).optional("status").and_then(Status::stored).is_some());
        ours.map(|item| entry_from(item).map_err(|problem| asking.failed(problem))).collect()
    }

    /// A user's account; `None` where there is none yet.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when DynamoDB does not answer, refuses, or holds an account that does not read.
    pub async fn account(
        &self,
        user: &UserId,
        currency: &Currency,
        deadline: Instant,
    ) -> Result<Option<Account>, StoreError> {
        let asking = Asking { step: Step::ReadBalance, subject: user.as_str(), deadline };
        let request = self.client.get_item().table_name(&self.tables.accounts).consistent_read(true);
        let request = request.set_key(Some(account_key(user, currency))).send();
        let output = asking.send(request).await?.map_err(|error| asking.sdk(&error))?;
        output.item.map(|item| account_from(&item).map_err(|problem| asking.failed(problem))).transpose()
    }

    fn conversation_query(&self, trans_id: &str) -> aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder {
        let query = self.client.query().table_name(&self.tables.transactions);
        query.key_condition_expression("trans_id = :id").expression_attribute_values(":id", string(trans_id))
    }

    /// The actions of a posting, each with what it is for. The entry comes first: its reason decides.
    fn actions(&self, posting: &Posting) -> Result<Vec<(Part, TransactWriteItem)>, String> {
        let mut actions = vec![(Part::Entry, self.put_entry(&posting.entry))];
        actions.extend(posting.companions.iter().map(|companion| (Part::Companion, self.put_entry(companion))));
        for entry in posting.entries() {
            actions.extend(self.change_hold(entry).map(|action| (Part::Hold, action)));
        }
        actions.extend(self.change_account(&posting.entry, &posting.guards)?.map(|action| (Part::Account, action)));
        for companion in &posting.companions {
            actions.extend(self.change_account(companion, &[])?.map(|action| (Part::Account, action)));
        }
        actions.extend(posting.round.iter().map(|step| (Part::Round, self.turn(&posting.entry, step))));
        if let Some(user) = &posting.unknown {
            let check = ConditionCheck::builder().table_name(&self.tables.accounts);
            let check = check.set_key(Some(account_key(user, &posting.entry.currency)));
            let check = built(check.condition_expression("attribute_not_exists(user_id)").build());
            actions.push((Part::Account, TransactWriteItem::builder().condition_check(check).build()));
        }
        let put_case =
            |case| built(Put::builder().table_name(&self.tables.cases).set_item(Some(case_item(case))).build());
        let cases = posting.cases.iter().map(|case| TransactWriteItem::builder().put(put_case(case)).build());
        actions.extend(cases.map(|action| (Part::NewCase, action)));
        actions.extend(posting.closes.as_ref().map(|closing| (Part::Case, self.close_case(closing))));
        Ok(actions)
    }

    fn put_entry(&self, entry: &Entry) -> TransactWriteItem {
        let put = Put::builder()
            .table_name(&self.tables.transactions)
            .set_item(Some(entry_item(entry)))
            .condition_expression("attribute_not_exists(trans_id)")
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        TransactWriteItem::builder().put(built(put.build())).build()
    }

    /// The row of the queue that stands for the coins that the entry holds, or no longer holds.
    fn change_hold(&self, entry: &Entry) -> Option<TransactWriteItem> {
        let held = entry.held.filter(|held| !held.change.is_zero())?;
        let action = TransactWriteItem::builder();
        let table = &self.tables.holds;
        Some(if held.change > Amount::ZERO {
            action.put(built(Put::builder().table_name(table).set_item(Some(hold_item(entry, &held))).build())).build()
        } else {
            let key = hold_key(&entry.trans_id, held.release_at);
            // Whoever takes the row away has the coins; nobody else can have them too.
            let delete = Delete::builder().table_name(table).set_key(Some(key));
            let delete = delete.condition_expression("attribute_exists(due)");
            action.delete(built(delete.build())).build()
        })
    }

    /// The change of the balance that an entry stands for, under guards; none where it moves nothing under none.
    fn change_account(&self, entry: &Entry, guards: &[Guard]) -> Result<Option<TransactWriteItem>, String> {
        let available = entry.available().ok_or("an amount beyond what an account can hold")?;
        let held = entry.held_change();
        if available.is_zero() && held.is_zero() && guards.is_empty() {
            return Ok(None);
        }
        let mut update = Update::builder().table_name(&self.tables.accounts);
        update = update.set_key(Some(account_key(&entry.user, &entry.currency)));
        let (mut adds, mut sets, mut conditions) = (Vec::new(), Vec::new(), Vec::new());
        // A change of nothing is written too where nothing else is: a guard needs an update to stand on.
        if !available.is_zero() || held.is_zero() {
            adds.push("available :available");
            update = update.expression_attribute_values(":available", number(available));
        }
        if !held.is_zero() {
            adds.push("held :held");
            update = update.expression_attribute_values(":held", number(held));
        }
        for guard in guards {
            let (condition, value, day) = match guard {
                Guard::Known => ("attribute_exists(user_id)", None, None),
                Guard::Open => ("attribute_exists(user_id) AND attribute_not_exists(closed_at)", None, None),
                Guard::Closed => ("attribute_exists(closed_at)", None, None),
                Guard::NotOpen => ("(attribute_not_exists(user_id) OR attribute_exists(closed_at))", None, None),
                Guard::NothingHeld => {
                    update = update.expression_attribute_values(":nothing", number(Amount::ZERO));
                    ("(attribute_not_exists(held) OR held = :nothing)", None, None)
                }
                Guard::AtLeast(least) => ("available >= :bound", Some(*least), None),
                Guard::Below(limit) => ("(attribute_not_exists(available) OR available < :bound)", Some(*limit), None),
                Guard::Exactly(balance) if balance.is_zero() => {
                    ("(attribute_not_exists(available) OR available = :bound)", Some(*balance), None)
                }
                Guard::Exactly(balance) => ("available = :bound", Some(*balance), None),
                Guard::CreditedAtMost(day, most) => {
                    adds.push("#today :counted");
                    ("#on >= :day AND #today <= :bound", Some(*most), Some(*day))
                }
                Guard::CreditedMoreThan(day, most) => {
                    update = update.expression_attribute_values(":day", string(day.to_string()));
                    update = update.set_expression_attribute_names(Some(day_names(&entry.trans_id)));
                    ("#on >= :day AND #today > :bound", Some(*most), None)
                }
                Guard::FirstOf(day) => {
                    sets.extend(["#on = :day", "#today = :counted"]);
                    ("(attribute_not_exists(#on) OR #on < :day)", None, Some(*day))
                }
            };
            conditions.push(condition);
            if let Some(value) = value {
                update = update.expression_attribute_values(":bound", number(value));
            }
            if let Some(day) = day {
                update = update.expression_attribute_values(":day", string(day.to_string()));
                update = update.set_expression_attribute_names(Some(day_names(&entry.trans_id)));
                update = update.expression_attribute_values(":counted", number(entry.amount));
            }
        }
        if entry.status == Status::Close {
            sets.push("closed_at = :now");
            update = update.expression_attribute_values(":now", string(time(entry.received_at)));
        }
        let opens = if entry.status == Status::Open { " REMOVE closed_at" } else { "" };
        let sets = if sets.is_empty() { String::new() } else { format!("SET {} ", sets.join(", ")) };
        let expression = format!("{sets}ADD {}{opens}", adds.join(", "));
        let condition = Some(conditions.join(" AND ")).filter(|condition| !condition.is_empty());
        // What the account is in truth comes back with a condition that failed.
        let returned = condition.as_ref().map(|_| ReturnValuesOnConditionCheckFailure::AllOld);
        let update = update.update_expression(expression).set_condition_expression(condition);
        let update = update.set_return_values_on_condition_check_failure(returned);
        Ok(Some(TransactWriteItem::builder().update(built(update.build())).build()))
    }

    /// What a posting does to a player's part in a round, or asks of it.
    fn turn(&self, entry: &Entry, step: &RoundStep) -> TransactWriteItem {
        let key = round_key(&step.round, &step.user);
        let (expression, values): (_, &[_]) = match step.turn {
            Turn::Live => {
                let check = ConditionCheck::builder()
                    .table_name(&self.tables.rounds)
                    .set_key(Some(key))
                    .condition_expression("bets > :none AND attribute_not_exists(finished_at)")
                    .expression_attribute_values(":none", integer(0))
                    .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
                return TransactWriteItem::builder().condition_check(built(check.build())).build();
            }
            Turn::Bet => ("ADD bets :one", &[(":one", "1")]),
            Turn::RolledBack => ("ADD bets :less, rolled_back :one", &[(":less", "-1"), (":one", "1")]),
            Turn::Voided => ("ADD rolled_back :one", &[(":one", "1")]),
            // The first end is the end.
            Turn::Finished => ("SET finished_at = if_not_exists(finished_at, :now)", &[]),
        };
        let mut update = Update::builder().table_name(&self.tables.rounds).set_key(Some(key));
        update = update.update_expression(expression);
        for (name, value) in values {
            update = update.expression_attribute_values(*name, AttributeValue::N((*value).to_owned()));
        }
        if step.turn == Turn::Finished {
            update = update.expression_attribute_values(":now", string(time(entry.received_at)));
        }
        TransactWriteItem::builder().update(built(update.build())).build()
    }

    /// Closes a case that is open. What it was opened for stays in it.
    fn close_case(&self, closing: &Closing) -> TransactWriteItem {
        let update = Update::builder()
            .table_name(&self.tables.cases)
            .key("case_id", string(&closing.case_id))
            .update_expression(CLOSE)
            .condition_expression(IS_OPEN)
            .set_expression_attribute_names(Some(close_names()))
            .set_expression_attribute_values(Some(close_values(closing)));
        TransactWriteItem::builder().update(built(update.build())).build()
    }
}

/// What an action of a posting is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Entry,
    Companion,
    Hold,
    Account,
    Round,
    NewCase,
    Case,
}

/// What DynamoDB's refusal of a transaction is.
enum Refused<'a> {
    /// Cancelled, with one reason for each action.
    Cancelled(&'a [CancellationReason]),
    /// An earlier attempt of this request, whose reply was lost, is still at work.
    InProgress,
    Otherwise,
}

impl Refused<'_> {
    fn of<R>(error: &SdkError<TransactWriteItemsError, R>) -> Refused<'_> {
        match error.as_service_error() {
            Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) => {
                Refused::Cancelled(cancelled.cancellation_reasons())
            }
            Some(TransactWriteItemsError::TransactionInProgressException(_)) => Refused::InProgress,
            _ => Refused::Otherwise,
        }
    }
}

/// Reads the reasons of a cancelled posting, one for each of its parts in order.
///
/// A known key decides, whatever the other reasons say. While contention hides whether the key is known, nothing else
/// is believed. Only then does a failed condition beside the key refuse. Any other reason is a problem.
fn verdict(posting: &Posting, parts: &[Part], reasons: &[CancellationReason]) -> Result<Option<Outcome>, String> {
    enum Reason {
        None,
        Condition,
        Contention,
        Other,
    }
    let codes: Vec<&str> = reasons.iter().map(|reason| reason.code().unwrap_or("None")).collect();
    let of = |code: &str| match code {
        "None" => Reason::None,
        "ConditionalCheckFailed" => Reason::Condition,
        "TransactionConflict" | "ThrottlingError" | "ProvisionedThroughputExceeded" => Reason::Contention,
        _ => Reason::Other,
    };
    let problem = || format!("the transaction was cancelled for [{}]", codes.join(", "));

    let (Some(first), Some(code)) = (reasons.first(), codes.first()) else { return Err(problem()) };
    match of(code) {
        Reason::Condition => {
            let stored = first.item().ok_or("the stored entry did not come back with the failed condition")?;
            return Ok(Some(judge(entry_from(stored)?, &posting.entry)));
        }
        Reason::Other => return Err(problem()),
        Reason::None | Reason::Contention => {}
    }
    let rest = || codes.iter().skip(1).map(|code| of(code));
    if rest().any(|reason| matches!(reason, Reason::Other)) {
        return Err(problem());
    }
    if matches!(of(code), Reason::Contention) {
        return Ok(None);
    }
    if let Some(failed) = rest().position(|reason| matches!(reason, Reason::Condition)) {
        let item = reasons.get(failed + 1).and_then(CancellationReason::item);
        let refusal = match parts.get(failed + 1) {
            Some(Part::Companion) => Refusal::Companion,
            Some(Part::Hold) => Refusal::Hold,
            Some(Part::Account) => Refusal::Account(item.map(account_from).transpose()?),
            Some(Part::Round) => Refusal::Round(item.map(round_from).transpose()?.unwrap_or_default()),
            Some(Part::Case) => Refusal::Case,
            Some(Part::Entry | Part::NewCase) | None => return Err(problem()),
        };
        return Ok(Some(Outcome::Refused(refusal)));
    }
    if rest().any(|reason| matches!(reason, Reason::Contention)) { Ok(None) } else { Err(problem()) }
}

/// Every required member of an SDK type is set where it is built.
fn built<T, E: fmt::Debug>(result: Result<T, E>) -> T {
    result.expect("every required member is set")
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::ledger::Field;
    use crate::store::items::Item;
    use crate::store::items::tests::entry;

    /// A credit of 10 coins to user u.
    fn posting() -> Posting {
        Posting::of(entry())
    }

    fn reason(code: &str, item: Option<Item>) -> CancellationReason {
        CancellationReason::builder().code(code).set_item(item).build()
    }

    /// What a pair of reasons comes to: one for the entry, one for the account.
    fn of_pair(entry: &str, account: &str) -> &'static str {
        let posting = posting();
        let stored = (entry == "ConditionalCheckFailed").then(|| entry_item(&posting.entry));
        match verdict(&posting, &[Part::Entry, Part::Account], &[reason(entry, stored), reason(account, None)]) {
            Ok(Some(Outcome::Replayed(_))) => "replayed",
            Ok(Some(Outcome::Refused(Refusal::Account(None)))) => "refused",
            Ok(None) => "contention",
            Err(_) => "error",
            Ok(Some(other)) => panic!("{entry} and {account} came to {other:?}"),
        }
    }

    #[test]
    fn a_table_over_pairs_of_reasons() {
        let contention = ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"];
        let other = ["ValidationError", "ItemCollectionSizeLimitExceeded", "AccessDenied", "SomethingNew"];
        let all = || ["None", "ConditionalCheckFailed"].into_iter().chain(contention).chain(other);
        for entry in all() {
            for account in all() {
                let (any, none) = (|set: &[&str]| set.contains(&entry) || set.contains(&account), entry == "None");
                let expected = match () {
                    // A known key decides, whatever the other reasons say.
                    () if entry == "ConditionalCheckFailed" => "replayed",
                    () if any(&other) => "error",
                    // As long as contention hides whether the key is known, nothing else is believed.
                    () if contention.contains(&entry) => "contention",
                    () if none && account == "ConditionalCheckFailed" => "refused",
                    () if none && contention.contains(&account) => "contention",
                    // A cancelled transaction without a reason.
                    () => "error",
                };
                assert_eq!(of_pair(entry, account), expected, "[{entry}, {account}]");
            }
        }
    }

    #[test]
    fn a_known_key_with_another_user_is_a_conflict() {
        let posting = posting();
        let mut stored = posting.entry.clone();
        stored.user_received = Some(UserId::new("w").unwrap());
        let reasons = [reason("ConditionalCheckFailed", Some(entry_item(&stored))), reason("None", None)];
        assert_eq!(
            verdict(&posting, &[Part::Entry, Part::Account], &reasons),
            Ok(Some(Outcome::Conflict(stored, Field::User)))
        );
    }

    #[test]
    fn the_first_condition_beside_the_key_that_failed_says_what_is_refused() {
        let parts = [Part::Entry, Part::Companion, Part::Hold, Part::Account, Part::NewCase, Part::Case];
        let refused = |failed: usize| {
            let code = |place| if place == failed { "ConditionalCheckFailed" } else { "None" };
            let reasons: Vec<_> = (0..parts.len()).map(|place| reason(code(place), None)).collect();
            match verdict(&posting(), &parts, &reasons) {
                Ok(Some(Outcome::Refused(refusal))) => Some(refusal),
                _ => None,
            }
        };
        let refusals = [1, 2, 3, 4, 5].map(refused);
        let expected =
            [Some(Refusal::Companion), Some(Refusal::Hold), Some(Refusal::Account(None)), None, Some(Refusal::Case)];
        assert_eq!(refusals, expected, "a new case has no condition that could fail");
    }

    #[test]
    fn reasons_that_do_not_read_are_a_problem_and_never_an_outcome() {
        let posting = posting();
        let mut broken = entry_item(&posting.entry);
        broken.remove("amount");
        for reasons in [
            vec![],
            vec![reason("None", None), reason("None", None)],
            vec![reason("ConditionalCheckFailed", None), reason("None", None)],
            vec![reason("ConditionalCheckFailed", Some(broken)), reason("None", None)],
        ] {
            verdict(&posting, &[Part::Entry, Part::Account], &reasons).unwrap_err();
        }
    }
}
