//! A signed example of what a network sends: for the person who integrates it, for local mode and for tests.
//!
//! Written from the preset alone, so that it shows what the preset says. Never part of handling a real request.

use std::fmt::Write;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::event::Request;
use crate::fields::Carrier;
use crate::gate::on_wire;
use crate::ledger::OperationKind;
use crate::preset::{Class, Condition, Format, Identity, Preset, Rule, Sign};
use crate::signature::{Algorithm, BadSignature, Key, Place};
use crate::wallet::Path;

/// What stays as it is in a query.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// What networks sign with where no deployment's secrets are at hand: in local mode, and in the event files.
pub const LOCAL_SECRET: &str = "local-secret";

/// The id of the public key that the event files of networks with a private key are signed for.
const LOCAL_KEY_ID: &str = "1234567890";

/// That key. Its private half is in `tests/events`.
const LOCAL_PUBLIC_KEY: &str = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEfmDUx2D7rCDWTZUTXxtrDtPWKu5drNF02EoC7f+9Ll3fmL9iY5e/\
                                OgXR0d0V/6Xf44n9dG6XR32WgtlAk4eY/w==";

/// What networks sign with where no deployment's secrets are at hand, in the form of `NETWORK_SECRETS`: [`LOCAL_SECRET`], and
/// for another secret that goes with it `local-<its name>`.
pub fn secrets(networks: &[Preset]) -> Value {
    let value = |preset: &Preset| -> Value {
        let names = preset.signature.message.secrets();
        match (preset.signature.algorithm, &names[..]) {
            (Algorithm::EcdsaP256, _) => json!({LOCAL_KEY_ID: LOCAL_PUBLIC_KEY}),
            (_, [] | [Key::SECRET]) => LOCAL_SECRET.into(),
            (_, names) => names.iter().map(|name| ((*name).to_owned(), Value::from(format!("local-{name}")))).collect(),
        }
    };
    networks.iter().map(|preset| (preset.network.to_string(), value(preset))).collect()
}

/// What the example is to say.
#[derive(Debug, Clone)]
pub struct Sample<'a> {
    /// A credit or a reversal.
    pub class: Class,
    /// The app's user.
    pub user: &'a str,
    /// Where the network's ids have a form of their own, one of that form is made of it.
    pub trans_id: &'a str,
    /// A plain decimal, without a sign: the class decides.
    pub amount: &'a str,
    /// Seconds since 1970, for networks that send a time.
    pub seconds: i64,
}

/// What an example call of a wallet is to say. What its path does not take is left out.
#[derive(Debug, Clone)]
pub struct CallSample<'a> {
    /// What is asked for.
    pub path: Path,
    /// The player.
    pub player: &'a str,
    /// The key.
    pub key: &'a str,
    /// A plain decimal of at most two places.
    pub amount: &'a str,
    /// The round.
    pub round: &'a str,
    /// What a rollback takes back: the key of that operation, or our id of it.
    pub original: &'a str,
}

