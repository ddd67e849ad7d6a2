//! Whom to believe: secrets, source addresses, tests and macros, and what a log may hold.

use std::path::Path;

use postback::preset::{Catalogue, Identity};
use postback::signature::{Algorithm, Place};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::*;
use crate::networks::{check_everything, everything, names};
use crate::runtime_api::{Bootstrap, RuntimeApi};

/// A survey of CPX Research, signed with this secret.
fn survey(id: &str, secret: &str) -> Call {
    get(
        "cpx",
        format!("trans_id={id}&amount=5&user_id=7&status=1&type=complete&hash={}", md5(format!("{id}-{secret}"))),
    )
}

/// Monlix with whatever stands where the secret should.
fn monlix(id: &str, rest: &str) -> Call {
    get("monlix", format!("user_id=7&amount=5&status=1&trans_id={id}{rest}"))
}

/// AdGate from an address of its own, with the right token.
fn adgate() -> Call {
    get("adgate", format!("user_id=7&trans_id=t1&amount=5&payout=0.5&state=approved&token={SECRET}"))
}

/// MM Wall, which signs nothing.
fn mmwall(id: &str) -> Call {
    get("mmwall", format!("user_id=7&amount=5&transaction_id={id}&user_ip=63.32.127.99"))
}

#[tokio::test]
async fn an_id_that_says_test_a_missing_hash_or_a_macro_in_its_place_skips_no_check() {
    let signed = pollfish_survey(["30", "eligible", ""], "&debug=true");
    let unsigned = signed.query.split("&signature=").next().unwrap();
    check_everything(async |world| {
        for query in [
            "trans_id=test&amount=5&user_id=test&status=1&type=complete",
            "trans_id=TEST_1&amount=5&user_id=7&status=1&type=complete&hash=",
            "trans_id=t1&amount=5&user_id=7&status=1&type=complete&hash={secure_hash}",
            "trans_id=t1&amount=5&user_id=7&status=1&type=complete&hash={hash}&test=1&debug=true&is_test=true",
            "trans_id={trans_id}&amount=5&user_id=7&status=1&type=complete&hash={secure_hash}",
        ] {
            assert_eq!(get("cpx", query).heard(world).await, "403 bad signature", "{query}");
        }
        for (network, query) in [
            ("gemiad", "user_id=TEST_7&offer_id=1&txid=t1&reward=5&status=completed"),
            ("gemiad", "user_id=TEST_7&offer_id=1&txid=t1&reward=5&status=completed&hash={HASH}"),
            ("radientwall", "subId=7&transId=t1&reward=5&status=1&debug=1"),
            ("radientwall", "subId=7&transId=t1&reward=5&status=1&debug=1&signature="),
            ("pollfish", unsigned),
            ("pollfish", &format!("{unsigned}&signature=[[signature]]")),
            ("theoremreach", "user_id=7&tx_id=t1&reward=5&debug=true"),
            ("admob", "transaction_id=123456789"),
            ("cpalead", "subid=7&lead_id=t1&virtual_currency=5"),
            ("cpalead", "subid=7&lead_id=t1&virtual_currency=5&password="),
            ("cpalead", "subid=7&lead_id=t1&virtual_currency=5&password"),
            ("cpalead", "subid=7&lead_id=t1&virtual_currency=5&password={password}"),
            ("taskwall", "userid=7&user_amount=5&offer_id=1&offer_name=x&payout=1&date=d&password={password}"),
            ("adgate", "user_id=7&trans_id=t1&amount=5&payout=1&state=approved&token=SECRET"),
            ("monlix", "user_id=7&trans_id=t1&amount=5&status=1&secret={{secretKey}}"),
        ] {
            assert_eq!(get(network, query).heard(world).await, "403 bad signature", "{network} {query}");
        }
        let body =
            r#"{"PanelistId": "7", "RewardId": "r1", "Reward": 5, "RewardType": "survey_completed", "IsTest": true}"#;
        assert_eq!(post("inbrain", body).heard(world).await, "403 bad signature");
        assert!(world.proxy.requests().is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_signed_test_is_acknowledged_and_pays_nobody_and_its_flag_can_only_take_coins_away() {
    let pollfish = |more: &str| pollfish_survey(["30", "eligible", ""], more);
    let inbrain = |flag: &str| inbrain(&uuid(1), format!(r#", "Reward": 5, "RewardType": "survey_completed"{flag}"#));
    let theoremreach = |query: &str| {
        let signature = BASE64_STANDARD.encode(hmac::<Hmac<Sha1>>(format!("https://{HOST}/theoremreach?{query}")));
        let signature = signature.replace('+', "-").replace('/', "_").replace('=', "");
        get("theoremreach", format!("{query}&hash={signature}"))
    };
    check_everything(async |world| {
        for (call, expected) in [
            (gemiad("TEST_7", "t1", "reward=5&status=completed"), "test: 200 Approved"),
            (gemiad("TEST_7", "t1", "reward=-5&status=rejected"), "test: 200 Approved"),
            (wall("radientwall", ["7", "t1", "5"], "status=1&debug=1"), "test: 200 OK"),
            (wall("radientwall", ["7", "t1", "5"], "status=2&debug=1"), "test: 200 OK"),
            // It is not signed: whoever adds it makes a credit a test, and no test a credit.
            (pollfish("&debug=true"), "test: 200 OK"),
            (theoremreach("user_id=7&tx_id=t1&reward=5&currency={currency}&debug=true"), "test: 200 OK"),
            (inbrain(r#", "IsTest": true"#), "test: 200 OK"),
            (inbrain(r#", "IsTest": "true""#), "test: 200 OK"),
        ] {
            assert_eq!(call.told(world).await, expected, "{call:?}");
        }
        for call in
            [pollfish("&debug=false"), pollfish("&debug=True"), pollfish("&debug=1"), inbrain(r#", "IsTest": "TRUE""#)]
        {
            assert_eq!(
                call.sent(world).await.outcome,
                "bad_parameters",
                "what is not known to be no test pays nothing"
            );
        }
        assert!(world.proxy.requests().is_empty());
        assert_eq!(
            gemiad("7_TEST_", "test-1", "reward=5&status=completed").told(world).await,
            "credited: 200 Approved"
        );
        assert_eq!(pollfish("").told(world).await, "credited: 200 OK");
    })
    .await;
}

/// Runs a story in a deployment that has every network, with these secrets.
async fn check_everything_with(secrets: &str, story: impl AsyncFnOnce(&World)) {
    let folder = tempfile::tempdir().unwrap();
    let variables = everything(folder.path());
    let mut variables: Vec<_> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    variables.retain(|(name, _)| *name != "NETWORK_SECRETS");
    variables.push(("NETWORK_SECRETS", secrets));
    check_with(&variables, story).await;
}

/// The networks that sign nothing: only their address speaks for them.
const UNSIGNED: &[&str] = &["adtogame", "mmwall", "mychips"];

#[tokio::test]
async fn without_a_secret_nothing_verifies_not_even_an_empty_one() {
    let events = Path::new(env!("CARGO_MANIFEST_DIR")).join("events/offerwall");
    for secrets in ["", "{}", r#"{"standard": []}"#, r#"{"nobody": "local-secret"}"#] {
        check_everything_with(secrets, async |world| {
            for network in names() {
                let event = std::fs::read_to_string(events.join(format!("{network}-credit.json"))).unwrap();
                let status = world.app.offerwall(&event, PATIENCE).await.answer.status;
                assert_eq!(status, if UNSIGNED.contains(&network.as_str()) { 200 } else { 403 }, "{network} {secrets}");
            }
            for call in [
                survey("t1", ""),
                survey("t1", "undefined"),
                survey("t1", "null"),
                monlix("t1", ""),
                monlix("t1", "&secret"),
                monlix("t1", "&secret="),
                monlix("t1", "&secret=undefined"),
                monlix("t1", "&secret=null"),
                monlix("t1", "&secret=None"),
            ] {
                assert_eq!(call.heard(world).await, "403 bad signature", "{} {secrets}", call.query);
            }
            let empty_key = crate::world::signed_with("", "user_id=7&trans_id=t1&status=1&currency_amount=5");
            assert_eq!(get("standard", empty_key).heard(world).await, "403 bad signature", "{secrets}");
        })
        .await;
    }
}

#[tokio::test]
async fn a_secret_that_lacks_its_other_half_verifies_nothing() {
    let call = |publisher: &str| {
        let signature = md5(format!("7:{publisher}:{SECRET}"));
        get("personaly", format!("user_id=7&offer_id=9&amount=5&pub_signature={signature}"))
    };
    for secrets in [r#"{"personaly": "local-secret"}"#, r#"{"personaly": {"publisher": "local-publisher"}}"#] {
        check_networks(&["personaly"], "", &[("NETWORK_SECRETS", secrets)], async |world| {
            for publisher in ["", "local-publisher", "undefined"] {
                assert_eq!(call(publisher).heard(world).await, "403 0", "{secrets} {publisher}");
            }
        })
        .await;
    }
}

#[test]
fn an_empty_secret_one_with_a_newline_and_an_address_that_is_a_placeholder_start_no_function() {
    let source = |mode: &str, addresses: &str| {
        format!("[networks.kiwiwall]\nsource = {{ mode = \"{mode}\", addresses = [{addresses}] }}")
    };
    for addresses in
        ["\"0.0.0.0\"", "\"0.0.0.0/0\"", "\"::\"", "\"::/0\"", "\"192.0.2.1\", \"0.0.0.0\"", "", "\"192.0.2\""]
    {
        for mode in ["enforce", "warn"] {
            let faults = configured(&["kiwiwall"], &source(mode, addresses)).unwrap_err().to_string();
            assert!(faults.contains("networks.kiwiwall.source.addresses"), "{mode} {addresses}: {faults}");
        }
    }
    let open = configured(&["mmwall"], "[networks.mmwall]\nsource.mode = \"off\"").unwrap_err().to_string();
    assert!(open.contains("where nothing is signed: anybody could call"), "{open}");
    for empty in [
        r#"{"cpx": ""}"#,
        r#"{"cpx": ["x", ""]}"#,
        r#"{"cpx": {"secret": ""}}"#,
        r#"{"cpx": null}"#,
        r#"{"cpx": " x"}"#,
        r#"{"cpx": "x\n"}"#,
    ] {
        assert!(postback::secrets::Secrets::read(empty).is_err(), "{empty}");
    }
}

#[tokio::test]
async fn a_header_that_names_an_address_or_a_parameter_that_does_is_only_the_callers_word() {
    const SPOOFS: &[&str] = &[
        "x-forwarded-for",
        "X-Forwarded-For",
        "x-real-ip",
        "x-client-ip",
        "x-cluster-client-ip",
        "true-client-ip",
        "cf-connecting-ip",
        "fastly-client-ip",
        "x-original-forwarded-for",
        "x-amzn-source-ip",
        "client-ip",
        "via",
    ];
    check_everything(async |world| {
        for call in [adgate(), mmwall("t1")] {
            let listed = call.source_ip.clone();
            let mut spoofed = call.clone().sender("192.0.2.7").header("forwarded", &format!("for={listed}"));
            spoofed = SPOOFS.iter().fold(spoofed, |call, name| call.header(name, &listed));
            assert_eq!(spoofed.heard(world).await, "403 source address not allowed");
            // Nor does a spoof take anything from who is genuine.
            let genuine = call.header("x-forwarded-for", "192.0.2.7").header("x-real-ip", "192.0.2.7");
            assert_eq!(genuine.told(world).await, "credited: 200 OK");
        }
        assert!(world.entries().await.iter().all(|row| row["source_ip"] != "192.0.2.7"));
    })
    .await;
}

#[tokio::test]
async fn behind_a_proxy_a_fixed_hop_of_the_header_counts_and_nothing_to_its_left_or_right() {
    check_networks(&["mmwall"], "", &[("SOURCE_HEADER", "X-Forwarded-For 2")], async |world| {
        let call = || mmwall("t1").sender("10.0.0.9");
        const REFUSED: &str = "403 source address not allowed";
        for (header, expected) in [
            ("63.32.127.99, 192.0.2.7, 10.0.0.1", REFUSED),
            ("192.0.2.7, 63.32.127.99", REFUSED),
            ("63.32.127.99", REFUSED),
            ("63.32.127.99,", "200 OK"),
            ("192.0.2.7, 63.32.127.99, 10.0.0.1", "200 OK"),
            ("not an address, ::ffff:63.32.127.99 ,10.0.0.1", "200 OK"),
            ("63.32.127.99:443, 10.0.0.1", REFUSED),
            ("", REFUSED),
        ] {
            assert_eq!(call().header("x-forwarded-for", header).heard(world).await, expected, "{header}");
        }
        let two = call()
            .header("x-forwarded-for", "63.32.127.99, 10.0.0.1")
            .header("X-Forwarded-For", "63.32.127.99, 10.0.0.1");
        assert_eq!(two.heard(world).await, REFUSED);
        assert_eq!(mmwall("t1").heard(world).await, REFUSED, "what connects is the proxy, whatever its address");
    })
    .await;
}

#[tokio::test]
async fn a_whole_url_is_signed_with_the_host_that_was_called_and_no_header_changes_it() {
    let query = "amount=5&player_id=7&transaction_id=t1";
    let call =
        |origin: &str| get("adgem", format!("{query}&verifier={}", hmac_sha256(format!("{origin}/adgem?{query}"))));
    let spoofed = |origin: &str, host: &str| {
        let headers = ["host", "x-forwarded-host", "x-original-host", "x-host", "x-forwarded-server"];
        let call =
            call(origin).header("forwarded", &format!("host={host};proto=http")).header("x-forwarded-proto", "http");
        headers.iter().fold(call, |call, name| call.header(name, host))
    };
    check_networks(&["adgem"], "", &[], async |world| {
        assert_eq!(spoofed("https://evil.example", "evil.example").heard(world).await, "403 bad signature");
        assert_eq!(call("http://api.example.com").heard(world).await, "403 bad signature");
        let elsewhere = Call { host: "evil.example".into(), ..call("https://api.example.com") };
        assert_eq!(elsewhere.heard(world).await, "403 bad signature");
        assert_eq!(spoofed("https://api.example.com", "evil.example").told(world).await, "credited: 200 OK");
    })
    .await;
    check_networks(&["adgem"], "", &[("PUBLIC_URL", "https://pay.example.org/callbacks/")], async |world| {
        assert_eq!(spoofed("https://evil.example", "evil.example").heard(world).await, "403 bad signature");
        assert_eq!(call("https://api.example.com").heard(world).await, "403 bad signature", "nobody calls that one");
        let genuine = spoofed("https://pay.example.org/callbacks", "evil.example");
        assert_eq!(Call { host: "other.example".into(), ..genuine }.told(world).await, "credited: 200 OK");
    })
    .await;
}

#[tokio::test]
async fn a_source_list_is_enforced_or_warned_of_or_off_for_addresses_of_every_kind() {
    let addresses: &[(&str, bool)] = &[
        ("192.0.2.1", true),
        ("::ffff:192.0.2.1", true),
        ("::ffff:c000:201", true),
        ("::FFFF:192.0.2.1", true),
        ("192.0.2.2", false),
        ("::ffff:192.0.2.2", false),
        ("198.51.100.0", true),
        ("198.51.100.255", true),
        ("::ffff:198.51.100.7", true),
        ("198.51.101.0", false),
        ("2001:db8::1", true),
        ("2001:0DB8:0:0::0001", true),
        ("2001:db8::2", false),
        ("2001:db8:1:ffff::9", true),
        ("2001:db8:2::9", false),
        ("", false),
        ("unknown", false),
        ("0.0.0.0", false),
        ("::", false),
        ("192.0.2.01", false),
        ("192.0.2.1 ", false),
        ("192.0.2.1:443", false),
        ("[2001:db8::1]", false),
        ("192.0.2.1, 192.0.2.2", false),
    ];
    for mode in ["enforce", "warn", "off"] {
        let file = format!(
            "[networks.mine]\nbase = \"standard\"\nnetwork.name = \"Mine\"\nsource = {{ mode = \"{mode}\", addresses = \
             [\"192.0.2.1\", \"198.51.100.0/24\", \"2001:db8::1\", \"2001:db8:1::/48\"] }}"
        );
        check_networks(&["mine"], &file, &[], async |world| {
            for (number, (source_ip, listed)) in addresses.iter().enumerate() {
                let query = format!("user_id=7&trans_id=t{number}&status=1&currency_amount=5");
                let signed = get("mine", format!("{query}&signature={}", hmac_sha256(&query))).sender(source_ip);
                let paid = *listed || mode != "enforce";
                let expected = if paid { "credited: 200 ok" } else { "bad_source: 403 source address not allowed" };
                assert_eq!(signed.told(world).await, expected, "{mode} {source_ip}");
                let forged = get("mine", format!("{query}&signature=00")).sender(source_ip);
                assert_eq!(forged.heard(world).await, "403 bad signature", "an address alone is no signature");
            }
        })
        .await;
    }
}

#[tokio::test]
async fn a_url_that_leaked_pays_nobody_from_elsewhere_under_another_id_or_with_more_coins() {
    check_everything(async |world| {
        // The signature of each leaves these open, so that only the address is left.
        for (leaked, changes) in [
            (kiwiwall("7", "5", "trans_id=t1&status=1"), &[("t1", "t2"), ("status=1", "status=2")][..]),
            (gemiad("7", "t1", "reward=5&status=completed"), &[("reward=5", "reward=500")]),
            (timewall("7", "t1", "currencyAmount=5&type=credit"), &[("Amount=5", "Amount=500"), ("t1", "t2")]),
            // A byte of the time to the event's id, and one of the id to the user.
            (ironsource(["202611301200", "e1", "7", "5"], SECRET), &[("eventId=e1&userId=7", "eventId=e&userId=17")]),
        ] {
            for (what, instead) in changes {
                let changed = Call { query: leaked.query.replace(what, instead), ..leaked.clone() }.sender("192.0.2.7");
                let handled = changed.sent(world).await;
                assert_eq!((handled.outcome, handled.answer.status), ("bad_source", 403), "{}", changed.query);
            }
        }
        assert!(world.proxy.requests().is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_macro_of_any_syntax_that_was_not_replaced_pays_nobody() {
    check_everything(async |world| {
        for text in
            ["{x}", "{{x}}", "[X]", "[[x]]", "[%X%]", "$x$", "pre-{x}", "pre-{{x}}-post", "pre-[[x]]", "pre-[%X%]"]
        {
            let escaped = text.replace('%', "%25").replace('{', "%7B").replace('}', "%7D").replace('[', "%5B");
            for written in [text, &escaped] {
                let rest = "amount=5&user_id=7&status=1&type=complete";
                for call in [
                    cpx("t1", rest.replace("user_id=7", &format!("user_id={written}"))),
                    cpx("t1", rest.replace("amount=5", &format!("amount={written}"))),
                    cpx("t1", rest.replace("status=1", &format!("status={written}"))),
                    cpx("t1", rest.replace("type=complete", &format!("type={written}"))),
                    kiwiwall("7", "5", format!("trans_id={written}&status=1")),
                    wall("radientwall", ["7", "t1", "5"], format!("status={written}")),
                ] {
                    let handled = call.sent(world).await;
                    assert_eq!((handled.outcome, handled.answer.status), ("bad_parameters", 400), "{}", call.query);
                }
            }
        }
        assert!(world.proxy.requests().is_empty());
        let named = cpx("t1", "amount=5&user_id=7&status=1&type=complete&offer_id={offer_id}&payout=[PAY]");
        assert_eq!(named.told(world).await, "credited: 200 1", "what no money depends on refuses nothing");
        assert!(
            world.entries().await.iter().all(|row| !row.contains_key("offer_id") && !row.contains_key("payout_usd"))
        );
    })
    .await;
}

#[tokio::test]
async fn every_secret_of_a_list_is_in_force_and_one_that_was_taken_off_it_is_not() {
    let secrets = json!({
        "cpx": ["new", "old"], "monlix": ["new", "old"], "ironsource": ["android", "ios"],
        "personaly": [{"publisher": "hash", "secret": "new"}, {"publisher": "hash", "secret": "old"}],
    })
    .to_string();
    let ironsource = |app: &str| ironsource(["202611301200", app, "7", "5"], app);
    let personaly = |offer: &str, publisher: &str, secret: &str| {
        let signature = md5(format!("7:{publisher}:{secret}"));
        get("personaly", format!("user_id=7&offer_id={offer}&amount=5&pub_signature={signature}"))
    };
    let networks = ["cpx", "monlix", "ironsource", "personaly"];
    check_networks(&networks, "[defaults]\ncap = \"9\"", &[("NETWORK_SECRETS", &secrets)], async |world| {
        for (call, status) in [
            (survey("a", "new"), 200),
            (survey("b", "old"), 200),
            (survey("c", "older"), 403),
            (survey("c", "new, old"), 403),
            (monlix("a", "&secret=new"), 200),
            (monlix("b", "&secret=old"), 200),
            (monlix("c", "&secret=newold"), 403),
            (monlix("c", "&secret=ne"), 403),
            (monlix("c", "&secret=new&secret=old"), 403),
            (ironsource("android"), 200),
            (ironsource("ios"), 200),
            (ironsource("windows"), 403),
            (personaly("1", "hash", "new"), 200),
            (personaly("2", "hash", "old"), 200),
            (personaly("3", "new", "old"), 403),
        ] {
            assert_eq!(call.sent(world).await.answer.status, status, "{}", call.query);
        }
        let after = world.redeployed(&[("NETWORK_SECRETS", r#"{"cpx": ["new"]}"#)]).await;
        for (call, expected) in [(survey("d", "old"), "403 bad signature"), (survey("d", "new"), "200 1")] {
            assert_eq!(line(&after.offerwall(&call.event(), PATIENCE).await), expected);
        }
    })
    .await;
}

#[tokio::test]
async fn a_deployment_changes_one_key_of_a_shipped_network_and_nothing_else_of_it() {
    let file = r#"
        [networks.kiwiwall.answers]
        duplicate = "already"
        [networks.torox.source]
        addresses = ["192.0.2.9"]
        [networks.gemiad.parameters]
        amount = "points"
    "#;
    check_networks(&["kiwiwall", "torox", "gemiad"], file, &[], async |world| {
        let credit = kiwiwall("7", "5", "trans_id=t1&status=1");
        let torox = get("torox", format!("oid=9&user_id=7&id=t1&amount=5&sig={}", md5("9-7-local-secret")));
        for (call, expected) in [
            (credit.clone(), "200 1"),
            (credit.clone(), "200 already"),
            (credit.clone().sender("192.0.2.7"), "403 0"),
            (kiwiwall("7", "x", "trans_id=t2&status=1"), "400 0"),
            (torox.clone(), "403 source address not allowed"),
            (torox.sender("192.0.2.9"), "200 1"),
            (gemiad("7", "t1", "reward=500&points=5&status=completed"), "200 Approved"),
            (gemiad("7", "t2", "reward=500&status=completed"), "400 points: missing"),
        ] {
            assert_eq!(call.heard(world).await, expected, "{}", call.query);
        }
        assert_eq!(world.balance("7").await, "15");
    })
    .await;
}

/// A secret in every place where a URL or a header may carry one, under every network that does so.
fn secret_carriers() -> Vec<Call> {
    let offermaru = "user_id=7&transaction_id=t1&user_reward=5&offer_name=x%0A%7B%22outcome%22%3A%22forged%22%7D";
    vec![
        get("adgate", "user_id=7&trans_id=t1&amount=5&payout=0.5&state=approved&token=hunter2"),
        get("monlix", "user_id=7&trans_id=t1&amount=5&status=1&secret=hunter2"),
        get("monlix", "user_id=8&trans_id=t1&amount=6&status=1&secret=hunter2"),
        get("monlix", "user_id=7&trans_id=t9&amount=5&status=2&secret=hunter2"),
        get("cpalead", "subid=7&lead_id=t1&virtual_currency=5&password=hunter2"),
        get("taskwall", "userid=7&user_amount=5&offer_id=1&offer_name=x&payout=1&date=d&password=hunter2"),
        get("upwall", "userid=7&transactionID=t1&user_amount=5&payout=1&token=hunter2"),
        get("offermaru", format!("{offermaru}&secret=hunter2")),
        get("mine", "user_id=7&transaction_id=t1&user_reward=5").header("X-Secret", "hunter2"),
        get("cpalead", "subid=7&lead_id=t2&virtual_currency=x&password=hunter2"),
        get("cpalead", "subid=7&lead_id=t2&virtual_currency=5&password=hunter2").sender("192.0.2.7"),
        get("monlix", "user_id=7&trans_id=t2&amount=5&status=1&secret=hunter22"),
        get("mine", "user_id=7&transaction_id=t2&user_reward=5").header("X-Secret", "hunter22"),
        get("nobody", "secret=hunter2"),
        Call { method: "POST".into(), ..get("monlix", "secret=hunter2") },
    ]
}

#[tokio::test]
async fn a_secret_in_a_url_or_a_header_stands_in_no_log_no_answer_no_entry_and_no_debug() {
    let networks = ["adgate", "monlix", "cpalead", "taskwall", "upwall", "offermaru", "mine"];
    let mut file = ["monlix", "taskwall", "upwall", "offermaru", "mine"]
        .map(|network| format!("[networks.{network}]\naccept_weak = true\n"))
        .concat();
    file += "base = \"offermaru\"\nnetwork.name = \"Mine\"\nsignature = { parameter = \"\", header = \"X-Secret\" }";
    let secrets: Map<String, Value> = networks.iter().map(|name| ((*name).to_owned(), "hunter2".into())).collect();
    let secrets = Value::from(secrets).to_string();
    let variables = [("NETWORK_SECRETS", secrets.as_str()), ("LOG_LEVEL", "trace")];
    check_networks(&networks, &file, &variables, async |world| {
        let api = RuntimeApi::start().await;
        let mut function = Bootstrap::spawn(Path::new(env!("CARGO_BIN_EXE_offerwall")), &world.variables, &api);
        let mut statuses = Vec::new();
        for call in secret_carriers() {
            let answer = api.invoke(&call.event(), PATIENCE).await.unwrap();
            assert!(!answer.to_string().contains("hunter2"), "{answer}");
            statuses.push(answer["statusCode"].as_u64().unwrap());
            let shown = format!("{:?}", call.sent(world).await);
            assert!(!shown.contains("hunter2"), "{shown}");
        }
        assert_eq!(statuses, [200, 200, 200, 200, 200, 200, 200, 200, 200, 400, 503, 403, 403, 404, 405]);
        function.kill().await;
        let log = function.output();
        for outcome in ["credited", "conflict", "reversed_unseen", "bad_parameters", "bad_source", "bad_signature"] {
            assert!(log.contains(&format!("\"outcome\":\"{outcome}\"")), "{outcome} in {log}");
        }
        for word in ["hunter2", "secret=", "password=", "forged", "user_id="] {
            assert!(!log.contains(word), "{word} in {log}");
        }
        let rows = format!("{:?} {:?}", world.entries().await, world.cases().await);
        assert!(rows.contains("fingerprint") && !rows.contains("hunter2"), "{rows}");
        let app = format!("{:?}", world.app);
        assert!(app.contains("monlix") && !app.contains("hunter2"), "{app}");
    })
    .await;
}

#[tokio::test]
async fn the_fingerprint_of_a_call_that_carries_the_secret_does_not_depend_on_the_secret() {
    // The first 32 digits of `printf 'user_id=7&amount=5&status=1&trans_id=t1&' | sha256sum`.
    const EXPECTED: &str = "8e122ddc22671f02b3f16162bdd87e56";
    for secret in ["hunter2", "another"] {
        let secrets = json!({"monlix": secret}).to_string();
        check_networks(
            &["monlix"],
            "[networks.monlix]\ncap = \"9\"",
            &[("NETWORK_SECRETS", &secrets)],
            async |world| {
                let call = monlix("t1", &format!("&secret={secret}"));
                assert_eq!(call.told(world).await, "credited: 200 OK");
                assert_eq!(world.entries().await[0]["fingerprint"], EXPECTED);
            },
        )
        .await;
    }
}

#[tokio::test]
async fn the_log_tells_a_final_answer_and_an_address_that_is_on_no_list_and_holds_no_text_of_a_caller() {
    check_networks(&["tapjoy", "adgem", "kiwiwall"], "", &[], async |world| {
        let api = RuntimeApi::start().await;
        let mut function = Bootstrap::spawn(Path::new(env!("CARGO_BIN_EXE_offerwall")), &world.variables, &api);
        let name = "x%0A%7B%22outcome%22%3A%22forged%22%7D%1B[2J%FF";
        for call in [
            get("tapjoy", "id=t1&snuid=7&currency=5&verifier=00"),
            adgem("amount=5&player_id=7&transaction_id=t1").sender("203.0.113.5"),
            kiwiwall("7", "5", format!("trans_id=t1&status=1&offer_name={name}")),
            kiwiwall("7", "5", format!("trans_id={name}&status=1")),
        ] {
            api.invoke(&call.event(), PATIENCE).await.unwrap();
        }
        function.kill().await;
        let log = function.output();
        let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let calls: Vec<_> = lines.iter().filter(|line| line["message"] == "postback").collect();
        let told = calls.iter().map(|line| (line["outcome"].as_str().unwrap(), line["final"].as_bool()));
        assert_eq!(
            told.collect::<Vec<_>>(),
            [("bad_signature", Some(true)), ("credited", None), ("credited", None), ("bad_parameters", None)]
        );
        let warnings: Vec<_> = lines.iter().filter(|line| line["source_ip"] == "203.0.113.5").collect();
        assert_eq!(warnings.len(), 1, "{log}");
        assert_eq!((&warnings[0]["level"], &warnings[0]["network"]), (&json!("WARN"), &json!("adgem")));
        for word in ["forged", "\u{1b}", SECRET, "verifier=", "amount=5", "sub_id"] {
            assert!(!log.contains(word), "{word} in {log}");
        }
        let row = world.entries().await.into_iter().find(|row| row["trans_id"] == "kiwiwall/t1").unwrap();
        assert_eq!(row["offer_name"], "x {\"outcome\":\"forged\"} [2J\u{fffd}");
    })
    .await;
}

/// What has confused readers of queries, forms and JSON before, and any text at all; never the secret.
fn any_text(names: &[String]) -> impl Strategy<Value = String> + use<> {
    const NASTY: &[&str] = &[
        "1",
        "2",
        "5",
        "-5",
        "t1",
        "7",
        "credited",
        "completed",
        "true",
        "TEST_7",
        "undefined",
        "null",
        "{x}",
        "[[x]]",
        "%",
        "%zz",
        "%00",
        "%ff",
        "+",
        "&",
        "&&",
        "=",
        "==",
        "\"",
        "\\",
        "{",
        "}",
        "[",
        "\\ud800",
        "\u{0}",
        "\r\n",
        "\u{fffd}",
        "\u{202e}",
        "é",
        "0e1234",
        "00",
        "AAAA",
        "====",
        "d41d8cd98f00b204e9800998ecf8427e",
        "MEUCIQ",
        "1e9",
        "1,000",
        "signature=",
        "hash=",
        ":",
    ];
    let nasty = prop::sample::select(NASTY).prop_map(str::to_owned);
    let name = prop::sample::select(names.to_vec());
    let pair = (name, prop::sample::select(NASTY)).prop_map(|(name, value)| format!("{name}={value}&"));
    let json = prop::collection::vec((prop::sample::select(names.to_vec()), prop::sample::select(NASTY)), 0..8)
        .prop_map(|pairs| {
            let pairs: Vec<_> =
                pairs.iter().map(|(name, value)| format!("{}: {}", json!(name), json!(value))).collect();
            format!("{{{}}}", pairs.join(", "))
        });
    let piece = prop_oneof![4 => pair, 2 => nasty, 1 => ".{0,8}".prop_map(String::from)];
    prop_oneof![3 => prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat()), 1 => json]
}

/// Every name that a network's requests are read by, and the header of its signature.
fn names_of(network: &str) -> (Vec<String>, String) {
    let preset = Catalogue::default().preset(&postback::id::Network::new(network).unwrap()).unwrap();
    let parameters = &preset.parameters;
    let mut names = vec![parameters.user_id.clone(), parameters.amount.clone(), "debug".into()];
    match &parameters.trans_id {
        Identity::Field(name) => names.push(name.clone()),
        Identity::Fingerprint(picks) => names.extend(picks.iter().map(|pick| pick.name.clone())),
    }
    names.extend(preset.rules.iter().flat_map(|rule| &rule.when).map(|(name, _)| name.clone()));
    names.extend(preset.signature.message.fields().map(str::to_owned));
    let header = match &preset.signature.place {
        Some(Place::Field(name)) => {
            names.push(name.clone());
            "signature".to_owned()
        }
        Some(Place::Header(name)) => name.clone(),
        None => "signature".to_owned(),
    };
    assert_eq!(preset.signature.algorithm == Algorithm::None, UNSIGNED.contains(&network), "{network}");
    (names, header)
}

/// A function URL's event that nobody signed.
fn any_event(network: &str, runner: &mut TestRunner) -> String {
    let (names, header) = names_of(network);
    let listed = if UNSIGNED.contains(&network) { "192.0.2.7" } else { address(network) };
    let mut one_of = |texts: Vec<&'static str>| prop::sample::select(texts).new_tree(runner).unwrap().current();
    let method = one_of(vec!["GET", "POST", "GET", "POST", "HEAD", "get", ""]);
    let source_ip = one_of(vec![listed, "192.0.2.7", "", "unknown", "::1", "127.0.0.1"]);
    let base64 = one_of(vec!["true", "false", "\"true\"", "null", "1"]);
    let path = one_of(vec!["", "/"]);
    let mut text = || any_text(&names).new_tree(runner).unwrap().current();
    let (query, value, spoofed, body) = (text(), text(), text(), text());
    let body = if base64 == "true" && body.len() % 3 > 0 { BASE64_STANDARD.encode(body) } else { body };
    json!({
        "rawPath": format!("/{network}{path}"), "rawQueryString": query, "body": body,
        "headers": {header: value, "x-forwarded-for": address(network), "x-secret": spoofed},
        "isBase64Encoded": serde_json::from_str::<Value>(base64).unwrap(),
        "requestContext": {"domainName": HOST, "http": {"method": method, "sourceIp": source_ip}},
    })
    .to_string()
}

#[tokio::test]
async fn no_request_that_nobody_signed_moves_coins_or_ends_the_process_at_any_network() {
    check_everything(async |world| {
        let mut runner = TestRunner::deterministic();
        for network in names() {
            for _ in 0..60 {
                let event = any_event(&network, &mut runner);
                let handled = world.app.offerwall(&event, PATIENCE).await;
                let refused = ["bad_signature", "bad_source", "method_not_allowed"].contains(&handled.outcome);
                assert!(refused && [403, 405].contains(&handled.answer.status), "{event}: {handled:?}");
                assert!(!format!("{handled:?}").contains(SECRET), "{handled:?}");
            }
        }
        assert!(world.proxy.requests().is_empty(), "not one of them was worth a DynamoDB call");
    })
    .await;
}

#[tokio::test]
async fn whatever_stands_in_a_request_that_was_signed_gets_an_answer_and_the_books_balance() {
    let names = [
        "player_id",
        "transaction_id",
        "amount",
        "data",
        "data.amount",
        "user_id",
        "trans_id",
        "status",
        "currency_amount",
    ];
    let names = names.map(str::to_owned);
    check_everything(async |world| {
        let mut runner = TestRunner::deterministic();
        for _ in 0..400 {
            let text = any_text(&names).new_tree(&mut runner).unwrap().current();
            let query = format!("x=1&{}", text.replace(' ', "+"));
            let credit = format!("user_id=7&trans_id=t1&status=1&currency_amount=5&{query}");
            let standard = [query.clone(), credit]
                .map(|query| get("standard", format!("{query}&signature={}", hmac_sha256(&query))));
            for call in standard.into_iter().chain([adgem_v3(text.as_str()), adgem_v3(reward(&text)), adgem(&query)]) {
                let handled = call.sent(world).await;
                // A second signature, among what was made up, is the one thing that no signature survives.
                let twice = call.query.matches("signature=").count() > 1;
                assert!(twice || [200, 400].contains(&handled.answer.status), "{call:?}: {handled:?}");
            }
        }
        assert!(!world.entries().await.is_empty());
    })
    .await;
}

/// A credit in AdGem's JSON with any text as the offer's name.
fn reward(name: &str) -> String {
    let data =
        json!({"player_id": "7", "transaction_id": "t1", "amount": 5, "conversion_type": "reward", "offer_name": name});
    json!({"data": data}).to_string()
}
