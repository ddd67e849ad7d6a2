//! The offerwall contract: a network's signed postback becomes a claim, a claim becomes postings, an outcome becomes an
//! answer.
//!
//! Pure: decides everything and does nothing. No I/O happens before [`read`] has verified the signature, and nothing is
//! left to decide after [`plan`]. An answer never carries a secret, a balance or anything of a request that was refused.

use std::borrow::Cow;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use sha2::{Digest, Sha256};

use crate::event::{Answer, ContentType, Request};
use crate::fields::{Doubt, Fields, Pick, Piece, cut};
use crate::gate::{self, Barred};
use crate::id::{Currency, IdError, TransId, UserId};
use crate::ledger::{
    Account, Case, CaseKind, Decision, Entry, Evidence, Field, Guard, Held, OFFER_ID_MAX, OFFER_NAME_MAX, Offer,
    Outcome, Posting, SOURCE_IP_MAX, Status, held_now, holder,
};
use crate::metrics::Flow;
use crate::money::{Amount, AmountError, RECEIVED_LENGTH_MAX, Received, Scale};
use crate::preset::{Class, Contract, Identity, Preset, Reply, Spent, Unit, UnknownUsers};
use crate::signature::{Key, Wire};

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

/// What a verified request says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// Coins are to be moved.
    Claim(Box<Claim>),
    /// Nothing is to be moved, and nothing else of the request was read.
    Note(Note),
}

/// What moves nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Note {
    /// It may become a credit.
    Pending,
    /// A test of the network's.
    Test,
    /// Something that pays nothing.
    Ignored,
}

/// Why a request says nothing.
pub type Rejection = gate::Rejection<Why>;

/// A parameter that cannot be used.
pub type Fault = gate::Fault<Why>;

/// Why a parameter cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    #[error(transparent)]
    Doubt(#[from] Doubt),
    #[error("not a status of this network")]
    UnknownStatus,
    #[error("a negative credit")]
    NegativeCredit,
    #[error("not of the form that this network sends")]
    Format,
    #[error("not one of yours")]
    NotYours,
    #[error(transparent)]
    Id(#[from] IdError),
    #[error(transparent)]
    Amount(#[from] AmountError),
}

/// What a claim came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happened {
    /// The coins are in the account, and available.
    Credited,
    /// The coins are in the account, and become available by themselves.
    Held,
    /// The coins are recorded, and wait for a person: above a cap, or for a user whom the app does not know.
    Suspended,
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
    /// Nothing that moves coins.
    Noted(Note),
}

impl Happened {
    /// The outcome's name in logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Happened::Credited => "credited",
            Happened::Held => "held",
            Happened::Suspended => "suspended",
            Happened::Reversed => "reversed",
            Happened::ReversedUnseen => "reversed_unseen",
            Happened::LateCredit => "late_credit",
            Happened::Duplicate => "duplicate",
            Happened::Conflict => "conflict",
            Happened::Noted(Note::Pending) => "pending",
            Happened::Noted(Note::Test) => "test",
            Happened::Noted(Note::Ignored) => "ignored",
        }
    }

    /// As what it moves coins; `None` where it moves none.
    pub fn flow(self) -> Option<Flow> {
        match self {
            Happened::Credited => Some(Flow::Credited),
            Happened::Held => Some(Flow::Held),
            Happened::Suspended => Some(Flow::Suspended),
            Happened::Reversed => Some(Flow::Reversed),
            Happened::ReversedUnseen
            | Happened::LateCredit
            | Happened::Duplicate
            | Happened::Conflict
            | Happened::Noted(Note::Pending | Note::Test | Note::Ignored) => None,
        }
    }
}

/// The network at a path: `/<network>`, or `/` where exactly one sends postbacks.
pub fn preset_at<'a>(enabled: &'a [Preset], path: &str) -> Option<&'a Preset> {
    let mut walls = enabled.iter().filter(|preset| preset.contract == Contract::Offerwall);
    match path.strip_prefix('/')? {
        "" => walls.next().filter(|_| walls.next().is_none()),
        name => walls.find(|preset| preset.network.as_str() == name.strip_suffix('/').unwrap_or(name)),
    }
}

