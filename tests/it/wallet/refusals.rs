//! What asks for nothing: fields that cannot be used, bodies that are none, forgeries, paths that lead nowhere. None of it
//! is kept, and none of it costs a request.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use super::{TRY_AGAIN, again, applied, bet, rollback, with};
use crate::world::{
    PATIENCE, SECRET, World, call_event, call_event_with, call_line, call_on, check_document_with, check_wallet,
};

/// The answer to a signed call with exactly this body.
async fn answer(world: &World, path: &str, body: &str) -> String {
    call_line(&world.app.wallet(&call_event(path, body), PATIENCE).await)
}

/// The same with a body of any bytes.
async fn answer_to_bytes(world: &World, path: &str, body: &[u8]) -> String {
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
    mac.update(body);
    let event = call_event_with(path, &BASE64_STANDARD.encode(body), &hex::encode(mac.finalize().into_bytes()));
    let mut event: Value = serde_json::from_str(&event).unwrap();
    event["isBase64Encoded"] = true.into();
    call_line(&world.app.wallet(&event.to_string(), PATIENCE).await)
}

/// Nothing was kept, and nothing asked of DynamoDB since the last look.
async fn nothing_happened(world: &World) {
    assert!(world.proxy.take().is_empty(), "a call that asks for nothing costs no request");
    let entries = world.entries().await;
    assert!(entries.iter().all(|row| row["status"] != "operation"), "{entries:?}");
}

