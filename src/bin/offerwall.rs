//! The function behind the networks' postback URLs: wiring only, no decisions.

use std::process::ExitCode;

use postback::config::Config;
use postback::function;
use postback::handler::App;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    function::run(async { Ok(App::start(Config::from_env()?).await?) }, async |app: &App, event, patience| {
        Ok(app.offerwall(event, patience).await.answer)
    })
    .await
}