/// Verifies a request, then reads it.
///
/// # Errors
///
/// [`Rejection`]: what the gate says, then every parameter that cannot be used.
pub fn read(preset: &Preset, keys: &[Key], coins: &Coins, request: &Request) -> Result<Report, Rejection> {
    gate::pass(preset, keys, request, |wire| report(preset, coins, wire))
}

/// Reads a verified request.
fn report(preset: &Preset, coins: &Coins, wire: &Wire<'_>) -> Result<Report, Vec<Fault>> {
    let class = preset.class(wire.fields);
    let status = match class {
        Ok(Class::Credit) => Some(Status::Credit),
        Ok(Class::Reversal) => Some(Status::Reversal),
        Ok(Class::Pending) => return Ok(Report::Note(Note::Pending)),
        Ok(Class::Test) => return Ok(Report::Note(Note::Test)),
        Ok(Class::Ignore) => return Ok(Report::Note(Note::Ignored)),
        Err(_) => None,
    };
    let names = &preset.parameters;
    let mut form = Form { fields: wire.fields, faults: Vec::new() };
    let user = form.required(&names.user_id, |text| Ok(UserId::new(text)?));
    let trans_id = form.trans_id(preset, status);
    if let Err((parameter, doubt)) = class {
        form.fault(&parameter, doubt.map_or(Why::UnknownStatus, Why::Doubt));
    }
    let amount = if status == Some(Status::Reversal) {
        // What was credited is reversed: whatever this amount is, no reversal is lost for it.
        let received = form.optional(Some(&names.amount), RECEIVED_LENGTH_MAX);
        Some((Amount::ZERO, received.unwrap_or_default()))
    } else {
        form.required(&names.amount, |text| {
            let received = Received::read(text)?;
            let amount = match preset.unit {
                _ if received.is_negative() => return Err(Why::NegativeCredit),
                Unit::Coins => received.cut(coins.scale)?,
                Unit::Money(rate) => received.exchanged(rate, coins.scale)?,
            };
            Ok((amount, text.to_owned()))
        })
    };
    for (name, format) in &preset.formats {
        form.required(name, |text| if format.fits(text) { Ok(()) } else { Err(Why::Format) });
    }
    for (name, values) in &preset.yours {
        form.required(name, |text| if values.iter().any(|value| value == text) { Ok(()) } else { Err(Why::NotYours) });
    }
    let (true, Some(user), Some(trans_id), Some(status), Some((amount, amount_received))) =
        (form.faults.is_empty(), user, trans_id, status, amount)
    else {
        return Err(form.faults);
    };
    let offer = Offer {
        offer_id: form.optional(names.offer_id.as_deref(), OFFER_ID_MAX),
        offer_name: form.optional(names.offer_name.as_deref(), OFFER_NAME_MAX),
        goal_id: form.optional(names.goal_id.as_deref(), OFFER_ID_MAX),
        payout_usd: payout(preset, &form, status),
    };
    let evidence = Evidence {
        preset: Some(preset.network.clone()),
        amount_received,
        source_ip: cut(wire.request.source_ip.clone(), SOURCE_IP_MAX),
        fingerprint: gate::fingerprint(preset, wire),
    };
    let currency = coins.currency.clone();
    Ok(Report::Claim(Box::new(Claim { trans_id, status, user, currency, amount, evidence, offer })))
}

