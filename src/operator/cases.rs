//! The commands about cases: what a person must work, and what came of it. And the reversal that a person decides.
//!
//! Every one that moves coins does it by [`Store::post`](crate::store::Store::post), in one transaction with the case that it
//! closes, so that nothing is done twice, whoever else works on the same case.

use std::fmt::Display;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{CannotRun, Ledger, deadline};
use crate::cases::{self, Action, Step};
use crate::id::{Network, TransId};
use crate::ledger::{
    About, Case, CaseKind, CaseRow, Closing, Decision, Entry, Outcome, Posting, Refusal, Resolution, Status, held_now,
};
use crate::money::Amount;
use crate::offerwall;
use crate::preset::{Spent, UnknownUsers};
use crate::store::{Closes, Store};
use crate::terminal::{Lines, Reply, Table};

/// How often a decision is tried on what changes under it. More than a few times is no race: what is read and what the
/// transactions find do not agree.
const ATTEMPTS: u32 = 5;

/// What to do where they do not.
const DISAGREES: &str =
    "its entries and the queue of holds do not agree, or it changes all the time; run `operator verify` for its user";

/// The kinds by which cases are asked for, each once.
pub fn kinds() -> Vec<&'static str> {
    let mut kinds: Vec<_> = CaseKind::ALL.into_iter().map(CaseKind::as_str).collect();
    kinds.dedup();
    kinds
}

/// The open cases, the longest open first.
///
/// # Errors
///
/// [`CannotRun`] says what is in the way.
pub async fn open(ledger: &Ledger, kind: Option<&str>, network: Option<&Network>) -> Result<Reply, CannotRun> {
    let rows = ledger.store.open_cases(network, deadline()).await?;
    let (mut found, mut unreadable) = (Vec::new(), Vec::new());
    for row in rows {
        match row {
            // Somebody may have closed it by hand, and left it in the index.
            Ok(row) if row.closed.is_none() && kind.is_none_or(|kind| row.case.kind.as_str() == kind) => {
                found.push(row);
            }
            Ok(_) => {}
            Err(problem) => unreadable.push(problem),
        }
    }
    let mut table = Table::new(["opened", ">amount", "currency", "user", "case"]);
    for row in &found {
        let (amount, currency, user) = match &row.case.about {
            About::Entry { user, currency, amount, .. } => (amount.to_string(), currency.as_str(), user.as_str()),
            About::Settings(_) => (String::new(), "", ""),
        };
        let opened = second(row.case.opened_at);
        table.row([opened, amount, currency.to_owned(), user.to_owned(), row.case_id.clone()]);
    }
    let cases = |count| if count == 1 { "1 open case".to_owned() } else { format!("{count} open cases") };
    let mut text = match found.len() {
        0 => "no open cases".to_owned(),
        count => format!("{table}\n\n{}; `operator case <case>` says what happened", cases(count)),
    };
    for problem in &unreadable {
        text += &format!("\ndoes not read: {problem}");
    }
    let json = json!({"cases": found.iter().map(case_json).collect::<Vec<_>>(), "unreadable": unreadable});
    Ok(Reply { text, json, differs: !unreadable.is_empty() })
}

/// One case with the entries that it is about.
///
/// # Errors
///
/// [`CannotRun`] says what is in the way.
pub async fn show(ledger: &Ledger, case_id: &str) -> Result<Reply, CannotRun> {
    let row = find(&ledger.store, case_id).await?;
    let conversation = conversation(&ledger.store, &row).await?;
    let mut lines = Lines::default();
    lines.line("case", &row.case_id);
    lines.line("opened", second(row.case.opened_at));
    lines.line("what", &row.case.detail);
    if let About::Entry { user, currency, amount, .. } = &row.case.about {
        lines.line("account", format!("{user}, {currency}"));
        lines.line("amount", amount);
        let account = ledger.store.account(user, currency, deadline()).await?;
        let balance = account.map_or("no account".to_owned(), |account| {
            format!("{} available, {} held", account.available, account.held)
        });
        lines.line("balance", balance);
    }
    match &row.closed {
        None => lines.line("open", "yes"),
        Some(closed) => {
            let at = closed.closed_at.map(second).unwrap_or_default();
            lines.line("closed", format!("{at} by {}: {}", closed.decision.by, closed.resolution));
            lines.line("reason", &closed.decision.reason);
        }
    }
    let mut text = lines.to_string();
    if !conversation.is_empty() {
        text += &format!("\n\n{}", entries(&conversation));
    }
    let mut json = case_json(&row);
    json["entries"] = conversation.iter().map(entry_json).collect();
    Ok(Reply::fine(text, json))
}

