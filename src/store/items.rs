//! How rows are laid out: each kind of row as an item, and back. The only file that knows an attribute's name.
//!
//! Never decides anything, and never reads leniently what money depends on.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use jiff::Timestamp;

use crate::id::{Currency, Network, RoundId, TransId, UserId};
use crate::ledger::{
    About, Account, Case, CaseKind, CaseRow, Closed, Decision, Entry, Evidence, Held, Hold, Offer, Operation,
    OperationKind, Round, Status, StoredAnswer,
};
use crate::money::Amount;
use crate::settings::Version;

pub(super) type Item = HashMap<String, AttributeValue>;

/// How many partitions a network's day is spread over in the index `by_day`, and the holds in their queue: one hot index
/// partition would throttle the table behind it.
pub const SHARDS: u32 = 8;

/// The bucket of the holds that wait for a person.
pub(super) const WAITING: &str = "waiting";

/// The state of a case that nobody closed.
pub(super) const OPEN: &str = "open";

/// The state of a case that somebody closed.
pub(super) const CLOSED: &str = "closed";

/// What stands for the network of a case that is about none; no network can have this name.
const NO_NETWORK: &str = "-";

/// The name of the one document of settings, of which every version is a row.
pub(super) const SETTINGS: &str = "settings";

pub(super) fn string(text: impl Into<String>) -> AttributeValue {
    AttributeValue::S(text.into())
}

pub(super) fn number(amount: Amount) -> AttributeValue {
    AttributeValue::N(amount.to_string())
}

pub(super) fn integer(number: u64) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

/// ISO 8601 in UTC with milliseconds: always the same length, so that it sorts as text.
pub(super) fn time(at: Timestamp) -> String {
    format!("{at:.3}")
}

pub(super) fn account_key(user: &UserId, currency: &Currency) -> Item {
    HashMap::from([("user_id".into(), string(user.as_str())), ("currency".into(), string(currency.as_str()))])
}

/// Which of [`SHARDS`] a conversation belongs to: in the indexes by day and by round, and in the queue of holds.
pub fn shard(trans_id: &TransId) -> u32 {
    shard_of(trans_id.as_str())
}

fn shard_of(text: &str) -> u32 {
    // FNV-1a: a few instructions that spread ids evenly.
    let hash = text.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    hash % SHARDS
}

/// A part of a round: a game may have thousands of players in one.
pub(super) fn round_part(round: &RoundId, shard: u32) -> String {
    format!("{round}#{shard}")
}

/// The round that a part is of.
pub(super) fn round_of(part: &str) -> Option<&str> {
    part.rsplit_once('#').map(|(round, _)| round)
}

/// The key of a player's part in a round.
pub(super) fn round_key(round: &RoundId, user: &UserId) -> Item {
    let part = round_part(round, shard_of(user.as_str()));
    HashMap::from([("round_id".into(), string(part)), ("user_id".into(), string(user.as_str()))])
}

/// What an account counts of a day's credits, for each network by itself: the day, and their sum.
pub(super) fn day_names(trans_id: &TransId) -> HashMap<String, String> {
    let network = trans_id.network();
    [("#on", "credited_on"), ("#today", "credited_today")]
        .map(|(name, attribute)| (name.to_owned(), format!("{attribute}/{network}")))
        .into()
}

/// The partition of the index `by_day` that an entry is in: `<network>#<day>#<shard>`.
fn day_shard(entry: &Entry) -> String {
    let day = &time(entry.received_at)[..10];
    format!("{}#{day}#{}", entry.trans_id.network(), shard(&entry.trans_id))
}

