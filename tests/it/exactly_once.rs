//! The source document of the offerwall, line by line: its checklist, and every wrong way that it names, each shown to
//! be closed. Then races, and every shape of reversal.

use std::collections::BTreeSet;

use postback::config::Config;
use postback::handler::{App, Handled};
use postback::id::Network;
use postback::ledger::Case;
use postback::preset::Preset;

use crate::faults::Fault;
use crate::world::{PATIENCE, World, check, check_with, conversion, event, line, query, signed, signed_with};

async fn told(world: &World, id: &str, status: &str, user: &str, amount: &str) -> String {
    line(&world.tell(id, status, user, amount).await)
}

/// The ids of the cases that a call opened.
fn opened(handled: &Handled) -> Vec<String> {
    handled.cases.iter().map(Case::id).collect()
}

#[tokio::test]
async fn the_same_signed_callback_fired_twice_changes_the_balance_once_and_both_get_200() {
    check(async |world| {
        let callback = signed(&query(&conversion("c1", "1", "42", "10.50")));
        assert_eq!(line(&world.query(&callback).await), "200 ok");
        assert_eq!(line(&world.query(&callback).await), "200 ok (duplicate)");
        assert_eq!(world.balance("42").await, "10.5");
    })
    .await;
}

#[tokio::test]
async fn all_six_deliveries_of_a_conversion_pay_once() {
    check(async |world| {
        for attempt in 0..6 {
            let expected = if attempt == 0 { "200 ok" } else { "200 ok (duplicate)" };
            assert_eq!(told(world, "c1", "1", "42", "3").await, expected);
        }
        assert_eq!(world.balance("42").await, "3");
        assert_eq!(world.entries().await.len(), 1);
    })
    .await;
}

#[tokio::test]
async fn a_key_on_the_user_would_lose_the_second_offer_of_one_user() {
    check(async |world| {
        assert_eq!(told(world, "c1", "1", "42", "3").await, "200 ok");
        assert_eq!(told(world, "c2", "1", "42", "4").await, "200 ok");
        assert_eq!(world.balance("42").await, "7");
    })
    .await;
}

#[tokio::test]
async fn a_key_on_the_offer_would_lose_other_users_and_multi_reward_offers() {
    check(async |world| {
        for (id, user) in [("c1", "42"), ("c2", "43"), ("c3", "42")] {
            let offer = [("offer_id", "77")];
            let handled = world.postback(&[&conversion(id, "1", user, "5")[..], &offer].concat()).await;
            assert_eq!(line(&handled), "200 ok");
        }
        assert_eq!((world.balance("42").await, world.balance("43").await), ("10".into(), "5".into()));
    })
    .await;
}

#[tokio::test]
async fn a_key_on_the_timestamp_would_pay_every_attempt() {
    check(async |world| {
        for (timestamp, expected) in [("1", "200 ok"), ("2", "200 ok (duplicate)"), ("3", "200 ok (duplicate)")] {
            let mut parameters = conversion("c1", "1", "42", "5");
            parameters[4].1 = timestamp;
            assert_eq!(line(&world.postback(&parameters).await), expected);
        }
        assert_eq!(world.balance("42").await, "5");
    })
    .await;
}

#[tokio::test]
async fn a_key_on_trans_id_alone_would_lose_the_reversal_as_a_duplicate() {
    check(async |world| {
        assert_eq!(told(world, "c1", "1", "42", "5").await, "200 ok");
        assert_eq!(told(world, "c1", "2", "42", "5").await, "200 ok");
        assert_eq!(world.balance("42").await, "0");
        assert_eq!(world.entries().await.len(), 2);
    })
    .await;
}

#[tokio::test]
async fn a_check_before_the_write_would_lose_the_race_so_a_credit_never_reads() {
    check(async |world| {
        told(world, "c1", "1", "42", "5").await;
        told(world, "c1", "1", "42", "5").await;
        let operations: BTreeSet<_> = world.proxy.requests().iter().map(|request| request.operation.clone()).collect();
        assert_eq!(operations, BTreeSet::from(["TransactWriteItems".into()]));
    })
    .await;
}

