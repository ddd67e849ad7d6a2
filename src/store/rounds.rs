//! The players' parts in the rounds of games.
//!
//! What one player's operation does to a round is in that operation's transaction, see [`Store::post`]; here is what
//! concerns all players of one. A part says what became of bets, and never moves coins.

use jiff::Timestamp;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::items::{Attributes, SHARDS, round_key, round_part, string, time};
use super::{Asking, Step, Store, StoreError};
use crate::id::{RoundId, UserId};

impl Store {
    /// Finishes a round for every player who has a part in it. What is finished already stays as it is, so that a second
    /// try goes on where the first one ended.
    ///
    /// # Errors
    ///
    /// [`StoreError`]: some parts may then be finished, and finishing the round again settles that.
    pub async fn finish_round(&self, round: &RoundId, now: Timestamp, deadline: Instant) -> Result<(), StoreError> {
        let mut shards = JoinSet::new();
        for shard in 0..SHARDS {
            let (store, round) = (self.clone(), round.clone());
            shards.spawn(async move { store.finish_shard(&round, shard, now, deadline).await });
        }
        while let Some(finished) = shards.join_next().await {
            match finished {
                Ok(result) => result?,
                Err(error) => std::panic::resume_unwind(error.into_panic()),
            }
        }
        Ok(())
    }

    async fn finish_shard(
        &self,
        round: &RoundId,
        shard: u32,
        now: Timestamp,
        deadline: Instant,
    ) -> Result<(), StoreError> {
        let asking = Asking { step: Step::FinishRound, subject: round.as_str(), deadline };
        let table = &self.tables.rounds;
        let query = self.client.query().table_name(table).consistent_read(true);
        let query =
            query.key_condition_expression("round_id = :round").filter_expression("attribute_not_exists(finished_at)");
        let query = query.expression_attribute_values(":round", string(round_part(round, shard)));
        let parts = asking.send(query.into_paginator().items().send().try_collect()).await?;
        for part in parts.map_err(|error| asking.sdk(&error))? {
            let user =
                Attributes(&part).required("user_id", UserId::stored).map_err(|problem| asking.failed(problem))?;
            let update = self.client.update_item().table_name(table).set_key(Some(round_key(round, &user)));
            let update = update.update_expression("SET finished_at = if_not_exists(finished_at, :now)");
            let update = update.expression_attribute_values(":now", string(time(now))).send();
            asking.send(update).await?.map_err(|error| asking.sdk(&error))?;
        }
        Ok(())
    }
}
