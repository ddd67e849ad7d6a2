//! The command that compares entries with a network's own report.

use std::io;

use clap::Subcommand;
use postback::operator::CannotRun;
use postback::operator::reconcile::{self, ReconcileArguments};
use postback::terminal::Reply;

use crate::Everywhere;

#[derive(Subcommand)]
pub enum Command {
    /// A network's own report against our entries: what matches, what is missing on either side, what differs
    Reconcile(Box<ReconcileArguments>),
}

pub async fn run(command: Command, everywhere: &Everywhere) -> Result<Reply, CannotRun> {
    let Command::Reconcile(arguments) = command;
    let (now, mut output) = (jiff::Timestamp::now(), io::stdout().lock());
    let ledger = || everywhere.ledger();
    let clean = reconcile::reconcile(*arguments, ledger, now, everywhere.json, &mut output).await?;
    Ok(Reply::printed(!clean))
}
