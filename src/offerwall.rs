//! The offerwall contract: a network's signed GET becomes a claim, a claim becomes postings, an outcome becomes an
//! answer.
//!
//! Pure: decides everything and does nothing. No I/O happens before [`read`] has verified the signature, and nothing is
//! left to decide after [`plan`]. An answer never carries a secret, a balance or a value that the caller sent.

use std::borrow::Cow;
use std::fmt;

use jiff::Timestamp;
use percent_encoding::percent_decode;
use secrecy::SecretString;
use sha2::{Digest, Sha256};

use crate::event::{Answer, Request};
use crate::id::{Currency, IdError, TransId, UserId};
use crate::ledger::{
    Case, CaseKind, Entry, Evidence, Field, Guard, OFFER_ID_MAX, OFFER_NAME_MAX, Offer, Outcome, Posting,
    SOURCE_IP_MAX, Status,
};
use crate::money::{Amount, AmountError, Received, Scale};
use crate::preset::Preset;

/// The coins of a deployment.
#[derive(Debug, Clone)]
pub struct Coins {
    /// The currency of the accounts.
    pub currency: Currency,
    /// How many decimals of a coin are kept.
    pub scale: Scale,
}

/// What a verified request says happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The conversation that it belongs to.
    pub trans_id: TransId,
    /// What happened.
    pub status: Status,
    /// The user as the network named it.
    pub user: UserId,
    /// The currency that the deployment pays in.
    pub currency: Currency,
    /// The coins of a credit. A reversal's are those that were credited.
    pub amount: Amount,
    /// Where the claim came from.
    pub evidence: Evidence,
    /// What the user did.
    pub offer: Offer,
}

/// Why a request is not a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rejection {
    /// No enabled network has that path.
    UnknownNetwork,
    /// The network sends its postbacks by another method.
    MethodNotAllowed,
    /// No secret in force signed the query.
    BadSignature,
    /// Parameters that cannot be used, each with the reason, in the order in which we read them.
    Parameters(Vec<Fault>),
}

/// A parameter that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The network's name of the parameter.
    pub parameter: String,
    /// What is wrong with it.
    pub why: Why,
}

/// Why a parameter cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    #[error("missing")]
    Missing,
    #[error("sent more than once")]
    Repeated,
    #[error("a macro that the network did not replace")]
    Macro,
    #[error("a broken percent escape")]
    Escape,
    #[error("not UTF-8")]
    NotUtf8,
    #[error("not a status of this network")]
    UnknownStatus,
    #[error("a negative credit")]
    NegativeCredit,
    #[error(transparent)]
    Id(IdError),
    #[error(transparent)]
    Amount(AmountError),
}

impl Rejection {
    /// The rejection's name in logs.
    pub fn as_str(&self) -> &'static str {
        match self {
            Rejection::UnknownNetwork => "unknown_network",
            Rejection::MethodNotAllowed => "method_not_allowed",
            Rejection::BadSignature => "bad_signature",
            Rejection::Parameters(_) => "bad_parameters",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.parameter, self.why)
    }
}

/// What a claim came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happened {
    /// The coins are in the account.
    Credited,
    /// What was credited is taken back.
    Reversed,
    /// The reversal of a credit that we never saw is recorded; it moved nothing.
    ReversedUnseen,
    /// A credit after its reversal moved nothing.
    LateCredit,
    /// Known, and the same.
    Duplicate,
    /// Known, and not the same.
    Conflict,
}

impl Happened {
    /// The outcome's name in logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Happened::Credited => "credited",
            Happened::Reversed => "reversed",
            Happened::ReversedUnseen => "reversed_unseen",
            Happened::LateCredit => "late_credit",
            Happened::Duplicate => "duplicate",
            Happened::Conflict => "conflict",
        }
    }
}

/// The network at a path: `/<network>`, or `/` where exactly one is enabled.
pub fn preset_at<'a>(enabled: &'a [Preset], path: &str) -> Option<&'a Preset> {
    match (path.strip_prefix('/')?, enabled) {
        ("", [only]) => Some(only),
        (name, _) => enabled.iter().find(|preset| preset.network.as_str() == name.strip_suffix('/').unwrap_or(name)),
    }
}

