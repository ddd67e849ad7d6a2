//! A transport that misbehaves under the real store: whatever is lost, cut, stalled or refused, coins move exactly
//! once, and an answer comes within the time budget.

use serde_json::json;
use tokio::time::{Duration, Instant};

use crate::faults::Fault;
use crate::world::{World, check, check_with, line};

/// Enough for an attempt that stalls and another one.
const BUDGET: (&str, &str) = ("TIME_BUDGET_MS", "3500");

/// What the network hears when the first request of a call meets `fault` and the rest are clean.
///
/// A match without a wildcard: a new kind of fault needs its line here.
fn expected(fault: &Fault) -> &'static str {
    match fault {
        Fault::None | Fault::CloseIdle => "200 ok",
        // The SDK sends the same request again, with the same token: even a lost reply is a success.
        Fault::LostBeforeCommit | Fault::LostAfterCommit | Fault::Reset | Fault::ResetAfterCommit | Fault::CutReply => {
            "200 ok"
        }
        Fault::Stall | Fault::StallAfterCommit | Fault::Overtaken => "200 ok",
        Fault::Status(_) | Fault::StatusAfterCommit(_) => "200 ok",
        // A refusal that may pass is tried again, any other is not.
        Fault::Error("AccessDeniedException") | Fault::CancelWith(_) => "503 try again",
        Fault::Error(_) | Fault::Cancel(_) => "200 ok",
        // Nobody can tell what a reply that is none means.
        Fault::Garbage | Fault::GarbageAfterCommit => "503 try again",
    }
}

/// Answers as a network hears them that sends again until it hears 200.
async fn until_200(world: &World, status: &str) -> Vec<String> {
    let mut answers = Vec::new();
    loop {
        answers.push(line(&world.tell("c1", status, "42", "10").await));
        if answers.last().unwrap().starts_with("200") || answers.len() == 5 {
            return answers;
        }
    }
}

#[tokio::test]
async fn a_credit_is_paid_once_whatever_its_request_meets() {
    for fault in Fault::all() {
        check_with(&[BUDGET], async |world| {
            world.proxy.script([fault.clone()]);
            let answers = until_200(world, "1").await;
            assert_eq!(answers[0], expected(&fault), "{fault:?}");
            assert!(answers.len() <= 2, "{fault:?}: {answers:?}");
            world.proxy.settled().await;
            assert_eq!(world.balance("42").await, "10", "{fault:?}");
            assert_eq!(world.entries().await.len(), 1, "{fault:?}");
        })
        .await;
    }
}

#[tokio::test]
async fn a_reversal_is_taken_once_whatever_its_read_or_its_write_meets() {
    for fault in Fault::all() {
        for position in 0..2 {
            check_with(&[BUDGET], async |world| {
                world.tell("c1", "1", "42", "10").await;
                world.tell("c2", "1", "42", "1").await;
                world.proxy.script((0..position).map(|_| Fault::None).chain([fault.clone()]));
                let answers = until_200(world, "2").await;
                assert!(answers.len() <= 2, "{fault:?} at {position}: {answers:?}");
                world.proxy.settled().await;
                assert_eq!(world.balance("42").await, "1", "{fault:?} at {position}");
                assert_eq!(world.entries().await.len(), 3, "{fault:?} at {position}");
                assert!(world.cases().await.is_empty(), "{fault:?} at {position}");
            })
            .await;
        }
    }
}

#[tokio::test]
async fn a_reversal_of_spent_coins_is_taken_once_with_its_case_whatever_its_requests_meet() {
    for fault in Fault::all() {
        check_with(&[BUDGET], async |world| {
            world.tell("c1", "1", "42", "10").await;
            world.spend("42", "4").await;
            // The read, the plain reversal that is refused, then the one with the case.
            world.proxy.script([Fault::None, Fault::None, fault.clone()]);
            let answers = until_200(world, "2").await;
            assert!(answers.len() <= 2, "{fault:?}: {answers:?}");
            world.proxy.settled().await;
            assert_eq!(world.balance("42").await, "-4", "{fault:?}");
            assert_eq!(world.case_ids().await, ["overdrawn/standard/c1/reversal"], "{fault:?}");
        })
        .await;
    }
}

