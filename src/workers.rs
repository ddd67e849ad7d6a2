//! Work that nobody calls for: held coins become available when they are due.
//!
//! Safe to run twice at once, to be ended at any point and to start again: what a release does is one transaction that takes
//! the row out of the queue, so a second one finds nothing to do. Never decides whether coins are due by anything but the
//! time that was written when they were credited.

use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::{error, warn};

use crate::ledger::{self, Hold, Outcome, Refusal};
use crate::log;
use crate::metrics::Round;
use crate::store::{Cursor, SHARDS, Store, StoreError};

/// What a schedule asks for: the input of an invocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", tag = "work")]
pub enum Work {
    /// The release of due holds.
    ReleaseHolds,
}

/// Why an invocation asks for nothing that there is.
#[derive(Debug, thiserror::Error)]
#[error("the input is not of the form {{\"work\": \"release_holds\"}}: {0}")]
pub struct NoSuchWork(#[from] serde_json::Error);

impl Work {
    /// Reads the input of an invocation.
    ///
    /// # Errors
    ///
    /// [`NoSuchWork`].
    pub fn read(input: &str) -> Result<Work, NoSuchWork> {
        Ok(serde_json::from_str(input)?)
    }
}

/// What a round over the queue came to.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Released {
    /// Holds whose coins this round made available.
    pub released: u64,
    /// Holds that somebody else had taken away, or released, before.
    pub gone: u64,
    /// Holds that could not be released, each with a line in the log.
    pub failed: u64,
    /// Since when the longest due of those that are left is due; `None` where nothing is left.
    pub oldest_left: Option<Timestamp>,
    /// Whether the round ended before it had seen all that is due.
    pub unfinished: bool,
}

impl Released {
    fn left(&mut self, due: Option<Timestamp>) {
        self.oldest_left = [self.oldest_left, due].into_iter().flatten().min();
    }

    fn and(mut self, other: Released) -> Released {
        self.released += other.released;
        self.gone += other.gone;
        self.failed += other.failed;
        self.unfinished |= other.unfinished;
        self.left(other.oldest_left);
        self
    }
}

/// The longest that a round may take; schedules begin one every minute.
pub const ROUND_MAX: Duration = Duration::from_secs(50);

/// What one request may take, and what is kept for the end of a round.
const STEP: Duration = Duration::from_secs(3);

/// A shard that DynamoDB fails this often in a row is left to the next round: what is wrong is not a single hold, which must
/// never stop those behind it.
const OUTAGE: u32 = 5;

/// Releases what is due at `now`, until all is released or `deadline` is near; then counts, and writes the round's line.
///
/// # Errors
///
/// [`StoreError`] where a shard of the queue could not be read at all; the others have been worked.
pub async fn release_holds(
    store: &Store,
    function: &str,
    now: Timestamp,
    deadline: Instant,
) -> Result<Released, StoreError> {
    let started = Instant::now();
    let until = deadline.checked_sub(STEP).unwrap_or(deadline);
    let mut shards = JoinSet::new();
    for shard in 0..SHARDS {
        let store = store.clone();
        shards.spawn(async move { release_shard(&store, shard, now, until).await });
    }
    let (mut total, mut unread) = (Released::default(), None);
    while let Some(shard) = shards.join_next().await {
        match shard {
            Ok((released, problem)) => {
                total = total.and(released);
                unread = unread.or(problem);
            }
            Err(panicked) => {
                error!(error = %panicked, "a shard of the queue of holds ended early; the next round works it");
                total.unfinished = true;
                total.failed += 1;
            }
        }
    }
    let open_cases = match store.count_open_cases(deadline).await {
        Ok(count) => Some(count),
        Err(problem) => {
            warn!(error = %problem, "the open cases are not counted");
            None
        }
    };
    let overdue = total.oldest_left.map(|due| Duration::try_from(now.duration_since(due)).unwrap_or_default());
    log::call(|| {
        let round = Round {
            at: Timestamp::now(),
            function,
            released: total.released,
            gone: total.gone,
            failed: total.failed,
            unfinished: total.unfinished || unread.is_some(),
            oldest_due: overdue.unwrap_or_default(),
            open_cases,
            took: started.elapsed(),
        };
        round.json()
    });
    unread.map_or(Ok(total), Err)
}

