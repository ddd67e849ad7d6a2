//! Random traffic with faults, from a seed, compared with the model after every step.
//!
//! `POSTBACK_SIMULATION_SEED=<n>` runs one seed, `POSTBACK_SIMULATION_STEPS=<n>` sets how long each runs.

use fastrand::Rng;
use jiff::{SignedDuration, Timestamp};
use postback::config::environment;
use postback::workers;

use crate::faults::Fault;
use crate::model::{Event, Model};
use crate::world::{PATIENCE, World, check_document_with, line};

const USERS: usize = 4;
const CONVERSATIONS: usize = 40;

fn variable(name: &str) -> Option<u64> {
    environment(name).map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a whole number")))
}

async fn simulate(seed: u64, steps: u64, holds: bool) {
    let document = if holds { "[networks.standard]\nhold = \"24h\"" } else { "[networks.standard]" };
    check_document_with(document, &[("TIME_BUDGET_MS", "3500")], async |world| {
        let mut traffic = Rng::with_seed(seed);
        let mut weather = traffic.fork();
        let faults: Vec<_> = Fault::all().into_iter().filter(|fault| *fault != Fault::Overtaken).collect();
        world
            .proxy
            .plan(move |_| if weather.u8(..) < 64 { weather.choice(&faults).unwrap().clone() } else { Fault::None });
        let mut model = Model::new(holds);
        for step in 0..steps {
            if holds && traffic.u8(..10) == 0 {
                release(world).await;
                model.release();
            }
            let event = Event {
                conversation: traffic.usize(..CONVERSATIONS),
                reversal: traffic.u8(..3) == 0,
                user: traffic.usize(..USERS),
                amount: traffic.u64(..3),
            };
            let (id, user, amount) =
                (format!("c{}", event.conversation), format!("u{}", event.user), event.amount.to_string());
            let status = if event.reversal { "2" } else { "1" };
            // A network sends again until it hears 200.
            let mut attempts = 0;
            let answer = loop {
                let answer = line(&world.tell(&id, status, &user, &amount).await);
                attempts += 1;
                if answer != "503 try again" {
                    break answer;
                }
                assert!(attempts < 50, "seed {seed}, step {step}: {event:?} is never answered");
            };
            let new = model.tell(event);
            let place = format!("seed {seed}, step {step}: {event:?} came to {answer}");
            match new {
                // A reply lost after the commit, then contention: the attempt that is answered finds its own work done.
                true => assert!(answer.starts_with("200 ok"), "{place}"),
                // A late credit's first answer is like any other credit's.
                false => assert!(answer == "200 ok (duplicate)" || (answer == "200 ok" && !event.reversal), "{place}"),
            }
            let accounts = world.accounts().await;
            for user in 0..USERS {
                let found = accounts.get(&format!("u{user}")).cloned().unwrap_or(("0".into(), "0".into()));
                let expected = (model.balance(user).to_string(), model.held(user).to_string());
                assert_eq!(found, expected, "{place}: what u{user} has to spend, and what is held");
            }
        }
    })
    .await;
}

/// Rounds of the worker, a day and more later, until one finds nothing that it cannot do.
async fn release(world: &World) {
    for _ in 0..50 {
        let now = Timestamp::now() + SignedDuration::from_hours(25);
        let deadline = tokio::time::Instant::now() + PATIENCE;
        match workers::release_holds(world.app.store(), "test", now, deadline).await {
            Ok(round) if round.failed == 0 && !round.unfinished => return,
            Ok(_) | Err(_) => {}
        }
    }
    panic!("due holds are never released");
}

#[tokio::test]
async fn random_traffic_with_faults_agrees_with_the_model_at_every_step() {
    let steps = variable("POSTBACK_SIMULATION_STEPS").unwrap_or(150);
    match variable("POSTBACK_SIMULATION_SEED") {
        Some(seed) => simulate(seed, steps, false).await,
        None => {
            for seed in 0..3 {
                simulate(seed, steps, false).await;
            }
        }
    }
}

#[tokio::test]
async fn random_traffic_under_a_hold_with_rounds_of_the_worker_and_faults_agrees_with_the_model_at_every_step() {
    let steps = variable("POSTBACK_SIMULATION_STEPS").unwrap_or(100);
    simulate(variable("POSTBACK_SIMULATION_SEED").unwrap_or(0), steps, true).await;
}
