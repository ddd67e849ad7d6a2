//! The gate before every contract: a request is verified before anything of it is read.
//!
//! Pure: decides who may be believed and reads no field itself. Nothing that it says of a request that was barred holds
//! anything of that request's values.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::event::Request;
use crate::fields::{Carrier, Fields};
use crate::preset::{Preset, SourceMode};
use crate::signature::{Algorithm, BadSignature, Key, Place, Wire};

/// Why a request is not looked into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Barred {
    /// The network sends by another method than this one.
    MethodNotAllowed(&'static str),
    /// No key in force signed the request.
    BadSignature(BadSignature),
    /// It comes from an address that is not the network's.
    BadSource,
    /// It is no form or JSON object, or a larger one than a network's.
    Unreadable,
}

impl Barred {
    /// The name of it in logs.
    pub fn as_str(&self) -> &'static str {
        match self {
            Barred::MethodNotAllowed(_) => "method_not_allowed",
            Barred::BadSignature(_) => "bad_signature",
            Barred::BadSource => "bad_source",
            Barred::Unreadable => "bad_parameters",
        }
    }

    /// What is wrong, for the log; nothing of the request's values.
    pub fn why(&self) -> Option<String> {
        match self {
            Barred::MethodNotAllowed(_) => None,
            Barred::BadSignature(why) => Some(why.to_string()),
            Barred::BadSource => Some("the source address is not on the network's list".to_owned()),
            Barred::Unreadable => Some("not a JSON object, or too large".to_owned()),
        }
    }

    /// Whether the request was signed by a key in force.
    pub fn is_verified(&self) -> bool {
        match self {
            Barred::BadSource | Barred::Unreadable => true,
            Barred::MethodNotAllowed(_) | Barred::BadSignature(_) => false,
        }
    }
}

/// Why a request says nothing. `W` is why a parameter cannot be used, which is the contract's to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rejection<W> {
    /// The path leads to no enabled network.
    UnknownNetwork,
    /// It did not get past the gate.
    Barred(Barred),
    /// Parameters that cannot be used, each with the reason, in the order in which we read them.
    Parameters(Vec<Fault<W>>),
}

/// A parameter that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault<W> {
    /// The network's name of the parameter.
    pub parameter: String,
    /// What is wrong with it.
    pub why: W,
}

impl<W> From<Barred> for Rejection<W> {
    fn from(barred: Barred) -> Rejection<W> {
        Rejection::Barred(barred)
    }
}

impl<W: fmt::Display> Rejection<W> {
    /// The rejection's name in logs.
    pub fn as_str(&self) -> &'static str {
        match self {
            Rejection::UnknownNetwork => "unknown_network",
            Rejection::Barred(barred) => barred.as_str(),
            Rejection::Parameters(_) => "bad_parameters",
        }
    }

    /// What kept it at the gate.
    pub fn barred(&self) -> Option<&Barred> {
        match self {
            Rejection::Barred(barred) => Some(barred),
            Rejection::UnknownNetwork | Rejection::Parameters(_) => None,
        }
    }

    /// What is wrong, for the log; nothing of the request's values.
    pub fn why(&self) -> Option<String> {
        match self {
            Rejection::UnknownNetwork => None,
            Rejection::Barred(barred) => barred.why(),
            Rejection::Parameters(faults) => Some(faults.iter().map(Fault::to_string).collect::<Vec<_>>().join("; ")),
        }
    }
}

impl<W: fmt::Display> fmt::Display for Fault<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.parameter, self.why)
    }
}

/// Verifies a request, then reads it.
///
/// # Errors
///
/// [`Rejection`] in the order in which it is decided: method, signature, source, body, parameters.
pub fn pass<T, W>(
    preset: &Preset,
    keys: &[Key],
    request: &Request,
    read: impl FnOnce(&Wire<'_>) -> Result<T, Vec<Fault<W>>>,
) -> Result<T, Rejection<W>> {
    on_wire(preset, request, |wire, readable| {
        verify(preset, keys, wire)?;
        if !readable {
            return Err(Barred::Unreadable.into());
        }
        read(wire).map_err(Rejection::Parameters)
    })
}

/// Verifies a request of which nothing is to be read.
///
/// # Errors
///
/// [`Barred`] in the order in which it is decided: method, signature, source.
pub fn verify(preset: &Preset, keys: &[Key], wire: &Wire<'_>) -> Result<(), Barred> {
    if wire.request.method != preset.carrier.method() {
        return Err(Barred::MethodNotAllowed(preset.carrier.method()));
    }
    preset.signature.verify(keys, wire).map_err(Barred::BadSignature)?;
    if preset.source.mode == SourceMode::Enforce && !preset.source.lists(&wire.request.source_ip) {
        return Err(Barred::BadSource);
    }
    Ok(())
}

/// Looks at a request as its network sends it, and whether its body could be read.
pub fn on_wire<T>(preset: &Preset, request: &Request, look: impl FnOnce(&Wire<'_>, bool) -> T) -> T {
    /// The longest body that is looked at: networks send less than two kilobytes.
    const BODY_MAX: usize = 128 * 1024;
    let carrier = preset.carrier;
    let body = match carrier {
        Carrier::Query => Vec::new(),
        Carrier::Form | Carrier::Json => request.body().unwrap_or_default(),
    };
    let text = String::from_utf8_lossy(&body);
    let fields = match carrier {
        Carrier::Query => Some(Fields::encoded(&request.query)),
        _ if body.len() > BODY_MAX => None,
        Carrier::Form => Some(Fields::encoded(&text)),
        Carrier::Json => Fields::json(&text),
    };
    let readable = fields.is_some();
    let fields = fields.unwrap_or_default();
    look(&Wire { request, carrier, fields: &fields, body: &body }, readable)
}

/// The first 32 hex digits of the SHA-256 of the query and the body as they were on the wire. Where the request carries the
/// secret itself, of everything else: a short secret could be found from it.
pub fn fingerprint(preset: &Preset, wire: &Wire<'_>) -> String {
    let mut hash = Sha256::new();
    match (preset.signature.algorithm, &preset.signature.place) {
        (Algorithm::Token, Some(Place::Field(token))) => {
            for field in wire.fields.iter().filter(|field| field.name != *token) {
                hash.update(format!("{}={}&", field.name, field.value.raw()));
            }
        }
        _ => {
            hash.update(&wire.request.query);
            hash.update(wire.body);
        }
    }
    hex::encode(&hash.finalize()[..16])
}
