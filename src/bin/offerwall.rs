//! The function behind the networks' postback URLs: wiring only, no decisions.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lambda_runtime::{Error, LambdaEvent, service_fn};
use postback::config::Config;
use postback::event::Answer;
use postback::handler::App;
use serde_json::value::RawValue;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    postback::log::start(postback::config::log_level());
    let start = async {
        let app = App::start(Config::from_env()?).await?;
        app.warm_up().await;
        Ok::<App, Error>(app)
    };
    let app = start.await.inspect_err(|error| tracing::error!(error = %error, "the function cannot start"))?;
    let app = &app;
    lambda_runtime::run(service_fn(|event: LambdaEvent<Box<RawValue>>| async move {
        let handled = app.handle(event.payload.get(), patience(event.context.deadline)).await;
        Ok::<Answer, Error>(handled.answer)
    }))
    .await
}

/// How long this invocation may still take, given its deadline in milliseconds since 1970, less what the answer's way
/// back needs. A deadline that has passed is none: Lambda would have ended this process, and tools that stand in for it
/// send such.
fn patience(deadline_ms: u64) -> Duration {
    const WAY_BACK: Duration = Duration::from_millis(200);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    match Duration::from_millis(deadline_ms).checked_sub(now) {
        Some(left) if !left.is_zero() => left.saturating_sub(WAY_BACK),
        _ => Duration::MAX,
    }
}
