//! What should be true, in a few lines: the oracle that the simulation compares the real thing with.
//!
//! Knows conversations, users and amounts in whole coins, and nothing of how anything is stored or answered.

use std::collections::BTreeMap;

/// What one conversation has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Conversation {
    Credited { user: usize, amount: u64, held: bool },
    Reversed,
}

/// The whole world as it should be.
#[derive(Default)]
pub struct Model {
    /// Whether credits are held until the next release.
    holds: bool,
    conversations: BTreeMap<usize, Conversation>,
    available: BTreeMap<usize, i64>,
    held: BTreeMap<usize, i64>,
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
    /// A world in which nothing happened yet, with credits that are held or not.
    pub fn new(holds: bool) -> Model {
        Model { holds, ..Model::default() }
    }

    /// Takes in an event, and tells whether it was new.
    pub fn tell(&mut self, event: Event) -> bool {
        let Event { conversation, reversal, user, amount } = event;
        match (self.conversations.get(&conversation).copied(), reversal) {
            (None, false) => {
                let held = self.holds;
                self.conversations.insert(conversation, Conversation::Credited { user, amount, held });
                *self.part(held, user) += i64::try_from(amount).unwrap();
                true
            }
            (None, true) => {
                self.conversations.insert(conversation, Conversation::Reversed);
                true
            }
            (Some(Conversation::Credited { user, amount, held }), true) => {
                self.conversations.insert(conversation, Conversation::Reversed);
                *self.part(held, user) -= i64::try_from(amount).unwrap();
                true
            }
            (Some(Conversation::Credited { .. }), false) | (Some(Conversation::Reversed), _) => false,
        }
    }

    /// Whatever is held becomes available.
    pub fn release(&mut self) {
        for conversation in self.conversations.values_mut() {
            if let Conversation::Credited { held, .. } = conversation {
                *held = false;
            }
        }
        for (user, amount) in std::mem::take(&mut self.held) {
            *self.available.entry(user).or_default() += amount;
        }
    }

    /// What a user should have to spend.
    pub fn balance(&self, user: usize) -> i64 {
        self.available.get(&user).copied().unwrap_or_default()
    }

    /// What should be held for a user.
    pub fn held(&self, user: usize) -> i64 {
        self.held.get(&user).copied().unwrap_or_default()
    }

    fn part(&mut self, held: bool, user: usize) -> &mut i64 {
        if held { self.held.entry(user).or_default() } else { self.available.entry(user).or_default() }
    }
}
