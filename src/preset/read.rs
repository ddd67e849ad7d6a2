//! The preset language: what each key means, and what must hold between them.
//!
//! The preset that is enabled by default is annotated: it is the language's manual, and must explain every key that is read
//! here.

use std::net::IpAddr;

use ipnet::IpNet;

use super::document::{Fault, Faults, Kind, Node, Place, Section};
use super::{
    About, Answers, Class, Condition, Evidence, Format, Identity, Original, Parameters, Payout, Preset, Reply, Rule,
    Sign, Source, SourceMode, Unit,
};
use crate::event::ContentType;
use crate::fields::{self, Carrier, Pick, Piece};
use crate::id::Network;
use crate::money::{Amount, Rate, Received, Scale};
use crate::signature::{
    ALGORITHMS, Algorithm, ENCODINGS, Encoding, FORMS, Form, Key, Message, Place as Where, Recipe, Sorted,
};

/// Reads a network's tree, whose keys are below `path` in their document.
///
/// # Errors
///
/// Every fault in it.
pub fn preset(network: &Network, node: Node, path: &str, own_keys: usize) -> Result<Preset, Vec<Fault>> {
    let faults = Faults::default();
    let file = node.place.file.to_string();
    let preset = Section::new(node, path, &faults).and_then(|root| read(network, root, file, own_keys));
    match (preset, faults.into_inner()) {
        (Some(preset), faults) if faults.is_empty() => Ok(preset),
        (_, faults) => Err(faults),
    }
}

fn read(network: &Network, mut root: Section<'_>, file: String, own_keys: usize) -> Option<Preset> {
    let default = root.flag("default");
    let accept_weak = root.flag("accept_weak");
    let cap = root.parsed("cap", amount);
    let about = required(&mut root, "network").and_then(|section| about(section, file, own_keys));
    let carrier = required(&mut root, "request").and_then(request);
    let signature = required(&mut root, "signature").and_then(|section| signature(section, carrier));
    let parameters = required(&mut root, "parameters").and_then(parameters);
    let signature = signature.map(|signature| Recipe {
        free: parameters.as_ref().map_or_else(String::new, |parameters| parameters.user_id.clone()),
        ..signature
    });
    let formats = root.section("formats").map(formats).unwrap_or_default();
    let yours = root.section("yours").map(yours).unwrap_or_default();
    let unit = root.section("amount").map_or(Some(Unit::Coins), unit);
    let rules = rules(&mut root);
    let reversal = root.section("reversal").map_or(Some(Original::default()), reversal);
    let answers = required(&mut root, "answers").and_then(answers);
    let source = root.section("source").map_or(Some(Source::default()), source);

    if default && about.as_ref().is_some_and(|about| about.evidence == Evidence::Experimental) {
        root.fault(root.place(), "default", "an experimental network is enabled only where a deployment names it");
    }
    let unsigned = signature.as_ref().is_some_and(|signature| signature.algorithm == Algorithm::None);
    if unsigned && source.as_ref().is_some_and(|source| source.mode != SourceMode::Enforce) {
        root.fault(root.place(), "source.mode", "must be `enforce` where nothing is signed: anybody could call");
    }
    root.end();
    Some(Preset {
        network: network.clone(),
        about: about?,
        default,
        accept_weak,
        carrier: carrier?,
        signature: signature?,
        parameters: parameters?,
        formats,
        yours,
        unit: unit?,
        rules,
        reversal: reversal?,
        answers: answers?,
        source: source?,
        cap,
    })
}

fn required<'f>(root: &mut Section<'f>, key: &'static str) -> Option<Section<'f>> {
    let Some(node) = root.take(key) else {
        root.missing(key);
        return None;
    };
    root.below(node, key)
}

fn about(mut section: Section<'_>, file: String, own_keys: usize) -> Option<About> {
    let name = section.required("name");
    let docs = section.text("docs");
    let words = [Evidence::Official, Evidence::Community, Evidence::Experimental].map(|word| (word.as_str(), word));
    let evidence = section.required_word("evidence", &words);
    let postback = section.text("postback");
    let dashboard = section.text("dashboard");
    section.end();
    Some(About { name: name?, docs, evidence: evidence?, postback, dashboard, file, own_keys })
}

