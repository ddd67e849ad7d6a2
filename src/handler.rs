//! The one control flow: read, plan, post, answer, log. What all contracts share of it is here; what is peculiar to one is
//! in a part of its own.
//!
//! Decides nothing: contracts decide, the store moves. Never answers that money moved before the commit, never lets a
//! panic or a fault of ours look like an answer about money, and never logs a secret, a query or a signature.

mod offerwall; // postbacks
mod wallet; // calls of a wallet

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;
use tracing::{error, warn};

use crate::config::{Config, SecretsFrom};
use crate::event::{Answer, Request};
use crate::gate::{Barred, Rejection};
use crate::id::{Currency, Network, TransId, UserId};
use crate::in_force::{InForce, Snapshot};
use crate::ledger::{Case, Status};
use crate::log;
use crate::metrics::{Line, Moved};
use crate::preset::{Preset, SourceMode};
use crate::secrets::{Keyring, Refreshed, Secrets, Vault, VaultError};
use crate::signature::Key;
use crate::store::Store;
use crate::tally::{self, Tally};

/// The longest that reading the secrets may take; in a call, its deadline comes first.
const SECRETS_BUDGET: Duration = Duration::from_secs(4);

/// Everything that a call needs, made once at the start.
#[derive(Debug)]
pub struct App {
    config: Config,
    store: Store,
    keyring: Keyring,
    in_force: InForce,
    accounts: wallet::Accounts,
}

/// What became of a call, for whoever watches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handled {
    /// What the caller hears.
    pub answer: Answer,
    /// The network that the call's path leads to.
    pub network: Option<Network>,
    /// What the call is about, once it is verified and read.
    pub subject: Option<Subject>,
    /// A word for what happened, the same in logs and on a terminal.
    pub outcome: &'static str,
    /// Why a request was refused, without anything of its values.
    pub why: Option<String>,
    /// Whether the network does not send again after this answer.
    pub r#final: bool,
    /// Whether the call was verified and read, whatever came of it.
    pub understood: bool,
    /// What it moved.
    pub moved: Option<Moved>,
    /// The cases that it opened.
    pub cases: Vec<Case>,
    /// What it asked of DynamoDB.
    pub tally: Tally,
}

/// What a call is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The conversation.
    pub trans_id: TransId,
    /// The entry of it.
    pub status: Status,
    /// What the call says happened, in a word.
    pub class: &'static str,
    /// The user as the caller named it.
    pub user: UserId,
    /// The currency of the account.
    pub currency: Currency,
}

impl Handled {
    /// A call that leads to no contract.
    pub fn not_a_request(status: u16, why: String) -> Handled {
        Handled::new(Answer::new(status, why), "not_a_request")
    }

    fn new(answer: Answer, outcome: &'static str) -> Handled {
        Handled {
            answer,
            network: None,
            subject: None,
            outcome,
            why: None,
            r#final: false,
            understood: false,
            moved: None,
            cases: Vec::new(),
            tally: Tally::default(),
        }
    }
}

impl App {
    /// Connects a configuration to its tables, settings and secrets. The connection to DynamoDB is then open, so that the
    /// first postback does not wait for it; settings that cannot be read now are left to the first call.
    ///
    /// # Errors
    ///
    /// [`VaultError`] when the secrets cannot be read from Secrets Manager.
    pub async fn start(mut config: Config) -> Result<App, VaultError> {
        let store = Store::new(config.aws.dynamodb(config.time_budget), config.tables.clone());
        let variables = Snapshot {
            version: None,
            networks: std::mem::take(&mut config.networks),
            catalogue: std::mem::take(&mut config.catalogue),
        };
        let in_force = InForce::new(variables, config.function.clone());
        let deadline = Instant::now() + config.time_budget;
        let (keyring, looked) = tokio::join!(keyring(&config), in_force.look(&store, deadline));
        let app = App { keyring: keyring?, config, store, in_force, accounts: wallet::Accounts::default() };
        if let Some(snapshot) = &looked.snapshot {
            app.warn_about_secrets(snapshot);
        }
        Ok(app)
    }

    /// Warns about networks in force that no secret fits, and about secrets that fit no network.
    fn warn_about_secrets(&self, Snapshot { networks, catalogue, .. }: &Snapshot) {
        let secrets = self.keyring.secrets();
        let secretless = |preset: &&Preset| {
            let mut keys = secrets.of(&preset.network).iter();
            preset.needs_secret() && !keys.any(|key| preset.signature.can_use(key))
        };
        for preset in networks.iter().filter(secretless) {
            warn!(network = %preset.network, "no secret is configured, or not what this network signs with: every postback of it is refused");
        }
        let enabled = |name: &str| networks.iter().any(|preset| preset.network.as_str() == name);
        // A name that no network has may be a secret in the wrong place.
        for name in secrets.networks().filter(|name| !enabled(name)) {
            let network = catalogue.names().into_iter().find(|known| known == name);
            warn!(network, "a secret is configured for a network that is not enabled, or for none that there is");
        }
        for (one, other) in secrets.shared(networks) {
            warn!(
                networks = format!("{one} {other}"),
                "two networks have the same secret: what one signs may be taken for the other's, and paid again"
            );
        }
    }

