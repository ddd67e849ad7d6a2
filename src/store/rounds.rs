//! The players' parts in the rounds of games.
//!
//! What one player's operation does to a round is in that operation's transaction, see [`Store::post`]; here is what
//! concerns all players of one. A part says what became of bets, and never moves coins.

use aws_sdk_dynamodb::error::SdkError;
use futures_util::future::join_all;
use jiff::Timestamp;
use tokio::time::Instant;

use super::items::{Attributes, SHARDS, round_key, round_part, string, time};
use super::{Asking, Backoff, Step, Store, StoreError};
use crate::id::{RoundId, UserId};

impl Store {
    /// Finishes a round for every player who has a part in it. What is finished already stays as it is, so that a second
    /// try goes on where the first one ended.
    ///
    /// # Errors
    ///
    /// [`StoreError`]: some parts may then be finished, and finishing the round again settles that.
    pub async fn finish_round(&self, round: &RoundId, now: Timestamp, deadline: Instant) -> Result<(), StoreError> {
        let shards = (0..SHARDS).map(|shard| self.finish_shard(round, shard, now, deadline));
        // What can be finished is, also where another part cannot.
        join_all(shards).await.into_iter().collect()
    }

    async fn finish_shard(
        &self,
        round: &RoundId,
        shard: u32,
        now: Timestamp,
        deadline: Instant,
    ) -> Result<(), StoreError> {
        let asking = Asking { step: Step::FinishRound, subject: round.as_str(), deadline };
        let query = self.client.query().table_name(&self.tables.rounds).consistent_read(true);
        let query = query.key_condition_expression("round_id = :round");
        let query = query.filter_expression("attribute_not_exists(finished_at)");
        let query = query.expression_attribute_values(":round", string(round_part(round, shard)));
        let parts = asking.send(query.into_paginator().items().send().try_collect()).await?;
        for part in parts.map_err(|error| asking.sdk(&error))? {
            let user =
                Attributes(&part).required("user_id", UserId::stored).map_err(|problem| asking.failed(problem))?;
            self.finish_part(round, &user, now, &asking).await?;
        }
        Ok(())
    }

    /// Finishes one player's part, as often as a transaction on it is in the way.
    async fn finish_part(
        &self,
        round: &RoundId,
        user: &UserId,
        now: Timestamp,
        asking: &Asking<'_>,
    ) -> Result<(), StoreError> {
        let mut backoff = Backoff::default();
        loop {
            let update =
                self.client.update_item().table_name(&self.tables.rounds).set_key(Some(round_key(round, user)));
            let update = update.update_expression("SET finished_at = if_not_exists(finished_at, :now)");
            let update = update.expression_attribute_values(":now", string(time(now))).send();
            match asking.send(update).await? {
                Ok(_) => return Ok(()),
                Err(SdkError::ServiceError(service)) if service.err().is_transaction_conflict_exception() => {}
                Err(error) => return Err(asking.sdk(&error)),
            }
            backoff.pause(asking).await?;
        }
    }
}
