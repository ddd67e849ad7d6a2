//! `cargo local invoke`: one event through the handler, the answer exactly as it is, and what the call changed.
//!
//! What changed is seen, not concluded: it is the difference between two readings of the tables. Over a folder that is being
//! served it uses the DynamoDB that serves it. Never changes a table itself: only the handler does.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde::de::IgnoredAny;
use tokio::time::Instant;

use super::embedded::running;
use super::{CannotRun, Data, Embedded, PATIENCE, bind, change, function, say};
use crate::config::{Config, SecretsFrom};
use crate::event::Request;
use crate::id::{Currency, UserId};
use crate::ledger::{Account, CaseRow, Entry};
use crate::money::Amount;
use crate::offerwall::{self, Claim, Report};
use crate::store::{Store, StoreError};

/// Calls the function with the event in `file`.
///
/// # Errors
///
/// [`CannotRun`] says what is in the way. An answer that refuses the event is not one.
pub async fn invoke(file: &Path, data: &Data) -> Result<(), CannotRun> {
    let event = fs::read_to_string(file).map_err(|problem| CannotRun::Event { file: file.to_owned(), problem })?;
    serde_json::from_str::<IgnoredAny>(&event)
        .map_err(|problem| CannotRun::NotJson { file: file.to_owned(), problem })?;

    let (embedded, endpoint) = match Embedded::start(bind(0, "--dynamodb-port").await?, data) {
        Ok(embedded) => {
            let endpoint = embedded.endpoint();
            (Some(embedded), endpoint)
        }
        Err(CannotRun::InUse { folder }) => match running(&folder) {
            Some(endpoint) => (None, endpoint),
            None => return Err(CannotRun::InUse { folder }),
        },
        Err(error) => return Err(error),
    };
    let (config, app) = function(&endpoint, None).await?;

    let claim = claim(&config, &event);
    let before = Standing::of(app.store(), claim.as_ref()).await?;
    let handled = app.offerwall(&event, Duration::MAX).await;
    let after = Standing::of(app.store(), claim.as_ref()).await?;
    drop(embedded);

    say(format_args!("{}\ncontent-type: {}\n", handled.answer.status, handled.answer.content_type.as_str()));
    say(format_args!("{}\n", handled.answer.body));
    if let Some(why) = &handled.why {
        say(format_args!("why      {why}"));
    }
    say(after.changes_since(&before));
    Ok(())
}

/// What the event claims, if the handler will believe it.
fn claim(config: &Config, event: &str) -> Option<Claim> {
    let request = Request::read(event).ok()?.behind(&config.front);
    let preset = offerwall::preset_at(&config.networks, &request.path)?;
    let SecretsFrom::Environment(secrets) = &config.secrets else { return None };
    match offerwall::read(preset, secrets.of(&preset.network), &config.coins, &request) {
        Ok(Report::Claim(claim)) => Some(*claim),
        Ok(Report::Note(_)) | Err(_) => None,
    }
}

/// All that a claim can change. An event without one can change nothing.
#[derive(Default)]
struct Standing {
    entries: Vec<Entry>,
    accounts: BTreeMap<(UserId, Currency), Account>,
    cases: Vec<CaseRow>,
}

impl Standing {
    async fn of(store: &Store, claim: Option<&Claim>) -> Result<Standing, StoreError> {
        let Some(claim) = claim else { return Ok(Standing::default()) };
        let deadline = Instant::now() + PATIENCE;
        let entries = store.conversation(&claim.trans_id, deadline).await?;
        let accounts = entries.iter().map(|entry| (&entry.user, &entry.currency));
        let mut standing = BTreeMap::new();
        for (user, currency) in accounts.chain([(&claim.user, &claim.currency)]) {
            let account = store.account(user, currency, deadline).await?;
            standing.insert((user.clone(), currency.clone()), account.unwrap_or_default());
        }
        let cases = store.cases_of(&claim.trans_id, deadline).await?;
        Ok(Standing { entries, accounts: standing, cases })
    }

    fn changes_since(&self, before: &Standing) -> String {
        let entries =
            self.entries.iter().filter(|entry| !before.entries.iter().any(|known| known.same_key(entry))).map(
                |entry| {
                    let void = if entry.void { ", void: a late credit will move nothing" } else { "" };
                    let (key, status) = (&entry.trans_id, entry.status.as_str());
                    format!("entry    {key} {status} {}, user {}{void}", change(entry), entry.user)
                },
            );
        let balances = self.accounts.iter().flat_map(|(account, now)| {
            let known = before.accounts.get(account).copied().unwrap_or_default();
            let (user, currency) = account;
            let change = move |part, known: Amount, now: Amount| {
                (known != now).then(|| format!("{part:<9}user {user}: {known} -> {now} {currency}"))
            };
            [change("balance", known.available, now.available), change("held", known.held, now.held)]
        });
        let cases = self
            .cases
            .iter()
            .filter(|row| !before.cases.iter().any(|known| known.case_id == row.case_id))
            .map(|row| format!("case     {}: {}", row.case_id, row.case.detail));
        let changes: Vec<String> = entries.chain(balances.flatten()).chain(cases).collect();
        if changes.is_empty() { "nothing changed".to_owned() } else { changes.join("\n") }
    }
}