/// Does what a person decided about an open case, once.
///
/// # Errors
///
/// [`CannotRun`] says why nothing was done. Where DynamoDB did not answer, the same command again settles it.
pub async fn resolve(ledger: &Ledger, case_id: &str, action: &Action, decision: &Decision) -> Result<Reply, CannotRun> {
    let store = &ledger.store;
    let cannot = |problem: &dyn Display| CannotRun::argument("case", case_id, problem);
    let settings = ledger.settings().await?;
    for _ in 0..ATTEMPTS {
        let row = find(store, case_id).await?;
        if let Some(closed) = &row.closed {
            let at = closed.closed_at.map(second).unwrap_or_default();
            let Decision { by, reason } = &closed.decision;
            return Err(cannot(&format_args!("closed already, {at} by {by}: {} ({reason})", closed.resolution)));
        }
        let conversation = conversation(store, &row).await?;
        let users = network_of(&row.case).and_then(|network| settings.catalogue.preset(&network).ok());
        let users = users.map_or(UnknownUsers::default(), |preset| preset.unknown_users);
        let step = cases::resolve(&row.case, &conversation, users, action, decision, Timestamp::now());
        match step.map_err(|problem| cannot(&problem))? {
            Step::Close(closing) => match store.close(&closing, deadline()).await? {
                Closes::Now => return Ok(resolved(&closing, None)),
                // Somebody was faster: the next look says who.
                Closes::NotOpen => {}
            },
            Step::Post(posting) => match store.post(&posting, deadline()).await? {
                Outcome::Posted => {
                    let moved = moved(store, &posting).await;
                    let closing = posting.closes.as_ref().ok_or_else(|| cannot(&"it was not closed"))?;
                    return Ok(resolved(closing, Some(moved)));
                }
                Outcome::Refused(Refusal::Case | Refusal::Hold) => {}
                Outcome::Refused(Refusal::Account(_)) => {
                    return Err(cannot(&format_args!(
                        "user {} has no account: look at the name again; the app makes the accounts of its users",
                        posting.entry.user
                    )));
                }
                Outcome::Refused(Refusal::Companion | Refusal::Round(_))
                | Outcome::Replayed(_)
                | Outcome::Conflict(_, _) => {
                    let status = posting.entry.status.as_str();
                    return Err(cannot(&format_args!(
                        "its conversation has an entry `{status}` already, so nothing was moved; look at it with \
                         `operator show`, and close the case with --note"
                    )));
                }
            },
        }
    }
    Err(cannot(&DISAGREES))
}

