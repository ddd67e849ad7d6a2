//! Random operations of many players, with faults, on two processes that remember balances of their own, compared with the
//! model after every call; and many writers on one player.
//!
//! `POSTBACK_SIMULATION_SEED=<n>` runs one seed, `POSTBACK_SIMULATION_STEPS=<n>` sets how many calls there are.

use std::collections::BTreeMap;

use fastrand::Rng;
use futures_util::future::join_all;
use postback::config::environment;
use postback::handler::App;
use postback::money::Amount;

use super::model::{Call, Kind, Model, STRICT};
use super::{TRY_AGAIN, again, bet, declined};
use crate::faults::{Fault, Request};
use crate::world::{World, call_on, check_document_with, check_wallet};

const PLAYERS: usize = 64;

/// What a player begins with, in cents: too little for many bets.
const PURSE: i64 = 2_000;

fn variable(name: &str) -> Option<u64> {
    environment(name).map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a whole number")))
}

/// Calls as a careless aggregator would make them.
pub struct Traffic {
    rng: Rng,
    players: usize,
    calls: Vec<Call>,
}

impl Traffic {
    /// Calls of so many players, and of one whom nobody knows.
    pub fn new(seed: u64, players: usize) -> Traffic {
        Traffic { rng: Rng::with_seed(seed), players, calls: Vec::new() }
    }

    /// The next call: mostly a new one, else the same again, or a known key with something else.
    pub fn call(&mut self) -> Call {
        let known = (!self.calls.is_empty()).then(|| self.calls[self.rng.usize(..self.calls.len())].clone());
        let call = match (self.rng.u8(..20), known) {
            (0..=2, Some(known)) => known,
            (3..=4, Some(Call { key, .. })) => {
                let call = self.fresh();
                Call { key, ..call }
            }
            (_, _) => self.fresh(),
        };
        // One that names itself asks for nothing.
        if call.original.as_ref() == Some(&call.key) {
            return self.call();
        }
        self.calls.push(call.clone());
        call
    }

    fn fresh(&mut self) -> Call {
        let number = self.calls.len();
        // A rollback names one of the last operations, or one that may still come.
        let near = number.saturating_sub(self.rng.usize(..200)) + self.rng.usize(..4);
        let kind = match self.rng.u8(..16) {
            0..=5 => Kind::Bet,
            6..=8 => Kind::Win,
            9..=12 => Kind::BetRollback,
            13..=14 => Kind::WinRollback,
            _ => Kind::RoundFinish,
        };
        // Keys go by kind more often than not, so that what is named so mostly is of that kind.
        let key = |number: usize| format!("k-{number}");
        let original = self.original(kind, near).unwrap_or_else(|| key(near));
        let rolls_back = matches!(kind, Kind::BetRollback | Kind::WinRollback);
        let player = self.rng.usize(..=self.players);
        let player = match self.calls.iter().find(|call| call.key == original) {
            // Mostly of the player whose operation it was.
            Some(call) if rolls_back && self.rng.u8(..8) > 0 => call.player.clone(),
            _ if kind == Kind::RoundFinish && self.rng.bool() => None,
            _ => Some(format!("p{player}")),
        };
        let player = if kind == Kind::RoundFinish { player } else { player.or_else(|| Some("p0".to_owned())) };
        let has_amount = !rolls_back && kind != Kind::RoundFinish || rolls_back && self.rng.u8(..8) == 0;
        let has_round = !rolls_back || self.rng.bool();
        Call {
            key: key(number),
            kind,
            player,
            amount: has_amount.then(|| self.rng.i64(0..900)),
            round: has_round.then(|| self.rng.u32(..40)),
            original: rolls_back.then_some(original),
        }
    }

    /// The key of an operation of the kind that this one takes back, among those around this number.
    fn original(&mut self, kind: Kind, near: usize) -> Option<String> {
        let wanted = match kind {
            Kind::BetRollback => Kind::Bet,
            Kind::WinRollback => Kind::Win,
            Kind::Bet | Kind::Win | Kind::RoundFinish => return None,
        };
        let calls = self.calls.iter().skip(near.saturating_sub(12)).filter(|call| call.kind == wanted);
        let found = calls.map(|call| call.key.clone()).next();
        found.filter(|_| self.rng.u8(..6) > 0)
    }
}

