//! The commands of the cashier: a player's account is opened and closed, and money of the player's own comes in and goes out.
//!
//! Each is one posting with who decided it and why. A payment is known by its reference: the same one again moves nothing.

use jiff::Timestamp;
use serde_json::json;

use super::cases::{entry_json, moved, second, signed};
use super::wallet::wallets;
use super::{CannotRun, Ledger, deadline};
use crate::cashier::{self, Action};
use crate::id::{Currency, UserId};
use crate::ledger::{Account, Decision, Entry, Outcome, Refusal, Status};
use crate::money::{Amount, Received, Scale};
use crate::terminal::{Lines, Reply};

/// Whose account it is about.
#[derive(Debug, Clone, Copy)]
pub struct Whose<'a> {
    /// The player, as the wallet's caller names them.
    pub player: &'a str,
    /// The currency; else that of the only wallet, else the deployment's.
    pub currency: Option<&'a str>,
}

/// A reference for what has none of its own: an opening or a closing. `random` keeps two of the same moment apart.
pub fn reference(action: Action, now: Timestamp, random: u64) -> String {
    format!("{}-{}-{random:016x}", action.status().as_str(), now.as_millisecond())
}

/// A reference as the payment has it: one that was copied from what we print, or with a blank, is no second payment.
fn received(reference: &str) -> &str {
    let reference = reference.trim();
    let ours = reference.strip_prefix(cashier::NETWORK).and_then(|rest| rest.strip_prefix('/'));
    ours.unwrap_or(reference)
}

/// Reads an amount of money, above zero: exactly, or not at all.
///
/// # Errors
///
/// [`CannotRun::Argument`].
pub fn amount(text: &str) -> Result<Amount, CannotRun> {
    let cannot = |problem: &dyn std::fmt::Display| CannotRun::argument("the amount", text, problem);
    let received = Received::read(text).map_err(|problem| cannot(&problem))?;
    let scale = Scale::new(Scale::MAX).ok_or_else(|| cannot(&"cannot be read"))?;
    if received.decimals() > usize::from(Scale::MAX) {
        return Err(cannot(&format_args!("more than {} decimals", Scale::MAX)));
    }
    if received.is_negative() || received.is_zero() {
        return Err(cannot(&"not above zero: what goes out is a withdrawal"));
    }
    received.cut(scale).map_err(|problem| cannot(&problem))
}

/// Does what a person decided about a player's account, once for each reference.
///
/// # Errors
///
/// [`CannotRun`] says why nothing was done. Where DynamoDB did not answer, the same command again settles it.
pub async fn act(
    ledger: &Ledger,
    action: Action,
    whose: Whose<'_>,
    reference: &str,
    decision: Decision,
    now: Timestamp,
) -> Result<Reply, CannotRun> {
    let cannot = |problem: String| CannotRun::argument("the player", whose.player, problem);
    let user = UserId::new(whose.player).map_err(|problem| cannot(problem.to_string()))?;
    let currency = currency(ledger, whose.currency).await?;
    if let Action::Deposit(amount) | Action::Withdraw(amount) = action {
        let scale = ledger.config.coins.scale;
        if Amount::stored(&amount.fixed(scale)) != Some(amount) {
            let problem = format!("a coin has {} decimals", scale.decimals());
            return Err(CannotRun::argument("the amount", &amount.to_string(), problem));
        }
    }
    let trans_id = cashier::trans_id(received(reference));
    let trans_id = trans_id.map_err(|problem| CannotRun::argument("--reference", reference, problem))?;
    let posting = cashier::posting(action, trans_id, (user, currency), decision, now);
    match ledger.store.post(&posting, deadline()).await? {
        Outcome::Posted => {
            let lines = match action {
                Action::Open | Action::Close => stands(&posting.entry),
                Action::Deposit(_) | Action::Withdraw(_) => moved(&ledger.store, &posting).await,
            };
            Ok(Reply::fine(lines, json!({"entry": entry_json(&posting.entry), "known": false})))
        }
        Outcome::Replayed(stored) => {
            let mut lines = Lines::default();
            lines.line("known", recorded(&stored));
            lines.note("Nothing was moved now.");
            Ok(Reply::fine(lines, json!({"entry": entry_json(&stored), "known": true})))
        }
        Outcome::Conflict(stored, field) => {
            let problem = format!("is recorded already with another {field}: {}; nothing was moved", recorded(&stored));
            Err(CannotRun::argument("--reference", reference, problem))
        }
        Outcome::Refused(Refusal::Account(account)) => Err(cannot(refused(action, account, &posting.entry.currency))),
        Outcome::Refused(Refusal::Companion | Refusal::Hold | Refusal::Round(_) | Refusal::Case) => {
            Err(cannot("its account changes all the time; the same command again settles it".to_owned()))
        }
    }
}

