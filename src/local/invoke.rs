//! `cargo local invoke`: one event through the handler, the answer exactly as it is, and what the call changed.
//!
//! What changed is seen, not concluded: it is the difference between two readings of the tables. Over a folder that is being
//! served it uses the DynamoDB that serves it. Never changes a table itself: only the handler does.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::de::IgnoredAny;
use tokio::time::Instant;

use super::{CannotRun, Connected, Data, PATIENCE, called, change, function, say};
use crate::config::{Config, SecretsFrom};
use crate::event::Request;
use crate::id::{Currency, TransId, UserId};
use crate::ledger::{Account, CaseRow, Entry, Status};
use crate::money::Amount;
use crate::offerwall::{self, Report};
use crate::store::{Store, StoreError};
use crate::wallet::{self, Call};

/// Calls the function with the event in `file`.
///
/// # Errors
///
/// [`CannotRun`] says what is in the way. An answer that refuses the event is not one.
pub async fn invoke(file: &Path, data: &Data) -> Result<(), CannotRun> {
    let event = fs::read_to_string(file).map_err(|problem| CannotRun::Event { file: file.to_owned(), problem })?;
    serde_json::from_str::<IgnoredAny>(&event)
        .map_err(|problem| CannotRun::NotJson { file: file.to_owned(), problem })?;

    let connected = Connected::to(data).await?;
    let (config, app) = function(&connected.endpoint, None).await?;

    let request = Request::read(&event).ok().map(|request| request.behind(&config.front));
    let concerned = request.as_ref().and_then(|request| Concerned::by(&config, request)).unwrap_or_default();
    let before = Standing::of(app.store(), &concerned).await?;
    let handled = called(&app, request.as_ref().map_or("", |request| &request.path), &event).await;
    let after = Standing::of(app.store(), &concerned).await?;
    drop(connected);

    let replayed = if handled.answer.replayed { "\nidempotent-replayed: true" } else { "" };
    let content_type = handled.answer.content_type.as_str();
    say(format_args!("{}\ncontent-type: {content_type}{replayed}\n", handled.answer.status));
    say(format_args!("{}\n", handled.answer.body));
    if let Some(why) = &handled.why {
        say(format_args!("why      {why}"));
    }
    say(after.changes_since(&before));
    Ok(())
}

/// What an event can change, if the handler will believe it.
#[derive(Default)]
struct Concerned {
    conversations: Vec<TransId>,
    accounts: Vec<(UserId, Currency)>,
}

impl Concerned {
    fn by(config: &Config, request: &Request) -> Option<Concerned> {
        let SecretsFrom::Environment(secrets) = &config.secrets else { return None };
        if let Some(route) = wallet::route(&config.networks, &request.path) {
            let keys = secrets.of(&route.preset.network);
            return match wallet::read(&route, keys, &config.coins.currency, request) {
                Ok(Call::Ask(ask)) => {
                    let original = ask.what.original().cloned();
                    let conversations = std::iter::once(ask.key).chain(original).collect();
                    Some(Concerned { conversations, accounts: vec![(ask.player, ask.currency)] })
                }
                Ok(Call::Ping | Call::Balance(..)) | Err(_) => None,
            };
        }
        let preset = offerwall::preset_at(&config.networks, &request.path)?;
        match offerwall::read(preset, secrets.of(&preset.network), &config.coins, request) {
            Ok(Report::Claim(claim)) => {
                Some(Concerned { conversations: vec![claim.trans_id], accounts: vec![(claim.user, claim.currency)] })
            }
            Ok(Report::Note(_)) | Err(_) => None,
        }
    }
}

/// All of that, as it stands. An event that concerns nothing can change nothing.
#[derive(Default)]
struct Standing {
    entries: Vec<Entry>,
    accounts: BTreeMap<(UserId, Currency), Account>,
    cases: Vec<CaseRow>,
}

impl Standing {
    async fn of(store: &Store, concerned: &Concerned) -> Result<Standing, StoreError> {
        let deadline = Instant::now() + PATIENCE;
        let mut standing = Standing::default();
        for trans_id in &concerned.conversations {
            standing.entries.extend(store.conversation(trans_id, deadline).await?);
            standing.cases.extend(store.cases_of(trans_id, deadline).await?);
        }
        let accounts = standing.entries.iter().map(|entry| (entry.user.clone(), entry.currency.clone()));
        for (user, currency) in accounts.chain(concerned.accounts.iter().cloned()) {
            let account = store.account(&user, &currency, deadline).await?;
            standing.accounts.insert((user, currency), account.unwrap_or_default());
        }
        Ok(standing)
    }

    fn changes_since(&self, before: &Standing) -> String {
        let entries =
            self.entries.iter().filter(|entry| !before.entries.iter().any(|known| known.same_key(entry))).map(
                |entry| {
                    let void = match (entry.void, entry.status) {
                        (false, _) => "",
                        (true, Status::Operation) => ", void: it is refused should it still come",
                        (true, _) => ", void: a late credit will move nothing",
                    };
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
