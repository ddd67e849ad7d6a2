//! The preset language: what each key means, and what must hold between them.
//!
//! The preset that is enabled by default is annotated: it is the language's manual, and must explain every key that is read
//! here.

use std::net::IpAddr;

use ipnet::IpNet;

use super::document::{Fault, Faults, Kind, Node, Place, Section};
use super::{
    About, Answers, Class, Condition, Contract, Doubtful, Evidence, Format, Identity, Original, Parameters, Payout,
    Preset, Reply, Rule, Sign, Source, SourceMode, Spent, SpentWin, Unit, UnknownUsers, Unseen, Wallet, WalletNames,
};
use crate::event::ContentType;
use crate::fields::{self, Carrier, Pick, Piece};
use jiff::{SignedDuration, Span, SpanRelativeTo};

use crate::id::{Currency, Network};
use crate::money::{Amount, Rate, Received, Scale};
use crate::signature::{
    ALGORITHMS, Algorithm, ENCODINGS, Encoding, FORMS, Form, Joining, Key, Message, Place as Where, Recipe,
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

/// The word for the contract of a wallet.
pub(super) const WALLET: &str = "wallet";

fn read(network: &Network, mut root: Section<'_>, file: String, own_keys: usize) -> Option<Preset> {
    match root.word("contract", &[("offerwall", false), (WALLET, true)]) {
        Some(true) => wallet(network, root, file, own_keys),
        Some(false) | None => offerwall(network, root, file, own_keys),
    }
}

/// Reads the network of a wallet: how it signs, its names, and what is decided of doubtful calls. The answers are the
/// contract's own.
fn wallet(network: &Network, mut root: Section<'_>, file: String, own_keys: usize) -> Option<Preset> {
    let default = root.flag("default");
    let accept_weak = root.flag("accept_weak");
    let at = root.place().clone();
    let about = required(&mut root, "network").and_then(|section| about(section, &at, file, own_keys));
    let carrier = required(&mut root, "request").and_then(request);
    if carrier.is_some_and(|carrier| carrier != Carrier::Json) {
        root.fault(root.place(), "request.carrier", "must be `json`: a wallet is called so");
    }
    let signature = required(&mut root, "signature").and_then(|section| signature(section, carrier));
    let read = required(&mut root, "parameters").and_then(wallet_parameters);
    let currency = root.parsed("currency", Currency::new);
    let unseen = [Unseen::Tombstone, Unseen::NotFound].map(|word| (word.as_str(), word));
    let unseen = root.word("unseen", &unseen).unwrap_or_default();
    let spent_win = [SpentWin::Negative, SpentWin::Refuse].map(|word| (word.as_str(), word));
    let spent_win = root.word("spent_win", &spent_win).unwrap_or_default();
    let doubtful = [Doubtful::Allow, Doubtful::Refuse].map(|word| (word.as_str(), word));
    let win_without_bet = root.word("win_without_bet", &doubtful).unwrap_or_default();
    let win_after_end = root.word("win_after_end", &doubtful).unwrap_or_default();
    let source = root.section("source").map_or(Some(Source::default()), source);
    refuse_unvouched(&root, default, about.as_ref(), signature.as_ref(), source.as_ref());
    root.end();
    let (parameters, names) = read?;
    let reply = |status| Reply { status, body: Vec::new() };
    Some(Preset {
        network: network.clone(),
        about: about?,
        contract: Contract::Wallet(Wallet { currency, names, unseen, spent_win, win_without_bet, win_after_end }),
        default,
        accept_weak,
        carrier: carrier?,
        signature: signature?,
        parameters,
        formats: Vec::new(),
        yours: Vec::new(),
        unit: Unit::Coins,
        rules: Vec::new(),
        reversal: Original::default(),
        answers: Answers {
            applied: reply(200),
            duplicate: reply(200),
            ignored: reply(200),
            bad_signature: reply(401),
            bad_source: reply(403),
            bad_parameters: None,
            unavailable: reply(503),
            content_type: ContentType::Json,
            final_statuses: vec![400, 401, 402, 403, 404, 405, 409],
        },
        source: source?,
        cap: None,
        cap_per_day: None,
        hold: None,
        hold_above: None,
        spent: Spent::default(),
        unknown_users: UnknownUsers::default(),
    })
}

fn wallet_parameters(mut section: Section<'_>) -> Option<(Parameters, WalletNames)> {
    let user_id = section.required("user_id");
    let trans_id = section.required("trans_id");
    let amount = section.required("amount");
    let round_id = section.required("round_id");
    let game_id = section.required("game_id");
    let original = section.required("original");
    let currency = section.required("currency");
    section.end();
    let names = WalletNames { round_id: round_id?, game_id: game_id?, original: original?, currency: currency? };
    let parameters = Parameters {
        user_id: user_id?,
        trans_id: Identity::Field(trans_id?),
        amount: amount?,
        offer_id: None,
        offer_name: None,
        goal_id: None,
        payout: None,
    };
    Some((parameters, names))
}

/// Refuses what nobody vouches for: an experimental network that is enabled by itself, and one that anybody could be.
fn refuse_unvouched(
    root: &Section<'_>,
    default: bool,
    about: Option<&About>,
    signature: Option<&Recipe>,
    source: Option<&Source>,
) {
    if default && about.is_some_and(|about| about.evidence == Evidence::Experimental) {
        root.fault(root.place(), "default", "an experimental network is enabled only where a deployment names it");
    }
    let unsigned = signature.is_some_and(|signature| signature.algorithm == Algorithm::None);
    if unsigned && source.is_some_and(|source| source.mode != SourceMode::Enforce) {
        root.fault(root.place(), "source.mode", "must be `enforce` where nothing is signed: anybody could call");
    }
}

fn offerwall(network: &Network, mut root: Section<'_>, file: String, own_keys: usize) -> Option<Preset> {
    let default = root.flag("default");
    let accept_weak = root.flag("accept_weak");
    let cap = root.parsed("cap", amount);
    let cap_per_day = root.parsed("cap_per_day", amount);
    let (hold, hold_above) = hold(&mut root);
    let spent = root.word("spent", &[Spent::Negative, Spent::Absorb].map(|word| (word.as_str(), word)));
    let unknown_users = [UnknownUsers::Create, UnknownUsers::Require].map(|word| (word.as_str(), word));
    let unknown_users = root.word("unknown_users", &unknown_users);
    let at = root.place().clone();
    let about = required(&mut root, "network").and_then(|section| about(section, &at, file, own_keys));
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
    let answers_at = root.place().clone();
    let answers = required(&mut root, "answers").and_then(answers);
    let source = root.section("source").map_or(Some(Source::default()), source);

    if let (Some(answers), Some(signature), Some(parameters)) = (&answers, &signature, &parameters) {
        let known = known_fields(signature, parameters, &rules);
        for _ in answers.fields().filter(|name| !known.contains(name)) {
            root.fault(&answers_at, "answers", "a placeholder is no field that this preset reads");
        }
    }
    refuse_unvouched(&root, default, about.as_ref(), signature.as_ref(), source.as_ref());
    root.end();
    Some(Preset {
        network: network.clone(),
        about: about?,
        contract: Contract::Offerwall,
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
        cap_per_day,
        hold,
        hold_above,
        spent: spent.unwrap_or_default(),
        unknown_users: unknown_users.unwrap_or_default(),
    })
}

/// How long coins are held, and the amount that is not.
fn hold(root: &mut Section<'_>) -> (Option<SignedDuration>, Option<Amount>) {
    let said = root.has("hold");
    let hold = root.parsed("hold", duration);
    let Some((text, place)) = root.placed("hold_above") else { return (hold, None) };
    let above = match amount(&text) {
        Err(problem) => {
            root.fault(&place, "hold_above", problem);
            None
        }
        Ok(_) if !said => {
            root.fault(&place, "hold_above", "means nothing without `hold`");
            None
        }
        // A network may take away a hold that the defaults give it, and with it what it is above.
        Ok(above) => hold.map(|_| above),
    };
    (hold, above)
}

/// The fields that a preset names.
fn known_fields<'a>(signature: &'a Recipe, parameters: &'a Parameters, rules: &'a [Rule]) -> Vec<&'a str> {
    let mut known: Vec<&str> = signature.message.fields().collect();
    known.extend([parameters.user_id.as_str(), parameters.amount.as_str()]);
    match &parameters.trans_id {
        Identity::Field(name) => known.push(name),
        Identity::Fingerprint(picks) => known.extend(picks.iter().map(|pick| pick.name.as_str())),
    }
    let optional = [&parameters.offer_id, &parameters.offer_name, &parameters.goal_id];
    known.extend(optional.into_iter().flatten().map(String::as_str));
    known.extend(rules.iter().flat_map(|rule| &rule.when).map(|(name, _)| name.as_str()));
    known
}