fn request(mut section: Section<'_>) -> Option<Carrier> {
    const CARRIERS: &[(&str, Carrier)] = &[("query", Carrier::Query), ("form", Carrier::Form), ("json", Carrier::Json)];
    let carrier = section.required_word("carrier", CARRIERS);
    section.end();
    carrier
}

fn signature(mut section: Section<'_>, carrier: Option<Carrier>) -> Option<Recipe> {
    let algorithm = section.required_word("algorithm", ALGORITHMS);
    let (items, separator) = (section.texts("message"), section.text("separator").unwrap_or_default());
    let message = message(&section, &items, &separator);
    let encoding = section.word("encoding", ENCODINGS);
    let place = place(&mut section);
    let key_id = section.text("key");
    let sorted = section.section("sorted").and_then(sorted);
    let at = section.place().clone();
    if let (Some(algorithm), Some(message)) = (algorithm, &message) {
        let must = |key: &str, there: bool, needed: bool, what: &str| match (there, needed) {
            (false, true) => section.fault(&at, key, format_args!("missing, and {what} needs it")),
            (true, false) => section.fault(&at, key, format_args!("means nothing where {what} does not need it")),
            _ => {}
        };
        let signs = !matches!(algorithm, Algorithm::None | Algorithm::Token);
        must("message", !message.is_empty(), signs, "this algorithm");
        must("encoding", encoding.is_some(), signs, "this algorithm");
        must("parameter", place.is_some(), algorithm != Algorithm::None, "this algorithm");
        must("key", key_id.is_some(), algorithm == Algorithm::EcdsaP256, "this algorithm");
        must("sorted", sorted.is_some(), message.is_sorted(), "the message");
        if matches!(algorithm, Algorithm::Hash(_)) && !message.is_empty() && !message.secrets().contains(&Key::SECRET) {
            section.fault(&at, "message", "holds no {$secret}: anybody could make this hash");
        }
        let in_body = message.takes_body() && carrier != Some(Carrier::Query);
        if let Some(Where::Field(name)) = &place
            && (in_body || message.fields().any(|field| field == name))
        {
            section.fault(&at, "message", "holds the signature itself");
        }
        if carrier == Some(Carrier::Query) && message.takes_body() {
            section.fault(&at, "message", "a GET has no {$body}");
        }
        let in_query = carrier == Some(Carrier::Query) && matches!(place, Some(Where::Field(_)));
        if message.is_cut() && !in_query {
            section.fault(&at, "message", "nothing to cut at: the signature is no parameter of the query");
        }
    }
    section.end();
    Some(Recipe {
        algorithm: algorithm?,
        message: message?,
        encoding: encoding.unwrap_or(Encoding::Hex),
        place,
        key_id,
        sorted: sorted.unwrap_or_default(),
        free: String::new(),
    })
}

fn message(section: &Section<'_>, items: &[(String, Place)], separator: &str) -> Option<Message> {
    // Each by itself, so that every fault is found at its place.
    for (text, place) in items {
        if let Err(error) = Message::parse(&[text], separator) {
            section.fault(place, "message", error);
        }
    }
    let texts: Vec<_> = items.iter().map(|(text, _)| text).collect();
    Message::parse(&texts, separator).ok()
}

fn place(section: &mut Section<'_>) -> Option<Where> {
    match (section.text("parameter"), section.placed("header")) {
        (Some(parameter), Some((_, place))) => {
            section.fault(&place, "header", "the signature stands in a parameter or in a header, not in both");
            Some(Where::Field(parameter))
        }
        (Some(parameter), None) => Some(Where::Field(parameter)),
        (None, Some((header, _))) => Some(Where::Header(header.to_ascii_lowercase())),
        (None, None) => None,
    }
}

fn sorted(mut section: Section<'_>) -> Option<Sorted> {
    let names = section.required_word("form", &[("pairs", true), ("values", false)]);
    let joiner = section.text("joiner").unwrap_or_default();
    // Without a text between them, so that it can be said: an empty one counts as not there.
    let assign = section.word("assign", &[("=", "="), (":", ":"), ("none", "")]).unwrap_or("=");
    let form = section.word("encoding", FORMS).unwrap_or(Form::Decoded);
    let without = section.texts("without").into_iter().map(|(text, _)| text).collect();
    section.end();
    Some(Sorted { names: names?, joiner, assign: assign.to_owned(), form, without })
}

