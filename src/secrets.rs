//! The secrets that networks sign with: several may be in force for one network at once, so that they can be rotated.
//!
//! They come from the environment, or from one secret in Secrets Manager that is read again when a signature does not
//! verify. A secret never leaves this crate in a log, an error, a `Debug` or an answer.

use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_sdk_secretsmanager::error::{ProvideErrorMetadata, SdkError};
use secrecy::SecretString;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::error::Category;
use tokio::time::Instant;

use crate::aws::chain;
use crate::id::Network;
use crate::preset::Preset;
use crate::signature::Key;

/// At most one reading of Secrets Manager in this time, however many forged requests come.
pub const REFRESH_EVERY: Duration = Duration::from_secs(60);

/// What each network signs with. `Debug` shows none.
#[derive(Debug, Clone, Default)]
pub struct Secrets(HashMap<String, Vec<Key>>);

/// Why a text is not a set of secrets. Never shows a part of the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SecretsError {
    #[error("not JSON (line {line}, column {column})")]
    NotJson { line: usize, column: usize },
    #[error(
        "not a JSON object of the form {{\"<network>\": \"<secret>\" or {{\"<name>\": \"<secret>\", …}} or a list of these}}"
    )]
    NotAnObject,
    #[error("the value of `{0}` is neither a secret, nor an object of secrets by name, nor a list of these")]
    NotSecrets(String),
    #[error("a secret of `{0}` is empty")]
    Empty(String),
    #[error("a secret of `{0}` begins or ends with white space, such as the newline that `echo` adds")]
    Spaced(String),
    #[error("`{0}`, or a name in it, stands there twice; give it a list of secrets")]
    Twice(String),
}

impl Secrets {
    /// Reads `{"<network>": "<secret>" | {"<name>": "<secret>", …} | [either, …]}`: a secret, several that go together or
    /// public keys by their id, or a list of what is in force at once.
    ///
    /// # Errors
    ///
    /// [`SecretsError`] names the network whose value does not read, and never shows the value.
    pub fn read(text: &str) -> Result<Secrets, SecretsError> {
        let networks: Members<Said> = serde_json::from_str(text).map_err(|error| match error.classify() {
            Category::Data => SecretsError::NotAnObject,
            _ => SecretsError::NotJson { line: error.line(), column: error.column() },
        })?;
        let mut all = HashMap::new();
        for (network, said) in networks.0 {
            let said = match said {
                Said::List(said) => said,
                said => vec![said],
            };
            let keys = said.into_iter().map(|said| key(&network, said)).collect::<Result<_, _>>()?;
            if all.insert(network.clone(), keys).is_some() {
                return Err(SecretsError::Twice(network));
            }
        }
        Ok(Secrets(all))
    }

    /// The networks that have an entry, enabled or not.
    pub fn networks(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Pairs of networks that have a secret in common.
    pub fn shared<'a>(&self, networks: &'a [Preset]) -> Vec<(&'a Network, &'a Network)> {
        let shares = |one: &Network, other: &Network| {
            self.of(one).iter().any(|key| self.of(other).iter().any(|other| key.shares_with(other)))
        };
        // Where the URL is signed, the network's path is: nobody can take it for another's.
        let networks = networks.iter().filter(|preset| !preset.signature.message.takes_url());
        let networks: Vec<_> = networks.map(|preset| &preset.network).collect();
        let pairs = networks.iter().enumerate().flat_map(|(at, one)| networks[..at].iter().map(|other| (*other, *one)));
        pairs.filter(|(one, other)| shares(one, other)).collect()
    }

    /// What is in force for a network; nothing where it has none.
    pub fn of(&self, network: &Network) -> &[Key] {
        self.0.get(network.as_str()).map_or(&[], Vec::as_slice)
    }
}

/// What is said of one network.
#[derive(Deserialize)]
#[serde(untagged)]
enum Said {
    Secret(String),
    Named(Members<Said>),
    List(Vec<Said>),
    Other(IgnoredAny),
}

