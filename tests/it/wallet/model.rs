//! What should be true of players and keys, in a few lines: the oracle that the simulations compare the real thing with.
//!
//! Knows keys, players, rounds and amounts in whole cents, under the default settings or those that refuse whatever may be
//! refused, and nothing of how anything is stored, sent or raced.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{applied, declined};

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Bet,
    Win,
    BetRollback,
    WinRollback,
    RoundFinish,
}

/// One call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub key: String,
    pub kind: Kind,
    /// Nobody where a round is finished for all.
    pub player: Option<String>,
    /// In cents.
    pub amount: Option<i64>,
    pub round: Option<u32>,
    /// The key of what a rollback takes back.
    pub original: Option<String>,
}

/// What is known of a key.
struct Known {
    call: Call,
    answer: String,
    /// Whose balance it changed, and by how many cents.
    player: String,
    change: i64,
}

/// A player's part in a round.
#[derive(Default)]
struct Part {
    bets: i64,
    rolled_back: i64,
    finished: bool,
}

/// The whole world as it should be.
#[derive(Default)]
pub struct Model {
    /// Whether what is doubtful is refused.
    strict: bool,
    balances: BTreeMap<String, i64>,
    keys: BTreeMap<String, Known>,
    /// What the first rollback of each operation heard.
    rolled_back: BTreeMap<String, String>,
    parts: BTreeMap<(u32, String), Part>,
    /// The ids of the cases.
    pub cases: BTreeSet<String>,
}

/// Cents as an answer prints them.
fn print(cents: i64) -> String {
    format!("{}{}.{:02}", if cents < 0 { "-" } else { "" }, cents.abs() / 100, cents.abs() % 100)
}

impl Call {
    /// The path that it is sent to.
    pub fn path(&self) -> &'static str {
        match self.kind {
            Kind::Bet => "/bet/debit",
            Kind::Win => "/win/credit",
            Kind::BetRollback => "/bet/rollback",
            Kind::WinRollback => "/win/rollback",
            Kind::RoundFinish => "/round/finish",
        }
    }

    /// What is sent. `by_our_id` names what a rollback takes back by our id of it.
    pub fn body(&self, by_our_id: bool) -> Value {
        let prefix = if by_our_id { "19flip/" } else { "" };
        let fields = [
            ("idempotency_key", Some(json!(self.key))),
            ("player_id", self.player.as_ref().map(|player| json!(player))),
            ("amount", self.amount.map(|cents| json!(print(cents)))),
            ("round_id", self.round.map(|round| json!(round))),
            ("original_transaction_id", self.original.as_ref().map(|original| json!(format!("{prefix}{original}")))),
        ];
        fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }
}

/// The settings that refuse whatever may be refused.
pub const STRICT: &str =
    "unseen = \"not_found\"\nspent_win = \"refuse\"\nwin_without_bet = \"refuse\"\nwin_after_end = \"refuse\"";

impl Model {
    /// A world in which nothing happened yet, under the default settings or under [`STRICT`].
    pub fn new(strict: bool) -> Model {
        Model { strict, ..Model::default() }
    }

    /// A player with this many cents.
    pub fn fund(&mut self, player: &str, cents: i64) {
        self.balances.insert(player.to_owned(), cents);
    }

    /// What each player should have, in cents.
    pub fn balances(&self) -> &BTreeMap<String, i64> {
        &self.balances
    }

    /// How many cents each key should have moved, of whom.
    pub fn movements(&self) -> impl Iterator<Item = (&str, &str, i64)> {
        self.keys.iter().map(|(key, known)| (key.as_str(), known.player.as_str(), known.change))
    }

    /// What is known, and what every repeat of it hears.
    pub fn known(&self) -> impl Iterator<Item = (&Call, &str)> {
        self.keys.values().map(|known| (&known.call, known.answer.as_str()))
    }

    /// Takes in a call, and tells what it hears and whether its key was known.
    pub fn tell(&mut self, call: &Call) -> (String, bool) {
        if let Some(known) = self.keys.get(&call.key) {
            if let Some(field) = differs(&known.call, call) {
                self.cases.insert(format!("conflict/19flip/{}/operation/{field}", call.key));
            }
            return (known.answer.clone(), true);
        }
        let answer = match call.kind {
            Kind::Bet => self.bet(call),
            Kind::Win => self.win(call),
            Kind::BetRollback => self.roll_back(call, Kind::Bet),
            Kind::WinRollback => self.roll_back(call, Kind::Win),
            Kind::RoundFinish => self.finish(call),
        };
        (answer, false)
    }

    fn bet(&mut self, call: &Call) -> String {
        let (player, stake) = (call.player.clone().unwrap(), call.amount.unwrap());
        let Some(&balance) = self.balances.get(&player) else { return unknown_player() };
        if balance < stake {
            return self.keep(call, &player, 0, declined(&print(balance)));
        }
        self.part(call.round, &player).bets += 1;
        self.apply(call, &player, -stake)
    }

