//! What every path costs: requests, counted by the proxy, and capacity, as the embedded DynamoDB counts it.

use crate::world::{World, check, conversion, line, query, signed};

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
        assert_cost(world, "a conflict, which opens a case", 2, 1.0);
        world.tell("c2", "2", "42", "10").await;
        assert_cost(world, "a reversal without its credit: two entries and a case", 2, 10.0);
        world.tell("c2", "1", "42", "10").await;
        assert_cost(world, "a late credit, which opens a case", 2, 1.0);
        world.tell("c3", "1", "42", "0").await;
        assert_cost(world, "a credit of nothing", 1, 4.0);

        world.tell("c4", "1", "42", "10").await;
        world.spend("42", "10").await;
        world.proxy.take();
        world.tell("c4", "2", "42", "10").await;
        assert_cost(world, "an overdrawn reversal: the plain one refused, then one with a case", 3, 8.0);
    })
    .await;
}

#[tokio::test]
async fn a_rejected_request_costs_nothing() {
    check(async |world| {
        world.query("forged").await;
        world.tell("{trans_id}", "1", "42", "10").await;
        world.app.handle("{}", crate::world::PATIENCE).await;
        assert_cost(world, "rejections", 0, 0.0);
    })
    .await;
}

#[tokio::test]
async fn the_largest_possible_entry_stays_under_1_kb() {
    check(async |world| {
        let (id, user) = ("i".repeat(128), "u".repeat(128));
        let amount = format!("999999999999999.{}", "9".repeat(48));
        let other = "v".repeat(128);
        let long = "x".repeat(2000);
        let extras = [("offer_id", &*long), ("offer_name", &*long), ("goal_id", &*long), ("payout", &*amount)];
        for (status, user) in [("1", &user), ("2", &other)] {
            let callback = signed(&query(&[&conversion(&id, status, user, &amount)[..], &extras].concat()));
            let event = crate::world::event("GET", "/standard", &callback)
                .replace("192.0.2.7", "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255 and more");
            assert_eq!(line(&world.app.handle(&event, crate::world::PATIENCE).await), "200 ok");
        }
        for row in world.entries().await {
            let size: usize = row.iter().map(|(name, value)| name.len() + value.len()).sum();
            // Numbers are stored shorter than their text, and the longest name of a network is 24 bytes, three times
            // here.
            let size = size + 3 * (24 - "standard".len());
            assert!(size <= 1024, "{size} bytes: {row:?}");
        }
    })
    .await;
}