/// What a network signs with, from one secret or from several by name.
fn key(network: &str, said: Said) -> Result<Key, SecretsError> {
    let secret = |said| match said {
        Said::Secret(text) if text.is_empty() => Err(SecretsError::Empty(network.to_owned())),
        Said::Secret(text) if text.trim() != text => Err(SecretsError::Spaced(network.to_owned())),
        Said::Secret(text) => Ok(SecretString::from(text)),
        Said::Named(_) | Said::List(_) | Said::Other(_) => Err(SecretsError::NotSecrets(network.to_owned())),
    };
    match said {
        Said::Named(secrets) if secrets.0.is_empty() => Err(SecretsError::Empty(network.to_owned())),
        Said::Named(secrets) => {
            let mut named: Vec<(String, SecretString)> = Vec::new();
            for (name, said) in secrets.0 {
                if named.iter().any(|(known, _)| *known == name) {
                    return Err(SecretsError::Twice(network.to_owned()));
                }
                named.push((name, secret(said)?));
            }
            Ok(Key::of(named))
        }
        said => Ok(Key::of([(Key::SECRET.to_owned(), secret(said)?)])),
    }
}

/// The members of a JSON object in their order, also those that stand there twice: easily done in a rotation, and a map
/// would silently keep the last.
struct Members<T>(Vec<(String, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Members<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Members<T>, D::Error> {
        struct Object<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Object<T> {
            type Value = Members<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<T>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Object(PhantomData))
    }
}

/// The secrets in force, and where newer ones come from.
#[derive(Debug)]
pub struct Keyring {
    vault: Option<Vault>,
    state: Mutex<State>,
}

#[derive(Debug, Clone)]
struct State {
    secrets: Arc<Secrets>,
    /// When they were last read, or tried to be read.
    asked_at: Instant,
    /// Whether that reading failed: a signature by a newer secret would then look forged.
    stale: bool,
}

/// One secret in Secrets Manager.
#[derive(Debug, Clone)]
pub struct Vault {
    /// The way to Secrets Manager.
    pub client: aws_sdk_secretsmanager::Client,
    /// Which secret.
    pub arn: String,
}

/// Why Secrets Manager gave no secrets.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    #[error("reading the secret {arn}: {problem}")]
    Unreadable { arn: String, problem: String },
    #[error("the secret {arn}: {source}")]
    Malformed { arn: String, source: SecretsError },
}

/// What looking for newer secrets came to.
#[derive(Debug)]
pub enum Refreshed {
    /// These are in force now, and may verify what the former ones did not.
    Newer(Arc<Secrets>),
    /// There is nothing newer than what the caller has.
    Nothing,
    /// Newer secrets could not be read, now or within the last minute: what does not verify may still be genuine.
    Unknown(Option<VaultError>),
}

impl Keyring {
    /// Secrets that only a deployment can change.
    pub fn fixed(secrets: Secrets) -> Keyring {
        Keyring::new(None, secrets)
    }

    /// Reads the secrets from Secrets Manager for the first time.
    ///
    /// # Errors
    ///
    /// [`VaultError`] when they cannot be read: a function without secrets refuses everything.
    pub async fn open(vault: Vault) -> Result<Keyring, VaultError> {
        let secrets = vault.read().await?;
        Ok(Keyring::new(Some(vault), secrets))
    }

    fn new(vault: Option<Vault>, secrets: Secrets) -> Keyring {
        let state = State { secrets: Arc::new(secrets), asked_at: Instant::now(), stale: false };
        Keyring { vault, state: Mutex::new(state) }
    }

    /// The secrets in force.
    pub fn secrets(&self) -> Arc<Secrets> {
        self.lock().secrets.clone()
    }

