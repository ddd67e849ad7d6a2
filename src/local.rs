//! Local mode: the whole function on one machine, over an embedded DynamoDB, with nothing installed but Rust.
//!
//! Runs the same handler, configuration and store as in Lambda; only what stands around them is replaced. Exists only with the
//! feature `local`, so that no release binary contains it. Never talks to AWS, whatever credentials and endpoints the shell
//! has set, and never puts real coins anywhere: whoever reads this file knows its secret.

mod embedded; // DynamoDB inside this process, and the folder that it keeps data in
mod fund; // `cargo local fund`: a player with money
mod function_url; // any HTTP request as a function URL's event
mod invoke; // `cargo local invoke`: one event, and what it changed
mod serve; // `cargo local`: the function URL, and one line a call
mod tables; // the tables, from the template

use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use tokio::net::TcpListener;
use tracing::Level;

use crate::config::{self, Config, Fault, Faults, SecretsFrom};
use crate::handler::{App, Handled};
use crate::in_force::Snapshot;
use crate::ledger::Entry;
use crate::log;
use crate::money::Amount;
use crate::offerwall;
use crate::preset::{Preset, PresetError};
use crate::sample;
use crate::secrets::{Secrets, VaultError};
use crate::store::StoreError;
use crate::wallet;

pub use embedded::{Data, Embedded};
pub use fund::fund;
pub use invoke::invoke;
pub use serve::{Serve, serve};
pub use tables::{TableError, create_tables};

/// Region and credentials of the embedded DynamoDB, which takes any.
const ANY: &str = "local";

