//! Postbacks: what of the control flow is the offerwall's alone.
//!
//! Decides nothing: the contract does.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;
use tracing::error;

use super::{App, Handled, Subject, Unverifiable};
use crate::event::{Answer, Request};
use crate::ledger::{self, Case, Outcome};
use crate::metrics::Moved;
use crate::offerwall::{self, Claim, Happened, Rejection, Report};
use crate::preset::Preset;
use crate::store::{Opened, StoreError};

impl App {
    /// Answers a network's postback, given as a function URL's event, within `patience` or the time budget, whichever is
    /// shorter.
    pub async fn offerwall(&self, event: &str, patience: Duration) -> Handled {
        self.answered(event, patience, async |request, deadline| self.postback(request, deadline).await).await
    }

    async fn postback(&self, request: &Request, deadline: Instant) -> Handled {
        let Some(in_force) = self.look(deadline).await else { return self.unknown_settings(request) };
        let Some(preset) = offerwall::preset_at(&in_force.networks, &request.path) else {
            let rejection = Rejection::UnknownNetwork;
            return Handled::new(offerwall::refuse(None, request, &rejection), rejection.as_str());
        };
        let handled = |answer: Answer, outcome| Handled {
            network: Some(preset.network.clone()),
            r#final: preset.answers.final_statuses.contains(&answer.status),
            ..Handled::new(answer, outcome)
        };
        let read = |keys: &[_]| offerwall::read(preset, keys, &self.config.coins, request);
        let report = match self.read(preset, request, deadline, read).await {
            Ok(Ok(report)) => report,
            Ok(Err(rejection)) => {
                let answer = offerwall::refuse(Some(preset), request, &rejection);
                return Handled { why: rejection.why(), ..handled(answer, rejection.as_str()) };
            }
            Err(Unverifiable) => return handled(offerwall::try_again(preset, request), "unverifiable"),
        };
        let handled = |answer, outcome| Handled { understood: true, ..handled(answer, outcome) };
        let claim = match report {
            Report::Claim(claim) => claim,
            Report::Note(note) => {
                let happened = Happened::Noted(note);
                return handled(offerwall::answer(preset, request, happened), happened.as_str());
            }
        };
        let subject = Some(Subject {
            trans_id: claim.trans_id.clone(),
            status: claim.status,
            class: claim.status.as_str(),
            user: claim.user.clone(),
            currency: claim.currency.clone(),
        });
        match self.settle(preset, &claim, deadline).await {
            Ok(Settled { happened, moved, cases }) => {
                let handled = handled(offerwall::answer(preset, request, happened), happened.as_str());
                Handled { subject, moved, cases, ..handled }
            }
            Err(problem) => {
                error!(trans_id = claim.trans_id.as_str(), error = %problem, "not settled; the network's next attempt is safe");
                Handled { subject, ..handled(offerwall::try_again(preset, request), "unavailable") }
            }
        }
    }

    /// The answer while nobody knows which settings are in force: what the network repeats is settled once they are.
    fn unknown_settings(&self, request: &Request) -> Handled {
        const OUTCOME: &str = "unavailable";
        match offerwall::preset_at(&self.in_force.variables().networks, &request.path) {
            Some(preset) => Handled {
                network: Some(preset.network.clone()),
                ..Handled::new(offerwall::try_again(preset, request), OUTCOME)
            },
            None => Handled::new(Answer::new(503, "try again".to_owned()), OUTCOME),
        }
    }

    /// Plans and posts until a posting is not refused, then opens the case that its outcome calls for.
    async fn settle(&self, preset: &Preset, claim: &Claim, deadline: Instant) -> Result<Settled, StoreError> {
        loop {
            let conversation = match offerwall::needs_conversation(claim) {
                true => self.store.conversation(&claim.trans_id, deadline).await?,
                false => Vec::new(),
            };
            let balance = match offerwall::needs_balance(preset.spent, claim.status, &conversation) {
                Some((user, currency)) => {
                    let account = self.store.account(user, currency, deadline).await?;
                    Some(account.unwrap_or_default().available)
                }
                None => None,
            };
            for (mut posting, meaning) in offerwall::plan(preset, claim, &conversation, balance, Timestamp::now()) {
                let outcome = match ledger::judge_known(&conversation, &posting) {
                    Some(outcome) => outcome,
                    None => self.store.post(&posting, deadline).await?,
                };
                let posted = matches!(outcome, Outcome::Posted);
                let Some((happened, case)) = offerwall::conclude(&posting, meaning, outcome) else {
                    continue;
                };
                let entry = &posting.entry;
                let flow = happened.flow().filter(|_| posted);
                let moved = flow.and_then(|flow| Moved::of(flow, entry.amount, &entry.currency));
                let cases = if posted { std::mem::take(&mut posting.cases) } else { Vec::new() };
                let mut settled = Settled { happened, moved, cases };
                if let Some(case) = case {
                    match (happened, self.store.open(&case, deadline).await?) {
                        // The case shows that this late credit was answered before.
                        (Happened::LateCredit, Opened::Known) => settled.happened = Happened::Duplicate,
                        (_, Opened::Known) => {}
                        (_, Opened::New) => settled.cases.push(case),
                    }
                }
                return Ok(settled);
            }
        }
    }
}

/// What a claim came to.
struct Settled {
    happened: Happened,
    moved: Option<Moved>,
    cases: Vec<Case>,
}