/// A payout for the deployment's books, at most eight decimals; a reversal's is below zero, however it was sent. One that
/// does not read is left out: it moves no coins, and a credit must not wait for it.
fn payout(preset: &Preset, form: &Form<'_>, status: Status) -> Option<Amount> {
    let payout = preset.parameters.payout.as_ref()?;
    let text = form.optional(Some(&payout.parameter), usize::MAX)?;
    let (received, scale) = (Received::read(&text).ok()?, Scale::new(Scale::MAX)?);
    let amount = if payout.cents { received.hundredth(scale) } else { received.cut(scale) }.ok()?;
    let taken_back = status == Status::Reversal && amount > Amount::ZERO;
    Some(if taken_back { amount.negated() } else { amount })
}

/// The fields of a verified request, and what is wrong with them.
struct Form<'a> {
    fields: &'a Fields<'a>,
    faults: Vec<Fault>,
}

impl Form<'_> {
    /// Says what is wrong with a parameter, once: two things may be read from the same one.
    fn fault(&mut self, name: &str, why: Why) {
        if !self.faults.iter().any(|fault| fault.parameter == name) {
            self.faults.push(Fault { parameter: name.to_owned(), why });
        }
    }

    /// Reads a parameter that money depends on: anything doubtful in it is a fault.
    fn required<T>(&mut self, name: &str, parse: impl FnOnce(&str) -> Result<T, Why>) -> Option<T> {
        let result = self.fields.strict(name).map_err(Why::Doubt).and_then(|text| parse(&text));
        result.map_err(|why| self.fault(name, why)).ok()
    }

    /// Reads a parameter that no money depends on: what is doubtful in it is left out or replaced, and nothing is
    /// refused.
    fn optional(&self, name: Option<&str>, max: usize) -> Option<String> {
        let text = self.fields.lenient(name?)?;
        Some(cut(text.replace(char::is_control, " "), max))
    }

    /// The conversation: the id of the credit, also where a reversal has one of its own.
    fn trans_id(&mut self, preset: &Preset, status: Option<Status>) -> Option<TransId> {
        let reversal = Some(&preset.reversal).filter(|_| status == Some(Status::Reversal));
        if let Some(name) = reversal.and_then(|reversal| reversal.parameter.as_deref()) {
            match self.fields.strict(name) {
                // A macro that the network did not replace names nothing either.
                Err(Doubt::Missing | Doubt::Macro) => {}
                _ => return self.required(name, |text| Ok(TransId::of(&preset.network, text)?)),
            }
        }
        match &preset.parameters.trans_id {
            Identity::Field(name) => self.required(name, |text| {
                let prefix = reversal.and_then(|reversal| reversal.prefix.as_ref());
                let credit =
                    prefix.and_then(|(prefix, credit)| Some(format!("{credit}{}", text.strip_prefix(prefix)?)));
                Ok(TransId::of(&preset.network, credit.as_deref().unwrap_or(text))?)
            }),
            Identity::Fingerprint(picks) => {
                let before = self.faults.len();
                let mut hash = Sha256::new();
                for pick in picks {
                    hash.update(self.picked(preset, pick));
                }
                let id = format!("fp-{}", hex::encode(&hash.finalize()[..16]));
                (self.faults.len() == before).then(|| TransId::of(&preset.network, &id).ok()).flatten()
            }
        }
    }

    /// One field of a fingerprint, so written that no two lists of fields look the same. Any text will do, such as an offer's
    /// name in brackets, but not the macro that stands for it.
    fn picked(&mut self, preset: &Preset, pick: &Pick) -> Vec<u8> {
        let picked =
            pick.of(self.fields).and_then(|value| match (self.fields.once(&pick.name), preset.macro_of(&pick.name)) {
                (Ok(sent), Some(unreplaced)) if sent.lossy() == unreplaced => Err(Doubt::Macro),
                _ => Ok(value),
            });
        match picked {
            // Absent and empty are one: some signatures do not tell them apart.
            Ok(Some(value)) if !value.is_empty() => [b"1", value.len().to_be_bytes().as_slice(), &value].concat(),
            Ok(_) => b"0".to_vec(),
            Err(doubt) => {
                self.fault(&pick.name, doubt.into());
                Vec::new()
            }
        }
    }
}

