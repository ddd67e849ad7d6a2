//! A month as a page, for whoever closes it.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use jiff::Timestamp;
use serde_json::json;

use super::{CannotRun, Ledger, Period, books, complaint, deadline, readable, unreadable_json};
use crate::ledger::{About, CaseRow};
use crate::report::{Held, Month};
use crate::terminal::Reply;

/// Writes the page of a month.
///
/// # Errors
///
/// [`CannotRun`] says what is in the way; then nothing is written.
pub async fn report(
    ledger: &Ledger,
    period: &Period,
    networks: &[String],
    out: &Path,
    now: Timestamp,
) -> Result<Reply, CannotRun> {
    if out.exists() {
        return Err(CannotRun::Exists(out.to_owned()));
    }
    let of_these = |network: Option<&str>| {
        networks.is_empty() || network.is_some_and(|network| networks.iter().any(|named| named == network))
    };
    let mut books = books(ledger, period, networks).await?;
    let mut holds = Held::default();
    let mut pages = ledger.store.every_hold();
    while let Some(rows) = pages.next().await? {
        let (rows, unreadable) = readable(rows);
        books.unreadable.extend(unreadable);
        let mut rows = rows.iter().filter(|hold| of_these(Some(hold.trans_id.network())));
        rows.try_for_each(|hold| holds.add(hold)).map_err(CannotRun::Sum)?;
    }
    let rows = ledger.store.open_cases(None, deadline()).await?;
    let unreadable_cases = rows.iter().filter(|row| row.is_err()).count();
    let cases: Vec<_> = rows.into_iter().flatten().filter(|row| of_these(network_of(row))).collect();
    let month = Month {
        first: period.first(),
        last: period.last(),
        over: period.is_over(now),
        made_at: now,
        books: &books,
        holds: &holds,
        cases: &cases,
        unreadable_cases,
    };
    let page = month.page().map_err(CannotRun::Sum)?;
    write(out, &page).map_err(|problem| CannotRun::Write { file: out.to_owned(), problem })?;

    let bad = !books.unreadable.is_empty() || unreadable_cases > 0;
    let mut text = vec![format!("{period}, days in UTC, as a page: {}", out.display())];
    text.extend(complaint(&books.unreadable));
    if unreadable_cases > 0 {
        text.push(format!("{unreadable_cases} open cases do not read"));
    }
    let json = json!({
        "file": out.display().to_string(),
        "from": period.first().to_string(),
        "to": period.last().to_string(),
        "open_cases": cases.len(),
        "unreadable": unreadable_json(&books.unreadable),
        "unreadable_cases": unreadable_cases,
    });
    Ok(Reply { text: text.join("\n"), json, differs: bad })
}

/// The network that a case is about; `None` where it is about none.
fn network_of(row: &CaseRow) -> Option<&str> {
    match &row.case.about {
        About::Entry { trans_id, .. } => Some(trans_id.network()),
        About::Settings(_) => None,
    }
}

/// Writes a new file whole, or none.
fn write(out: &Path, page: &str) -> std::io::Result<()> {
    let mut growing = out.as_os_str().to_owned();
    growing.push(".tmp");
    let written = File::create(&growing).and_then(|mut file| {
        file.write_all(page.as_bytes())?;
        file.sync_all()?;
        fs::rename(&growing, out)
    });
    written.inspect_err(|_| {
        let _ = fs::remove_file(&growing);
    })
}
