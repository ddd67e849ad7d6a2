//! The commands about a wallet: everything about one key, one round, or one player.
//!
//! Only reads. What a caller disputes is answered from here, so that a stored answer is shown byte for byte as it was given.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Value, json};

use super::cases::{second, signed};
use super::finance::{
    History, NOBODY, account_json, balance, case_json, cases_table, complaint, history, named, readable, remark,
    row_json, unreadable_json,
};
use super::{CannotRun, Ledger, deadline};
use crate::books::{Row, Sums, Unreadable};
use crate::cashier;
use crate::id::{Currency, Network, RoundId, TransId, UserId};
use crate::ledger::{CaseRow, Entry, Operation, Round, Status};
use crate::preset::Preset;
use crate::store::{Pages, Pick};
use crate::terminal::{Lines, Reply, Table};

/// Most rollbacks of one operation, and most of the cashier's entries of one player, that are listed.
const MOST: usize = 100;

/// The wallets that are enabled or, where none is, all that are known.
///
/// # Errors
///
/// [`CannotRun`] says what is in the way.
pub(super) async fn wallets(ledger: &Ledger) -> Result<Vec<Preset>, CannotRun> {
    let settings = ledger.settings().await?;
    let of = |presets: &[Preset]| presets.iter().filter(|preset| preset.wallet().is_some()).cloned().collect();
    let enabled: Vec<_> = of(&settings.networks);
    if enabled.is_empty() { Ok(of(&settings.catalogue.presets()?)) } else { Ok(enabled) }
}

/// Which wallet is meant, and what it calls what is asked for: it is named, an id of ours leads to it, or it is the only one.
async fn of_wallet<'a>(ledger: &Ledger, name: Option<&str>, id: &'a str) -> Result<(Network, &'a str), CannotRun> {
    let ours = |network: &Network| id.strip_prefix(network.as_str()).and_then(|rest| rest.strip_prefix('/'));
    let network = if let Some(name) = name {
        named(name)?
    } else {
        let networks: Vec<_> = wallets(ledger).await?.into_iter().map(|preset| preset.network).collect();
        match (networks.iter().find(|network| ours(network).is_some()), &networks[..]) {
            (Some(network), _) | (None, [network]) => network.clone(),
            (None, networks) => {
                let names = networks.iter().map(Network::as_str).collect::<Vec<_>>().join(", ");
                let problem = format!("more than one network is a wallet: name one of {names} with --network");
                return Err(CannotRun::argument("the wallet", id, problem));
            }
        }
    };
    let received = ours(&network).unwrap_or(id);
    Ok((network, received))
}

/// Everything about one key: what was asked for and answered, what took it back or what it takes back, its round, its cases.
///
/// # Errors
///
/// [`CannotRun`] says what is in the way.
pub async fn key(ledger: &Ledger, key: &str, network: Option<&str>) -> Result<Reply, CannotRun> {
    let store = &ledger.store;
    let (network, received) = of_wallet(ledger, network, key).await?;
    let trans_id = TransId::of(&network, received).map_err(|problem| CannotRun::argument("the key", key, problem))?;
    let conversation = store.conversation(&trans_id, deadline()).await?;
    let cases = store.cases_of(&trans_id, deadline()).await?;
    let Some((entry, operation)) = operation_of(&conversation) else {
        return Ok(unknown(&trans_id, &cases));
    };
    let original = match &operation.counterpart {
        Some(original) => Some((original, store.conversation(original, deadline()).await?)),
        None => None,
    };
    let pick = Pick::RollbacksOf(&trans_id, entry.received_at);
    let (rollbacks, mut unreadable) = readable(store.picked(&entry.user, pick, MOST).await?);
    let round = match &operation.round {
        Some(round) => {
            let part = store.part_in(round, &entry.user).await?;
            let (mut rows, unread) = all(store.round_entries(round)).await?;
            unreadable.extend(unread);
            // A round may have thousands of players; `operator round` has them all.
            rows.retain(|row| row.user == entry.user || row.user.is_suspense());
            Some((round, part, rows))
        }
        None => None,
    };

    let mut lines = Lines::default();
    lines.line("key", received);
    tell(&mut lines, entry, operation);
    for other in &conversation {
        tell_of(&mut lines, other);
    }
    if let Some((original, conversation)) = &original {
        lines.line("takes back", summary(original, conversation));
    }
    for row in &rollbacks {
        let at = row.received_at.as_deref().unwrap_or("-");
        let moved =
            if row.amount.is_zero() { "moved nothing".to_owned() } else { format!("moved {}", signed(row.amount)) };
        lines.line("rollback", format!("{at} {}: {}, {moved}", row.trans_id, remark(row)));
    }
    if let Some((round, part, _)) = &round {
        lines.line("round", format!("{}: {}", round_name(round), part_in_words(*part)));
    }
    let mut text = vec![lines.to_string()];
    if let Some((_, _, rows)) = &round {
        text.push(format!("The player's entries in the round:\n\n{}", operations_table(rows)));
    }
    text.extend(cases_table(&cases));
    text.extend(complaint(&unreadable));

    let json = json!({
        "key": received,
        "trans_id": trans_id.as_str(),
        "operation": operation_json(entry, operation),
        "entries": conversation.iter().map(super::cases::entry_json).collect::<Vec<_>>(),
        "rolled_back_by": mark_of(&conversation).and_then(|mark| mark.counterpart.as_ref()).map(TransId::as_str),
        "original": original.as_ref().and_then(|(_, conversation)| operation_of(conversation))
            .map(|(entry, operation)| operation_json(entry, operation)),
        "rollbacks": rollbacks.iter().map(row_json).collect::<Vec<_>>(),
        "round": round.as_ref().map(|(round, part, rows)| json!({
            "round_id": round.as_str(),
            "part": part.map(part_json),
            "entries": rows.iter().map(row_json).collect::<Vec<_>>(),
        })),
        "cases": cases.iter().map(case_json).collect::<Vec<_>>(),
        "unreadable": unreadable_json(&unreadable),
    });
    Ok(Reply { text: text.join("\n\n"), json, differs: !unreadable.is_empty() })
}

