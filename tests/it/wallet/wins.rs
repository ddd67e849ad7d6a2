//! Wins in rounds where none is to be expected, and what comes to closed accounts.

use futures_util::future::join;
use postback::cashier::Action;
use postback::money::Amount;
use serde_json::json;

use super::{again, applied, bet, declined, rollback, win, with};
use crate::world::{call_on, check_wallet};

#[tokio::test]
async fn a_win_without_a_bet_is_paid_with_a_case() {
    check_wallet("", async |world| {
        for player in ["7", "8"] {
            world.fund(player, "10").await;
        }
        assert_eq!(world.call("/bet/debit", &bet("b-1", "8", "1")).await, applied("b-1", "10.00", "9.00"));
        // The bet of another player in that round is none of this one's.
        let answer = applied("w-1", "10.00", "15.00");
        assert_eq!(world.call("/win/credit", &win("w-1", "7", "5")).await, answer);
        assert_eq!(world.call("/win/credit", &win("w-1", "7", "5")).await, again(&answer));
        assert_eq!(world.case_ids().await, ["win_without_bet/19flip/w-1/operation"]);
    })
    .await;
}

#[tokio::test]
async fn a_win_without_a_bet_is_refused_for_ever_where_the_settings_say_so() {
    check_wallet("win_without_bet = \"refuse\"", async |world| {
        world.fund("7", "10").await;
        let refused = r#"409 {"error":"there is no bet in the round"}"#;
        assert_eq!(world.call("/win/credit", &win("w-1", "7", "5")).await, refused);
        assert_eq!(world.call("/bet/debit", &bet("b-1", "7", "1")).await, applied("b-1", "10.00", "9.00"));
        assert_eq!(world.call("/win/credit", &win("w-1", "7", "5")).await, again(refused));
        assert_eq!(world.call("/win/credit", &win("w-2", "7", "5")).await, applied("w-2", "9.00", "14.00"));
        // There is nothing to take back of what was refused.
        assert_eq!(world.call("/win/rollback", &rollback("r-1", "7", "w-1")).await, applied("r-1", "14.00", "14.00"));
        assert!(world.case_ids().await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_win_whose_only_bet_was_declined_is_a_win_without_a_bet() {
    check_wallet("", async |world| {
        world.fund("7", "10").await;
        assert_eq!(world.call("/bet/debit", &bet("b-1", "7", "11")).await, declined("10.00"));
        assert_eq!(world.call("/win/credit", &win("w-1", "7", "5")).await, applied("w-1", "10.00", "15.00"));
        assert_eq!(world.case_ids().await, ["win_without_bet/19flip/w-1/operation"]);
    })
    .await;
}

/// The ways in which a round ends, each with its key.
fn ends() -> [(&'static str, serde_json::Value); 3] {
    [
        ("/bet/rollback", rollback("e-1", "7", "b-1")),
        ("/round/finish", json!({"idempotency_key": "e-1", "player_id": "7", "round_id": "1"})),
        ("/round/finish", json!({"idempotency_key": "e-1", "round_id": 1})),
    ]
}

#[tokio::test]
async fn a_win_after_its_round_was_rolled_back_or_finished_is_paid_with_a_case() {
    for (path, end) in ends() {
        check_wallet("", async |world| {
            world.fund("7", "10").await;
            world.call("/bet/debit", &bet("b-1", "7", "4")).await;
            assert!(world.call(path, &end).await.starts_with("200 "), "{end}");
            let paid = world.call("/win/credit", &win("w-1", "7", "5")).await;
            assert!(paid.starts_with(r#"200 {"transaction_id":"19flip/w-1""#), "{end}: {paid}");
            assert_eq!(world.case_ids().await, ["win_after_end/19flip/w-1/operation"], "{end}");
        })
        .await;
    }
}

#[tokio::test]
async fn a_win_after_its_round_was_rolled_back_or_finished_is_refused_for_ever_where_the_settings_say_so() {
    for (path, end) in ends() {
        check_wallet("win_after_end = \"refuse\"", async |world| {
            world.fund("7", "10").await;
            world.call("/bet/debit", &bet("b-1", "7", "4")).await;
            // One that comes before is paid.
            assert_eq!(world.call("/win/credit", &win("w-0", "7", "1")).await, applied("w-0", "6.00", "7.00"));
            assert!(world.call(path, &end).await.starts_with("200 "), "{end}");
            let refused = r#"409 {"error":"the round was finished or rolled back"}"#;
            assert_eq!(world.call("/win/credit", &win("w-1", "7", "5")).await, refused, "{end}");
            assert_eq!(world.call("/win/credit", &win("w-1", "7", "5")).await, again(refused), "{end}");
            assert!(world.case_ids().await.is_empty());
        })
        .await;
    }
}

#[tokio::test]
async fn a_round_with_a_bet_that_stands_is_live_though_another_was_rolled_back() {
    check_wallet("win_after_end = \"refuse\"", async |world| {
        world.fund("7", "10").await;
        for key in ["b-1", "b-2"] {
            world.call("/bet/debit", &bet(key, "7", "1")).await;
        }
        world.call("/bet/rollback", &rollback("r-1", "7", "b-1")).await;
        assert_eq!(world.call("/win/credit", &win("w-1", "7", "5")).await, applied("w-1", "9.00", "14.00"));
        assert!(world.case_ids().await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_round_is_finished_for_its_player_or_for_all_in_it_and_a_bet_after_that_is_taken() {
    check_wallet("win_after_end = \"refuse\"", async |world| {
        let refused = r#"409 {"error":"the round was finished or rolled back"}"#;
        for player in ["7", "8", "9"] {
            world.fund(player, "10").await;
            world.call("/bet/debit", &bet(&format!("b-{player}"), player, "1")).await;
        }
        let finished = |key: &str| format!(r#"200 {{"transaction_id":"19flip/{key}","status":"SUCCESS"}}"#);
        let one = json!({"idempotency_key": "f-7", "player_id": "7", "round_id": 1});
        assert_eq!(world.call("/round/finish", &one).await, finished("f-7"));
        assert_eq!(world.call("/win/credit", &win("w-7", "7", "1")).await, refused);
        assert_eq!(world.call("/win/credit", &win("w-8", "8", "1")).await, applied("w-8", "9.00", "10.00"));
        let all = json!({"idempotency_key": "f-all", "round_id": "1"});
        assert_eq!(world.call("/round/finish", &all).await, finished("f-all"));
        for player in ["8", "9"] {
            assert_eq!(world.call("/win/credit", &win(&format!("v-{player}"), player, "1")).await, refused);
        }
        assert_eq!(world.call("/bet/debit", &bet("b-2", "7", "1")).await, applied("b-2", "9.00", "8.00"));
    })
    .await;
}

#[tokio::test]
async fn a_finish_that_comes_again_does_not_finish_what_began_after_it() {
    check_wallet("win_after_end = \"refuse\"", async |world| {
        for player in ["7", "8"] {
            world.fund(player, "10").await;
        }
        let all = json!({"idempotency_key": "f-1", "round_id": 1});
        let answer = r#"200 {"transaction_id":"19flip/f-1","status":"SUCCESS"}"#;
        assert_eq!(world.call("/round/finish", &all).await, answer);
        assert_eq!(world.call("/bet/debit", &bet("b-1", "7", "1")).await, applied("b-1", "10.00", "9.00"));
        assert_eq!(world.call("/round/finish", &all).await, again(answer));
        assert_eq!(world.call("/win/credit", &win("w-1", "7", "5")).await, applied("w-1", "9.00", "14.00"));
    })
    .await;
}

#[tokio::test]
async fn a_win_and_the_end_of_its_round_at_once_are_in_one_order() {
    for turn in 0..10 {
        check_wallet("win_after_end = \"refuse\"", async |world| {
            world.fund("7", "10").await;
            let other = world.redeployed(&[]).await;
            world.call("/bet/debit", &bet("b-1", "7", "4")).await;
            let (win, end) = (win("w-1", "7", "5"), rollback("e-1", "7", "b-1"));
            let (won, ended) = match turn % 2 {
                0 => join(world.call("/win/credit", &win), call_on(&other, "/bet/rollback", &end)).await,
                _ => {
                    let (ended, won) =
                        join(call_on(&other, "/bet/rollback", &end), world.call("/win/credit", &win)).await;
                    (won, ended)
                }
            };
            match won == r#"409 {"error":"the round was finished or rolled back"}"# {
                true => assert_eq!(ended, applied("e-1", "6.00", "10.00")),
                false => assert_eq!((won, ended), (applied("w-1", "6.00", "11.00"), applied("e-1", "11.00", "15.00"))),
            }
        })
        .await;
    }
}

#[tokio::test]
async fn a_closed_account_takes_no_bet_and_what_was_refused_stays_so_once_it_is_open_again() {
    check_wallet("", async |world| {
        world.fund("7", "10").await;
        world.call("/bet/debit", &bet("b-1", "7", "10")).await;
        world.cash("7", "leave", Action::Close).await;
        let closed = r#"403 {"error":"account closed"}"#;
        assert_eq!(world.call("/bet/debit", &bet("b-2", "7", "0")).await, closed);
        assert_eq!(world.call("/bet/debit", &bet("b-2", "7", "0")).await, again(closed));
        // What is known already hears its answer.
        assert_eq!(world.call("/bet/debit", &bet("b-1", "7", "10")).await, again(&applied("b-1", "10.00", "0.00")));
        // This process has seen that it is closed, and believes its eyes no longer than that.
        world.cash("7", "return", Action::Open).await;
        assert_eq!(world.call("/bet/debit", &bet("b-3", "7", "0")).await, applied("b-3", "0.00", "0.00"));
        assert_eq!(world.call("/bet/debit", &bet("b-2", "7", "0")).await, again(closed));
    })
    .await;
}

#[tokio::test]
async fn a_win_or_a_rollback_to_a_closed_account_is_paid_with_a_case() {
    check_wallet("", async |world| {
        world.fund("7", "10").await;
        let other = world.redeployed(&[]).await;
        for (process, key) in [(&world.app, "b-1"), (&other, "b-2")] {
            call_on(process, "/bet/debit", &bet(key, "7", "5")).await;
        }
        world.cash("7", "leave", Action::Close).await;
        // The second process remembers an open account with nothing in it, the first one an open account with five.
        let paid = call_on(&other, "/win/credit", &win("w-1", "7", "3")).await;
        assert_eq!(paid, applied("w-1", "0.00", "3.00"));
        assert_eq!(world.call("/bet/rollback", &rollback("r-1", "7", "b-1")).await, applied("r-1", "3.00", "8.00"));
        let expected = ["closed_account/19flip/r-1/operation", "closed_account/19flip/w-1/operation"];
        assert_eq!(world.case_ids().await, expected);
        // A win of nothing owes nobody anything.
        assert_eq!(world.call("/win/credit", &win("w-2", "7", "0")).await, applied("w-2", "8.00", "8.00"));
        assert_eq!(world.case_ids().await.len(), 2);
    })
    .await;
}

#[tokio::test]
async fn a_win_that_is_known_is_not_paid_again_whatever_became_of_its_round() {
    check_wallet("win_after_end = \"refuse\"\nwin_without_bet = \"refuse\"", async |world| {
        world.fund("7", "10").await;
        world.call("/bet/debit", &bet("b-1", "7", "1")).await;
        let answer = applied("w-1", "9.00", "14.00");
        assert_eq!(world.call("/win/credit", &win("w-1", "7", "5")).await, answer);
        world.call("/round/finish", &json!({"idempotency_key": "f-1", "round_id": 1})).await;
        assert_eq!(world.call("/win/credit", &win("w-1", "7", "5")).await, again(&answer));
        world.call("/bet/rollback", &rollback("r-1", "7", "b-1")).await;
        assert_eq!(world.call("/win/credit", &win("w-1", "7", "5")).await, again(&answer));
        assert_eq!(world.balance("7").await, "15");
    })
    .await;
}

#[tokio::test]
async fn the_largest_win_is_paid_exactly() {
    check_wallet("", async |world| {
        world.fund("7", "0.01").await;
        world.call("/bet/debit", &bet("b-1", "7", "0")).await;
        let most = with(win("w-1", "7", "0"), json!({"amount": "999999999999999.99"}));
        let answer = applied("w-1", "0.01", "1000000000000000.00");
        assert_eq!(world.call("/win/credit", &most).await, answer);
        assert_eq!(Amount::stored(&world.balance("7").await), Amount::stored("1000000000000000"));
    })
    .await;
}
