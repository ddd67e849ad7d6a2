//! What should be true, in a few lines: the oracle that the simulation compares the real thing with.
//!
//! Knows conversations, users and amounts in whole coins, and nothing of how anything is stored or answered.

use std::collections::BTreeMap;

/// What one conversation has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Conversation {
    Credited { user: usize, amount: u64 },
    Reversed,
}

/// The whole world as it should be.
#[derive(Default)]
pub struct Model {
    conversations: BTreeMap<usize, Conversation>,
    balances: BTreeMap<usize, i64>,
}

/// One thing that a network says happened.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    pub conversation: usize,
    pub reversal: bool,
    pub user: usize,
    pub amount: u64,
}

impl Model {
    /// Takes in an event, and tells whether it was new.
    pub fn tell(&mut self, event: Event) -> bool {
        let Event { conversation, reversal, user, amount } = event;
        match (self.conversations.get(&conversation).copied(), reversal) {
            (None, false) => {
                self.conversations.insert(conversation, Conversation::Credited { user, amount });
                *self.balances.entry(user).or_default() += i64::try_from(amount).unwrap();
                true
            }
            (None, true) => {
                self.conversations.insert(conversation, Conversation::Reversed);
                true
            }
            (Some(Conversation::Credited { user, amount }), true) => {
                self.conversations.insert(conversation, Conversation::Reversed);
                *self.balances.entry(user).or_default() -= i64::try_from(amount).unwrap();
                true
            }
            (Some(Conversation::Credited { .. }), false) | (Some(Conversation::Reversed), _) => false,
        }
    }

    /// The balance that a user should have.
    pub fn balance(&self, user: usize) -> i64 {
        self.balances.get(&user).copied().unwrap_or_default()
    }
}
