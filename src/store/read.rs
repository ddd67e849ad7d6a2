//! What people read: histories, days, and whole tables, in pages and in bounded memory.
//!
//! Reads entries as they are, also those of other contracts, of the app, and put by hand: a sum that leaves some out is none.
//! Only reads, and never within a call: what is asked here may take minutes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::civil::Date;
use jiff::{Timestamp, ToSpan};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::holds::Cursor;
use super::items::{
    Attributes, Item, SHARDS, account_from, account_key, hold_from, hold_key, round_from, round_key, round_of,
    round_part, string, time,
};
use super::{Asking, Step, Store, StoreError};
use crate::books::{Day, Operation, Row, Stored, Unreadable};
use crate::cashier;
use crate::id::{Currency, Network, RoundId, TransId, UserId};
use crate::ledger::{Account, Hold, Round, Status};
use crate::money::Amount;
use aws_sdk_dynamodb::types::AttributeValue;

/// The longest that one page may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// How many pages are asked for at once: enough to keep two cores busy with reading them.
const WIDTH: usize = 32;

/// How many pages wait for whoever works them; more are not asked for.
const WAITING: usize = 4;

/// Segments that a scan is cut into.
const SEGMENTS: i32 = 16;

/// A page of rows. A row that does not read is what is wrong with it: the others must not be hidden by it.
#[derive(Debug)]
pub struct Page<T> {
    /// The rows in the order in which DynamoDB gave them.
    pub rows: Vec<Result<T, Unreadable>>,
    /// Where the next page begins; `None` after the last one.
    pub next: Option<Cursor>,
}

/// Pages from many places at once, in no order, read only a little ahead of whoever works them. Dropped, it stops.
#[derive(Debug)]
pub struct Pages<T> {
    pages: mpsc::Receiver<Result<Vec<Result<T, Unreadable>>, StoreError>>,
    /// Those who ask; they end with this.
    askers: JoinSet<()>,
}

impl<T> Pages<T> {
    /// The next page that is there; `None` after the last one.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when DynamoDB does not answer or refuses; what was read so far is then not all.
    pub async fn next(&mut self) -> Result<Option<Vec<Result<T, Unreadable>>>, StoreError> {
        if let Some(page) = self.pages.recv().await {
            return page.map(Some);
        }
        // All askers are done. One that panicked has not read all, and that must not look like the end.
        while let Some(done) = self.askers.join_next().await {
            if let Err(error) = done
                && let Ok(panic) = error.try_into_panic()
            {
                std::panic::resume_unwind(panic);
            }
        }
        Ok(None)
    }
}

/// One of the parts that a network's day is spread over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DayShard {
    /// The network.
    pub network: Network,
    /// The day in UTC.
    pub day: Date,
    /// The shard, below [`SHARDS`].
    pub shard: u32,
}

impl DayShard {
    /// Every part of a network's day.
    pub fn of(network: &Network, day: Date) -> impl Iterator<Item = DayShard> + use<> {
        let network = network.clone();
        (0..SHARDS).map(move |shard| DayShard { network: network.clone(), day, shard })
    }

    /// The partition of the index.
    fn key(&self) -> String {
        format!("{}#{}#{}", self.network, self.day, self.shard)
    }
}

/// Which of a user's entries are looked for.
#[derive(Debug, Clone, Copy)]
pub enum Pick<'a> {
    /// The cashier's.
    Cashier,
    /// The rollbacks of this operation, which was recorded at this time.
    RollbacksOf(&'a TransId, Timestamp),
}

/// A table that is read whole.
#[derive(Debug, Clone, Copy)]
enum Table {
    Transactions,
    Accounts,
    Holds,
}

