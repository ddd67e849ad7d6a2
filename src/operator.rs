//! The commands of the people behind the endpoint. What all of them share is here: why one cannot run, how the ledger is
//! reached, and who decides.
//!
//! Reads the function's own configuration and the same store, and decides nothing that the function would not decide the same
//! way. Never prints a secret.

pub mod cases; // what a person must work, and what came of it
pub mod cashier; // players' accounts, and their own money in and out
pub mod finance; // the books: sums, histories, exports, what does not agree
mod networks; // what is enabled, what to paste, a signed example, and why a request does not verify
pub mod reconcile; // entries against a network's own report
pub mod settings; // what changes without a deployment
pub mod wallet; // one key, one round, one player

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::books::OutOfRange;
use crate::config::{Config, Faults};
use crate::event::NotARequest;
use crate::id::Network;
use crate::in_force::{InForce, Snapshot};
use crate::ledger::{BY_MAX, Decision, REASON_MAX};
use crate::money::{Amount, Received, Scale};
use crate::preset::PresetError;
use crate::sample::NoExample;
use crate::store::{Store, StoreError};

pub use networks::{Networks, Operator, Question, Show, class};

/// The DynamoDB of `cargo local`.
const LOCAL_DYNAMODB: &str = "http://127.0.0.1:8000";

/// Region and credentials of it: any will do.
const ANY: &str = "local";

/// The longest that one request of a person may take, with what the SDK repeats of it. Nobody's network waits for it.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// What must be set for DynamoDB to be reached.
const CREDENTIALS: [&str; 3] = ["AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"];

/// Why a command cannot run: one line that says what is wrong and what to do.
#[derive(Debug, thiserror::Error)]
pub enum CannotRun {
    #[error("{0}; correct or unset the variable")]
    Environment(#[from] Faults),
    #[error(
        "{}: not set; set AWS_REGION and run `eval \"$(aws configure export-credentials --format env)\"`, or ask the \
         DynamoDB of `cargo local` with --local",
        missing.join(", ")
    )]
    NoCredentials { missing: Vec<&'static str> },
    #[error("{0}")]
    Store(#[from] StoreError),
    #[error(
        "the settings in force cannot be read: does SETTINGS_TABLE name the table of settings, and may you read it?"
    )]
    Settings,
    #[error("{0}")]
    Reconcile(#[from] reconcile::CannotReconcile),
    #[error("`{0}`: {1}")]
    Network(String, String),
    #[error("{argument}: `{value}`: {problem}")]
    Argument { argument: &'static str, value: String, problem: String },
    #[error("{0}")]
    Sum(OutOfRange),
    #[error("{} is there already: name another file, or delete it", .0.display())]
    Exists(PathBuf),
    #[error("cannot write {}: {problem}", file.display())]
    Write { file: PathBuf, problem: std::io::Error },
    #[error("{} is the beginning of another export: name another file, or delete that folder", .0.display())]
    OtherExport(PathBuf),
    #[error("another export is writing to {}: wait for it, or stop it", .0.display())]
    InUse(PathBuf),
    #[error("there are no settings yet: NETWORKS and NETWORKS_FILE count")]
    NoSettings,
    #[error("there is no version {0} of the settings; `cargo operator settings history` lists them")]
    NoVersion(u64),
    #[error("nothing changes: this is version {version}, word for word")]
    NoChange { version: u64 },
    #[error("{0}")]
    Faults(String),
    #[error("version {version} was put by {by} meanwhile; look at it and put again")]
    Overtaken { version: u64, by: String },
    #[error("nobody can be asked here: say --yes")]
    NobodyToAsk,
    #[error("nobody decides this: name yourself with --by, since USER is not set")]
    Nobody,
    #[error(
        "the secrets are in Secrets Manager: set NETWORK_SECRETS to what \
         `aws secretsmanager get-secret-value --secret-id {0} --query SecretString --output text` prints"
    )]
    SecretsManager(String),
    #[error("no secret of `{0}` is in NETWORK_SECRETS")]
    NoSecret(Network),
    #[error("`{0}`: {1}")]
    NoExample(Network, NoExample),
    #[error("`{0}` sends a POST, which a URL alone does not show: leave --url out, or ask for an --event")]
    NotInUrl(Network),
    #[error("NETWORKS_FILE: {0}")]
    Networks(#[from] PresetError),
    #[error("`{0}` is no URL with a path and a query, such as https://host/network?user=42&…")]
    NotAUrl(String),
    #[error("a header is not of the form `name: value`")]
    NotAHeader,
    #[error("cannot read {}: {problem}", file.display())]
    File { file: PathBuf, problem: std::io::Error },
    #[error("{}: {problem}", file.display())]
    Event { file: PathBuf, problem: NotARequest },
}

impl CannotRun {
    /// An argument that does not read.
    pub fn argument(argument: &'static str, value: &str, problem: impl std::fmt::Display) -> CannotRun {
        CannotRun::Argument { argument, value: crate::terminal::visible(value), problem: problem.to_string() }
    }
}

/// The ledger of a deployment, as its people reach it.
#[derive(Debug)]
pub struct Ledger {
    /// The same store that the function posts with.
    pub store: Store,
    /// The function's variables.
    pub config: Config,
}