    /// Looks for newer secrets, at most once in [`REFRESH_EVERY`], after none of those in force verified a request.
    pub async fn refresh(&self) -> Refreshed {
        let Some(vault) = &self.vault else { return Refreshed::Nothing };
        {
            let mut state = self.lock();
            if state.asked_at.elapsed() < REFRESH_EVERY {
                return if state.stale { Refreshed::Unknown(None) } else { Refreshed::Nothing };
            }
            state.asked_at = Instant::now();
            // Until the answer is there, nobody can tell whether a signature is forged.
            state.stale = true;
        }
        match vault.read().await {
            Ok(secrets) => {
                let secrets = Arc::new(secrets);
                let mut state = self.lock();
                state.secrets = secrets.clone();
                state.stale = false;
                Refreshed::Newer(secrets)
            }
            Err(error) => Refreshed::Unknown(Some(error)),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Vault {
    async fn read(&self) -> Result<Secrets, VaultError> {
        let unreadable = |problem: String| VaultError::Unreadable { arn: self.arn.clone(), problem };
        let output = self.client.get_secret_value().secret_id(&self.arn).send().await;
        let output = output.map_err(|error| unreadable(problem(&error)))?;
        let text = output.secret_string().ok_or_else(|| unreadable("it is binary, not text".into()))?;
        Secrets::read(text).map_err(|source| VaultError::Malformed { arn: self.arn.clone(), source })
    }
}

/// What Secrets Manager said, or what happened on the way to it; never a part of its reply.
fn problem<E, R>(error: &SdkError<E, R>) -> String
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
    R: fmt::Debug,
{
    match error.as_service_error().map(ProvideErrorMetadata::meta) {
        Some(meta) => match meta.code() {
            Some(code) => format!("{code}: {}", meta.message().unwrap_or("no message")),
            None => "its reply does not read".to_owned(),
        },
        None => chain(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_secret_or_several_are_read_for_each_network() {
        let secrets = Secrets::read(r#"{"a": "one", "b": ["two", "three"], "c": []}"#).unwrap();
        let count = |network| secrets.of(&Network::new(network).unwrap()).len();
        assert_eq!([count("a"), count("b"), count("c"), count("d")], [1, 2, 0, 0]);
    }

    #[test]
    fn what_does_not_read_is_told_without_showing_a_secret() {
        let neither = "the value of `a` is neither a secret, nor an object of secrets by name, nor a list of these";
        for (text, expected) in [
            ("hunter2", "not JSON (line 1, column 1)"),
            (
                "[\"hunter2\"]",
                "not a JSON object of the form {\"<network>\": \"<secret>\" or {\"<name>\": \"<secret>\", …} or a list of these}",
            ),
            (r#"{"a": {"hunter2": ["hunter2"]}}"#, neither),
            (r#"{"a": ["hunter2", 7]}"#, neither),
            (r#"{"a": {}}"#, "a secret of `a` is empty"),
            (
                r#"{"a": "hunter2\n"}"#,
                "a secret of `a` begins or ends with white space, such as the newline that `echo` adds",
            ),
            (r#"{"a": {"b": ""}}"#, "a secret of `a` is empty"),
            (r#"{"a": ["hunter2", ""]}"#, "a secret of `a` is empty"),
            (
                r#"{"a": "hunter2", "a": "hunter3"}"#,
                "`a`, or a name in it, stands there twice; give it a list of secrets",
            ),
            (
                r#"{"a": {"b": "hunter2", "b": "hunter3"}}"#,
                "`a`, or a name in it, stands there twice; give it a list of secrets",
            ),
            (r#"{"a": "hunter2"} x"#, "not JSON (line 1, column 18)"),
        ] {
            let error = Secrets::read(text).unwrap_err();
            assert_eq!(error.to_string(), expected);
            assert!(!format!("{error:?}").contains("hunter2"));
        }
        assert!(!format!("{:?}", Secrets::read(r#"{"a": "hunter2"}"#).unwrap()).contains("hunter2"));
    }
}
