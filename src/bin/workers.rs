//! The function behind the schedules: wiring only, no decisions.

use std::process::ExitCode;

use jiff::Timestamp;
use postback::config::Config;
use postback::function;
use postback::store::Store;
use postback::workers::{self, Work};
use tokio::time::Instant;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let start = async {
        let config = Config::from_env()?;
        Ok((Store::new(config.aws.dynamodb(config.time_budget), config.tables), config.function))
    };
    function::run(start, async |(store, function): &(Store, String), event, patience| {
        match Work::read(event)? {
            Work::ReleaseHolds => {
                let deadline = Instant::now() + patience.min(workers::ROUND_MAX);
                workers::release_holds(store, function, Timestamp::now(), deadline).await?;
            }
        }
        Ok(())
    })
    .await
}
