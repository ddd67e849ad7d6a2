//! The source document's reasons for repeats, row by row; its timeline, in which nobody knows what became of an attempt;
//! and copies of one call at once.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::{join, join_all};
use postback::handler::App;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{TRY_AGAIN, again, applied, bet, declined, kept, rollback, win, with};
use crate::faults::{Fault, Request};
use crate::world::{World, call_on, check_document_with, check_wallet, pass};

/// What the caller waits before its second and its third attempt, and for each attempt.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(2)];
const CALLERS_TIMEOUT: Duration = Duration::from_secs(10);

/// A story of a wallet with the time budget of its deployment.
async fn check_deployed(story: impl AsyncFnOnce(&World)) {
    check_document_with("[networks.19flip]", &[("NETWORKS", "standard,19flip"), ("TIME_BUDGET_MS", "3000")], story)
        .await;
}

/// Calls until there is an answer that is not ours to apologize for.
async fn until_answered(process: &App, path: &str, call: &Value) -> String {
    for _ in 0..50 {
        let answer = call_on(process, path, call).await;
        if answer != TRY_AGAIN {
            return answer;
        }
    }
    panic!("{path} {call} is never answered");
}

/// The first transaction from now on meets this fault, everything else none.
fn first_transaction_meets(world: &World, fault: Fault) {
    let mut fault = Some(fault);
    world.proxy.plan(move |request: &Request| {
        if request.operation == "TransactWriteItems" { fault.take().unwrap_or(Fault::None) } else { Fault::None }
    });
}

#[tokio::test]
async fn transport_retry_after_our_5xx_or_a_lost_connection_settles_what_nobody_knew() {
    for lost in [Fault::LostBeforeCommit, Fault::LostAfterCommit] {
        check_deployed(async |world| {
            world.fund("7", "10").await;
            let bet = bet("b-1", "7", "4");
            assert_eq!(
                world.call("/balance", &json!({"player_id": "7"})).await,
                r#"200 {"balance":10.00,"currency":"coins"}"#
            );
            let fault = lost.clone();
            world.proxy.plan(move |_| fault.clone());
            assert_eq!(world.call("/bet/debit", &bet).await, TRY_AGAIN);
            world.proxy.plan(|_| Fault::None);
            let answer = applied("b-1", "10.00", "6.00");
            let committed = lost == Fault::LostAfterCommit;
            let expected = if committed { again(&answer) } else { answer.clone() };
            assert_eq!(world.call("/bet/debit", &bet).await, expected, "{lost:?}");
            assert_eq!(world.call("/bet/debit", &bet).await, again(&answer));
            assert_eq!((world.balance("7").await, kept(world).await), ("6".into(), 1));
        })
        .await;
    }
}

#[tokio::test]
async fn transport_retry_while_the_first_attempt_still_runs_moves_once_and_both_hear_the_same() {
    // What becomes of the first attempt's request: committed without a reply, or under way for so long that the second
    // attempt overtakes it.
    for fault in [Fault::StallAfterCommit, Fault::Overtaken, Fault::Stall] {
        check_deployed(async |world| {
            world.fund("7", "10").await;
            let other = world.redeployed(&[]).await;
            world.proxy.take();
            let bet = &bet("b-1", "7", "4");
            first_transaction_meets(world, fault.clone());
            let began = world.proxy.asked_for("TransactWriteItems");
            let second = async {
                // The first attempt has read the balance, and its transaction is out.
                began.await;
                let answer = call_on(&other, "/bet/debit", bet).await;
                // Time passes only for those who still wait.
                pass(Duration::from_millis(1_600)).await;
                answer
            };
            let (first, second) = join(call_on(&world.app, "/bet/debit", bet), second).await;
            let answer = applied("b-1", "10.00", "6.00");
            for heard in [&first, &second] {
                assert!([&answer, &again(&answer)].contains(&heard), "{fault:?}: {first} and {second}");
            }
            assert_eq!((world.balance("7").await, kept(world).await), ("6".into(), 1), "{fault:?}");
        })
        .await;
    }
}

