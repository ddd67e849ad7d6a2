//! The closed set of signing recipes: which bytes a network signs, how, and whether a request carries the right
//! signature.
//!
//! Works on the bytes as they were on the wire; what is decoded or encoded again is so because the network signs it so.
//! Never tells a caller more than yes or no, and never shows a secret, a signature or a signed byte, except to whoever asks
//! [`Recipe::explain`] about a request of their own, and then with the secrets masked.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use base64::engine::{DecodePaddingMode, general_purpose};
use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode, percent_encode};
use ring::signature::{ECDSA_P256_SHA256_ASN1, UnparsedPublicKey};
use secrecy::{ExposeSecret, SecretString};
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};
use subtle::ConstantTimeEq;

use crate::event::Request;
use crate::fields::{self, Carrier, Doubt, Fields, Pick, PickError, Piece, SingleBrace, Value};

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

/// The bytes that are signed: items, each made of parts, joined by a separator.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Message {
    items: Vec<Vec<Part>>,
    separator: String,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    /// A field, and the texts that stand beside it.
    Field(Pick, Vec<String>),
    /// The secret of that name.
    Secret(String),
    /// The query, without the signature where it stands there.
    Query(Extent),
    /// Origin, path and query, the same.
    Url(Extent),
    Body,
    /// All fields but the signature, sorted by name or in the order in which they were sent.
    All {
        sorted: bool,
    },
}

/// How much of a query or a URL is signed, and in which form.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Extent {
    /// Only what stands before the signature, which ends the query.
    cut: bool,
    /// Percent-decoded, a `+` left as it is.
    decoded: bool,
}

/// How all fields make a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Joining {
    /// Whether names are signed, or only values.
    pub names: bool,
    /// What stands between fields.
    pub joiner: String,
    /// What stands between a name and its value.
    pub assign: String,
    /// The form of names and values.
    pub form: Form,
    /// Fields that are not signed.
    pub without: Vec<String>,
}

/// The form of a name or a value in a message of all fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As it was on the wire.
    Raw,
    /// Decoded once.
    Decoded,
    /// Decoded, and encoded as PHP's `http_build_query` does.
    Php,
    /// Decoded, and encoded by RFC 3986.
    Rfc3986,
}

/// Every form by its name in a preset.
pub const FORMS: &[(&str, Form)] =
    &[("raw", Form::Raw), ("decoded", Form::Decoded), ("php", Form::Php), ("rfc3986", Form::Rfc3986)];

/// What RFC 3986 leaves as it is.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// What PHP's `urlencode` leaves as it is, beside making a space a `+`.
const PHP: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b' ');

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

/// Why a text is no message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    #[error(transparent)]
    Brace(#[from] SingleBrace),
    #[error(transparent)]
    Field(#[from] PickError),
    #[error(
        "no placeholder with a `$` that is known; there are {{$secret}}, {{$secret:name}}, {{$query}}, {{$url}}, {{$body}}, {{$sorted}}, {{$fields}}, \
         and for a query or a URL the words |cut and |decoded"
    )]
    UnknownPart,
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

impl Default for Joining {
    fn default() -> Joining {
        Joining { names: true, joiner: "&".into(), assign: "=".into(), form: Form::Decoded, without: Vec::new() }
    }
}

impl Joining {
    /// Whether a field in such a message can be no other one: its name is signed too, and nothing in a value can look like what
    /// stands between.
    fn covers(&self, name: &str) -> bool {
        let escapes = matches!(self.form, Form::Php | Form::Rfc3986);
        let kept = |char: char| char.is_ascii_alphanumeric() || "-._~+%".contains(char);
        let apart = !self.joiner.chars().all(kept) && !self.assign.is_empty();
        self.names && escapes && apart && !self.without.iter().any(|left_out| left_out == name)
    }
}