impl Ledger {
    /// The ledger that the function's variables lead to, or with `local` that of `cargo local`, whatever credentials and
    /// endpoints the shell has set. Asks nothing of it yet.
    ///
    /// # Errors
    ///
    /// [`CannotRun::NoCredentials`] and [`CannotRun::Environment`].
    pub fn connect(environment: impl Fn(&str) -> Option<String>, local: bool) -> Result<Ledger, CannotRun> {
        let set = |name: &str| environment(name).filter(|value| !value.is_empty());
        let known = |name: &str| set(name).is_some() || (name == "AWS_REGION" && set("AWS_DEFAULT_REGION").is_some());
        let missing: Vec<_> = CREDENTIALS.into_iter().filter(|name| !known(name)).collect();
        if !local && !missing.is_empty() {
            return Err(CannotRun::NoCredentials { missing });
        }
        let config = Config::read(|name| match name {
            "AWS_ENDPOINT_URL_DYNAMODB" if local => Some(LOCAL_DYNAMODB.to_owned()),
            name if local && CREDENTIALS.contains(&name) => Some(ANY.to_owned()),
            name if local && name.starts_with("AWS_") => None,
            name => set(name),
        })?;
        Ok(Ledger { store: Store::new(config.aws.dynamodb(PATIENCE), config.tables.clone()), config })
    }
}

impl Ledger {
    /// The settings that are in force for a call that would come now.
    ///
    /// # Errors
    ///
    /// [`CannotRun::Settings`] where they cannot be read; the log says why.
    pub async fn settings(&self) -> Result<Arc<Snapshot>, CannotRun> {
        let Config { networks, catalogue, function, .. } = self.config.clone();
        let in_force = InForce::new(Snapshot { version: None, networks, catalogue }, function);
        in_force.look(&self.store, deadline()).await.snapshot.ok_or(CannotRun::Settings)
    }

    /// Reads an amount as a person writes it: exactly, or not at all.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn amount(&self, text: &str) -> Result<Amount, String> {
        let received = Received::read(text).map_err(|problem| problem.to_string())?;
        let scale = self.config.coins.scale;
        let kept = received.cut(scale).map_err(|problem| problem.to_string())?;
        let written = Scale::new(Scale::MAX).and_then(|scale| received.cut(scale).ok());
        // What a network sends is cut. What a person writes is meant.
        if written == Some(kept) { Ok(kept) } else { Err(format!("a coin has {} decimals", scale.decimals())) }
    }
}

/// When a request that begins now is given up.
pub fn deadline() -> Instant {
    Instant::now() + PATIENCE
}

/// Who decides something, `by` or else the shell's user, and why.
///
/// # Errors
///
/// [`CannotRun::Nobody`], and [`CannotRun::Argument`] for a name or a reason that is empty, too long or not one line.
pub fn decision(
    by: Option<&str>,
    reason: &str,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<Decision, CannotRun> {
    let user = || environment("USER").filter(|user| !user.is_empty());
    let by = by.map(str::to_owned).or_else(user).ok_or(CannotRun::Nobody)?;
    let line = |argument, text: &str, max: usize| {
        let text = text.trim();
        let problem = match text.len() {
            0 => "say it in a few words".to_owned(),
            _ if text.chars().any(char::is_control) => "not one line of text".to_owned(),
            length if length > max => format!("{length} bytes, and at most {max} are kept"),
            _ => return Ok(text.to_owned()),
        };
        Err(CannotRun::argument(argument, text, problem))
    };
    Ok(Decision { by: line("--by", &by, BY_MAX)?, reason: line("--reason", reason, REASON_MAX)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem<T: std::fmt::Debug>(result: Result<T, CannotRun>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn without_credentials_the_one_line_says_what_to_set() {
        let nothing = problem(Ledger::connect(|_| None, false));
        assert!(nothing.starts_with("AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY: not set; "), "{nothing}");
        assert!(nothing.contains("aws configure export-credentials") && nothing.contains("--local"), "{nothing}");
        let shell = |name: &str| (name != "AWS_REGION" && name.starts_with("AWS_")).then(|| "x".to_owned());
        let region = problem(Ledger::connect(|name| shell(name).filter(|_| name != "AWS_DEFAULT_REGION"), false));
        assert!(region.starts_with("AWS_REGION: not set; "), "{region}");
    }

    #[test]
    fn local_reaches_the_ledger_of_this_machine_whatever_the_shell_is_set_up_for() {
        let shell = |name: &str| name.starts_with("AWS_").then(|| "https://real".to_owned());
        let aws = Ledger::connect(shell, true).unwrap().config.aws;
        assert_eq!((aws.dynamodb_endpoint.as_deref(), aws.region.as_str()), (Some(LOCAL_DYNAMODB), ANY));
        assert!(!format!("{aws:?}").contains("real"));
    }

    #[test]
    fn somebody_decides_for_a_reason_of_one_line() {
        let user = |name: &str| (name == "USER").then(|| "ana".to_owned());
        let decided = |by: Option<&str>, reason: &str| decision(by, reason, user);
        let of = |by: &str| Decision { by: by.into(), reason: "they paid twice".into() };
        assert_eq!(decided(None, " they paid twice ").unwrap(), of("ana"));
        assert_eq!(decided(Some("bob"), "they paid twice").unwrap(), of("bob"));
        assert!(matches!(decision(None, "x", |_| None), Err(CannotRun::Nobody)));
        assert_eq!(problem(decided(None, " ")), "--reason: ``: say it in a few words");
        assert_eq!(problem(decided(None, "a\nb")), "--reason: `a\\nb`: not one line of text");
        assert!(problem(decided(None, &"r".repeat(257))).ends_with("257 bytes, and at most 256 are kept"));
        assert!(problem(decided(Some(&"b".repeat(65)), "x")).starts_with("--by: "));
    }
}
