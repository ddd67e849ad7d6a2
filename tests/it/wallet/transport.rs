//! A transport that misbehaves under a wallet's calls: whatever each request meets, money moves once, and the answer that is
//! heard in the end is the stored one.

use futures_util::future::join_all;
use serde_json::Value;

use super::{again, applied, bet, declined, kept, rollback, win};
use crate::faults::Fault;
use crate::world::{World, check_document_with};

const TRY_AGAIN: &str = r#"503 {"error":"try again"}"#;

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
async fn an_answer_comes_within_three_seconds_however_long_the_budget_is_and_then_nothing_is_half_done() {
    let variables = [("NETWORKS", "standard,19flip"), ("TIME_BUDGET_MS", "20000")];
    check_document_with("[networks.19flip]", &variables, async |world| {
        world.fund("7", "10").await;
        world.call("/balance", &serde_json::json!({"player_id": "7"})).await;
        world.proxy.plan(|_| Fault::Cancel(vec!["None", "TransactionConflict", "None"]));
        let started = std::time::Instant::now();
        assert_eq!(world.call("/bet/debit", &bet("b-1", "7", "4")).await, TRY_AGAIN);
        // Far from the twenty, whatever else this machine does.
        assert!(started.elapsed() < std::time::Duration::from_secs(7), "{:?}", started.elapsed());
        world.proxy.plan(|_| Fault::None);
        assert_eq!((world.balance("7").await, kept(world).await), ("10".into(), 0));
        assert_eq!(world.call("/bet/debit", &bet("b-1", "7", "4")).await, applied("b-1", "10.00", "6.00"));
    })
    .await;
}