impl Message {
    /// Reads the items of a message, each a text with placeholders.
    ///
    /// # Errors
    ///
    /// [`MessageError`] names the placeholder.
    pub fn parse(items: &[impl AsRef<str>], separator: &str) -> Result<Message, MessageError> {
        let item = |text: &str| fields::pieces(text)?.into_iter().map(Part::parse).collect();
        let mut items = items.iter().map(|text| item(text.as_ref())).collect::<Result<Vec<Vec<Part>>, _>>()?;
        let several = items.len() > 1;
        for item in &mut items {
            let neighbours: Vec<Option<String>> = item.iter().map(Part::literal).collect();
            for (at, part) in item.iter_mut().enumerate() {
                let Part::Field(_, beside) = part else { continue };
                let edge = || several.then(|| separator.to_owned());
                let before = if at == 0 { edge() } else { neighbours[at - 1].clone() };
                let after = if at + 1 == neighbours.len() { edge() } else { neighbours[at + 1].clone() };
                beside.extend([before, after].into_iter().flatten().filter(|text| !text.is_empty()));
            }
        }
        Ok(Message { items, separator: separator.to_owned() })
    }

    /// Whether more than one field is named in it.
    fn names_several(&self) -> bool {
        self.parts().filter(|part| matches!(part, Part::Field(..))).nth(1).is_some()
    }

    /// Whether the secret ends it.
    fn ends_secret(&self) -> bool {
        matches!(self.items.last().and_then(|item| item.last()), Some(Part::Secret(_)))
    }

    fn parts(&self) -> impl Iterator<Item = &Part> {
        self.items.iter().flatten()
    }

    /// The fields that it names, those together that nothing stands between.
    fn runs(&self) -> Vec<Vec<&Pick>> {
        let mut runs = vec![Vec::new()];
        for item in &self.items {
            for part in item {
                match part {
                    Part::Field(pick, _) => runs.last_mut().expect("one at least").push(pick),
                    _ => runs.push(Vec::new()),
                }
            }
            if !self.separator.is_empty() {
                runs.push(Vec::new());
            }
        }
        runs
    }

    /// Whether a field that it names can be no other one, see [`Recipe::covers`].
    fn covers(&self, name: &str, is_fixed: &dyn Fn(&str) -> bool, closed: bool) -> bool {
        let fixed = |pick: &&Pick| is_fixed(&pick.name) && pick.keeps_length() && pick.is_required();
        // What can be left out together with its separator leaves its place to its neighbour.
        let moves = self.items.len() > 1
            && self.parts().any(|part| matches!(part, Part::Field(pick, _) if !pick.is_required()));
        let runs = self.runs();
        runs.iter().enumerate().any(|(number, run)| {
            // What ends a message that is not closed can be made longer.
            let closed = closed || number + 1 < runs.len() || is_fixed(name);
            closed
                && run.iter().enumerate().any(|(at, pick)| {
                    let (before, after) = (run[..at].iter().all(fixed), run[at + 1..].iter().all(fixed));
                    let ends = [before, fixed(pick), after].into_iter().filter(|known| *known).count() > 1;
                    pick.name == name && pick.is_whole() && ends && (!moves || is_fixed(name))
                })
        })
    }

    /// Whether nothing is signed.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Whether it takes all fields.
    pub fn takes_all(&self) -> bool {
        self.parts().any(|part| matches!(part, Part::All { .. }))
    }

    /// Whether it takes the URL.
    pub fn takes_url(&self) -> bool {
        self.parts().any(|part| matches!(part, Part::Url(_)))
    }

    /// Whether it takes the body.
    pub fn takes_body(&self) -> bool {
        self.parts().any(|part| *part == Part::Body)
    }

    /// Whether it ends where the signature begins.
    pub fn is_cut(&self) -> bool {
        self.parts().any(|part| matches!(part, Part::Query(extent) | Part::Url(extent) if extent.cut))
    }