#[tokio::test]
async fn a_409_on_a_duplicate_would_be_retried_so_a_duplicate_is_200() {
    check(async |world| {
        told(world, "c1", "1", "42", "5").await;
        assert_eq!(world.tell("c1", "1", "42", "5").await.answer.status, 200);
        assert_eq!(world.tell("c1", "1", "43", "6").await.answer.status, 200);
    })
    .await;
}

#[tokio::test]
async fn a_crash_between_recording_and_paying_is_impossible_because_they_are_one_request() {
    check_with(&[("TIME_BUDGET_MS", "1000")], async |world| {
        // The reply never comes: as if the process died before, or right after, the one commit.
        world.proxy.plan(|_| Fault::LostBeforeCommit);
        assert_eq!(told(world, "c1", "1", "42", "5").await, "503 try again");
        assert_eq!((world.entries().await.len(), world.balance("42").await), (0, "0".into()));
        world.proxy.plan(|_| Fault::LostAfterCommit);
        assert_eq!(told(world, "c1", "1", "42", "5").await, "503 try again");
        assert_eq!((world.entries().await.len(), world.balance("42").await), (1, "5".into()));
        world.proxy.plan(|_| Fault::None);
        assert_eq!(told(world, "c1", "1", "42", "5").await, "200 ok (duplicate)");
    })
    .await;
}

#[tokio::test]
async fn two_statuses_that_mean_the_same_are_the_same_reversal() {
    check(async |world| {
        told(world, "c1", "1", "42", "5").await;
        assert_eq!(told(world, "c1", "2", "42", "5").await, "200 ok");
        for status in ["-1", "reversed", "rejected", "chargeback"] {
            assert_eq!(told(world, "c1", status, "42", "5").await, "200 ok (duplicate)");
        }
        assert_eq!(world.balance("42").await, "0");
    })
    .await;
}

