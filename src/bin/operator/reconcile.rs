//! The command that compares entries with a network's own report.

use clap::Subcommand;
use postback::operator::CannotRun;
use postback::terminal::Reply;

use crate::Everywhere;

#[derive(Subcommand)]
pub enum Command {}

pub async fn run(command: Command, _everywhere: &Everywhere) -> Result<Reply, CannotRun> {
    match command {}
}
