//! What a person can do about a case: the posting that does it, or why it cannot be done.
//!
//! Pure. Money moves by an entry of its own, in the transaction that closes the case, so that nobody can resolve one twice.
//! Never decides which resolution is right.

use jiff::Timestamp;

use crate::id::UserId;
use crate::ledger::{
    self, About, Case, CaseKind, Closing, Decision, Entry, Guard, Hold, Posting, Resolution, Status, held_now,
};
use crate::money::Amount;
use crate::preset::UnknownUsers;

/// What a person wants to do about a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Make the held coins available to their user.
    Release,
    /// Give coins in suspense to the user whose they are.
    Assign(UserId),
    /// Correct the balance of the case's user by a signed amount.
    Adjust(Amount),
    /// Close it with a reason: nothing is to be moved.
    Note,
}

/// What resolves a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// One transaction that moves coins and closes the case.
    Post(Box<Posting>),
    /// The case is closed, and nothing moves.
    Close(Closing),
}

/// Why an action cannot be done, and what can.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CannotResolve {
    #[error("its coins are not held, or not held any more; close it with --note")]
    NothingHeld,
    #[error("its coins are in suspense, which belongs to nobody: give them to a user with --assign")]
    Suspense,
    #[error(
        "its coins wait for a user of their own: only those in suspense are assigned; make them available with --release"
    )]
    NotSuspense,
    #[error(
        "its coins are still held, and nobody would find them again: make them available, or take them back with \
         `operator reverse` and close it with --note"
    )]
    StillHeld,
    #[error("an adjustment of nothing changes nothing; close it with --note")]
    Nothing,
    #[error("it is about no user; close it with --note")]
    NoUser,
}

/// What an action does about a case, given the entries of its conversation, and whether its network's users must be known.
///
/// # Errors
///
/// [`CannotResolve`] says what can be done instead.
pub fn resolve(
    case: &Case,
    conversation: &[Entry],
    users: UnknownUsers,
    action: &Action,
    decision: &Decision,
    now: Timestamp,
) -> Result<Step, CannotResolve> {
    let closing = |resolution| Closing { case_id: case.id(), resolution, decision: decision.clone(), closed_at: now };
    let waits = matches!(case.kind, CaseKind::OverCap | CaseKind::UnknownUser);
    let held = held_now(conversation).filter(|_| waits);
    let post = |posting: Posting, resolution| {
        let mut posting = Posting { closes: Some(closing(resolution)), ..posting };
        for entry in std::iter::once(&mut posting.entry).chain(&mut posting.companions) {
            entry.decision = Some(decision.clone());
        }
        Ok(Step::Post(Box::new(posting)))
    };
    match (action, held) {
        (Action::Release | Action::Assign(_), None) => Err(CannotResolve::NothingHeld),
        (Action::Release, Some(_)) if case.kind == CaseKind::UnknownUser => Err(CannotResolve::Suspense),
        (Action::Release, Some(hold)) => post(ledger::release(&hold, now), Resolution::Released),
        (Action::Assign(_), Some(_)) if case.kind != CaseKind::UnknownUser => Err(CannotResolve::NotSuspense),
        (Action::Assign(user), Some(hold)) => post(assign(&hold, user, now), Resolution::Assigned(user.clone())),
        (Action::Note, Some(_)) => Err(CannotResolve::StillHeld),
        (Action::Note, None) => Ok(Step::Close(closing(Resolution::Noted))),
        (Action::Adjust(_), Some(_)) => Err(CannotResolve::StillHeld),
        (Action::Adjust(amount), None) => {
            let About::Entry { trans_id, status, user, currency, .. } = &case.about else {
                return Err(CannotResolve::NoUser);
            };
            if amount.is_zero() {
                return Err(CannotResolve::Nothing);
            }
            if user.is_suspense() {
                return Err(CannotResolve::NoUser);
            }
            let key = (trans_id.clone(), Status::Adjust(correction(case.kind)));
            let entry = Entry::plain(key, (user.clone(), currency.clone()), *amount, now);
            let guards = match users {
                // A wallet's players are opened by people, and a correction must not make one.
                UnknownUsers::Create if !matches!(status, Status::Operation | Status::Rollback) => Vec::new(),
                UnknownUsers::Create | UnknownUsers::Require => vec![Guard::Known],
            };
            post(Posting { guards, ..Posting::of(entry) }, Resolution::Adjusted(*amount))
        }
    }
}

