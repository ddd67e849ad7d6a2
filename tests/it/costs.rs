//! What every path costs: requests, counted by the proxy, and capacity, as the embedded DynamoDB counts it.

use crate::world::{World, check, check_document};

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