/// One call in random company: to one of the processes, or to both at once and twice to one, until it is answered.
async fn settle(processes: [&App; 2], rng: &mut Rng, call: &Call) -> Vec<String> {
    let body = call.body(rng.bool());
    for _ in 0..100 {
        let process = rng.usize(..2);
        let copies = if rng.u8(..6) == 0 { 3 } else { 1 };
        let copies = (0..copies).map(|copy| call_on(processes[(process + copy) % 2], call.path(), &body));
        let mut answers = join_all(copies).await;
        answers.retain(|answer| answer != TRY_AGAIN);
        if !answers.is_empty() {
            return answers;
        }
    }
    panic!("{call:?} is never answered");
}

/// What a request may meet: replies lost on either side of the commit, connections cut, contention.
fn weather(mut rng: Rng) -> impl FnMut(&Request) -> Fault + Send {
    move |request| {
        if rng.u8(..32) > 0 {
            return Fault::None;
        }
        let contention = Fault::Cancel(vec!["TransactionConflict", "None", "None"]);
        let faults = [
            Fault::LostBeforeCommit,
            Fault::LostAfterCommit,
            Fault::Reset,
            Fault::ResetAfterCommit,
            Fault::CutReply,
            Fault::CloseIdle,
            Fault::Status(500),
            Fault::StatusAfterCommit(503),
            Fault::Error("AccessDeniedException"),
            Fault::GarbageAfterCommit,
            if request.operation == "TransactWriteItems" { contention } else { Fault::Error("ThrottlingException") },
        ];
        rng.choice(faults).unwrap()
    }
}

/// Cents as the tables show them.
fn coins(cents: i64) -> String {
    let sign = if cents < 0 { "-" } else { "" };
    Amount::stored(&format!("{sign}{}.{:02}", cents.abs() / 100, cents.abs() % 100)).unwrap().to_string()
}

/// Every balance is the model's, and every key moved what the model says, of whom it says, once.
pub async fn agrees(world: &World, model: &Model, place: &str) {
    let expected: BTreeMap<_, _> =
        model.balances().iter().map(|(player, cents)| (player.clone(), coins(*cents))).collect();
    assert_eq!(world.balances().await, expected, "{place}");
    let entries = world.entries().await;
    let moved: BTreeMap<_, _> = entries
        .iter()
        .filter(|row| row["status"] == "operation")
        .map(|row| (row["trans_id"].clone(), (row["user_id"].clone(), row["amount"].clone())))
        .collect();
    let expected: BTreeMap<_, _> = model
        .movements()
        .map(|(key, player, cents)| (format!("19flip/{key}"), (player.to_owned(), coins(cents))))
        .collect();
    assert_eq!(moved, expected, "{place}");
    assert_eq!(world.case_ids().await, model.cases.iter().cloned().collect::<Vec<_>>(), "{place}");
}

async fn simulate(seed: u64, steps: u64, strict: bool) {
    let variables = [("NETWORKS", "standard,19flip"), ("TIME_BUDGET_MS", "3000")];
    let document = format!("[networks.19flip]\n{}", if strict { STRICT } else { "" });
    check_document_with(&document, &variables, async |world| {
        let mut model = Model::new(strict);
        for player in 0..PLAYERS {
            let player = format!("p{player}");
            world.fund(&player, &coins(PURSE)).await;
            model.fund(&player, PURSE);
        }
        let other = world.redeployed(&[]).await;
        let mut rng = Rng::with_seed(seed);
        let mut traffic = Traffic::new(rng.u64(..), PLAYERS);
        world.proxy.plan(weather(rng.fork()));
        for step in 0..steps {
            let call = traffic.call();
            let answers = settle([&world.app, &other], &mut rng, &call).await;
            let (expected, known) = model.tell(&call);
            for answer in &answers {
                let place = format!("seed {seed}, step {step}: {call:?}");
                // A copy, or an attempt before, may have settled what was new.
                assert!(
                    *answer == again(&expected) || !known && *answer == expected,
                    "{place} heard {answer}, not {expected}"
                );
            }
            if step % 500 == 499 {
                agrees(world, &model, &format!("seed {seed}, step {step}")).await;
            }
        }
        world.proxy.plan(|_| Fault::None);
        world.proxy.settled().await;
        agrees(world, &model, &format!("seed {seed}, at the end")).await;
        // Whatever was settled is so for ever, whoever asks.
        let later = world.redeployed(&[]).await;
        let mut known: Vec<_> = model.known().collect();
        rng.shuffle(&mut known);
        for (call, answer) in
            known.into_iter().filter(|(call, _)| call.amount.is_some() || call.original.is_some()).take(150)
        {
            assert_eq!(call_on(&later, call.path(), &call.body(true)).await, again(answer), "seed {seed}: {call:?}");
        }
        agrees(world, &model, &format!("seed {seed}, after repeats")).await;
    })
    .await;
}