pub(super) fn entry_item(entry: &Entry) -> Item {
    let required = [
        ("trans_id", string(entry.trans_id.as_str())),
        ("status", string(entry.status.as_str())),
        ("network", string(entry.trans_id.network())),
        ("user_id", string(entry.user.as_str())),
        ("currency", string(entry.currency.as_str())),
        ("amount", number(entry.amount)),
        ("received_at", string(time(entry.received_at))),
        ("day", string(day_shard(entry))),
    ];
    let held_in = entry.held.filter(|held| held.change > Amount::ZERO);
    let known = |text: &String| Some(string(text)).filter(|_| !text.is_empty());
    let optional = [
        ("preset", entry.evidence.preset.as_ref().map(|preset| string(preset.as_str()))),
        ("amount_received", known(&entry.evidence.amount_received)),
        ("fingerprint", known(&entry.evidence.fingerprint)),
        ("source_ip", known(&entry.evidence.source_ip)),
        ("held", entry.held.map(|held| number(held.change))),
        // Told where the coins come into the hold; where they leave it, it only says which row to take away.
        ("release_at", held_in.and_then(|held| held.release_at).map(|at| string(time(at)))),
        ("absorbed", Some(number(entry.absorbed)).filter(|_| !entry.absorbed.is_zero())),
        ("by", entry.decision.as_ref().map(|decision| string(&decision.by))),
        ("reason", entry.decision.as_ref().map(|decision| string(&decision.reason))),
        ("user_received", entry.user_received.as_ref().map(|user| string(user.as_str()))),
        ("void", entry.void.then_some(AttributeValue::Bool(true))),
        ("offer_id", entry.offer.offer_id.as_ref().map(string)),
        ("offer_name", entry.offer.offer_name.as_ref().map(string)),
        ("goal_id", entry.offer.goal_id.as_ref().map(string)),
        ("payout_usd", entry.offer.payout_usd.map(number)),
    ];
    let operation = entry.operation.iter().flat_map(|operation| operation_attributes(entry, operation));
    let optional = optional.into_iter().filter_map(|(name, value)| Some((name, value?)));
    required.into_iter().chain(optional).chain(operation).map(|(name, value)| (name.to_owned(), value)).collect()
}

/// What an entry says of a wallet's operation. `round` is the partition of the index `by_round`.
fn operation_attributes(
    entry: &Entry,
    operation: &Operation,
) -> impl Iterator<Item = (&'static str, AttributeValue)> + use<> {
    let Operation { kind, requested, round, game_id, counterpart, answer: StoredAnswer { status, body } } = operation;
    let round = round.as_ref().map(|round| string(round_part(round, shard(&entry.trans_id))));
    let attributes = [
        ("kind", Some(string(kind.as_str()))),
        ("requested", requested.map(number)),
        ("round", round),
        ("game_id", game_id.as_ref().map(string)),
        ("counterpart", counterpart.as_ref().map(|trans_id| string(trans_id.as_str()))),
        ("answer_status", Some(integer((*status).into()))),
        ("answer", Some(string(body))),
    ];
    attributes.into_iter().filter_map(|(name, value)| Some((name, value?)))
}

/// Reads what an entry says of a wallet's operation, or says which attribute does not read; `None` where it says nothing.
fn operation_from(attributes: &Attributes<'_>) -> Result<Option<Operation>, String> {
    if attributes.optional("kind").is_none() {
        return Ok(None);
    }
    let round = |text: &str| round_of(text).and_then(|round| RoundId::new(round).ok());
    let there = |name| attributes.optional(name).is_some();
    Ok(Some(Operation {
        kind: attributes.required("kind", OperationKind::stored)?,
        requested: there("requested").then(|| attributes.amount("requested")).transpose()?,
        round: there("round").then(|| attributes.required("round", round)).transpose()?,
        game_id: attributes.optional("game_id").map(String::from),
        counterpart: there("counterpart")
            .then(|| attributes.required("counterpart", |text| TransId::new(text).ok()))
            .transpose()?,
        answer: StoredAnswer {
            status: attributes.required("answer_status", |text| text.parse().ok())?,
            body: attributes.required("answer", |text| Some(text.to_owned()))?,
        },
    }))
}