/// What is to be shown: a postback, or a call of a wallet.
#[derive(Debug, Clone)]
pub enum Wanted<'a> {
    /// A postback.
    Postback(Sample<'a>),
    /// A call.
    Call(CallSample<'a>),
}

/// A request as the network would send it.
#[derive(Clone)]
pub struct Example {
    /// `GET` or `POST`.
    pub method: &'static str,
    /// Scheme and host.
    pub origin: String,
    /// The network's path.
    pub path: String,
    /// The query of a GET; empty for a POST.
    pub query: String,
    /// Names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The body of a POST; empty for a GET.
    pub body: String,
    /// An address that the network sends from.
    pub source_ip: String,
}

/// Why there is no such example.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoExample {
    #[error("reports nothing of that kind, as far as its preset says")]
    NoSuchClass,
    #[error("calls a wallet: say which --call")]
    CallsAWallet,
    #[error("sends postbacks, and calls no wallet: leave --call out")]
    CallsNoWallet,
    #[error("only the network itself can sign: it keeps the private key")]
    OnlyTheNetwork,
    #[error(transparent)]
    Unsigned(#[from] BadSignature),
}

/// The example that `sample` asks for, signed with `key`, for the function URL at `origin`.
///
/// # Errors
///
/// [`NoExample`] says why there is none.
pub fn example(preset: &Preset, key: &Key, sample: &Sample<'_>, origin: &str) -> Result<Example, NoExample> {
    if preset.wallet().is_some() {
        return Err(NoExample::CallsAWallet);
    }
    if preset.signature.algorithm == Algorithm::EcdsaP256 {
        return Err(NoExample::OnlyTheNetwork);
    }
    let rules = preset.rules.iter().filter(|rule| rule.is == sample.class);
    let mut examples = rules.map(|rule| {
        let fields = Fields { preset, sample, rule }.all();
        (unsigned(preset, &fields, origin), fields)
    });
    let (example, fields) = examples
        .find(|(example, _)| {
            on_wire(preset, &example.request(), |wire, _| preset.class(wire.fields)) == Ok(sample.class)
        })
        .ok_or(NoExample::NoSuchClass)?;
    signed(preset, key, example, fields)
}

/// The call of a wallet that `sample` asks for, signed with `key`, for the function URL at `origin`.
///
/// # Errors
///
/// [`NoExample`] says why there is none.
pub fn call(preset: &Preset, key: &Key, sample: &CallSample<'_>, origin: &str) -> Result<Example, NoExample> {
    let wallet = preset.wallet().ok_or(NoExample::CallsNoWallet)?;
    if preset.signature.algorithm == Algorithm::EcdsaP256 {
        return Err(NoExample::OnlyTheNetwork);
    }
    let (names, ours) = (&wallet.names, &preset.parameters);
    let id = match &ours.trans_id {
        Identity::Field(name) => name.as_str(),
        Identity::Fingerprint(_) => return Err(NoExample::NoSuchClass),
    };
    let (key_of, player) = ((id, sample.key), (ours.user_id.as_str(), sample.player));
    let (amount, round) = ((ours.amount.as_str(), sample.amount), (names.round_id.as_str(), sample.round));
    let fields = match sample.path {
        Path::Ping => Vec::new(),
        Path::Balance => vec![player],
        Path::Operation(OperationKind::Bet | OperationKind::Win) => vec![key_of, player, amount, round],
        Path::Operation(OperationKind::BetRollback | OperationKind::WinRollback) => {
            vec![key_of, player, (names.original.as_str(), sample.original)]
        }
        Path::Operation(OperationKind::RoundFinish) => vec![key_of, player, round],
    };
    let fields: Vec<_> = fields.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let mut example = unsigned(preset, &fields, origin);
    example.path += sample.path.as_str();
    signed(preset, key, example, fields)
}

/// A request with its signature, where the network puts it.
fn signed(
    preset: &Preset,
    key: &Key,
    mut example: Example,
    mut fields: Vec<(String, String)>,
) -> Result<Example, NoExample> {
    let signature = on_wire(preset, &example.request(), |wire, _| preset.signature.sign(key, wire))?;
    match &preset.signature.place {
        None => {}
        Some(Place::Header(name)) => example.headers.push((name.clone(), signature)),
        Some(Place::Field(name)) => {
            fields.push((name.clone(), signature));
            let signed = unsigned(preset, &fields, &example.origin);
            (example.query, example.body) = (signed.query, signed.body);
        }
    }
    Ok(example)
}

/// What a network would send, field by field.
struct Fields<'a> {
    preset: &'a Preset,
    sample: &'a Sample<'a>,
    rule: &'a Rule,
}

