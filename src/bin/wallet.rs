//! The function behind a game aggregator's calls: wiring only, no decisions.

use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lambda_runtime::{Error, LambdaEvent, service_fn};
use postback::config::{self, Config};
use postback::event::Answer;
use postback::handler::{App, patience};
use serde_json::value::RawValue;

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
    let app = App::start(Config::from_env()?).await?;
    let app = &app;
    lambda_runtime::run(service_fn(|event: LambdaEvent<Box<RawValue>>| async move {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let patience = patience(Duration::from_millis(event.context.deadline), now);
        Ok::<Answer, Error>(app.wallet(event.payload.get(), patience).await.answer)
    }))
    .await
}