/// Whether the plan of this claim depends on what is known of its conversation. A credit's does not: it costs no read.
pub fn needs_conversation(claim: &Claim) -> bool {
    claim.status != Status::Credit
}

/// Whose balance the plan of this claim depends on beside its conversation: where a loss is ours, how large it is.
pub fn needs_balance(spent: Spent, status: Status, conversation: &[Entry]) -> Option<(&UserId, &Currency)> {
    let credit = conversation.iter().find(|known| known.status == Status::Credit)?;
    let reversed = conversation.iter().any(|known| known.status == Status::Reversal);
    let absorbs = spent == Spent::Absorb && status == Status::Reversal && !reversed;
    let spendable = given(credit, conversation).available > Amount::ZERO;
    (absorbs && spendable).then(|| (holder(credit, conversation), &credit.currency))
}

/// The postings that settle a claim, to be tried in order until one is not refused, each with what it then means.
/// `balance` is what [`needs_balance`] asks for.
///
/// When all are refused, the conversation or the account changed since they were read: read them again and plan anew.
pub fn plan(
    preset: &Preset,
    claim: &Claim,
    conversation: &[Entry],
    balance: Option<Amount>,
    now: Timestamp,
) -> Vec<(Posting, Happened)> {
    let (key, account) = ((claim.trans_id.clone(), claim.status), (claim.user.clone(), claim.currency.clone()));
    let entry = Entry {
        evidence: claim.evidence.clone(),
        offer: claim.offer.clone(),
        ..Entry::plain(key, account, claim.amount, now)
    };
    if claim.status == Status::Credit {
        return credit(preset, entry);
    }
    let seen = conversation.iter().any(|known| known.status == Status::Credit);
    if !seen {
        return vec![(reverse_unseen(entry), Happened::ReversedUnseen)];
    }
    let ways = reversals(preset.spent, entry, conversation, balance);
    ways.into_iter().map(|posting| (posting, Happened::Reversed)).collect()
}

/// Why a person cannot reverse a conversion.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotReversible {
    #[error("there is no credit of it")]
    Unknown,
    #[error("it is reversed already, {0:.3}")]
    Reversed(Timestamp),
}

/// The reversal of a conversation's credit that a person decided: an entry for [`reversals`].
///
/// # Errors
///
/// [`NotReversible`].
pub fn reverse_by_hand(conversation: &[Entry], decision: &Decision, now: Timestamp) -> Result<Entry, NotReversible> {
    let credit = conversation.iter().find(|known| known.status == Status::Credit).ok_or(NotReversible::Unknown)?;
    if let Some(reversal) = conversation.iter().find(|known| known.status == Status::Reversal) {
        return Err(NotReversible::Reversed(reversal.received_at));
    }
    Ok(Entry {
        status: Status::Reversal,
        user: credit.user_claimed().clone(),
        held: None,
        received_at: now,
        user_received: None,
        evidence: Evidence::default(),
        // What the network paid for it, it has not taken back.
        offer: Offer { payout_usd: None, ..credit.offer.clone() },
        decision: Some(decision.clone()),
        ..credit.clone()
    })
}