    /// What is in force, without a look for newer settings; `None` where the settings could not be read yet.
    pub fn in_force(&self) -> Option<Arc<Snapshot>> {
        self.in_force.snapshot()
    }

    /// The ledger.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Answers a function URL's event within `patience` or the time budget, whichever is shorter, as the contract says that
    /// `answer` stands for, and logs its line.
    async fn answered(
        &self,
        event: &str,
        patience: Duration,
        answer: impl AsyncFnOnce(&Request, Instant) -> Handled,
    ) -> Handled {
        let started = Instant::now();
        let deadline = started + self.config.time_budget.min(patience);
        let (handled, tally) = tally::counted(async {
            match Request::read(event) {
                Ok(request) => answer(&request.behind(&self.config.front), deadline).await,
                Err(error) => {
                    warn!(error = %error, "an event that is not a request");
                    Handled::not_a_request(400, error.to_string())
                }
            }
        })
        .await;
        let handled = Handled { tally, ..handled };
        log::call(|| self.line(&handled, started.elapsed()).json());
        handled
    }

    /// The line of a call.
    fn line<'a>(&'a self, handled: &'a Handled, took: Duration) -> Line<'a> {
        Line {
            at: Timestamp::now(),
            function: &self.config.function,
            network: handled.network.as_ref().map(Network::as_str),
            trans_id: handled.subject.as_ref().map(|subject| subject.trans_id.as_str()),
            class: handled.subject.as_ref().map(|subject| subject.class),
            outcome: handled.outcome,
            why: handled.why.as_deref(),
            r#final: handled.r#final,
            understood: handled.understood,
            moved: handled.moved.as_ref(),
            cases: &handled.cases,
            status: handled.answer.status,
            took,
            requests: handled.tally.requests,
            retries: handled.tally.retries,
        }
    }

    /// What is in force for a call that begins now; `None` while nobody knows.
    async fn look(&self, deadline: Instant) -> Option<Arc<Snapshot>> {
        let looked = self.in_force.look(&self.store, deadline).await;
        if let (true, Some(snapshot)) = (looked.new, &looked.snapshot) {
            self.warn_about_secrets(snapshot);
        }
        looked.snapshot
    }

    /// Reads a request of a network with the secrets in force and, where these do not verify it, with newer ones.
    async fn read<T, W: Display>(
        &self,
        preset: &Preset,
        request: &Request,
        deadline: Instant,
        read: impl Fn(&[Key]) -> Result<T, Rejection<W>>,
    ) -> Result<Result<T, Rejection<W>>, Unverifiable> {
        let mut result = read(self.keyring.secrets().of(&preset.network));
        if let Err(Rejection::Barred(Barred::BadSignature(why))) = &result
            && why.may_be_cured()
            && let Some(secrets) = self.newer_secrets(deadline).await?
        {
            result = read(secrets.of(&preset.network));
        }
        let verified = result.as_ref().err().and_then(Rejection::barred).is_none_or(Barred::is_verified);
        if verified && preset.source.mode != SourceMode::Off && !preset.source.lists(&request.source_ip) {
            warn!(
                network = preset.network.as_str(),
                source_ip = request.source_ip,
                "a verified request from an address that is not on the network's list"
            );
        }
        Ok(result)
    }

    /// Secrets that were put in force after those that did not verify a request.
    async fn newer_secrets(&self, deadline: Instant) -> Result<Option<Arc<Secrets>>, Unverifiable> {
        match tokio::time::timeout_at(deadline, self.keyring.refresh()).await {
            Ok(Refreshed::Newer(secrets)) => Ok(Some(secrets)),
            Ok(Refreshed::Nothing) => Ok(None),
            Ok(Refreshed::Unknown(problem)) => {
                if let Some(problem) = problem {
                    error!(error = %problem, "newer secrets cannot be read; those in force stay");
                }
                Err(Unverifiable)
            }
            Err(_) => Err(Unverifiable),
        }
    }
}

/// The secrets, read for the first time.
async fn keyring(config: &Config) -> Result<Keyring, VaultError> {
    match &config.secrets {
        SecretsFrom::Environment(secrets) => Ok(Keyring::fixed(secrets.clone())),
        SecretsFrom::SecretsManager { arn } => {
            let client = config.aws.secrets_manager(SECRETS_BUDGET);
            Keyring::open(Vault { client, arn: arn.clone() }).await
        }
    }
}

/// No known secret verifies a request, and whether a newer one would cannot be told now.
struct Unverifiable;
