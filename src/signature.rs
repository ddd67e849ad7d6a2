//! The closed set of signing recipes: which bytes a network signs, how, and whether a request carries the right
//! signature.
//!
//! Works on the bytes as they were on the wire; what is decoded or encoded again is so because the network signs it so.
//! Never tells a caller more than yes or no, and never shows a secret, a signature or a signed byte, except to whoever asks
//! [`Recipe::explain`] about a request of their own, and then with the secrets masked.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use base64::engine::{DecodePaddingMode, general_purpose};
use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use ring::signature::{ECDSA_P256_SHA256_ASN1, UnparsedPublicKey};
use secrecy::{ExposeSecret, SecretString};
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};
use subtle::ConstantTimeEq;

use crate::event::Request;
use crate::fields::{Carrier, Doubt, Fields, Value};

mod message; // the bytes that are signed

use message::Part;

pub use message::{FORMS, Form, Joining, Message, MessageError};

/// How a network signs, as its preset says.
#[derive(Debug, Clone)]
pub struct Recipe {
    /// What turns the message into a signature.
    pub algorithm: Algorithm,
    /// The bytes that are signed.
    pub message: Message,
    /// How the signature is written.
    pub encoding: Encoding,
    /// Where the signature stands; nowhere for [`Algorithm::None`].
    pub place: Option<Place>,
    /// The field that says which public key signed.
    pub key_id: Option<String>,
    /// How all fields make a message, where they do.
    pub joining: Joining,
    /// The field that may hold what stands between signed fields: one may, since the others then end where they do.
    pub free: String,
}

/// What turns a message and a secret into a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// Nothing is signed: only the source address speaks for a request.
    None,
    /// The request carries the secret itself.
    Token,
    /// A hash of a message that holds the secret.
    Hash(Hash),
    /// HMAC with the secret as its key.
    Hmac(Hash),
    /// ECDSA on P-256 with SHA-256, DER, by a key of the network's own.
    EcdsaP256,
}

/// A hash function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hash {
    Md5,
    Sha1,
    Sha256,
    Sha512,
}

/// Every algorithm by its name in a preset.
pub const ALGORITHMS: &[(&str, Algorithm)] = &[
    ("none", Algorithm::None),
    ("token", Algorithm::Token),
    ("md5", Algorithm::Hash(Hash::Md5)),
    ("sha1", Algorithm::Hash(Hash::Sha1)),
    ("sha256", Algorithm::Hash(Hash::Sha256)),
    ("hmac-md5", Algorithm::Hmac(Hash::Md5)),
    ("hmac-sha1", Algorithm::Hmac(Hash::Sha1)),
    ("hmac-sha256", Algorithm::Hmac(Hash::Sha256)),
    ("hmac-sha512", Algorithm::Hmac(Hash::Sha512)),
    ("ecdsa-p256", Algorithm::EcdsaP256),
];

/// How a signature is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// Hex digits of either case.
    Hex,
    /// The standard alphabet, padded or not.
    Base64,
    /// The alphabet for URLs, padded or not.
    Base64Url,
}

/// Every encoding by its name in a preset.
pub const ENCODINGS: &[(&str, Encoding)] =
    &[("hex", Encoding::Hex), ("base64", Encoding::Base64), ("base64url", Encoding::Base64Url)];

/// Where a request carries its signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A field of the carrier.
    Field(String),
    /// A header, its name in lower case.
    Header(String),
}

/// What a network signs with, by name: one secret called [`Key::SECRET`], several that go together, or public keys by their
/// id. `Debug` shows none.
#[derive(Debug, Clone, Default)]
pub struct Key(BTreeMap<String, SecretString>);

/// A request as its signature is about it.
#[derive(Clone, Copy)]
pub struct Wire<'a> {
    /// Its method, URL and headers.
    pub request: &'a Request,
    /// How it carries its fields.
    pub carrier: Carrier,
    /// Its fields; none where they could not be read.
    pub fields: &'a Fields<'a>,
    /// Its body as it was on the wire; empty for a GET.
    pub body: &'a [u8],
}