/// Gives coins: available, or held for a while; above a cap, or to a user whom the app must know and does not, held until
/// a person decides.
fn credit(preset: &Preset, entry: Entry) -> Vec<(Posting, Happened)> {
    if entry.amount.is_zero() {
        return vec![(Posting::of(entry), Happened::Credited)];
    }
    let known: &[Guard] = match preset.unknown_users {
        UnknownUsers::Create => &[],
        UnknownUsers::Require => &[Guard::Known],
    };
    let post = |entry: Entry, more: &[Guard]| Posting { guards: [known, more].concat(), ..Posting::of(entry) };
    let capped = preset.cap.filter(|cap| entry.amount > *cap);
    let day = TimeZone::UTC.to_datetime(entry.received_at).date();
    let mut ways = Vec::new();
    let above = match (capped, preset.cap_per_day) {
        (Some(cap), _) => Some((format!("above the cap of {cap}"), None)),
        (None, None) => {
            let (entry, happened) = held_for_a_while(preset, entry.clone());
            ways.push((post(entry, &[]), happened));
            None
        }
        (None, Some(cap)) => {
            let room = cap.checked_add(entry.amount.negated()).filter(|room| *room >= Amount::ZERO);
            if let Some(room) = room {
                let (entry, happened) = held_for_a_while(preset, entry.clone());
                ways.push((post(entry.clone(), &[Guard::CreditedAtMost(day, room)]), happened));
                ways.push((post(entry, &[Guard::FirstOf(day)]), happened));
            }
            Some((format!("above the cap of {cap} for one user and day"), room))
        }
    };
    if let Some((above, room)) = above {
        let entry = Entry { held: Some(Held { change: entry.amount, release_at: None }), ..entry.clone() };
        let detail = format!(
            "The credit of {} for user {} is {above}: the coins are held until somebody releases them.",
            entry.amount, entry.user
        );
        let cases = vec![Case::about(CaseKind::OverCap, &entry, detail)];
        // Where another credit took the day's room a moment ago, there may still be enough for this one.
        let guard = room.map(|room| Guard::CreditedMoreThan(day, room));
        ways.push((Posting { cases, ..post(entry, guard.as_slice()) }, Happened::Suspended));
    }
    if preset.unknown_users == UnknownUsers::Require {
        ways.push((suspend(preset, entry), Happened::Suspended));
    }
    ways
}

/// A credit under its network's hold, where it has one.
fn held_for_a_while(preset: &Preset, entry: Entry) -> (Entry, Happened) {
    let hold = preset.hold.filter(|_| preset.hold_above.is_none_or(|above| entry.amount > above));
    let Some(hold) = hold else { return (entry, Happened::Credited) };
    // A hold without a time waits for a person, who is told of it by a case: this one has none.
    let release_at = Some(entry.received_at.checked_add(hold).unwrap_or(Timestamp::MAX));
    (Entry { held: Some(Held { change: entry.amount, release_at }), ..entry }, Happened::Held)
}

/// Keeps the credit of a user whom the app does not know: it is recorded, and nobody can spend it.
fn suspend(preset: &Preset, mut entry: Entry) -> Posting {
    entry.held = Some(Held { change: entry.amount, release_at: None });
    let user = std::mem::replace(&mut entry.user, UserId::suspense(&preset.network));
    let capped = preset.cap.filter(|cap| entry.amount > *cap);
    let capped = capped.map(|cap| format!(" It is above the cap of {cap} too.")).unwrap_or_default();
    let detail = format!(
        "The credit of {} is for user {user}, whom the app does not know: the coins are kept in {}.{capped}",
        entry.amount, entry.user
    );
    entry.user_received = Some(user.clone());
    let cases = vec![Case::about(CaseKind::UnknownUser, &entry, detail)];
    Posting { unknown: Some(user), cases, ..Posting::of(entry) }
}

