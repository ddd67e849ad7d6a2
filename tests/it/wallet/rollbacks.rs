//! What is taken back: once for each original, in any order, of whoever it moved, and never more than it moved.

use serde_json::json;

use super::{again, applied, bet, declined, kept, rollback, win, with};
use crate::world::{SECRET, call_on, check_document_with, check_wallet};

const LATE: &str = r#"409 {"error":"rolled back before it came"}"#;

#[tokio::test]
async fn a_second_rollback_under_another_key_hears_the_first_ones_result_and_moves_nothing() {
    check_wallet("", async |world| {
        world.fund("7", "10").await;
        for (original, path, first) in [
            ("b-1", "/bet/rollback", applied("r-b-1", "16.00", "20.00")),
            ("w-1", "/win/rollback", applied("r-w-1", "20.00", "10.00")),
        ] {
            if original == "b-1" {
                world.call("/bet/debit", &bet("b-1", "7", "4")).await;
                world.call("/win/credit", &win("w-1", "7", "10")).await;
            }
            assert_eq!(world.call(path, &rollback(&format!("r-{original}"), "7", original)).await, first);
            for key in ["second", "third"] {
                let second = rollback(&format!("{key}-{original}"), "7", &format!("19flip/{original}"));
                assert_eq!(world.call(path, &second).await, first, "the first one's, transaction id and all");
                assert_eq!(world.call(path, &second).await, again(&first), "and it is kept under this key too");
            }
        }
        assert_eq!(world.balance("7").await, "10");
        assert!(world.case_ids().await.is_empty());
        assert_eq!(kept(world).await, 8);
    })
    .await;
}

#[tokio::test]
async fn the_rollback_of_a_bet_never_seen_succeeds_and_the_late_bet_is_refused_for_ever() {
    check_wallet("", async |world| {
        world.fund("7", "10").await;
        let answer = applied("r-1", "10.00", "10.00");
        assert_eq!(world.call("/bet/rollback", &rollback("r-1", "7", "b-1")).await, answer);
        assert_eq!(world.call("/bet/rollback", &rollback("r-1", "7", "b-1")).await, again(&answer));
        assert_eq!(world.call("/bet/rollback", &rollback("r-2", "7", "b-1")).await, answer);
        for _ in 0..3 {
            assert_eq!(world.call("/bet/debit", &bet("b-1", "7", "4")).await, again(LATE));
        }
        assert_eq!((world.balance("7").await, kept(world).await), ("10".into(), 3));
        assert!(world.case_ids().await.is_empty(), "a late bet is no mistake of anybody's");
        // It never was a bet of its round, and others of that round are not concerned.
        assert_eq!(world.call("/bet/debit", &bet("b-2", "7", "4")).await, applied("b-2", "10.00", "6.00"));
    })
    .await;
}

#[tokio::test]
async fn a_late_bet_that_differs_from_its_rollback_is_refused_with_a_case() {
    check_wallet("", async |world| {
        for player in ["7", "8"] {
            world.fund(player, "10").await;
        }
        world.call("/bet/rollback", &with(rollback("r-1", "7", "b-1"), json!({"round_id": 1}))).await;
        assert_eq!(world.call("/bet/debit", &bet("b-1", "8", "4")).await, again(LATE));
        assert_eq!(world.call("/win/credit", &win("b-1", "7", "4")).await, again(LATE));
        let expected = ["conflict/19flip/b-1/operation/kind", "conflict/19flip/b-1/operation/user"];
        assert_eq!(world.case_ids().await, expected);
        // The round knows that a bet was rolled back.
        world.call("/win/credit", &win("w-1", "7", "4")).await;
        assert!(world.case_ids().await.contains(&"win_after_end/19flip/w-1/operation".to_owned()));
    })
    .await;
}