impl Fields<'_> {
    /// The fields that the postback URL names, that we read, and that are signed; each once, without the signature.
    fn all(&self) -> Vec<(String, String)> {
        let Preset { parameters, reversal, signature, about, .. } = self.preset;
        let mut names: Vec<String> = Vec::new();
        let template = about.postback.as_deref().unwrap_or_default();
        names.extend(template.split('&').filter_map(|pair| Some(pair.split_once('=')?.0.to_owned())));
        names.push(parameters.user_id.clone());
        match &parameters.trans_id {
            Identity::Field(name) => names.push(name.clone()),
            Identity::Fingerprint(picks) => names.extend(picks.iter().map(|pick| pick.name.clone())),
        }
        names.extend(self.rule.when.iter().map(|(name, _)| name.clone()));
        names.push(parameters.amount.clone());
        if self.sample.class == Class::Reversal {
            names.extend(reversal.parameter.clone());
        }
        names.extend(signature.message.required().map(str::to_owned));
        let signature = match &signature.place {
            Some(Place::Field(name)) => Some(name.as_str()),
            _ => None,
        };
        let mut fields: Vec<(String, String)> = Vec::new();
        for name in names {
            if Some(name.as_str()) != signature && !fields.iter().any(|(known, _)| *known == name) {
                fields.extend(self.value(&name).map(|value| (name, value)));
            }
        }
        fields
    }

    /// What stands in a field; `None` where it is better left out.
    fn value(&self, name: &str) -> Option<String> {
        let Preset { parameters, reversal, rules, formats, .. } = self.preset;
        let Sample { class, user, trans_id, amount, seconds } = self.sample;
        let negative = self.rule.when.iter().any(|(_, condition)| matches!(condition, Condition::Sign(Sign::Negative)));
        let condition = self.rule.when.iter().find(|(known, _)| known == name).map(|(_, condition)| condition);
        match condition {
            Some(Condition::OneOf(texts)) => return texts.iter().find(|text| !text.is_empty()).cloned(),
            Some(Condition::Present(false)) => return None,
            Some(Condition::Sign(Sign::Zero)) => return Some("0".to_owned()),
            Some(Condition::Prefix(_) | Condition::Sign(_) | Condition::Present(true)) | None => {}
        }
        let payout = parameters.payout.as_ref().is_some_and(|payout| payout.parameter == name);
        let sign = if negative { "-" } else { "" };
        let (before, after) = reversal.prefix.clone().unwrap_or_default();
        let credit_id = format!("{after}{}", trans_id.strip_prefix(after.as_str()).unwrap_or(trans_id));
        let is_id = matches!(&parameters.trans_id, Identity::Field(id) if id == name);
        let value = if name == parameters.user_id {
            (*user).to_owned()
        } else if name == parameters.amount {
            format!("{sign}{amount}")
        } else if payout {
            format!("{sign}0.50")
        } else if is_id && *class == Class::Reversal && reversal.prefix.is_some() {
            format!("{before}{}", credit_id.strip_prefix(after.as_str()).unwrap_or(&credit_id))
        } else if is_id && *class == Class::Reversal && reversal.parameter.is_some() {
            format!("{credit_id}-reversal")
        } else if is_id {
            credit_id
        } else if reversal.parameter.as_deref() == Some(name) {
            return (*class == Class::Reversal).then_some(credit_id);
        } else if condition.is_none() && rules.iter().any(|rule| rule.when.iter().any(|(known, _)| known == name)) {
            // It says something else: what it would say otherwise is left unsaid.
            return None;
        } else {
            match name {
                name if name.contains("time") => seconds.to_string(),
                name if Some(name) == parameters.offer_name.as_deref() => "Example offer".to_owned(),
                _ => "1".to_owned(),
            }
        };
        let fits = |format: &Format| format.fits(&value);
        let format = formats.iter().find(|(known, _)| known == name).map(|(_, format)| format);
        let value = match format {
            Some(format) if !fits(format) => formatted(*format, &value),
            _ => value,
        };
        Some(match condition {
            Some(Condition::Prefix(prefix)) if !value.starts_with(prefix.as_str()) => format!("{prefix}{value}"),
            _ => value,
        })
    }
}