/// What is said of a key that nothing is recorded under.
fn unknown(trans_id: &TransId, cases: &[CaseRow]) -> Reply {
    let said = format!("no operation under the key {} of {}", trans_id.received(), trans_id.network());
    let text = [Some(said), cases_table(cases)].into_iter().flatten().collect::<Vec<_>>().join("\n\n");
    let json = json!({
        "key": trans_id.received(),
        "trans_id": trans_id.as_str(),
        "operation": Value::Null,
        "cases": cases.iter().map(case_json).collect::<Vec<_>>(),
    });
    Reply { text, json, differs: true }
}

/// Every player's part in a round, and every entry of it in the order of time.
///
/// # Errors
///
/// [`CannotRun`] says what is in the way.
pub async fn round(ledger: &Ledger, id: &str, network: Option<&str>) -> Result<Reply, CannotRun> {
    let (network, received) = of_wallet(ledger, network, id).await?;
    let round = RoundId::of(&network, received).map_err(|problem| CannotRun::argument("the round", id, problem))?;
    let (parts, mut unreadable) = all(ledger.store.round(&round)).await?;
    let (rows, unread) = all(ledger.store.round_entries(&round)).await?;
    unreadable.extend(unread);
    let parts: BTreeMap<UserId, Round> = parts.into_iter().collect();
    let none = parts.is_empty() && rows.is_empty() && unreadable.is_empty();

    let mut sums: BTreeMap<(UserId, Option<Currency>), Sums> = BTreeMap::new();
    let mut totals: BTreeMap<Currency, Sums> = BTreeMap::new();
    for row in &rows {
        if row.user.is_suspense() {
            // What is of all players, and moves nothing.
            continue;
        }
        let player = sums.entry((row.user.clone(), Some(row.currency.clone()))).or_default();
        for sums in [player, totals.entry(row.currency.clone()).or_default()] {
            sums.add(row).map_err(CannotRun::Sum)?;
        }
    }
    // A part without an entry should not be, and is shown all the same.
    let seen: HashSet<_> = rows.iter().map(|row| &row.user).collect();
    for user in parts.keys().filter(|user| !seen.contains(user)) {
        sums.insert((user.clone(), None), Sums::default());
    }

    let mut text =
        vec![if none { format!("no round {received} of {network}") } else { format!("round {received} of {network}") }];
    if !none {
        let heads = ["player", ">bets", ">rolled back", "finished", "currency"];
        let money = [">staked", ">given back", ">won", ">taken back", ">net"];
        let mut table = Table::new(heads.into_iter().chain(money));
        for ((user, currency), sums) in &sums {
            let part = parts.get(user).copied().map_or([const { String::new() }; 3], |part| {
                [part.bets.to_string(), part.rolled_back.to_string(), yes(part.finished)]
            });
            let currency = currency.as_ref().map(Currency::to_string).unwrap_or_default();
            table.row([user.to_string()].into_iter().chain(part).chain([currency]).chain(moved(sums)));
        }
        if parts.len() > 1 {
            for (currency, sums) in &totals {
                let blank = [const { String::new() }; 3];
                let all = ["all".to_owned()].into_iter().chain(blank).chain([currency.to_string()]);
                table.row(all.chain(moved(sums)));
            }
        }
        text.push(table.to_string());
    }
    if !rows.is_empty() {
        text.push(operations_table(&rows).to_string());
    }
    text.extend(complaint(&unreadable));
    let player = |((user, currency), sums): (&(UserId, Option<Currency>), &Sums)| {
        json!({
            "user_id": user.as_str(),
            "part": parts.get(user).copied().map(part_json),
            "currency": currency.as_ref().map(Currency::as_str),
            "sums": moved_json(sums),
        })
    };
    let json = json!({
        "round_id": round.as_str(),
        "players": sums.iter().map(player).collect::<Vec<_>>(),
        "totals": totals.iter().map(|(currency, sums)| json!({"currency": currency.as_str(), "sums": moved_json(sums)}))
            .collect::<Vec<_>>(),
        "entries": rows.iter().map(row_json).collect::<Vec<_>>(),
        "unreadable": unreadable_json(&unreadable),
    });
    Ok(Reply { text: text.join("\n\n"), json, differs: none || !unreadable.is_empty() })
}

