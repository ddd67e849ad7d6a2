//! The commands about the books: all of them only read.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use jiff::Timestamp;
use postback::operator::CannotRun;
use postback::operator::finance::{self, Export, Period};
use postback::terminal::Reply;

use crate::Everywhere;

#[derive(Subcommand)]
pub enum Command {
    /// Every entry of one conversion, what of it is held, and its cases
    Show {
        /// The network's name
        network: String,
        /// The conversion, as the network calls it
        id: String,
    },
    /// A user's balances, and the newest entries
    User {
        /// The user, as the app named it to the network
        id: String,
        /// How many entries
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        limit: u32,
    },
    /// What a day comes to, by network: a day in UTC, summed from its entries
    Day {
        /// The day, as 2026-11-30
        date: String,
        #[command(flatten)]
        networks: Networks,
    },
    /// What a month comes to, by network: days in UTC, summed from its entries
    Month {
        /// The month, as 2026-11
        month: String,
        #[command(flatten)]
        networks: Networks,
    },
    /// Every entry of some days as a file; run again after an interruption, it goes on
    Export(ExportArguments),
    /// Whether each account is what its entries add up to, and each hold is one that they hold
    Verify {
        /// Of this user alone
        #[arg(long, value_name = "ID")]
        user: Option<String>,
    },
    /// A month as one page of HTML, which needs nothing else
    Report {
        /// The month, as 2026-11
        #[arg(long)]
        month: String,
        /// The file, which must not be there yet
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
        #[command(flatten)]
        networks: Networks,
    },
}

#[derive(Args)]
pub struct Networks {
    /// Only this network, as often as needed; else all that are known, and `cashier`. Name `app` for what the app itself posts
    /// as `app/…`
    #[arg(long, value_name = "NETWORK")]
    network: Vec<String>,
}

#[derive(Args)]
pub struct ExportArguments {
    /// The first day, as 2026-11-01, in UTC
    #[arg(long, value_name = "DAY")]
    from: String,
    /// The last day
    #[arg(long, value_name = "DAY")]
    to: String,
    #[command(flatten)]
    networks: Networks,
    /// CSV, in which no text is a formula, or a JSON object on each line
    #[arg(long, default_value = "csv")]
    format: Format,
    /// The file, which must not be there yet
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Csv,
    Jsonl,
}

impl From<Format> for finance::Format {
    fn from(format: Format) -> finance::Format {
        match format {
            Format::Csv => finance::Format::Csv,
            Format::Jsonl => finance::Format::JsonLines,
        }
    }
}

pub async fn run(command: Command, everywhere: &Everywhere) -> Result<Reply, CannotRun> {
    let now = Timestamp::now();
    let ledger = || everywhere.ledger();
    match command {
        Command::Show { network, id } => finance::show(&ledger()?, &network, &id).await,
        Command::User { id, limit } => finance::user(&ledger()?, &id, limit).await,
        Command::Day { date, networks } => {
            let period = Period::day(&date)?;
            finance::sums(&ledger()?, &period, &networks.network, now).await
        }
        Command::Month { month, networks } => {
            let period = Period::month(&month)?;
            finance::sums(&ledger()?, &period, &networks.network, now).await
        }
        Command::Export(ExportArguments { from, to, networks, format, out }) => {
            let period = Period::between(&from, &to)?;
            let export = Export { period, networks: networks.network, format: format.into(), out };
            finance::export(&ledger()?, &export, now).await
        }
        Command::Verify { user } => finance::verify(&ledger()?, user.as_deref()).await,
        Command::Report { month, out, networks } => {
            let period = Period::month(&month)?;
            finance::report(&ledger()?, &period, &networks.network, &out, now).await
        }
    }
}
