//! The ledger on DynamoDB: the only file that knows item layouts, expressions and what DynamoDB's refusals mean.
//!
//! Coins move in one way: [`Store::post`], one `TransactWriteItems` that puts the entry on condition that its key is
//! new and changes the account in the same act. Entries are never updated and never deleted. There is no state "in
//! progress", no lock and no check before the write: the database settles every race.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{
    AttributeValue, CancellationReason, Put, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update,
};
use jiff::Timestamp;
use tokio::time::Instant;

use crate::aws::chain;
use crate::id::{Currency, Network, TransId, UserId};
use crate::ledger::{Case, Entry, Evidence, Guard, Offer, Outcome, Posting, Refusal, Status, judge};
use crate::money::Amount;
use crate::tally;

type Item = HashMap<String, AttributeValue>;

/// How many partitions of the index `by_day` a network's day is spread over: one hot index partition would throttle the
/// table behind it.
pub const DAY_SHARDS: u32 = 8;

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
    /// The cases.
    pub cases: String,
}

/// The ledger.
#[derive(Debug, Clone)]
pub struct Store {
    client: Client,
    tables: Tables,
}

/// Whether a case was opened now or is open, or closed, already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened {
    /// It was not there.
    New,
    /// It was there, open or closed, and stays as it was.
    Known,
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
    OpenCase,
    ReadCases,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Step::Post => "posting",
            Step::ReadConversation => "reading the entries",
            Step::ReadBalance => "reading the balance",
            Step::OpenCase => "opening the case",
            Step::ReadCases => "reading the cases",
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

impl Store {
    /// The ledger in these tables.
    pub fn new(client: Client, tables: Tables) -> Store {
        Store { client, tables }
    }

    /// Opens the connection before the first call needs it, with a read that costs half a read unit.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when DynamoDB does not answer or refuses: the first call may fare better.
    pub async fn warm_up(&self, deadline: Instant) -> Result<(), StoreError> {
        let asking = Asking { step: Step::ReadConversation, subject: "nothing, to warm up", deadline };
        let request = self.conversation_query("warm-up").consistent_read(false).limit(1).send();
        asking.send(request).await?.map(drop).map_err(|error| asking.sdk(&error))
    }