#[tokio::test]
async fn thousands_of_random_operations_of_64_players_with_faults_agree_with_the_model_to_the_byte() {
    let steps = variable("POSTBACK_SIMULATION_STEPS").unwrap_or(2_000);
    simulate(variable("POSTBACK_SIMULATION_SEED").unwrap_or(0), steps, false).await;
}

#[tokio::test]
async fn a_thousand_more_agree_with_it_where_the_settings_refuse_whatever_is_doubtful() {
    let steps = variable("POSTBACK_SIMULATION_STEPS").unwrap_or(1_000);
    simulate(variable("POSTBACK_SIMULATION_SEED").unwrap_or(1), steps, true).await;
}

/// Calls of many writers at once, each again until it is answered.
async fn all_settle(processes: [&App; 2], calls: Vec<(&'static str, serde_json::Value)>) -> Vec<String> {
    let calls = calls.iter().enumerate().map(|(number, (path, call))| async move {
        for _ in 0..50 {
            let answer = call_on(processes[number % 2], path, call).await;
            if answer != TRY_AGAIN {
                // What was settled while its caller gave up is told as a repeat.
                return answer.trim_end_matches(" (replayed)").to_owned();
            }
        }
        panic!("{path} {call} is never answered");
    });
    join_all(calls).await
}

#[tokio::test]
async fn fifty_writers_on_one_player_all_settle_and_their_answers_are_one_chain_of_balances() {
    check_wallet("", async |world| {
        world.fund("7", "100").await;
        let other = world.redeployed(&[]).await;
        let calls = (0..50).map(|number| match number % 2 {
            0 => ("/bet/debit", bet(&format!("b-{number}"), "7", "3")),
            _ => ("/win/credit", bet(&format!("w-{number}"), "7", "2.50")),
        });
        let answers = all_settle([&world.app, &other], calls.collect()).await;
        assert_eq!(world.balance("7").await, "87.5");
        // Each begins where one other ended.
        let ends = |answer: &String| {
            let body: serde_json::Value =
                serde_json::from_str(&answer["200 ".len()..answer.find('}').unwrap() + 1]).unwrap();
            (body["balance_before"].to_string(), body["balance_after"].to_string())
        };
        let mut degree: BTreeMap<String, i32> = BTreeMap::new();
        for (before, after) in answers.iter().map(ends) {
            *degree.entry(before).or_default() += 1;
            *degree.entry(after).or_default() -= 1;
        }
        degree.retain(|_, degree| *degree != 0);
        assert_eq!(degree, [("100.0".to_owned(), 1), ("87.5".to_owned(), -1)].into(), "{answers:?}");
    })
    .await;
}

#[tokio::test]
async fn fifty_bets_at_once_never_take_more_than_there_is() {
    check_wallet("", async |world| {
        world.fund("7", "100").await;
        let other = world.redeployed(&[]).await;
        let calls = (0..50).map(|number| ("/bet/debit", bet(&format!("b-{number}"), "7", "9")));
        let answers = all_settle([&world.app, &other], calls.collect()).await;
        let taken = answers.iter().filter(|answer| answer.starts_with("200 ")).count();
        assert_eq!((taken, world.balance("7").await), (11, "1".into()), "{answers:?}");
        // Whoever was declined was so at a balance that is too small.
        for answer in answers.iter().filter(|answer| !answer.starts_with("200 ")) {
            assert_eq!(*answer, declined("1.00"));
        }
    })
    .await;
}