fn parameters(mut section: Section<'_>) -> Option<Parameters> {
    let user_id = section.required("user_id");
    let trans_id = identity(&mut section);
    let amount = section.required("amount");
    let offer_id = section.text("offer_id");
    let offer_name = section.text("offer_name");
    let goal_id = section.text("goal_id");
    let payout = match (section.text("payout_usd"), section.placed("payout_cents")) {
        (Some(_), Some((_, place))) => {
            section.fault(&place, "payout_cents", "a payout is in dollars or in cents, not in both");
            None
        }
        (Some(parameter), None) => Some(Payout { parameter, cents: false }),
        (None, Some((parameter, _))) => Some(Payout { parameter, cents: true }),
        (None, None) => None,
    };
    section.end();
    Some(Parameters { user_id: user_id?, trans_id: trans_id?, amount: amount?, offer_id, offer_name, goal_id, payout })
}

fn identity(section: &mut Section<'_>) -> Option<Identity> {
    let Some(node) = section.take("trans_id") else {
        section.missing("trans_id");
        return None;
    };
    if let Kind::Text(name) = node.kind {
        return Some(Identity::Field(name));
    }
    let place = node.place.clone();
    let texts = section.texts_in(node, "trans_id");
    if texts.is_empty() {
        section.fault(&place, "trans_id", "an empty list tells no conversion from another");
    }
    let pick =
        |(text, place): &(String, Place)| Pick::parse(text).map_err(|error| section.fault(place, "trans_id", error));
    let picks: Vec<_> = texts.iter().filter_map(|text| pick(text).ok()).collect();
    (picks.len() == texts.len() && !picks.is_empty()).then_some(Identity::Fingerprint(picks))
}

/// What values look like; the keys are the network's parameters.
fn formats(mut section: Section<'_>) -> Vec<(String, Format)> {
    let mut formats = Vec::new();
    for (name, node) in section.members() {
        match &node.kind {
            Kind::Text(word) if word == "uuid" => formats.push((name, Format::Uuid)),
            Kind::Number(text) if text.parse().is_ok_and(|bytes: usize| bytes > 0) => {
                formats.extend(text.parse().map(|bytes| (name, Format::Bytes(bytes))));
            }
            _ => section.fault(&node.place, &name, "must be a length in bytes or \"uuid\""),
        }
    }
    formats
}

/// What only the deployment knows; the keys are the network's parameters.
fn yours(mut section: Section<'_>) -> Vec<(String, Vec<String>)> {
    let mut yours = Vec::new();
    for (name, node) in section.members() {
        let values = section.texts_in(node, &name).into_iter().map(|(text, _)| text).collect();
        yours.push((name, values));
    }
    yours
}

fn unit(mut section: Section<'_>) -> Option<Unit> {
    #[derive(Clone, Copy)]
    enum Word {
        Coins,
        Usd,
        Cents,
    }
    let word = section.word("unit", &[("coins", Word::Coins), ("usd", Word::Usd), ("cents", Word::Cents)]);
    let rate = section.parsed("rate", |text| {
        Rate::read(text).ok_or(
            "must be coins for one dollar, a plain decimal above 0 with at most 7 digits before the point and 8 behind",
        )
    });
    let unit = match (word.unwrap_or(Word::Coins), rate) {
        (Word::Coins, None) => Some(Unit::Coins),
        (Word::Coins, Some(_)) => {
            section.fault(section.place(), "rate", "means nothing where the amounts are coins");
            None
        }
        (Word::Usd, Some(rate)) => Some(Unit::Money(rate)),
        (Word::Cents, Some(rate)) => Some(Unit::Money(rate.of_cents())),
        (Word::Usd | Word::Cents, None) => {
            section.missing("rate");
            None
        }
    };
    section.end();
    unit
}