    fn win(&mut self, call: &Call) -> String {
        let (player, amount) = (call.player.clone().unwrap(), call.amount.unwrap());
        if !self.balances.contains_key(&player) {
            return unknown_player();
        }
        let part = self.parts.get(&(call.round.unwrap(), player.clone()));
        let (doubt, why) = match part {
            Some(part) if part.bets > 0 && !part.finished => return self.apply(call, &player, amount),
            Some(part) if part.finished || part.rolled_back > 0 => {
                ("win_after_end", "the round was finished or rolled back")
            }
            Some(_) | None => ("win_without_bet", "there is no bet in the round"),
        };
        if self.strict {
            return self.keep(call, &player, 0, format!(r#"409 {{"error":"{why}"}}"#));
        }
        self.cases.insert(format!("{doubt}/19flip/{}/operation", call.key));
        self.apply(call, &player, amount)
    }

    fn roll_back(&mut self, call: &Call, kind: Kind) -> String {
        let original = call.original.clone().unwrap();
        let named = call.player.clone().unwrap();
        let Some(taken) = self.keys.get(&original) else {
            if self.strict {
                return r#"404 {"error":"original transaction not found"}"#.into();
            }
            if !self.balances.contains_key(&named) {
                return unknown_player();
            }
            let answer = self.apply(call, &named, 0);
            // What should still come is refused.
            let late = Call { key: original.clone(), kind, amount: None, original: None, ..call.clone() };
            self.keep(&late, &named, 0, r#"409 {"error":"rolled back before it came"}"#.into());
            if let (Kind::Bet, Some(round)) = (kind, call.round) {
                self.part(Some(round), &named).rolled_back += 1;
            }
            self.rolled_back.insert(original, answer.clone());
            return answer;
        };
        if taken.call.kind != kind {
            return r#"400 {"error":"original_transaction_id: of another kind"}"#.into();
        }
        let (player, change) = (taken.player.clone(), -taken.change);
        if let Some(first) = self.rolled_back.get(&original) {
            return self.keep(call, &player, 0, first.clone());
        }
        let differs = |field: &str| format!("conflict/19flip/{original}/rollback/{field}");
        let balance = self.balances[&player];
        if change < 0 && balance < -change {
            if self.strict {
                return self.keep(call, &player, 0, declined(&print(balance)));
            }
            self.cases.insert(format!("overdrawn/19flip/{}/operation", call.key));
        }
        if named != player {
            self.cases.insert(differs("user"));
        }
        if call.amount.is_some_and(|amount| Some(amount) != taken.call.amount) {
            self.cases.insert(differs("amount"));
        }
        let (stood, round) = (taken.answer.starts_with("200"), taken.call.round);
        if call.round.zip(round).is_some_and(|(named, known)| named != known) {
            self.cases.insert(differs("round"));
        }
        if kind == Kind::Bet && stood {
            let part = self.part(round, &player);
            part.bets -= 1;
            part.rolled_back += 1;
        }
        let answer = self.apply(call, &player, change);
        self.rolled_back.insert(original, answer.clone());
        answer
    }

    fn finish(&mut self, call: &Call) -> String {
        let round = call.round.unwrap();
        match &call.player {
            None => {
                for (_, part) in self.parts.iter_mut().filter(|((known, _), _)| *known == round) {
                    part.finished = true;
                }
            }
            Some(player) if !self.balances.contains_key(player) => return unknown_player(),
            Some(player) => self.part(Some(round), player).finished = true,
        }
        let answer = format!(r#"200 {{"transaction_id":"19flip/{}","status":"SUCCESS"}}"#, call.key);
        self.keep(call, call.player.as_deref().unwrap_or("suspense/19flip"), 0, answer)
    }

    fn apply(&mut self, call: &Call, player: &str, change: i64) -> String {
        let balance = self.balances.get_mut(player).unwrap();
        let before = *balance;
        *balance += change;
        let answer = applied(&call.key, &print(before), &print(before + change));
        self.keep(call, player, change, answer)
    }

    fn keep(&mut self, call: &Call, player: &str, change: i64, answer: String) -> String {
        let known = Known { call: call.clone(), answer: answer.clone(), player: player.to_owned(), change };
        self.keys.insert(call.key.clone(), known);
        answer
    }

    fn part(&mut self, round: Option<u32>, player: &str) -> &mut Part {
        self.parts.entry((round.unwrap(), player.to_owned())).or_default()
    }
}

fn unknown_player() -> String {
    r#"404 {"error":"player not found"}"#.into()
}

/// The first thing in which a call differs from the one that is known under its key. What only one of them says is none.
fn differs(known: &Call, call: &Call) -> Option<&'static str> {
    fn other<T: PartialEq>(known: Option<&T>, told: Option<&T>) -> bool {
        known.zip(told).is_some_and(|(known, told)| known != told)
    }
    match () {
        () if other(known.player.as_ref(), call.player.as_ref()) => Some("user"),
        () if known.kind != call.kind => Some("kind"),
        () if other(known.amount.as_ref(), call.amount.as_ref()) => Some("amount"),
        () if other(known.original.as_ref(), call.original.as_ref()) => Some("original"),
        // A rollback is of its original's round, whatever it names.
        () if known.original.is_none() && other(known.round.as_ref(), call.round.as_ref()) => Some("round"),
        () => None,
    }
}
