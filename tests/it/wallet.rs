//! The wallet contract: byte-exact answers to everything that an aggregator asks for, and what is kept of them.
//!
//! Calls are signed as the aggregator signs them and go through the real handler. Nothing here knows how an entry is laid
//! out; what moved is read from the tables as finance would.

use postback::cashier::Action;
use postback::ledger::Case;
use postback::money::Amount;
use serde_json::{Value, json};

use crate::world::{PATIENCE, World, call_event, check_wallet};

pub mod model; // what should be true of players and keys: the oracle
mod refusals; // what asks for nothing: garbage, forgeries, paths
mod repeats; // the source document's table of repeats, its timeline, and copies at once
mod rollbacks; // what is taken back, in any order
pub mod simulation; // random operations of many players with faults against the model
mod transport; // lost replies, resets, stalls, contention, under every kind of call
mod wins; // wins in doubtful rounds, and closed accounts

/// A bet in round 1 and no game.
pub fn bet(key: &str, player: &str, amount: &str) -> Value {
    json!({"idempotency_key": key, "player_id": player, "amount": amount, "round_id": 1, "game_id": ""})
}

/// A win in the same round.
pub fn win(key: &str, player: &str, amount: &str) -> Value {
    bet(key, player, amount)
}

/// A rollback of what is named so: by its key, or by our id of it.
pub fn rollback(key: &str, player: &str, original: &str) -> Value {
    json!({"idempotency_key": key, "player_id": player, "original_transaction_id": original})
}

/// The same request with these fields set, or changed.
pub fn with(mut request: Value, fields: Value) -> Value {
    let Value::Object(fields) = fields else { panic!("fields are an object") };
    request.as_object_mut().expect("a request is an object").extend(fields);
    request
}

/// The answer to what was applied under this key.
pub fn applied(key: &str, before: &str, after: &str) -> String {
    format!(
        r#"200 {{"transaction_id":"19flip/{key}","balance_before":{before},"balance_after":{after},"status":"SUCCESS"}}"#
    )
}

