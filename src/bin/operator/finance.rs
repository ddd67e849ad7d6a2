//! The commands about the books: one conversion, one user, a day, a month, an export, what does not agree.

use clap::Subcommand;
use postback::operator::CannotRun;
use postback::terminal::Reply;

use crate::Everywhere;

#[derive(Subcommand)]
pub enum Command {}

pub async fn run(command: Command, _everywhere: &Everywhere) -> Result<Reply, CannotRun> {
    match command {}
}
