//! Random operations of many players, with faults, on two processes that remember balances of their own, compared with the
//! model after every call; and many writers on one player.
//!
//! `POSTBACK_SIMULATION_SEED=<n>` runs one seed, `POSTBACK_SIMULATION_STEPS=<n>` sets how many calls there are.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use futures_util::future::join_all;
use postback::config::environment;
use postback::handler::App;
use postback::money::Amount;

use super::model::{Call, Kind, Model, STRICT};
use super::{TRY_AGAIN, again, bet, declined};
use crate::faults::{Fault, Request};
use crate::world::{World, call_on, check_document_with, check_wallet};

const SEED: &str = "POSTBACK_SIMULATION_SEED";
const STEPS: &str = "POSTBACK_SIMULATION_STEPS";

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
            (3..=4, Some(known)) => self.another(known),
            (_, _) => self.fresh(),
        };
        // One that names itself asks for nothing.
        if call.original.as_ref() == Some(&call.key) {
            return self.call();
        }
        self.calls.push(call.clone());
        call
    }

    /// A known key with something else: another call altogether, or one that differs in a single field.
    fn another(&mut self, known: Call) -> Call {
        let Call { key, kind, player, amount, round, original } = self.fresh();
        match self.rng.u8(..6) {
            0 => Call { player: known.player.as_ref().and(player.or(Some("p1".into()))), ..known },
            1 => Call { amount: known.amount.and(amount.or(Some(1))), ..known },
            2 => Call { round: known.round.and(round.or(Some(1))), ..known },
            3 => Call { original: known.original.as_ref().and(original.or(Some(key))), ..known },
            4 => {
                let kind = match known.kind {
                    Kind::Bet => Kind::Win,
                    Kind::Win => Kind::Bet,
                    Kind::BetRollback => Kind::WinRollback,
                    Kind::WinRollback => Kind::BetRollback,
                    Kind::RoundFinish => Kind::RoundFinish,
                };
                Call { kind, ..known }
            }
            _ => Call { key: known.key, kind, player, amount, round, original },
        }
    }

    fn fresh(&mut self) -> Call {
        let key = format!("k-{}", self.calls.len());
        let kind = match self.rng.u8(..16) {
            0..=5 => Kind::Bet,
            6..=8 => Kind::Win,
            9..=11 => Kind::BetRollback,
            12..=14 => Kind::WinRollback,
            _ => Kind::RoundFinish,
        };
        let (player, round, amount) = (self.player(), self.rng.u32(..40), self.rng.i64(0..900));
        let call = Call { key, kind, player: Some(player), amount: Some(amount), round: Some(round), original: None };
        match kind {
            Kind::Bet => call,
            // Mostly in a round in which its player placed a bet.
            Kind::Win => match self.recent(Kind::Bet).filter(|_| self.rng.u8(..6) > 0) {
                Some(Call { player, round, .. }) => Call { player, round, ..call },
                None => call,
            },
            Kind::BetRollback => self.rollback(call, Kind::Bet),
            Kind::WinRollback => self.rollback(call, Kind::Win),
            Kind::RoundFinish => Call { amount: None, player: call.player.filter(|_| self.rng.bool()), ..call },
        }
    }

    /// Mostly of an operation of the right kind and its player; else of any, or of one that may still come.
    fn rollback(&mut self, call: Call, taken: Kind) -> Call {
        let call = Call {
            amount: call.amount.filter(|_| self.rng.u8(..8) == 0),
            round: call.round.filter(|_| self.rng.bool()),
            ..call
        };
        let coming = self.calls.len() + self.rng.usize(1..6);
        let original = match self.rng.u8(..10) {
            0..=6 => self.recent(taken),
            7..=8 => self.recent(self.calls.last().map_or(taken, |call| call.kind)),
            _ => None,
        };
        match original {
            Some(Call { key, player, .. }) if self.rng.u8(..8) > 0 => {
                Call { original: Some(key), player: player.or(call.player), ..call }
            }
            Some(Call { key, .. }) => Call { original: Some(key), ..call },
            None => Call { original: Some(format!("k-{coming}")), ..call },
        }
    }

    /// One of the last calls of this kind.
    fn recent(&mut self, kind: Kind) -> Option<Call> {
        let back = self.rng.usize(..30);
        self.calls.iter().rev().filter(|call| call.kind == kind).nth(back).cloned()
    }

    /// Anybody, a few of them more often than the others, and now and then somebody unknown.
    fn player(&mut self) -> String {
        let among = if self.rng.bool() { self.players + 1 } else { self.players.min(6) };
        format!("p{}", self.rng.usize(..among))
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
        let mut heard: BTreeMap<String, usize> = BTreeMap::new();
        for step in 0..steps {
            let call = traffic.call();
            let answers = settle([&world.app, &other], &mut rng, &call).await;
            let (expected, known) = model.tell(&call);
            *heard
                .entry(format!("{:?} {}{}", call.kind, &expected[..3], if known { " again" } else { "" }))
                .or_default() += 1;
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
        if variable(SEED).or(variable(STEPS)).is_none() {
            all_was_there(strict, &heard, &model);
        }
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

/// Traffic in which something never happens shows nothing of it.
fn all_was_there(strict: bool, heard: &BTreeMap<String, usize>, model: &Model) {
    let common = ["Bet 200", "Bet 402", "Bet 404", "BetRollback 200", "RoundFinish 200", "Win 200", "WinRollback 200"];
    let own: &[&str] = match strict {
        true => &["Win 409", "BetRollback 404", "WinRollback 402"],
        false => &["BetRollback 400", "WinRollback 400"],
    };
    for answer in common.iter().chain(own) {
        assert!(heard.contains_key(*answer), "{answer} was never heard: {heard:?}");
        // What is not kept is never heard again.
        let kept = !answer.ends_with("400") && !answer.ends_with("404");
        assert_eq!(heard.contains_key(&format!("{answer} again")), kept, "{answer} again: {heard:?}");
    }
    assert!(strict || heard.contains_key("Bet 409 again"), "no bet came late: {heard:?}");
    let word = |case: &String| match case.split('/').collect::<Vec<_>>()[..] {
        [kind, .., "operation"] => kind.to_owned(),
        [kind, .., field] => format!("{kind} {field}"),
        [] | [_] => unreachable!("the id of a case has parts"),
    };
    let cases: BTreeSet<_> = model.cases.iter().map(word).collect();
    let conflicts = ["conflict amount", "conflict kind", "conflict original", "conflict round", "conflict user"];
    let own: &[&str] = if strict { &[] } else { &["overdrawn", "win_after_end", "win_without_bet"] };
    let expected: BTreeSet<_> = conflicts.iter().chain(own).map(|case| (*case).to_owned()).collect();
    assert_eq!(cases, expected);
}

#[tokio::test]
async fn random_operations_of_64_players_with_faults_agree_with_the_model_to_the_byte() {
    let steps = variable(STEPS).unwrap_or(1_500);
    simulate(variable(SEED).unwrap_or(0), steps, false).await;
}

#[tokio::test]
async fn they_do_so_too_where_the_settings_refuse_whatever_is_doubtful() {
    let steps = variable(STEPS).unwrap_or(1_000);
    simulate(variable(SEED).unwrap_or(1), steps, true).await;
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