#[tokio::test]
async fn a_table_over_pairs_of_cancellation_reasons() {
    const KNOWN: &str = "ConditionalCheckFailed";
    let stored = json!({
        "trans_id": {"S": "standard/c1"}, "status": {"S": "credit"}, "user_id": {"S": "42"}, "currency": {"S": "coins"},
        "amount": {"N": "10"},
    });
    // What a network hears when the transaction is cancelled for these reasons, of the entry and of the account, and the
    // next attempt is not.
    for (entry, account, expected) in [
        (KNOWN, "None", "200 ok (duplicate)"),
        (KNOWN, KNOWN, "200 ok (duplicate)"),
        (KNOWN, "TransactionConflict", "200 ok (duplicate)"),
        (KNOWN, "ThrottlingError", "200 ok (duplicate)"),
        (KNOWN, "ValidationError", "200 ok (duplicate)"),
        ("None", "TransactionConflict", "200 ok"),
        ("None", "ThrottlingError", "200 ok"),
        ("None", "ProvisionedThroughputExceeded", "200 ok"),
        ("TransactionConflict", "None", "200 ok"),
        ("TransactionConflict", "TransactionConflict", "200 ok"),
        ("TransactionConflict", "ThrottlingError", "200 ok"),
        ("TransactionConflict", KNOWN, "200 ok"),
        ("ThrottlingError", "None", "200 ok"),
        ("None", "ValidationError", "503 try again"),
        ("ValidationError", "None", "503 try again"),
        ("ValidationError", "TransactionConflict", "503 try again"),
        ("TransactionConflict", "ValidationError", "503 try again"),
        ("None", "ItemCollectionSizeLimitExceeded", "503 try again"),
        ("None", "None", "503 try again"),
    ] {
        check(async |world| {
            let item = (entry == KNOWN).then(|| stored.clone());
            world.proxy.script([Fault::CancelWith(vec![(entry, item), (account, None)])]);
            assert_eq!(line(&world.tell("c1", "1", "42", "10").await), expected, "[{entry}, {account}]");
        })
        .await;
    }
}

#[tokio::test]
async fn a_case_is_opened_once_and_never_lost_whatever_its_request_meets() {
    for fault in Fault::all() {
        check_with(&[BUDGET], async |world| {
            world.tell("c1", "1", "42", "11").await;
            world.proxy.script([Fault::None, fault.clone()]);
            // A conflict is answered only when its case is written.
            let answers = until_200(world, "1").await;
            assert!(answers.len() <= 2, "{fault:?}: {answers:?}");
            world.proxy.settled().await;
            assert_eq!(world.case_ids().await, ["conflict/standard/c1/credit/amount"], "{fault:?}");
            assert_eq!(world.balance("42").await, "11", "{fault:?}");
        })
        .await;
    }
}

#[tokio::test]
async fn what_never_ends_is_answered_with_503_inside_the_time_budget_and_the_next_attempt_is_paid_once() {
    let budget = Duration::from_millis(600);
    for fault in Fault::all() {
        // A copy that its own retries overtake is no outage: one of them gets through.
        if matches!(fault, Fault::None | Fault::CloseIdle | Fault::Overtaken) {
            continue;
        }
        check_with(&[("TIME_BUDGET_MS", "600")], async |world| {
            let endless = fault.clone();
            world.proxy.plan(move |_| endless.clone());
            let started = Instant::now();
            assert_eq!(line(&world.tell("c1", "1", "42", "10").await), "503 try again", "{fault:?}");
            let took = started.elapsed();
            assert!(took < budget + Duration::from_millis(400), "{fault:?} took {took:?}");
            world.proxy.plan(|_| Fault::None);
            world.proxy.settled().await;
            let answer = line(&world.tell("c1", "1", "42", "10").await);
            assert!(answer.starts_with("200 ok"), "{fault:?}: {answer}");
            assert_eq!(world.balance("42").await, "10", "{fault:?}");
        })
        .await;
    }
}

