//! The commands about cases: what a person must work, and what came of it.

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use postback::cases::Action;
use postback::id::{Network, UserId};
use postback::operator::{CannotRun, cases};
use postback::terminal::{self, Reply};

use crate::{Decides, Everywhere};

#[derive(Subcommand)]
pub enum Command {
    /// The open cases, the longest open first
    Cases {
        /// Only of this kind
        #[arg(long, value_parser = PossibleValuesParser::new(cases::kinds()))]
        kind: Option<String>,
        /// Only of this network
        #[arg(long)]
        network: Option<String>,
    },
    /// One case: what happened, the entries that it is about, and how it was closed
    Case {
        /// The case, as `cases` lists it
        case: String,
    },
    /// Do what you decided about a case, and close it
    Resolve(ResolveArguments),
    /// Take back a credit, though its network did not say so
    Reverse {
        /// The network's name
        network: String,
        /// The conversion, as the network names it
        id: String,
        #[command(flatten)]
        decides: Decides,
    },
}

#[derive(Args)]
pub struct ResolveArguments {
    /// The case, as `cases` lists it
    case: String,
    #[command(flatten)]
    decides: Decides,
    #[command(flatten)]
    action: Actions,
}

#[derive(Args)]
#[group(required = true, multiple = false)]
struct Actions {
    /// Make the held coins available to their user
    #[arg(long)]
    release: bool,
    /// Give the coins in suspense to this user
    #[arg(long, value_name = "USER")]
    assign: Option<String>,
    /// Correct the user's balance by this signed amount, such as --adjust=-10.50
    #[arg(long, value_name = "AMOUNT", allow_hyphen_values = true)]
    adjust: Option<String>,
    /// Nothing is to be moved, or it was done elsewhere
    #[arg(long)]
    note: bool,
}

pub async fn run(command: Command, everywhere: &Everywhere) -> Result<Reply, CannotRun> {
    match command {
        Command::Cases { kind, network } => {
            let network = network.as_deref().map(named).transpose()?;
            cases::open(&everywhere.ledger()?, kind.as_deref(), network.as_ref()).await
        }
        Command::Case { case } => cases::show(&everywhere.ledger()?, &case).await,
        Command::Resolve(arguments) => {
            let ledger = everywhere.ledger()?;
            let action = match arguments.action {
                Actions { release: true, .. } => Action::Release,
                Actions { assign: Some(user), .. } => {
                    let read = UserId::new(&user);
                    Action::Assign(read.map_err(|problem| CannotRun::argument("--assign", &user, problem))?)
                }
                Actions { adjust: Some(amount), .. } => {
                    let read = ledger.amount(&amount);
                    Action::Adjust(read.map_err(|problem| CannotRun::argument("--adjust", &amount, problem))?)
                }
                Actions { .. } => Action::Note,
            };
            cases::resolve(&ledger, &arguments.case, &action, &arguments.decides.decision()?).await
        }
        Command::Reverse { network, id, decides } => {
            let network = named(&network)?;
            cases::reverse(&everywhere.ledger()?, &network, &id, &decides.decision()?).await
        }
    }
}

fn named(network: &str) -> Result<Network, CannotRun> {
    Network::new(network).map_err(|problem| CannotRun::Network(terminal::visible(network), problem.to_string()))
}
