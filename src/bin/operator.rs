//! `operator`: the command line of the people behind the endpoint. Arguments only, no decisions.

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand};
use postback::config;
use postback::operator::{self, CannotRun, Operator, Question, Show};
use postback::sample::Sample;

/// The people's side of the postback endpoint.
///
/// Reads the function's variables: NETWORKS, NETWORKS_FILE, NETWORK_SECRETS, PUBLIC_URL and so on. Exits with 0 where all is
/// well, 1 where a request would be refused, and 2 where a command cannot run.
#[derive(Parser)]
#[command(name = "operator", bin_name = "cargo operator")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Every network: enabled or not, its evidence, what is not signed, from where it sends, and your settings
    Networks {
        /// For a program
        #[arg(long)]
        json: bool,
    },
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
struct SignArguments {
    /// The network's name
    network: String,
    /// The user, as the app named it to the network
    #[arg(long, default_value = "42")]
    user: String,
    /// The amount as the network sends it, a plain decimal without a sign
    #[arg(long, default_value = "10.50")]
    amount: String,
    /// The conversion; a new one for each second if left out
    #[arg(long, value_name = "ID")]
    trans_id: Option<String>,
    /// The reversal of that conversion
    #[arg(long)]
    reversal: bool,
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

#[derive(Args)]
struct CheckArguments {
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

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(asked) if !asked.use_stderr() => {
            let _ = asked.print();
            return ExitCode::SUCCESS;
        }
        Err(error) => return fail(&one_line(&error)),
    };
    run(arguments.command).unwrap_or_else(|problem| fail(&format!("error: {problem}")))
}

fn run(command: Command) -> Result<ExitCode, CannotRun> {
    let operator = Operator::new(config::environment)?;
    match command {
        Command::Networks { json: true } => say(&format!("{:#}", operator.networks().json())),
        Command::Networks { json: false } => say(&operator.networks().to_string()),
        Command::Url { network } => say(operator.url(&network)?.trim_end()),
        Command::Sign(arguments) => {
            let seconds = jiff::Timestamp::now().as_second();
            let trans_id = arguments.trans_id.unwrap_or_else(|| format!("example-{seconds}"));
            let sample = Sample {
                class: operator::class(arguments.reversal),
                user: &arguments.user,
                trans_id: &trans_id,
                amount: &arguments.amount,
                seconds,
            };
            let show = match (arguments.url, arguments.event) {
                (true, _) => Show::Url,
                (_, true) => Show::Event,
                (false, false) => Show::Curl,
            };
            say(&operator.sign(&arguments.network, &sample, arguments.base_url.as_deref(), show)?);
            remark_on_secrets(&operator);
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
            let explained = operator.check(&arguments.network, &question)?;
            say(explained.text.trim_end());
            remark_on_secrets(&operator);
            return Ok(if explained.accepted { ExitCode::SUCCESS } else { ExitCode::from(1) });
        }
    }
    Ok(ExitCode::SUCCESS)
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

#[allow(clippy::print_stderr, reason = "a remark that must not end up in a pipe")]
fn remark_on_secrets(operator: &Operator) {
    if operator.local {
        eprintln!("With the secrets of `cargo local`; set NETWORK_SECRETS for your own.");
    }
}

/// Prints a text. A reader that has gone away, such as `| head`, is no fault.
fn say(text: &str) {
    let _ = writeln!(io::stdout(), "{text}");
}

#[allow(clippy::print_stderr, reason = "a command line tells its user what is wrong")]
fn fail(line: &str) -> ExitCode {
    eprintln!("{line}");
    ExitCode::from(2)
}

/// What is wrong with the arguments: clap's first paragraph, and where to look.
fn one_line(error: &clap::Error) -> String {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return "error: a command is missing; see `cargo operator --help`".to_owned();
    }
    let text = error.to_string();
    let lines = text.lines().take_while(|line| !line.is_empty()).map(str::trim);
    format!("{}; see `cargo operator --help`", lines.collect::<Vec<_>>().join(" "))
}
