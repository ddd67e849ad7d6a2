//! The commands about the books: one conversion, one user, a day, a month, an export, what does not agree, a report.
//!
//! Only reads. Every number says where it comes from: summed from entries, or stored in an account.

mod export; // a period as a file
mod period; // days in UTC
mod report; // a month as a page
mod verify; // accounts and holds against their entries

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{CannotRun, Ledger, deadline};
use crate::books::{Books, Expected, Operation, Row, Stored, Sums, Total, Unreadable, when};
use crate::cashier;
use crate::id::{Network, TransId, UserId};
use crate::ledger::{CaseRow, Hold, Status};
use crate::store::DayShard;
use crate::terminal::{Lines, Reply, Table, progress, visible};

pub use export::{Export, Format, export};
pub use period::Period;
pub use report::report;
pub use verify::verify;

/// Where sums come from, in the words of every command.
const SUMMED: &str = "summed entries";

/// Where balances come from.
const STORED: &str = "stored balance";

/// Every entry of one conversion, what of it is held, and its cases.
///
/// # Errors
///
/// [`CannotRun`] says what is in the way.
pub async fn show(ledger: &Ledger, network: &str, id: &str) -> Result<Reply, CannotRun> {
    let network = named(network)?;
    let trans_id = TransId::of(&network, id).map_err(|error| CannotRun::argument("the conversion", id, error))?;
    let (mut rows, unreadable) = readable(ledger.store.rows(&trans_id).await?);
    rows.sort_by(|one, other| (&one.received_at, &one.status).cmp(&(&other.received_at, &other.status)));
    let cases = ledger.store.cases_of(&trans_id, deadline()).await?;
    let mut expected = Expected::default();
    rows.iter().try_for_each(|row| expected.add(row)).map_err(CannotRun::Sum)?;
    let hold = match expected.held(&trans_id) {
        Some(hold) => ledger.store.hold_row(&hold).await?,
        None => None,
    };
    let none = rows.is_empty() && unreadable.is_empty();

    let mut text = vec![if none { format!("no entry of {trans_id}") } else { format!("{trans_id}, its entries:") }];
    if !rows.is_empty() {
        text.push(entries_table(&rows, false).to_string());
    }
    text.extend(hold.iter().map(|hold| {
        format!("held: {} {} of user {}, released {}", hold.amount, hold.currency, hold.user, when(hold.release_at))
    }));
    text.extend(cases_table(&cases));
    text.extend(complaint(&unreadable));
    let json = json!({
        "trans_id": trans_id.as_str(),
        "entries": rows.iter().map(row_json).collect::<Vec<_>>(),
        "hold": hold.as_ref().map(hold_json),
        "cases": cases.iter().map(case_json).collect::<Vec<_>>(),
        "unreadable": unreadable_json(&unreadable),
    });
    Ok(Reply { text: text.join("\n\n"), json, differs: none || !unreadable.is_empty() })
}

/// A user's accounts as they are stored, and the newest `limit` entries.
///
/// # Errors
///
/// [`CannotRun`] says what is in the way.
pub async fn user(ledger: &Ledger, user: &str, limit: u32) -> Result<Reply, CannotRun> {
    let History { user, accounts, rows, more, unreadable } = history(ledger, "the user", user, limit).await?;
    let none = accounts.is_empty() && rows.is_empty() && unreadable.is_empty();
    let mut lines = Lines::default();
    lines.line("user", &user);
    for stored in &accounts {
        let closed = if stored.account.closed { ", closed" } else { "" };
        lines.line("balance", format_args!("{}{closed}", balance(stored)));
    }
    if none {
        lines.note(NOBODY);
    }
    let mut text = vec![lines.to_string()];
    if !rows.is_empty() {
        text.push(entries_table(&rows, true).to_string());
    }
    if more {
        text.push(format!("The {} newest; --limit shows more.", rows.len()));
    }
    text.extend(complaint(&unreadable));
    let json = json!({
        "user": user.as_str(),
        "accounts": accounts.iter().map(account_json).collect::<Vec<_>>(),
        "entries": rows.iter().map(row_json).collect::<Vec<_>>(),
        "more": more,
        "unreadable": unreadable_json(&unreadable),
    });
    Ok(Reply { text: text.join("\n\n"), json, differs: none || !unreadable.is_empty() })
}

