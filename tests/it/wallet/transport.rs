//! A transport that misbehaves under a wallet's calls: whatever each request meets, money moves once, and the answer that is
//! heard in the end is the stored one.

use futures_util::future::join_all;
use serde_json::Value;

use super::{TRY_AGAIN, again, applied, bet, declined, kept, rollback, win};
use crate::faults::Fault;
use crate::world::{World, check_document_with, check_wallet};

/// A story in the weather of each fault, met by the request at each of these places of a call; all at once, since some
/// only wait.
async fn check_each(places: usize, story: impl AsyncFn(&World, &Fault, usize)) {
    let (story, variables) = (&story, [("NETWORKS", "standard,19flip"), ("TIME_BUDGET_MS", "3000")]);
    let worlds = Fault::all().into_iter().flat_map(|fault| (0..places).map(move |place| (fault.clone(), place)));
    join_all(worlds.map(async |(fault, place)| {
        check_document_with("[networks.19flip]", &variables, async |world| story(world, &fault, place).await).await;
    }))
    .await;
}

/// The answer to a call whose request at this place meets the fault, and which is sent again until it is answered.
async fn settled(world: &World, fault: &Fault, place: usize, path: &str, call: &Value) -> String {
    world.proxy.script((0..place).map(|_| Fault::None).chain([fault.clone()]));
    for _ in 0..3 {
        let answer = world.call(path, call).await;
        if answer != TRY_AGAIN {
            world.proxy.settled().await;
            return answer;
        }
    }
    panic!("{path} {call} is never answered: {fault:?} at {place}");
}

#[tokio::test]
async fn a_bet_is_taken_once_whatever_its_read_or_its_write_meets() {
    check_each(2, async |world, fault, place| {
        world.fund("7", "10").await;
        let heard = settled(world, fault, place, "/bet/debit", &bet("b-1", "7", "4")).await;
        let answer = applied("b-1", "10.00", "6.00");
        assert!([&answer, &again(&answer)].contains(&&heard), "{fault:?} at {place}: {heard}");
        assert_eq!(world.call("/bet/debit", &bet("b-1", "7", "4")).await, again(&answer), "{fault:?} at {place}");
        assert_eq!((world.balance("7").await, kept(world).await), ("6".into(), 1), "{fault:?} at {place}");
        // What this process remembers of the balance saves a read, and nothing else.
        assert_eq!(world.call("/bet/debit", &bet("b-2", "7", "6")).await, applied("b-2", "6.00", "0.00"));
    })
    .await;
}

#[tokio::test]
async fn a_bet_that_is_declined_is_so_for_ever_whatever_its_write_meets_and_what_comes_in_between() {
    check_each(1, async |world, fault, place| {
        world.fund("7", "10").await;
        world.call("/bet/debit", &bet("b-0", "7", "0")).await;
        let heard = settled(world, fault, place, "/bet/debit", &bet("b-1", "7", "11")).await;
        assert!([declined("10.00"), again(&declined("10.00"))].contains(&heard), "{fault:?}: {heard}");
        world.call("/win/credit", &win("w-1", "7", "5")).await;
        assert_eq!(world.call("/bet/debit", &bet("b-1", "7", "11")).await, again(&declined("10.00")), "{fault:?}");
    })
    .await;
}

#[tokio::test]
async fn a_win_without_a_bet_is_paid_once_with_its_case_whatever_its_writes_meet() {
    check_each(2, async |world, fault, place| {
        world.fund("7", "10").await;
        world.call("/balance", &serde_json::json!({"player_id": "7"})).await;
        let heard = settled(world, fault, place, "/win/credit", &win("w-1", "7", "5")).await;
        let answer = applied("w-1", "10.00", "15.00");
        assert!([&answer, &again(&answer)].contains(&&heard), "{fault:?} at {place}: {heard}");
        assert_eq!(world.case_ids().await, ["win_without_bet/19flip/w-1/operation"], "{fault:?} at {place}");
        assert_eq!(world.balance("7").await, "15", "{fault:?} at {place}");
    })
    .await;
}