fn rules(root: &mut Section<'_>) -> Vec<Rule> {
    const CLASSES: &[(&str, Class)] = &[
        ("credit", Class::Credit),
        ("reversal", Class::Reversal),
        ("pending", Class::Pending),
        ("test", Class::Test),
        ("ignore", Class::Ignore),
    ];
    let sections = root.sections("classes");
    let any = !sections.is_empty();
    let mut always = false;
    let rules: Vec<_> = sections
        .into_iter()
        .filter_map(|mut section| {
            let conditional = section.has("when");
            let when = section.section("when").map(conditions).unwrap_or_default();
            if conditional && when.is_empty() {
                section.fault(section.place(), "when", "must hold a condition; without `when` the class always fits");
            } else if always {
                section.fault(section.place(), "", "can never be reached: a class before it always fits");
            }
            always |= when.is_empty();
            let is = section.required_word("is", CLASSES);
            section.end();
            Some(Rule { when, is: is? })
        })
        .collect();
    if !any {
        root.missing("classes");
    } else if !rules.iter().any(|rule| rule.is == Class::Credit) {
        root.fault(root.place(), "classes", "none of them is a credit");
    }
    rules
}

/// The conditions of a `when`, whose keys are the network's parameters.
fn conditions(mut section: Section<'_>) -> Vec<(String, Condition)> {
    const SIGNS: &[(&str, Sign)] = &[("negative", Sign::Negative), ("zero", Sign::Zero), ("positive", Sign::Positive)];
    let mut conditions = Vec::new();
    for (name, node) in section.members() {
        let Kind::Table(_) = node.kind else {
            let texts: Vec<_> = section.texts_in(node, &name).into_iter().map(|(text, _)| text).collect();
            conditions.push((name, Condition::OneOf(texts)));
            continue;
        };
        let Some(mut table) = section.below(node, &name) else { continue };
        let prefix = table.text("prefix").map(Condition::Prefix);
        let sign = table.word("sign", SIGNS).map(Condition::Sign);
        let present = table.optional_flag("present").map(Condition::Present);
        match (prefix, sign, present) {
            (Some(condition), None, None) | (None, Some(condition), None) | (None, None, Some(condition)) => {
                conditions.push((name, condition));
            }
            _ => table.fault(table.place(), "", "must say one of prefix, sign and present"),
        }
        table.end();
    }
    conditions
}

fn reversal(mut section: Section<'_>) -> Option<Original> {
    let parameter = section.text("original");
    let prefix = section.text("prefix");
    let credit_prefix = section.placed("credit_prefix");
    if let (None, Some((_, place))) = (&prefix, &credit_prefix) {
        section.fault(place, "credit_prefix", "means nothing without `prefix`");
    }
    let prefix = prefix.map(|prefix| (prefix, credit_prefix.map(|(text, _)| text).unwrap_or_default()));
    section.end();
    Some(Original { parameter, prefix })
}

/// Which statuses an answer may have.
#[derive(Clone, Copy)]
enum Kinds {
    /// What ends the network's attempts.
    Done,
    /// A refusal: never what a network takes as done, or an event would be lost in silence.
    Refused,
    /// Our own failure: what makes a network send again.
    Failed,
}

fn answers(mut section: Section<'_>) -> Option<Answers> {
    let content_type = section.word("type", &[("text", ContentType::Text), ("json", ContentType::Json)]);
    let applied = section.must("applied", |section| reply(section, "applied", 200, Kinds::Done));
    let duplicate = reply(&mut section, "duplicate", 200, Kinds::Done);
    let ignored = reply(&mut section, "ignored", 200, Kinds::Done);
    let plain = |status, body: &str| Reply { status, body: vec![Piece::Literal(body.to_owned())] };
    let bad_signature = reply(&mut section, "bad_signature", 403, Kinds::Refused);
    let bad_source = reply(&mut section, "bad_source", 403, Kinds::Refused);
    let bad_parameters = reply(&mut section, "bad_parameters", 400, Kinds::Refused);
    let unavailable = reply(&mut section, "unavailable", 503, Kinds::Failed);
    let final_statuses = final_statuses(&mut section);
    let failed = unavailable.as_ref().map_or(503, |reply| reply.status);
    if final_statuses.contains(&failed) {
        section.fault(section.place(), "final", "holds the status of our own failure, which must be sent again");
    }
    section.end();
    let applied = applied?;
    Some(Answers {
        duplicate: duplicate.unwrap_or_else(|| applied.clone()),
        ignored: ignored.unwrap_or_else(|| applied.clone()),
        applied,
        bad_signature: bad_signature.unwrap_or_else(|| plain(403, "bad signature")),
        bad_source: bad_source.unwrap_or_else(|| plain(403, "source address not allowed")),
        bad_parameters,
        unavailable: unavailable.unwrap_or_else(|| plain(503, "try again")),
        content_type: content_type.unwrap_or_default(),
        final_statuses,
    })
}