/// Verifies a request, then reads it.
///
/// # Errors
///
/// [`Rejection`] in the order in which it is decided: method, signature, parameters.
pub fn read(preset: &Preset, secrets: &[SecretString], coins: &Coins, request: &Request) -> Result<Claim, Rejection> {
    if request.method != "GET" {
        return Err(Rejection::MethodNotAllowed);
    }
    let settings = &preset.settings;
    settings.signature.verify(secrets, &request.query).map_err(|_| Rejection::BadSignature)?;

    let names = &settings.parameters;
    let mut query = Query { query: &request.query, faults: Vec::new() };
    let user = query.required(&names.user_id, |text| UserId::new(text).map_err(Why::Id));
    let trans_id = query.required(&names.trans_id, |text| TransId::of(&preset.network, text).map_err(Why::Id));
    let status = query.required(&names.status, |text| {
        let means = |values: &[String]| values.iter().any(|value| value == text);
        match (means(&settings.statuses.credit), means(&settings.statuses.reversal)) {
            (true, _) => Ok(Status::Credit),
            (_, true) => Ok(Status::Reversal),
            (false, false) => Err(Why::UnknownStatus),
        }
    });
    let amount = query.required(&names.amount, |text| {
        let received = Received::read(text).map_err(Why::Amount)?;
        let amount = match status {
            // What was credited is reversed: this amount's sign and size mean nothing.
            Some(Status::Reversal) => Amount::ZERO,
            Some(Status::Credit) if received.is_negative() => return Err(Why::NegativeCredit),
            Some(Status::Credit) | None => received.cut(coins.scale).map_err(Why::Amount)?,
        };
        Ok((amount, text.to_owned()))
    });
    let offer = Offer {
        offer_id: query.optional(names.offer_id.as_deref(), OFFER_ID_MAX),
        offer_name: query.optional(names.offer_name.as_deref(), OFFER_NAME_MAX),
        goal_id: query.optional(names.goal_id.as_deref(), OFFER_ID_MAX),
        payout_usd: query.optional(names.payout_usd.as_deref(), usize::MAX).and_then(|text| payout(&text)),
    };
    let (Some(user), Some(trans_id), Some(status), Some((amount, amount_received))) = (user, trans_id, status, amount)
    else {
        return Err(Rejection::Parameters(query.faults));
    };
    let evidence = Evidence {
        preset: Some(preset.network.clone()),
        amount_received,
        source_ip: cut(request.source_ip.clone(), SOURCE_IP_MAX),
        fingerprint: hex::encode(&Sha256::digest(&request.query)[..16]),
    };
    Ok(Claim { trans_id, status, user, currency: coins.currency.clone(), amount, evidence, offer })
}

/// A payout of the deployment's books, at most eight decimals. One that does not read is left out: it moves no coins,
/// and a credit must not wait for it.
fn payout(text: &str) -> Option<Amount> {
    Received::read(text).ok()?.cut(Scale::new(Scale::MAX)?).ok()
}

/// A signed query, and what is wrong with it.
struct Query<'a> {
    query: &'a str,
    faults: Vec<Fault>,
}

impl<'a> Query<'a> {
    /// Reads a parameter that money depends on: anything doubtful in it is a fault.
    fn required<T>(&mut self, name: &str, parse: impl FnOnce(&str) -> Result<T, Why>) -> Option<T> {
        let result = self.once(name).and_then(strict).and_then(|text| match text.as_ref() {
            "" => Err(Why::Missing),
            text if is_macro(text) || holds_macro(text) => Err(Why::Macro),
            text => parse(text),
        });
        result.map_err(|why| self.faults.push(Fault { parameter: name.to_owned(), why })).ok()
    }

    /// Reads a parameter that no money depends on: what is doubtful in it is left out or replaced, and nothing is
    /// refused.
    fn optional(&self, name: Option<&str>, max: usize) -> Option<String> {
        let text = lossy(self.once(name?).ok()?);
        (!text.is_empty() && !is_macro(&text)).then(|| cut(text.replace(char::is_control, " "), max))
    }

