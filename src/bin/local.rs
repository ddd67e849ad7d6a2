//! `cargo local`: the function on this machine. Arguments only, no decisions.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use postback::local::{self, CannotRun, Data, Serve};
use postback::terminal;

/// The postback function on this machine, over an embedded DynamoDB.
///
/// Networks sign with the secret `local-secret`, unless NETWORK_SECRETS says otherwise. Nothing ever reaches AWS.
#[derive(Parser)]
#[command(name = "local", bin_name = "cargo local", args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: ServeArguments,
}

#[derive(Subcommand)]
enum Command {
    /// Serve the function URL and DynamoDB's API: what happens without a command
    Serve(ServeArguments),
    /// Open a player's account, where it is not open, and pay money into it, so that a wallet's calls have somebody to be about
    Fund {
        /// The player, as a wallet's caller names them
        player: String,
        /// How much
        amount: String,
        #[command(flatten)]
        data: DataArguments,
    },
    /// Call the function with one event, and show its answer and what changed
    Invoke {
        /// A file with one function URL event, such as those in events/
        event: PathBuf,
        #[command(flatten)]
        data: DataArguments,
    },
}

#[derive(Args)]
struct ServeArguments {
    /// Port of the function URL; 0 for any that is free
    #[arg(long, default_value_t = 9000)]
    port: u16,
    /// Port of DynamoDB's API; 0 for any that is free
    #[arg(long, default_value_t = 8000, value_name = "PORT")]
    dynamodb_port: u16,
    #[command(flatten)]
    data: DataArguments,
}

#[derive(Args)]
struct DataArguments {
    /// Folder that the data is kept in between runs
    #[arg(long, default_value = ".local", value_name = "FOLDER")]
    data: PathBuf,
    /// Keep no data
    #[arg(long, conflicts_with = "data")]
    memory: bool,
}

impl From<DataArguments> for Data {
    fn from(arguments: DataArguments) -> Data {
        if arguments.memory { Data::Memory } else { Data::Folder(arguments.data) }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments = match terminal::arguments("cargo local") {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    match run(arguments).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => terminal::fail(&format!("error: {problem}")),
    }
}

async fn run(arguments: Arguments) -> Result<(), CannotRun> {
    match arguments.command.unwrap_or(Command::Serve(arguments.serve)) {
        Command::Serve(ServeArguments { port, dynamodb_port, data }) => {
            local::serve(&Serve { port, dynamodb_port, data: data.into() }).await
        }
        Command::Fund { player, amount, data } => local::fund(&player, &amount, &data.into()).await,
        Command::Invoke { event, data } => local::invoke(&event, &data.into()).await,
    }
}
