//! The queue of held coins, as whoever works it reads it.
//!
//! Only reads: a hold leaves the queue in the transaction that moves its coins.

use aws_sdk_dynamodb::types::Select;
use jiff::Timestamp;
use tokio::time::Instant;

use super::items::{Item, SHARDS, hold_from, hold_key, string, time};
use super::{Asking, Step, Store, StoreError};
use crate::ledger::Hold;

/// Most holds of one page.
const PAGE: i32 = 100;

/// A page of due holds.
#[derive(Debug)]
pub struct DuePage {
    /// The holds in the order in which they are due; a row that does not read is what is wrong with it.
    pub holds: Vec<Result<Hold, String>>,
    /// Where the next page begins; `None` after the last one.
    pub next: Option<Cursor>,
}

/// A place in the queue.
#[derive(Debug, Clone)]
pub struct Cursor(pub(super) Item);

impl Cursor {
    /// What DynamoDB says of where it stopped; `None` at the end.
    pub(super) fn of(key: Option<Item>) -> Option<Cursor> {
        key.filter(|key| !key.is_empty()).map(Cursor)
    }
}

impl Store {
    /// A page of one of the [`SHARDS`] of the queue: what is due at `now`, the longest due first.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when DynamoDB does not answer or refuses.
    pub async fn due_holds(
        &self,
        shard: u32,
        now: Timestamp,
        from: Option<Cursor>,
        deadline: Instant,
    ) -> Result<DuePage, StoreError> {
        let subject = format!("shard {shard} of {SHARDS}");
        let asking = Asking { step: Step::ReadHolds, subject: &subject, deadline };
        // `$` sorts right behind the `#` that follows the time in the key: what is due at this very moment is among it.
        let until = format!("{}$", time(now));
        let query = self.client.query().table_name(&self.tables.holds).select(Select::AllAttributes).limit(PAGE);
        let query = query.key_condition_expression("#bucket = :bucket AND due < :until");
        let query = query.expression_attribute_names("#bucket", "bucket").consistent_read(true);
        let query = query.expression_attribute_values(":bucket", string(shard.to_string()));
        let query = query.expression_attribute_values(":until", string(until));
        let request = query.set_exclusive_start_key(from.map(|Cursor(key)| key)).send();
        let output = asking.send(request).await?.map_err(|error| asking.sdk(&error))?;
        let holds = output.items().iter().map(hold_from).collect();
        Ok(DuePage { holds, next: Cursor::of(output.last_evaluated_key) })
    }

    /// Whether the row of a hold is in the queue.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when DynamoDB does not answer or refuses.
    pub async fn hold_exists(&self, hold: &Hold, deadline: Instant) -> Result<bool, StoreError> {
        let asking = Asking { step: Step::ReadHolds, subject: hold.trans_id.as_str(), deadline };
        let request = self.client.get_item().table_name(&self.tables.holds).consistent_read(true);
        let request = request.set_key(Some(hold_key(&hold.trans_id, hold.release_at))).send();
        let output = asking.send(request).await?.map_err(|error| asking.sdk(&error))?;
        Ok(output.item.is_some())
    }
}
