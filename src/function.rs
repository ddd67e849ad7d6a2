//! The life of a Lambda function, whatever it is for: it starts once, answers one event after the other, and says why where
//! it cannot run.
//!
//! Knows nothing of what an event is. Never lets a call outlive its invocation.

use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde::Serialize;
use serde_json::value::RawValue;
use tracing::error;

use crate::{config, log};

/// Runs a function until Lambda ends it: `start` once, then `answer` for each event, which is told how long it may take.
pub async fn run<S, R: Serialize>(
    start: impl Future<Output = Result<S, Error>>,
    answer: impl AsyncFn(&S, &str, Duration) -> Result<R, Error>,
) -> ExitCode {
    log::start(config::log_level());
    match serve(start, answer).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            error!(error = %error, "the function cannot run");
            ExitCode::FAILURE
        }
    }
}

async fn serve<S, R: Serialize>(
    start: impl Future<Output = Result<S, Error>>,
    answer: impl AsyncFn(&S, &str, Duration) -> Result<R, Error>,
) -> Result<(), Error> {
    let state = start.await?;
    let (state, answer) = (&state, &answer);
    lambda_runtime::run(service_fn(|event: LambdaEvent<Box<RawValue>>| async move {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let patience = patience(Duration::from_millis(event.context.deadline), now);
        answer(state, event.payload.get(), patience).await
    }))
    .await
}

/// How long an invocation may still take at `now`, given its deadline, both in time since 1970, less what the answer's way
/// back needs. A deadline that has passed is none: Lambda would have ended this process, and tools that stand in for it send
/// such.
fn patience(deadline: Duration, now: Duration) -> Duration {
    const WAY_BACK: Duration = Duration::from_millis(200);
    match deadline.checked_sub(now) {
        Some(left) if !left.is_zero() => left.saturating_sub(WAY_BACK),
        _ => Duration::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invocation_answers_before_its_deadline_and_a_past_one_is_none() {
        let of = |deadline, now| patience(Duration::from_millis(deadline), Duration::from_millis(now));
        assert_eq!(of(11_000, 10_000), Duration::from_millis(800));
        assert_eq!(of(10_150, 10_000), Duration::ZERO);
        assert_eq!(of(10_000, 10_000), Duration::MAX);
        assert_eq!(of(600_000, 1_796_000_000_000), Duration::MAX);
    }
}
