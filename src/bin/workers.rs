//! The function behind the schedules: wiring only, no decisions.

use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use lambda_runtime::{Error, LambdaEvent, service_fn};
use postback::config::{self, Config};
use postback::handler::patience;
use postback::store::Store;
use postback::workers::{self, Work};
use serde_json::value::RawValue;
use tokio::time::Instant;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    postback::log::start(config::log_level());
    match serve().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = %error, "the function cannot run");
            ExitCode::FAILURE
        }
    }
}

async fn serve() -> Result<(), Error> {
    let config = Config::from_env()?;
    let store = Store::new(config.aws.dynamodb(config.time_budget), config.tables);
    let (store, function) = (&store, config.function.as_str());
    lambda_runtime::run(service_fn(|event: LambdaEvent<Box<RawValue>>| async move {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let patience = patience(Duration::from_millis(event.context.deadline), now).min(workers::ROUND_MAX);
        match Work::read(event.payload.get())? {
            Work::ReleaseHolds => {
                workers::release_holds(store, function, Timestamp::now(), Instant::now() + patience).await?;
            }
        }
        Ok::<(), Error>(())
    }))
    .await
}