/// What is said of somebody of whom nothing is known.
pub(super) const NOBODY: &str = "has no account and no entry: an id counts as it was sent, with leading zeros and case";

/// A user's accounts as they are stored, and newest entries.
pub(super) struct History {
    pub user: UserId,
    pub accounts: Vec<Stored>,
    pub rows: Vec<Row>,
    /// Whether there are older ones.
    pub more: bool,
    pub unreadable: Vec<Unreadable>,
}

/// Reads a user's accounts and newest `limit` entries.
pub(super) async fn history(
    ledger: &Ledger,
    argument: &'static str,
    user: &str,
    limit: u32,
) -> Result<History, CannotRun> {
    let user = UserId::stored(user).ok_or_else(|| CannotRun::argument(argument, user, "no user can be called so"))?;
    let (accounts, mut unreadable) = readable(ledger.store.accounts(&user).await?);
    let limit = i32::try_from(limit).unwrap_or(i32::MAX);
    let (mut rows, mut next) = (Vec::new(), None);
    let more = loop {
        let left = limit - i32::try_from(rows.len()).unwrap_or(limit);
        let page = ledger.store.history(&user, left.min(1000), next).await?;
        let (read, unread) = readable(page.rows);
        rows.extend(read);
        unreadable.extend(unread);
        next = page.next;
        let full = i32::try_from(rows.len()).is_ok_and(|rows| rows >= limit);
        if full || next.is_none() {
            break next.is_some();
        }
    };
    Ok(History { user, accounts, rows, more, unreadable })
}

/// What is in an account, in words.
pub(super) fn balance(stored: &Stored) -> String {
    let held = Some(stored.account.held).filter(|held| !held.is_zero());
    let held = held.map(|held| format!(", {held} held")).unwrap_or_default();
    format!("{} {} available{held} ({STORED})", stored.account.available, stored.currency)
}

pub(super) fn account_json(stored: &Stored) -> Value {
    json!({
        "currency": stored.currency.as_str(),
        "available": stored.account.available.to_string(),
        "held": stored.account.held.to_string(),
        "closed": stored.account.closed,
        "source": STORED,
    })
}

/// What a period comes to, by network.
///
/// # Errors
///
/// [`CannotRun`] says what is in the way.
pub async fn sums(ledger: &Ledger, period: &Period, networks: &[String], now: Timestamp) -> Result<Reply, CannotRun> {
    let books = books(ledger, period, networks).await?;
    let over = period.is_over(now);
    let totals = books.totals().map_err(CannotRun::Sum)?;

    let mut text = vec![format!(
        "{period}, {} in UTC, {SUMMED}{}",
        if period.is_one_day() { "a day" } else { "its days" },
        if over { "" } else { "; not over yet" }
    )];
    if books.lines.is_empty() {
        text.push("No entries.".to_owned());
    } else {
        let mut lines: Vec<_> = books
            .lines
            .iter()
            .map(|(line, sums)| (line.network.clone(), line.currency.clone(), *sums, books.users(line)))
            .collect();
        for (currency, sums) in &totals {
            if lines.iter().filter(|(_, of, ..)| of == currency).count() > 1 {
                lines.push(("all".to_owned(), (*currency).to_owned(), *sums, books.users_of(currency)));
            }
        }
        text.push(sums_table(&lines).to_string());
        if totals.values().any(|sums| sums.payout_usd.count > 0 && sums.payout_usd.count < sums.credits.count) {
            text.push("payout usd: of the credits that say it; not all do.".to_owned());
        }
    }
    text.extend(complaint(&books.unreadable));
    let line = |network: Option<&str>, currency: &str, sums: &Sums, users: usize| {
        let mut json = sums_json(sums);
        json["network"] = network.into();
        json["currency"] = currency.into();
        json["users"] = users.into();
        json
    };
    let json = json!({
        "from": period.first().to_string(),
        "to": period.last().to_string(),
        "time_zone": "UTC",
        "over": over,
        "source": SUMMED,
        "networks": books.lines.iter()
            .map(|(of, sums)| line(Some(&of.network), &of.currency, sums, books.users(of))).collect::<Vec<_>>(),
        "totals": totals.iter()
            .map(|(currency, sums)| line(None, currency, sums, books.users_of(currency))).collect::<Vec<_>>(),
        "unreadable": unreadable_json(&books.unreadable),
    });
    Ok(Reply { text: text.join("\n\n"), json, differs: !books.unreadable.is_empty() })
}