#[tokio::test]
async fn transport_retries_at_their_worst_end_within_the_callers_33_seconds_and_move_once() {
    for fault in [Fault::Stall, Fault::StallAfterCommit] {
        check_deployed(async |world| {
            world.fund("7", "10").await;
            let bet = &bet("b-1", "7", "4");
            let started = Instant::now();
            let stall = fault.clone();
            world.proxy.plan(move |_| stall.clone());
            for pause in PAUSES {
                let attempt = Instant::now();
                let waits = async {
                    let heard = call_on(&world.app, "/bet/debit", bet).await;
                    (heard, attempt.elapsed())
                };
                // The clock is moved while the attempt waits; nobody sleeps.
                let clock = async {
                    for _ in 0..6 {
                        pass(Duration::from_millis(600)).await;
                        for _ in 0..200 {
                            tokio::task::yield_now().await;
                        }
                    }
                };
                let ((heard, took), ()) = join(waits, clock).await;
                assert_eq!(heard, TRY_AGAIN, "{fault:?}");
                assert!(took < CALLERS_TIMEOUT / 2, "{fault:?}: the caller heard it after {took:?}");
                pass(pause).await;
            }
            world.proxy.plan(|_| Fault::None);
            let third = call_on(&world.app, "/bet/debit", bet).await;
            let answer = applied("b-1", "10.00", "6.00");
            assert!([&answer, &again(&answer)].contains(&&third), "{fault:?}: {third}");
            assert!(started.elapsed() < Duration::from_secs(33), "{fault:?}: {:?}", started.elapsed());
            world.proxy.settled().await;
            assert_eq!((world.balance("7").await, kept(world).await), ("6".into(), 1), "{fault:?}");
        })
        .await;
    }
}

#[tokio::test]
async fn a_first_attempt_that_its_caller_and_its_process_gave_up_reaches_the_ledger_after_the_second_and_moves_nothing()
{
    check_deployed(async |world| {
        world.fund("7", "10").await;
        // The second attempt's process knows the balance, so that its first request is the transaction.
        let other = world.redeployed(&[]).await;
        call_on(&other, "/balance", &json!({"player_id": "7"})).await;
        world.proxy.take();
        let bet = &bet("b-1", "7", "4");
        first_transaction_meets(world, Fault::Overtaken);
        let began = world.proxy.asked_for("TransactWriteItems");
        {
            let first = std::pin::pin!(call_on(&world.app, "/bet/debit", bet));
            // Its caller waits ten seconds; it ends without an answer, its request still under way.
            futures_util::future::select(first, std::pin::pin!(began)).await;
        }
        pass(CALLERS_TIMEOUT + PAUSES[0]).await;
        let answer = applied("b-1", "10.00", "6.00");
        assert_eq!(call_on(&other, "/bet/debit", bet).await, answer);
        world.proxy.settled().await;
        let late = world.proxy.requests().into_iter().find(|request| request.fault == Fault::Overtaken).unwrap();
        assert_eq!(late.database, Some(400), "it came, and its key was known");
        assert_eq!(call_on(&other, "/bet/debit", bet).await, again(&answer));
        assert_eq!((world.balance("7").await, kept(world).await), ("6".into(), 1));
    })
    .await;
}

