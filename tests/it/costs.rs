//! What every path costs: requests, counted by the proxy, and capacity, as the embedded DynamoDB counts it.

use serde_json::{Value, json};

use crate::wallet::{bet, rollback, win, with};
use crate::world::{World, check, check_document, check_wallet};

/// Requests and write units of what was sent since the last look.
fn cost(world: &World) -> (usize, f64) {
    let requests = world.proxy.take();
    let units = requests.iter().fold(0.0, |sum, request| sum + request.write_units());
    (requests.len(), units)
}

/// Asserts the requests and, where capacity is counted as AWS does, the write units.
#[track_caller]
fn assert_cost(world: &World, what: &str, requests: usize, units: f64) {
    let (counted, consumed) = cost(world);
    assert_eq!(counted, requests, "requests of {what}");
    if world.is_embedded() {
        assert_eq!(consumed, units, "write units of {what}");
    }
}

#[tokio::test]
async fn each_path_costs_the_requests_and_write_units_that_the_readme_says() {
    check(async |world| {
        // Two write units for each item of a transaction, one for each of the entry's two indexes.
        world.tell("c1", "1", "42", "10").await;
        assert_cost(world, "a credit", 1, 6.0);
        world.tell("c1", "1", "42", "10").await;
        assert_cost(world, "a duplicate", 1, 0.0);
        world.tell("c1", "2", "42", "10").await;
        assert_cost(world, "a reversal", 2, 6.0);
        world.tell("c1", "2", "42", "10").await;
        assert_cost(world, "a duplicate reversal", 1, 0.0);
        world.tell("c1", "1", "42", "11").await;
        assert_cost(world, "a conflict, which opens a case", 2, 2.0);
        world.tell("c2", "2", "42", "10").await;
        assert_cost(world, "a reversal without its credit: two entries and a case", 2, 11.0);
        world.tell("c2", "1", "42", "10").await;
        assert_cost(world, "a late credit, which opens a case", 2, 2.0);
        world.tell("c3", "1", "42", "0").await;
        assert_cost(world, "a credit of nothing", 1, 4.0);

        world.tell("c4", "1", "42", "10").await;
        world.spend("42", "10").await;
        world.proxy.take();
        world.tell("c4", "2", "42", "10").await;
        assert_cost(world, "an overdrawn reversal: the plain one refused, then one with a case", 3, 9.0);
    })
    .await;
}

#[tokio::test]
async fn what_is_held_costs_its_row_in_the_queue_and_a_day_that_is_counted_one_request_more_at_its_begin() {
    let rules = "[networks.standard]\nhold = \"1ms\"\ncap = \"50\"\ncap_per_day = \"60\"\nunknown_users = \"require\"";
    check_document(rules, async |world| {
        world.make_account("42").await;
        world.tell("c1", "1", "42", "10").await;
        assert_cost(world, "a held credit, the first of its day: the day is not begun, then it is", 2, 8.0);
        world.tell("c2", "1", "42", "10").await;
        assert_cost(world, "a held credit", 1, 8.0);
        world.tell("c2", "2", "42", "10").await;
        assert_cost(world, "its reversal", 2, 8.0);
        world.tell("c3", "1", "42", "51").await;
        assert_cost(world, "a credit above the cap: entry, account, hold and case", 1, 11.0);
        world.tell("c4", "1", "43", "51").await;
        assert_cost(world, "a credit for a user without an account: the same, and a look for the account", 2, 13.0);
        world.release(jiff::Timestamp::now()).await;
        let posts = world.proxy.take().into_iter().filter(|request| request.operation == "TransactWriteItems");
        let units: Vec<_> = posts.map(|request| request.write_units()).collect();
        assert_eq!(units.len(), 1, "a release is one transaction");
        assert!(!world.is_embedded() || units == [8.0], "{units:?}");
    })
    .await;
}

/// Calls the wallet, and tells what that cost.
async fn call(world: &World, path: &str, call: &Value) -> (String, usize, f64) {
    world.proxy.take();
    let answer = world.call(path, call).await;
    let (requests, units) = cost(world);
    (answer[..3].to_owned(), requests, if world.is_embedded() { units } else { 0.0 })
}