#[tokio::test]
async fn the_rollback_of_a_win_never_seen_succeeds_and_the_late_win_is_refused() {
    check_wallet("", async |world| {
        world.fund("7", "10").await;
        world.call("/bet/debit", &bet("b-1", "7", "1")).await;
        let answer = applied("r-1", "9.00", "9.00");
        assert_eq!(world.call("/win/rollback", &rollback("r-1", "7", "w-1")).await, answer);
        assert_eq!(world.call("/win/credit", &win("w-1", "7", "5")).await, again(LATE));
        assert_eq!(world.balance("7").await, "9");
    })
    .await;
}

#[tokio::test]
async fn where_the_settings_say_so_the_rollback_of_a_bet_never_seen_is_404_and_not_kept() {
    check_wallet("unseen = \"not_found\"", async |world| {
        world.fund("7", "10").await;
        let unknown = r#"404 {"error":"original transaction not found"}"#;
        for _ in 0..2 {
            assert_eq!(world.call("/bet/rollback", &rollback("r-1", "7", "b-1")).await, unknown);
        }
        assert_eq!(kept(world).await, 0);
        assert_eq!(world.call("/bet/debit", &bet("b-1", "7", "4")).await, applied("b-1", "10.00", "6.00"));
        let answer = applied("r-1", "6.00", "10.00");
        assert_eq!(world.call("/bet/rollback", &rollback("r-1", "7", "b-1")).await, answer);
        // A known key hears its answer, whatever original it names now.
        assert_eq!(world.call("/bet/rollback", &rollback("r-1", "7", "never")).await, again(&answer));
    })
    .await;
}