fn reply(section: &mut Section<'_>, key: &'static str, usual: u16, kinds: Kinds) -> Option<Reply> {
    let node = section.take(key)?;
    let at = node.place.clone();
    let (status, body) = match node.kind {
        Kind::Text(body) => (usual, body),
        Kind::Table(_) => {
            let mut table = section.below(node, key)?;
            let status = table.number("status").unwrap_or(usual);
            let body = table.text("body").unwrap_or_default();
            table.end();
            (status, body)
        }
        _ => {
            section.fault(&at, key, "must be a body in quotes, or a table with `status` and `body`");
            return None;
        }
    };
    let (allowed, what) = match kinds {
        Kinds::Done => (200..300, "200 to 299: anything else makes the network send again"),
        Kinds::Refused => (400..600, "400 to 599: a network takes anything else as done"),
        Kinds::Failed => (500..600, "500 to 599: what failed here must be sent again"),
    };
    if !allowed.contains(&status) {
        section.fault(&at, key, format_args!("its status must be from {what}"));
    }
    let body = fields::pieces(&body).map_err(|error| section.fault(&at, key, error)).ok()?;
    let echoes = body.iter().any(|piece| matches!(piece, Piece::Placeholder(_)));
    if echoes && !matches!(kinds, Kinds::Done) {
        section.fault(&at, key, "nothing of a request that was refused goes back to the caller");
    }
    Some(Reply { status, body })
}

fn final_statuses(section: &mut Section<'_>) -> Vec<u16> {
    let Some(node) = section.take("final") else { return Vec::new() };
    let Kind::List(nodes) = node.kind else {
        section.fault(&node.place, "final", "must be a list of statuses");
        return Vec::new();
    };
    let status = |node: Node| match node.kind {
        Kind::Number(text) => text.parse().ok().filter(|status| (400..600).contains(status)),
        _ => None,
    };
    let statuses: Vec<_> = nodes.into_iter().map(status).collect();
    if statuses.contains(&None) {
        section.fault(&node.place, "final", "must be numbers from 400 to 599");
    }
    statuses.into_iter().flatten().collect()
}

fn source(mut section: Section<'_>) -> Option<Source> {
    let words = [SourceMode::Enforce, SourceMode::Warn, SourceMode::Off].map(|mode| (mode.as_str(), mode));
    let mode = section.required_word("mode", &words);
    let mut addresses = Vec::new();
    for (text, place) in section.texts("addresses") {
        match address(&text) {
            Ok(net) => addresses.push(net),
            Err(problem) => section.fault(&place, "addresses", problem),
        }
    }
    if mode != Some(SourceMode::Off) && mode.is_some() && addresses.is_empty() {
        section.fault(section.place(), "addresses", "without an address on it the list can only refuse");
    }
    section.end();
    Some(Source { mode: mode?, addresses })
}

/// One address or a network of them.
fn address(text: &str) -> Result<IpNet, &'static str> {
    let net = text.parse::<IpNet>().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from));
    let net = net.ok_or("no IPv4 or IPv6 address, with or without `/` and a prefix length")?.trunc();
    let widest = if net.addr().is_ipv4() { 8 } else { 16 };
    if net.addr().is_unspecified() {
        Err("a placeholder, not an address that anybody sends from")
    } else if net.prefix_len() < widest {
        Err("wider than any network is: at least /8, and /16 for IPv6")
    } else if net.addr().to_canonical() != net.addr() {
        Err("an IPv4 address in the form of IPv6: write it as IPv4")
    } else {
        Ok(net)
    }
}

fn amount(text: &str) -> Result<Amount, String> {
    let received = Received::read(text).map_err(|error| error.to_string())?;
    let scale = Scale::new(Scale::MAX).ok_or("no scale")?;
    match received.cut(scale) {
        Ok(amount) if amount > Amount::ZERO => Ok(amount),
        Ok(_) => Err("must be above 0".into()),
        Err(error) => Err(error.to_string()),
    }
}
