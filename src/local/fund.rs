//! `cargo local fund`: a player with an account and money in it, so that a wallet's calls have somebody to be about.
//!
//! Posts what a person behind a deployment would: an account that is opened, and a deposit, each an entry.

use jiff::Timestamp;
use tokio::time::Instant;

use super::{CannotRun, Connected, Data, PATIENCE, function, say};
use crate::cashier::{self, Action};
use crate::id::UserId;
use crate::ledger::{Decision, Outcome};
use crate::operator::cashier::{amount, reference};

/// Opens the account of `player`, where it is not open, and pays `money` into it.
///
/// # Errors
///
/// [`CannotRun`] says what is in the way.
pub async fn fund(player: &str, money: &str, data: &Data) -> Result<(), CannotRun> {
    let cannot = |problem: String| CannotRun::Argument { argument: player.to_owned(), problem };
    let user = UserId::new(player).map_err(|problem| cannot(problem.to_string()))?;
    let deposit = Action::Deposit(amount(money).map_err(|problem| CannotRun::Money(problem.to_string()))?);
    let connected = Connected::to(data).await?;
    let (config, app) = function(&connected.endpoint, None).await?;
    let wallet = config.networks.iter().find_map(|preset| preset.wallet()?.currency.clone());
    let currency = wallet.unwrap_or(config.coins.currency);
    let now = Timestamp::now();
    for action in [Action::Open, deposit] {
        let reference = reference(action, now, fastrand::u64(..));
        let trans_id = cashier::trans_id(&reference).map_err(|problem| cannot(problem.to_string()))?;
        let decision = Decision { by: "cargo local fund".to_owned(), reason: "to try the wallet".to_owned() };
        let posting = cashier::posting(action, trans_id, (user.clone(), currency.clone()), decision, now);
        match app.store().post(&posting, Instant::now() + PATIENCE).await? {
            Outcome::Posted => {}
            // It is open already.
            Outcome::Refused(_) if action == Action::Open => {}
            outcome @ (Outcome::Refused(_) | Outcome::Replayed(_) | Outcome::Conflict(..)) => {
                return Err(cannot(format!("the ledger says {outcome:?}")));
            }
        }
    }
    let account = app.store().account(&user, &currency, Instant::now() + PATIENCE).await?.unwrap_or_default();
    say(format_args!("player {user}  balance {} {currency}", account.available));
    Ok(())
}