/// Takes back a credit, though its network did not say so.
///
/// # Errors
///
/// [`CannotRun`] says why nothing was done. Where DynamoDB did not answer, the same command again settles it.
pub async fn reverse(ledger: &Ledger, network: &Network, id: &str, decision: &Decision) -> Result<Reply, CannotRun> {
    let store = &ledger.store;
    let cannot = |problem: &dyn Display| CannotRun::argument("conversion", &format!("{network}/{id}"), problem);
    let trans_id = TransId::of(network, id).map_err(|problem| cannot(&problem))?;
    // What counts for a reversal of the network's own counts for one by hand; for a network that is none any more, the usual.
    let settings = ledger.settings().await?;
    if settings.catalogue.preset(network).is_ok_and(|preset| preset.wallet().is_some()) {
        return Err(cannot(
            &"a wallet's operation is taken back by its caller alone, with a rollback; correct a balance with `operator resolve \
              --adjust` where there is a case, and else with `operator player deposit` or `withdraw`",
        ));
    }
    let spent = settings.catalogue.preset(network).map_or(Spent::default(), |preset| preset.spent);
    for _ in 0..ATTEMPTS {
        let conversation = store.conversation(&trans_id, deadline()).await?;
        let by_hand = offerwall::reverse_by_hand(&conversation, decision, Timestamp::now());
        let claim = by_hand.map_err(|problem| cannot(&problem))?;
        let balance = match offerwall::needs_balance(spent, Status::Reversal, &conversation) {
            None => None,
            Some((user, currency)) => {
                let account = store.account(user, currency, deadline()).await?;
                Some(account.unwrap_or_default().available)
            }
        };
        for posting in offerwall::reversals(spent, claim, &conversation, balance) {
            match store.post(&posting, deadline()).await? {
                Outcome::Posted => {
                    let mut moved = moved(store, &posting).await;
                    for case in &posting.cases {
                        moved.line("case", case.id());
                    }
                    if held_now(&conversation).is_some_and(|hold| hold.release_at.is_none()) {
                        moved.note("The case that its coins waited for is still open: close it with --note.");
                    }
                    let json = json!({
                        "entry": entry_json(&posting.entry),
                        "cases": posting.cases.iter().map(Case::id).collect::<Vec<_>>(),
                    });
                    return Ok(Reply::fine(moved, json));
                }
                Outcome::Replayed(_) | Outcome::Conflict(_, _) => {
                    return Err(cannot(&"somebody else reversed it meanwhile; nothing was moved now"));
                }
                // The account or the conversation changed: the next posting, or a new look, is for that.
                Outcome::Refused(_) => {}
            }
        }
    }
    Err(cannot(&DISAGREES))
}

async fn find(store: &Store, case_id: &str) -> Result<CaseRow, CannotRun> {
    /// Longer than any key of ours; DynamoDB would refuse it in words of its own.
    const LONGEST: usize = 512;
    let row = match case_id.len() {
        1..=LONGEST => store.case(case_id, deadline()).await?,
        _ => None,
    };
    let shown = &case_id[..case_id.floor_char_boundary(LONGEST)];
    row.ok_or_else(|| CannotRun::argument("case", shown, "there is none; `operator cases` lists those that are open"))
}

/// The network that a case is about.
fn network_of(case: &Case) -> Option<Network> {
    match &case.about {
        About::Entry { trans_id, .. } => Network::new(trans_id.network()).ok(),
        About::Settings(_) => None,
    }
}

async fn conversation(store: &Store, row: &CaseRow) -> Result<Vec<Entry>, CannotRun> {
    match &row.case.about {
        About::Entry { trans_id, .. } => Ok(store.conversation(trans_id, deadline()).await?),
        About::Settings(_) => Ok(Vec::new()),
    }
}

/// What a posting changed, and where its accounts stand, as far as that can be read: what was done is said whatever happens.
pub(super) async fn moved(store: &Store, posting: &Posting) -> Lines {
    let mut lines = Lines::default();
    for entry in posting.entries() {
        let held = match entry.held {
            Some(held) => format!(", held {}", signed(held.change)),
            None => String::new(),
        };
        let (id, status) = (&entry.trans_id, entry.status.as_str());
        lines.line("entry", format!("{id} {status} {} {}{held}", signed(entry.amount), entry.currency));
        let balance = match store.account(&entry.user, &entry.currency, deadline()).await {
            Ok(account) => {
                let account = account.unwrap_or_default();
                format!("{} available, {} held", account.available, account.held)
            }
            Err(problem) => format!("not known now: {problem}"),
        };
        lines.line("balance", format!("{}: {balance}", entry.user));
    }
    lines
}

