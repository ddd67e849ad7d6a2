//! Held coins: credited under a hold, released when they are due, taken back before that; by two workers at once, by workers
//! that are killed, through faults, and many at a time.

use std::collections::BTreeSet;
use std::time::Duration;

use fastrand::Rng;
use jiff::{SignedDuration, Timestamp};
use postback::id::TransId;
use postback::store::shard;
use postback::workers::{self, Released};
use serde_json::json;

use crate::faults::Fault;
use crate::runtime_api::{Bootstrap, RuntimeApi};
use crate::world::{SECRET, World, check, check_document, line};

/// Coins become available a day after their credit.
const DAY: &str = "[networks.standard]\nhold = \"24h\"";

fn later(hours: i64) -> Timestamp {
    Timestamp::now() + SignedDuration::from_hours(hours)
}

fn parts(available: &str, held: &str) -> (String, String) {
    (available.to_owned(), held.to_owned())
}

fn released(count: u64) -> Released {
    Released { released: count, ..Released::default() }
}

#[tokio::test]
async fn held_coins_become_available_once_when_they_are_due_and_not_before() {
    check_document(DAY, async |world| {
        assert_eq!(line(&world.tell("c1", "1", "42", "10").await), "200 ok");
        assert_eq!(world.account("42").await, parts("0", "10"));
        assert_eq!(line(&world.tell("c1", "1", "42", "10").await), "200 ok (duplicate)");
        assert_eq!(world.release(later(23)).await, released(0));
        assert_eq!(world.account("42").await, parts("0", "10"));
        assert_eq!(world.release(later(25)).await, released(1));
        assert_eq!(world.account("42").await, parts("10", "0"));
        assert_eq!(world.release(later(25)).await, released(0));
        let entries = world.entries().await;
        let keys: Vec<_> = entries.iter().map(|row| (row["status"].as_str(), row["amount"].as_str())).collect();
        assert_eq!(keys, [("credit", "10"), ("release", "0")], "what was released is no second credit");
        assert_eq!((entries[0]["held"].as_str(), entries[1]["held"].as_str()), ("10", "-10"));
        assert!(entries[0].contains_key("release_at"));
        assert_eq!(line(&world.tell("c1", "1", "42", "10").await), "200 ok (duplicate)");
        assert!(world.cases().await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn the_moment_at_which_a_hold_ends_is_the_first_at_which_it_is_released() {
    check_document(DAY, async |world| {
        world.tell("c1", "1", "42", "10").await;
        let due: Timestamp = world.holds().await[0]["release_at"].parse().unwrap();
        assert_eq!(world.release(due - SignedDuration::from_millis(1)).await, released(0));
        assert_eq!(world.release(due).await, released(1));
    })
    .await;
}

#[tokio::test]
async fn a_reversal_of_held_coins_takes_them_from_the_hold_and_nothing_is_left_to_release() {
    check_document(DAY, async |world| {
        world.tell("c0", "1", "42", "1").await;
        world.tell("c1", "1", "42", "10").await;
        assert_eq!(line(&world.tell("c1", "2", "42", "10").await), "200 ok");
        assert_eq!(world.account("42").await, parts("0", "1"));
        assert_eq!(line(&world.tell("c1", "2", "42", "10").await), "200 ok (duplicate)");
        assert_eq!(world.release(later(48)).await, released(1));
        assert_eq!(world.account("42").await, parts("1", "0"));
        assert!(world.cases().await.is_empty(), "nothing was spent");
        // After its release a reversal takes what is available, or goes below zero with a case.
        world.spend("42", "1").await;
        assert_eq!(line(&world.tell("c0", "2", "42", "1").await), "200 ok");
        assert_eq!(world.account("42").await, parts("-1", "0"));
        assert_eq!(world.case_ids().await, ["overdrawn/standard/c0/reversal"]);
    })
    .await;
}

#[tokio::test]
async fn only_credits_above_a_bound_are_held_where_there_is_one() {
    check_document("[defaults]\nhold = \"90m\"\nhold_above = \"100\"\n[networks.standard]", async |world| {
        world.tell("c1", "1", "42", "100").await;
        world.tell("c2", "1", "42", "100.01").await;
        world.tell("c3", "1", "42", "0").await;
        assert_eq!(world.account("42").await, parts("100", "100.01"));
        assert_eq!(world.release(later(2)).await, released(1));
    })
    .await;
}

#[tokio::test]
async fn a_hold_that_is_longer_than_time_is_still_in_the_queue_of_those_that_end() {
    check_document("[networks.standard]\nhold = \"3500000d\"", async |world| {
        assert_eq!(line(&world.tell("c1", "1", "42", "10").await), "200 ok");
        assert!(world.holds().await[0]["release_at"].starts_with("9999-"), "no case tells of it");
        assert_eq!(line(&world.tell("c1", "2", "42", "10").await), "200 ok");
        assert!(world.holds().await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn an_app_cannot_spend_what_is_held() {
    check_document(DAY, async |world| {
        world.tell("c1", "1", "42", "10").await;
        assert_eq!(world.balance("42").await, "0");
        world.release(later(25)).await;
        world.spend("42", "10").await;
        assert_eq!(world.account("42").await, parts("0", "0"));
    })
    .await;
}

#[tokio::test]
async fn a_change_of_the_hold_counts_for_later_credits_only() {
    check_document(DAY, async |world| {
        world.tell("c1", "1", "42", "10").await;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("networks.toml");
        std::fs::write(&file, "[networks.standard]\nhold = \"1h\"").unwrap();
        let app = world.redeployed(&[("NETWORKS_FILE", file.to_str().unwrap())]).await;
        let event = crate::world::event(
            "GET",
            "/standard",
            &crate::world::signed(&crate::world::query(&crate::world::conversion("c2", "1", "42", "5"))),
        );
        assert_eq!(line(&app.offerwall(&event, crate::world::PATIENCE).await), "200 ok");
        assert_eq!(world.release(later(2)).await, released(1));
        assert_eq!(world.account("42").await, parts("5", "10"));
        assert_eq!(world.release(later(25)).await, released(1));
    })
    .await;
}

#[tokio::test]
async fn two_workers_at_once_release_each_hold_once() {
    check_document(DAY, async |world| {
        for number in 0..40 {
            world.tell(&format!("c{number}"), "1", &format!("u{}", number % 3), "1").await;
        }
        let now = later(25);
        let (one, other) = tokio::join!(world.release(now), world.release(now));
        assert_eq!(one.released + other.released, 40, "{one:?} {other:?}");
        assert_eq!((one.failed, other.failed), (0, 0));
        assert!(world.holds().await.is_empty());
        assert_eq!(world.entries().await.len(), 80);
    })
    .await;
}

#[tokio::test]
async fn a_release_and_a_reversal_at_once_leave_the_coins_with_nobody_and_no_case() {
    check_document(DAY, async |world| {
        for number in 0..20 {
            let id = format!("c{number}");
            world.tell(&id, "1", "42", "10").await;
            let (_, answer) = tokio::join!(world.release(later(25)), world.tell(&id, "2", "42", "10"));
            assert_eq!(line(&answer), "200 ok", "{id}");
            assert_eq!(world.account("42").await, parts("0", "0"), "{id}");
        }
        assert!(world.cases().await.is_empty() && world.holds().await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn whatever_goes_wrong_on_the_way_a_later_round_makes_up_for_it() {
    check_document(DAY, async |world| {
        let faults: Vec<_> = Fault::all().into_iter().filter(|fault| *fault != Fault::Overtaken).collect();
        for (number, fault) in faults.iter().enumerate() {
            let id = format!("c{number}");
            world.proxy.plan(|_| Fault::None);
            world.tell(&id, "1", "42", "1").await;
            let fault = fault.clone();
            // The releasing transaction goes wrong; what is read does not.
            let mut once = Some(fault.clone());
            world.proxy.plan(move |request| match request.operation.as_str() {
                "TransactWriteItems" => once.take().unwrap_or(Fault::None),
                _ => Fault::None,
            });
            let first = world.release(later(25)).await;
            let second = world.release(later(25)).await;
            assert!(first.released + second.released <= 1, "{fault:?}: {first:?} {second:?}");
            world.proxy.settled().await;
            assert_eq!(world.account("42").await, parts(&(number + 1).to_string(), "0"), "{fault:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_queue_that_cannot_be_read_is_told_and_the_next_round_works_it() {
    check_document(DAY, async |world| {
        world.tell("c1", "1", "42", "10").await;
        world.proxy.plan(|request| match request.operation.as_str() {
            "Query" => Fault::Error("AccessDeniedException"),
            _ => Fault::None,
        });
        let deadline = tokio::time::Instant::now() + crate::world::PATIENCE;
        let told =
            workers::release_holds(world.app.store(), "test", later(25), deadline).await.unwrap_err().to_string();
        assert!(told.contains("reading the due holds of shard"), "{told}");
        world.proxy.plan(|_| Fault::None);
        assert_eq!(world.release(later(25)).await, released(1));
    })
    .await;
}

#[tokio::test]
async fn a_round_that_is_out_of_time_says_what_it_left_and_releases_nothing() {
    check_document(DAY, async |world| {
        world.tell("c1", "1", "42", "10").await;
        let due: Timestamp = world.holds().await[0]["release_at"].parse().unwrap();
        let soon = tokio::time::Instant::now() + Duration::from_millis(1);
        let left = workers::release_holds(world.app.store(), "test", later(25), soon).await.unwrap();
        assert_eq!(left, Released { oldest_left: Some(due), unfinished: true, ..Released::default() });
        assert_eq!(world.account("42").await, parts("0", "10"));
    })
    .await;
}

#[tokio::test]
async fn a_row_that_does_not_read_stops_no_other() {
    check_document(DAY, async |world| {
        for number in 0..10 {
            world.tell(&format!("c{number}"), "1", "42", "1").await;
        }
        world.break_hold("c3").await;
        let round = world.release(later(25)).await;
        assert_eq!((round.released, round.failed), (9, 1));
        world.mend_hold("c3", "1").await;
        assert_eq!(world.release(later(25)).await, released(1));
    })
    .await;
}

#[tokio::test]
async fn rows_that_should_not_be_there_stop_no_hold_behind_them_and_are_told() {
    check_document(DAY, async |world| {
        // One shard of the queue.
        let all = (0..).map(|number| format!("c{number}"));
        let same = |id: &String| shard(&TransId::new(&format!("standard/{id}")).unwrap()) == 3;
        let ids: Vec<_> = all.filter(same).take(9).collect();
        for id in &ids[..8] {
            world.tell(id, "1", "42", "1").await;
        }
        let stale = world.holds().await;
        assert_eq!(world.release(later(25)).await, released(8));
        // The table of holds alone is restored to a moment before that; then life goes on.
        world.restore_holds(stale).await;
        world.tell(&ids[8], "1", "42", "10").await;
        let round = world.release(later(48)).await;
        assert_eq!((round.released, round.failed, round.unfinished), (1, 8, false));
        assert_eq!(world.account("42").await, parts("18", "0"), "nothing is paid twice");
        world.delete_holds().await;
    })
    .await;
}

/// One invocation of the worker's binary, which finds what was due a day ago.
async fn invoke(api: &RuntimeApi) -> bool {
    api.invoke(&json!({"work": "release_holds"}).to_string(), Duration::from_secs(60)).await.is_ok()
}

fn worker(world: &World, api: &RuntimeApi) -> Bootstrap {
    Bootstrap::spawn(env!("CARGO_BIN_EXE_workers").as_ref(), &world.variables, api)
}

#[tokio::test]
async fn the_workers_binary_killed_at_random_points_releases_each_hold_once() {
    check_document("[networks.standard]\nhold = \"1ms\"", async |world| {
        let mut rng = Rng::with_seed(7);
        for number in 0..120 {
            world.tell(&format!("c{number}"), "1", &format!("u{}", number % 5), "1").await;
        }
        let mut kills = 0;
        while !world.holds().await.is_empty() {
            let api = RuntimeApi::start().await;
            let mut process = worker(world, &api);
            api.ready().await.unwrap();
            let requests = world.proxy.requests().len();
            let until = requests + rng.usize(9..40);
            tokio::select! {
                _ = invoke(&api) => {}
                () = world.proxy.reached(until) => {}
            }
            process.kill().await;
            kills += 1;
            assert!(kills < 60, "each round releases something");
            world.proxy.settled().await;
        }
        assert!(kills > 2, "it was killed in the middle of its work");
        let releases: BTreeSet<_> = world.entries().await.iter().map(|row| row["trans_id"].clone()).collect();
        assert_eq!((releases.len(), world.entries().await.len()), (120, 240));
    })
    .await;
}

#[tokio::test]
async fn the_workers_binary_says_what_a_round_came_to_in_one_line_and_refuses_work_that_it_does_not_know() {
    check_document("[networks.standard]\nhold = \"1ms\"", async |world| {
        world.tell("c1", "1", "42", "10").await;
        let api = RuntimeApi::start().await;
        // The most that can be logged.
        let mut variables = world.variables.clone();
        variables.insert("LOG_LEVEL".into(), "trace".into());
        variables.insert("AWS_SECRET_ACCESS_KEY".into(), "not-for-any-log".into());
        let mut process = Bootstrap::spawn(env!("CARGO_BIN_EXE_workers").as_ref(), &variables, &api);
        api.ready().await.unwrap();
        assert!(invoke(&api).await);
        for input in ["{}", "null", r#"{"work":"everything"}"#] {
            api.invoke(input, Duration::from_secs(60)).await.unwrap_err();
        }
        assert!(invoke(&api).await, "it lives");
        process.kill().await;
        let log = process.output();
        let rounds: Vec<_> = log.lines().filter(|line| line.contains(r#""message":"holds""#)).collect();
        assert_eq!(rounds.len(), 2, "{log}");
        for part in [r#""holds_released":1"#, r#""oldest_due_hold_s":0"#, r#""open_cases":0"#, r#""unfinished":false"#]
        {
            assert!(rounds[0].contains(part), "{part}: {}", rounds[0]);
        }
        assert!(rounds[1].contains(r#""holds_released":0"#), "{}", rounds[1]);
        for secret in [SECRET, "retired-secret", "not-for-any-log"] {
            assert!(!log.contains(secret), "{secret} in {log}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_backlog_of_twenty_thousand_holds_is_released_to_the_last_coin() {
    check(async |world| {
        world.seed_holds(20_000, 50).await;
        let mut rounds = Vec::new();
        let store = world.direct();
        while rounds.last().is_none_or(|round: &Released| round.unfinished) {
            let deadline = tokio::time::Instant::now() + workers::ROUND_MAX;
            rounds.push(workers::release_holds(&store, "test", Timestamp::now(), deadline).await.unwrap());
            assert!(rounds.len() < 100, "{:?}", rounds.last());
        }
        assert_eq!(rounds.iter().map(|round| round.released).sum::<u64>(), 20_000);
        assert!(rounds.iter().all(|round| round.failed == 0 && round.gone == 0), "{rounds:?}");
        assert_eq!(world.account("u7").await, parts("400", "0"));
        assert!(world.holds().await.is_empty());
    })
    .await;
}