/// Works one shard from its oldest hold on, page by page.
async fn release_shard(store: &Store, shard: u32, now: Timestamp, until: Instant) -> (Released, Option<StoreError>) {
    let (mut total, mut from, mut outages): (_, Option<Cursor>, _) = (Released::default(), None, 0);
    loop {
        let page = match store.due_holds(shard, now, from, Instant::now() + STEP).await {
            Ok(page) => page,
            Err(problem) => {
                error!(error = %problem, "due holds cannot be read; the next round tries again");
                total.unfinished = true;
                return (total, Some(problem));
            }
        };
        for hold in page.holds {
            let hold = match hold {
                Ok(hold) => hold,
                Err(problem) => {
                    error!(shard, error = problem, "a row of the table of holds does not read; correct it by hand");
                    total.failed += 1;
                    continue;
                }
            };
            if Instant::now() >= until || outages >= OUTAGE {
                total.left(hold.release_at);
                total.unfinished = true;
                return (total, None);
            }
            match release(store, &hold).await {
                Ok(true) => (total.released, outages) = (total.released + 1, 0),
                Ok(false) => (total.gone, outages) = (total.gone + 1, 0),
                Err(problem) => {
                    error!(
                        trans_id = hold.trans_id.as_str(),
                        error = %problem,
                        "a hold is not released; the next round tries again"
                    );
                    total.failed += 1;
                    total.left(hold.release_at);
                    outages = if matches!(problem, Unreleased::Store(_)) { outages + 1 } else { 0 };
                }
            }
        }
        match page.next {
            Some(next) => from = Some(next),
            None => return (total, None),
        }
    }
}

/// Why a hold is not released.
#[derive(Debug, thiserror::Error)]
enum Unreleased {
    #[error("{0}")]
    Store(#[from] StoreError),
    /// The queue and the entries do not agree: a table was restored, or a row was put by hand.
    #[error("{0}; run `operator verify` for its user")]
    Disagrees(String),
}

/// Releases one hold; `false` where somebody else did, or took the coins back.
async fn release(store: &Store, hold: &Hold) -> Result<bool, Unreleased> {
    let posting = ledger::release(hold, Timestamp::now());
    match store.post(&posting, Instant::now() + STEP).await? {
        Outcome::Posted => Ok(true),
        Outcome::Refused(Refusal::Hold) => Ok(false),
        // The row leaves the queue with the entry: it is gone by now, or should not be there.
        Outcome::Replayed(_) if !store.hold_exists(hold, Instant::now() + STEP).await? => Ok(false),
        Outcome::Replayed(_) => Err(Unreleased::Disagrees("its conversation has a release already".to_owned())),
        Outcome::Conflict(stored, field) => {
            Err(Unreleased::Disagrees(format!("it was released with another {field}, to {}", stored.user)))
        }
        Outcome::Refused(refusal @ (Refusal::Companion | Refusal::Account(_) | Refusal::Round(_) | Refusal::Case)) => {
            Err(Unreleased::Disagrees(format!("refused for {refusal:?}, which a release does not ask for")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_names_its_work_or_is_refused() {
        assert_eq!(Work::read(r#"{"work": "release_holds"}"#).unwrap(), Work::ReleaseHolds);
        for input in ["", "{}", "null", r#"{"work": "everything"}"#, r#""release_holds""#] {
            let told = Work::read(input).unwrap_err().to_string();
            assert!(told.starts_with("the input is not of the form {\"work\": \"release_holds\"}: "), "{told}");
        }
    }
}