/// A player's accounts, newest `limit` entries, and those of the cashier.
///
/// # Errors
///
/// [`CannotRun`] says what is in the way.
pub async fn player(ledger: &Ledger, player: &str, limit: u32) -> Result<Reply, CannotRun> {
    let History { user, accounts, rows, more, mut unreadable } = history(ledger, "the player", player, limit).await?;
    let (at_cashier, unread) = readable(ledger.store.picked(&user, Pick::Cashier, MOST).await?);
    unreadable.extend(unread.into_iter().filter(|unread| !unreadable.contains(unread)).collect::<Vec<_>>());
    let none = accounts.is_empty() && rows.is_empty() && unreadable.is_empty();

    let mut lines = Lines::default();
    lines.line("player", &user);
    for stored in &accounts {
        let state = if stored.account.closed { "closed" } else { "open" };
        lines.line("account", format_args!("{state}: {}", balance(stored)));
    }
    if none {
        lines.note(NOBODY);
    }
    let mut text = vec![lines.to_string()];
    let newest: Vec<_> = rows.iter().filter(|row| !is_cashiers(row)).cloned().collect();
    if !newest.is_empty() {
        text.push(operations_table(&newest).to_string());
    }
    if more {
        text.push(format!("Of the {} newest entries; --limit shows more.", rows.len()));
    }
    if !at_cashier.is_empty() {
        let most = if at_cashier.len() < MOST { String::new() } else { format!(", the {MOST} newest") };
        text.push(format!("At the cashier{most}:\n\n{}", operations_table(&at_cashier)));
    }
    text.extend(complaint(&unreadable));
    let json = json!({
        "player": user.as_str(),
        "accounts": accounts.iter().map(account_json).collect::<Vec<_>>(),
        "entries": rows.iter().map(row_json).collect::<Vec<_>>(),
        "more": more,
        "cashier": at_cashier.iter().map(row_json).collect::<Vec<_>>(),
        "unreadable": unreadable_json(&unreadable),
    });
    Ok(Reply { text: text.join("\n\n"), json, differs: none || !unreadable.is_empty() })
}

fn is_cashiers(row: &Row) -> bool {
    row.trans_id.split_once('/').is_some_and(|(network, _)| network == cashier::NETWORK)
}

/// Everything of some pages, entries in the order of time.
async fn all<T: ByTime>(mut pages: Pages<T>) -> Result<(Vec<T>, Vec<Unreadable>), CannotRun> {
    let mut rows = Vec::new();
    while let Some(page) = pages.next().await? {
        rows.extend(page);
    }
    let (mut read, unreadable) = readable(rows);
    read.sort_by(|one, other| one.place().cmp(&other.place()));
    Ok((read, unreadable))
}

/// What has a place among its like.
trait ByTime {
    fn place(&self) -> (Option<&str>, &str, &str);
}

impl ByTime for Row {
    fn place(&self) -> (Option<&str>, &str, &str) {
        (self.received_at.as_deref(), &self.trans_id, &self.status)
    }
}

impl ByTime for (UserId, Round) {
    fn place(&self) -> (Option<&str>, &str, &str) {
        (None, self.0.as_str(), "")
    }
}

/// The operation of a conversation.
fn operation_of(conversation: &[Entry]) -> Option<(&Entry, &Operation)> {
    let entry = conversation.iter().find(|entry| entry.status == Status::Operation)?;
    Some((entry, entry.operation.as_ref()?))
}

/// The mark that an operation was taken back.
fn mark_of(conversation: &[Entry]) -> Option<&Operation> {
    conversation.iter().find(|entry| entry.status == Status::Rollback)?.operation.as_ref()
}