#[tokio::test]
async fn one_id_at_two_networks_is_two_conversations() {
    check(async |world| {
        let mut variables = world.variables.clone();
        variables.insert("NETWORK_SECRETS".into(), r#"{"one": "first", "two": "second"}"#.into());
        let mut config = Config::read(|name| variables.get(name).cloned()).unwrap();
        let standard = config.networks.remove(0);
        for name in ["one", "two"] {
            config.networks.push(Preset { network: Network::new(name).unwrap(), ..standard.clone() });
        }
        let app = App::start(config).await.unwrap();
        let told = async |path, secret, id| {
            let query = signed_with(secret, &query(&conversion(id, "1", "42", "5")));
            line(&app.offerwall(&event("GET", path, &query), PATIENCE).await)
        };
        assert_eq!(told("/one", "first", "c1").await, "200 ok");
        assert_eq!(told("/two", "second", "c1").await, "200 ok");
        assert_eq!(told("/one", "first", "c1").await, "200 ok (duplicate)");
        assert_eq!(told("/one", "second", "c2").await, "403 bad signature", "each network has secrets of its own");
        assert_eq!(told("/", "first", "c2").await, "404 no such network", "with two networks, `/` is neither");
        assert_eq!(told("/standard", "first", "c2").await, "404 no such network", "shipped, but not enabled here");
        let ids: Vec<_> = world.entries().await.into_iter().map(|row| row["trans_id"].clone()).collect();
        assert_eq!(ids, ["one/c1", "two/c1"]);
        assert_eq!(world.balance("42").await, "10");
    })
    .await;
}

#[tokio::test]
async fn a_conflict_opens_one_case_however_often_it_repeats() {
    check(async |world| {
        told(world, "c1", "1", "42", "5").await;
        for (user, amount) in [("42", "6"), ("42", "6"), ("43", "5"), ("42", "7"), ("43", "6")] {
            assert_eq!(told(world, "c1", "1", user, amount).await, "200 ok (duplicate)");
        }
        let cases = world.cases().await;
        // Another amount is one fact, another user is another.
        assert_eq!(cases.len(), 2);
        assert_eq!(cases[1]["case_id"], "conflict/standard/c1/credit/user");
        assert_eq!(cases[0]["case_id"], "conflict/standard/c1/credit/amount");
        assert_eq!((cases[0]["state"].as_str(), cases[0]["user_id"].as_str()), ("open", "42"));
        assert!(
            cases[0]["detail"].starts_with("Came again with another amount: 5 is recorded, 6 was sent"),
            "{:?}",
            cases[0]
        );
        assert_eq!(world.balances().await, [("42".to_owned(), "5".to_owned())].into());
    })
    .await;
}

#[tokio::test]
async fn fifty_copies_at_once_pay_once_and_all_get_200() {
    check(async |world| {
        let callback = &signed(&query(&conversion("c1", "1", "42", "10.50")));
        let answers = at_once((0..50).map(|_| async move { line(&world.query(callback).await) })).await;
        assert_eq!(answers.iter().filter(|answer| *answer == "200 ok").count(), 1, "{answers:?}");
        assert_eq!(answers.iter().filter(|answer| *answer == "200 ok (duplicate)").count(), 49, "{answers:?}");
        assert_eq!(world.balance("42").await, "10.5");
    })
    .await;
}

#[tokio::test]
async fn two_hundred_credits_to_one_user_at_once_all_count() {
    check(async |world| {
        let answers = at_once((0..200).map(|number| async move {
            // A network sends again what met too much contention.
            for _ in 0..5 {
                let answer = told(world, &format!("c{number}"), "1", "42", "1.01").await;
                if answer != "503 try again" {
                    return answer;
                }
            }
            "never answered".to_owned()
        }))
        .await;
        assert!(answers.iter().all(|answer| answer.starts_with("200 ok")), "{answers:?}");
        assert_eq!(world.balance("42").await, "202");
        assert_eq!(world.entries().await.len(), 200);
    })
    .await;
}

#[tokio::test]
async fn a_credit_and_its_reversal_that_race_leave_nothing_whoever_is_first() {
    check(async |world| {
        for number in 0..40 {
            let id = &format!("c{number}");
            let credit = async || told(world, id, "1", "42", "5").await;
            let reversal = async || told(world, id, "2", "42", "5").await;
            let (first, second) = match number % 2 {
                0 => tokio::join!(credit(), reversal()),
                _ => tokio::join!(reversal(), credit()),
            };
            assert_eq!((first.as_str(), second.as_str()), ("200 ok", "200 ok"));
            assert_eq!(world.balance("42").await, "0");
        }
        assert_eq!(world.entries().await.len(), 80);
    })
    .await;
}

#[tokio::test]
async fn a_credit_that_lands_between_the_read_and_the_write_of_its_reversal_is_reversed() {
    check_with(&[("TIME_BUDGET_MS", "3500")], async |world| {
        let credit = signed(&query(&conversion("c1", "1", "42", "5")));
        // The reversal's read finds nothing; before its write arrives, the credit does.
        world.proxy.script([Fault::None, Fault::Overtaken]);
        let (reversed, credited) = tokio::join!(told(world, "c1", "2", "42", "5"), async {
            while world.proxy.requests().len() < 2 {
                tokio::task::yield_now().await;
            }
            line(&world.query(&credit).await)
        });
        assert_eq!((reversed.as_str(), credited.as_str()), ("200 ok", "200 ok"));
        assert_eq!(world.balance("42").await, "0");
        let voids: Vec<_> = world.entries().await.iter().map(|row| row.contains_key("void")).collect();
        assert_eq!(voids, [false, false]);
    })
    .await;
}

#[tokio::test]
async fn a_reversal_takes_what_was_credited_whatever_it_carries() {
    check(async |world| {
        for (id, amount) in [("c1", "-5"), ("c2", "5"), ("c3", "999999999999999999"), ("c4", "0"), ("c5", "-0.01")] {
            told(world, id, "1", "42", "5.55").await;
            assert_eq!(told(world, id, "2", "42", amount).await, "200 ok");
            assert_eq!(world.balance("42").await, "0");
            let rows = world.entries().await;
            let row = rows
                .iter()
                .find(|row| row["trans_id"] == format!("standard/{id}") && row["status"] == "reversal")
                .unwrap();
            assert_eq!((row["amount"].as_str(), row["amount_received"].as_str()), ("-5.55", amount));
        }
        assert!(world.cases().await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_reversal_of_spent_coins_goes_below_zero_with_a_case_and_later_credits_repay() {
    check(async |world| {
        told(world, "c1", "1", "42", "10").await;
        told(world, "c2", "1", "42", "5").await;
        world.spend("42", "6").await;
        // Nine are left: the first reversal still finds its five, the second does not find its ten.
        assert_eq!(told(world, "c2", "2", "42", "5").await, "200 ok");
        assert!(world.cases().await.is_empty());
        let handled = world.tell("c1", "2", "42", "10").await;
        assert_eq!((line(&handled).as_str(), handled.cases.len()), ("200 ok", 1));
        assert_eq!(world.balance("42").await, "-6");
        let cases = world.cases().await;
        assert_eq!(cases.len(), 1);
        assert_eq!(cases[0]["case_id"], "overdrawn/standard/c1/reversal");
        assert_eq!((cases[0]["amount"].as_str(), cases[0]["user_id"].as_str()), ("-10", "42"));
        told(world, "c4", "1", "42", "8").await;
        assert_eq!(world.balance("42").await, "2");
        assert_eq!(told(world, "c1", "2", "42", "10").await, "200 ok (duplicate)");
        assert_eq!(world.case_ids().await.len(), 1);
    })
    .await;
}

#[tokio::test]
async fn a_reversal_without_its_credit_is_recorded_and_the_late_credit_moves_nothing() {
    check(async |world| {
        let reversal = [&conversion("c1", "2", "42", "5")[..], &[("payout", "0.5")]].concat();
        let handled = world.postback(&reversal).await;
        assert_eq!((line(&handled).as_str(), handled.outcome), ("200 ok", "reversed_unseen"));
        assert_eq!(opened(&handled), ["reversal_without_credit/standard/c1/reversal"]);
        assert_eq!(world.case_ids().await, opened(&handled));
        let payouts: Vec<_> = world.entries().await.iter().map(|row| row.get("payout_usd").cloned()).collect();
        assert_eq!(
            payouts,
            [None, Some("-0.5".into())],
            "the placeholder was paid by nobody, and a reversal is paid back"
        );
        let rows: Vec<_> =
            world.entries().await.iter().map(|row| (row["status"].clone(), row["amount"].clone())).collect();
        assert_eq!(rows, [("credit".into(), "0".into()), ("reversal".into(), "0".into())]);

        assert_eq!(told(world, "c1", "1", "42", "5").await, "200 ok");
        assert_eq!(told(world, "c1", "1", "42", "5").await, "200 ok (duplicate)");
        assert_eq!(told(world, "c1", "2", "42", "5").await, "200 ok (duplicate)");
        assert_eq!(world.balance("42").await, "0");
        assert_eq!(
            world.case_ids().await,
            ["late_credit/standard/c1/credit", "reversal_without_credit/standard/c1/reversal"]
        );
        assert_eq!(world.entries().await.len(), 2);
    })
    .await;
}

#[tokio::test]
async fn a_reversal_that_names_another_user_takes_the_coins_from_the_one_who_got_them() {
    check(async |world| {
        told(world, "c1", "1", "42", "5").await;
        told(world, "c2", "1", "43", "5").await;
        assert_eq!(told(world, "c1", "2", "43", "5").await, "200 ok");
        assert_eq!((world.balance("42").await, world.balance("43").await), ("0".into(), "5".into()));
        let cases = world.cases().await;
        assert_eq!(cases.len(), 1);
        assert_eq!(cases[0]["case_id"], "conflict/standard/c1/reversal/user");
        assert!(cases[0]["detail"].contains("names user 43, the credit user 42"), "{:?}", cases[0]);
        // The same reversal again is a duplicate; with the right user it is another claim about a known key.
        assert_eq!(told(world, "c1", "2", "43", "5").await, "200 ok (duplicate)");
        assert_eq!(told(world, "c1", "2", "42", "5").await, "200 ok (duplicate)");
        assert_eq!(world.case_ids().await.len(), 1);
    })
    .await;
}

#[tokio::test]
async fn a_credit_of_nothing_is_recorded_and_can_be_reversed_and_touches_no_account() {
    check(async |world| {
        for (amount, id) in [("0", "c1"), ("0.00", "c2"), ("0.009", "c3"), ("-0", "c4")] {
            assert_eq!(told(world, id, "1", "42", amount).await, "200 ok");
            assert_eq!(told(world, id, "2", "42", amount).await, "200 ok");
        }
        assert_eq!(world.entries().await.len(), 8);
        assert!(world.balances().await.is_empty());
        assert!(world.cases().await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_reversal_takes_from_the_currency_that_was_credited() {
    check(async |world| {
        told(world, "c1", "1", "42", "5").await;
        let renamed = world.redeployed(&[("CURRENCY", "gems")]).await;
        let callback = signed(&query(&conversion("c1", "2", "42", "5")));
        let event = event("GET", "/standard", &callback);
        assert_eq!(line(&renamed.offerwall(&event, PATIENCE).await), "200 ok");
        assert_eq!(world.balance("42").await, "0");
        assert!(world.cases().await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_reversal_of_an_account_whose_row_is_gone_is_taken_below_zero() {
    check(async |world| {
        told(world, "c1", "1", "42", "5").await;
        world.forget_account("42").await;
        let handled = world.tell("c1", "2", "42", "5").await;
        assert_eq!((line(&handled).as_str(), world.balance("42").await.as_str()), ("200 ok", "-5"));
        assert_eq!(opened(&handled), ["overdrawn/standard/c1/reversal"]);
        // Back to where the entries say it is.
        world.forget_account("42").await;
    })
    .await;
}

#[tokio::test]
async fn a_reversal_reads_its_credit_as_it_is_at_that_moment() {
    check(async |world| {
        told(world, "c1", "2", "42", "5").await;
        let read = &world.proxy.requests()[0];
        assert_eq!((read.operation.as_str(), &read.body["ConsistentRead"]), ("Query", &true.into()));
    })
    .await;
}

#[tokio::test]
async fn an_entry_that_a_person_put_by_hand_stops_no_postback() {
    check(async |world| {
        told(world, "c1", "1", "42", "5").await;
        world.put_by_hand("standard/c1", "correction", "42").await;
        assert_eq!(told(world, "c1", "2", "42", "5").await, "200 ok");
        world.put_by_hand("standard/c2", "credit", "42").await;
        assert_eq!(told(world, "c2", "1", "42", "0").await, "200 ok (duplicate)");
        assert_eq!(told(world, "c2", "1", "42", "7").await, "200 ok (duplicate)");
        assert_eq!(world.case_ids().await, ["conflict/standard/c2/credit/amount"]);
        assert_eq!(world.balance("42").await, "0");
    })
    .await;
}

#[tokio::test]
async fn a_change_of_the_coins_scale_between_two_deliveries_is_no_conflict() {
    check(async |world| {
        told(world, "c1", "1", "42", "1.239").await;
        let rescaled = world.redeployed(&[("COIN_DECIMALS", "3")]).await;
        let callback = signed(&query(&conversion("c1", "1", "42", "1.239")));
        let event = event("GET", "/standard", &callback);
        assert_eq!(line(&rescaled.offerwall(&event, PATIENCE).await), "200 ok (duplicate)");
        assert!(world.cases().await.is_empty());
        assert_eq!(world.balance("42").await, "1.23");
    })
    .await;
}

#[tokio::test]
async fn amounts_of_the_largest_size_are_exact() {
    check_with(&[("COIN_DECIMALS", "8")], async |world| {
        for id in ["c1", "c2", "c3"] {
            told(world, id, "1", "42", "999999999999999.99999999").await;
        }
        assert_eq!(world.balance("42").await, "2999999999999999.99999997");
        told(world, "c2", "2", "42", "1").await;
        assert_eq!(world.balance("42").await, "1999999999999999.99999998");
    })
    .await;
}

/// Runs everything at once, on one thread that takes turns at every wait, and gives the results in order.
async fn at_once<T>(futures: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    futures_util::future::join_all(futures).await
}