#[tokio::test]
async fn game_repeat_hours_later_hears_the_stored_answer_of_a_process_that_is_gone() {
    check_wallet("", async |world| {
        world.fund("7", "10").await;
        let calls = [
            ("/bet/debit", bet("b-1", "7", "4"), applied("b-1", "10.00", "6.00")),
            ("/bet/debit", bet("b-2", "7", "40"), declined("6.00")),
            ("/win/credit", win("w-1", "7", "9"), applied("w-1", "6.00", "15.00")),
            ("/bet/rollback", rollback("r-1", "7", "b-1"), applied("r-1", "15.00", "19.00")),
            ("/win/rollback", rollback("r-2", "7", "w-1"), applied("r-2", "19.00", "10.00")),
            ("/bet/rollback", rollback("r-3", "7", "never"), applied("r-3", "10.00", "10.00")),
            (
                "/round/finish",
                json!({"idempotency_key": "f-1", "player_id": "7", "round_id": 1}),
                r#"200 {"transaction_id":"19flip/f-1","status":"SUCCESS"}"#.to_owned(),
            ),
        ];
        for (path, call, answer) in &calls {
            assert_eq!(world.call(path, call).await, *answer);
        }
        for delay in [1, 5, 24 * 30] {
            pass(Duration::from_secs(delay * 3600)).await;
            let later = world.redeployed(&[]).await;
            for (path, call, answer) in &calls {
                assert_eq!(call_on(&later, path, call).await, again(answer), "{delay} hours later");
            }
        }
        assert!(world.case_ids().await.is_empty());
        assert_eq!(world.balance("7").await, "10");
    })
    .await;
}

#[tokio::test]
async fn game_repeat_of_an_unpaid_win_with_growing_delays_pays_it_once_when_we_are_back() {
    check_deployed(async |world| {
        world.fund("7", "10").await;
        world.call("/bet/debit", &bet("b-1", "7", "1")).await;
        let win = win("w-1", "7", "5");
        world.proxy.plan(|_| Fault::Error("AccessDeniedException"));
        for hours in [0, 1, 2, 4] {
            pass(Duration::from_secs(hours * 3600)).await;
            assert_eq!(world.call("/win/credit", &win).await, TRY_AGAIN);
        }
        world.proxy.plan(|_| Fault::None);
        let answer = applied("w-1", "9.00", "14.00");
        assert_eq!(world.call("/win/credit", &win).await, answer);
        assert_eq!(world.call("/win/credit", &win).await, again(&answer));
    })
    .await;
}

#[tokio::test]
async fn manual_retry_with_the_round_as_a_string_and_the_game_filled_in_is_the_same_operation() {
    check_deployed(async |world| {
        world.fund("7", "10").await;
        let placed = with(bet("b-1", "7", "4"), json!({"round_id": 4711}));
        world.call("/bet/debit", &placed).await;
        let win = with(win("w-1", "7", "5"), json!({"round_id": 4711}));
        let undo = with(rollback("r-1", "7", "b-1"), json!({"round_id": 4711, "game_id": ""}));
        let filled_in = json!({"round_id": "4711", "game_id": "bingo-bongo"});
        for (path, call, answer) in [
            ("/win/credit", win, applied("w-1", "6.00", "11.00")),
            ("/bet/rollback", undo, applied("r-1", "11.00", "15.00")),
        ] {
            // Its outcome is unknown to them: we committed, and they heard nothing.
            world.proxy.plan(|_| Fault::LostAfterCommit);
            assert_eq!(world.call(path, &call).await, TRY_AGAIN);
            world.proxy.plan(|_| Fault::None);
            world.proxy.settled().await;
            // The read came first where there is one, so that nothing may have been written yet.
            let manual = with(call.clone(), filled_in.clone());
            let heard = world.call(path, &manual).await;
            assert!([&answer, &again(&answer)].contains(&&heard), "{path}: {heard}");
            assert_eq!(world.call(path, &call).await, again(&answer));
            assert_eq!(world.call(path, &manual).await, again(&answer));
        }
        assert!(world.case_ids().await.is_empty());
        assert_eq!(world.balance("7").await, "15");
    })
    .await;
}