#[tokio::test]
async fn the_rollback_of_a_declined_bet_succeeds_and_moves_nothing() {
    check_wallet("", async |world| {
        world.fund("7", "10").await;
        assert_eq!(world.call("/bet/debit", &bet("b-1", "7", "11")).await, declined("10.00"));
        let answer = applied("r-1", "10.00", "10.00");
        assert_eq!(world.call("/bet/rollback", &rollback("r-1", "7", "b-1")).await, answer);
        assert_eq!(world.call("/bet/rollback", &rollback("r-2", "7", "19flip/b-1")).await, answer);
        assert_eq!(world.call("/bet/debit", &bet("b-1", "7", "11")).await, again(&declined("10.00")));
        assert!(world.case_ids().await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn the_rollback_of_a_spent_win_goes_below_zero_with_a_case_and_later_money_repays_it() {
    check_wallet("", async |world| {
        world.fund("7", "1").await;
        world.call("/bet/debit", &bet("b-1", "7", "1")).await;
        world.call("/win/credit", &win("w-1", "7", "5.50")).await;
        world.call("/bet/debit", &bet("b-2", "7", "5")).await;
        assert_eq!(world.call("/win/rollback", &rollback("r-1", "7", "w-1")).await, applied("r-1", "0.50", "-5.00"));
        assert_eq!(world.case_ids().await, ["overdrawn/19flip/r-1/operation"]);
        assert_eq!(
            world.call("/balance", &json!({"player_id": "7"})).await,
            r#"200 {"balance":-5.00,"currency":"coins"}"#
        );
        assert_eq!(world.call("/bet/debit", &bet("b-3", "7", "0.01")).await, declined("-5.00"));
        assert_eq!(world.call("/win/credit", &win("w-2", "7", "6")).await, applied("w-2", "-5.00", "1.00"));
    })
    .await;
}

#[tokio::test]
async fn where_the_settings_say_so_the_rollback_of_a_spent_win_is_refused_and_another_key_may_succeed_later() {
    check_wallet("spent_win = \"refuse\"", async |world| {
        world.fund("7", "1").await;
        world.call("/bet/debit", &bet("b-1", "7", "1")).await;
        world.call("/win/credit", &win("w-1", "7", "5")).await;
        world.call("/bet/debit", &bet("b-2", "7", "4.50")).await;
        assert_eq!(world.call("/win/rollback", &rollback("r-1", "7", "w-1")).await, declined("0.50"));
        world.call("/win/credit", &win("w-2", "7", "9.50")).await;
        assert_eq!(world.call("/win/rollback", &rollback("r-1", "7", "w-1")).await, again(&declined("0.50")));
        let answer = applied("r-2", "10.00", "5.00");
        assert_eq!(world.call("/win/rollback", &rollback("r-2", "7", "w-1")).await, answer);
        assert_eq!(world.call("/win/rollback", &rollback("r-1", "7", "w-1")).await, again(&declined("0.50")));
        assert_eq!(world.call("/win/rollback", &rollback("r-3", "7", "w-1")).await, answer);
        assert_eq!(world.balance("7").await, "5");
        assert!(world.case_ids().await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_rollback_that_names_another_player_or_amount_takes_back_what_moved_of_whom_it_moved_with_a_case() {
    check_wallet("", async |world| {
        for player in ["7", "8"] {
            world.fund(player, "10").await;
        }
        for (key, amount) in [("b-1", "1"), ("b-2", "2"), ("b-3", "3")] {
            world.call("/bet/debit", &bet(key, "7", amount)).await;
        }
        let first = applied("r-1", "4.00", "5.00");
        assert_eq!(world.call("/bet/rollback", &rollback("r-1", "8", "b-1")).await, first);
        assert_eq!(world.call("/bet/rollback", &rollback("r-1", "8", "b-1")).await, again(&first));
        let other = with(rollback("r-2", "7", "b-2"), json!({"amount": 20}));
        assert_eq!(world.call("/bet/rollback", &other).await, applied("r-2", "5.00", "7.00"));
        // One whom nobody knows is somebody else too.
        assert_eq!(
            world.call("/bet/rollback", &rollback("r-3", "nobody", "b-3")).await,
            applied("r-3", "7.00", "10.00")
        );
        assert_eq!((world.balance("7").await, world.balance("8").await), ("10".into(), "10".into()));
        // What took a bet of another round back is of the bet's round all the same.
        world.call("/bet/debit", &bet("b-4", "7", "1")).await;
        let elsewhere = with(rollback("r-4", "7", "b-4"), json!({"round_id": 2}));
        assert_eq!(world.call("/bet/rollback", &elsewhere).await, applied("r-4", "9.00", "10.00"));
        let entries = world.entries().await;
        let rounds: Vec<_> = entries.iter().filter_map(|row| row.get("round")?.split('#').next()).collect();
        assert!(rounds.iter().all(|round| *round == "19flip/1"), "{rounds:?}");
        let expected = ["b-1/rollback/user", "b-2/rollback/amount", "b-3/rollback/user", "b-4/rollback/round"];
        assert_eq!(world.case_ids().await, expected.map(|case| format!("conflict/19flip/{case}")));
    })
    .await;
}

#[tokio::test]
async fn a_rollback_of_another_kind_is_refused_and_not_kept() {
    check_wallet("", async |world| {
        world.fund("7", "10").await;
        world.call("/bet/debit", &bet("b-1", "7", "1")).await;
        world.call("/win/credit", &win("w-1", "7", "2")).await;
        world.call("/bet/rollback", &rollback("r-1", "7", "b-1")).await;
        world.call("/win/rollback", &rollback("r-2", "7", "never")).await;
        let other = r#"400 {"error":"original_transaction_id: of another kind"}"#;
        for (path, original) in [
            ("/win/rollback", "b-1"),
            ("/bet/rollback", "w-1"),
            ("/bet/rollback", "r-1"),
            ("/win/rollback", "19flip/r-1"),
            ("/bet/rollback", "never"),
        ] {
            assert_eq!(world.call(path, &rollback("x-1", "7", original)).await, other, "{path} {original}");
        }
        assert_eq!(kept(world).await, 5, "two moves, two rollbacks and a tombstone");
        assert_eq!(world.call("/win/rollback", &rollback("x-1", "7", "w-1")).await, applied("x-1", "12.00", "10.00"));
    })
    .await;
}

#[tokio::test]
async fn a_rollback_and_its_bet_at_once_leave_the_balance_as_it_was_whichever_comes_first() {
    for turn in 0..12 {
        check_wallet("", async |world| {
            world.fund("7", "10").await;
            let other = world.redeployed(&[]).await;
            let (bet, rollback) = (bet("b-1", "7", "4"), rollback("r-1", "7", "b-1"));
            let place = async || world.call("/bet/debit", &bet).await;
            let undo = async || call_on(&other, "/bet/rollback", &rollback).await;
            let (placed, undone) = match turn % 2 {
                0 => futures_util::future::join(place(), undo()).await,
                _ => {
                    let (undone, placed) = futures_util::future::join(undo(), place()).await;
                    (placed, undone)
                }
            };
            match placed.as_str() {
                answer if answer == again(LATE) => assert_eq!(undone, applied("r-1", "10.00", "10.00")),
                answer => {
                    assert_eq!(answer, applied("b-1", "10.00", "6.00"));
                    assert_eq!(undone, applied("r-1", "6.00", "10.00"));
                }
            }
            assert_eq!(world.balance("7").await, "10");
        })
        .await;
    }
}

#[tokio::test]
async fn many_rollbacks_of_one_bet_at_once_move_it_back_once_and_hear_the_same() {
    check_wallet("", async |world| {
        world.fund("7", "10").await;
        world.call("/bet/debit", &bet("b-1", "7", "4")).await;
        let other = world.redeployed(&[]).await;
        let calls = (0..12).map(|number| {
            let process = if number % 2 == 0 { &world.app } else { &other };
            async move {
                loop {
                    let call = rollback(&format!("r-{number}"), "7", "b-1");
                    let answer = call_on(process, "/bet/rollback", &call).await;
                    if !answer.starts_with("503") {
                        return answer;
                    }
                }
            }
        });
        let answers = futures_util::future::join_all(calls).await;
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
        assert!(answers[0].contains(r#""balance_before":6.00,"balance_after":10.00"#), "{answers:?}");
        assert_eq!((world.balance("7").await, kept(world).await), ("10".into(), 13));
    })
    .await;
}

#[tokio::test]
async fn a_bet_is_taken_back_in_the_currency_in_which_it_was_placed() {
    check_wallet("", async |world| {
        world.fund("7", "10").await;
        world.call("/bet/debit", &bet("b-1", "7", "4")).await;
        let other = world.redeployed(&[("CURRENCY", "gems")]).await;
        let unknown = r#"404 {"error":"player not found"}"#;
        assert_eq!(call_on(&other, "/bet/debit", &bet("b-2", "7", "4")).await, unknown, "there are no gems");
        let undone = call_on(&other, "/bet/rollback", &rollback("r-1", "7", "b-1")).await;
        assert_eq!(undone, applied("r-1", "6.00", "10.00"));
        assert_eq!(world.balance("7").await, "10");
    })
    .await;
}

#[tokio::test]
async fn a_rollback_names_only_what_its_own_network_did() {
    let document = "[networks.19flip]\n[networks.19flip-b]\nbase = \"19flip\"\n\
                    network = { name = \"B\", evidence = \"experimental\" }";
    let secrets = json!({"standard": SECRET, "19flip": SECRET, "19flip-b": SECRET}).to_string();
    let variables = [("NETWORKS", "standard,19flip,19flip-b"), ("NETWORK_SECRETS", secrets.as_str())];
    check_document_with(document, &variables, async |world| {
        world.fund("7", "10").await;
        assert_eq!(world.call("/19flip/bet/debit", &bet("b-1", "7", "1")).await, applied("b-1", "10.00", "9.00"));
        // The same key of another network is another one, and so is our id of it.
        for (key, original) in [("r-1", "b-1"), ("r-2", "19flip/b-1")] {
            let answer = world.call("/19flip-b/bet/rollback", &rollback(key, "7", original)).await;
            assert_eq!(answer, applied(key, "9.00", "9.00").replace("19flip/", "19flip-b/"));
        }
        assert_eq!(
            world.call("/19flip/bet/rollback", &rollback("r-1", "7", "b-1")).await,
            applied("r-1", "9.00", "10.00")
        );
    })
    .await;
}