impl Store {
    /// A page of a user's entries, newest first, at most `limit` of them. Entries without `received_at` are not among them,
    /// nor may be what was posted in the last second: the index follows the table.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when DynamoDB does not answer or refuses.
    pub async fn history(&self, user: &UserId, limit: i32, from: Option<Cursor>) -> Result<Page<Row>, StoreError> {
        let asking = asking(Step::ReadHistory, user.as_str());
        let query = self.client.query().table_name(&self.tables.transactions).index_name("by_user").limit(limit);
        let query = query.key_condition_expression("user_id = :user").scan_index_forward(false);
        let query = query.expression_attribute_values(":user", string(user.as_str()));
        let request = query.set_exclusive_start_key(from.map(|Cursor(key)| key)).send();
        let output = asking.send(request).await?.map_err(|error| asking.sdk(&error))?;
        Ok(Page { rows: rows(output.items()), next: Cursor::of(output.last_evaluated_key) })
    }

    /// Those of a user's entries that are looked for, newest first, at most `most` of them. Reads the history from its newest
    /// entry on until it has these.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when DynamoDB does not answer or refuses.
    pub async fn picked(
        &self,
        user: &UserId,
        pick: Pick<'_>,
        most: usize,
    ) -> Result<Vec<Result<Row, Unreadable>>, StoreError> {
        let asking = asking(Step::ReadHistory, user.as_str());
        let query = self.client.query().table_name(&self.tables.transactions).index_name("by_user");
        let query = query.scan_index_forward(false).expression_attribute_values(":user", string(user.as_str()));
        let query = match pick {
            Pick::Cashier => query
                .key_condition_expression("user_id = :user")
                .filter_expression("#network = :cashier")
                .expression_attribute_names("#network", "network")
                .expression_attribute_values(":cashier", string(cashier::NETWORK)),
            Pick::RollbacksOf(original, at) => {
                // Two processes need not agree about the time to the millisecond.
                let from = at.checked_sub(1.minute()).unwrap_or(at);
                query
                    .key_condition_expression("user_id = :user AND received_at >= :from")
                    .filter_expression("counterpart = :original")
                    .expression_attribute_values(":from", string(time(from)))
                    .expression_attribute_values(":original", string(original.as_str()))
            }
        };
        let mut pages = query.into_paginator().send();
        let mut found = Vec::new();
        while found.len() < most {
            // Each page has its own time: a history may have many.
            let page = tokio::time::timeout(PATIENCE, pages.next()).await.map_err(|_| asking.out_of_time())?;
            let Some(page) = page else { break };
            found.extend(rows(page.map_err(|error| asking.sdk(&error))?.items()));
        }
        found.truncate(most);
        Ok(found)
    }

    /// A user's entries that no index has, since they are without `received_at`. Reads the whole table.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when DynamoDB does not answer or refuses.
    pub fn unindexed(&self, user: &UserId) -> Pages<Row> {
        self.scan(Table::Transactions, Some(user.clone()), rows)
    }

    /// Every row of a conversation, of whatever contract, as it stands at this moment.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when DynamoDB does not answer or refuses.
    pub async fn rows(&self, trans_id: &TransId) -> Result<Vec<Result<Row, Unreadable>>, StoreError> {
        let asking = asking(Step::ReadConversation, trans_id.as_str());
        let request = self.conversation_query(trans_id.as_str()).consistent_read(true);
        let items = asking.send(request.into_paginator().items().send().try_collect()).await?;
        Ok(rows(&items.map_err(|error| asking.sdk(&error))?))
    }

    /// A user's accounts, as they stand at this moment.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when DynamoDB does not answer or refuses.
    pub async fn accounts(&self, user: &UserId) -> Result<Vec<Result<Stored, Unreadable>>, StoreError> {
        let asking = asking(Step::ReadBalance, user.as_str());
        let query = self.client.query().table_name(&self.tables.accounts).consistent_read(true);
        let query = query.key_condition_expression("user_id = :user");
        let query = query.expression_attribute_values(":user", string(user.as_str()));
        let items = asking.send(query.into_paginator().items().send().try_collect()).await?;
        Ok(items.map_err(|error| asking.sdk(&error))?.iter().map(stored).collect())
    }

