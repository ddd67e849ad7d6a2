//! Accounts and holds against their entries: every difference, with how bad it is.
//!
//! Traffic may run meanwhile, so that what differs at first is read again, alone and at this moment, before it is told. Only
//! reads: what is wrong is for a person to put right, with an entry.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{CannotRun, Ledger, SUMMED, readable};
use crate::books::{AccountKey, AccountWrong, Difference, Expected, OutOfRange, Unreadable, account_differs, add_to};
use crate::id::{Currency, TransId, UserId};
use crate::ledger::{Account, Hold};
use crate::store::{Store, StoreError};
use crate::terminal::{Reply, Table, spinner};

/// How often what differs is read again until two readings agree.
const READINGS: u32 = 8;

/// How long the first pause between two readings is; each is longer by as much again.
const PAUSE: Duration = Duration::from_millis(100);

/// How many differences are looked at again at once.
const WIDTH: usize = 16;

/// Entries of one page of a history.
const PAGE: i32 = 1000;

/// Verifies every account and every hold, or those of one user.
///
/// # Errors
///
/// [`CannotRun`] says what is in the way.
pub async fn verify(ledger: &Ledger, user: Option<&str>) -> Result<Reply, CannotRun> {
    match user {
        None => everything(&ledger.store).await,
        Some(user) => {
            let named = UserId::stored(user);
            let user = named.ok_or_else(|| CannotRun::argument("--user", user, "no user can be called so"))?;
            one_user(&ledger.store, &user).await
        }
    }
}

/// What was compared.
#[derive(Debug, Default)]
struct Compared {
    entries: u64,
    accounts: u64,
    holds: u64,
    looked_again: usize,
}

/// Reads the three tables, each in segments side by side, and compares them in memory.
async fn everything(store: &Store) -> Result<Reply, CannotRun> {
    let progress = spinner("rows");
    let mut expected = Expected::default();
    let mut unreadable = Vec::new();
    let mut suspicious = Vec::new();
    let mut compared = Compared::default();

    let mut pages = store.every_entry();
    while let Some(rows) = pages.next().await? {
        progress.inc(rows.len() as u64);
        let (rows, unread) = readable(rows);
        unreadable.extend(unread);
        rows.iter().try_for_each(|row| expected.add(row)).map_err(CannotRun::Sum)?;
    }
    let mut pages = store.every_account();
    while let Some(rows) = pages.next().await? {
        progress.inc(rows.len() as u64);
        let (rows, unread) = readable(rows);
        unreadable.extend(unread);
        compared.accounts += rows.len() as u64;
        suspicious.extend(rows.iter().filter_map(|stored| expected.account(stored)));
    }
    let mut pages = store.every_hold();
    while let Some(rows) = pages.next().await? {
        progress.inc(rows.len() as u64);
        let (rows, unread) = readable(rows);
        unreadable.extend(unread);
        compared.holds += rows.len() as u64;
        suspicious.extend(rows.iter().filter_map(|row| expected.hold(row)));
    }
    suspicious.extend(expected.without_account());
    suspicious.extend(expected.without_hold());
    suspicious.extend(expected.without_other_half());
    progress.finish_and_clear();

    compared.entries = expected.entries;
    compared.looked_again = suspicious.len();
    let mut differences = look_again(store, suspicious, &expected).await?;
    differences.extend(unreadable.into_iter().map(Difference::Unreadable));
    Ok(reply(differences, &compared, &expected, None))
}

