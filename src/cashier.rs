//! Players' accounts: opened and closed, and their own money in and out. Each is an entry with who decided it and why.
//!
//! Pure. Whoever pays money in or out names it by a reference of the payment's own, so that the same command again moves
//! nothing: there is no other way to tell a repetition from a second payment.

use jiff::Timestamp;

use crate::id::{Currency, IdError, TransId, UserId};
use crate::ledger::{Decision, Entry, Guard, Posting, Status};
use crate::money::Amount;

/// What stands where the network of other entries stands. No network may be called so.
pub const NETWORK: &str = "cashier";

/// What can be done to a player's account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// It is opened to its player, or opened again.
    Open,
    /// It is closed: no bet is taken any more. Nothing may be left in it.
    Close,
    /// This much, above zero, comes in.
    Deposit(Amount),
    /// This much, above zero, goes out; it must be there.
    Withdraw(Amount),
}

impl Action {
    /// The status of its entry.
    pub fn status(self) -> Status {
        match self {
            Action::Open => Status::Open,
            Action::Close => Status::Close,
            Action::Deposit(_) => Status::Deposit,
            Action::Withdraw(_) => Status::Withdrawal,
        }
    }
}

/// The conversation of a payment, or of an opening or closing, with this reference.
///
/// # Errors
///
/// [`IdError`] says what is wrong with the reference.
pub fn trans_id(reference: &str) -> Result<TransId, IdError> {
    TransId::received_by(NETWORK, reference)
}

/// The posting of an action on a player's account.
pub fn posting(
    action: Action,
    trans_id: TransId,
    account: (UserId, Currency),
    decision: Decision,
    now: Timestamp,
) -> Posting {
    let (amount, guards) = match action {
        Action::Open => (Amount::ZERO, vec![Guard::NotOpen]),
        Action::Close => (Amount::ZERO, vec![Guard::Open, Guard::Exactly(Amount::ZERO), Guard::NothingHeld]),
        Action::Deposit(amount) => (amount, vec![Guard::Open]),
        Action::Withdraw(amount) => (amount.negated(), vec![Guard::Open, Guard::AtLeast(amount)]),
    };
    let entry = Entry::plain((trans_id, action.status()), account, amount, now);
    Posting { guards, ..Posting::of(Entry { decision: Some(decision), ..entry }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_goes_the_way_that_its_action_says_and_only_from_what_is_there() {
        let amount = Amount::stored("5").unwrap();
        let account = || (UserId::new("7").unwrap(), Currency::new("coins").unwrap());
        let decision = || Decision { by: "ana".into(), reason: "payment 1".into() };
        let of = |action| {
            let posting = posting(action, trans_id("p-1").unwrap(), account(), decision(), Timestamp::UNIX_EPOCH);
            let Entry { trans_id, status, amount, decision, .. } = posting.entry;
            assert_eq!((trans_id.as_str(), decision.unwrap().by.as_str()), ("cashier/p-1", "ana"));
            (status, amount, posting.guards)
        };
        assert_eq!(of(Action::Deposit(amount)), (Status::Deposit, amount, vec![Guard::Open]));
        assert_eq!(
            of(Action::Withdraw(amount)),
            (Status::Withdrawal, amount.negated(), vec![Guard::Open, Guard::AtLeast(amount)])
        );
        assert_eq!(of(Action::Open), (Status::Open, Amount::ZERO, vec![Guard::NotOpen]));
        assert_eq!(of(Action::Close).1, Amount::ZERO);
        assert_eq!(trans_id(""), Err(IdError::Empty));
    }
}
