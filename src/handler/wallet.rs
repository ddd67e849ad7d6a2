//! Calls of a wallet: what of the control flow is the wallet's alone.
//!
//! Decides nothing: the contract does. What it remembers of balances only saves a read: the posting's conditions decide.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;
use tracing::error;

use super::{App, Handled, Subject, Unverifiable};
use crate::event::{Answer, Request};
use crate::id::{Currency, UserId};
use crate::ledger::{Account, Case, Entry, Outcome, Posting, Refusal, Status};
use crate::metrics::Moved;
use crate::preset::Preset;
use crate::store::{self, Opened, StoreError};
use crate::wallet::{self, Ask, Call, Denied, Happened, Rejection, Route, Seen, Step};

/// Most accounts that are remembered; beyond that all are forgotten.
const REMEMBERED_MAX: usize = 10_000;

/// The accounts as this process saw them last.
#[derive(Debug, Default)]
pub(super) struct Accounts(Mutex<HashMap<(UserId, Currency), Account>>);

impl Accounts {
    fn last(&self, user: &UserId, currency: &Currency) -> Option<Account> {
        self.lock().get(&(user.clone(), currency.clone())).copied()
    }

    fn remember(&self, user: &UserId, currency: &Currency, account: Option<Account>) {
        let mut accounts = self.lock();
        if accounts.len() >= REMEMBERED_MAX {
            accounts.clear();
        }
        let key = (user.clone(), currency.clone());
        match account {
            Some(account) => accounts.insert(key, account),
            None => accounts.remove(&key),
        };
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(UserId, Currency), Account>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl App {
    /// Answers a call of a wallet, given as a function URL's event, within `patience` or the time budget, whichever is
    /// shorter.
    pub async fn wallet(&self, event: &str, patience: Duration) -> Handled {
        self.answered(event, patience, async |request, deadline| self.called(request, deadline).await).await
    }

    async fn called(&self, request: &Request, deadline: Instant) -> Handled {
        let Some(in_force) = self.look(deadline).await else {
            return Handled::new(wallet::try_again(), "unavailable");
        };
        let Some(route) = wallet::route(&in_force.networks, &request.path) else {
            return Handled::new(wallet::astray(&request.path), Rejection::UnknownNetwork.as_str());
        };
        let preset = route.preset;
        let read = |keys: &[_]| wallet::read(&route, keys, &self.config.coins.currency, request);
        let call = match self.read(preset, request, deadline, read).await {
            Ok(Ok(call)) => call,
            Ok(Err(rejection)) => {
                let handled = handled(preset, wallet::refuse(&rejection), rejection.as_str());
                return Handled { why: rejection.why(), ..handled };
            }
            Err(Unverifiable) => return handled(preset, wallet::try_again(), "unverifiable"),
        };
        let handled = match call {
            Call::Ping => handled(preset, wallet::pong(), "ping"),
            Call::Balance(player, currency) => self.balance(&route, &player, &currency, deadline).await,
            Call::Ask(ask) => self.asked(&route, &ask, deadline).await,
        };
        Handled { understood: true, ..handled }
    }

    async fn balance(&self, route: &Route<'_>, player: &UserId, currency: &Currency, deadline: Instant) -> Handled {
        let preset = route.preset;
        match self.store.account(player, currency, deadline).await {
            Ok(account) => {
                self.accounts.remember(player, currency, account);
                let unknown = Denied::UnknownPlayer;
                match account {
                    Some(account) => handled(preset, wallet::balance(&account, currency), "balance"),
                    None => handled(preset, unknown.answer(route), unknown.as_str()),
                }
            }
            Err(problem) => {
                error!(error = %problem, "no balance; the same call again is safe");
                handled(preset, wallet::try_again(), "unavailable")
            }
        }
    }

    async fn asked(&self, route: &Route<'_>, ask: &Ask, deadline: Instant) -> Handled {
        let subject = Some(Subject {
            trans_id: ask.key.clone(),
            status: Status::Operation,
            class: ask.what.kind().as_str(),
            user: ask.player.clone(),
            currency: ask.currency.clone(),
        });
        match self.settled(route, ask, deadline).await {
            Ok(Settled { answer, outcome, moved, cases }) => {
                Handled { subject, moved, cases, ..handled(route.preset, answer, outcome) }
            }
            Err(problem) => {
                error!(trans_id = ask.key.as_str(), error = %problem, "not settled; the same call again is safe");
                Handled { subject, ..handled(route.preset, wallet::try_again(), "unavailable") }
            }
        }
    }

    /// Takes step after step until the ask is settled.
    async fn settled(&self, route: &Route<'_>, ask: &Ask, deadline: Instant) -> Result<Settled, StoreError> {
        let remembered = self.accounts.last(&ask.player, &ask.currency);
        let mut guessed = remembered.is_some();
        let whose = (ask.player.clone(), ask.currency.clone());
        let mut seen = Seen { account: remembered.map(|account| (whose, Some(account))), ..Seen::default() };
        loop {
            let now = Timestamp::now();
            match wallet::next(route.wallet, ask, &seen, now) {
                Step::ReadAccount(user, currency) => {
                    let account = self.store.account(&user, &currency, deadline).await?;
                    self.accounts.remember(&user, &currency, account);
                    seen.account = Some(((user, currency), account));
                }
                Step::ReadOriginal(original) => {
                    seen.original = Some(self.store.conversation(&original, deadline).await?);
                }
                Step::ReadKnown => seen.known = Some(self.store.conversation(&ask.key, deadline).await?),
                Step::FinishForAll(round) => {
                    self.store.finish_round(&round, now, deadline).await?;
                    seen.finished_for_all = true;
                }
                Step::Post(posting, meaning) => {
                    let outcome = self.store.post(&posting, deadline).await?;
                    if let Outcome::Refused(refusal) = outcome {
                        self.refused(&mut seen, &posting.entry, refusal);
                    } else {
                        return self.concluded(*posting, meaning, &outcome, &seen, deadline).await;
                    }
                }
                Step::Known(known) => {
                    let (new, outcome) = *known;
                    let posting = Posting::of(new);
                    return self.concluded(posting, Happened::Duplicate, &outcome, &seen, deadline).await;
                }
                // What is remembered only saves a read: nothing is denied for it.
                Step::Deny(_) if std::mem::take(&mut guessed) => (seen.account, seen.known) = (None, None),
                Step::Deny(denied) => {
                    let (answer, outcome) = (denied.answer(route), denied.as_str());
                    return Ok(Settled { answer, outcome, moved: None, cases: Vec::new() });
                }
            }
        }
    }

    /// What is seen by a posting that was refused.
    fn refused(&self, seen: &mut Seen, entry: &Entry, refusal: Refusal) {
        match refusal {
            Refusal::Account(account) => {
                self.accounts.remember(&entry.user, &entry.currency, account);
                seen.account = Some(((entry.user.clone(), entry.currency.clone()), account));
            }
            Refusal::Companion => seen.original = None,
            Refusal::Round(round) => seen.round = Some(round),
            // No wallet's posting takes from a hold or closes a case.
            Refusal::Hold | Refusal::Case => {}
        }
    }

    /// What the outcome of a posting comes to, with the case that it calls for.
    async fn concluded(
        &self,
        mut posting: Posting,
        meaning: Happened,
        outcome: &Outcome,
        seen: &Seen,
        deadline: Instant,
    ) -> Result<Settled, StoreError> {
        let (happened, case) = wallet::conclude(&posting.entry, meaning, outcome);
        let mut settled = Settled {
            answer: wallet::answer(&posting.entry, outcome).ok_or_else(|| StoreError::Failed {
                step: store::Step::Post,
                subject: posting.entry.trans_id.to_string(),
                problem: "the entry under this key holds no answer: it is not a wallet's".to_owned(),
            })?,
            outcome: happened.as_str(),
            moved: None,
            cases: Vec::new(),
        };
        if let Some(case) = case
            && self.store.open(&case, deadline).await? == Opened::New
        {
            settled.cases.push(case);
        }
        if *outcome == Outcome::Posted {
            let Entry { user, currency, amount, .. } = &posting.entry;
            settled.moved = happened.flow().and_then(|flow| Moved::of(flow, *amount, currency));
            settled.cases.append(&mut posting.cases);
            if let Some(((seen_user, seen_currency), Some(account))) = &seen.account
                && (seen_user, seen_currency) == (user, currency)
                && let Some(available) = account.available.checked_add(*amount)
            {
                self.accounts.remember(user, currency, Some(Account { available, ..*account }));
            }
        }
        Ok(settled)
    }
}

/// What an ask came to.
struct Settled {
    answer: Answer,
    outcome: &'static str,
    moved: Option<Moved>,
    cases: Vec<Case>,
}

/// A call of this network.
fn handled(preset: &Preset, answer: Answer, outcome: &'static str) -> Handled {
    Handled {
        network: Some(preset.network.clone()),
        r#final: preset.answers.final_statuses.contains(&answer.status),
        ..Handled::new(answer, outcome)
    }
}
