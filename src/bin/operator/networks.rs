//! The commands about networks: none of them reaches AWS.

use std::io::{self, Read};
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use postback::config;
use postback::ledger::OperationKind;
use postback::operator::{self, CannotRun, Operator, Question, Show};
use postback::sample::{CallSample, Sample, Wanted};
use postback::terminal::{self, Reply};
use postback::wallet::Path;

#[derive(Subcommand)]
pub enum Command {
    /// Every network: enabled or not, its evidence, what is not signed, from where it sends, and your settings
    Networks,
    /// The postback URL to paste into a network's dashboard, and what to switch on there
    Url {
        /// The network's name
        network: String,
    },
    /// A signed example request, as a `curl` line
    Sign(SignArguments),
    /// Why a request does or does not verify
    Check(CheckArguments),
}

#[derive(Args)]
pub struct SignArguments {
    /// The network's name
    network: String,
    /// The user, as the app named it to the network
    #[arg(long, default_value = "42")]
    user: String,
    /// The amount as the network sends it, a plain decimal without a sign
    #[arg(long, default_value = "10.50")]
    amount: String,
    /// The conversion, or the key of a call; a new one for each second if left out
    #[arg(long, visible_alias = "id", value_name = "ID")]
    trans_id: Option<String>,
    /// The reversal of that conversion
    #[arg(long)]
    reversal: bool,
    /// For a network that calls a wallet: what it asks for
    #[arg(long, conflicts_with = "reversal")]
    call: Option<CallOf>,
    /// The round of a call
    #[arg(long, default_value = "1", requires = "call")]
    round: String,
    /// What a rollback takes back: its key, or our id of it
    #[arg(long, default_value = "example-bet", value_name = "ID", requires = "call")]
    original: String,
    /// Scheme and host of the function URL; else PUBLIC_URL, else where `cargo local` is
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// Only the URL; for networks that send a GET
    #[arg(long, conflicts_with = "event")]
    url: bool,
    /// A function URL's event, for `cargo local invoke` and `sam local invoke -e`
    #[arg(long)]
    event: bool,
}

/// What a wallet is asked for.
#[derive(Clone, Copy, ValueEnum)]
enum CallOf {
    Bet,
    Win,
    BetRollback,
    WinRollback,
    Finish,
    Balance,
    Ping,
}

impl From<CallOf> for Path {
    fn from(call: CallOf) -> Path {
        match call {
            CallOf::Bet => Path::Operation(OperationKind::Bet),
            CallOf::Win => Path::Operation(OperationKind::Win),
            CallOf::BetRollback => Path::Operation(OperationKind::BetRollback),
            CallOf::WinRollback => Path::Operation(OperationKind::WinRollback),
            CallOf::Finish => Path::Operation(OperationKind::RoundFinish),
            CallOf::Balance => Path::Balance,
            CallOf::Ping => Path::Ping,
        }
    }
}

#[derive(Args)]
pub struct CheckArguments {
    /// The network's name
    network: String,
    /// The whole URL, in single quotes
    #[arg(required_unless_present = "event", conflicts_with = "event")]
    url: Option<String>,
    /// A header, `name: value`; as often as needed
    #[arg(long, value_name = "HEADER")]
    header: Vec<String>,
    /// A file with the body of a POST; - for standard input
    #[arg(long, value_name = "FILE")]
    body: Option<PathBuf>,
    /// The address that the request came from
    #[arg(long, default_value = "", value_name = "ADDRESS")]
    source: String,
    /// A file with a function URL's event, instead of all these
    #[arg(long, value_name = "FILE", conflicts_with_all = ["header", "body", "source"])]
    event: Option<PathBuf>,
}

pub fn run(command: Command) -> Result<Reply, CannotRun> {
    let operator = Operator::new(config::environment)?;
    match command {
        Command::Networks => Ok(operator.networks().reply()),
        Command::Url { network } => operator.url(&network),
        Command::Sign(arguments) => {
            let seconds = jiff::Timestamp::now().as_second();
            let trans_id = arguments.trans_id.unwrap_or_else(|| format!("example-{seconds}"));
            let wanted = match arguments.call {
                Some(call) => Wanted::Call(CallSample {
                    path: call.into(),
                    player: &arguments.user,
                    key: &trans_id,
                    amount: &arguments.amount,
                    round: &arguments.round,
                    original: &arguments.original,
                }),
                None => Wanted::Postback(Sample {
                    class: operator::class(arguments.reversal),
                    user: &arguments.user,
                    trans_id: &trans_id,
                    amount: &arguments.amount,
                    seconds,
                }),
            };
            let show = match (arguments.url, arguments.event) {
                (true, _) => Show::Url,
                (_, true) => Show::Event,
                (false, false) => Show::Curl,
            };
            let reply = operator.sign(&arguments.network, &wanted, arguments.base_url.as_deref(), show)?;
            remark_on_secrets(&operator);
            Ok(reply)
        }
        Command::Check(arguments) => {
            let question = match (&arguments.event, &arguments.url) {
                (Some(file), _) => Question::from_event(file)?,
                (None, url) => {
                    let body = arguments.body.map(read).transpose()?;
                    let url = url.as_deref().unwrap_or_default();
                    Question::of(url, &arguments.header, body.as_deref(), &arguments.source)?
                }
            };
            let reply = operator.check(&arguments.network, &question)?;
            remark_on_secrets(&operator);
            Ok(reply)
        }
    }
}

fn read(file: PathBuf) -> Result<Vec<u8>, CannotRun> {
    let read = if file.as_os_str() == "-" {
        let mut body = Vec::new();
        io::stdin().read_to_end(&mut body).map(|_| body)
    } else {
        std::fs::read(&file)
    };
    read.map_err(|problem| CannotRun::File { file, problem })
}

fn remark_on_secrets(operator: &Operator) {
    if operator.local {
        terminal::remark("With the secrets of `cargo local`; set NETWORK_SECRETS for your own.");
    }
}