/// Why no key in force signed a request: for logs and for whoever integrates a network, never for the caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadSignature {
    #[error("no secret is configured for this network")]
    NoKey,
    #[error("the signature is missing or doubled: it belongs into the {0}")]
    NotThere(String),
    #[error("the signature is not written in {0}")]
    NotEncoded(&'static str),
    #[error("the signature does not end the query")]
    NotLast,
    #[error(
        "the query is signed as it is decoded, and with a `+`, a `%26` or an `=` in a name it could be another one"
    )]
    Ambiguous,
    #[error("no secret of the name `{0}` is configured for this network")]
    NoSecret(String),
    #[error("no public key with the id that the request names is configured for this network")]
    UnknownKey,
    #[error("the public key with the id that the request names is no base64 of a P-256 key (SPKI)")]
    NoPublicKey,
    #[error("the field {0} is signed, and {1}")]
    Field(String, Doubt),
    #[error("the signature is another one")]
    Other,
}

/// How a request was verified, for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The bytes that were signed, each secret as `<its name>`; `None` where a field is missing, or nothing is signed.
    pub message: Option<Vec<u8>>,
    /// What came of each key in force, in their order.
    pub keys: Vec<Result<(), BadSignature>>,
    /// What came of all of them.
    pub verdict: Result<(), BadSignature>,
}

impl BadSignature {
    /// Whether another key could verify the request.
    pub fn may_be_cured(&self) -> bool {
        match self {
            BadSignature::NoKey
            | BadSignature::NoSecret(_)
            | BadSignature::UnknownKey
            | BadSignature::NoPublicKey
            | BadSignature::Other => true,
            BadSignature::NotThere(_)
            | BadSignature::NotEncoded(_)
            | BadSignature::NotLast
            | BadSignature::Ambiguous
            | BadSignature::Field(..) => false,
        }
    }
}

impl Key {
    /// The name of a secret that stands alone.
    pub const SECRET: &str = "secret";

    /// Secrets that go together, by name.
    pub fn of(secrets: impl IntoIterator<Item = (String, SecretString)>) -> Key {
        Key(secrets.into_iter().collect())
    }

    /// Whether it has a secret in common with another one.
    pub fn shares_with(&self, other: &Key) -> bool {
        self.0.values().any(|one| other.0.values().any(|other| one.expose_secret() == other.expose_secret()))
    }

    /// Every secret with its name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &SecretString)> {
        self.0.iter().map(|(name, secret)| (name.as_str(), secret))
    }

    fn get(&self, name: &str) -> Option<&[u8]> {
        self.0.get(name).map(|secret| secret.expose_secret().as_bytes())
    }
}

impl From<&str> for Key {
    fn from(secret: &str) -> Key {
        Key::of([(Key::SECRET.to_owned(), secret.into())])
    }
}

impl Recipe {
    /// Checks that one of the keys in force signed this request. Without a key nothing verifies, except where nothing is
    /// signed at all.
    ///
    /// Comparing takes the same time wherever two signatures differ.
    ///
    /// # Errors
    ///
    /// [`BadSignature`] says why, for the last key where several were tried.
    pub fn verify(&self, keys: &[Key], wire: &Wire<'_>) -> Result<(), BadSignature> {
        if self.algorithm == Algorithm::None {
            return Ok(());
        }
        let presented = self.presented(wire)?;
        // Every key is tried, so that the time does not tell which one was right.
        let tried: Vec<_> = keys.iter().map(|key| self.verify_with(key, wire, &presented)).collect();
        if tried.iter().any(Result::is_ok) {
            return Ok(());
        }
        tried.into_iter().last().unwrap_or(Err(BadSignature::NoKey))
    }

    /// The same, with what a person needs to find the reason.
    pub fn explain(&self, keys: &[Key], wire: &Wire<'_>) -> Explanation {
        let masked = |name: &str| Ok(format!("<{name}>").into_bytes());
        let signs = !matches!(self.algorithm, Algorithm::None | Algorithm::Token);
        let message = self.message(wire, &masked).ok().filter(|_| signs);
        let keys = match self.presented(wire) {
            Ok(presented) => keys.iter().map(|key| self.verify_with(key, wire, &presented)).collect(),
            Err(_) => Vec::new(),
        };
        let verdict = match (self.verify_message(wire), self.algorithm) {
            (_, Algorithm::None) => Ok(()),
            (Err(why), _) => Err(why),
            (Ok(()), _) if keys.iter().any(Result::is_ok) => Ok(()),
            (Ok(()), _) => keys.last().cloned().unwrap_or(Err(BadSignature::NoKey)),
        };
        Explanation { message, keys, verdict }
    }