/// Reads a player's part in a round, or says which attribute does not read. What never happened is not written.
pub(super) fn round_from(item: &Item) -> Result<Round, String> {
    let attributes = Attributes(item);
    let count = |name| match attributes.optional(name) {
        None => Ok(0),
        // Below zero it can only be where the table was restored to another second than the entries: no bet counts then, and
        // a win must not wait for somebody to mend it.
        Some(_) => attributes.required(name, |text| text.parse::<i64>().ok()?.max(0).try_into().ok()),
    };
    Ok(Round {
        bets: count("bets")?,
        rolled_back: count("rolled_back")?,
        finished: attributes.optional("finished_at").is_some(),
    })
}

pub(super) fn case_item(case: &Case) -> Item {
    let network = match &case.about {
        About::Entry { trans_id, .. } => Some(trans_id.network()),
        About::Settings(_) => None,
    };
    let mut attributes = vec![
        ("case_id", string(case.id())),
        ("kind", string(case.kind.as_str())),
        ("state", string(OPEN)),
        // The key of the index of open cases: only what has it is in there.
        ("open", string(network.unwrap_or(NO_NETWORK))),
        ("detail", string(&case.detail)),
        ("opened_at", string(time(case.opened_at))),
    ];
    match &case.about {
        About::Entry { trans_id, status, user, currency, amount } => attributes.extend([
            ("trans_id", string(trans_id.as_str())),
            ("status", string(status.as_str())),
            ("network", string(trans_id.network())),
            ("user_id", string(user.as_str())),
            ("currency", string(currency.as_str())),
            ("amount", number(*amount)),
        ]),
        About::Settings(version) => attributes.push(("version", integer(*version))),
    }
    attributes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Reads a stored account, or says which attribute does not read. What never moved is not written.
pub(super) fn account_from(item: &Item) -> Result<Account, String> {
    let attributes = Attributes(item);
    Ok(Account {
        available: attributes.part("available")?,
        held: attributes.part("held")?,
        closed: attributes.optional("closed_at").is_some(),
    })
}

/// Reads a stored case, or says which attribute does not read.
pub(super) fn case_from(item: &Item) -> Result<CaseRow, String> {
    let attributes = Attributes(item);
    let owned = |name| attributes.optional(name).unwrap_or_default().to_owned();
    let case_id = attributes.required("case_id", |text| Some(text.to_owned()))?;
    let read = |problem: String| format!("case {case_id}: {problem}");
    // A conflict's id ends with the field in which it differs.
    let field = case_id.rsplit('/').next().unwrap_or_default();
    let kind = |text: &str| {
        CaseKind::ALL.into_iter().find(|kind| match kind {
            CaseKind::Conflict(differs) => kind.as_str() == text && differs.to_string() == field,
            _ => kind.as_str() == text,
        })
    };
    let kind = attributes.required("kind", kind).map_err(read)?;
    let about = match kind {
        CaseKind::SettingsBroken => {
            About::Settings(attributes.required("version", |text| text.parse().ok()).map_err(read)?)
        }
        _ => About::Entry {
            trans_id: attributes.required("trans_id", |text| TransId::new(text).ok()).map_err(read)?,
            status: attributes.required("status", Status::stored).map_err(read)?,
            user: attributes.required("user_id", UserId::stored).map_err(read)?,
            currency: attributes.required("currency", |text| Currency::new(text).ok()).map_err(read)?,
            amount: attributes.amount("amount").map_err(read)?,
        },
    };
    let closed = match attributes.required("state", |text| Some(text == OPEN)).map_err(read)? {
        true => None,
        false => Some(Closed {
            resolution: owned("resolution"),
            decision: Decision { by: owned("closed_by"), reason: owned("reason") },
            closed_at: attributes.time("closed_at").map_err(read)?,
        }),
    };
    let opened_at = attributes.time("opened_at").map_err(read)?.unwrap_or_default();
    let case = Case { kind, about, detail: owned("detail"), opened_at };
    Ok(CaseRow { case_id, case, closed })
}

/// The key of the row that stands for a conversation's held coins: `bucket` and `due`. Those with a release time are spread
/// over as many buckets as there are shards, in the order of their time; those that wait for a person are in one of their own.
pub(super) fn hold_key(trans_id: &TransId, release_at: Option<Timestamp>) -> Item {
    let (bucket, due) = match release_at {
        Some(at) => (shard(trans_id).to_string(), format!("{}#{trans_id}", time(at))),
        None => (WAITING.to_owned(), trans_id.to_string()),
    };
    HashMap::from([("bucket".into(), string(bucket)), ("due".into(), string(due))])
}

pub(super) fn hold_item(entry: &Entry, held: &Held) -> Item {
    let mut item = hold_key(&entry.trans_id, held.release_at);
    let attributes = [
        ("trans_id", Some(string(entry.trans_id.as_str()))),
        ("user_id", Some(string(entry.user.as_str()))),
        ("currency", Some(string(entry.currency.as_str()))),
        ("amount", Some(number(held.change))),
        ("release_at", held.release_at.map(|at| string(time(at)))),
    ];
    item.extend(attributes.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    item
}

/// Reads a row of the queue of holds, or says which attribute does not read.
pub(super) fn hold_from(item: &Item) -> Result<Hold, String> {
    let attributes = Attributes(item);
    Ok(Hold {
        trans_id: attributes.required("trans_id", |text| TransId::new(text).ok())?,
        user: attributes.required("user_id", UserId::stored)?,
        currency: attributes.required("currency", |text| Currency::new(text).ok())?,
        amount: attributes.amount("amount")?,
        release_at: attributes.time("release_at")?,
    })
}

/// Reads a stored entry, or says which attribute does not read.
///
/// Only what a judgement needs must be there: a person may have put the entry by hand, without the evidence of a request.
pub(super) fn entry_from(item: &Item) -> Result<Entry, String> {
    let attributes = Attributes(item);
    let owned = |name| attributes.optional(name).map(String::from);
    Ok(Entry {
        trans_id: attributes.required("trans_id", |text| TransId::new(text).ok())?,
        status: attributes.required("status", Status::stored)?,
        user: attributes.required("user_id", UserId::stored)?,
        currency: attributes.required("currency", |text| Currency::new(text).ok())?,
        amount: attributes.amount("amount")?,
        held: match attributes.optional("held") {
            None => None,
            Some(_) => Some(Held { change: attributes.amount("held")?, release_at: attributes.time("release_at")? }),
        },
        absorbed: attributes.part("absorbed")?,
        received_at: attributes.optional("received_at").and_then(|text| text.parse().ok()).unwrap_or_default(),
        void: matches!(item.get("void"), Some(AttributeValue::Bool(true))),
        user_received: attributes.optional("user_received").and_then(UserId::stored),
        evidence: Evidence {
            preset: attributes.optional("preset").and_then(|text| Network::new(text).ok()),
            amount_received: owned("amount_received").unwrap_or_default(),
            source_ip: owned("source_ip").unwrap_or_default(),
            fingerprint: owned("fingerprint").unwrap_or_default(),
        },
        offer: Offer {
            offer_id: owned("offer_id"),
            offer_name: owned("offer_name"),
            goal_id: owned("goal_id"),
            payout_usd: attributes.optional("payout_usd").and_then(Amount::stored),
        },
        decision: owned("by").map(|by| Decision { by, reason: owned("reason").unwrap_or_default() }),
        operation: operation_from(&attributes)?,
    })
}

pub(super) fn version_key(number: u64) -> Item {
    HashMap::from([("name".into(), string(SETTINGS)), ("version".into(), integer(number))])
}

pub(super) fn version_item(version: &Version) -> Item {
    let attributes = [
        ("document", string(&version.document)),
        ("who", string(&version.who)),
        ("at", string(time(version.at))),
        ("why", string(&version.why)),
    ];
    let mut item = version_key(version.number);
    item.extend(attributes.map(|(name, value)| (name.to_owned(), value)));
    item
}

/// Reads a version of the settings, or says that its number does not read.
///
/// A person may have put it by hand: one without a document has an empty one, which enables no network and so never counts.
pub(super) fn version_from(item: &Item) -> Result<Version, String> {
    let attributes = Attributes(item);
    let owned = |name| attributes.optional(name).map(String::from).unwrap_or_default();
    Ok(Version {
        number: attributes.required("version", |text| text.parse().ok())?,
        document: owned("document"),
        who: owned("who"),
        at: attributes.optional("at").and_then(|text| text.parse().ok()).unwrap_or_default(),
        why: owned("why"),
    })
}

/// A stored item, read by name.
pub(super) struct Attributes<'a>(pub(super) &'a Item);

impl<'a> Attributes<'a> {
    pub(super) fn optional(&self, name: &str) -> Option<&'a str> {
        match self.0.get(name)? {
            AttributeValue::S(text) | AttributeValue::N(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn required<T>(&self, name: &str, read: impl FnOnce(&'a str) -> Option<T>) -> Result<T, String> {
        self.optional(name)
            .and_then(read)
            .ok_or_else(|| format!("the stored attribute `{name}` is missing or does not read"))
    }

    pub(super) fn amount(&self, name: &str) -> Result<Amount, String> {
        self.required(name, Amount::stored)
    }

    /// A part of a balance: an account that never held coins has no such attribute.
    pub(super) fn part(&self, name: &str) -> Result<Amount, String> {
        self.optional(name).map_or(Ok(Amount::ZERO), |_| self.amount(name))
    }

    /// A time that need not be there, but must read where it is.
    pub(super) fn time(&self, name: &str) -> Result<Option<Timestamp>, String> {
        self.optional(name).map(|_| self.required(name, |text| text.parse().ok())).transpose()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A credit of 10 coins to user u.
    pub(in crate::store) fn entry() -> Entry {
        Entry {
            trans_id: TransId::new("net/1").unwrap(),
            status: Status::Credit,
            user: UserId::new("u").unwrap(),
            currency: Currency::new("coins").unwrap(),
            amount: Amount::stored("10").unwrap(),
            held: None,
            absorbed: Amount::ZERO,
            received_at: "2026-11-30T23:59:59.999Z".parse().unwrap(),
            void: false,
            user_received: Some(UserId::new("v").unwrap()),
            evidence: Evidence {
                preset: Network::new("net").ok(),
                amount_received: "10.00".into(),
                source_ip: "2001:db8::1".into(),
                fingerprint: "ab".into(),
            },
            offer: Offer {
                offer_id: Some("7".into()),
                offer_name: Some("Quest".into()),
                goal_id: Some("3".into()),
                payout_usd: Amount::stored("0.7"),
            },
            decision: None,
            operation: None,
        }
    }

    #[test]
    fn an_entry_reads_back_as_it_was_written() {
        let mut entry = entry();
        assert_eq!(entry_from(&entry_item(&entry)), Ok(entry.clone()));
        entry = Entry { void: true, user_received: None, offer: Offer::default(), ..entry };
        entry.evidence = Evidence::default();
        assert_eq!(entry_from(&entry_item(&entry)), Ok(entry.clone()));
        let held = |release_at| Some(Held { change: Amount::stored("10").unwrap(), release_at });
        entry = Entry { held: held(None), decision: Some(Decision { by: "ana".into(), reason: "x".into() }), ..entry };
        assert_eq!(entry_from(&entry_item(&entry)), Ok(entry.clone()));
        entry = Entry { held: held(Some(entry.received_at)), absorbed: Amount::stored("1").unwrap(), ..entry };
        assert_eq!(entry_from(&entry_item(&entry)), Ok(entry.clone()));
        for kind in OperationKind::ALL {
            let operation = Operation {
                kind,
                requested: Amount::stored("10"),
                round: RoundId::new("net/1#2").ok(),
                game_id: Some("x".into()),
                counterpart: TransId::new("net/2").ok(),
                answer: StoredAnswer { status: 402, body: "{\"error\": \"ü\"}".into() },
            };
            let bare =
                Operation { requested: None, round: None, game_id: None, counterpart: None, ..operation.clone() };
            for operation in [operation, bare] {
                let entry = Entry { status: Status::Operation, operation: Some(operation), ..entry.clone() };
                assert_eq!(entry_from(&entry_item(&entry)), Ok(entry));
            }
        }
    }

    #[test]
    fn a_version_reads_back_as_it_was_written_and_one_put_by_hand_may_lack_all_but_its_number() {
        let version = Version {
            number: 7,
            document: "enabled = []".into(),
            who: "ana".into(),
            at: "2026-11-30T23:59:59.999Z".parse().unwrap(),
            why: "a try".into(),
        };
        assert_eq!(version_from(&version_item(&version)), Ok(version));
        let by_hand = version_from(&version_key(8)).unwrap();
        assert_eq!((by_hand.number, by_hand.document.as_str()), (8, ""));
        let unread = HashMap::from([("version".to_owned(), AttributeValue::N("1.5".into()))]);
        version_from(&unread).unwrap_err();
    }

    #[test]
    fn the_largest_possible_entry_is_no_more_than_1_kb_and_a_wallets_no_more_than_2() {
        let long = |byte: &str, length: usize| byte.repeat(length);
        let network = Network::new(&long("n", 24)).unwrap();
        let amount = format!("-{}.{}", long("9", 15), long("9", 8));
        let entry = Entry {
            trans_id: TransId::of(&network, &long("i", TransId::RECEIVED_MAX)).unwrap(),
            status: Status::Reversal,
            user: UserId::new(&long("u", 128)).unwrap(),
            currency: Currency::new(&long("c", 16)).unwrap(),
            amount: Amount::stored(&amount).unwrap(),
            held: Some(Held { change: Amount::stored(&amount).unwrap(), release_at: Some(Timestamp::UNIX_EPOCH) }),
            // Only what is not held can be spent, and then be a loss.
            absorbed: Amount::ZERO,
            received_at: Timestamp::UNIX_EPOCH,
            // A placeholder names no other user; both together cannot be.
            void: false,
            user_received: UserId::new(&long("v", 128)).ok(),
            evidence: Evidence {
                preset: Some(network),
                amount_received: long("9", crate::money::RECEIVED_LENGTH_MAX),
                source_ip: long("f", crate::ledger::SOURCE_IP_MAX),
                fingerprint: long("f", 32),
            },
            offer: Offer {
                offer_id: Some(long("o", crate::ledger::OFFER_ID_MAX)),
                offer_name: Some(long("o", crate::ledger::OFFER_NAME_MAX)),
                goal_id: Some(long("g", crate::ledger::OFFER_ID_MAX)),
                payout_usd: Amount::stored(&amount),
            },
            decision: None,
            operation: None,
        };
        assert!(size(&entry) <= 1024, "{} bytes", size(&entry));

        // A wallet's may be larger where its ids are of the longest, and then costs twice as much.
        let operation = Operation {
            kind: OperationKind::BetRollback,
            requested: Amount::stored(&amount),
            round: RoundId::new(&long("r", 24 + 1 + RoundId::RECEIVED_MAX)).ok(),
            game_id: Some(long("g", crate::ledger::GAME_ID_MAX)),
            counterpart: Some(entry.trans_id.clone()),
            // Every byte of an id may need a second one in JSON.
            answer: StoredAnswer { status: 200, body: long("b", 2 * (24 + 1 + TransId::RECEIVED_MAX) + 160) },
        };
        let operation = Entry { offer: Offer::default(), held: None, operation: Some(operation), ..entry };
        assert!(size(&operation) <= 2048, "{} bytes", size(&operation));
    }

    /// The bytes of an entry, as DynamoDB counts: UTF-8; for a number a byte for two digits, one more, and one for a minus.
    fn size(entry: &Entry) -> usize {
        let of = |(name, value): (String, AttributeValue)| match value {
            AttributeValue::S(text) => name.len() + text.len(),
            AttributeValue::N(text) => name.len() + text.len().div_ceil(2) + 2,
            _ => name.len() + 1,
        };
        entry_item(entry).into_iter().map(of).sum()
    }

    #[test]
    fn an_operation_whose_ids_have_64_bytes_is_no_more_than_1_kb() {
        let long = |byte: &str, length: usize| byte.repeat(length);
        let network = Network::new(&long("n", 12)).unwrap();
        let amount = "999999999999999.99";
        let trans_id = TransId::of(&network, &long("i", 64)).unwrap();
        let body = format!(
            r#"{{"transaction_id":"{trans_id}","balance_before":{amount},"balance_after":{amount},"status":"SUCCESS"}}"#
        );
        let operation = Operation {
            kind: OperationKind::BetRollback,
            requested: Amount::stored(amount),
            round: RoundId::of(&network, &long("r", RoundId::RECEIVED_MAX)).ok(),
            game_id: Some(long("g", 64)),
            counterpart: Some(trans_id.clone()),
            answer: StoredAnswer { status: 200, body },
        };
        let account = (UserId::new(&long("u", 64)).unwrap(), Currency::new("coins").unwrap());
        let entry = Entry {
            evidence: Evidence {
                preset: Some(network),
                amount_received: String::new(),
                source_ip: long("f", crate::ledger::SOURCE_IP_MAX),
                fingerprint: long("f", 32),
            },
            operation: Some(operation),
            ..Entry::plain(
                (trans_id, Status::Operation),
                account,
                Amount::stored(amount).unwrap(),
                Timestamp::UNIX_EPOCH,
            )
        };
        assert_eq!(entry_from(&entry_item(&entry)), Ok(entry.clone()));
        assert!(size(&entry) <= 1024, "{} bytes", size(&entry));
    }

    #[test]
    fn a_part_in_a_round_lacks_what_never_happened_and_its_key_spreads_over_all_shards() {
        let number = |text: &str| AttributeValue::N(text.into());
        let of = |attributes: &[(&str, AttributeValue)]| {
            round_from(&attributes.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect())
        };
        assert_eq!(of(&[]), Ok(Round::default()));
        let all = [("bets", number("2")), ("rolled_back", number("1")), ("finished_at", string("2026"))];
        assert_eq!(of(&all), Ok(Round { bets: 2, rolled_back: 1, finished: true }));
        assert_eq!(of(&[("bets", number("-1"))]), Ok(Round::default()));
        of(&[("bets", number("1.5"))]).unwrap_err();
        let round = RoundId::new("net/1").unwrap();
        let key = |user: u32| round_key(&round, &UserId::new(&user.to_string()).unwrap());
        let parts: std::collections::HashSet<_> = (0..200).map(|user| format!("{:?}", key(user)["round_id"])).collect();
        assert_eq!(parts.len(), usize::try_from(SHARDS).unwrap());
    }

    #[test]
    fn a_case_of_each_kind_reads_back_as_it_was_written() {
        for kind in CaseKind::ALL {
            let case = match kind {
                CaseKind::SettingsBroken => {
                    Case { kind, about: About::Settings(7), detail: "x".into(), opened_at: entry().received_at }
                }
                _ => Case::about(kind, &entry(), "x".into()),
            };
            let row = case_from(&case_item(&case)).unwrap();
            assert_eq!(row, CaseRow { case_id: case.id(), case, closed: None });
        }
    }

    #[test]
    fn a_day_is_that_of_utc_and_its_shards_are_all_used() {
        let mut entry = entry();
        let mut shards: Vec<_> = (0..200)
            .map(|number| {
                entry.trans_id = TransId::new(&format!("net/{number}")).unwrap();
                day_shard(&entry)
            })
            .collect();
        shards.sort();
        shards.dedup();
        let expected: Vec<_> = (0..SHARDS).map(|shard| format!("net#2026-11-30#{shard}")).collect();
        assert_eq!(shards, expected);
    }
}
