//! The wallet contract: byte-exact answers, repeats, rollbacks in any order, doubtful wins, and garbage.
//!
//! Calls are signed as the aggregator signs them and go through the real handler. Nothing here knows how an entry is laid
//! out; what moved is read from the tables as finance would.

use serde_json::{Value, json};

use crate::world::{World, check_wallet};

#[tokio::test]
async fn a_round_is_played_and_every_answer_is_exact_to_the_byte() {
    check_wallet("", async |world| {
        world.fund("7", "100").await;
        let bet = json!({"idempotency_key": "b-1", "player_id": "7", "amount": 10.5, "round_id": 1, "game_id": ""});
        let answer = r#"200 {"transaction_id":"19flip/b-1","balance_before":100.00,"balance_after":89.50,"status":"SUCCESS"}"#;
        assert_eq!(world.call("/bet/debit", &bet).await, answer);
        assert_eq!(world.call("/bet/debit", &bet).await, format!("{answer} (replayed)"));
        let win = json!({"idempotency_key": "w-1", "player_id": "7", "amount": "21", "round_id": "1", "game_id": "x"});
        let answer = r#"200 {"transaction_id":"19flip/w-1","balance_before":89.50,"balance_after":110.50,"status":"SUCCESS"}"#;
        assert_eq!(world.call("/win/credit", &win).await, answer);
        let rollback = |key: &str, original: &str| {
            json!({"idempotency_key": key, "player_id": "7", "original_transaction_id": original})
        };
        let answer = r#"200 {"transaction_id":"19flip/r-1","balance_before":110.50,"balance_after":121.00,"status":"SUCCESS"}"#;
        assert_eq!(world.call("/bet/rollback", &rollback("r-1", "b-1")).await, answer);
        assert_eq!(world.call("/bet/rollback", &rollback("r-2", "19flip/b-1")).await, answer);
        assert_eq!(world.call("/bet/rollback", &rollback("r-2", "b-1")).await, format!("{answer} (replayed)"));
        let large = json!({"idempotency_key": "b-2", "player_id": "7", "amount": 1000, "round_id": 2});
        let declined = r#"402 {"error":"insufficient balance","balance":121.00}"#;
        assert_eq!(world.call("/bet/debit", &large).await, declined);
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

fn _unused(_: &World, _: Value) {}