/// Reads a user's accounts and history, and what these hold.
async fn one_user(store: &Store, user: &UserId) -> Result<Reply, CannotRun> {
    let mut compared = Compared::default();
    let mut expected = Expected::default();
    let mut held: BTreeMap<String, TransId> = BTreeMap::new();
    let (accounts, mut unreadable) = readable(store.accounts(user).await?);
    let mut from = None;
    loop {
        let page = store.history(user, PAGE, from).await?;
        let (rows, unread) = readable(page.rows);
        unreadable.extend(unread);
        for row in &rows {
            expected.add(row).map_err(CannotRun::Sum)?;
            if !row.held.is_zero()
                && let Ok(trans_id) = TransId::new(&row.trans_id)
            {
                held.insert(row.trans_id.clone(), trans_id);
            }
        }
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    compared.accounts = accounts.len() as u64;
    let mut suspicious: Vec<_> = accounts.iter().filter_map(|stored| expected.account(stored)).collect();
    for trans_id in held.values() {
        let Some(hold) = expected.held(trans_id) else { continue };
        if let Some(row) = store.hold_row(&hold).await? {
            compared.holds += 1;
            suspicious.extend(expected.hold(&row));
        }
    }
    suspicious.extend(expected.without_account());
    suspicious.extend(expected.without_hold());
    suspicious.extend(expected.without_other_half());
    compared.entries = expected.entries;
    compared.looked_again = suspicious.len();
    if !suspicious.is_empty() {
        // The index has no entry without a time; the table has.
        let mut pages = store.unindexed(user);
        while let Some(rows) = pages.next().await? {
            let (rows, unread) = readable(rows);
            unreadable.extend(unread);
            rows.iter().try_for_each(|row| expected.add(row)).map_err(CannotRun::Sum)?;
        }
    }
    let mut differences = look_again(store, suspicious, &expected).await?;
    differences.extend(unreadable.into_iter().map(Difference::Unreadable));
    Ok(reply(differences, &compared, &expected, Some(user)))
}

/// Reads again what differs; what is left differs in fact.
async fn look_again(
    store: &Store,
    suspicious: Vec<Difference>,
    expected: &Expected,
) -> Result<Vec<Difference>, CannotRun> {
    let mut differences = Vec::new();
    let mut waiting = suspicious.into_iter();
    let mut running: JoinSet<Result<Option<Difference>, CannotRun>> = JoinSet::new();
    loop {
        while running.len() < WIDTH
            && let Some(difference) = waiting.next()
        {
            let store = store.clone();
            match difference {
                Difference::Account { user, currency, .. } => {
                    let account = (user, currency);
                    let timeless = expected.timeless(&account);
                    running.spawn(async move { account_again(&store, account, timeless).await });
                }
                Difference::Hold { ref trans_id, .. } => match TransId::new(trans_id) {
                    Ok(trans_id) => {
                        running.spawn(async move { hold_again(&store, difference, &trans_id).await });
                    }
                    Err(_) => differences.push(difference),
                },
                Difference::Rollback { original, rollback, .. } => {
                    running.spawn(async move { rollback_again(&store, &original, &rollback).await });
                }
                Difference::Unreadable(_) => differences.push(difference),
            }
        }
        match running.join_next().await {
            None => return Ok(differences),
            Some(Ok(again)) => differences.extend(again?),
            Some(Err(error)) => {
                if let Ok(panic) = error.try_into_panic() {
                    std::panic::resume_unwind(panic);
                }
            }
        }
    }
}

/// Compares an account with its entries until it did not change while these were read, twice with the same result and as many
/// entries: the index by user follows the table by some milliseconds, and a balance may come and go between two looks.
async fn account_again(
    store: &Store,
    (user, currency): AccountKey,
    timeless: Option<Account>,
) -> Result<Option<Difference>, CannotRun> {
    let mut last = None;
    for reading in 1..=READINGS {
        let before = store.account_now(&user, &currency).await?;
        let (entries, count) = sum_of(store, &user, &currency, timeless).await?;
        let after = store.account_now(&user, &currency).await?;
        if before == after {
            let Some(wrong) = account_differs(after, entries) else { return Ok(None) };
            if last.replace((wrong, count)) == Some((wrong, count)) {
                return Ok(Some(Difference::Account { user, currency, wrong }));
            }
        }
        tokio::time::sleep(PAUSE * reading).await;
    }
    Ok(Some(Difference::Account { user, currency, wrong: AccountWrong::Busy }))
}

/// What the history of a user adds up to in a currency, with what the history does not have, and how many entries it has.
async fn sum_of(
    store: &Store,
    user: &UserId,
    currency: &Currency,
    timeless: Option<Account>,
) -> Result<(Option<Account>, u64), CannotRun> {
    let (mut sum, mut count) = (timeless, 0);
    let mut from = None;
    loop {
        let page = store.history(user, PAGE, from).await?;
        // A row that does not read is told anyway.
        for row in page.rows.into_iter().flatten().filter(|row| row.currency == *currency) {
            let change = row.change().map_err(CannotRun::Sum)?;
            add_to(sum.get_or_insert_default(), change).map_err(CannotRun::Sum)?;
            count += 1;
        }
        from = page.next;
        if from.is_none() {
            return Ok((sum, count));
        }
    }
}

/// Compares the hold of a conversation with its entries, until these did not change while its row was read.
async fn hold_again(
    store: &Store,
    difference: Difference,
    trans_id: &TransId,
) -> Result<Option<Difference>, CannotRun> {
    for reading in 1..=READINGS {
        let before = held_by_entries(store, trans_id).await?;
        let rows = hold_rows(store, &difference, trans_id, before.as_ref()).await?;
        let after = held_by_entries(store, trans_id).await?;
        if before == after {
            let mut expected = entries_of(store, trans_id).await?.map_err(CannotRun::Sum)?;
            let mut differs: Vec<_> = rows.iter().filter_map(|row| expected.hold(row)).collect();
            differs.extend(expected.without_hold());
            return Ok(differs.pop());
        }
        tokio::time::sleep(PAUSE * reading).await;
    }
    Ok(Some(difference))
}

/// Compares a rollback with its original as both stand at this moment: they were posted in one transaction, so that neither is
/// to be waited for.
async fn rollback_again(store: &Store, original: &str, rollback: &str) -> Result<Option<Difference>, CannotRun> {
    let mut expected = Expected::default();
    for trans_id in [original, rollback].iter().filter_map(|id| TransId::new(id).ok()) {
        let rows = store.rows(&trans_id).await?;
        rows.iter().flatten().try_for_each(|row| expected.add(row)).map_err(CannotRun::Sum)?;
    }
    // Either may belong to other pairs too: an original that is a rollback itself, or one with another mark.
    let mut left = expected.without_other_half().into_iter();
    let of_these = |difference: &Difference| {
        matches!(difference, Difference::Rollback { original: one, rollback: other, .. }
            if one == original && other == rollback)
    };
    Ok(left.rfind(of_these))
}

/// The rows that stand for the coins of a conversation: where the difference saw one, and where its credit says.
async fn hold_rows(
    store: &Store,
    difference: &Difference,
    trans_id: &TransId,
    held: Option<&Hold>,
) -> Result<Vec<Hold>, StoreError> {
    let mut rows: Vec<Hold> = Vec::new();
    let seen = match difference {
        Difference::Hold { user, currency, amount, release_at, .. } => Some(Hold {
            trans_id: trans_id.clone(),
            user: user.clone(),
            currency: currency.clone(),
            amount: *amount,
            release_at: *release_at,
        }),
        Difference::Account { .. } | Difference::Rollback { .. } | Difference::Unreadable(_) => None,
    };
    for place in seen.iter().chain(held) {
        if let Some(row) = store.hold_row(place).await?
            && !rows.contains(&row)
        {
            rows.push(row);
        }
    }
    Ok(rows)
}

async fn held_by_entries(store: &Store, trans_id: &TransId) -> Result<Option<Hold>, CannotRun> {
    Ok(entries_of(store, trans_id).await?.map_err(CannotRun::Sum)?.held(trans_id))
}

async fn entries_of(store: &Store, trans_id: &TransId) -> Result<Result<Expected, OutOfRange>, StoreError> {
    let mut expected = Expected::default();
    let rows = store.rows(trans_id).await?;
    Ok(rows.iter().flatten().try_for_each(|row| expected.add(row)).map(|()| expected))
}

fn reply(mut differences: Vec<Difference>, compared: &Compared, expected: &Expected, user: Option<&UserId>) -> Reply {
    differences.sort_by_cached_key(|difference| (difference.severity(), difference.subject(), difference.to_string()));
    let Compared { entries, accounts, holds, looked_again } = compared;
    let whose = user.map(|user| format!(" of user {user}")).unwrap_or_default();
    let count = |count: u64, of: &str| format!("{count} {of}{}", if count == 1 { "" } else { "s" });
    let entries_text = if *entries == 1 { "1 entry".to_owned() } else { format!("{entries} entries") };
    let read = format!("{entries_text}, {}, {}{whose}", count(*accounts, "account"), count(*holds, "hold"));
    let mut text = vec![if differences.is_empty() {
        format!("{read}: every account is what its entries add up to, and every hold is one that they hold.")
    } else {
        format!("{read}: {} found.", count(differences.len() as u64, "difference"))
    }];
    if !differences.is_empty() {
        let mut table = Table::new(["severity", "what", "difference"]);
        for difference in &differences {
            let severity = difference.severity().as_str().to_owned();
            table.row([severity, difference.subject(), difference.to_string()]);
        }
        text.push(table.to_string());
    }
    let unlisted = [
        (&expected.without_day, "`day` or `received_at`", "in no day's sum"),
        (&expected.without_time, "`received_at`", "in no user's history"),
    ];
    for (without, attribute, consequence) in unlisted {
        if let Some((count, example)) = without {
            text.push(format!("Without {attribute}, and so {consequence}: {count}, such as {example}."));
        }
    }
    let without = |without: &Option<(u64, String)>| without.as_ref().map_or(0, |(count, _)| *count);
    let json = json!({
        "user": user.map(UserId::as_str),
        "source": format!("{SUMMED} against stored balances and holds"),
        "entries": entries,
        "accounts": accounts,
        "holds": holds,
        "looked_at_again": looked_again,
        "entries_without_day": without(&expected.without_day),
        "entries_without_received_at": without(&expected.without_time),
        "differences": differences.iter().map(difference_json).collect::<Vec<_>>(),
    });
    Reply { text: text.join("\n\n"), json, differs: !differences.is_empty() }
}

fn difference_json(difference: &Difference) -> Value {
    let account = |account: Option<Account>| {
        account.map(|account| json!({"available": account.available.to_string(), "held": account.held.to_string()}))
    };
    let mut json = json!({
        "severity": difference.severity().as_str(),
        "subject": difference.subject(),
        "detail": difference.to_string(),
    });
    match difference {
        Difference::Account { user, currency, wrong } => {
            json["user_id"] = user.as_str().into();
            json["currency"] = currency.as_str().into();
            if let AccountWrong::Money { stored, entries } = wrong {
                json["stored"] = account(*stored).into();
                json["summed_entries"] = account(*entries).into();
            }
        }
        Difference::Hold { trans_id, user, currency, amount, .. } => {
            json["trans_id"] = trans_id.as_str().into();
            json["user_id"] = user.as_str().into();
            json["currency"] = currency.as_str().into();
            json["amount"] = amount.to_string().into();
        }
        Difference::Rollback { original, rollback, .. } => {
            json["original"] = original.as_str().into();
            json["rollback"] = rollback.as_str().into();
        }
        Difference::Unreadable(Unreadable { row, .. }) => json["row"] = row.as_str().into(),
    }
    json
}