#[tokio::test]
async fn manual_bet_rollback_under_a_key_of_its_own_reverses_the_bet_by_its_key_or_by_our_id() {
    check_wallet("", async |world| {
        world.fund("7", "10").await;
        for (number, original) in [(1, "b-1"), (2, "19flip/b-2")] {
            let key = format!("b-{number}");
            world.call("/bet/debit", &bet(&key, "7", "4")).await;
            let manual = rollback(&format!("manual-rb-{number}"), "7", original);
            let answer = applied(&format!("manual-rb-{number}"), "6.00", "10.00");
            assert_eq!(world.call("/bet/rollback", &manual).await, answer);
            assert_eq!(world.call("/bet/rollback", &manual).await, again(&answer));
            // The game rolls it back too, and hears the same.
            let games = rollback(&format!("r-{number}"), "7", &key);
            assert_eq!(world.call("/bet/rollback", &games).await, answer);
            // The bet that was placed stays the answer to its own key.
            assert_eq!(world.call("/bet/debit", &bet(&key, "7", "4")).await, again(&applied(&key, "10.00", "6.00")));
        }
        assert!(world.case_ids().await.is_empty());
        assert_eq!(world.balance("7").await, "10");
    })
    .await;
}

#[tokio::test]
async fn manual_bet_rollback_of_a_bet_with_an_unknown_outcome_leaves_nothing_taken_whether_it_came_or_not() {
    for (fault, before) in [(Fault::LostBeforeCommit, "10.00"), (Fault::LostAfterCommit, "6.00")] {
        check_deployed(async |world| {
            world.fund("7", "10").await;
            world.call("/balance", &json!({"player_id": "7"})).await;
            let lost = fault.clone();
            world.proxy.plan(move |_| lost.clone());
            // Its memory of a balance is of the balance endpoint: the one request of this bet is its transaction.
            assert_eq!(world.call("/bet/debit", &bet("b-1", "7", "4")).await, TRY_AGAIN);
            world.proxy.plan(|_| Fault::None);
            let answer = applied("manual-rb-1", before, "10.00");
            assert_eq!(world.call("/bet/rollback", &rollback("manual-rb-1", "7", "b-1")).await, answer, "{fault:?}");
            let late = world.call("/bet/debit", &bet("b-1", "7", "4")).await;
            let expected = match fault {
                Fault::LostBeforeCommit => again(r#"409 {"error":"rolled back before it came"}"#),
                _ => again(&applied("b-1", "10.00", "6.00")),
            };
            assert_eq!(late, expected);
            assert_eq!(world.balance("7").await, "10");
        })
        .await;
    }
}

#[tokio::test]
async fn all_eight_deliveries_of_a_round_finish_hear_the_same() {
    check_wallet("", async |world| {
        world.fund("7", "10").await;
        world.call("/bet/debit", &bet("b-1", "7", "4")).await;
        for player in [json!({"player_id": "7"}), json!({})] {
            let key = if player == json!({}) { "f-all" } else { "f-7" };
            let finish = with(json!({"idempotency_key": key, "round_id": 1}), player);
            let answer = format!(r#"200 {{"transaction_id":"19flip/{key}","status":"SUCCESS"}}"#);
            for minutes in [0, 1, 5, 15, 60, 180, 360, 720] {
                pass(Duration::from_secs(minutes * 60)).await;
                let expected = if minutes == 0 { answer.clone() } else { again(&answer) };
                assert_eq!(world.call("/round/finish", &finish).await, expected);
            }
        }
        assert_eq!(world.balance("7").await, "6");
    })
    .await;
}

#[tokio::test]
async fn a_round_finish_for_all_that_broke_off_goes_on_where_it_ended() {
    check_deployed(async |world| {
        for player in 0..12 {
            let player = format!("p{player}");
            world.fund(&player, "1").await;
            world.call("/bet/debit", &bet(&format!("b-{player}"), &player, "1")).await;
        }
        let finish = json!({"idempotency_key": "f-1", "round_id": 1});
        let mut updates = 0;
        world.proxy.plan(move |request| {
            updates += usize::from(request.operation == "UpdateItem");
            if updates > 5 { Fault::Error("AccessDeniedException") } else { Fault::None }
        });
        assert_eq!(world.call("/round/finish", &finish).await, TRY_AGAIN);
        world.proxy.plan(|_| Fault::None);
        let answer = r#"200 {"transaction_id":"19flip/f-1","status":"SUCCESS"}"#;
        assert_eq!(world.call("/round/finish", &finish).await, answer);
        for player in 0..12 {
            world.call("/win/credit", &win(&format!("w-{player}"), &format!("p{player}"), "1")).await;
        }
        let cases = world.case_ids().await;
        assert_eq!(cases.len(), 12, "{cases:?}");
        assert!(cases.iter().all(|case| case.starts_with("win_after_end/")), "{cases:?}");
    })
    .await;
}

#[tokio::test]
async fn copies_of_one_call_at_once_move_once_and_hear_the_same() {
    check_wallet("", async |world| {
        world.fund("7", "100").await;
        world.fund("8", "1").await;
        let other = world.redeployed(&[]).await;
        world.call("/bet/debit", &bet("b-1", "7", "10")).await;
        for (path, call, answer) in [
            ("/bet/debit", bet("k-1", "7", "10"), applied("k-1", "90.00", "80.00")),
            ("/win/credit", win("k-2", "7", "5"), applied("k-2", "80.00", "85.00")),
            ("/bet/rollback", rollback("k-3", "7", "b-1"), applied("k-3", "85.00", "95.00")),
            ("/win/rollback", rollback("k-4", "7", "k-2"), applied("k-4", "95.00", "90.00")),
            ("/bet/debit", bet("k-5", "8", "2"), declined("1.00")),
            ("/bet/rollback", rollback("k-6", "8", "never"), applied("k-6", "1.00", "1.00")),
        ] {
            let call = &call;
            let copies = (0..16).map(|number| {
                let process = if number % 2 == 0 { &world.app } else { &other };
                async move { call_on(process, path, call).await }
            });
            let heard: BTreeSet<_> = join_all(copies).await.into_iter().collect();
            let possible = [answer.clone(), again(&answer), TRY_AGAIN.to_owned()].into();
            assert!(heard.is_subset(&possible), "{path} {call}: {heard:?}");
            assert!(heard.contains(&answer), "{path} {call}: one applied it: {heard:?}");
            assert_eq!(until_answered(&other, path, call).await, again(&answer));
        }
        assert_eq!(world.balances().await, [("7".into(), "90".into()), ("8".into(), "1".into())].into());
        assert!(world.case_ids().await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn one_key_for_two_players_at_once_moves_once_and_is_a_case() {
    check_wallet("", async |world| {
        for player in ["7", "8"] {
            world.fund(player, "10").await;
        }
        let calls = ["7", "8", "7", "8"].map(|player| {
            let call = bet("k-1", player, "4");
            async move { until_answered(&world.app, "/bet/debit", &call).await }
        });
        let heard: BTreeSet<_> = join_all(calls).await.into_iter().collect();
        let answer = applied("k-1", "10.00", "6.00");
        assert_eq!(heard, [answer.clone(), again(&answer)].into());
        let mut left: Vec<_> = world.balances().await.into_values().collect();
        left.sort();
        assert_eq!(left, ["10", "6"]);
        assert_eq!(world.case_ids().await, ["conflict/19flip/k-1/operation/user"]);
    })
    .await;
}

#[tokio::test]
async fn while_a_case_cannot_be_written_a_known_key_with_something_else_is_not_answered() {
    check_deployed(async |world| {
        world.fund("7", "10").await;
        world.call("/bet/debit", &bet("b-1", "7", "4")).await;
        let other = bet("b-1", "7", "5");
        world.proxy.plan(|request| match request.operation.as_str() {
            "PutItem" => Fault::Error("AccessDeniedException"),
            _ => Fault::None,
        });
        assert_eq!(world.call("/bet/debit", &other).await, TRY_AGAIN);
        world.proxy.plan(|_| Fault::None);
        assert_eq!(world.call("/bet/debit", &other).await, again(&applied("b-1", "10.00", "6.00")));
        assert_eq!(world.case_ids().await, ["conflict/19flip/b-1/operation/amount"]);
    })
    .await;
}
