//! Ids that cannot be mixed up: networks, conversations, users, currencies and cases.
//!
//! Each is a text that passed its rule once, where it entered. This file never decides what an id means.

use std::fmt;

/// What the name of an account begins with that belongs to no user.
const SUSPENSE: &str = "suspense/";

/// Why a text is not an id. `Display` is written for the person who set the network's postback up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    #[error("empty")]
    Empty,
    #[error("longer than {0} bytes")]
    TooLong(usize),
    #[error("contains a control character")]
    ControlCharacter,
    #[error("not made of lower-case letters, digits and hyphens")]
    NotAName,
    #[error("not made of letters, digits, hyphens and underscores")]
    NotACurrency,
    #[error("begins with `suspense/`, which is kept for money without a user")]
    Reserved,
}

/// A text of at most `max` bytes without control characters, as a caller chose it.
fn text(value: &str, max: usize) -> Result<String, IdError> {
    if value.is_empty() {
        return Err(IdError::Empty);
    }
    if value.len() > max {
        return Err(IdError::TooLong(max));
    }
    if value.chars().any(char::is_control) {
        return Err(IdError::ControlCharacter);
    }
    Ok(value.to_owned())
}

/// Declares an id: its rule is the only way in, and it prints as it was given.
macro_rules! id {
    ($(#[$doc:meta])* $name:ident($value:ident) $rule:block) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// Takes a text that keeps this id's rule.
            ///
            /// # Errors
            ///
            /// [`IdError`] says which part of the rule the text breaks.
            pub fn new($value: &str) -> Result<$name, IdError> {
                $rule.map($name)
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id! {
    /// A network's name, which is also its preset's and its path: lower-case letters, digits and hyphens, at most 24 bytes.
    Network(value) {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        text(value, 24).and_then(|name| if name.bytes().all(plain) { Ok(name) } else { Err(IdError::NotAName) })
    }
}

id! {
    /// Our id of a conversation: `<network>/<the network's id>`. No two networks can share one, since a network's name has no `/`.
    TransId(value) { text(value, 24 + 1 + TransId::RECEIVED_MAX) }
}

id! {
    /// A user of the app, exactly as the app named it to the network: leading zeros and case belong to it.
    UserId(value) {
        if value.starts_with(SUSPENSE) { Err(IdError::Reserved) } else { text(value, 128) }
    }
}

id! {
    /// A currency of an account, such as `coins`: letters, digits, hyphens and underscores, at most 16 bytes.
    Currency(value) {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        text(value, 16).and_then(|name| if name.bytes().all(plain) { Ok(name) } else { Err(IdError::NotACurrency) })
    }
}

id! {
    /// Our id of a game's round: `<network>/<the network's id>`.
    RoundId(value) { text(value, 24 + 1 + RoundId::RECEIVED_MAX) }
}

impl RoundId {
    /// Most bytes of a round's id that a network chose.
    pub const RECEIVED_MAX: usize = 64;

    /// The id of the round that `network` calls `received`.
    ///
    /// # Errors
    ///
    /// [`IdError`] says what is wrong with the received id.
    pub fn of(network: &Network, received: &str) -> Result<RoundId, IdError> {
        text(received, RoundId::RECEIVED_MAX).map(|received| RoundId(format!("{network}/{received}")))
    }
}

impl UserId {
    /// Who holds a network's money that must not reach its user yet.
    pub fn suspense(network: &Network) -> UserId {
        UserId(format!("{SUSPENSE}{network}"))
    }

    /// Whether it is one that only we may name.
    pub fn is_suspense(&self) -> bool {
        self.0.starts_with(SUSPENSE)
    }

    /// Reads a stored user, also one of those that only we may name. `None` when it is not one.
    pub fn stored(value: &str) -> Option<UserId> {
        let value = text(value, 128).ok()?;
        Some(UserId(value))
    }
}

impl TransId {
    /// Most bytes of an id that a network chose.
    pub const RECEIVED_MAX: usize = 128;

    /// The id of the conversation that `network` calls `received`.
    ///
    /// # Errors
    ///
    /// [`IdError`] says what is wrong with the received id.
    pub fn of(network: &Network, received: &str) -> Result<TransId, IdError> {
        TransId::received_by(network.as_str(), received)
    }

    /// The same of what is no network and has none's name.
    pub(crate) fn received_by(network: &str, received: &str) -> Result<TransId, IdError> {
        text(received, TransId::RECEIVED_MAX).map(|received| TransId(format!("{network}/{received}")))
    }

    /// The id of a conversation without its network: what the network calls it.
    pub fn received(&self) -> &str {
        self.0.split_once('/').map_or("", |(_, received)| received)
    }

    /// The network that the conversation belongs to.
    pub fn network(&self) -> &str {
        self.0.split_once('/').map_or("", |(network, _)| network)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_spaces_of_two_networks_never_overlap() {
        let one = TransId::of(&Network::new("a").unwrap(), "b/c").unwrap();
        let other = TransId::of(&Network::new("a-b").unwrap(), "c").unwrap();
        assert_ne!(one, other);
        assert_eq!((one.as_str(), one.network()), ("a/b/c", "a"));
        assert_eq!(Network::new("a/b"), Err(IdError::NotAName));
    }

    #[test]
    fn ids_are_kept_as_they_were_given_or_refused() {
        assert_eq!(UserId::new("007").unwrap().as_str(), "007");
        assert_eq!(UserId::new(" ü 42 ").unwrap().as_str(), " ü 42 ");
        assert_eq!(UserId::new(""), Err(IdError::Empty));
        assert_eq!(UserId::new("a\u{0}"), Err(IdError::ControlCharacter));
        assert_eq!(UserId::new("a\nb"), Err(IdError::ControlCharacter));
        assert_eq!(UserId::new("suspense/a"), Err(IdError::Reserved));
        assert_eq!(UserId::new(&"u".repeat(129)), Err(IdError::TooLong(128)));
        assert_eq!(Currency::new("US Dollars"), Err(IdError::NotACurrency));
        assert_eq!(Network::new("Standard"), Err(IdError::NotAName));
        assert!(TransId::of(&Network::new("a").unwrap(), &"x".repeat(128)).is_ok());
        assert!(TransId::of(&Network::new("a").unwrap(), &"x".repeat(129)).is_err());
    }
}