    /// One account as it stands at this moment; `None` where there is none.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when DynamoDB does not answer, refuses, or holds an account that does not read.
    pub async fn account_now(&self, user: &UserId, currency: &Currency) -> Result<Option<Account>, StoreError> {
        let asking = asking(Step::ReadBalance, user.as_str());
        let request = self.client.get_item().table_name(&self.tables.accounts).consistent_read(true);
        let output = asking.send(request.set_key(Some(account_key(user, currency))).send()).await?;
        let item = output.map_err(|error| asking.sdk(&error))?.item;
        item.map(|item| account_from(&item).map_err(|problem| asking.failed(problem))).transpose()
    }

    /// The row that stands for held coins in the queue, as it stands at this moment, where it would be.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when DynamoDB does not answer, refuses, or holds a row that does not read.
    pub async fn hold_row(&self, hold: &Hold) -> Result<Option<Hold>, StoreError> {
        let asking = asking(Step::ReadHolds, hold.trans_id.as_str());
        let request = self.client.get_item().table_name(&self.tables.holds).consistent_read(true);
        let output = asking.send(request.set_key(Some(hold_key(&hold.trans_id, hold.release_at))).send()).await?;
        let item = output.map_err(|error| asking.sdk(&error))?.item;
        item.map(|item| hold_from(&item).map_err(|problem| asking.failed(problem))).transpose()
    }

    /// Every entry that moves or could move money, of whatever contract.
    pub fn every_entry(&self) -> Pages<Row> {
        self.scan(Table::Transactions, None, rows)
    }

    /// Every account.
    pub fn every_account(&self) -> Pages<Stored> {
        self.scan(Table::Accounts, None, |items| items.iter().map(stored).collect())
    }

    /// Every row of the queue of holds.
    pub fn every_hold(&self) -> Pages<Hold> {
        self.scan(Table::Holds, None, |items| items.iter().map(held).collect())
    }

    /// The entries of these parts of days, in no order.
    pub fn days(&self, shards: impl IntoIterator<Item = DayShard>) -> Pages<Row> {
        let store = self.clone();
        read(shards, move |shard: Arc<DayShard>, from| {
            let store = store.clone();
            async move { store.day(&shard, from).await }
        })
    }

    /// The players' parts in a round, in no order.
    pub fn round(&self, round: &RoundId) -> Pages<(UserId, Round)> {
        let (store, round) = (self.clone(), round.clone());
        read(0..SHARDS, move |shard: Arc<u32>, from| {
            let (store, round) = (store.clone(), round.clone());
            async move {
                let asking = asking(Step::ReadRound, round.as_str());
                let query = store.client.query().table_name(&store.tables.rounds).consistent_read(true);
                let query = query.key_condition_expression("round_id = :round");
                let query = query.expression_attribute_values(":round", string(round_part(&round, *shard)));
                let request = query.set_exclusive_start_key(from.map(|Cursor(key)| key)).send();
                let output = asking.send(request).await?.map_err(|error| asking.sdk(&error))?;
                let rows = output.items().iter().map(player_in_round).collect();
                Ok(Page { rows, next: Cursor::of(output.last_evaluated_key) })
            }
        })
    }

    /// One player's part in a round; `None` where nothing is known of it.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when DynamoDB does not answer, refuses, or holds a part that does not read.
    pub async fn part_in(&self, round: &RoundId, user: &UserId) -> Result<Option<Round>, StoreError> {
        let asking = asking(Step::ReadRound, round.as_str());
        let request = self.client.get_item().table_name(&self.tables.rounds).consistent_read(true);
        let output = asking.send(request.set_key(Some(round_key(round, user))).send()).await?;
        let item = output.map_err(|error| asking.sdk(&error))?.item;
        item.map(|item| round_from(&item).map_err(|problem| asking.failed(problem))).transpose()
    }

    /// Every entry of a round, in no order. What was posted in the last second may be missing: the index follows the table.
    pub fn round_entries(&self, round: &RoundId) -> Pages<Row> {
        let (store, round) = (self.clone(), round.clone());
        read(0..SHARDS, move |shard: Arc<u32>, from| {
            let (store, round) = (store.clone(), round.clone());
            async move {
                let asking = asking(Step::ReadRound, round.as_str());
                let query = store.client.query().table_name(&store.tables.transactions).index_name("by_round");
                let query = query.key_condition_expression("#round = :round");
                let query = query.expression_attribute_names("#round", "round");
                let query = query.expression_attribute_values(":round", string(round_part(&round, *shard)));
                let request = query.set_exclusive_start_key(from.map(|Cursor(key)| key)).send();
                let output = asking.send(request).await?.map_err(|error| asking.sdk(&error))?;
                Ok(Page { rows: rows(output.items()), next: Cursor::of(output.last_evaluated_key) })
            }
        })
    }