    /// The one raw value of a parameter.
    fn once(&self, name: &str) -> Result<&'a str, Why> {
        let mut values = self.query.split('&').filter_map(|segment| {
            let (key, value) = segment.split_once('=').unwrap_or((segment, ""));
            (lossy(key) == name).then_some(value)
        });
        let value = values.next().ok_or(Why::Missing)?;
        if values.next().is_some() { Err(Why::Repeated) } else { Ok(value) }
    }
}

/// The form decoding of a raw value, or why it has none.
fn strict(raw: &str) -> Result<Cow<'_, str>, Why> {
    let broken = raw
        .split('%')
        .skip(1)
        .any(|rest| !matches!(rest.as_bytes(), [a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit()));
    if broken {
        return Err(Why::Escape);
    }
    if !raw.contains(['%', '+']) {
        return Ok(raw.into());
    }
    let spaced = raw.replace('+', " ");
    percent_decode(spaced.as_bytes()).decode_utf8().map(|text| text.into_owned().into()).map_err(|_| Why::NotUtf8)
}

/// The form decoding of a raw value with whatever is broken in it left standing or replaced.
fn lossy(raw: &str) -> Cow<'_, str> {
    if !raw.contains(['%', '+']) {
        return raw.into();
    }
    percent_decode(raw.replace('+', " ").as_bytes()).decode_utf8_lossy().into_owned().into()
}

/// Whether a value is a macro such as `{trans_id}` or `[trans_id]` that a network should have replaced.
fn is_macro(text: &str) -> bool {
    (text.starts_with('{') && text.ends_with('}')) || (text.starts_with('[') && text.ends_with(']'))
}

/// Whether a value holds a macro in braces: what should tell conversations or users apart would be the same for all.
fn holds_macro(text: &str) -> bool {
    text.split_once('{').is_some_and(|(_, rest)| rest.contains('}'))
}

/// At most `max` bytes of a text, whole characters only.
fn cut(mut text: String, max: usize) -> String {
    text.truncate(text.floor_char_boundary(max));
    text
}

/// Whether the plan of this claim depends on what is known of its conversation. A credit's does not: it costs no read.
pub fn needs_conversation(claim: &Claim) -> bool {
    match claim.status {
        Status::Credit => false,
        Status::Reversal => true,
    }
}

/// The postings that settle a claim, to be tried in order until one is not refused, each with what it then means.
///
/// When all are refused, the conversation or the account changed since the conversation was read: read it again and
/// plan anew.
pub fn plan(claim: &Claim, conversation: &[Entry], now: Timestamp) -> Vec<(Posting, Happened)> {
    let entry = Entry {
        trans_id: claim.trans_id.clone(),
        status: claim.status,
        user: claim.user.clone(),
        currency: claim.currency.clone(),
        amount: claim.amount,
        received_at: now,
        void: false,
        user_received: None,
        evidence: claim.evidence.clone(),
        offer: claim.offer.clone(),
    };
    match claim.status {
        Status::Credit => {
            vec![(Posting { entry, companion: None, guard: Guard::None, cases: Vec::new() }, Happened::Credited)]
        }
        Status::Reversal => match conversation.iter().find(|known| known.status == Status::Credit) {
            Some(credit) => reverse(entry, credit),
            None => vec![(reverse_unseen(entry), Happened::ReversedUnseen)],
        },
    }
}

/// Takes back what `credit` gave, from the user who got it: plainly where the coins are still there, else below zero
/// with a case. The two guards leave no balance without a posting.
fn reverse(mut entry: Entry, credit: &Entry) -> Vec<(Posting, Happened)> {
    entry.amount = credit.amount.negated();
    entry.currency = credit.currency.clone();
    if entry.user != credit.user {
        entry.user_received = Some(std::mem::replace(&mut entry.user, credit.user.clone()));
    }
    let mut cases = Vec::new();
    if let Some(named) = &entry.user_received {
        let detail = format!(
            "The reversal names user {named}, the credit user {}: the coins were taken from {}.",
            credit.user, credit.user
        );
        cases.push(case(CaseKind::Conflict(Field::User), &entry, detail));
    }
    if credit.amount.is_zero() {
        return vec![(Posting { entry, companion: None, guard: Guard::None, cases }, Happened::Reversed)];
    }
    let detail =
        format!("The credit of {} was spent before it was reversed: the balance went below zero.", credit.amount);
    let overdrawn = case(CaseKind::Overdrawn, &entry, detail);
    let covered = Posting { entry, companion: None, guard: Guard::AtLeast(credit.amount), cases };
    let mut overdraw = Posting { guard: Guard::Below(credit.amount), ..covered.clone() };
    overdraw.cases.push(overdrawn);
    vec![(covered, Happened::Reversed), (overdraw, Happened::Reversed)]
}