#[tokio::test]
async fn each_call_of_a_wallet_costs_one_request_where_its_player_was_seen_and_two_where_not() {
    let finish = |key: &str| json!({"idempotency_key": key, "round_id": 1});
    let of = |player: &str, call: Value| with(call, json!({"player_id": player}));
    check_wallet("", async |world| {
        for player in ["7", "8"] {
            world.fund(player, "100").await;
        }
        // Two for each item of a transaction: the entry, the account, the player's part in the round, and of a rollback the
        // mark on what it takes back. One for each index that an entry is in: two, or three where it names a round.
        for (what, path, request, status, requests, units) in [
            ("a bet of a player whom nobody saw", "/bet/debit", bet("b-1", "7", "1"), "200", 2, 9.0),
            ("a bet of a player whom this process saw", "/bet/debit", bet("b-2", "7", "1"), "200", 1, 9.0),
            ("a bet again", "/bet/debit", bet("b-2", "7", "1"), "200", 1, 0.0),
            ("a declined bet", "/bet/debit", bet("b-3", "7", "1000"), "402", 1, 7.0),
            ("a declined bet again", "/bet/debit", bet("b-3", "7", "1000"), "402", 1, 0.0),
            ("a win", "/win/credit", win("w-1", "7", "5"), "200", 1, 9.0),
            ("a rollback of a bet", "/bet/rollback", rollback("r-1", "7", "b-1"), "200", 2, 14.0),
            ("a rollback again", "/bet/rollback", rollback("r-1", "7", "b-1"), "200", 2, 0.0),
            ("a second rollback of it", "/bet/rollback", rollback("r-2", "7", "b-1"), "200", 2, 5.0),
            ("a rollback of a win", "/win/rollback", rollback("r-3", "7", "w-1"), "200", 2, 12.0),
            ("a rollback of a declined bet", "/bet/rollback", rollback("r-4", "7", "b-3"), "200", 2, 12.0),
            ("a rollback of a bet never seen", "/bet/rollback", rollback("r-5", "7", "never"), "200", 2, 14.0),
            ("the late bet", "/bet/debit", bet("never", "7", "1"), "409", 1, 0.0),
            ("a known key with something else", "/bet/debit", bet("b-2", "7", "2"), "200", 2, 2.0),
            ("a round finished for its player", "/round/finish", of("7", finish("f-1")), "200", 1, 9.0),
            ("a win after that", "/win/credit", win("w-2", "7", "5"), "200", 2, 10.0),
            ("a win of a player whom nobody saw, without a bet", "/win/credit", win("w-3", "8", "5"), "200", 3, 10.0),
            ("a bet of an unknown player", "/bet/debit", bet("b-4", "nobody", "1"), "404", 2, 0.0),
            ("a balance", "/balance", json!({"player_id": "7"}), "200", 1, 0.0),
            ("a ping", "/ping", json!({}), "200", 0, 0.0),
            ("a bet with a bad amount", "/bet/debit", bet("b-5", "7", "-1"), "400", 0, 0.0),
        ] {
            let units = if world.is_embedded() { units } else { 0.0 };
            assert_eq!(call(world, path, &request).await, (status.to_owned(), requests, units), "{what}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_round_finished_for_all_costs_a_look_at_each_of_its_parts_and_a_write_for_each_player() {
    check_wallet("", async |world| {
        for player in ["7", "8", "9"] {
            world.fund(player, "100").await;
            world.call("/bet/debit", &bet(&format!("b-{player}"), player, "1")).await;
        }
        let finish = json!({"idempotency_key": "f-1", "round_id": 1});
        let shards = usize::try_from(postback::store::SHARDS).unwrap();
        let (_, requests, units) = call(world, "/round/finish", &finish).await;
        assert_eq!(requests, 1 + shards + 3 + 1, "whether the key is known, the parts, three players, the entry");
        assert!(!world.is_embedded() || units == 3.0 + 5.0, "{units}");
        let again = call(world, "/round/finish", &finish).await;
        assert_eq!(again, ("200".to_owned(), 1, 0.0), "known: nothing else is looked at");
    })
    .await;
}

#[tokio::test]
async fn a_bet_whose_balance_this_process_remembers_wrongly_costs_one_request_more() {
    check_wallet("", async |world| {
        world.fund("7", "100").await;
        let other = world.redeployed(&[]).await;
        world.call("/bet/debit", &bet("b-1", "7", "1")).await;
        crate::world::call_on(&other, "/bet/debit", &bet("b-2", "7", "1")).await;
        assert_eq!(call(world, "/bet/debit", &bet("b-3", "7", "1")).await.1, 2);
        assert_eq!(call(world, "/bet/debit", &bet("b-4", "7", "1")).await.1, 1);
    })
    .await;
}

#[tokio::test]
async fn a_rejected_request_costs_nothing() {
    check(async |world| {
        world.query("forged").await;
        world.tell("{trans_id}", "1", "42", "10").await;
        world.app.offerwall("{}", crate::world::PATIENCE).await;
        assert_cost(world, "rejections", 0, 0.0);
    })
    .await;
}