fn resolved(closing: &Closing, moved: Option<Lines>) -> Reply {
    let mut lines = moved.unwrap_or_default();
    lines.line("closed", &closing.case_id);
    lines.line("as", &closing.resolution);
    lines.line("by", format!("{}: {}", closing.decision.by, closing.decision.reason));
    let (resolution, by) = (closing.resolution.to_string(), &closing.decision.by);
    let moved = !matches!(closing.resolution, Resolution::Noted);
    let json = json!({
        "case": closing.case_id, "resolution": resolution, "by": by, "reason": closing.decision.reason, "moved": moved,
    });
    Reply::fine(lines, json)
}

/// Entries, one a line, in the order in which they were written.
fn entries(conversation: &[Entry]) -> Table {
    let mut sorted: Vec<_> = conversation.iter().collect();
    sorted.sort_by_key(|entry| entry.received_at);
    let mut table = Table::new(["at", "entry", "user", ">amount", ">held", "by"]);
    for entry in sorted {
        let by = entry.decision.as_ref().map(|decision| format!("{}: {}", decision.by, decision.reason));
        table.row([
            second(entry.received_at),
            what(entry),
            entry.user.to_string(),
            signed(entry.amount),
            entry.held.map(|held| signed(held.change)).unwrap_or_default(),
            by.unwrap_or_default(),
        ]);
    }
    table
}

/// What an entry does to its conversation; of a wallet's also what was asked for, and by whom it was taken back.
fn what(entry: &Entry) -> String {
    let status = entry.status.as_str();
    let Some(operation) = &entry.operation else { return status.to_owned() };
    let counterpart = operation.counterpart.as_ref().map(|trans_id| format!(" {trans_id}")).unwrap_or_default();
    if entry.status == Status::Rollback {
        return format!("{status} by{counterpart}");
    }
    let requested = operation.requested.map(|requested| format!(" of {requested}")).unwrap_or_default();
    format!("{status}: {}{counterpart}{requested}", operation.kind.as_str().replace('_', " "))
}

pub(super) fn signed(amount: Amount) -> String {
    if amount > Amount::ZERO { format!("+{amount}") } else { amount.to_string() }
}

/// To the second, in UTC.
pub(super) fn second(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn case_json(row: &CaseRow) -> Value {
    let mut json = json!({
        "case": row.case_id,
        "kind": row.case.kind.as_str(),
        "opened_at": format!("{:.3}", row.case.opened_at),
        "detail": row.case.detail,
        "open": row.closed.is_none(),
    });
    match &row.case.about {
        About::Entry { trans_id, status, user, currency, amount } => {
            json["trans_id"] = json!(trans_id.as_str());
            json["network"] = json!(trans_id.network());
            json["status"] = json!(status.as_str());
            json["user_id"] = json!(user.as_str());
            json["currency"] = json!(currency.as_str());
            json["amount"] = json!(amount.to_string());
        }
        About::Settings(version) => json["version"] = json!(version),
    }
    if let Some(closed) = &row.closed {
        json["resolution"] = json!(closed.resolution);
        json["closed_by"] = json!(closed.decision.by);
        json["reason"] = json!(closed.decision.reason);
        json["closed_at"] = json!(closed.closed_at.map(|at| format!("{at:.3}")));
    }
    json
}

pub(super) fn entry_json(entry: &Entry) -> Value {
    json!({
        "trans_id": entry.trans_id.as_str(),
        "status": entry.status.as_str(),
        "user_id": entry.user.as_str(),
        "currency": entry.currency.as_str(),
        "amount": entry.amount.to_string(),
        "held": entry.held_change().to_string(),
        "received_at": format!("{:.3}", entry.received_at),
        "by": entry.decision.as_ref().map(|decision| &decision.by),
        "reason": entry.decision.as_ref().map(|decision| &decision.reason),
    })
}