    /// A page of a part of a day, in the order of `received_at`.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when DynamoDB does not answer or refuses.
    pub async fn day(&self, shard: &DayShard, from: Option<Cursor>) -> Result<Page<Row>, StoreError> {
        let key = shard.key();
        let asking = asking(Step::ReadDay, &key);
        let query = self.client.query().table_name(&self.tables.transactions).index_name("by_day");
        let query = query.key_condition_expression("#day = :day").expression_attribute_names("#day", "day");
        let query = query.expression_attribute_values(":day", string(&key));
        let request = query.set_exclusive_start_key(from.map(|Cursor(key)| key)).send();
        let output = asking.send(request).await?.map_err(|error| asking.sdk(&error))?;
        Ok(Page { rows: rows(output.items()), next: Cursor::of(output.last_evaluated_key) })
    }

    /// A whole table in segments; of the entries only those of a user that no index has, where one is named.
    fn scan<T: Send + 'static>(
        &self,
        table: Table,
        unindexed_of: Option<UserId>,
        read_items: fn(&[Item]) -> Vec<Result<T, Unreadable>>,
    ) -> Pages<T> {
        let store = self.clone();
        read(0..SEGMENTS, move |segment: Arc<i32>, from| {
            let (store, user) = (store.clone(), unindexed_of.clone());
            async move {
                let (name, step) = match table {
                    Table::Transactions => (&store.tables.transactions, Step::ReadTable("entries")),
                    Table::Accounts => (&store.tables.accounts, Step::ReadTable("accounts")),
                    Table::Holds => (&store.tables.holds, Step::ReadTable("holds")),
                };
                let asking = asking(step, name);
                let mut scan = store.client.scan().table_name(name).segment(*segment).total_segments(SEGMENTS);
                if let Some(user) = user {
                    scan = scan.filter_expression("user_id = :user AND attribute_not_exists(received_at)");
                    scan = scan.expression_attribute_values(":user", string(user.as_str())).consistent_read(true);
                }
                let request = scan.set_exclusive_start_key(from.map(|Cursor(key)| key)).send();
                let output = asking.send(request).await?.map_err(|error| asking.sdk(&error))?;
                Ok(Page { rows: read_items(output.items()), next: Cursor::of(output.last_evaluated_key) })
            }
        })
    }
}

/// Reads every page of each place with [`WIDTH`] at a time.
fn read<P, T, F>(
    places: impl IntoIterator<Item = P>,
    page: impl Fn(Arc<P>, Option<Cursor>) -> F + Clone + Send + 'static,
) -> Pages<T>
where
    P: Send + Sync + 'static,
    T: Send + 'static,
    F: Future<Output = Result<Page<T>, StoreError>> + Send,
{
    let (sender, pages) = mpsc::channel(WAITING);
    let places: VecDeque<P> = places.into_iter().collect();
    let width = places.len().min(WIDTH);
    let places = Arc::new(Mutex::new(places));
    let mut askers = JoinSet::new();
    for _ in 0..width {
        let (sender, places, page) = (sender.clone(), places.clone(), page.clone());
        askers.spawn(async move {
            loop {
                // Nobody panics while the lock is held.
                let place = places.lock().ok().and_then(|mut places| places.pop_front());
                let Some(place) = place.map(Arc::new) else { return };
                let mut from = None;
                loop {
                    let (rows, next) = match page(place.clone(), from).await {
                        Ok(Page { rows, next }) => (Ok(rows), next),
                        Err(error) => (Err(error), None),
                    };
                    let failed = rows.is_err();
                    if sender.send(rows).await.is_err() || failed {
                        return;
                    }
                    match next {
                        Some(next) => from = Some(next),
                        None => break,
                    }
                }
            }
        });
    }
    Pages { pages, askers }
}

