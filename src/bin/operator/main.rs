//! `operator`: the command line of the people behind the endpoint. Arguments only, no decisions.
//!
//! Each group of commands is a file of its own, with its arguments and what they lead to.

mod cases; // what a person must work
mod finance; // the books
mod networks; // what is enabled, and what signs and verifies
mod reconcile; // entries against a network's own report
mod settings; // what changes without a deployment
mod wallet; // keys, rounds and players

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use postback::config;
use postback::ledger::Decision;
use postback::operator::{self, CannotRun, Ledger};
use postback::terminal::{self, Reply};

/// The people's side of the postback endpoint.
///
/// Reads the function's variables: NETWORKS, NETWORKS_FILE, NETWORK_SECRETS, PUBLIC_URL, the tables' names and so on. Exits
/// with 0 where all is well, 1 where differences were found or a request would be refused, and 2 where a command cannot run.
#[derive(Parser)]
#[command(name = "operator", bin_name = "cargo operator")]
struct Arguments {
    #[command(flatten)]
    everywhere: Everywhere,
    #[command(subcommand)]
    command: Command,
}

/// What every command takes.
#[derive(Args)]
struct Everywhere {
    /// For a program
    #[arg(long, global = true)]
    json: bool,
    /// The ledger of `cargo local` on this machine, whatever the shell is set up for
    #[arg(long, global = true)]
    local: bool,
}

impl Everywhere {
    /// The ledger that the variables lead to.
    fn ledger(&self) -> Result<Ledger, CannotRun> {
        Ledger::connect(config::environment, self.local)
    }
}

/// Who decides, and why: what a command takes that a person answers for.
#[derive(Args)]
struct Decides {
    /// Why, in a sentence; it is kept
    #[arg(long)]
    reason: String,
    /// Who decides; else the shell's USER
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
}

impl Decides {
    fn decision(&self) -> Result<Decision, CannotRun> {
        operator::decision(self.by.as_deref(), &self.reason, config::environment)
    }
}

#[derive(Subcommand)]
enum Command {
    #[command(flatten)]
    Networks(networks::Command),
    #[command(flatten)]
    Settings(settings::Command),
    #[command(flatten)]
    Cases(cases::Command),
    #[command(flatten)]
    Finance(finance::Command),
    #[command(flatten)]
    Wallet(wallet::Command),
    #[command(flatten)]
    Reconcile(reconcile::Command),
}

#[tokio::main]
async fn main() -> ExitCode {
    let Arguments { everywhere, command } = match terminal::arguments("cargo operator") {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    match run(&everywhere, command).await {
        Ok(reply) => reply.print(everywhere.json),
        Err(problem) => terminal::fail(&format!("error: {problem}")),
    }
}

async fn run(everywhere: &Everywhere, command: Command) -> Result<Reply, CannotRun> {
    match command {
        Command::Networks(command) => networks::run(command),
        Command::Settings(command) => settings::run(command, everywhere).await,
        Command::Cases(command) => cases::run(command, everywhere).await,
        Command::Finance(command) => finance::run(command, everywhere).await,
        Command::Wallet(command) => wallet::run(command, everywhere).await,
        Command::Reconcile(command) => reconcile::run(command, everywhere).await,
    }
}