/// How long a read for the person at the terminal may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// The configuration of local mode: that of `environment`, with defaults for what Lambda or a deployment would set.
///
/// DynamoDB is the one at `endpoint`, and nothing that could lead to AWS is read: no `AWS_*`, no `NETWORK_SECRETS_ARN`. Where
/// no networks are named, all are enabled, also those that a deployment must accept first: no real coins are at stake. Once
/// there are settings, they count as in a deployment.
///
/// # Errors
///
/// Every fault in the environment.
pub fn config(
    endpoint: &str,
    public_url: Option<&str>,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<Config, Faults> {
    let set = |name: &str| environment(name).filter(|value| !value.is_empty());
    let mut config = Config::read(|name| match name {
        "AWS_ENDPOINT_URL_DYNAMODB" => Some(endpoint.to_owned()),
        "AWS_REGION" | "AWS_ACCESS_KEY_ID" | "AWS_SECRET_ACCESS_KEY" => Some(ANY.to_owned()),
        "NETWORK_SECRETS_ARN" => None,
        name if name.starts_with("AWS_") => None,
        "PUBLIC_URL" => set(name).or_else(|| public_url.map(str::to_owned)),
        // What happens is told in lines of its own; the log is left what those cannot tell.
        "LOG_LEVEL" => Some(set(name).unwrap_or_else(|| "error".to_owned())),
        name => set(name),
    })?;
    if set("NETWORKS").is_none() {
        let fault = |error: PresetError| Faults(vec![Fault { variable: "NETWORKS_FILE", problem: error.to_string() }]);
        let mut all = config.catalogue.presets().map_err(fault)?;
        all.retain(|preset| !preset.default);
        // The first is the one that the printed examples are for.
        config.networks.append(&mut all);
        for preset in &mut config.networks {
            // What only a deployment knows is anything here.
            preset.yours.retain(|(_, values)| !values.is_empty());
        }
    }
    if set("NETWORK_SECRETS").is_none() {
        config.secrets = local_secrets(&config.networks);
    }
    Ok(config)
}

/// What networks sign with unless the shell says otherwise.
fn local_secrets(networks: &[Preset]) -> SecretsFrom {
    SecretsFrom::Environment(Secrets::read(&sample::secrets(networks).to_string()).unwrap_or_default())
}

/// The function over the DynamoDB at `endpoint`, its tables made.
async fn function(endpoint: &str, public_url: Option<&str>) -> Result<(Config, App), CannotRun> {
    let mut config = config(endpoint, public_url, config::environment)?;
    start_log(&config);
    create_tables(&config.aws.dynamodb(PATIENCE), &config.tables).await?;
    let mut app = App::start(config.clone()).await?;
    if let Some(Snapshot { version: Some(_), networks, catalogue }) = app.in_force().as_deref() {
        config.networks.clone_from(networks);
        config.catalogue.clone_from(catalogue);
        if config::environment("NETWORK_SECRETS").is_none_or(|text| text.is_empty()) {
            // The settings may have networks of their own, and these sign too.
            config.secrets = local_secrets(networks);
            app = App::start(config.clone()).await?;
        }
    }
    Ok((config, app))
}

/// A function URL's event through the function that its path leads to: in a deployment each contract has a URL of its own.
async fn called(app: &App, path: &str, event: &str) -> Handled {
    let is_wallet = app.in_force().is_some_and(|in_force| {
        let of_postbacks = offerwall::preset_at(&in_force.networks, path).is_some();
        wallet::route(&in_force.networks, path).is_some() || (wallet::is_ours(path) && !of_postbacks)
    });
    if is_wallet { app.wallet(event, Duration::MAX).await } else { app.offerwall(event, Duration::MAX).await }
}

/// A DynamoDB over some data: one of this process's own, or the one that serves it already.
struct Connected {
    endpoint: String,
    /// Serves as long as this lives.
    _own: Option<Embedded>,
}

impl Connected {
    async fn to(data: &Data) -> Result<Connected, CannotRun> {
        match Embedded::start(bind(0, "--dynamodb-port").await?, data) {
            Ok(embedded) => Ok(Connected { endpoint: embedded.endpoint(), _own: Some(embedded) }),
            Err(CannotRun::InUse { folder }) => match embedded::running(&folder) {
                Some(endpoint) => Ok(Connected { endpoint, _own: None }),
                None => Err(CannotRun::InUse { folder }),
            },
            Err(error) => Err(error),
        }
    }
}

/// A port of this machine, which nobody else can reach.
async fn bind(port: u16, option: &'static str) -> Result<TcpListener, CannotRun> {
    TcpListener::bind(("127.0.0.1", port)).await.map_err(|problem| CannotRun::Port { port, problem, option })
}

/// Logs for a person: plain text on standard error, apart from what the command itself prints. The lines of calls, as
/// CloudWatch would get them, only where they are asked for.
fn start_log(config: &Config) {
    if config.log_level >= Level::INFO {
        log::send_calls(|| Box::new(io::stderr()));
    }
    let format = tracing_subscriber::fmt::layer().with_writer(io::stderr).with_ansi(false).with_target(false);
    log::start_as(config.log_level, format);
}

/// Prints a line. A reader that has gone away, such as `| head`, must not end the calls.
fn say(line: impl fmt::Display) {
    let _ = writeln!(io::stdout(), "{line}");
}

/// The change that an entry made, with its sign and currency.
fn change(entry: &Entry) -> String {
    let sign = if entry.amount > Amount::ZERO { "+" } else { "" };
    format!("{sign}{} {}", entry.amount, entry.currency)
}

/// Why a command cannot run: one line that says what is wrong and what to do.
#[derive(Debug, thiserror::Error)]
pub enum CannotRun {
    #[error("{0}; correct or unset the variable")]
    Environment(#[from] Faults),
    #[error("cannot listen on 127.0.0.1:{port}: {problem}; choose another port with {option}")]
    Port { port: u16, problem: io::Error, option: &'static str },
    #[error(
        "cannot keep data in {}: {problem}; choose another folder with --data, or keep none with --memory",
        folder.display()
    )]
    Folder { folder: PathBuf, problem: String },
    #[error(
        "another `cargo local` is using {}; wait for it, stop it, or choose another folder with --data",
        folder.display()
    )]
    InUse { folder: PathBuf },
    #[error("cannot read {}: {problem}; name a file with one function URL event", file.display())]
    Event { file: PathBuf, problem: io::Error },
    #[error(
        "{} is not JSON: {problem}; name a file with one function URL event",
        file.display()
    )]
    NotJson { file: PathBuf, problem: serde_json::Error },
    #[error("`{argument}`: {problem}")]
    Argument { argument: String, problem: String },
    #[error("{0}")]
    Money(String),
    #[error("{0}; choose another folder with --data, or keep none with --memory")]
    Tables(#[from] TableError),
    #[error("{0}; choose another folder with --data, or keep none with --memory")]
    Store(#[from] StoreError),
    #[error("{0}")]
    Secrets(#[from] VaultError),
    #[error("the function URL ended: {0}; start it again")]
    Server(io::Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::preset::Catalogue;

    /// A shell that is set up for a real account.
    fn shell(name: &str) -> Option<String> {
        let value = match name {
            "AWS_ENDPOINT_URL" | "AWS_ENDPOINT_URL_DYNAMODB" => "https://real.example",
            "AWS_ENDPOINT_URL_SECRETS_MANAGER" => "https://real.example",
            "AWS_REGION" | "AWS_DEFAULT_REGION" => "eu-west-1",
            "AWS_ACCESS_KEY_ID" | "AWS_SECRET_ACCESS_KEY" | "AWS_SESSION_TOKEN" => "real",
            "AWS_CA_BUNDLE" => "/nowhere.pem",
            "NETWORK_SECRETS_ARN" => "arn:aws:secretsmanager:eu-west-1:1:secret:real",
            "NETWORK_SECRETS" => "",
            "COIN_DECIMALS" => "0",
            _ => return None,
        };
        Some(value.to_owned())
    }

    #[test]
    fn a_shell_that_is_set_up_for_a_real_account_does_not_reach_it() {
        let config = config("http://127.0.0.1:1", None, shell).unwrap();
        assert_eq!(config.aws.dynamodb_endpoint.as_deref(), Some("http://127.0.0.1:1"));
        assert_eq!(config.aws.secrets_manager_endpoint, None);
        assert_eq!(config.aws.access_key_id, ANY);
        assert!(config.aws.session_token.is_none());
        assert!(!format!("{config:?}").contains("real"), "{config:?}");
        assert_eq!(config.coins.scale.decimals(), 0, "the rest of the shell counts");
    }

    #[test]
    fn every_network_signs_with_the_local_secret_unless_the_shell_says_otherwise() {
        let secrets = |environment: fn(&str) -> Option<String>| {
            let config = config("http://127.0.0.1:1", None, environment).unwrap();
            let SecretsFrom::Environment(secrets) = config.secrets else { panic!() };
            config.networks.iter().filter(|preset| !secrets.of(&preset.network).is_empty()).count()
        };
        assert_eq!(secrets(shell), Catalogue::default().names().len());
        let other = |name: &str| (name == "NETWORK_SECRETS").then(|| "{\"x\": \"y\"}".to_owned());
        assert_eq!(secrets(other), 0);
    }
}