/// Takes back what a credit gave, from whoever has it: out of its hold, or plainly where the coins are still there, else as
/// `spent` says. The guards leave no balance without a posting: where all are refused, something changed since it was read.
/// `entry` says who reverses; what it moves comes from the credit. Without a credit there is nothing to take back.
pub fn reversals(spent: Spent, mut entry: Entry, conversation: &[Entry], balance: Option<Amount>) -> Vec<Posting> {
    let Some(credit) = conversation.iter().find(|known| known.status == Status::Credit) else { return Vec::new() };
    let holder = holder(credit, conversation);
    let given = given(credit, conversation);
    entry.amount = given.available.checked_add(given.held).unwrap_or(credit.amount).negated();
    entry.currency = credit.currency.clone();
    if entry.user != *holder {
        entry.user_received = Some(std::mem::replace(&mut entry.user, holder.clone()));
    }
    let mut posting = Posting::of(entry);
    if let Some(named) = posting.entry.user_received.as_ref().filter(|named| *named != credit.user_claimed()) {
        let detail = format!(
            "The reversal names user {named}, the credit user {}: the coins were taken from {holder}.",
            credit.user_claimed()
        );
        posting.cases.push(Case::about(CaseKind::Conflict(Field::User), &posting.entry, detail));
    }
    if let Some(hold) = held_now(conversation) {
        posting.entry.held = Some(Held { change: hold.amount.negated(), release_at: hold.release_at });
    }
    // What is held is there. What a correction took before is given back.
    if given.available <= Amount::ZERO {
        return vec![posting];
    }
    let covered = Posting { guards: vec![Guard::AtLeast(given.available)], ..posting.clone() };
    let spent = match spent {
        Spent::Negative => Some(overdraw(posting, given.available)),
        Spent::Absorb => balance.and_then(|balance| absorb(posting, given, balance)),
    };
    [Some(covered), spent].into_iter().flatten().collect()
}

/// What a conversation gave to whoever has its coins: its credit, as people corrected it. All of it is zero where a correction
/// took more than was credited.
fn given(credit: &Entry, conversation: &[Entry]) -> Account {
    let holder = holder(credit, conversation);
    let corrections = conversation.iter().filter(|entry| {
        matches!(entry.status, Status::Adjust(_)) && entry.user == *holder && entry.currency == credit.currency
    });
    let sum = corrections.fold(credit.amount, |sum, entry| sum.checked_add(entry.amount).unwrap_or(sum));
    let held = held_now(conversation).map_or(Amount::ZERO, |hold| hold.amount);
    let available = sum.max(Amount::ZERO).checked_add(held.negated()).unwrap_or(credit.amount);
    Account { available, held, closed: false }
}

/// Takes coins that were spent: the balance goes below zero.
fn overdraw(mut posting: Posting, given: Amount) -> Posting {
    let detail = format!("The credit of {given} was spent before it was reversed: the balance went below zero.");
    posting.guards = vec![Guard::Below(given)];
    posting.cases.push(Case::about(CaseKind::Overdrawn, &posting.entry, detail));
    posting
}

/// Takes what is left of coins that were spent, and nothing below zero: the rest is our loss. `None` where all are there.
fn absorb(mut posting: Posting, given: Account, balance: Amount) -> Option<Posting> {
    let left = balance.max(Amount::ZERO);
    let absorbed = given.available.checked_add(left.negated()).filter(|absorbed| *absorbed > Amount::ZERO)?;
    posting.entry.amount = left.checked_add(given.held)?.negated();
    posting.entry.absorbed = absorbed;
    posting.guards = vec![Guard::Exactly(balance)];
    let detail = format!(
        "The credit of {} was spent before it was reversed: {left} were left and taken, {absorbed} are our loss.",
        given.available
    );
    let case = Case::about(CaseKind::Shortfall, &posting.entry, detail);
    posting.cases.push(case);
    Some(posting)
}