    /// Whether a message can be made of the request at all, whatever the secrets.
    fn verify_message(&self, wire: &Wire<'_>) -> Result<(), BadSignature> {
        if self.algorithm != Algorithm::None {
            self.presented(wire)?;
        }
        self.message(wire, &|_| Ok(Vec::new()))?;
        Ok(())
    }

    /// Whether a key holds what this recipe needs.
    pub fn can_use(&self, key: &Key) -> bool {
        match self.algorithm {
            Algorithm::None => true,
            Algorithm::Token => key.get(Key::SECRET).is_some(),
            Algorithm::EcdsaP256 => key.iter().any(|(name, _)| name != Key::SECRET),
            Algorithm::Hash(_) => self.message.secrets().into_iter().all(|name| key.get(name).is_some()),
            Algorithm::Hmac(_) => {
                let named = self.message.secrets().into_iter().all(|name| key.get(name).is_some());
                named && key.get(Key::SECRET).is_some()
            }
        }
    }

    /// The signature of an unsigned request, as it is written; for examples and tests.
    ///
    /// # Errors
    ///
    /// [`BadSignature`] where a signed field or a secret is missing, and always for what only the network can sign.
    pub fn sign(&self, key: &Key, wire: &Wire<'_>) -> Result<String, BadSignature> {
        let secret = key.get(Key::SECRET).ok_or_else(|| BadSignature::NoSecret(Key::SECRET.to_owned()));
        match self.algorithm {
            Algorithm::None => Ok(String::new()),
            Algorithm::Token => Ok(String::from_utf8_lossy(secret?).into_owned()),
            Algorithm::Hash(hash) => Ok(self.encoding.encode(&hash.of(&self.keyed(key, wire)?))),
            Algorithm::Hmac(hash) => Ok(self.encoding.encode(&hash.hmac(secret?, &self.keyed(key, wire)?))),
            Algorithm::EcdsaP256 => Err(BadSignature::UnknownKey),
        }
    }

    /// Whether nobody but the network can change that field. `is_fixed` says which fields always have the same length: where
    /// fields run together without anything between them, a digit of one could be moved to the next, and the hash would be
    /// the same.
    pub fn covers(&self, carrier: Carrier, name: &str, is_fixed: &dyn Fn(&str) -> bool) -> bool {
        let is_signature = self.place == Some(Place::Field(name.to_owned())) || self.key_id.as_deref() == Some(name);
        if matches!(self.algorithm, Algorithm::None | Algorithm::Token) || is_signature {
            return false;
        }
        // Behind a secret that only begins it, a plain hash can be made to cover more than the network signed.
        let closed = !matches!(self.algorithm, Algorithm::Hash(_)) || self.message.ends_secret();
        let whole = |part: &Part| match part {
            Part::Query(_) | Part::Url(_) => carrier == Carrier::Query,
            Part::Body => carrier != Carrier::Query,
            Part::All { .. } => self.joining.covers(name),
            Part::Literal(_) | Part::Secret(_) | Part::Field(..) => false,
        };
        (closed && self.message.parts().any(whole)) || self.message.covers(name, is_fixed, closed)
    }

    /// The signature as the request carries it.
    fn presented(&self, wire: &Wire<'_>) -> Result<Vec<u8>, BadSignature> {
        let presented = match &self.place {
            Some(Place::Field(name)) => wire.fields.once(name).ok().map(|value| value.unescaped().into_owned()),
            Some(Place::Header(name)) => wire.request.header(name).map(|value| value.trim().as_bytes().to_vec()),
            None => None,
        };
        presented.filter(|presented| !presented.is_empty()).ok_or_else(|| BadSignature::NotThere(self.place_name()))
    }

    fn place_name(&self) -> String {
        match &self.place {
            Some(Place::Field(name)) => format!("parameter {name}"),
            Some(Place::Header(name)) => format!("header {name}"),
            None => "parameter".to_owned(),
        }
    }