fn required<'f>(root: &mut Section<'f>, key: &'static str) -> Option<Section<'f>> {
    let Some(node) = root.take(key) else {
        root.missing(key);
        return None;
    };
    root.below(node, key)
}

/// `at` is the place of the network itself: its name does not come from what it builds on.
fn about(mut section: Section<'_>, at: &Place, file: String, own_keys: usize) -> Option<About> {
    let named = section.has("name");
    let name = section.text("name");
    if !named {
        section.fault(at, "name", "missing: every network has its own, also one that builds on another");
    }
    let docs = section.text("docs");
    let words = [Evidence::Official, Evidence::Community, Evidence::Experimental].map(|word| (word.as_str(), word));
    // What nobody vouches for is to be watched.
    let evidence = section.word("evidence", &words).unwrap_or(Evidence::Experimental);
    let postback = section.text("postback");
    let dashboard = section.text("dashboard");
    section.end();
    Some(About { name: name?, docs, evidence, postback, dashboard, file, own_keys })
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
    let joining = section.section("fields").and_then(joining);
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
        must("fields", joining.is_some(), message.takes_all(), "the message");
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
        joining: joining.unwrap_or_default(),
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

fn joining(mut section: Section<'_>) -> Option<Joining> {
    let names = section.required_word("form", &[("pairs", true), ("values", false)]);
    let joiner = section.text("joiner").unwrap_or_default();
    // Without a text between them, so that it can be said: an empty one counts as not there.
    let assign = section.word("assign", &[("=", "="), (":", ":"), ("none", "")]).unwrap_or("=");
    let form = section.word("encoding", FORMS).unwrap_or(Form::Decoded);
    let without = section.texts("without").into_iter().map(|(text, _)| text).collect();
    section.end();
    Some(Joining { names: names?, joiner, assign: assign.to_owned(), form, without })
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
    let mut picks = Vec::new();
    for (text, place) in &texts {
        match Pick::parse(text) {
            // One value must not be two: escaped in two ways it is the same to the signature.
            Ok(pick) if pick.is_raw() => {
                section.fault(place, "trans_id", "`raw` would tell one conversion from itself")
            }
            Ok(pick) => picks.push(pick),
            Err(error) => section.fault(place, "trans_id", error),
        }
    }
    (picks.len() == texts.len() && !picks.is_empty()).then_some(Identity::Fingerprint(picks))
}

/// What values look like; the keys are the network's parameters.
fn formats(mut section: Section<'_>) -> Vec<(String, Format)> {
    let mut formats = Vec::new();
    for (name, node) in section.members() {
        match &node.kind {
            Kind::Text(word) if word.is_empty() => {}
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
        if !matches!(&node.kind, Kind::Text(text) if text.is_empty()) {
            let values = section.texts_in(node, &name).into_iter().map(|(text, _)| text).collect();
            yours.push((name, values));
        }
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

/// A time such as `90m`, `24h` or `7d`; a day has 24 hours.
fn duration(text: &str) -> Result<SignedDuration, &'static str> {
    let read = text.parse::<Span>().and_then(|span| span.to_duration(SpanRelativeTo::days_are_24_hours()));
    read.ok().filter(SignedDuration::is_positive).ok_or("not a time above zero, such as 90m, 24h or 7d")
}

#[cfg(test)]
mod tests {
    use crate::id::Network;
    use crate::preset::Catalogue;
    use crate::preset::document::{Fault, parse};

    /// The manual: the shipped preset that is in force where a deployment names none.
    const MANUAL: &str = include_str!("../presets/standard.toml");

    /// A network with a key of every kind, a line each.
    const FULL: &[(&str, &str)] = &[
        ("default", "false"),
        ("accept_weak", "false"),
        ("cap", "\"5000\""),
        ("cap_per_day", "\"20000\""),
        ("hold", "\"7d\""),
        ("hold_above", "\"100\""),
        ("spent", "\"absorb\""),
        ("unknown_users", "\"require\""),
        ("network.name", "\"N\""),
        ("network.docs", "\"https://docs.example\""),
        ("network.evidence", "\"official\""),
        ("network.postback", "\"user=[U]\""),
        ("network.dashboard", "\"Tick the box.\""),
        ("request.carrier", "\"query\""),
        ("signature.algorithm", "\"hmac-sha256\""),
        ("signature.message", "[\"{$query}\", \"{user|lower}\", \"{$sorted}\"]"),
        ("signature.separator", "\":\""),
        ("signature.encoding", "\"hex\""),
        ("signature.parameter", "\"sig\""),
        ("signature.fields.form", "\"pairs\""),
        ("signature.fields.joiner", "\"&\""),
        ("signature.fields.assign", "\"=\""),
        ("signature.fields.encoding", "\"php\""),
        ("signature.fields.without", "[\"a\"]"),
        ("parameters.user_id", "\"user\""),
        ("parameters.trans_id", "[\"id\", \"offer|lower\"]"),
        ("parameters.amount", "\"amount\""),
        ("parameters.offer_id", "\"offer\""),
        ("parameters.offer_name", "\"offer_name\""),
        ("parameters.goal_id", "\"goal\""),
        ("parameters.payout_cents", "\"payout\""),
        ("formats.id", "\"uuid\""),
        ("amount.unit", "\"usd\""),
        ("amount.rate", "\"1000\""),
        ("classes", "[{ when = { a = { prefix = \"p\" }, b = [\"1\"], c = { sign = \"zero\" } }, is = \"credit\" }]"),
        ("reversal.original", "\"original\""),
        ("reversal.prefix", "\"r-\""),
        ("reversal.credit_prefix", "\"c-\""),
        ("answers.applied", "\"ok {id}\""),
        ("answers.duplicate", "{ status = 201, body = \"ok\" }"),
        ("answers.ignored", "\"ok\""),
        ("answers.bad_signature", "\"no\""),
        ("answers.bad_source", "\"no\""),
        ("answers.bad_parameters", "\"no\""),
        ("answers.unavailable", "\"later\""),
        ("answers.type", "\"json\""),
        ("answers.final", "[403]"),
        ("source.mode", "\"enforce\""),
        ("source.addresses", "[\"192.0.2.1\", \"2001:db8::/32\"]"),
    ];

    /// That network with some lines instead of its own or beside them; a value that is empty leaves the line out.
    fn text(changes: &[(&str, &str)]) -> String {
        let own = FULL.iter().filter(|(key, _)| changes.iter().all(|(changed, _)| changed != key));
        let lines = own.chain(changes).filter(|(_, value)| !value.is_empty());
        let lines: String = lines.map(|(key, value)| format!("{key} = {value}\n")).collect();
        format!("[networks.own]\n{lines}")
    }

    fn faults(text: &str) -> Vec<Fault> {
        Catalogue::with("own.toml", text).err().unwrap_or_default()
    }

    /// The faults as key and problem.
    fn problems(changes: &[(&str, &str)]) -> Vec<String> {
        let told = |fault: &Fault| format!("{}: {}", fault.key.trim_start_matches("networks.own."), fault.problem);
        faults(&text(changes)).iter().map(told).collect()
    }

    #[test]
    fn every_fault_of_a_file_is_told_together_with_its_line_and_its_key() {
        let text = r#"colour = "red"
[networks.own]
default = "yes"
cap = 5000

[networks.own.network]
name = "Own"
evidence = "rumour"
color = "red"

[networks.own.request]
carrier = "form"

[networks.own.signature]
algorithm = "md5"
message = [
    "{user}",
    "{amount|int}{$secret}",
]
encoding = "hex"
parameter = "sig"

[networks.own.parameters]
user_id = "user"
trans_id = "id"

[networks.own.answers]
applied = "{"

[networks.own.source]
mode = "warn"
addresses = ["192.0.2.1", "0.0.0.0"]

[[networks.own.classes]]
is = "reversal"
"#;
        let told: Vec<_> = faults(text).iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "own.toml, line 1: colour: unknown; there are `defaults` and, for a network, `networks.<name>` with its keys below that",
                "own.toml, line 2: networks.own.classes: none of them is a credit",
                "own.toml, line 3: networks.own.default: must be true or false, and is text",
                "own.toml, line 4: networks.own.cap: must be text in quotes, and is a number",
                "own.toml, line 8: networks.own.network.evidence: must be one of official, community, experimental",
                "own.toml, line 9: networks.own.network.color: unknown; there are name, docs, evidence, \
                 postback, dashboard",
                "own.toml, line 18: networks.own.signature.message: an unknown word after a `|`; there are raw, \
                 integer, absolute, lower, upper, optional, filled, or-empty",
                "own.toml, line 23: networks.own.parameters.amount: missing",
                "own.toml, line 28: networks.own.answers.applied: a single `{` or `}`: a placeholder is `{name}`, \
                 a brace itself is doubled",
                "own.toml, line 32: networks.own.source.addresses: a placeholder, not an address that \
                 anybody sends from",
            ]
        );
    }

    /// Changes of the full network, and below them how the fault begins that they are.
    const REFUSED: &str = r#"
hold = "soon"
    hold: not a time above zero, such as 90m, 24h or 7d
hold = "-1h"
    hold: not a time above zero, such as 90m, 24h or 7d
hold_above = "100"
hold =
    hold_above: means nothing without `hold`
hold_above = "0"
    hold_above: must be above 0
spent = "forget"
    spent: must be one of negative, absorb
unknown_users = "guess"
    unknown_users: must be one of create, require
cap = "0"
    cap: must be above 0
cap = "5,000"
    cap: not a plain decimal number such as 12.50
network.name =
    network.name: missing
network.evidence = "experimental"
default = true
    default: an experimental network is enabled only where a deployment names it
signature.algorithm = "sha256"
    signature.message: holds no {$secret}: anybody could make this hash
signature.encoding =
    signature.encoding: missing, and this algorithm needs it
signature.message =
    signature.message: missing, and this algorithm needs it
signature.message = "{$sorted}{sig}"
    signature.message: holds the signature itself
signature.message = "{$sorted}{$body}"
    signature.message: a GET has no {$body}
request.carrier = "form"
signature.message = "{$sorted}{$body}"
    signature.message: holds the signature itself
request.carrier = "form"
signature.message = "{$sorted}{$url|cut}"
    signature.message: nothing to cut at: the signature is no parameter of the query
signature.message = "{$sorted}{$query|cut}"
signature.parameter =
signature.header = "X"
    signature.message: nothing to cut at: the signature is no parameter of the query
signature.message = "{$query}"
    signature.fields: means nothing where the message does not need it
signature.header = "X-Sig"
    signature.header: the signature stands in a parameter or in a header, not in both
signature.parameter =
    signature.parameter: missing, and this algorithm needs it
signature.key = "kid"
    signature.key: means nothing where this algorithm does not need it
signature.algorithm = "ecdsa-p256"
    signature.key: missing, and this algorithm needs it
signature.fields.form =
    signature.fields: missing, and the message needs it
parameters.trans_id = []
    parameters.trans_id: an empty list tells no conversion from another
parameters.trans_id = ["id|lower|upper"]
    parameters.trans_id: two words after a `|` that exclude each other
parameters.payout_usd = "p"
    parameters.payout_cents: a payout is in dollars or in cents, not in both
formats.id = 0
    formats.id: must be a length in bytes or "uuid"
formats.id = 0x24
    formats.id: must be a length in bytes or "uuid"
formats.id = "guid"
    formats.id: must be a length in bytes or "uuid"
amount.rate =
    amount.rate: missing
amount.rate = "0"
    amount.rate: must be coins for one dollar, a plain decimal above 0 with at most 7 digits before the point and 8
amount.unit =
    amount.rate: means nothing where the amounts are coins
classes = []
    classes: missing
classes = [{ is = "credit", when = { a = { prefix = "p", present = true } } }]
    classes.when.a: must say one of prefix, sign and present
classes = [{ is = "credit", when = { a = 7 } }]
    classes.when.a: must be text in quotes or a list of such, and is a number
reversal.prefix =
    reversal.credit_prefix: means nothing without `prefix`
answers.applied =
    answers.applied: missing
answers.applied = { status = 403, body = "no" }
    answers.applied: its status must be from 200 to 299: anything else makes the network send again
answers.duplicate = { status = 0xC8 }
    answers.duplicate.status: must be a whole number
answers.bad_signature = { status = 200, body = "ok" }
    answers.bad_signature: its status must be from 400 to 599: a network takes anything else as done
answers.bad_source = { status = 204 }
    answers.bad_source: its status must be from 400 to 599: a network takes anything else as done
answers.bad_parameters = { status = 302 }
    answers.bad_parameters: its status must be from 400 to 599: a network takes anything else as done
answers.bad_parameters = "no {id}"
    answers.bad_parameters: nothing of a request that was refused goes back to the caller
answers.unavailable = { status = 429 }
    answers.unavailable: its status must be from 500 to 599: what failed here must be sent again
answers.final = [503]
    answers.final: holds the status of our own failure, which must be sent again
classes = [{ is = "credit" }, { when = { status = "2" }, is = "reversal" }]
    classes: can never be reached: a class before it always fits
classes = [{ when = "", is = "credit" }]
    classes.when: must hold a condition; without `when` the class always fits
answers.final = [200]
    answers.final: must be numbers from 400 to 599
answers.final = 403
    answers.final: must be a list of statuses
source.addresses = ["0.0.0.0"]
    source.addresses: a placeholder, not an address that anybody sends from
source.addresses = ["0.0.0.0/8", "::"]
    source.addresses: a placeholder, not an address that anybody sends from
source.addresses = ["128.0.0.0/1"]
    source.addresses: wider than any network is: at least /8, and /16 for IPv6
source.addresses = ["::ffff:192.0.2.0/120"]
    source.addresses: an IPv4 address in the form of IPv6: write it as IPv4
source.addresses = ["192.0.2"]
    source.addresses: no IPv4 or IPv6 address, with or without `/` and a prefix length
source.addresses = []
    source.addresses: without an address on it the list can only refuse
source.mode =
    source.mode: missing
"#;

    #[test]
    fn what_cannot_work_is_refused_with_what_to_do() {
        let mut changes = Vec::new();
        for line in REFUSED.trim().lines() {
            let Some(expected) = line.strip_prefix("    ") else {
                changes.push(line.split_once('=').map(|(key, value)| (key.trim(), value.trim())).unwrap());
                continue;
            };
            let told = problems(&changes);
            assert!(told.iter().any(|told| told.starts_with(expected)), "{changes:?}: {told:?}");
            changes.clear();
        }
    }

    #[test]
    fn what_is_not_signed_needs_a_list_of_addresses_that_is_enforced() {
        let signed = text(&[]);
        let unsigned: Vec<_> = signed.lines().filter(|line| !line.starts_with("signature.")).collect();
        let unsigned = format!("{}\nsignature.algorithm = \"none\"", unsigned.join("\n"));
        assert_eq!(faults(&unsigned), [], "it is enforced");
        for (from, to) in [("\"enforce\"", "\"warn\""), ("\"enforce\"", "\"off\""), ("source.", "#")] {
            let told: Vec<_> = faults(&unsigned.replace(from, to)).into_iter().map(|fault| fault.problem).collect();
            assert_eq!(told, ["must be `enforce` where nothing is signed: anybody could call"], "{to}");
        }
    }

    /// Every table of a preset with a key that there is not, and a word that is none for every key that takes one.
    const NOTHING: &[(&str, &str)] = &[
        ("zzz", "1"),
        ("network.zzz", "1"),
        ("network.evidence", "\"zzz\""),
        ("request.zzz", "1"),
        ("request.carrier", "\"zzz\""),
        ("signature.zzz", "1"),
        ("signature.algorithm", "\"zzz\""),
        ("signature.encoding", "\"zzz\""),
        ("signature.message", "[\"{a|zzz}\", \"{$zzz}\"]"),
        ("signature.fields.zzz", "1"),
        ("signature.fields.form", "\"zzz\""),
        ("signature.fields.assign", "\"zzz\""),
        ("signature.fields.encoding", "\"zzz\""),
        ("parameters.zzz", "1"),
        ("amount.zzz", "1"),
        ("amount.unit", "\"zzz\""),
        ("classes", "[{ zzz = 1, is = \"zzz\", when = { a = { zzz = 1, sign = \"zzz\" } } }]"),
        ("reversal.zzz", "1"),
        ("answers.zzz", "1"),
        ("answers.duplicate", "{ zzz = 1 }"),
        ("answers.type", "\"zzz\""),
        ("source.zzz", "1"),
        ("source.mode", "\"zzz\""),
    ];

    #[test]
    fn the_manual_explains_every_key_and_every_word_that_is_read() {
        let problems = problems(NOTHING);
        let after = |mark: &str| -> Vec<String> {
            let lists = problems.iter().filter_map(|problem| Some(problem.split_once(mark)?.1));
            lists.flat_map(|list| list.split(", ")).map(str::to_owned).collect()
        };
        let (keys, words, picks) =
            (after(": unknown; there are "), after(": must be one of "), after("; there are raw, "));
        assert!(keys.len() > 50 && words.len() > 40 && picks.len() == 7, "{problems:#?}");
        for key in keys {
            let forms = [format!("{key} ="), format!("or {key}"), format!("[{key}]"), format!(".{key}]")];
            assert!(forms.iter().any(|form| MANUAL.contains(form)), "the manual does not explain the key {key}");
        }
        for word in words {
            let is_apart = |at: usize| {
                let inside = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'-');
                let bytes = MANUAL.as_bytes();
                !inside(at.checked_sub(1).and_then(|at| bytes.get(at))) && !inside(bytes.get(at + word.len()))
            };
            let told = MANUAL.match_indices(word.as_str()).any(|(at, _)| word == "=" || word == ":" || is_apart(at));
            assert!(told, "the manual does not explain the word {word}");
        }
        for pick in picks {
            assert!(MANUAL.contains(&format!("|{pick}}}")), "the manual does not explain {pick}");
        }
    }

    #[test]
    fn the_manual_names_no_key_that_is_not_read() {
        let is_setting = |line: &str| {
            let name = line.split([' ', ']']).next().unwrap_or_default();
            let plain = name.bytes().all(|byte| byte.is_ascii_lowercase() || b"_[.".contains(&byte));
            plain && (line.starts_with('[') || line[name.len()..].starts_with(" = "))
        };
        let lines = MANUAL.lines().map(|line| match line.strip_prefix("# ") {
            Some(setting) if is_setting(setting) && !setting.starts_with("base ") => setting,
            _ => line,
        });
        let text = lines.collect::<Vec<_>>().join("\n");
        assert!(text.lines().filter(|line| !line.starts_with('#')).count() > 60, "it was uncommented");
        let node = parse("manual.toml", &text).unwrap();
        let faults = super::preset(&Network::new("own").unwrap(), node, "", 0).err().unwrap_or_default();
        let unknown: Vec<_> = faults.iter().filter(|fault| fault.problem.starts_with("unknown")).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }

    /// What a person may paste by mistake, as values of TOML and as what is none.
    const PASTED: &str = r#"
"hunter2"
"{hunter2"
"{$hunter2}"
"{$secret:hunter2|x}"
"{}hunter2"
["hunter2"]
[["hunter2"]]
[{ is = "hunter2" }]
{ status = "hunter2", body = ["hunter2"] }
'hunter2
"""hunter2
hunter2
[hunter2]
"\hunter2"
"hunter2" hunter2
2hunter2
0xhunter2
"#;

    #[test]
    fn no_fault_shows_a_value_that_could_be_a_secret() {
        for (key, _) in FULL {
            for value in PASTED.trim().lines() {
                // An address is no secret, and to see it helps.
                let told = problems(&[(key, value)]).join("\n");
                assert!(*key == "source.addresses" || !told.contains("hunter2"), "{key} = {value}: {told}");
            }
        }
    }
}
