//! The way to AWS: credentials, endpoint, trusted roots and time limits, as the configuration of an SDK client.
//!
//! Takes what Lambda gives a function in its environment and nothing else: no credentials chain, no profile, no
//! metadata service. Building that chain is most of what a plain function spends at its start, and a function needs
//! none of it.

use std::time::Duration;

use aws_credential_types::Credentials;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{
    BehaviorVersion, IdentityCache, Region, SharedHttpClient, StalledStreamProtectionConfig,
};
use aws_smithy_http_client::Builder;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_http_client::tls::{Provider, TlsContext, TrustStore};
use secrecy::{ExposeSecret, SecretString};

use crate::tally;

/// The roots that AWS endpoints chain to.
const ROOTS: &str = include_str!("roots.pem");

/// How many attempts that stall fit into a time budget: one that does is given up while there is still time for another.
const STALLS: u32 = 3;

/// The longest that opening a connection may take.
const CONNECT_MAX: Duration = Duration::from_millis(700);

/// How long an idle connection is kept. Between two calls a function is frozen, and its connections age unseen.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// What the environment says about AWS. `Debug` shows no secret.
#[derive(Debug, Clone)]
pub struct Aws {
    /// The region, such as `eu-west-1`.
    pub region: String,
    /// The id of the access key.
    pub access_key_id: String,
    /// The secret of the access key.
    pub secret_access_key: SecretString,
    /// The token of temporary credentials, which Lambda's are.
    pub session_token: Option<SecretString>,
    /// Another endpoint for DynamoDB, such as a local one.
    pub dynamodb_endpoint: Option<String>,
    /// Another endpoint for Secrets Manager.
    pub secrets_manager_endpoint: Option<String>,
    /// More roots to trust, as PEM.
    pub extra_roots: Option<String>,
}

/// Sets what both SDK clients have in common; their builders share no trait.
macro_rules! configure {
    ($builder:expr, $aws:expr, $http:expr, $endpoint:expr, $budget:expr) => {{
        let aws: &Aws = $aws;
        let mut builder = $builder
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new(aws.region.clone()))
            .credentials_provider(aws.credentials())
            .identity_cache(IdentityCache::no_cache())
            .http_client($http)
            .timeout_config(timeouts($budget))
            .retry_config(retries())
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled());
        builder.set_endpoint_url($endpoint.clone());
        builder.build()
    }};
}

impl Aws {
    /// A DynamoDB client whose every operation ends within `budget`, and whose requests a call counts.
    pub fn dynamodb(&self, budget: Duration) -> aws_sdk_dynamodb::Client {
        let builder = aws_sdk_dynamodb::Config::builder().interceptor(tally::Requests);
        let config = configure!(builder, self, self.http_client(), self.dynamodb_endpoint, budget);
        aws_sdk_dynamodb::Client::from_conf(config)
    }

    /// A Secrets Manager client whose every operation ends within `budget`.
    pub fn secrets_manager(&self, budget: Duration) -> aws_sdk_secretsmanager::Client {
        let builder = aws_sdk_secretsmanager::Config::builder();
        let config = configure!(builder, self, self.http_client(), self.secrets_manager_endpoint, budget);
        aws_sdk_secretsmanager::Client::from_conf(config)
    }

    fn credentials(&self) -> Credentials {
        let token = self.session_token.as_ref().map(|token| token.expose_secret().to_owned());
        Credentials::new(&self.access_key_id, self.secret_access_key.expose_secret(), token, None, "environment")
    }

    fn http_client(&self) -> SharedHttpClient {
        let mut roots = TrustStore::empty().with_pem_certificate(ROOTS);
        if let Some(extra) = &self.extra_roots {
            roots = roots.with_pem_certificate(extra.as_str());
        }
        let tls =
            TlsContext::builder().with_trust_store(roots).build().expect("a trust store of PEM texts is a TLS context");
        Builder::new()
            .pool_idle_timeout(IDLE_MAX)
            .tls_provider(Provider::Rustls(CryptoMode::Ring))
            .tls_context(tls)
            .build_https()
    }
}

/// The SDK sets no such limits itself.
fn timeouts(budget: Duration) -> TimeoutConfig {
    let attempt = budget / STALLS;
    TimeoutConfig::builder()
        .connect_timeout(CONNECT_MAX.min(attempt))
        .operation_attempt_timeout(attempt)
        .operation_timeout(budget)
        .build()
}

/// The SDK repeats what failed on the way (connections, timeouts, 5xx, throttled requests) with the same client token,
/// so that a reply lost after the commit is a success. Cancelled transactions it does not repeat: the store does.
fn retries() -> RetryConfig {
    RetryConfig::standard()
        .with_max_attempts(6)
        .with_initial_backoff(Duration::from_millis(40))
        .with_max_backoff(Duration::from_millis(400))
}

/// An error with all its causes, on one line. Never an error's `Debug`, which holds the reply, and with it a secret.
pub fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