/// Records a reversal whose credit was never seen, and a placeholder where the credit would be: should it still come,
/// it moves nothing. Nor does the placeholder count as paid by the network.
fn reverse_unseen(entry: Entry) -> Posting {
    let offer = Offer { payout_usd: None, ..entry.offer.clone() };
    let placeholder = Entry { status: Status::Credit, void: true, offer, ..entry.clone() };
    let detail = format!(
        "The reversal (of {} as sent) came without its credit: should the credit still come, it moves nothing.",
        entry.evidence.amount_received
    );
    let cases = vec![case(CaseKind::ReversalWithoutCredit, &entry, detail)];
    Posting { entry, companion: Some(placeholder), guard: Guard::None, cases }
}

fn case(kind: CaseKind, entry: &Entry, detail: String) -> Case {
    Case {
        kind,
        trans_id: entry.trans_id.clone(),
        status: entry.status,
        user: entry.user.clone(),
        currency: entry.currency.clone(),
        amount: entry.amount,
        detail,
        opened_at: entry.received_at,
    }
}

/// What a posting's outcome means, and the case that it opens; `None` when the posting was refused and the next one is
/// due.
pub fn conclude(posting: &Posting, meaning: Happened, outcome: Outcome) -> Option<(Happened, Option<Case>)> {
    let new = &posting.entry;
    match outcome {
        Outcome::Posted => Some((meaning, None)),
        Outcome::Replayed(stored) if stored.void => {
            let detail =
                format!("A credit of {} for user {} came after its reversal and moved nothing.", new.amount, new.user);
            Some((Happened::LateCredit, Some(case(CaseKind::LateCredit, new, detail))))
        }
        Outcome::Replayed(_) => Some((Happened::Duplicate, None)),
        Outcome::Conflict(stored, field) => {
            let (known, sent) = match field {
                Field::User => (stored.user_claimed().to_string(), new.user_claimed().to_string()),
                Field::Currency => (stored.currency.to_string(), new.currency.to_string()),
                Field::Amount => (stored.amount.to_string(), new.amount.to_string()),
            };
            let detail = format!(
                "Came again with another {field}: {known} is recorded, {sent} was sent (fingerprint {}). Nothing moved.",
                new.evidence.fingerprint
            );
            let case = Case { user: stored.user, ..case(CaseKind::Conflict(field), new, detail) };
            Some((Happened::Conflict, Some(case)))
        }
        Outcome::Refused(_) => None,
    }
}

/// The answer to a claim that was settled.
pub fn answer(preset: &Preset, happened: Happened) -> Answer {
    let answers = &preset.settings.answers;
    let body = match happened {
        Happened::Credited | Happened::Reversed | Happened::ReversedUnseen | Happened::LateCredit => &answers.applied,
        Happened::Duplicate | Happened::Conflict => &answers.duplicate,
    };
    Answer::new(200, body.clone())
}

/// The answer to a request that is not a claim.
pub fn refuse(rejection: &Rejection) -> Answer {
    match rejection {
        Rejection::UnknownNetwork => Answer::new(404, "no such network"),
        Rejection::MethodNotAllowed => Answer::new(405, "method not allowed: send a GET"),
        Rejection::BadSignature => Answer::new(403, "bad signature"),
        Rejection::Parameters(faults) => {
            let lines: Vec<String> = faults.iter().map(Fault::to_string).collect();
            Answer::new(400, lines.join("\n"))
        }
    }
}

/// The answer when the ledger could not be asked in time, or could not be asked at all: nothing is half done, and the
/// network's next attempt is safe.
pub fn try_again() -> Answer {
    Answer::new(503, "try again")
}