    /// Posts: one transaction, exactly once, whatever repeats and races.
    ///
    /// # Errors
    ///
    /// [`StoreError`]: whether the posting happened is then unknown, and posting it again settles that.
    pub async fn post(&self, posting: &Posting, deadline: Instant) -> Result<Outcome, StoreError> {
        debug_assert!(posting.companion.as_ref().is_none_or(|companion| companion.amount.is_zero()));
        debug_assert!(!posting.entry.amount.is_zero() || posting.guard == Guard::None, "a guard needs a change");
        let asking = Asking { step: Step::Post, subject: posting.entry.trans_id.as_str(), deadline };
        let actions = self.actions(posting);
        let mut pause = PAUSE_MIN_MICROS;
        loop {
            // Each request gets a fresh client token from the SDK: one made of the key would turn a duplicate into a
            // success.
            let request = self.client.transact_write_items().set_transact_items(Some(actions.clone()));
            let error = match asking.send(request.send()).await? {
                Ok(_) => return Ok(Outcome::Posted),
                Err(error) => error,
            };
            match Refused::of(&error) {
                Refused::Cancelled(reasons) => match verdict(posting, reasons) {
                    Ok(Some(outcome)) => return Ok(outcome),
                    Ok(None) => {}
                    Err(problem) => return Err(asking.failed(problem)),
                },
                Refused::InProgress => {}
                Refused::Otherwise => return Err(asking.sdk(&error)),
            }
            let wake = Instant::now() + Duration::from_micros(fastrand::u64(0..=pause));
            if wake >= deadline {
                return Err(asking.out_of_time());
            }
            tokio::time::sleep_until(wake).await;
            tally::retry();
            pause = (pause * 2).min(PAUSE_MAX_MICROS);
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

    /// The available balance of a user; zero where there is no account.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when DynamoDB does not answer, refuses, or holds an account that does not read.
    pub async fn balance(&self, user: &UserId, currency: &Currency, deadline: Instant) -> Result<Amount, StoreError> {
        let asking = Asking { step: Step::ReadBalance, subject: user.as_str(), deadline };
        let request = self.client.get_item().table_name(&self.tables.accounts).consistent_read(true);
        let request = request.set_key(Some(account_key(user, currency))).send();
        let output = asking.send(request).await?.map_err(|error| asking.sdk(&error))?;
        match output.item {
            None => Ok(Amount::ZERO),
            Some(item) => Attributes(&item).amount("available").map_err(|problem| asking.failed(problem)),
        }
    }

    /// Opens a case that belongs to no transaction, once: what is known, open or closed, stays as it is.
    ///
    /// # Errors
    ///
    /// [`StoreError`]: whether the case is open is then unknown, and opening it again settles that.
    pub async fn open(&self, case: &Case, deadline: Instant) -> Result<Opened, StoreError> {
        let id = case.id();
        let asking = Asking { step: Step::OpenCase, subject: &id, deadline };
        let request = self.client.put_item().table_name(&self.tables.cases).set_item(Some(case_item(case)));
        let request = request.condition_expression("attribute_not_exists(case_id)").send();
        match asking.send(request).await? {
            Ok(_) => Ok(Opened::New),
            Err(SdkError::ServiceError(service)) if service.err().is_conditional_check_failed_exception() => {
                Ok(Opened::Known)
            }
            Err(error) => Err(asking.sdk(&error)),
        }
    }

    /// The cases about a conversation, open or closed: the detail of each by its id. Reads the whole table of cases: for a
    /// person, never within a call.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when DynamoDB does not answer, refuses, or holds a case that does not read.
    pub async fn cases(&self, trans_id: &TransId, deadline: Instant) -> Result<BTreeMap<String, String>, StoreError> {
        let asking = Asking { step: Step::ReadCases, subject: trans_id.as_str(), deadline };
        let scan = self.client.scan().table_name(&self.tables.cases).consistent_read(true);
        let scan =
            scan.filter_expression("trans_id = :id").expression_attribute_values(":id", string(trans_id.as_str()));
        let items = scan.into_paginator().items().send().try_collect();
        let items = asking.send(items).await?.map_err(|error| asking.sdk(&error))?;
        let text = |item, name| Attributes(item).required(name, |text| Some(text.to_owned()));
        items
            .iter()
            .map(|item| Ok((text(item, "case_id")?, text(item, "detail")?)))
            .collect::<Result<_, _>>()
            .map_err(|problem: String| asking.failed(problem))
    }

    fn conversation_query(&self, trans_id: &str) -> aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder {
        let query = self.client.query().table_name(&self.tables.transactions);
        query.key_condition_expression("trans_id = :id").expression_attribute_values(":id", string(trans_id))
    }

    /// The actions of a posting, in the order in which [`verdict`] reads the reasons of a cancelled transaction: the
    /// entry, its companion, the account, the cases.
    fn actions(&self, posting: &Posting) -> Vec<TransactWriteItem> {
        let mut actions = vec![self.put_entry(&posting.entry)];
        actions.extend(posting.companion.as_ref().map(|companion| self.put_entry(companion)));
        actions.extend(self.change_account(posting));
        let put_case =
            |case| built(Put::builder().table_name(&self.tables.cases).set_item(Some(case_item(case))).build());
        actions.extend(posting.cases.iter().map(|case| TransactWriteItem::builder().put(put_case(case)).build()));
        actions
    }

    fn put_entry(&self, entry: &Entry) -> TransactWriteItem {
        let put = Put::builder()
            .table_name(&self.tables.transactions)
            .set_item(Some(entry_item(entry)))
            .condition_expression("attribute_not_exists(trans_id)")
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        TransactWriteItem::builder().put(built(put.build())).build()
    }

    /// The change of the balance that the entry stands for, under the posting's guard; none where it moves nothing.
    fn change_account(&self, posting: &Posting) -> Option<TransactWriteItem> {
        let entry = &posting.entry;
        if entry.amount.is_zero() {
            return None;
        }
        let update = Update::builder()
            .table_name(&self.tables.accounts)
            .set_key(Some(account_key(&entry.user, &entry.currency)))
            .update_expression("ADD available :amount")
            .expression_attribute_values(":amount", number(entry.amount));
        let update = match posting.guard {
            Guard::None => update,
            Guard::AtLeast(least) => {
                update.condition_expression("available >= :least").expression_attribute_values(":least", number(least))
            }
            Guard::Below(limit) => update
                .condition_expression("attribute_not_exists(available) OR available < :limit")
                .expression_attribute_values(":limit", number(limit)),
        };
        Some(TransactWriteItem::builder().update(built(update.build())).build())
    }
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

/// Reads the reasons of a cancelled posting, one for each of its actions in order.
///
/// A known key decides, whatever the other reasons say. While contention hides whether the key is known, nothing else
/// is believed. Only then does a failed condition beside the key refuse. Any other reason is a problem.
fn verdict(posting: &Posting, reasons: &[CancellationReason]) -> Result<Option<Outcome>, String> {
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
        let refusal = if failed == 0 && posting.companion.is_some() { Refusal::Companion } else { Refusal::Balance };
        return Ok(Some(Outcome::Refused(refusal)));
    }
    if rest().any(|reason| matches!(reason, Reason::Contention)) { Ok(None) } else { Err(problem()) }
}

/// Every required member of an SDK type is set where it is built.
fn built<T, E: fmt::Debug>(result: Result<T, E>) -> T {
    result.expect("every required member is set")
}

fn string(text: impl Into<String>) -> AttributeValue {
    AttributeValue::S(text.into())
}

fn number(amount: Amount) -> AttributeValue {
    AttributeValue::N(amount.to_string())
}

/// ISO 8601 in UTC with milliseconds: always the same length, so that it sorts as text.
fn time(at: Timestamp) -> String {
    format!("{at:.3}")
}

fn account_key(user: &UserId, currency: &Currency) -> Item {
    HashMap::from([("user_id".into(), string(user.as_str())), ("currency".into(), string(currency.as_str()))])
}

/// The partition of the index `by_day` that an entry is in: `<network>#<day>#<shard>`.
fn day_shard(entry: &Entry) -> String {
    // FNV-1a: a few instructions that spread ids evenly.
    let hash = entry
        .trans_id
        .as_str()
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let day = &time(entry.received_at)[..10];
    format!("{}#{day}#{}", entry.trans_id.network(), hash % DAY_SHARDS)
}

fn entry_item(entry: &Entry) -> Item {
    let required = [
        ("trans_id", string(entry.trans_id.as_str())),
        ("status", string(entry.status.as_str())),
        ("network", string(entry.trans_id.network())),
        ("user_id", string(entry.user.as_str())),
        ("currency", string(entry.currency.as_str())),
        ("amount", number(entry.amount)),
        ("received_at", string(time(entry.received_at))),
        ("day", string(day_shard(entry))),
    ];
    let known = |text: &String| Some(string(text)).filter(|_| !text.is_empty());
    let optional = [
        ("preset", entry.evidence.preset.as_ref().map(|preset| string(preset.as_str()))),
        ("amount_received", known(&entry.evidence.amount_received)),
        ("fingerprint", known(&entry.evidence.fingerprint)),
        ("source_ip", known(&entry.evidence.source_ip)),
        ("user_received", entry.user_received.as_ref().map(|user| string(user.as_str()))),
        ("void", entry.void.then_some(AttributeValue::Bool(true))),
        ("offer_id", entry.offer.offer_id.as_ref().map(string)),
        ("offer_name", entry.offer.offer_name.as_ref().map(string)),
        ("goal_id", entry.offer.goal_id.as_ref().map(string)),
        ("payout_usd", entry.offer.payout_usd.map(number)),
    ];
    let optional = optional.into_iter().filter_map(|(name, value)| Some((name, value?)));
    required.into_iter().chain(optional).map(|(name, value)| (name.to_owned(), value)).collect()
}

fn case_item(case: &Case) -> Item {
    let attributes = [
        ("case_id", string(case.id())),
        ("kind", string(case.kind.as_str())),
        ("state", string("open")),
        ("trans_id", string(case.trans_id.as_str())),
        ("status", string(case.status.as_str())),
        ("network", string(case.trans_id.network())),
        ("user_id", string(case.user.as_str())),
        ("currency", string(case.currency.as_str())),
        ("amount", number(case.amount)),
        ("detail", string(&case.detail)),
        ("opened_at", string(time(case.opened_at))),
    ];
    attributes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Reads a stored entry, or says which attribute does not read.
///
/// Only what a judgement needs must be there: a person may have put the entry by hand, without the evidence of a request.
fn entry_from(item: &Item) -> Result<Entry, String> {
    let attributes = Attributes(item);
    let owned = |name| attributes.optional(name).map(String::from);
    Ok(Entry {
        trans_id: attributes.required("trans_id", |text| TransId::new(text).ok())?,
        status: attributes.required("status", Status::stored)?,
        user: attributes.required("user_id", UserId::stored)?,
        currency: attributes.required("currency", |text| Currency::new(text).ok())?,
        amount: attributes.amount("amount")?,
        received_at: attributes.optional("received_at").and_then(|text| text.parse().ok()).unwrap_or_default(),
        void: matches!(item.get("void"), Some(AttributeValue::Bool(true))),
        user_received: attributes.optional("user_received").and_then(UserId::stored),
        evidence: Evidence {
            preset: attributes.optional("preset").and_then(|text| Network::new(text).ok()),
            amount_received: owned("amount_received").unwrap_or_default(),
            source_ip: owned("source_ip").unwrap_or_default(),
            fingerprint: owned("fingerprint").unwrap_or_default(),
        },
        offer: Offer {
            offer_id: owned("offer_id"),
            offer_name: owned("offer_name"),
            goal_id: owned("goal_id"),
            payout_usd: attributes.optional("payout_usd").and_then(Amount::stored),
        },
    })
}

/// A stored item, read by name.
struct Attributes<'a>(&'a Item);

impl<'a> Attributes<'a> {
    fn optional(&self, name: &str) -> Option<&'a str> {
        match self.0.get(name)? {
            AttributeValue::S(text) | AttributeValue::N(text) => Some(text),
            _ => None,
        }
    }

    fn required<T>(&self, name: &str, read: impl FnOnce(&'a str) -> Option<T>) -> Result<T, String> {
        self.optional(name)
            .and_then(read)
            .ok_or_else(|| format!("the stored attribute `{name}` is missing or does not read"))
    }

    fn amount(&self, name: &str) -> Result<Amount, String> {
        self.required(name, Amount::stored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::ledger::Field;

    /// A credit of 10 coins to user u, and what its transaction needs.
    fn posting() -> Posting {
        let entry = Entry {
            trans_id: TransId::new("net/1").unwrap(),
            status: Status::Credit,
            user: UserId::new("u").unwrap(),
            currency: Currency::new("coins").unwrap(),
            amount: Amount::stored("10").unwrap(),
            received_at: "2026-11-30T23:59:59.999Z".parse().unwrap(),
            void: false,
            user_received: Some(UserId::new("v").unwrap()),
            evidence: Evidence {
                preset: Network::new("net").ok(),
                amount_received: "10.00".into(),
                source_ip: "2001:db8::1".into(),
                fingerprint: "ab".into(),
            },
            offer: Offer {
                offer_id: Some("7".into()),
                offer_name: Some("Quest".into()),
                goal_id: Some("3".into()),
                payout_usd: Amount::stored("0.7"),
            },
        };
        Posting { entry, companion: None, guard: Guard::None, cases: Vec::new() }
    }

    fn reason(code: &str, item: Option<Item>) -> CancellationReason {
        CancellationReason::builder().code(code).set_item(item).build()
    }

    #[test]
    fn an_entry_reads_back_as_it_was_written() {
        let mut entry = posting().entry;
        assert_eq!(entry_from(&entry_item(&entry)), Ok(entry.clone()));
        entry = Entry { void: true, user_received: None, offer: Offer::default(), ..entry };
        entry.evidence = Evidence::default();
        assert_eq!(entry_from(&entry_item(&entry)), Ok(entry));
    }

    #[test]
    fn the_largest_possible_entry_is_no_more_than_1_kb() {
        let long = |byte: &str, length: usize| byte.repeat(length);
        let network = Network::new(&long("n", 24)).unwrap();
        let amount = format!("-{}.{}", long("9", 15), long("9", 8));
        let entry = Entry {
            trans_id: TransId::of(&network, &long("i", TransId::RECEIVED_MAX)).unwrap(),
            status: Status::Reversal,
            user: UserId::new(&long("u", 128)).unwrap(),
            currency: Currency::new(&long("c", 16)).unwrap(),
            amount: Amount::stored(&amount).unwrap(),
            received_at: Timestamp::UNIX_EPOCH,
            // A placeholder names no other user; both together cannot be.
            void: false,
            user_received: UserId::new(&long("v", 128)).ok(),
            evidence: Evidence {
                preset: Some(network),
                amount_received: long("9", crate::money::RECEIVED_LENGTH_MAX),
                source_ip: long("f", crate::ledger::SOURCE_IP_MAX),
                fingerprint: long("f", 32),
            },
            offer: Offer {
                offer_id: Some(long("o", crate::ledger::OFFER_ID_MAX)),
                offer_name: Some(long("o", crate::ledger::OFFER_NAME_MAX)),
                goal_id: Some(long("g", crate::ledger::OFFER_ID_MAX)),
                payout_usd: Amount::stored(&amount),
            },
        };
        // As DynamoDB counts: UTF-8 bytes; for a number a byte for two digits, one more, and one for a minus.
        let size = |(name, value): (String, AttributeValue)| match value {
            AttributeValue::S(text) => name.len() + text.len(),
            AttributeValue::N(text) => name.len() + text.len().div_ceil(2) + 2,
            _ => name.len() + 1,
        };
        let total: usize = entry_item(&entry).into_iter().map(size).sum();
        assert!(total <= 1024, "{total} bytes");
    }

    #[test]
    fn a_day_is_that_of_utc_and_its_shards_are_all_used() {
        let mut entry = posting().entry;
        let mut shards: Vec<_> = (0..200)
            .map(|number| {
                entry.trans_id = TransId::new(&format!("net/{number}")).unwrap();
                day_shard(&entry)
            })
            .collect();
        shards.sort();
        shards.dedup();
        let expected: Vec<_> = (0..DAY_SHARDS).map(|shard| format!("net#2026-11-30#{shard}")).collect();
        assert_eq!(shards, expected);
    }

    /// What a pair of reasons comes to: one for the entry, one for the account.
    fn of_pair(entry: &str, account: &str) -> &'static str {
        let posting = posting();
        let stored = (entry == "ConditionalCheckFailed").then(|| entry_item(&posting.entry));
        match verdict(&posting, &[reason(entry, stored), reason(account, None)]) {
            Ok(Some(Outcome::Replayed(_))) => "replayed",
            Ok(Some(Outcome::Refused(Refusal::Balance))) => "refused",
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
        assert_eq!(verdict(&posting, &reasons), Ok(Some(Outcome::Conflict(stored, Field::User))));
    }

    #[test]
    fn a_companion_that_exists_refuses() {
        let mut posting = posting();
        posting.companion = Some(Entry { status: Status::Reversal, ..posting.entry.clone() });
        let reasons = [reason("None", None), reason("ConditionalCheckFailed", None), reason("None", None)];
        assert_eq!(verdict(&posting, &reasons), Ok(Some(Outcome::Refused(Refusal::Companion))));
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
            verdict(&posting, &reasons).unwrap_err();
        }
    }
}
