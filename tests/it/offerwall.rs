//! What the networks see: byte-exact answers to everything that can be sent, and no I/O before a request is verified.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::json;
use sha2::Digest;

use crate::world::{PATIENCE, SECRET, World, check, check_with, conversion, event, line, query, signed};

/// The answer to a credit of 10.50 to user 42, with one parameter changed or, where `value` is `None`, left out.
async fn answer_with(world: &World, name: &str, value: Option<&str>) -> String {
    let mut parameters = conversion("c1", "1", "42", "10.50").to_vec();
    parameters.retain(|(parameter, _)| *parameter != name);
    parameters.extend(value.map(|value| (name, value)));
    line(&world.postback(&parameters).await)
}

#[tokio::test]
async fn every_outcome_has_its_exact_answer() {
    check(async |world| {
        for (id, status, user, amount, expected) in [
            ("c1", "1", "42", "10.50", "200 ok"),
            ("c1", "1", "42", "10.50", "200 ok (duplicate)"),
            ("c1", "approved", "42", "10.5", "200 ok (duplicate)"),
            ("c1", "1", "42", "11", "200 ok (duplicate)"),
            ("c1", "1", "43", "10.50", "200 ok (duplicate)"),
            ("c1", "2", "42", "-10.50", "200 ok"),
            ("c1", "rejected", "42", "10.50", "200 ok (duplicate)"),
            ("c1", "1", "42", "10.50", "200 ok (duplicate)"),
            ("c2", "-1", "42", "7", "200 ok"),
            ("c2", "-1", "42", "7", "200 ok (duplicate)"),
            ("c2", "1", "42", "7", "200 ok"),
            ("c2", "1", "42", "7", "200 ok (duplicate)"),
            ("c3", "credited", "42", "0", "200 ok"),
            ("c3", "completed", "42", "0.00", "200 ok (duplicate)"),
            ("c3", "chargeback", "42", "0", "200 ok"),
            ("c4", "reversed", "42", "anything but a number", "200 ok"),
        ] {
            let told = world.tell(id, status, user, amount).await;
            assert_eq!(line(&told), expected, "{id} {status} {user} {amount}");
        }
        assert_eq!(world.balance("42").await, "0");
        assert_eq!(world.balance("43").await, "0");
    })
    .await;
}