/// What became of an account that was opened or closed.
fn stands(entry: &Entry) -> Lines {
    let mut lines = Lines::default();
    let label = if entry.status == Status::Open { "opened" } else { "closed" };
    lines.line(label, format_args!("player {}, {}", entry.user, entry.currency));
    if let Some(decision) = &entry.decision {
        lines.line("by", format_args!("{}: {}", decision.by, decision.reason));
    }
    lines
}

/// The currency that is meant.
async fn currency(ledger: &Ledger, named: Option<&str>) -> Result<Currency, CannotRun> {
    if let Some(text) = named {
        return Currency::new(text).map_err(|problem| CannotRun::argument("--currency", text, problem));
    }
    let wallets = wallets(ledger).await?;
    let own = match &wallets[..] {
        [only] => only.wallet().and_then(|wallet| wallet.currency.clone()),
        _ => None,
    };
    Ok(own.unwrap_or_else(|| ledger.config.coins.currency.clone()))
}

/// What stands under a reference.
fn recorded(stored: &Entry) -> String {
    let decision = stored.decision.as_ref().map(|decision| format!(", {}: {}", decision.by, decision.reason));
    format!(
        "{} of {} {} for player {}, {}{}",
        stored.status.as_str(),
        signed(stored.amount),
        stored.currency,
        stored.user,
        second(stored.received_at),
        decision.unwrap_or_default()
    )
}

/// Why an action cannot be done, given the account as it is, and what can.
fn refused(action: Action, account: Option<Account>, currency: &Currency) -> String {
    let Some(Account { available, held, closed }) = account else {
        return format!("there is no account in {currency}; `operator player open` makes it");
    };
    match (action, closed) {
        (Action::Open, _) => format!("the account in {currency} is open already, with {available} available"),
        (Action::Close, true) => format!("the account in {currency} is closed already"),
        (Action::Close, false) => {
            let held = if held.is_zero() { String::new() } else { format!(" and {held} held") };
            format!(
                "{available} {currency} available{held} are left in the account: it is closed once nothing is there"
            )
        }
        (Action::Deposit(_) | Action::Withdraw(_), true) => {
            format!("the account in {currency} is closed; `operator player open` opens it again")
        }
        (Action::Deposit(_), false) => format!("the account in {currency} changed meanwhile; try it again"),
        (Action::Withdraw(amount), false) => {
            format!("{available} {currency} are available, and not the {amount} that would go out")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_above_zero_and_exact() {
        assert_eq!(amount("50.25").unwrap(), Amount::stored("50.25").unwrap());
        assert_eq!(amount("0.00000001").unwrap(), Amount::stored("0.00000001").unwrap());
        for (text, problem) in [
            ("0", "not above zero"),
            ("-5", "not above zero"),
            ("0.000000001", "more than 8 decimals"),
            ("1e3", "the amount: `1e3`: "),
            ("", "the amount: ``: "),
        ] {
            let said = amount(text).unwrap_err().to_string();
            assert!(said.contains(problem), "{text}: {said}");
        }
    }

    #[test]
    fn two_openings_of_one_moment_are_two() {
        let of = |random| reference(Action::Open, Timestamp::UNIX_EPOCH, random);
        assert_eq!(of(1), "open-0-0000000000000001");
        assert_ne!(of(1), of(2));
    }

    #[test]
    fn a_reference_that_was_copied_from_what_we_print_is_the_same_payment() {
        for text in ["card-1", " card-1", "cashier/card-1", "cashier/card-1 "] {
            assert_eq!(received(text), "card-1");
        }
        assert_eq!(received("cashiers/1"), "cashiers/1");
    }

    #[test]
    fn every_refusal_says_how_the_account_stands() {
        let amount = |text| Amount::stored(text).unwrap();
        let coins = Currency::new("coins").unwrap();
        let account =
            |available, held, closed| Some(Account { available: amount(available), held: amount(held), closed });
        let five = amount("5");
        for (action, account, said) in [
            (Action::Deposit(five), None, "there is no account in coins; `operator player open` makes it"),
            (Action::Open, account("3", "0", false), "the account in coins is open already, with 3 available"),
            (Action::Close, account("0", "0", true), "the account in coins is closed already"),
            (
                Action::Close,
                account("3", "2", false),
                "3 coins available and 2 held are left in the account: it is closed once nothing is there",
            ),
            (
                Action::Withdraw(five),
                account("0", "0", true),
                "the account in coins is closed; `operator player open` opens it again",
            ),
            (
                Action::Withdraw(five),
                account("3", "0", false),
                "3 coins are available, and not the 5 that would go out",
            ),
        ] {
            assert_eq!(refused(action, account, &coins), said);
        }
    }
}