/// A value of a format, another one for each text.
fn formatted(format: Format, text: &str) -> String {
    let digest = hex::encode(Sha256::digest(text));
    match format {
        Format::Bytes(bytes) => text.chars().filter(char::is_ascii).chain(std::iter::repeat('0')).take(bytes).collect(),
        Format::Uuid => {
            let groups = [&digest[..8], &digest[8..12], &digest[12..16], &digest[16..20], &digest[20..32]];
            groups.join("-")
        }
    }
}

/// The request with these fields.
fn unsigned(preset: &Preset, fields: &[(String, String)], origin: &str) -> Example {
    let escaped = |text| utf8_percent_encode(text, PLAIN);
    let pairs: Vec<_> = fields.iter().map(|(name, value)| format!("{}={}", escaped(name), escaped(value))).collect();
    let (query, body, content_type) = match preset.carrier {
        Carrier::Query => (pairs.join("&"), String::new(), None),
        Carrier::Form => (String::new(), pairs.join("&"), Some("application/x-www-form-urlencoded")),
        Carrier::Json => (String::new(), object(fields), Some("application/json")),
    };
    let source_ip =
        preset.source.addresses.first().map_or_else(|| "203.0.113.7".to_owned(), |net| net.addr().to_string());
    Example {
        method: preset.carrier.method(),
        origin: origin.to_owned(),
        path: format!("/{}", preset.network),
        query,
        headers: content_type.map(|kind| ("content-type".to_owned(), kind.to_owned())).into_iter().collect(),
        body,
        source_ip,
    }
}

/// A JSON object with the fields at their paths.
fn object(fields: &[(String, String)]) -> String {
    let mut root = Map::new();
    for (path, value) in fields {
        let mut names: Vec<_> = path.split('.').collect();
        let last = names.pop().unwrap_or_default();
        let table = names.into_iter().try_fold(&mut root, |table, name| {
            table.entry(name).or_insert_with(|| Value::Object(Map::new())).as_object_mut()
        });
        // A field of a field that holds a text itself cannot be sent.
        if let Some(table) = table {
            table.insert(last.to_owned(), value.as_str().into());
        }
    }
    Value::Object(root).to_string()
}

impl Example {
    /// The request as the handler sees it.
    pub fn request(&self) -> Request {
        let mut request = Request::default().with(&self.headers, self.body.as_bytes());
        request.method = self.method.to_owned();
        request.origin.clone_from(&self.origin);
        request.path.clone_from(&self.path);
        request.query.clone_from(&self.query);
        request.source_ip.clone_from(&self.source_ip);
        request
    }

    /// The URL.
    pub fn url(&self) -> String {
        let mark = if self.query.is_empty() { "" } else { "?" };
        format!("{}{}{mark}{}", self.origin, self.path, self.query)
    }

    /// A line for a shell.
    pub fn curl(&self) -> String {
        let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
        let mut line = "curl".to_owned();
        for (name, value) in &self.headers {
            let _ = write!(line, " -H {}", quoted(&format!("{name}: {value}")));
        }
        if !self.body.is_empty() {
            let _ = write!(line, " --data-raw {}", quoted(&self.body));
        }
        format!("{line} {}", quoted(&self.url()))
    }

    /// A function URL's event, for `sam local invoke` and its like.
    pub fn event(&self) -> Value {
        let host = self.origin.split_once("://").map_or("", |(_, host)| host);
        let mut headers: Map<String, Value> =
            self.headers.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
        headers.insert("host".to_owned(), host.into());
        let mut event = json!({
            "version": "2.0",
            "routeKey": "$default",
            "rawPath": self.path,
            "rawQueryString": self.query,
            "headers": headers,
            "requestContext": {
                "accountId": "anonymous",
                "domainName": host,
                "http": {"method": self.method, "path": self.path, "protocol": "HTTP/1.1", "sourceIp": self.source_ip},
                "stage": "$default",
            },
            "isBase64Encoded": !self.body.is_empty(),
        });
        if !self.body.is_empty() {
            event["body"] = BASE64_STANDARD.encode(&self.body).into();
        }
        event
    }
}
