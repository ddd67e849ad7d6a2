//! The commands about the settings that change without a deployment.

use std::io::{self, BufRead, IsTerminal, Write};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use postback::operator::CannotRun;
use postback::operator::settings::{self, Plan};
use postback::terminal::{self, Reply};
use serde_json::json;

use crate::{Decides, Everywhere};

#[derive(Subcommand)]
pub enum Command {
    /// The settings: networks, caps, holds and sources that change without a deployment
    #[command(subcommand)]
    Settings(Settings),
}

#[derive(Subcommand)]
pub enum Settings {
    /// The document in force, or that of a version
    Show {
        /// The version; else what is in force
        #[arg(long, value_name = "N")]
        version: Option<u64>,
    },
    /// Every fault of a document, or what it would change
    Check {
        /// A TOML document
        file: PathBuf,
    },
    /// Put a document as the next version
    Put {
        /// A TOML document
        file: PathBuf,
        #[command(flatten)]
        puts: Puts,
    },
    /// Every version: when, who, why
    History,
    /// What differs between two versions
    Diff {
        /// The older one; else the one before the other
        from: Option<u64>,
        /// The newer one; else the newest
        to: Option<u64>,
    },
    /// Put the document of an older version as the next one
    Rollback {
        /// The version to go back to
        version: u64,
        #[command(flatten)]
        puts: Puts,
    },
}

#[derive(Args)]
pub struct Puts {
    #[command(flatten)]
    decides: Decides,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

pub async fn run(Command::Settings(command): Command, everywhere: &Everywhere) -> Result<Reply, CannotRun> {
    match command {
        Settings::Show { version } => {
            let shown = settings::show(&everywhere.ledger()?, version).await?;
            if !everywhere.json {
                shown.remarks.iter().for_each(|line| terminal::remark(line));
            }
            Ok(shown.reply)
        }
        Settings::Check { file } => {
            let document = settings::document(&file)?;
            let name = file.display().to_string();
            match settings::faulty(&name, &document) {
                Some(faulty) => Ok(faulty),
                None => Ok(Plan::of(&everywhere.ledger()?, &name, document).await?.reply()),
            }
        }
        Settings::Put { file, puts } => {
            let document = settings::document(&file)?;
            put(&file.display().to_string(), document, &puts, everywhere).await
        }
        Settings::History => settings::history(&everywhere.ledger()?).await,
        Settings::Diff { from, to } => settings::diff(&everywhere.ledger()?, from, to).await,
        Settings::Rollback { version, puts } => {
            let old = settings::version(&everywhere.ledger()?, version).await?;
            put(&old.name(), old.document, &puts, everywhere).await
        }
    }
}

/// Validates a document, shows what it changes, asks, and puts it.
async fn put(name: &str, document: String, puts: &Puts, everywhere: &Everywhere) -> Result<Reply, CannotRun> {
    let decision = puts.decides.decision()?;
    if let Some(faulty) = settings::faulty(name, &document) {
        return Err(CannotRun::Faults(format!("nothing is put: {}", faulty.text.replace('\n', "; "))));
    }
    let ask = !puts.yes;
    if ask && (everywhere.json || !io::stdin().is_terminal()) {
        return Err(CannotRun::NobodyToAsk);
    }
    let ledger = everywhere.ledger()?;
    let plan = Plan::of(&ledger, name, document).await?;
    plan.must_change()?;
    if !everywhere.json {
        terminal::say(&plan.reply().text);
    }
    if ask && !agreed() {
        return Ok(Reply { text: "Nothing was put.".to_owned(), json: json!({}), differs: true });
    }
    plan.put(&ledger, decision, Timestamp::now()).await
}

/// Whether the person at the terminal says yes.
fn agreed() -> bool {
    let mut answer = String::new();
    let _ = write!(io::stderr(), "Put it? [y/N] ");
    io::stdin().lock().read_line(&mut answer).is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}