    /// The names of the secrets in it, each once.
    pub fn secrets(&self) -> Vec<&str> {
        let mut names: Vec<_> = self
            .parts()
            .filter_map(|part| match part {
                Part::Secret(name) => Some(name.as_str()),
                _ => None,
            })
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The fields that it cannot be made without.
    pub fn required(&self) -> impl Iterator<Item = &str> {
        self.parts().filter_map(|part| match part {
            Part::Field(pick, _) if pick.is_required() => Some(pick.name.as_str()),
            _ => None,
        })
    }

    /// The fields that it names one by one.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.parts().filter_map(|part| match part {
            Part::Field(pick, _) => Some(pick.name.as_str()),
            _ => None,
        })
    }
}

impl Part {
    fn literal(&self) -> Option<String> {
        match self {
            Part::Literal(text) => Some(text.clone()),
            _ => None,
        }
    }

    fn parse(piece: Piece) -> Result<Part, MessageError> {
        let text = match piece {
            Piece::Literal(text) => return Ok(Part::Literal(text)),
            Piece::Placeholder(text) => text,
        };
        let Some(name) = text.strip_prefix('$') else { return Ok(Part::Field(Pick::parse(&text)?, Vec::new())) };
        if let Some(secret) = name.strip_prefix("secret:").filter(|secret| !secret.is_empty()) {
            return Ok(Part::Secret(secret.to_owned()));
        }
        let mut words = name.split('|');
        let (whole, mut extent) = (words.next(), Extent::default());
        for word in words {
            match word {
                "cut" if matches!(whole, Some("query" | "url")) => extent.cut = true,
                "decoded" if matches!(whole, Some("query" | "url")) => extent.decoded = true,
                _ => return Err(MessageError::UnknownPart),
            }
        }
        match whole {
            Some("secret") => Ok(Part::Secret(Key::SECRET.to_owned())),
            Some("query") => Ok(Part::Query(extent)),
            Some("url") => Ok(Part::Url(extent)),
            Some("body") => Ok(Part::Body),
            Some("sorted") => Ok(Part::All { sorted: true }),
            Some("fields") => Ok(Part::All { sorted: false }),
            _ => Err(MessageError::UnknownPart),
        }
    }
}