#[tokio::test]
async fn a_parameter_that_cannot_be_used_is_named_with_the_reason() {
    check(async |world| {
        for (name, value, expected) in [
            ("user_id", None, "400 user_id: missing"),
            ("user_id", Some(""), "400 user_id: missing"),
            ("user_id", Some("{user_id}"), "400 user_id: a macro that the network did not replace"),
            (
                "user_id",
                Some("suspense/standard"),
                "400 user_id: begins with `suspense/`, which is kept for money without a user",
            ),
            ("trans_id", None, "400 trans_id: missing"),
            ("trans_id", Some("{trans_id}"), "400 trans_id: a macro that the network did not replace"),
            ("trans_id", Some("conv-{trans_id}-1"), "400 trans_id: a macro that the network did not replace"),
            ("trans_id", Some("[trans_id]"), "400 trans_id: a macro that the network did not replace"),
            ("trans_id", Some("a\nb"), "400 trans_id: contains a control character"),
            ("status", None, "400 status: missing"),
            ("status", Some("3"), "400 status: not a status of this network"),
            ("status", Some("Approved"), "400 status: not a status of this network"),
            ("status", Some(" 1"), "400 status: not a status of this network"),
            ("currency_amount", None, "400 currency_amount: missing"),
            ("currency_amount", Some("-1"), "400 currency_amount: a negative credit"),
            ("currency_amount", Some("-0.001"), "400 currency_amount: a negative credit"),
            ("currency_amount", Some("1e3"), "400 currency_amount: not a plain decimal number such as 12.50"),
            ("currency_amount", Some("NaN"), "400 currency_amount: not a plain decimal number such as 12.50"),
            ("currency_amount", Some("1,000"), "400 currency_amount: not a plain decimal number such as 12.50"),
            ("currency_amount", Some("+1"), "400 currency_amount: not a plain decimal number such as 12.50"),
            ("currency_amount", Some("1234567890123456"), "400 currency_amount: more than 15 digits before the point"),
        ] {
            assert_eq!(answer_with(world, name, value).await, expected, "{name}={value:?}");
        }
        let long = "x".repeat(129);
        assert_eq!(answer_with(world, "trans_id", Some(&long)).await, "400 trans_id: longer than 128 bytes");
        assert_eq!(answer_with(world, "user_id", Some(&long)).await, "400 user_id: longer than 128 bytes");
        for (query, expected) in [
            ("", "400 user_id: missing\ntrans_id: missing\nstatus: missing\ncurrency_amount: missing"),
            ("user_id=1&trans_id=%zz&status=1&currency_amount=1", "400 trans_id: a broken percent escape"),
            ("user_id=1&trans_id=a%&status=1&currency_amount=1", "400 trans_id: a broken percent escape"),
            ("user_id=1&trans_id=%ff&status=1&currency_amount=1", "400 trans_id: not UTF-8"),
            (
                "user_id=1&trans_id={trans_id}&status=1&currency_amount=1",
                "400 trans_id: a macro that the network did not replace",
            ),
            ("user_id=1&trans_id=a&trans_id=a&status=1&currency_amount=1", "400 trans_id: sent more than once"),
            ("user_id=1&trans_id=a&%74rans_id=b&status=1&currency_amount=1", "400 trans_id: sent more than once"),
            ("user_id&trans_id=a&status=1&currency_amount=1", "400 user_id: missing"),
        ] {
            assert_eq!(line(&world.query(&signed(query)).await), expected, "{query}");
        }
        assert!(world.proxy.requests().is_empty(), "a request that does not read costs no DynamoDB call");
        assert!(world.entries().await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_parameter_from_which_two_things_are_read_is_named_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("networks.toml");
    let text = r#"
        [networks.by-sign]
        base = "standard"
        network.name = "The sign of the amount says what happened"
        classes = [{ when = { currency_amount = { sign = "positive" } }, is = "credit" }]
    "#;
    std::fs::write(&file, text).unwrap();
    let secrets = json!({"by-sign": SECRET}).to_string();
    let variables =
        [("NETWORKS", "by-sign"), ("NETWORKS_FILE", file.to_str().unwrap()), ("NETWORK_SECRETS", secrets.as_str())];
    check_with(&variables, async |world| {
        for (amount, expected) in [
            ("1e3", "400 currency_amount: not a plain decimal number such as 12.50"),
            ("{amount}", "400 currency_amount: a macro that the network did not replace"),
            ("1&currency_amount=2", "400 currency_amount: sent more than once"),
        ] {
            let query = signed(&format!("user_id=1&trans_id=a&currency_amount={amount}"));
            let handled = world.app.offerwall(&event("GET", "/by-sign", &query), PATIENCE).await;
            assert_eq!(line(&handled), expected);
        }
    })
    .await;
}

#[tokio::test]
async fn what_no_money_depends_on_is_kept_where_it_reads_and_never_refuses() {
    check(async |world| {
        let extras =
            |extra: &str| signed(&format!("user_id=1&trans_id={extra}&status=1&currency_amount=1.239&{extra}"));
        for (extra, name, kept) in [
            ("offer_name=Big+Quest%21", "offer_name", Some("Big Quest!")),
            ("offer_name=caf%E9", "offer_name", Some("caf\u{fffd}")),
            ("offer_name={offer_name}", "offer_name", None),
            ("offer_name=a%00b%0Ac", "offer_name", Some("a b c")),
            ("offer_id=7&offer_id=8", "offer_id", None),
            ("goal_id=", "goal_id", None),
            ("goal_id=level-3", "goal_id", Some("level-3")),
            ("payout=0.123456789", "payout_usd", Some("0.12345678")),
            ("payout=free", "payout_usd", None),
            ("payout=-0.5", "payout_usd", Some("-0.5")),
        ] {
            let id = extra.replace(['%', '&', '{', '}', '='], ".");
            let query = extras(extra).replacen(&format!("trans_id={extra}"), &format!("trans_id={id}"), 1);
            let unsigned = query.split("&signature=").next().unwrap();
            assert_eq!(line(&world.query(&signed(unsigned)).await), "200 ok", "{extra}");
            let rows = world.entries().await;
            let row = rows.iter().find(|row| row["trans_id"] == format!("standard/{}", id.replace('+', " "))).unwrap();
            assert_eq!(row.get(name).map(String::as_str), kept, "{extra}");
            assert_eq!((row["amount"].as_str(), row["amount_received"].as_str()), ("1.23", "1.239"));
        }
        let name = "é".repeat(200);
        world.postback(&[&conversion("long", "1", "1", "1")[..], &[("offer_name", &name)]].concat()).await;
        let rows = world.entries().await;
        let row = rows.iter().find(|row| row["trans_id"] == "standard/long").unwrap();
        assert_eq!(row["offer_name"], "é".repeat(32));
    })
    .await;
}

#[tokio::test]
async fn a_forged_request_is_403_and_costs_no_dynamodb_call() {
    check(async |world| {
        let good = signed(&query(&conversion("c1", "1", "42", "10.50")));
        for forged in [
            good.replace("10%2E50", "99%2E99"),
            good.replace("signature=", "Signature="),
            good.replace("signature=", "signature=0"),
            good.rsplit_once('&').unwrap().0.to_owned(),
            format!("{good}&extra=1"),
            format!("{good}&signature=00"),
            String::new(),
            "signature=".into(),
        ] {
            assert_eq!(line(&world.query(&forged).await), "403 bad signature", "{forged}");
        }
        assert!(world.proxy.requests().is_empty());
        assert_eq!(line(&world.query(&good).await), "200 ok");
    })
    .await;
}

#[tokio::test]
async fn a_network_without_a_secret_refuses_everything() {
    for secrets in ["", "{}", r#"{"standard": []}"#, r#"{"other": "x"}"#] {
        check_with(&[("NETWORK_SECRETS", secrets)], async |world| {
            assert_eq!(line(&world.tell("c1", "1", "42", "1").await), "403 bad signature", "{secrets}");
            let empty_key = crate::world::signed_with("", &query(&conversion("c1", "1", "42", "1")));
            assert_eq!(line(&world.query(&empty_key).await), "403 bad signature");
        })
        .await;
    }
}

#[tokio::test]
async fn paths_lead_to_enabled_networks_and_only_get_is_allowed() {
    check(async |world| {
        let good = signed(&query(&conversion("c1", "1", "42", "1")));
        for (method, path, expected) in [
            ("POST", "/standard", "405 method not allowed: send a GET"),
            ("HEAD", "/standard", "405 method not allowed: send a GET"),
            ("get", "/standard", "405 method not allowed: send a GET"),
            ("GET", "/nobody", "404 no such network"),
            ("GET", "/standard/x", "404 no such network"),
            ("GET", "/Standard", "404 no such network"),
            ("GET", "", "404 no such network"),
            ("GET", "//", "404 no such network"),
            ("GET", "/../standard", "404 no such network"),
            ("GET", "/standard", "200 ok"),
            ("GET", "/", "200 ok (duplicate)"),
            ("GET", "/standard/", "200 ok (duplicate)"),
        ] {
            let handled = world.app.offerwall(&event(method, path, &good), PATIENCE).await;
            assert_eq!(line(&handled), expected, "{method} {path}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_plus_delivered_as_a_space_verifies_and_means_the_same() {
    check(async |world| {
        let parameters = "user_id=a+b&trans_id=c+1&status=1&currency_amount=5&offer_name=Big+%2B+Quest";
        let wire = signed(parameters);
        assert_eq!(line(&world.query(&wire.replace('+', " ")).await), "200 ok");
        assert_eq!(line(&world.query(&wire).await), "200 ok (duplicate)");
        let row = &world.entries().await[0];
        let of = |name| row[name].as_str();
        assert_eq!([of("user_id"), of("trans_id"), of("offer_name")], ["a b", "standard/c 1", "Big + Quest"]);
    })
    .await;
}

#[tokio::test]
async fn an_entry_carries_what_finance_reads() {
    check(async |world| {
        let extras = [("offer_id", "77"), ("offer_name", "Quest"), ("goal_id", "3"), ("payout", "0.70")];
        world.postback(&[&conversion("c1", "1", "042", "10.509")[..], &extras].concat()).await;
        let mut row = world.entries().await.remove(0);
        let received_at = row.remove("received_at").unwrap();
        assert_eq!(received_at.len(), "2026-11-30T12:00:00.000Z".len(), "{received_at}");
        assert!(row.remove("day").unwrap().starts_with(&format!("standard#{}#", &received_at[..10])));
        let parameters = [&conversion("c1", "1", "042", "10.509")[..], &extras].concat();
        let digest = hex::encode(sha2::Sha256::digest(signed(&query(&parameters))));
        assert_eq!(row.remove("fingerprint").unwrap(), digest[..32]);
        let expected = [
            ("amount", "10.5"),
            ("amount_received", "10.509"),
            ("currency", "coins"),
            ("goal_id", "3"),
            ("network", "standard"),
            ("offer_id", "77"),
            ("offer_name", "Quest"),
            ("payout_usd", "0.7"),
            ("preset", "standard"),
            ("source_ip", "192.0.2.7"),
            ("status", "credit"),
            ("trans_id", "standard/c1"),
            ("user_id", "042"),
        ];
        assert_eq!(row, expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    })
    .await;
}

#[tokio::test]
async fn an_event_that_is_not_a_request_is_answered_and_ends_nothing() {
    check(async |world| {
        for event in
            ["{}", "[]", "null", "7", "\"\"", r#"{"Records": []}"#, r#"{"rawPath": 1}"#, r#"{"rawPath": "\ud800"}"#]
        {
            let handled = world.app.offerwall(event, PATIENCE).await;
            assert_eq!(handled.answer.status, 400, "{event}");
            assert!(handled.answer.body.starts_with("not a function URL event of payload version 2.0: "), "{event}");
        }
    })
    .await;
}

/// Texts that have broken parsers of queries before, and any text at all.
fn any_query() -> impl Strategy<Value = String> {
    let nasty = prop::sample::select(vec![
        " ",
        "\"",
        "'",
        "|",
        "\0",
        "\r\n",
        "%",
        "%2",
        "%zz",
        "%00",
        "%ff%fe",
        "&&",
        "==",
        "&=&",
        "?",
        "#",
        "+",
        "\u{fffd}",
        "\u{202e}",
        "user_id",
        "trans_id=",
        "status=1",
        "currency_amount=1",
        "signature=",
        "{trans_id}",
        "[]=1",
        "a[]=1",
    ]);
    let piece = prop_oneof![3 => nasty.prop_map(String::from), 1 => ".{0,12}".prop_map(String::from)];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

#[tokio::test]
async fn any_bytes_anywhere_in_a_request_get_an_answer() {
    check(async |world| {
        let mut runner = TestRunner::deterministic();
        for _ in 0..1500 {
            let mut any = || any_query().new_tree(&mut runner).unwrap().current();
            let (query, path, method) = (any(), any(), any());
            for event in [
                event("GET", "/standard", &query),
                event("GET", "/standard", &signed(&query)),
                event("GET", &path, &query),
                event(&method, &path, &query),
                json!({"rawPath": path, "rawQueryString": query, "headers": {method.clone(): path}, "body": query, "isBase64Encoded": true,
                    "requestContext": {"http": {"method": method, "sourceIp": path}}}).to_string(),
            ] {
                let handled = world.app.offerwall(&event, PATIENCE).await;
                assert!([200, 400, 403, 404, 405].contains(&handled.answer.status), "{event}: {handled:?}");
                assert!(!handled.answer.body.contains(crate::world::SECRET));
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_hundred_kilobytes_of_query_are_read_like_any_other() {
    check(async |world| {
        for filler in
            ["x=y&".repeat(25_000), "&".repeat(100_000), format!("big={}", "%41".repeat(33_000)), "=".repeat(100_000)]
        {
            let good = query(&conversion("c1", "1", "42", "1"));
            let answer = line(&world.query(&signed(&format!("{filler}&{good}"))).await);
            assert!(answer.starts_with("200 ok"), "{answer}");
        }
    })
    .await;
}