    fn verify_with(&self, key: &Key, wire: &Wire<'_>, presented: &[u8]) -> Result<(), BadSignature> {
        let secret = || key.get(Key::SECRET).ok_or_else(|| BadSignature::NoSecret(Key::SECRET.to_owned()));
        let same = |expected: &[u8], presented: &[u8]| match bool::from(expected.ct_eq(presented)) {
            true => Ok(()),
            false => Err(BadSignature::Other),
        };
        match self.algorithm {
            Algorithm::None => Ok(()),
            Algorithm::Token => same(secret()?, presented),
            Algorithm::Hash(hash) => same(&hash.of(&self.keyed(key, wire)?), &self.encoding.decode(presented)?),
            Algorithm::Hmac(hash) => {
                same(&hash.hmac(secret()?, &self.keyed(key, wire)?), &self.encoding.decode(presented)?)
            }
            Algorithm::EcdsaP256 => {
                let id = self.key_id.as_deref().and_then(|field| wire.fields.once(field).ok()).map(Value::lossy);
                let spki = id.and_then(|id| key.get(&id)).ok_or(BadSignature::UnknownKey)?;
                let point = p256_point(spki).ok_or(BadSignature::NoPublicKey)?;
                let signature = self.encoding.decode(presented)?;
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, point)
                    .verify(&self.keyed(key, wire)?, &signature)
                    .map_err(|_| BadSignature::Other)
            }
        }
    }

    /// The message with the secrets of one key in it.
    fn keyed(&self, key: &Key, wire: &Wire<'_>) -> Result<Vec<u8>, BadSignature> {
        self.message(wire, &|name| {
            key.get(name).map(<[u8]>::to_vec).ok_or_else(|| BadSignature::NoSecret(name.to_owned()))
        })
    }
}

/// The point of a P-256 public key in base64 of its SPKI, which for this curve is one fixed beginning and the point.
fn p256_point(spki: &[u8]) -> Option<Vec<u8>> {
    const BEGINNING: &[u8] = &[
        0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48,
        0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
    ];
    let spki = BASE64.decode(spki).ok()?;
    spki.strip_prefix(BEGINNING).filter(|point| point.len() == 65).map(<[u8]>::to_vec)
}

impl Hash {
    fn of(self, message: &[u8]) -> Vec<u8> {
        match self {
            Hash::Md5 => Md5::digest(message).to_vec(),
            Hash::Sha1 => Sha1::digest(message).to_vec(),
            Hash::Sha256 => Sha256::digest(message).to_vec(),
            Hash::Sha512 => Sha512::digest(message).to_vec(),
        }
    }

    fn hmac(self, key: &[u8], message: &[u8]) -> Vec<u8> {
        fn with<M: KeyInit + Mac>(key: &[u8], message: &[u8]) -> Vec<u8> {
            let mut mac = <M as KeyInit>::new_from_slice(key).expect("HMAC takes a key of any length");
            mac.update(message);
            mac.finalize().into_bytes().to_vec()
        }
        match self {
            Hash::Md5 => with::<Hmac<Md5>>(key, message),
            Hash::Sha1 => with::<Hmac<Sha1>>(key, message),
            Hash::Sha256 => with::<Hmac<Sha256>>(key, message),
            Hash::Sha512 => with::<Hmac<Sha512>>(key, message),
        }
    }
}

const EITHER: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const BASE64: GeneralPurpose = GeneralPurpose::new(&base64::alphabet::STANDARD, EITHER);
const BASE64_URL: GeneralPurpose = GeneralPurpose::new(&base64::alphabet::URL_SAFE, EITHER);

impl Encoding {
    fn decode(self, text: &[u8]) -> Result<Vec<u8>, BadSignature> {
        let decoded = match self {
            Encoding::Hex => hex::decode(text).ok(),
            Encoding::Base64 => BASE64.decode(text).ok(),
            Encoding::Base64Url => BASE64_URL.decode(text).ok(),
        };
        decoded.ok_or(BadSignature::NotEncoded(self.name()))
    }

    fn encode(self, bytes: &[u8]) -> String {
        match self {
            Encoding::Hex => hex::encode(bytes),
            Encoding::Base64 => BASE64.encode(bytes),
            Encoding::Base64Url => general_purpose::URL_SAFE_NO_PAD.encode(bytes),
        }
    }

    fn name(self) -> &'static str {
        ENCODINGS.iter().find(|(_, encoding)| *encoding == self).map_or("", |(name, _)| name)
    }
}