#[tokio::test]
async fn an_amount_that_is_not_exact_is_refused_and_named() {
    check_wallet("", async |world| {
        world.fund("7", "100").await;
        world.proxy.take();
        const PLAIN: &str = "not a plain decimal number such as 12.50";
        const INEXACT: &str = "a number of more than 15 digits, which is not exact as a float: send it as a string";
        for (amount, why) in [
            ("null", "missing"),
            (r#""""#, "missing"),
            ("true", PLAIN),
            ("false", PLAIN),
            ("[]", "no text"),
            ("[5]", "no text"),
            ("{}", "no text"),
            (r#"{"value":5}"#, "missing"),
            ("-1", "below zero"),
            (r#""-0.01""#, "below zero"),
            ("-0.001", "below zero"),
            ("0.001", "more than two decimals"),
            ("10.505", "more than two decimals"),
            (r#""10.505""#, "more than two decimals"),
            ("0.30000000000000004", "more than two decimals"),
            ("1e2", PLAIN),
            ("1E2", PLAIN),
            ("1.5e-1", PLAIN),
            (r#""1e2""#, PLAIN),
            (r#""NaN""#, PLAIN),
            (r#""+1""#, PLAIN),
            (r#"" 1""#, PLAIN),
            (r#""1,50""#, PLAIN),
            (r#""1,000.00""#, PLAIN),
            (r#""0x10""#, PLAIN),
            (r#""१२""#, PLAIN),
            (r#""1\u0000""#, PLAIN),
            (r#""{amount}""#, PLAIN),
            (r#""\ud800""#, "no text"),
            ("12345678901234.56", INEXACT),
            ("1234567890123456", INEXACT),
            (r#""1234567890123456""#, "more than 15 digits before the point"),
            ("1000000000000000000000", "more than 15 digits before the point"),
        ] {
            for path in ["/bet/debit", "/win/credit"] {
                let body = format!(r#"{{"idempotency_key":"b-1","player_id":"7","amount":{amount},"round_id":1}}"#);
                let expected = format!(r#"400 {{"error":"amount: {why}"}}"#);
                assert_eq!(answer(world, path, &body).await, expected, "{path} {amount}");
            }
        }
        let long = format!(r#"{{"idempotency_key":"b-1","player_id":"7","amount":"{}","round_id":1}}"#, "0".repeat(65));
        let expected = r#"400 {"error":"amount: longer than 64 characters"}"#;
        assert_eq!(answer(world, "/bet/debit", &long).await, expected);
        nothing_happened(world).await;
    })
    .await;
}

#[tokio::test]
async fn an_amount_that_is_exact_is_taken_in_whatever_form() {
    check_wallet("", async |world| {
        world.fund("7", "100000000000000").await;
        let mut left = 10_000_000_000_000_000_i64;
        for (number, (amount, cents)) in [
            ("0", 0),
            ("-0", 0),
            ("0.00", 0),
            ("0.1", 10),
            ("10", 1_000),
            ("10.5", 1_050),
            ("10.50", 1_050),
            ("10.500", 1_050),
            (r#""10.5""#, 1_050),
            (r#"".5""#, 50),
            (r#""007""#, 700),
            ("1234567890123.45", 123_456_789_012_345),
            (r#""12345678901234.56""#, 1_234_567_890_123_456),
        ]
        .into_iter()
        .enumerate()
        {
            let key = format!("b-{number}");
            let body = format!(r#"{{"idempotency_key":"{key}","player_id":"7","amount":{amount},"round_id":1}}"#);
            let print = |cents: i64| format!("{}.{:02}", cents / 100, cents % 100);
            let expected = applied(&key, &print(left), &print(left - cents));
            assert_eq!(answer(world, "/bet/debit", &body).await, expected, "{amount}");
            left -= cents;
        }
    })
    .await;
}

#[tokio::test]
async fn a_field_that_cannot_be_used_is_named_with_the_reason() {
    check_wallet("", async |world| {
        world.fund("7", "100").await;
        world.proxy.take();
        let long = "x".repeat(129);
        let cases = [
            ("idempotency_key", Value::Null, "missing"),
            ("idempotency_key", json!(""), "missing"),
            ("idempotency_key", json!(["b-1"]), "no text"),
            ("idempotency_key", json!({}), "no text"),
            ("idempotency_key", json!(true), "neither a whole number nor a string"),
            ("idempotency_key", json!(1.5), "neither a whole number nor a string"),
            ("idempotency_key", json!(-1), "neither a whole number nor a string"),
            ("idempotency_key", json!("19flip/b-1"), "begins as our own transaction ids do"),
            ("idempotency_key", json!("a\nb"), "contains a control character"),
            ("idempotency_key", json!(long), "longer than 128 bytes"),
            ("player_id", Value::Null, "missing"),
            ("player_id", json!(7.5), "neither a whole number nor a string"),
            ("player_id", json!("suspense/19flip"), "begins with `suspense/`, which is kept for money without a user"),
            ("player_id", json!(long), "longer than 128 bytes"),
            ("round_id", Value::Null, "missing"),
            ("round_id", json!([]), "no text"),
            ("round_id", json!(1.5), "neither a whole number nor a string"),
            ("round_id", json!("x".repeat(65)), "longer than 64 bytes"),
            ("currency", json!("US Dollars"), "not made of letters, digits, hyphens and underscores"),
            ("currency", json!(["coins"]), "no text"),
        ];
        for (field, value, why) in cases {
            let body = with(bet("b-1", "7", "1"), json!({field: value}));
            let expected = format!(r#"400 {{"error":"{field}: {why}"}}"#);
            assert_eq!(world.call("/bet/debit", &body).await, expected, "{body}");
        }
        for (original, why) in [
            (Value::Null, "missing"),
            (json!([]), "no text"),
            (json!("r-1"), "names the request itself"),
            (json!("19flip/r-1"), "names the request itself"),
            (json!("19flip/"), "empty"),
            (json!(long), "longer than 128 bytes"),
        ] {
            let body = with(rollback("r-1", "7", "b-1"), json!({"original_transaction_id": original}));
            let expected = format!(r#"400 {{"error":"original_transaction_id: {why}"}}"#);
            for path in ["/bet/rollback", "/win/rollback"] {
                assert_eq!(world.call(path, &body).await, expected, "{path} {body}");
            }
        }
        // What a rollback need not say must still read where it is said.
        let body = with(rollback("r-1", "7", "b-1"), json!({"amount": -1, "round_id": 1.5}));
        let expected = r#"400 {"error":"amount: below zero; round_id: neither a whole number nor a string"}"#;
        assert_eq!(world.call("/bet/rollback", &body).await, expected);
        let expected =
            r#"400 {"error":"idempotency_key: missing; player_id: missing; amount: missing; round_id: missing"}"#;
        assert_eq!(world.call("/bet/debit", &json!({})).await, expected);
        assert_eq!(world.call("/balance", &json!({})).await, r#"400 {"error":"player_id: missing"}"#);
        let other = json!({"player_id": "7", "currency": "EUR"});
        let expected = r#"400 {"error":"currency: not the currency of this wallet"}"#;
        assert_eq!(world.call("/balance", &other).await, expected);
        nothing_happened(world).await;
    })
    .await;
}

#[tokio::test]
async fn a_field_that_comes_twice_is_refused_though_both_say_the_same() {
    check_wallet("", async |world| {
        world.fund("7", "100").await;
        world.proxy.take();
        for (field, again) in [
            ("amount", r#""amount":1"#),
            ("amount", r#""\u0061mount":100"#),
            ("player_id", r#""player_id":"7""#),
            ("idempotency_key", r#""idempotency_key":"b-2""#),
            ("round_id", r#""round_id":1"#),
        ] {
            let body = format!(r#"{{"idempotency_key":"b-1","player_id":"7","amount":1,"round_id":1,{again}}}"#);
            let expected = format!(r#"400 {{"error":"{field}: sent more than once"}}"#);
            assert_eq!(answer(world, "/bet/debit", &body).await, expected, "{again}");
        }
        nothing_happened(world).await;
    })
    .await;
}

#[tokio::test]
async fn another_currency_is_refused_unless_the_key_or_what_is_taken_back_is_of_it() {
    check_wallet("", async |world| {
        world.fund("7", "100").await;
        let other = r#"400 {"error":"currency: not the currency of this wallet"}"#;
        let named = |call: Value, currency: &str| with(call, json!({"currency": currency}));
        for currency in ["EUR", "Coins"] {
            assert_eq!(world.call("/bet/debit", &named(bet("b-1", "7", "1"), currency)).await, other);
            assert_eq!(world.call("/win/credit", &named(bet("w-1", "7", "1"), currency)).await, other);
            assert_eq!(world.call("/bet/rollback", &named(rollback("r-1", "7", "b-1"), currency)).await, other);
        }
        let (took, gave) = (applied("b-1", "100.00", "99.00"), applied("r-1", "99.00", "100.00"));
        assert_eq!(world.call("/bet/debit", &named(bet("b-1", "7", "1"), "coins")).await, took);
        assert_eq!(world.call("/bet/debit", &bet("b-2", "7", "1")).await, applied("b-2", "99.00", "98.00"));
        world.call("/bet/rollback", &rollback("r-2", "7", "b-2")).await;
        // The wallet goes over to another currency: what was done in the first stays so, and can be taken back.
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("networks.toml");
        std::fs::write(&file, "[networks.19flip]\ncurrency = \"EUR\"").unwrap();
        let later = world.redeployed(&[("NETWORKS_FILE", file.to_str().unwrap())]).await;
        let on = async |path: &str, call: Value| call_on(&later, path, &call).await;
        assert_eq!(on("/bet/debit", named(bet("b-1", "7", "1"), "coins")).await, again(&took));
        assert_eq!(on("/bet/debit", named(bet("b-3", "7", "1"), "coins")).await, other);
        assert_eq!(on("/bet/rollback", named(rollback("r-1", "7", "b-1"), "EUR")).await, other);
        assert_eq!(on("/bet/rollback", named(rollback("r-1", "7", "b-1"), "coins")).await, gave);
        assert_eq!(on("/bet/debit", bet("b-4", "7", "1")).await, r#"404 {"error":"player not found"}"#);
    })
    .await;
}

#[tokio::test]
async fn a_rollback_needs_no_player_where_its_original_tells_one() {
    check_wallet("", async |world| {
        world.fund("7", "100").await;
        world.call("/bet/debit", &bet("b-1", "7", "5")).await;
        let manual = |key: &str, original: &str| json!({"idempotency_key": key, "original_transaction_id": original});
        let nobody = r#"400 {"error":"player_id: missing, and what is taken back never came"}"#;
        assert_eq!(world.call("/bet/rollback", &manual("manual-rb-1", "never")).await, nobody);
        let gave = applied("manual-rb-2", "95.00", "100.00");
        assert_eq!(world.call("/bet/rollback", &manual("manual-rb-2", "b-1")).await, gave);
        assert_eq!(world.call("/bet/rollback", &rollback("manual-rb-2", "7", "b-1")).await, again(&gave));
        assert_eq!(world.call("/bet/rollback", &manual("manual-rb-3", "b-1")).await, gave);
        assert!(world.case_ids().await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_body_that_is_no_json_object_or_no_text_or_too_large_is_refused() {
    check_wallet("", async |world| {
        world.fund("7", "100").await;
        world.proxy.take();
        let unreadable = r#"400 {"error":"not a JSON object, or too large"}"#;
        let good = bet("b-1", "7", "1").to_string();
        let unclosed = good.trim_end_matches('}');
        for body in [
            "",
            "null",
            "[]",
            "1",
            r#""text""#,
            "{",
            "idempotency_key=b-1&player_id=7",
            unclosed,
            &format!("{good}{good}"),
            &format!("{good},"),
            &format!("[{good}]"),
            &good.replace('"', "'"),
            &good.replace("\"1\"", "01"),
            &good.replace("\"1\"", "NaN"),
            &format!("{}1{}", "[".repeat(50_000), "]".repeat(50_000)),
            &good.replacen('{', &format!("{{\"pad\":\"{}\",", "x".repeat(128 * 1024)), 1),
        ] {
            assert_eq!(answer(world, "/bet/debit", body).await, unreadable, "{}", &body[..body.len().min(80)]);
        }
        for (bytes, expected) in [
            (good.replace("\"7\"", "\"\u{1}\"").into_bytes(), unreadable),
            ([good.as_bytes(), b"\xff"].concat(), unreadable),
            (b"\xff\xfe{}".to_vec(), unreadable),
            (bytes_in_place_of_7(&good), r#"400 {"error":"player_id: not UTF-8"}"#),
        ] {
            assert_eq!(answer_to_bytes(world, "/bet/debit", &bytes).await, expected);
        }
        nothing_happened(world).await;
        // Nearly as large is read like any other, and so is what was encoded on the way.
        let large = good.replacen('{', &format!("{{\"pad\":\"{}\",", "x".repeat(100 * 1024)), 1);
        let expected = applied("b-1", "100.00", "99.00");
        assert_eq!(answer_to_bytes(world, "/bet/debit", large.as_bytes()).await, expected);
    })
    .await;
}

/// The body with a player that is no UTF-8.
fn bytes_in_place_of_7(body: &str) -> Vec<u8> {
    let (before, after) = body.split_once("\"7\"").unwrap();
    [before.as_bytes(), b"\"\xff\"", after.as_bytes()].concat()
}

#[tokio::test]
async fn a_call_is_401_unless_every_byte_of_its_body_was_signed_with_the_secret() {
    check_wallet("", async |world| {
        world.fund("7", "100").await;
        world.proxy.take();
        let body = bet("b-1", "7", "1").to_string();
        let event = call_event("/bet/debit", &body);
        let signature = serde_json::from_str::<Value>(&event).unwrap()["headers"]["x-signature"].clone();
        let signature = signature.as_str().unwrap();
        let bad = r#"401 {"error":"bad signature"}"#;
        let mut forged: Vec<(String, String)> = (0..body.len())
            .filter_map(|place| {
                let mut bytes = body.clone().into_bytes();
                bytes[place] ^= 1;
                Some((String::from_utf8(bytes).ok()?, signature.to_owned()))
            })
            .collect();
        assert_eq!(forged.len(), body.len());
        forged.extend([
            (format!("{body} "), signature.to_owned()),
            (body.clone(), String::new()),
            (body.clone(), signature.to_uppercase().replace('A', "B")),
            (body.clone(), signature[1..].to_owned()),
            (body.clone(), format!("{signature}0")),
            (body.clone(), format!("sha256={signature}")),
            (body.clone(), "0".repeat(64)),
        ]);
        for (body, signature) in forged {
            for path in ["/bet/debit", "/balance", "/ping"] {
                let handled = world.app.wallet(&call_event_with(path, &body, &signature), PATIENCE).await;
                assert_eq!(call_line(&handled), bad, "{path} {body} {signature}");
            }
        }
        let mut unsigned: Value = serde_json::from_str(&event).unwrap();
        unsigned["headers"].as_object_mut().unwrap().remove("x-signature");
        assert_eq!(call_line(&world.app.wallet(&unsigned.to_string(), PATIENCE).await), bad);
        nothing_happened(world).await;
        assert_eq!(world.call("/bet/debit", &bet("b-1", "7", "1")).await, applied("b-1", "100.00", "99.00"));
    })
    .await;
}

#[tokio::test]
async fn another_method_is_405_and_another_path_404() {
    check_wallet("", async |world| {
        for method in ["GET", "PUT", "DELETE", "post", ""] {
            let mut event: Value = serde_json::from_str(&call_event("/bet/debit", "{}")).unwrap();
            event["requestContext"]["http"]["method"] = method.into();
            let answer = call_line(&world.app.wallet(&event.to_string(), PATIENCE).await);
            assert_eq!(answer, r#"405 {"error":"method not allowed: send a POST"}"#, "{method}");
        }
        for path in [
            "/",
            "",
            "bet/debit",
            "/bet",
            "/bet/",
            "/bet/debit/",
            "/bet/debit/x",
            "/bet/debit%20",
            "/bet/debit?x=1",
            "/Bet/debit",
            "/bet/credit",
            "/win/debit",
            "/round/finish/1",
            "/balance/7",
            "/pingpong",
            "/19flip",
            "/19flip/",
            "/19flip/bet/debit/",
        ] {
            assert_eq!(answer(world, path, "{}").await, r#"404 {"error":"no such path"}"#, "{path}");
        }
        // What ends as one of ours may be meant for a wallet that is not enabled yet, or any more: it must come again.
        for path in
            ["//bet/debit", "/19flip/19flip/bet/debit", "/19FLIP/bet/debit", "/standard/bet/debit", "/other/ping"]
        {
            assert_eq!(answer(world, path, "{}").await, TRY_AGAIN, "{path}");
        }
        nothing_happened(world).await;
        for (path, body) in [("/ping", "{}"), ("/19flip/ping", "{}"), ("/ping", "")] {
            assert_eq!(answer(world, path, body).await, r#"200 {"status":"SUCCESS"}"#);
        }
    })
    .await;
}

#[tokio::test]
async fn of_two_wallets_each_has_its_name_in_front_of_its_paths_and_a_secret_and_keys_of_its_own() {
    let document = "[networks.19flip]\n[networks.19flip-b]\nbase = \"19flip\"\n\
                    network = { name = \"B\", evidence = \"experimental\" }";
    let secrets = json!({"standard": SECRET, "19flip": SECRET, "19flip-b": "another"}).to_string();
    let variables = [("NETWORKS", "standard,19flip,19flip-b"), ("NETWORK_SECRETS", secrets.as_str())];
    check_document_with(document, &variables, async |world| {
        world.fund("7", "100").await;
        let body = bet("b-1", "7", "1").to_string();
        let told = async |path: &str, secret: &str| {
            let mut mac = Hmac::<sha2::Sha256>::new_from_slice(secret.as_bytes()).unwrap();
            mac.update(body.as_bytes());
            let event = call_event_with(path, &body, &hex::encode(mac.finalize().into_bytes()));
            call_line(&world.app.wallet(&event, PATIENCE).await)
        };
        let (unknown, bad) = (TRY_AGAIN, r#"401 {"error":"bad signature"}"#);
        assert_eq!(told("/bet/debit", SECRET).await, unknown, "whose path that is, nobody can say");
        assert_eq!(told("/19flip/bet/debit", "another").await, bad);
        assert_eq!(told("/19flip-b/bet/debit", SECRET).await, bad);
        assert_eq!(told("/19flip-/bet/debit", SECRET).await, unknown);
        assert_eq!(told("/19flip/bet/debit", SECRET).await, applied("b-1", "100.00", "99.00"));
        let other = applied("b-1", "99.00", "98.00").replace("19flip/", "19flip-b/");
        assert_eq!(told("/19flip-b/bet/debit", "another").await, other);
        assert_eq!(world.balance("7").await, "98");
    })
    .await;
}

/// Pieces that have broken readers of JSON before, and any text at all.
fn any_body() -> impl Strategy<Value = String> {
    let nasty = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"",
        "\\",
        "\\u0000",
        "\\ud800",
        "\u{0}",
        "\u{fffd}",
        "null",
        "true",
        "-0",
        "-",
        "1e999",
        "0.1",
        "99999999999999999999",
        "\"amount\":",
        "\"amount\":1",
        "\"amount\":-1,",
        "\"player_id\":\"7\",",
        "\"player_id\":7",
        "\"idempotency_key\":\"k\",",
        "\"idempotency_key\":",
        "\"round_id\":1,",
        "\"game_id\":{},",
        "\"original_transaction_id\":\"k\",",
        "\"original_transaction_id\":\"19flip/b\"",
        "{\"a\":{\"b\":{\"c\":[",
    ]);
    let piece = prop_oneof![4 => nasty.prop_map(String::from), 1 => ".{0,12}".prop_map(String::from)];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// Objects with the right names and any values.
fn any_object() -> impl Strategy<Value = String> {
    let names =
        ["idempotency_key", "player_id", "amount", "round_id", "game_id", "original_transaction_id", "currency"];
    let value = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0u8..20).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[0-9]{1,3}(\\.[0-9]{0,3})?".prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
        Just(json!("7")),
        Just(json!([1, {"a": "b"}])),
    ];
    let fields = prop::collection::vec((prop::sample::select(names.to_vec()), value), 0..9);
    fields.prop_map(|fields| {
        let fields: Vec<_> = fields.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        format!("{{{}}}", fields.join(","))
    })
}

#[tokio::test]
async fn any_body_anywhere_gets_an_answer_and_moves_only_what_it_says() {
    check_wallet("", async |world| {
        world.fund("7", "1000").await;
        let mut runner = TestRunner::deterministic();
        let (bodies, objects) = (any_body(), any_object());
        for number in 0..900 {
            let body = match number % 2 {
                0 => bodies.new_tree(&mut runner).unwrap().current(),
                _ => objects.new_tree(&mut runner).unwrap().current(),
            };
            for (path, _) in postback::wallet::PATHS {
                let handled = world.app.wallet(&call_event(path, &body), PATIENCE).await;
                assert!([200, 400, 402, 404, 409].contains(&handled.answer.status), "{path} {body}: {handled:?}");
                serde_json::from_str::<Value>(&handled.answer.body).unwrap();
                assert!(!handled.answer.body.contains(SECRET));
                let forged = world.app.wallet(&call_event_with(path, &body, &body), PATIENCE).await;
                assert_eq!(forged.answer.status, 401, "{path} {body}");
            }
            let event = call_event_with(&body, &body, &body);
            assert!([400, 404].contains(&world.app.wallet(&event, PATIENCE).await.answer.status), "{body}");
        }
    })
    .await;
}
