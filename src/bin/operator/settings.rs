//! The commands about the settings that change without a deployment.

use clap::Subcommand;
use postback::operator::CannotRun;
use postback::terminal::Reply;

use crate::Everywhere;

#[derive(Subcommand)]
pub enum Command {}

pub async fn run(command: Command, _everywhere: &Everywhere) -> Result<Reply, CannotRun> {
    match command {}
}