/// What stands in a message for the secret of that name.
type Lookup<'a> = &'a dyn Fn(&str) -> Result<Vec<u8>, BadSignature>;

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

    fn message(&self, wire: &Wire<'_>, secret: Lookup<'_>) -> Result<Vec<u8>, BadSignature> {
        let several = self.message.names_several();
        let mut items = Vec::with_capacity(self.message.items.len());
        'items: for parts in &self.message.items {
            let mut item = Vec::new();
            for part in parts {
                match part {
                    Part::Literal(text) => item.extend_from_slice(text.as_bytes()),
                    Part::Secret(name) => item.extend_from_slice(&secret(name)?),
                    Part::Field(pick, beside) => {
                        let doubtful = |doubt| BadSignature::Field(pick.name.clone(), doubt);
                        match pick.of(wire.fields).map_err(doubtful)? {
                            // Where one field ends and the next begins must not be open.
                            Some(value) if pick.name != self.free && several && holds_any(&value, beside) => {
                                return Err(doubtful(Doubt::Ambiguous));
                            }
                            Some(value) => item.extend_from_slice(&value),
                            // A list loses the item with its separator.
                            None if self.message.items.len() > 1 && parts.len() == 1 => continue 'items,
                            None => {}
                        }
                    }
                    Part::Query(extent) => item.extend_from_slice(&extent.of(&self.query(wire, *extent)?)),
                    Part::Url(extent) => {
                        let query = self.query(wire, *extent)?;
                        let mark = if query.is_empty() { "" } else { "?" };
                        let url = format!("{}{}{mark}{query}", wire.request.origin, wire.request.path);
                        item.extend_from_slice(&extent.of(&url));
                    }
                    Part::Body => item.extend_from_slice(wire.body),
                    Part::All { sorted } => item.extend_from_slice(&self.all(wire, *sorted)),
                }
            }
            items.push(item);
        }
        Ok(items.join(self.message.separator.as_bytes()))
    }

    /// The query without the signature, where that stands in it.
    fn query<'a>(&self, wire: &Wire<'a>, extent: Extent) -> Result<Cow<'a, str>, BadSignature> {
        let query = wire.request.query.as_str();
        if extent.decoded && is_ambiguous(query) {
            return Err(BadSignature::Ambiguous);
        }
        let Some(Place::Field(name)) = self.place.as_ref().filter(|_| wire.carrier == Carrier::Query) else {
            return Ok(query.into());
        };
        let is = |segment: &str, name: &str| {
            Value::Encoded(segment.split_once('=').map_or(segment, |(name, _)| name)).lossy() == name
        };
        if !extent.cut {
            let mut kept = query.split('&').filter(|segment| !is(segment, name));
            return Ok(kept.next().map_or_else(String::new, |first| kept.fold(first.to_owned(), joined)).into());
        }
        let mut end = 0;
        let mut segments = query.split('&');
        for segment in segments.by_ref().take_while(|segment| !is(segment, name)) {
            end += segment.len() + 1;
        }
        // What stands behind the signature is not signed, so nothing that is read may stand there.
        let key_id = self.key_id.as_deref();
        if segments.any(|segment| !key_id.is_some_and(|key_id| is(segment, key_id))) {
            return Err(BadSignature::NotLast);
        }
        Ok(query[..end.saturating_sub(1).min(query.len())].into())
    }

    /// All fields but the signature, sorted bytewise by name or as they were sent; fields of one name stay in their order.
    fn all(&self, wire: &Wire<'_>, sorted: bool) -> Vec<u8> {
        let Joining { names, joiner, assign, form, without } = &self.joining;
        let signature = match &self.place {
            Some(Place::Field(name)) => Some(name.as_str()),
            _ => None,
        };
        let signed = |name: &str| Some(name) != signature && !without.iter().any(|left_out| left_out == name);
        let mut fields: Vec<_> = wire.fields.iter().filter(|field| signed(&field.name)).collect();
        if sorted {
            fields.sort_by_key(|field| field.name.as_ref());
        }
        let of = |text: &Value<'_>| match form {
            Form::Raw => text.raw().as_bytes().to_vec(),
            form => form.of(&text.bytes()),
        };
        let pairs = fields.into_iter().map(|field| match names {
            true => [&of(&field.written), assign.as_bytes(), &of(&field.value)].concat(),
            false => of(&field.value),
        });
        pairs.collect::<Vec<_>>().join(joiner.as_bytes())
    }
}

/// Whether a value holds one of these texts, or would with a part of it beside the value: `x:` before `::` could end a byte
/// earlier.
fn holds_any(value: &[u8], texts: &[String]) -> bool {
    let holds = |text: &[u8]| {
        let (before, after) = ([value, text].concat(), [text, value].concat());
        let is = |window: &[u8]| window == text;
        before.windows(text.len()).take(value.len()).any(is) || after.windows(text.len()).skip(1).any(is)
    };
    texts.iter().any(|text| holds(text.as_bytes()))
}

/// Whether a query that is decoded as a whole could be another one that looks the same then.
fn is_ambiguous(query: &str) -> bool {
    let escaped = |text: &str, escape: &str| text.to_ascii_lowercase().contains(escape);
    let in_name = query.split('&').any(|segment| escaped(segment.split('=').next().unwrap_or_default(), "%3d"));
    query.contains('+') || escaped(query, "%26") || in_name
}

/// Adds a segment to a query.
fn joined(mut query: String, segment: &str) -> String {
    query.push('&');
    query.push_str(segment);
    query
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

impl Extent {
    fn of<'a>(&self, text: &'a str) -> Cow<'a, [u8]> {
        if self.decoded { percent_decode(text.as_bytes()).into() } else { text.as_bytes().into() }
    }
}

impl Form {
    fn of(self, decoded: &[u8]) -> Vec<u8> {
        match self {
            Form::Raw | Form::Decoded => decoded.to_vec(),
            Form::Php => percent_encode(decoded, PHP).to_string().replace(' ', "+").into_bytes(),
            Form::Rfc3986 => percent_encode(decoded, UNRESERVED).to_string().into_bytes(),
        }
    }
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