/// Adds up a period, with every day of every network read at once.
async fn books(ledger: &Ledger, period: &Period, networks: &[String]) -> Result<Books, CannotRun> {
    let networks = chosen(ledger, networks).await?;
    let shards: Vec<_> =
        networks.iter().flat_map(|network| period.days().flat_map(|day| DayShard::of(network, day))).collect();
    let progress = progress(shards.len() as u64, "parts of days");
    let mut pages = ledger.store.days(shards);
    let mut books = Books::default();
    while let Some(rows) = pages.next().await? {
        progress.inc(1);
        for row in rows {
            books.add(row).map_err(CannotRun::Sum)?;
        }
    }
    progress.finish_and_clear();
    books.unreadable.sort();
    Ok(books)
}

/// The networks that are named, or else every one that the deployment knows or knew: those that are shipped, those of
/// `NETWORKS_FILE`, and those of every version of the settings, since one that is gone from them has entries all the same. The
/// cashier's entries stand beside theirs.
async fn chosen(ledger: &Ledger, names: &[String]) -> Result<Vec<Network>, CannotRun> {
    let mut chosen: BTreeSet<String> = names.iter().cloned().collect();
    if chosen.is_empty() {
        chosen.extend(ledger.config.catalogue.names());
        chosen.insert(cashier::NETWORK.to_owned());
        let mut before = None;
        loop {
            let versions = ledger.store.settings_history(before, deadline()).await?;
            let Some(oldest) = versions.last() else { break };
            before = Some(oldest.number);
            chosen.extend(
                versions.iter().filter_map(|version| version.read().ok()).flat_map(|read| read.catalogue.names()),
            );
        }
    }
    chosen.iter().map(|name| named(name)).collect()
}

/// A network by its name, which need not be one that is known: the app's own entries have one too.
pub(super) fn named(name: &str) -> Result<Network, CannotRun> {
    Network::new(name).map_err(|error| CannotRun::Network(visible(name), error.to_string()))
}

/// The rows that read, and what is wrong with the others.
pub(super) fn readable<T>(rows: Vec<Result<T, Unreadable>>) -> (Vec<T>, Vec<Unreadable>) {
    let (mut read, mut unreadable) = (Vec::new(), Vec::new());
    for row in rows {
        match row {
            Ok(row) => read.push(row),
            Err(problem) => unreadable.push(problem),
        }
    }
    (read, unreadable)
}

/// What is said where rows do not read: the numbers are without them.
pub(super) fn complaint(unreadable: &[Unreadable]) -> Option<String> {
    let [first, rest @ ..] = unreadable else { return None };
    let more = if rest.is_empty() { String::new() } else { format!(" (and {} more)", rest.len()) };
    Some(visible(&format!("Without a row that does not read: {}: {}{more}", first.row, first.problem)))
}

fn entries_table(rows: &[Row], with_id: bool) -> Table {
    let id = if with_id { "conversion" } else { "user" };
    let mut table = Table::new(["received at", id, "status", ">amount", "currency", ">of that held", "remark"]);
    for row in rows {
        table.row([
            row.received_at.clone().unwrap_or_else(|| "-".to_owned()),
            if with_id { row.trans_id.clone() } else { row.user.to_string() },
            row.status.clone(),
            row.amount.to_string(),
            row.currency.to_string(),
            if row.held.is_zero() { String::new() } else { row.held.to_string() },
            remark(row),
        ]);
    }
    table
}