/// The answer to what would take more than this balance.
pub fn declined(balance: &str) -> String {
    format!(r#"402 {{"error":"insufficient balance","balance":{balance}}}"#)
}

/// The answer to what could not be settled.
pub const TRY_AGAIN: &str = r#"503 {"error":"try again"}"#;

/// An answer that is given again.
pub fn again(answer: &str) -> String {
    format!("{answer} (replayed)")
}

/// How many entries of calls there are.
async fn kept(world: &World) -> usize {
    world.entries().await.iter().filter(|row| row["status"] == "operation").count()
}

#[tokio::test]
async fn a_round_is_played_and_every_answer_is_exact_to_the_byte() {
    check_wallet("", async |world| {
        world.fund("7", "100").await;
        let bet = json!({"idempotency_key": "b-1", "player_id": "7", "amount": 10.5, "round_id": 1, "game_id": ""});
        let answer =
            r#"200 {"transaction_id":"19flip/b-1","balance_before":100.00,"balance_after":89.50,"status":"SUCCESS"}"#;
        assert_eq!(world.call("/bet/debit", &bet).await, answer);
        assert_eq!(world.call("/bet/debit", &bet).await, again(answer));
        let win = json!({"idempotency_key": "w-1", "player_id": "7", "amount": "21", "round_id": "1", "game_id": "x"});
        let answer =
            r#"200 {"transaction_id":"19flip/w-1","balance_before":89.50,"balance_after":110.50,"status":"SUCCESS"}"#;
        assert_eq!(world.call("/win/credit", &win).await, answer);
        let answer = applied("r-1", "110.50", "121.00");
        assert_eq!(world.call("/bet/rollback", &rollback("r-1", "7", "b-1")).await, answer);
        assert_eq!(world.call("/bet/rollback", &rollback("r-2", "7", "19flip/b-1")).await, answer);
        assert_eq!(world.call("/bet/rollback", &rollback("r-2", "7", "b-1")).await, again(&answer));
        let large = json!({"idempotency_key": "b-2", "player_id": "7", "amount": 1000, "round_id": 2});
        assert_eq!(world.call("/bet/debit", &large).await, declined("121.00"));
        let finish = json!({"idempotency_key": "f-1", "round_id": 2});
        assert_eq!(
            world.call("/round/finish", &finish).await,
            r#"200 {"transaction_id":"19flip/f-1","status":"SUCCESS"}"#
        );
        assert_eq!(world.call("/ping", &json!({})).await, r#"200 {"status":"SUCCESS"}"#);
        assert_eq!(
            world.call("/balance", &json!({"player_id": 7})).await,
            r#"200 {"balance":121.00,"currency":"coins"}"#
        );
        assert!(world.case_ids().await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_bet_larger_than_the_balance_hears_402_under_its_key_for_ever_whatever_money_came_in() {
    check_wallet("", async |world| {
        world.fund("7", "10").await;
        let large = bet("b-1", "7", "10.01");
        assert_eq!(world.call("/bet/debit", &large).await, declined("10.00"));
        world.cash("7", "more", Action::Deposit(Amount::stored("90").unwrap())).await;
        assert_eq!(world.call("/bet/debit", &large).await, again(&declined("10.00")));
        assert_eq!(world.call("/win/credit", &win("w-1", "7", "5")).await, applied("w-1", "100.00", "105.00"));
        assert_eq!(world.call("/bet/debit", &large).await, again(&declined("10.00")));
        assert_eq!(world.balance("7").await, "105");
        // Under another key it is another bet.
        assert_eq!(world.call("/bet/debit", &bet("b-2", "7", "10.01")).await, applied("b-2", "105.00", "94.99"));
    })
    .await;
}

#[tokio::test]
async fn a_bet_of_all_there_is_leaves_nothing_and_the_next_one_is_declined() {
    check_wallet("", async |world| {
        world.fund("7", "0.3").await;
        assert_eq!(world.call("/bet/debit", &bet("b-1", "7", "0.1")).await, applied("b-1", "0.30", "0.20"));
        assert_eq!(world.call("/bet/debit", &bet("b-2", "7", "0.20")).await, applied("b-2", "0.20", "0.00"));
        assert_eq!(world.call("/bet/debit", &bet("b-3", "7", "0.01")).await, declined("0.00"));
        assert_eq!(world.call("/bet/debit", &bet("b-4", "7", "0")).await, applied("b-4", "0.00", "0.00"));
    })
    .await;
}

#[tokio::test]
async fn an_unknown_player_is_404_and_nothing_is_kept_so_that_the_same_call_settles_once_the_player_exists() {
    check_wallet("", async |world| {
        let unknown = r#"404 {"error":"player not found"}"#;
        let finish = json!({"idempotency_key": "f-1", "player_id": "7", "round_id": 1});
        let calls = [
            ("/bet/debit", bet("b-1", "7", "1")),
            ("/win/credit", win("w-1", "7", "2")),
            ("/bet/rollback", rollback("r-1", "7", "never")),
            ("/round/finish", finish),
        ];
        for (path, call) in &calls {
            assert_eq!(world.call(path, call).await, unknown, "{path}");
            assert_eq!(world.call(path, call).await, unknown, "{path}");
        }
        assert_eq!(world.call("/balance", &json!({"player_id": "7"})).await, unknown);
        assert!(world.entries().await.is_empty(), "{:?}", world.entries().await);
        world.fund("7", "10").await;
        let answers = [
            applied("b-1", "10.00", "9.00"),
            applied("w-1", "9.00", "11.00"),
            applied("r-1", "11.00", "11.00"),
            r#"200 {"transaction_id":"19flip/f-1","status":"SUCCESS"}"#.to_owned(),
        ];
        for ((path, call), answer) in calls.iter().zip(answers) {
            assert_eq!(world.call(path, call).await, answer);
        }
    })
    .await;
}

#[tokio::test]
async fn a_repeat_is_the_stored_answer_byte_for_byte_and_says_so_in_a_header() {
    check_wallet("", async |world| {
        world.fund("7", "10").await;
        let event = call_event("/bet/debit", &bet("b-1", "7", "4").to_string());
        let answer = async || serde_json::to_value(world.app.wallet(&event, PATIENCE).await.answer).unwrap();
        let first = answer().await;
        assert_eq!(first["headers"], json!({"content-type": "application/json"}));
        world.call("/win/credit", &win("w-1", "7", "100")).await;
        let second = answer().await;
        assert_eq!(second["headers"], json!({"content-type": "application/json", "idempotent-replayed": "true"}));
        assert_eq!((&first["statusCode"], &first["body"]), (&second["statusCode"], &second["body"]));
    })
    .await;
}

#[tokio::test]
async fn a_known_key_with_something_else_hears_its_answer_and_is_one_case_for_each_field() {
    check_wallet("", async |world| {
        for player in ["7", "8"] {
            world.fund(player, "100").await;
        }
        for key in ["b-0", "b-1", "b-2"] {
            world.call("/bet/debit", &bet(key, "8", "1")).await;
        }
        let answers = [applied("k-1", "100.00", "90.00"), applied("r-1", "97.00", "98.00")];
        assert_eq!(world.call("/bet/debit", &bet("k-1", "7", "10")).await, answers[0]);
        assert_eq!(world.call("/bet/rollback", &rollback("r-1", "8", "b-1")).await, answers[1]);
        let balances = world.balances().await;
        for (path, call, answer, case) in [
            ("/bet/debit", bet("k-1", "7", "11"), &answers[0], "k-1/operation/amount"),
            ("/bet/debit", bet("k-1", "8", "10"), &answers[0], "k-1/operation/user"),
            ("/win/credit", win("k-1", "7", "10"), &answers[0], "k-1/operation/kind"),
            ("/bet/debit", with(bet("k-1", "7", "10"), json!({"round_id": 2})), &answers[0], "k-1/operation/round"),
            ("/bet/rollback", rollback("r-1", "8", "b-2"), &answers[1], "r-1/operation/original"),
            ("/bet/rollback", rollback("r-1", "7", "b-1"), &answers[1], "r-1/operation/user"),
            ("/win/rollback", rollback("r-1", "8", "never"), &answers[1], "r-1/operation/kind"),
        ] {
            let case = format!("conflict/19flip/{case}");
            for opened in [vec![case.clone()], Vec::new()] {
                let handled = world.app.wallet(&call_event(path, &call.to_string()), PATIENCE).await;
                assert_eq!(crate::world::call_line(&handled), again(answer), "{path} {call}");
                assert_eq!(handled.cases.iter().map(Case::id).collect::<Vec<_>>(), opened, "{path} {call}");
            }
        }
        assert_eq!(world.case_ids().await.len(), 7);
        assert_eq!(world.balances().await, balances);
        let cases = world.cases().await;
        let told = cases.iter().find(|case| case["case_id"] == "conflict/19flip/k-1/operation/amount").unwrap();
        assert!(
            told["detail"].starts_with("The key came again with another amount: 10 is recorded, 11 was sent"),
            "{told:?}"
        );
        assert_eq!((told["user_id"].as_str(), told["state"].as_str()), ("7", "open"));
    })
    .await;
}

#[tokio::test]
async fn an_amount_or_a_round_in_another_form_and_a_game_that_was_filled_in_are_no_difference() {
    check_wallet("", async |world| {
        world.fund("7", "100").await;
        let bet = json!({"idempotency_key": "b-1", "player_id": 7, "amount": 10, "round_id": 4711, "game_id": ""});
        let answer = applied("b-1", "100.00", "90.00");
        assert_eq!(world.call("/bet/debit", &bet).await, answer);
        for fields in [
            json!({"round_id": "4711"}),
            json!({"game_id": "flip-jet"}),
            json!({"game_id": null}),
            json!({"game_id": 12}),
            json!({"player_id": "7"}),
            json!({"amount": 10.0}),
            json!({"amount": "10.00"}),
            json!({"currency": "coins"}),
            json!({"session": "another", "timestamp": 1}),
        ] {
            assert_eq!(world.call("/bet/debit", &with(bet.clone(), fields.clone())).await, again(&answer), "{fields}");
        }
        assert!(world.case_ids().await.is_empty());
        assert_eq!(world.balance("7").await, "90");
    })
    .await;
}

#[tokio::test]
async fn one_key_is_one_movement_across_players_rounds_and_paths() {
    check_wallet("", async |world| {
        for player in ["7", "8"] {
            world.fund(player, "100").await;
        }
        let answer = applied("k-1", "100.00", "105.00");
        assert_eq!(world.call("/win/credit", &win("k-1", "7", "5")).await, answer);
        let other = bet("other", "8", "1");
        world.call("/bet/debit", &other).await;
        for (path, call) in [
            ("/win/credit", win("k-1", "7", "5")),
            ("/bet/debit", bet("k-1", "7", "5")),
            ("/bet/debit", bet("k-1", "8", "500")),
            ("/win/credit", with(win("k-1", "8", "1"), json!({"round_id": "another"}))),
            ("/bet/rollback", rollback("k-1", "8", "other")),
            ("/win/rollback", rollback("k-1", "8", "other")),
            ("/bet/rollback", rollback("k-1", "nobody", "never")),
            ("/bet/debit", bet("k-1", "nobody", "1")),
            ("/round/finish", json!({"idempotency_key": "k-1", "round_id": 1})),
            ("/round/finish", json!({"idempotency_key": "k-1", "round_id": 1, "player_id": "8"})),
        ] {
            assert_eq!(world.call(path, &call).await, again(&answer), "{path} {call}");
        }
        assert_eq!(world.balances().await, [("7".into(), "105".into()), ("8".into(), "99".into())].into());
        assert_eq!(kept(world).await, 2);
    })
    .await;
}

#[tokio::test]
async fn an_answer_is_of_the_true_balance_also_where_this_process_remembers_another() {
    check_wallet("", async |world| {
        world.fund("7", "100").await;
        let other = world.redeployed(&[]).await;
        assert_eq!(world.call("/bet/debit", &bet("b-1", "7", "1")).await, applied("b-1", "100.00", "99.00"));
        let far = crate::world::call_on(&other, "/bet/debit", &bet("b-2", "7", "98")).await;
        assert_eq!(far, applied("b-2", "99.00", "1.00"));
        assert_eq!(world.call("/bet/debit", &bet("b-3", "7", "2")).await, declined("1.00"));
        assert_eq!(world.call("/win/credit", &win("w-1", "7", "9")).await, applied("w-1", "1.00", "10.00"));
        let far = crate::world::call_on(&other, "/bet/debit", &bet("b-4", "7", "10")).await;
        assert_eq!(far, applied("b-4", "10.00", "0.00"), "it remembers 1");
    })
    .await;
}

#[tokio::test]
async fn a_balance_with_more_than_two_places_is_told_of_rounded_down_and_spent_exactly() {
    check_wallet("", async |world| {
        world.fund("7", "10.00999999").await;
        assert_eq!(world.call("/bet/debit", &bet("b-1", "7", "10.01")).await, declined("10.00"));
        assert_eq!(world.call("/bet/debit", &bet("b-2", "7", "10")).await, applied("b-2", "10.00", "0.00"));
        assert_eq!(world.call("/win/credit", &win("w-1", "7", "0.01")).await, applied("w-1", "0.00", "0.01"));
        assert_eq!(world.balance("7").await, "0.01999999");
        world.call("/bet/debit", &bet("b-3", "7", "0.01")).await;
        // Below zero it is what is owed that must not look smaller.
        assert_eq!(world.call("/win/rollback", &rollback("r-1", "7", "w-1")).await, applied("r-1", "0.00", "-0.01"));
        assert_eq!(world.balance("7").await, "-0.00000001");
    })
    .await;
}