/// What was asked for and answered.
fn tell(lines: &mut Lines, entry: &Entry, operation: &Operation) {
    lines.line("our id", &entry.trans_id);
    lines.line("asked", asked(operation));
    lines.line("player", entry.user_claimed());
    if entry.user_received.is_some() {
        lines.note(format_args!("on the account of {}", entry.user));
    }
    let moved = if entry.amount.is_zero() {
        "nothing".to_owned()
    } else {
        format!("{} {}", signed(entry.amount), entry.currency)
    };
    lines.line("moved", moved);
    if let Some(game) = operation.game_id.as_ref().filter(|game| !game.is_empty()) {
        lines.line("game", game);
    }
    lines.line("at", format_args!("{:.3}", entry.received_at));
    lines.line("from", format_args!("{} (fingerprint {})", entry.evidence.source_ip, entry.evidence.fingerprint));
    lines.line("answered", format_args!("{} {}", operation.answer.status, operation.answer.body));
    if entry.void {
        lines.note("It never came: its rollback was first, and should it still come, this is what it hears.");
    }
}

/// What else there is of the conversation.
fn tell_of(lines: &mut Lines, entry: &Entry) {
    let by = entry.decision.as_ref().map(|decision| format!(", {}: {}", decision.by, decision.reason));
    let by = by.unwrap_or_default();
    match entry.status {
        Status::Operation => {}
        Status::Rollback => {
            let rollback = entry.operation.as_ref().and_then(|operation| operation.counterpart.as_ref());
            let rollback = rollback.map_or("a rollback that it does not name", TransId::as_str);
            lines.line("rolled back", format_args!("by {rollback}, {:.3}{by}", entry.received_at));
        }
        status => {
            let moved = format!("{} {}", signed(entry.amount), entry.currency);
            lines.line("corrected", format_args!("{} {moved}, {:.3}{by}", status.as_str(), entry.received_at));
        }
    }
}

/// An operation in a few words.
fn asked(operation: &Operation) -> String {
    let requested = operation.requested.map(|requested| format!(" of {requested}")).unwrap_or_default();
    format!("{}{requested}", operation.kind.as_str().replace('_', " "))
}

/// What a rollback takes back, in a line.
fn summary(original: &TransId, conversation: &[Entry]) -> String {
    let Some((entry, operation)) = operation_of(conversation) else {
        return format!("{original}, of which nothing is recorded");
    };
    if entry.void {
        return format!("{original}, which never came");
    }
    let moved = format!("{} {}", signed(entry.amount), entry.currency);
    format!("{original}: {}, moved {moved}, {}", asked(operation), second(entry.received_at))
}

/// A round as its caller calls it.
fn round_name(round: &RoundId) -> &str {
    round.as_str().split_once('/').map_or("", |(_, received)| received)
}

fn part_in_words(part: Option<Round>) -> String {
    part.map_or("the player has no part in it".to_owned(), |part| {
        let finished = if part.finished { "finished" } else { "not finished" };
        format!("bets that count {}, rolled back {}, {finished}", part.bets, part.rolled_back)
    })
}

fn yes(flag: bool) -> String {
    if flag { "yes".to_owned() } else { "no".to_owned() }
}

/// What entries of a round come to, in the order of its table.
fn moved(sums: &Sums) -> [String; 5] {
    [sums.bets, sums.bet_rollbacks, sums.wins, sums.win_rollbacks, sums.net].map(|total| total.amount.to_string())
}

fn moved_json(sums: &Sums) -> Value {
    let [staked, given_back, won, taken_back, net] = moved(sums);
    json!({"staked": staked, "given_back": given_back, "won": won, "taken_back": taken_back, "net": net})
}

fn part_json(part: Round) -> Value {
    json!({"bets": part.bets, "rolled_back": part.rolled_back, "finished": part.finished})
}

/// Entries, one a line, with what was asked for.
fn operations_table(rows: &[Row]) -> Table {
    let mut table = Table::new(["received at", "player", "entry", ">amount", "currency", "remark"]);
    for row in rows {
        table.row([
            row.received_at.clone().unwrap_or_else(|| "-".to_owned()),
            row.user.to_string(),
            format!("{} {}", row.trans_id, row.status),
            row.amount.to_string(),
            row.currency.to_string(),
            remark(row),
        ]);
    }
    table
}

fn operation_json(entry: &Entry, operation: &Operation) -> Value {
    json!({
        "trans_id": entry.trans_id.as_str(),
        "kind": operation.kind.as_str(),
        "user_id": entry.user.as_str(),
        "user_received": entry.user_received.as_ref().map(UserId::as_str),
        "requested": operation.requested.map(|requested| requested.to_string()),
        "amount": entry.amount.to_string(),
        "currency": entry.currency.as_str(),
        "round_id": operation.round.as_ref().map(RoundId::as_str),
        "game_id": operation.game_id,
        "counterpart": operation.counterpart.as_ref().map(TransId::as_str),
        "received_at": format!("{:.3}", entry.received_at),
        "source_ip": entry.evidence.source_ip,
        "fingerprint": entry.evidence.fingerprint,
        "void": entry.void,
        "answer": {"status": operation.answer.status, "body": operation.answer.body},
    })
}