fn asking(step: Step, subject: &str) -> Asking<'_> {
    Asking { step, subject, deadline: Instant::now() + PATIENCE }
}

fn rows(items: &[Item]) -> Vec<Result<Row, Unreadable>> {
    items.iter().filter_map(|item| row_from(item).map_err(|problem| unreadable(item, problem)).transpose()).collect()
}

/// Reads an entry as people read it, or says which attribute does not read; `None` for what has nothing to do with money.
fn row_from(item: &Item) -> Result<Option<Row>, String> {
    let attributes = Attributes(item);
    let ours = attributes.optional("status").and_then(Status::stored).is_some();
    if !ours && !["user_id", "currency", "amount"].iter().all(|name| item.contains_key(*name)) {
        return Ok(None);
    }
    let owned = |name| attributes.optional(name).map(str::to_owned);
    let text = |name| attributes.required(name, |text| Some(text.to_owned()));
    Ok(Some(Row {
        trans_id: text("trans_id")?,
        status: text("status")?,
        user: attributes.required("user_id", UserId::stored)?,
        currency: attributes.required("currency", |text| Currency::new(text).ok())?,
        amount: attributes.amount("amount")?,
        held: attributes.part("held")?,
        release_at: owned("release_at"),
        absorbed: attributes.part("absorbed")?,
        received_at: owned("received_at"),
        day: attributes.optional("day").and_then(day_from),
        void: matches!(item.get("void"), Some(AttributeValue::Bool(true))),
        user_received: owned("user_received"),
        amount_received: owned("amount_received"),
        payout_usd: attributes.optional("payout_usd").and_then(Amount::stored),
        offer_id: owned("offer_id"),
        offer_name: owned("offer_name"),
        goal_id: owned("goal_id"),
        preset: owned("preset"),
        source_ip: owned("source_ip"),
        fingerprint: owned("fingerprint"),
        by: owned("by"),
        reason: owned("reason"),
        operation: owned("kind").map(|kind| Operation {
            kind,
            requested: attributes.optional("requested").and_then(Amount::stored),
            round_id: attributes.optional("round").and_then(round_of).map(str::to_owned),
            game_id: owned("game_id"),
            counterpart: owned("counterpart"),
            answer_status: owned("answer_status"),
        }),
    }))
}

/// Reads the key of the index by day: `<network>#<day>#<shard>`.
fn day_from(text: &str) -> Option<Day> {
    let (network, rest) = text.split_once('#')?;
    let (date, shard) = rest.split_once('#')?;
    shard.parse::<u32>().ok().filter(|shard| *shard < SHARDS)?;
    Some(Day { network: Network::new(network).ok()?, date: date.parse().ok()? })
}

fn stored(item: &Item) -> Result<Stored, Unreadable> {
    let attributes = Attributes(item);
    let read = || {
        Ok(Stored {
            user: attributes.required("user_id", UserId::stored)?,
            currency: attributes.required("currency", |text| Currency::new(text).ok())?,
            account: account_from(item)?,
        })
    };
    read().map_err(|problem| unreadable(item, problem))
}

fn player_in_round(item: &Item) -> Result<(UserId, Round), Unreadable> {
    let read = || Ok((Attributes(item).required("user_id", UserId::stored)?, round_from(item)?));
    read().map_err(|problem| unreadable(item, problem))
}

fn held(item: &Item) -> Result<Hold, Unreadable> {
    hold_from(item).map_err(|problem| unreadable(item, problem))
}

/// What a row that does not read is called: as much of its key as there is.
fn unreadable(item: &Item, problem: String) -> Unreadable {
    let attributes = Attributes(item);
    let keys = ["trans_id", "status", "round_id", "user_id", "currency", "bucket", "due"];
    let named: Vec<_> =
        keys.into_iter().filter_map(|key| Some(format!("{key} {}", attributes.optional(key)?))).collect();
    Unreadable { row: named.join(", "), problem }
}