#[tokio::test]
async fn the_deadline_of_the_invocation_is_kept_where_it_is_shorter_than_the_budget() {
    check(async |world| {
        world.proxy.plan(|_| Fault::Stall);
        let query = crate::world::query(&crate::world::conversion("c1", "1", "42", "10"));
        let event = crate::world::event("GET", "/standard", &crate::world::signed(&query));
        for patience in [Duration::ZERO, Duration::from_millis(300)] {
            let started = Instant::now();
            assert_eq!(line(&world.app.offerwall(&event, patience).await), "503 try again");
            assert!(started.elapsed() < patience + Duration::from_millis(400));
        }
    })
    .await;
}

#[tokio::test]
async fn an_unreachable_dynamodb_is_503() {
    check(async |world| {
        // Nothing listens on the discard port of the loopback interface.
        let cut_off =
            world.redeployed(&[("AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:9"), ("TIME_BUDGET_MS", "500")]).await;
        let query = crate::world::query(&crate::world::conversion("c1", "1", "42", "10"));
        let event = crate::world::event("GET", "/standard", &crate::world::signed(&query));
        assert_eq!(line(&cut_off.offerwall(&event, crate::world::PATIENCE).await), "503 try again");
        assert!(world.entries().await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn contention_is_waited_out_with_a_fresh_token_for_each_try() {
    check(async |world| {
        let conflict = Fault::Cancel(vec!["TransactionConflict", "None"]);
        world.proxy.script([conflict.clone(), Fault::Cancel(vec!["None", "ThrottlingError"]), conflict]);
        assert_eq!(line(&world.tell("c1", "1", "42", "10").await), "200 ok");
        let mut tokens: Vec<_> =
            world.proxy.requests().iter().map(|request| request.body["ClientRequestToken"].to_string()).collect();
        assert_eq!(tokens.len(), 4);
        tokens.sort();
        tokens.dedup();
        assert_eq!(tokens.len(), 4, "each try has its own token");
    })
    .await;
}

#[tokio::test]
async fn an_earlier_attempt_that_is_still_at_work_is_waited_out() {
    check(async |world| {
        // More often than the SDK itself tries again.
        world.proxy.script(vec![Fault::Error("TransactionInProgressException"); 8]);
        assert_eq!(line(&world.tell("c1", "1", "42", "10").await), "200 ok");
        assert_eq!(world.balance("42").await, "10");
    })
    .await;
}

#[tokio::test]
async fn a_connection_that_died_while_the_function_was_frozen_is_replaced() {
    check(async |world| {
        assert_eq!(line(&world.tell("c1", "1", "42", "10").await), "200 ok");
        // The next request goes out on a connection that is dead at the other end.
        world.proxy.script([Fault::Reset]);
        assert_eq!(line(&world.tell("c2", "1", "42", "10").await), "200 ok");
        world.proxy.script([Fault::CloseIdle]);
        assert_eq!(line(&world.tell("c3", "1", "42", "10").await), "200 ok");
        assert_eq!(line(&world.tell("c4", "1", "42", "10").await), "200 ok");
        assert_eq!(world.balance("42").await, "40");
    })
    .await;
}

#[tokio::test]
async fn calls_share_one_connection_that_is_opened_before_the_first_of_them() {
    check(async |world| {
        assert_eq!(world.proxy.connections(), [1], "the start has opened it");
        for id in ["c1", "c2", "c3"] {
            world.tell(id, "1", "42", "10").await;
        }
        assert_eq!(world.proxy.connections(), [4]);
    })
    .await;
}