/// Records a reversal whose credit was never seen, and a placeholder where the credit would be: should it still come,
/// it moves nothing. Nor does the placeholder count as paid by the network.
fn reverse_unseen(entry: Entry) -> Posting {
    let offer = Offer { payout_usd: None, ..entry.offer.clone() };
    let placeholder = Entry { status: Status::Credit, void: true, offer, ..entry.clone() };
    let detail = format!(
        "The reversal (of {} as sent) came without its credit: should the credit still come, it moves nothing.",
        if entry.evidence.amount_received.is_empty() { "nothing" } else { &entry.evidence.amount_received }
    );
    let cases = vec![Case::about(CaseKind::ReversalWithoutCredit, &entry, detail)];
    Posting { companions: vec![placeholder], cases, ..Posting::of(entry) }
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
            Some((Happened::LateCredit, Some(Case::about(CaseKind::LateCredit, new, detail))))
        }
        Outcome::Replayed(_) => Some((Happened::Duplicate, None)),
        Outcome::Conflict(stored, field) => {
            let (known, sent) = match field {
                Field::User => (stored.user_claimed().to_string(), new.user_claimed().to_string()),
                Field::Currency => (stored.currency.to_string(), new.currency.to_string()),
                Field::Amount | Field::Kind | Field::Counterpart | Field::Round => {
                    (stored.amount.to_string(), new.amount.to_string())
                }
            };
            let detail = format!(
                "Came again with another {field}: {known} is recorded, {sent} was sent (fingerprint {}). Nothing moved.",
                new.evidence.fingerprint
            );
            let about = Entry { user: stored.user, ..new.clone() };
            Some((Happened::Conflict, Some(Case::about(CaseKind::Conflict(field), &about, detail))))
        }
        Outcome::Refused(_) => None,
    }
}

/// The answer to a report that was settled.
pub fn answer(preset: &Preset, request: &Request, happened: Happened) -> Answer {
    let answers = &preset.answers;
    let reply = match happened {
        Happened::Credited
        | Happened::Held
        | Happened::Suspended
        | Happened::Reversed
        | Happened::ReversedUnseen
        | Happened::LateCredit => &answers.applied,
        Happened::Duplicate | Happened::Conflict => &answers.duplicate,
        Happened::Noted(_) => &answers.ignored,
    };
    say(preset, request, reply)
}

/// The answer to a request that says nothing. `preset` is that of its path.
pub fn refuse(preset: Option<&Preset>, request: &Request, rejection: &Rejection) -> Answer {
    match (preset, rejection) {
        (_, Rejection::Barred(Barred::MethodNotAllowed(method))) => {
            Answer::new(405, format!("method not allowed: send a {method}"))
        }
        (None, _) | (_, Rejection::UnknownNetwork) => Answer::new(404, "no such network"),
        (Some(preset), Rejection::Barred(Barred::BadSignature(_))) => {
            say(preset, request, &preset.answers.bad_signature)
        }
        (Some(preset), Rejection::Barred(Barred::BadSource)) => say(preset, request, &preset.answers.bad_source),
        (Some(preset), Rejection::Barred(Barred::Unreadable) | Rejection::Parameters(_)) => {
            match &preset.answers.bad_parameters {
                Some(reply) => say(preset, request, reply),
                None => Answer::new(400, rejection.why().unwrap_or_default().replace("; ", "\n")),
            }
        }
    }
}

/// The answer when the ledger could not be asked in time, or could not be asked at all: nothing is half done, and the
/// network's next attempt is safe.
pub fn try_again(preset: &Preset, request: &Request) -> Answer {
    say(preset, request, &preset.answers.unavailable)
}

/// An answer with the request's fields in it.
fn say(preset: &Preset, request: &Request, reply: &Reply) -> Answer {
    /// Most bytes of a field that go back to whoever sent it.
    const ECHO_MAX: usize = 256;
    let content_type = preset.answers.content_type;
    let body = match &reply.body[..] {
        [] => Cow::Borrowed(""),
        [Piece::Literal(text)] => Cow::Owned(text.clone()),
        pieces => gate::on_wire(preset, request, |wire, _| {
            let piece = |piece: &Piece| match piece {
                Piece::Literal(text) => text.clone(),
                Piece::Placeholder(name) => {
                    let text = wire.fields.lenient(name).unwrap_or_default();
                    let text = cut(text.replace(char::is_control, " "), ECHO_MAX);
                    match content_type {
                        ContentType::Text => text,
                        ContentType::Json => text.replace('\\', "\\\\").replace('"', "\\\""),
                    }
                }
            };
            Cow::Owned(pieces.iter().map(piece).collect())
        }),
    };
    Answer { content_type, ..Answer::new(reply.status, body) }
}