/// The kind that a correction is named after. A reversal that came first has two cases once its credit follows; it is
/// corrected once.
fn correction(kind: CaseKind) -> CaseKind {
    match kind {
        CaseKind::ReversalWithoutCredit => CaseKind::LateCredit,
        CaseKind::Conflict(_)
        | CaseKind::LateCredit
        | CaseKind::Overdrawn
        | CaseKind::Shortfall
        | CaseKind::OverCap
        | CaseKind::UnknownUser
        | CaseKind::SettingsBroken
        | CaseKind::WinWithoutBet
        | CaseKind::WinAfterEnd
        | CaseKind::ClosedAccount => kind,
    }
}

/// Coins in suspense to a user: out of the hold of the one account, available in the other.
fn assign(hold: &Hold, user: &UserId, now: Timestamp) -> Posting {
    let released = ledger::release(hold, now).entry;
    let clear = Entry { status: Status::Clear, amount: hold.amount.negated(), ..released.clone() };
    let assign = Entry { status: Status::Assign, user: user.clone(), amount: hold.amount, held: None, ..released };
    // A name that was mistyped must not become an account.
    Posting { companions: vec![clear], guards: vec![Guard::Known], ..Posting::of(assign) }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::id::{Currency, TransId};
    use crate::ledger::{Field, Held};

    fn amount(text: &str) -> Amount {
        Amount::stored(text).unwrap()
    }

    /// A credit of 10 coins on the account of `user`, held until a person decides.
    fn held(user: UserId) -> Entry {
        let key = (TransId::new("net/1").unwrap(), Status::Credit);
        let account = (user, Currency::new("coins").unwrap());
        Entry {
            held: Some(Held { change: amount("10"), release_at: None }),
            ..Entry::plain(key, account, amount("10"), Timestamp::UNIX_EPOCH)
        }
    }

    fn user() -> UserId {
        UserId::new("u").unwrap()
    }

    fn decision() -> Decision {
        Decision { by: "ana".into(), reason: "asked the network".into() }
    }

    fn attempt(kind: CaseKind, entry: &Entry, more: &[Entry], action: &Action) -> Result<Step, CannotResolve> {
        let conversation = [std::slice::from_ref(entry), more].concat();
        let case = Case::about(kind, entry, String::new());
        resolve(&case, &conversation, UnknownUsers::Create, action, &decision(), Timestamp::MAX)
    }

    fn posting(step: Result<Step, CannotResolve>) -> Posting {
        match step {
            Ok(Step::Post(posting)) => *posting,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn held_coins_are_released_in_the_transaction_that_closes_their_case() {
        let posting = posting(attempt(CaseKind::OverCap, &held(user()), &[], &Action::Release));
        assert_eq!((posting.entry.status, posting.entry.amount), (Status::Release, Amount::ZERO));
        assert_eq!(posting.entry.available(), Some(amount("10")));
        assert_eq!(posting.entry.held_change(), amount("-10"));
        assert_eq!(posting.entry.decision, Some(decision()));
        let closes = posting.closes.unwrap();
        assert_eq!((closes.case_id.as_str(), closes.resolution), ("over_cap/net/1/credit", Resolution::Released));
    }

    #[test]
    fn coins_in_suspense_are_assigned_by_two_entries_that_sum_to_nothing() {
        let suspense = UserId::stored("suspense/net").unwrap();
        let posting = posting(attempt(CaseKind::UnknownUser, &held(suspense.clone()), &[], &Action::Assign(user())));
        let [clear] = &posting.companions[..] else { panic!() };
        assert_eq!((&posting.entry.user, posting.entry.available()), (&user(), Some(amount("10"))));
        assert_eq!((&clear.user, clear.held_change()), (&suspense, amount("-10")));
        assert_eq!(posting.entry.amount.checked_add(clear.amount), Some(Amount::ZERO));
        assert_eq!((&posting.entry.decision, &clear.decision), (&Some(decision()), &Some(decision())));
    }

    #[test]
    fn what_waits_is_neither_noted_away_nor_adjusted_nor_given_to_the_wrong_owner() {
        let suspense = held(UserId::stored("suspense/net").unwrap());
        let tried = |kind, entry: &Entry, action| attempt(kind, entry, &[], &action).unwrap_err();
        assert_eq!(tried(CaseKind::OverCap, &held(user()), Action::Note), CannotResolve::StillHeld);
        assert_eq!(tried(CaseKind::OverCap, &held(user()), Action::Adjust(amount("1"))), CannotResolve::StillHeld);
        assert_eq!(tried(CaseKind::OverCap, &held(user()), Action::Assign(user())), CannotResolve::NotSuspense);
        assert_eq!(tried(CaseKind::UnknownUser, &suspense, Action::Note), CannotResolve::StillHeld);
        assert_eq!(tried(CaseKind::UnknownUser, &suspense, Action::Release), CannotResolve::Suspense);
    }

    #[test]
    fn what_was_taken_back_meanwhile_can_only_be_noted() {
        let taken = Entry { status: Status::Reversal, amount: amount("-10"), ..held(user()) };
        let taken = [Entry { held: Some(Held { change: amount("-10"), release_at: None }), ..taken }];
        let tried = |action| attempt(CaseKind::OverCap, &held(user()), &taken, &action);
        assert_eq!(tried(Action::Release), Err(CannotResolve::NothingHeld));
        assert!(matches!(tried(Action::Note), Ok(Step::Close(Closing { resolution: Resolution::Noted, .. }))));
    }

    #[test]
    fn a_balance_is_corrected_by_an_entry_that_is_named_after_the_kind_of_its_case() {
        let plain = Entry { held: None, ..held(user()) };
        for kind in [CaseKind::Overdrawn, CaseKind::LateCredit, CaseKind::Conflict(Field::Amount)] {
            let posting = posting(attempt(kind, &plain, &[], &Action::Adjust(amount("-2.5"))));
            assert_eq!((posting.entry.status, posting.entry.amount), (Status::Adjust(kind), amount("-2.5")));
            assert_eq!(posting.closes.unwrap().resolution, Resolution::Adjusted(amount("-2.5")));
        }
        assert_eq!(
            attempt(CaseKind::Overdrawn, &plain, &[], &Action::Adjust(Amount::ZERO)),
            Err(CannotResolve::Nothing)
        );
        // A credit that is held for a while is no case: whatever else its conversation is about can be corrected.
        attempt(CaseKind::Conflict(Field::Amount), &held(user()), &[], &Action::Adjust(amount("1"))).unwrap();
    }

    #[test]
    fn a_correction_of_a_wallets_operation_makes_no_account_whatever_the_settings_say_of_unknown_users() {
        let operation = Entry { status: Status::Operation, held: None, ..held(user()) };
        for kind in [CaseKind::Overdrawn, CaseKind::WinAfterEnd, CaseKind::Conflict(Field::Kind)] {
            let posting = posting(attempt(kind, &operation, &[], &Action::Adjust(amount("1"))));
            assert_eq!((posting.entry.status, posting.guards), (Status::Adjust(kind), vec![Guard::Known]));
            let mark = Entry { status: Status::Rollback, ..operation.clone() };
            let posting = self::posting(attempt(kind, &mark, &[], &Action::Adjust(amount("1"))));
            assert_eq!(posting.guards, [Guard::Known]);
        }
        let credit = Entry { held: None, ..held(user()) };
        assert!(posting(attempt(CaseKind::Overdrawn, &credit, &[], &Action::Adjust(amount("1")))).guards.is_empty());
    }

    #[test]
    fn a_case_about_the_settings_has_no_user_to_correct() {
        let about = About::Settings(7);
        let case =
            Case { kind: CaseKind::SettingsBroken, about, detail: String::new(), opened_at: Timestamp::UNIX_EPOCH };
        let tried = |action| resolve(&case, &[], UnknownUsers::Create, &action, &decision(), Timestamp::MAX);
        assert_eq!(tried(Action::Adjust(amount("1"))), Err(CannotResolve::NoUser));
        assert!(matches!(tried(Action::Note), Ok(Step::Close(_))));
    }
}