#[tokio::test]
async fn a_bet_is_taken_back_once_whatever_the_reads_or_the_write_meet() {
    check_each(2, async |world, fault, place| {
        world.fund("7", "10").await;
        world.call("/bet/debit", &bet("b-1", "7", "4")).await;
        let heard = settled(world, fault, place, "/bet/rollback", &rollback("r-1", "7", "b-1")).await;
        let answer = applied("r-1", "6.00", "10.00");
        assert!([&answer, &again(&answer)].contains(&&heard), "{fault:?} at {place}: {heard}");
        assert_eq!(world.call("/bet/rollback", &rollback("r-2", "7", "b-1")).await, answer, "{fault:?} at {place}");
        assert_eq!(world.balance("7").await, "10", "{fault:?} at {place}");
        assert!(world.case_ids().await.is_empty(), "{fault:?} at {place}");
    })
    .await;
}

#[tokio::test]
async fn a_bet_never_seen_is_voided_once_whatever_the_reads_or_the_write_meet() {
    check_each(2, async |world, fault, place| {
        world.fund("7", "10").await;
        world.call("/balance", &serde_json::json!({"player_id": "7"})).await;
        let heard = settled(world, fault, place, "/bet/rollback", &rollback("r-1", "7", "b-1")).await;
        let answer = applied("r-1", "10.00", "10.00");
        assert!([&answer, &again(&answer)].contains(&&heard), "{fault:?} at {place}: {heard}");
        let late = again(r#"409 {"error":"rolled back before it came"}"#);
        assert_eq!(world.call("/bet/debit", &bet("b-1", "7", "4")).await, late, "{fault:?} at {place}");
        assert_eq!((world.balance("7").await, kept(world).await), ("10".into(), 2), "{fault:?} at {place}");
    })
    .await;
}

#[tokio::test]
async fn contention_that_lasts_longer_than_the_budget_is_told_and_then_nothing_is_half_done() {
    let variables = [("NETWORKS", "standard,19flip"), ("TIME_BUDGET_MS", "3000")];
    check_document_with("[networks.19flip]", &variables, async |world| {
        world.fund("7", "10").await;
        world.call("/balance", &serde_json::json!({"player_id": "7"})).await;
        world.proxy.plan(|_| Fault::Cancel(vec!["None", "TransactionConflict", "None"]));
        assert_eq!(world.call("/bet/debit", &bet("b-1", "7", "4")).await, TRY_AGAIN);
        world.proxy.plan(|_| Fault::None);
        assert_eq!((world.balance("7").await, kept(world).await), ("10".into(), 0));
        assert_eq!(world.call("/bet/debit", &bet("b-1", "7", "4")).await, applied("b-1", "10.00", "6.00"));
    })
    .await;
}

#[tokio::test]
async fn a_round_is_finished_for_all_though_bets_and_wins_are_in_the_way() {
    check_wallet("win_after_end = \"refuse\"", async |world| {
        for player in ["7", "8", "9"] {
            world.fund(player, "10").await;
            world.call("/bet/debit", &bet(&format!("b-{player}"), player, "4")).await;
        }
        let mut met = 0;
        world.proxy.plan(move |request| {
            met += usize::from(request.operation == "UpdateItem");
            match request.operation.as_str() {
                "UpdateItem" if met <= 4 => Fault::Error("TransactionConflictException"),
                _ => Fault::None,
            }
        });
        let finish = serde_json::json!({"idempotency_key": "f-1", "round_id": 1});
        let answer = r#"200 {"transaction_id":"19flip/f-1","status":"SUCCESS"}"#;
        assert_eq!(world.call("/round/finish", &finish).await, answer);
        for player in ["7", "8", "9"] {
            let refused = r#"409 {"error":"the round was finished or rolled back"}"#;
            let late = win(&format!("w-{player}"), player, "5");
            assert_eq!(world.call("/win/credit", &late).await, refused);
        }
    })
    .await;
}