/// What is peculiar about an entry.
pub(super) fn remark(row: &Row) -> String {
    let said = [
        row.operation.as_ref().map(|operation| asked(row, operation)),
        row.void.then(|| match row.operation {
            Some(_) => "placeholder: its rollback came first".to_owned(),
            None => "placeholder: its reversal came first".to_owned(),
        }),
        row.user_received.as_ref().map(|user| format!("was for user {user}")),
        row.release_at.as_ref().map(|at| format!("released at {at}")),
        Some(row.absorbed).filter(|absorbed| !absorbed.is_zero()).map(|absorbed| format!("our loss {absorbed}")),
        row.by.as_ref().map(|by| format!("{by}: {}", row.reason.as_deref().unwrap_or_default())),
        row.offer_name.clone(),
    ];
    said.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// What a wallet was asked for, and what it answered.
fn asked(row: &Row, operation: &Operation) -> String {
    let counterpart = operation.counterpart.as_deref().unwrap_or("what it does not say");
    if Status::stored(&row.status) == Some(Status::Rollback) {
        return format!("rolled back by {counterpart}");
    }
    let of = operation.requested.map(|requested| format!(" of {requested}")).unwrap_or_default();
    let back = operation.counterpart.as_ref().map(|_| format!(", takes back {counterpart}")).unwrap_or_default();
    let answer = operation.answer_status.as_deref().filter(|status| *status != "200");
    let answer = answer.map(|status| format!(", answered {status}")).unwrap_or_default();
    format!("{}{of}{back}{answer}", operation.kind.replace('_', " "))
}

/// Sums by line; a column that has nothing to say is left out, and those of offers where there is a wallet alone.
fn sums_table(lines: &[(String, String, Sums, usize)]) -> Table {
    type Cell = fn(&Sums) -> Option<String>;
    fn amount(total: Total) -> Option<String> {
        (total.count > 0).then(|| total.amount.to_string())
    }
    fn count(total: Total) -> Option<String> {
        (total.count > 0).then(|| total.count.to_string())
    }
    let offers = lines.iter().any(|(_, _, sums, _)| sums.has_offers());
    let columns: [(&str, bool, Cell); 24] = [
        (">credits", offers, |sums| Some(sums.credits.count.to_string()).filter(|_| sums.has_offers())),
        (">credited", offers, |sums| Some(sums.credits.amount.to_string()).filter(|_| sums.has_offers())),
        (">reversals", offers, |sums| Some(sums.reversals.count.to_string()).filter(|_| sums.has_offers())),
        (">reversed", offers, |sums| Some(sums.reversals.amount.to_string()).filter(|_| sums.has_offers())),
        (">rate", false, |sums| sums.reversed_permille().filter(|rate| *rate > 0).map(percent)),
        (">held", false, |sums| amount(sums.held)),
        (">released", false, |sums| amount(sums.released)),
        (">our loss", false, |sums| amount(sums.absorbed)),
        (">assigned", false, |sums| amount(sums.assignments)),
        (">bets", false, |sums| count(sums.bets)),
        (">staked", false, |sums| amount(sums.bets)),
        (">bets back", false, |sums| count(sums.bet_rollbacks)),
        (">given back", false, |sums| amount(sums.bet_rollbacks)),
        (">wins", false, |sums| count(sums.wins)),
        (">won", false, |sums| amount(sums.wins)),
        (">wins back", false, |sums| count(sums.win_rollbacks)),
        (">taken back", false, |sums| amount(sums.win_rollbacks)),
        (">deposited", false, |sums| amount(sums.deposits)),
        (">withdrawn", false, |sums| amount(sums.withdrawals)),
        (">adjusted", false, |sums| amount(sums.adjustments)),
        (">other", false, |sums| amount(sums.other)),
        (">net", true, |sums| Some(sums.net.amount.to_string())),
        (">payout usd", false, |sums| amount(sums.payout_usd)),
        (">placeholders", false, |sums| Some(sums.voids).filter(|voids| *voids > 0).map(|voids| voids.to_string())),
    ];
    let shown: Vec<_> = columns
        .into_iter()
        .filter(|(_, always, cell)| *always || lines.iter().any(|(_, _, sums, _)| cell(sums).is_some()))
        .collect();
    let heads = ["network", "currency"].into_iter().chain(shown.iter().map(|(head, ..)| *head)).chain([">users"]);
    let mut table = Table::new(heads);
    for (network, currency, sums, users) in lines {
        let cells = shown.iter().map(|(_, _, cell)| cell(sums).unwrap_or_default());
        table.row([network.clone(), currency.clone()].into_iter().chain(cells).chain([users.to_string()]));
    }
    table
}

/// A thousandth as a percentage with one decimal.
fn percent(permille: u64) -> String {
    format!("{}.{}%", permille / 10, permille % 10)
}

fn sums_json(sums: &Sums) -> Value {
    let total = |total: Total| json!({"count": total.count, "amount": total.amount.to_string()});
    json!({
        "credits": total(sums.credits),
        "placeholders": sums.voids,
        "reversals": total(sums.reversals),
        "reversed_permille": sums.reversed_permille(),
        "held": total(sums.held),
        "released": total(sums.released),
        "absorbed": total(sums.absorbed),
        "assignments": total(sums.assignments),
        "adjustments": total(sums.adjustments),
        "bets": total(sums.bets),
        "bet_rollbacks": total(sums.bet_rollbacks),
        "wins": total(sums.wins),
        "win_rollbacks": total(sums.win_rollbacks),
        "deposits": total(sums.deposits),
        "withdrawals": total(sums.withdrawals),
        "other": total(sums.other),
        "net": total(sums.net),
        "payout_usd": total(sums.payout_usd),
    })
}

pub(super) fn row_json(row: &Row) -> Value {
    let field = |(name, value): (&str, Option<String>)| {
        let value = if name == "void" { json!(row.void) } else { json!(value) };
        (name.to_owned(), value)
    };
    Value::Object(row.fields().into_iter().map(field).collect())
}

fn hold_json(hold: &Hold) -> Value {
    json!({
        "user_id": hold.user.as_str(),
        "currency": hold.currency.as_str(),
        "amount": hold.amount.to_string(),
        "release_at": hold.release_at.map(|at| at.to_string()),
    })
}

pub(super) fn case_json(row: &CaseRow) -> Value {
    json!({
        "case_id": row.case_id,
        "kind": row.case.kind.as_str(),
        "state": if row.closed.is_some() { "closed" } else { "open" },
        "detail": row.case.detail,
        "opened_at": row.case.opened_at.to_string(),
        "resolution": row.closed.as_ref().map(|closed| closed.resolution.clone()),
        "closed_by": row.closed.as_ref().map(|closed| closed.decision.by.clone()),
        "reason": row.closed.as_ref().map(|closed| closed.decision.reason.clone()),
    })
}

/// The cases, one a line; `None` where there are none.
pub(super) fn cases_table(cases: &[CaseRow]) -> Option<String> {
    let mut table = Table::new(["case", "state", "what happened"]);
    for row in cases {
        table.row([row.case_id.clone(), state(row), row.case.detail.clone()]);
    }
    (!cases.is_empty()).then(|| table.to_string())
}

fn state(row: &CaseRow) -> String {
    row.closed.as_ref().map_or_else(|| "open".to_owned(), |closed| format!("closed: {}", closed.resolution))
}

pub(super) fn unreadable_json(unreadable: &[Unreadable]) -> Value {
    let row = |unreadable: &Unreadable| json!({"row": unreadable.row, "problem": unreadable.problem});
    unreadable.iter().map(row).collect()
}
