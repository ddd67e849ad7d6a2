//! What is signed: queries and URLs as they were on the wire, values decoded once, headers, forms and JSON bodies.

use base64::prelude::{BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE, BASE64_URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};

use super::*;
use crate::networks::{check_everything, names};

/// A network, a credit of it without the signature, the signature's parameter, and the signature.
type OnTheWire = (&'static str, &'static str, &'static str, fn(&str) -> String);

/// The networks that sign what is on the wire.
const ON_THE_WIRE: &[OnTheWire] = &[
    ("standard", "user_id=7&trans_id=t%2f1&status=1&currency_amount=5", "signature", |query| hmac_sha256(query)),
    ("adscend", "user_id=7&trans_id=t%2f1&payout=1&amount=5", "hash", |query| hmac_md5(query)),
    ("adgem", "player_id=7&transaction_id=t%2f1&amount=5", "verifier", |query| {
        hmac_sha256(format!("https://{HOST}/adgem?{query}"))
    }),
    ("bitlabs", "user_id=7&trans_id=t%2f1&amount=5&type=COMPLETE", "hash", |query| {
        hmac_sha1(format!("https://{HOST}/bitlabs?{query}"))
    }),
    ("notik", "user_id=7&txn_id=t%2f1&rewarded_txn_id&amount=5", "hash", |query| {
        hmac_sha1(format!("https://{HOST}/notik?{query}"))
    }),
    ("theoremreach", "user_id=7&tx_id=t%2f1&reward=5", "hash", |query| {
        BASE64_URL_SAFE_NO_PAD.encode(hmac::<Hmac<Sha1>>(format!("https://{HOST}/theoremreach?{query}")))
    }),
];

#[tokio::test]
async fn a_query_that_was_written_anew_no_longer_verifies() {
    check_everything(async |world| {
        for (network, credit, parameter, sign) in ON_THE_WIRE {
            let sent = format!("{credit}&empty=&bare&offer_name=A%20B%20%28x%29*~");
            let signature = sign(&sent);
            let call = |query: &str| get(network, format!("{query}&{parameter}={signature}"));
            for (what, instead) in [
                ("%20", "+"),
                ("~", "%7E"),
                ("*", "%2A"),
                ("%28", "("),
                ("%2f", "%2F"),
                ("%2f", "/"),
                ("&empty=", ""),
                ("&empty=", "&empty"),
                ("&empty=", "&empty=null"),
                ("&bare", ""),
                ("&bare", "&bare="),
                ("&bare", "&bare&bare"),
                ("&", "&amp;"),
                ("&", "&&"),
            ] {
                let rewritten = sent.replace(what, instead);
                assert_ne!(rewritten, sent, "{network}");
                assert_eq!(call(&rewritten).sent(world).await.outcome, "bad_signature", "{network} {rewritten}");
            }
            let mut sorted: Vec<_> = sent.split('&').collect();
            sorted.sort_unstable();
            assert_eq!(call(&sorted.join("&")).sent(world).await.outcome, "bad_signature", "{network}");
            assert_eq!(call(&sent).sent(world).await.outcome, "credited", "{network}");
            assert_eq!(call(&sent).sent(world).await.outcome, "duplicate", "{network}");
        }
        for row in world.entries().await {
            assert_eq!(
                (row["offer_name"].as_str(), &row["trans_id"][row["trans_id"].len() - 4..]),
                ("A B (x)*~", "/t/1")
            );
        }
    })
    .await;
}

#[tokio::test]
async fn a_space_is_signed_as_it_was_sent_as_percent_twenty_or_as_plus_and_means_the_same() {
    check_everything(async |world| {
        for (network, credit, parameter, sign) in ON_THE_WIRE {
            let escaped = format!("{}&offer_name=A%20B", credit.replace("t%2f1", "escaped"));
            let plus = format!("{}&offer_name=A+B", credit.replace("t%2f1", "plus"));
            for query in [&escaped, &plus] {
                let call = get(network, format!("{query}&{parameter}={}", sign(query)));
                assert_eq!(call.sent(world).await.outcome, "credited", "{network} {query}");
                // A function URL may hand a `+` over as a space.
                let spaced = Call { query: call.query.replace('+', " "), ..call };
                assert_eq!(spaced.sent(world).await.outcome, "duplicate", "{network} {query}");
            }
            let decoded = get(network, format!("{escaped}&{parameter}={}", sign(&escaped.replace("%20", " "))));
            assert_eq!(decoded.sent(world).await.outcome, "bad_signature", "{network}");
        }
        assert!(world.entries().await.iter().all(|row| row["offer_name"] == "A B"));
    })
    .await;
}

#[tokio::test]
async fn the_network_that_signs_sorted_and_encoded_anew_verifies_whatever_the_wire_looked_like() {
    // As PHP's http_build_query makes it: space is +, ~ and * are escaped, an empty value stays.
    let message =
        "amount=5&callback_type=&is_chargeback=0&offer_name=a+b%7E%2A%28%29%27%21%C3%A9&trans_id=t1&user_id=7";
    let rest = "callback_type=&is_chargeback=0&trans_id=t1&user_id=7";
    check_everything(async |world| {
        for (wire, expected) in [
            (format!("amount=5&offer_name=a%20b~*()'!%C3%A9&{rest}"), "credited: 200 OK"),
            (format!("{rest}&offer_name=a+b%7e%2a%28%29%27%21%c3%a9&amount=5"), "duplicate: 200 OK"),
            (format!("{rest}&offer_name=a%20b~*()'!é&%61mount=%35"), "duplicate: 200 OK"),
            (message.replace("callback_type=&", "callback_type&"), "duplicate: 200 OK"),
            (message.replace("callback_type=&", ""), "bad_signature: 403 bad signature"),
            (format!("{message}&network=ayet"), "bad_signature: 403 bad signature"),
            (message.replace("amount=5", "amount=50"), "bad_signature: 403 bad signature"),
        ] {
            assert_eq!(ayet(&wire, message).told(world).await, expected, "{wire}");
        }
        for wrong in [
            message.replace("a+b%7E", "a%20b~"),
            message.replace("a+b%7E%2A%28%29%27%21", "a%20b~*()'!"),
            message.replace("%C3%A9", "%c3%a9"),
            message.replace("callback_type=&", ""),
            format!("{rest}&amount=5&offer_name=a+b%7E%2A%28%29%27%21%C3%A9"),
        ] {
            assert_eq!(ayet(message, &wrong).heard(world).await, "403 bad signature", "{wrong}");
        }
    })
    .await;
}

#[tokio::test]
async fn what_is_empty_valueless_or_there_twice_is_never_taken_for_money_and_never_guessed() {
    let paid = "amount=5&user_id=7&status=1&type=complete";
    check_everything(async |world| {
        for (call, expected) in [
            (adgem("amount=5&amount=5&player_id=7&transaction_id=t1"), "400 amount: sent more than once"),
            (adgem("amount=5&player_id&transaction_id=t1"), "400 player_id: missing"),
            (adgem("amount=5&player_id=7&transaction_id="), "400 transaction_id: missing"),
            (adgem("amount=&player_id=7&transaction_id=t1"), "400 amount: missing"),
            (adgem("amount&player_id=7&transaction_id=t1"), "400 amount: missing"),
            (
                adgem("amount=5&player_id=7&transaction_id=a&%74ransaction_id=b"),
                "400 transaction_id: sent more than once",
            ),
            (cpx("a", format!("%74rans_id=b&{paid}")), "403 bad signature"),
            (cpx("a", format!("trans_id=b&{paid}")), "403 bad signature"),
            (cpx("a", format!("hash=&{paid}")), "403 bad signature"),
            (cpx("a", format!("status=2&{paid}")), "400 status: sent more than once"),
            (cpx("", paid), "400 trans_id: missing"),
            (kiwiwall("7", "5", "sub_id=8&trans_id=t1&status=1"), "403 0"),
            (kiwiwall("7", "5", "trans_id=t1&trans_id=t2&status=1"), "400 0"),
            (kiwiwall("7", "5", "trans_id=t1&status=&status=1"), "400 0"),
        ] {
            assert_eq!(call.heard(world).await, expected, "{}", call.query);
        }
        let requests = world.proxy.requests().len();
        assert_eq!(requests, 0, "none of them was worth a DynamoDB call");
        let call = adgem("amount=5&player_id=7&transaction_id=t1&campaign_id=1&campaign_id=2&goal_id=&goal_name");
        assert_eq!(call.told(world).await, "credited: 200 OK");
        let row = &world.entries().await[0];
        assert_eq!((row.get("offer_id"), row.get("goal_id")), (None, None));
    })
    .await;
}

/// The first text of a counter whose signature in base64 holds both digits that a URL may spoil.
fn spoilable(message: impl Fn(&str) -> String) -> (String, Vec<u8>) {
    let mut texts = (0..).map(|count: u32| format!("t{count}"));
    texts
        .find_map(|text| {
            let signature = hmac::<Hmac<Sha1>>(message(&text));
            let digits = BASE64_STANDARD.encode(&signature);
            (digits.contains('+') && digits.contains('/')).then_some((text, signature))
        })
        .unwrap()
}

#[tokio::test]
async fn a_base64_signature_verifies_with_an_escaped_plus_with_a_bare_one_and_without_padding() {
    check_everything(async |world| {
        let (id, signature) = spoilable(|id| format!("30:7:Coins:5:eligible::1:{id}"));
        let fields = "reward_value=5&reward_name=Coins&cpa=30&status=eligible&term_reason=&timestamp=1";
        let query = format!("request_uuid=7&tx_id={id}&{fields}");
        let bare = BASE64_STANDARD.encode(&signature);
        for (digits, expected) in [
            (bare.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D"), "credited: 200 OK"),
            (bare.replace('+', "%2b").replace('/', "%2f").replace('=', "%3d"), "duplicate: 200 OK"),
            (bare.clone(), "duplicate: 200 OK"),
            // A function URL may hand a `+` over as a space.
            (bare.replace('+', " "), "duplicate: 200 OK"),
            (BASE64_STANDARD_NO_PAD.encode(&signature), "duplicate: 200 OK"),
            (bare.replace('+', "%20"), "bad_signature: 403 bad signature"),
            (bare.replace('+', "%252B"), "bad_signature: 403 bad signature"),
            (BASE64_URL_SAFE.encode(&signature), "bad_signature: 403 bad signature"),
            (hex::encode(&signature), "bad_signature: 403 bad signature"),
        ] {
            let call = get("pollfish", format!("{query}&signature={digits}"));
            assert_eq!(call.told(world).await, expected, "{digits}");
        }
        assert_eq!(world.balance("7").await, "5");
    })
    .await;
}

#[tokio::test]
async fn a_base64url_signature_verifies_padded_or_not_and_in_no_other_alphabet() {
    check_everything(async |world| {
        let query = |id: &str| format!("user_id=7&tx_id={id}&reward=5");
        let (id, signature) = spoilable(|id| format!("https://{HOST}/theoremreach?{}", query(id)));
        for (digits, expected) in [
            (BASE64_URL_SAFE_NO_PAD.encode(&signature), "credited: 200 OK"),
            (BASE64_URL_SAFE.encode(&signature), "duplicate: 200 OK"),
            (BASE64_URL_SAFE.encode(&signature).replace('=', "%3D").replace('-', "%2D"), "duplicate: 200 OK"),
            (format!("{}%0A", BASE64_URL_SAFE.encode(&signature)), "bad_signature: 403 bad signature"),
            (BASE64_STANDARD.encode(&signature), "bad_signature: 403 bad signature"),
        ] {
            let call = get("theoremreach", format!("{}&hash={digits}", query(&id)));
            assert_eq!(call.told(world).await, expected, "{digits}");
        }
    })
    .await;
}

#[tokio::test]
async fn every_macro_of_the_template_is_signed_in_the_order_of_their_names_and_none_may_be_left_out() {
    let fields = [
        ("cpa", "30"),
        ("request_uuid", "7"),
        ("reward_name", "Gold coins"),
        ("reward_value", "5"),
        ("status", "eligible"),
        ("term_reason", ""),
        ("timestamp", "1"),
        ("tx_id", "t1"),
    ];
    let query = |fields: &[(&str, &str)]| {
        let pairs: Vec<_> = fields.iter().rev().map(|(name, value)| format!("{name}={value}")).collect();
        pairs.join("&").replace(' ', "+")
    };
    let message = |fields: &[(&str, &str)]| fields.iter().map(|(_, value)| *value).collect::<Vec<_>>().join(":");
    check_everything(async |world| {
        for at in 0..fields.len() {
            let without = [&fields[..at], &fields[at + 1..]].concat();
            let handled = pollfish(query(&without), &message(&without)).sent(world).await;
            assert_eq!(line(&handled), "403 bad signature", "{}", fields[at].0);
            assert_eq!(handled.why, Some(format!("the field {} is signed, and missing", fields[at].0)));
        }
        let empty_left_out = message(&fields).replace("::", ":");
        assert_eq!(pollfish(query(&fields), &empty_left_out).heard(world).await, "403 bad signature");
        assert_eq!(pollfish(query(&fields), &message(&fields)).told(world).await, "credited: 200 OK");
    })
    .await;
}

#[tokio::test]
async fn values_are_signed_in_the_order_of_their_macros_an_absent_one_left_out_and_an_empty_one_kept() {
    let file = r#"
        [networks.fewer]
        base = "pollfish"
        accept_weak = true
        network.name = "Pollfish with macros that may be missing"
        signature.message = [
            "{click_id|optional}", "{cpa}", "{device_id|optional}", "{request_uuid|filled}", "{reward_name|optional}",
            "{reward_value}", "{status}", "{term_reason|optional}", "{timestamp|optional}", "{tx_id}",
        ]"#;
    let rest = "reward_value=5&status=eligible&tx_id";
    check_networks(&["fewer"], file, &[], async |world| {
        for (query, message, expected) in [
            (format!("request_uuid=7&cpa=30&{rest}=a"), "30:7:5:eligible:a", "credited: 200 OK"),
            (format!("{rest}=b&term_reason=&cpa=30&request_uuid=7"), "30:7:5:eligible::b", "credited: 200 OK"),
            (
                format!("{rest}=c&term_reason=&cpa=30&request_uuid=7"),
                "30:7:5:eligible:c",
                "bad_signature: 403 bad signature",
            ),
            (
                format!(
                    "{rest}=d&cpa=30&request_uuid=7&timestamp=1&device_id=x&click_id=y&reward_name=Gold+coins&app=ours"
                ),
                "y:30:x:7:Gold coins:5:eligible:1:d",
                "credited: 200 OK",
            ),
            (format!("{rest}=e&cpa=30&request_uuid="), "30:5:eligible:e", "bad_parameters: 400 request_uuid: missing"),
        ] {
            let call = Call { path: "/fewer".into(), ..pollfish(&query, message) };
            assert_eq!(call.told(world).await, expected, "{query}");
        }
        assert_eq!(world.balance("7").await, "15");
    })
    .await;
}

#[tokio::test]
async fn a_signature_of_another_length_or_kind_is_a_clean_403() {
    check_everything(async |world| {
        let right = cpx("t1", "amount=5&user_id=7&status=1&type=complete");
        let secret = "user_id=7&trans_id=t1&amount=5&status=1&secret=local-secret";
        let long = "a".repeat(10_000);
        let genuine = [
            (right.clone(), "hash"),
            (adgem("amount=5&player_id=7&transaction_id=t1"), "verifier"),
            (pollfish_survey(["30", "eligible", ""], ""), "signature"),
            (get("monlix", secret), "secret"),
        ];
        for (call, parameter) in &genuine {
            let (query, presented) = call.query.rsplit_once(&format!("&{parameter}=")).unwrap();
            let (shorter, longer) = (&presented[..presented.len() - 2], format!("{presented}00"));
            let (twice, reversed) = (presented.repeat(2), presented.chars().rev().collect::<String>());
            for wrong in [
                shorter,
                &longer,
                &twice,
                &reversed,
                &long,
                "",
                "0",
                "a",
                "00",
                "0e123456",
                "undefined",
                "null",
                "%00",
                "%",
                "%FF",
                "%C3%BC",
                "é",
                "[]",
                "%7B%7D",
            ] {
                let forged = get(&call.path[1..], format!("{query}&{parameter}={wrong}"));
                assert_eq!(forged.heard(world).await, "403 bad signature", "{}", forged.query);
            }
            assert_eq!(get(&call.path[1..], query).heard(world).await, "403 bad signature", "{query}");
        }
        assert!(world.proxy.requests().is_empty());
        let upper = right.query.rsplit_once('=').map(|(query, hash)| format!("{query}={}", hash.to_uppercase()));
        for (call, _) in &genuine {
            assert_eq!(call.sent(world).await.outcome, "credited", "{}", call.query);
        }
        assert_eq!(get("cpx", upper.unwrap()).told(world).await, "duplicate: 200 1", "hex has no case");
    })
    .await;
}

#[tokio::test]
async fn a_number_is_signed_as_it_was_received_and_never_printed_again() {
    check_everything(async |world| {
        let reward = wall("radientwall", ["7", "t1", "25.0"], "status=1");
        assert_eq!(reward.told(world).await, "credited: 200 OK");
        let reprinted = wall("radientwall", ["7", "t2", "25"], "status=1").query.replace("reward=25&", "reward=25.0&");
        assert_eq!(get("radientwall", reprinted).heard(world).await, "403 bad signature");
        let lootably = |message: &str, id: &str| {
            let rest = "user_id=7&ip=203.0.113.9&revenue=0.5000&amount=100.00&status=1";
            get("lootably", format!("{rest}&trans_id={id}&hash={}", sha256(format!("{message}{SECRET}"))))
        };
        assert_eq!(lootably("7203.0.113.90.5000100.00", "t1").told(world).await, "credited: 200 1");
        assert_eq!(lootably("7203.0.113.90.5100", "t2").heard(world).await, "403 bad signature");
        assert_eq!(world.balance("7").await, "125");
    })
    .await;
}

#[tokio::test]
async fn an_amount_that_is_cut_for_the_signature_is_credited_whole_and_its_double_pays_nothing() {
    check_everything(async |world| {
        // 100.1234, 100.99 and 100 all sign as 100.
        let call = |value: &str, signed: &str| {
            let signature = md5(format!("{SECRET}.7.{signed}.t1"));
            get("pubscale", format!("user_id=7&value={value}&token=t1&signature={signature}"))
        };
        for (value, signed, expected) in [
            ("100.1234", "100.1234", "bad_signature: 403 bad signature"),
            ("100.1234", "101", "bad_signature: 403 bad signature"),
            ("100,1234", "100", "bad_signature: 403 bad signature"),
            ("100.1234", "100", "credited: 200 OK"),
            ("100.1234", "100", "duplicate: 200 OK"),
            ("100.99", "100", "conflict: 200 OK"),
        ] {
            assert_eq!(call(value, signed).told(world).await, expected, "{value} signed as {signed}");
        }
        let elsewhere = call("100.99", "100").sender("192.0.2.7");
        assert_eq!(elsewhere.heard(world).await, "403 source address not allowed");
        assert_eq!((world.balance("7").await, world.entries().await.len()), ("100.12".into(), 1));
    })
    .await;
}

#[tokio::test]
async fn an_id_or_a_time_of_another_form_than_the_networks_is_refused_though_it_is_signed() {
    let adjoe = |id: &str| {
        let sid = sha1(format!("{id}75{SECRET}"));
        get("adjoe", format!("trans_uuid={id}&user_uuid=7&coin_amount=5&sid={sid}"))
    };
    let survey = |id: &str| inbrain(id, r#", "Reward": 5, "RewardType": "survey_completed""#);
    let rewarded = |time: &str| ironsource([time, "e1", "7", "5"], SECRET);
    let good = uuid(1);
    check_everything(async |world| {
        // A byte moved to the neighbour and a byte moved from it.
        for bad in [&good[1..], &format!("{good}5"), "t1", &good.replace('-', ""), &good.replace('1', "g")] {
            for (call, name) in [(fyber(bad), "_trans_id_"), (adjoe(bad), "trans_uuid"), (survey(bad), "RewardId")] {
                let expected = format!("400 {name}: not of the form that this network sends");
                assert_eq!(call.heard(world).await, expected, "{call:?}");
            }
        }
        for (time, expected) in [
            ("20261130120", "400 timestamp: not of the form that this network sends"),
            ("2026113012001", "400 timestamp: not of the form that this network sends"),
            ("", "400 timestamp: missing"),
        ] {
            assert_eq!(rewarded(time).heard(world).await, expected, "{time}");
        }
        for call in [fyber(&good), adjoe(&good), survey(&good), rewarded("202611301200")] {
            assert_eq!(call.sent(world).await.outcome, "credited", "{call:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn what_stands_between_signed_fields_stands_in_no_field_but_the_users() {
    let offerdaddy = |id: &str, offer: &str| {
        let signature = md5(format!("{id}/{offer}/{SECRET}"));
        get("offerdaddy", format!("transaction_id={id}&offer_id={offer}&userid=7&amount=5&signature={signature}"))
    };
    let pubscale = |user: &str, value: &str, token: &str| {
        let signature = md5(format!("{SECRET}.{user}.{value}.{token}"));
        get("pubscale", format!("user_id={user}&value={value}&token={token}&signature={signature}"))
    };
    check_everything(async |world| {
        // What the network sent comes last; the others are its text, cut elsewhere, with the same signature.
        for (cuts, doubtful) in [
            (
                vec![tapjoy(["t1:7", "5", "9"]), tapjoy(["t1", "7", "5:9"]), tapjoy(["t1", "7:5", "9"])],
                &["id", "currency"][..],
            ),
            (
                vec![offerdaddy("a/b", "c"), offerdaddy("a", "b/c"), offerdaddy("a", "b")],
                &["transaction_id", "offer_id"],
            ),
            (vec![pubscale("7", "100", "5.t1"), pubscale("7.100", "5", "t1")], &["token"]),
        ] {
            for (cut, name) in cuts.iter().zip(doubtful) {
                let handled = cut.sent(world).await;
                assert_eq!((handled.outcome, handled.answer.status), ("bad_signature", 403), "{}", cut.query);
                let why = format!("the field {name} is signed, and holds what stands between the signed fields");
                assert_eq!(handled.why, Some(why), "{}", cut.query);
            }
            assert_eq!(cuts.last().unwrap().sent(world).await.outcome, "credited", "{cuts:?}");
        }
        let users: Vec<_> = world.balances().await.into_keys().collect();
        assert_eq!(users, ["7", "7.100", "7:5"]);
    })
    .await;
}

#[tokio::test]
async fn a_value_is_decoded_once_and_not_twice_and_not_never() {
    check_everything(async |world| {
        let call = |user: &str, signed: &str| {
            let call = ironsource(["202611301200", "e1", signed, "5"], SECRET);
            call.with(&format!("userId={signed}&"), &format!("userId={user}&"))
        };
        for (user, signed, expected) in [
            ("a%2540b+c%20%2B", "a@b c +", "bad_signature: 403 bad signature"),
            ("a%2540b+c%20%2B", "a%2540b+c%20%2B", "bad_signature: 403 bad signature"),
            ("a%2540b+c%20%2B", "a%40b c +", "credited: 200 e1:OK"),
        ] {
            assert_eq!(call(user, signed).told(world).await, expected, "{user} signed as {signed}");
        }
        assert_eq!(world.balance("a%40b c +").await, "5");
    })
    .await;
}

#[tokio::test]
async fn a_parameter_behind_a_signature_that_must_be_last_is_signed_by_nobody() {
    check_everything(async |world| {
        for (network, credit) in
            [("bitlabs", "user_id=7&trans_id=t1&amount=5&type=COMPLETE"), ("notik", "user_id=7&txn_id=t1&amount=5")]
        {
            // What the network appends without being asked is in front of the signature, and signed.
            let call = url_sha1(network, format!("{credit}&s4=x"));
            for tail in ["amount=500", "amount", "x", "hash=00", "%68ash=00"] {
                let longer = get(network, format!("{}&{tail}", call.query));
                assert_eq!(longer.heard(world).await, "403 bad signature", "{}", longer.query);
            }
            let (signed, hash) = call.query.rsplit_once('&').unwrap();
            assert_eq!(get(network, format!("{hash}&{signed}")).heard(world).await, "403 bad signature");
            assert_eq!(call.sent(world).await.outcome, "credited");
        }
        // Where the rest of the query is signed too, it may stand anywhere.
        let call = adgem("amount=5&player_id=7&transaction_id=t1");
        let (signed, verifier) = call.query.rsplit_once('&').unwrap();
        assert_eq!(get("adgem", format!("{verifier}&{signed}")).told(world).await, "credited: 200 OK");
        assert_eq!(get("adgem", format!("{signed}&{verifier}&amount=9")).heard(world).await, "403 bad signature");
    })
    .await;
}

/// A credit, whose signature comes last, is refused with any of these signatures and paid with its own.
async fn only_its_own_verifies(world: &World, credit: Call, wrong: &[String]) {
    let (unsigned, _) = credit.query.rsplit_once('=').unwrap();
    for wrong in wrong {
        let told = Call { query: format!("{unsigned}={wrong}"), ..credit.clone() }.sent(world).await;
        assert_eq!((told.outcome, told.answer.status), ("bad_signature", 403), "{unsigned}={wrong}");
    }
    let told = credit.sent(world).await;
    assert_eq!((told.outcome, told.answer.status), ("credited", 200), "{unsigned}");
}

#[tokio::test]
async fn a_formula_that_public_code_or_a_sample_invented_verifies_nothing() {
    check_everything(async |world| {
        let lootably = "user_id=7&ip=1.2.3.4&revenue=0.50&amount=5.00&trans_id=t1&status=1";
        let right = get("lootably", format!("{lootably}&hash={}", sha256("71.2.3.40.505.00local-secret")));
        let unsigned = "71.2.3.40.505.00";
        let wrong = [sha256("t170.50local-secret"), sha256("71.2.3.40.55local-secret"), hmac_sha256("7t1")];
        only_its_own_verifies(world, right.clone(), &wrong).await;
        only_its_own_verifies(world, right.with("t1", "t2"), &[sha256(unsigned), hmac_sha256(unsigned)]).await;

        let right = get("torox", format!("oid=9&user_id=7&id=t1&amount=5&sig={}", md5("9-7-local-secret")));
        let wrong = [md5("97local-secret"), md5("t1-7-local-secret"), md5("9-7-"), hmac_sha256("9-7")];
        only_its_own_verifies(world, right, &wrong).await;

        // The second signs the outbound link to the wall.
        let wrong = [md5("t1local-secret"), md5("7-local-secret"), md5("t1-7-local-secret"), md5("t1-")];
        only_its_own_verifies(world, cpx("t1", "user_id=7&amount=5&status=1&type=complete"), &wrong).await;

        let signature = md5("7:local-publisher:local-secret");
        let right = get("personaly", format!("user_id=7&offer_id=9&amount=5&pub_signature={signature}"));
        let wrong = ["7:local-publisher':'local-secret", "7:local-secret:local-publisher", "7:local-publisher:"];
        only_its_own_verifies(world, right, &wrong.map(md5)).await;

        let wrong = ["t175local-secret", "#{id}:#{snuid}:#{currency}:#{secret_key}", "t1:7:5:"];
        only_its_own_verifies(world, tapjoy(["t1", "7", "5"]), &wrong.map(md5)).await;

        let id = uuid(1);
        let wrong = [format!("75{id}local-secret"), "local-secret75".into(), format!("75{id}")];
        only_its_own_verifies(world, fyber(&id), &wrong.map(sha1)).await;
    })
    .await;
}

#[tokio::test]
async fn a_url_that_a_sample_takes_apart_sorts_or_leaves_half_of_verifies_nothing() {
    check_everything(async |world| {
        let query = "user_id=7&trans_id=t1&amount=5&type=COMPLETE";
        let wrong = [
            format!("https://{HOST}/bitlabs?amount=5&trans_id=t1&type=COMPLETE&user_id=7"),
            format!("https://{HOST}/bitlabs?{query}&hash="),
            format!("https://{HOST}/bitlabs"),
            format!("/bitlabs?{query}"),
            query.to_owned(),
        ];
        only_its_own_verifies(world, url_sha1("bitlabs", query), &wrong.map(hmac_sha1)).await;

        let query = "amount=5&goal_name=&offer_name=A%20B&player_id=7&transaction_id=t1";
        let url = format!("https://{HOST}/adgem?{query}");
        let wrong = [
            url.replace("https:", "http:"),
            url.replace("%20", "+"),
            url.replace("goal_name=&", ""),
            format!("{url}&"),
            query.to_owned(),
        ];
        only_its_own_verifies(world, adgem(query), &wrong.map(hmac_sha256)).await;
    })
    .await;
}

#[tokio::test]
async fn the_vector_that_was_published_verifies_and_no_other_secret_does() {
    let file = r#"
        [networks.complete]
        base = "bitlabs"
        reversal = ""
        classes = [{ is = "credit" }]
        network.name = "BitLabs under another path"
        parameters = { user_id = "uid", amount = "val", trans_id = ["uid", "val"] }
    "#;
    let variables = [
        ("PUBLIC_URL", "https://publisher.com/"),
        ("NETWORK_SECRETS", r#"{"complete": "JLOIAUNMHFli7ZJOQVEzm98rzqnm9"}"#),
    ];
    check_networks(&["complete"], file, &variables, async |world| {
        let query = "uid=8cc877ee-af19-488d-b28d-216fb866b996&val=500&hash=dbcd6bb8ca677344592842a52b4fca9bec36cd4b";
        assert_eq!(get("complete", query.replace("500", "501")).heard(world).await, "403 bad signature");
        assert_eq!(get("complete", query).told(world).await, "credited: 200 OK");
        assert_eq!(world.balance("8cc877ee-af19-488d-b28d-216fb866b996").await, "500");
    })
    .await;
}

/// A private key, and its public half in base64 of its SPKI.
fn key_pair(random: &SystemRandom) -> (EcdsaKeyPair, String) {
    /// What stands before the point of any key of this curve.
    const SPKI: &str = "3059301306072a8648ce3d020106082a8648ce3d030107034200";
    let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, random).unwrap();
    let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, document.as_ref(), random).unwrap();
    let spki = BASE64_STANDARD.encode([hex::decode(SPKI).unwrap(), pair.public_key().as_ref().to_vec()].concat());
    (pair, spki)
}

/// What AdMob signs: the query as it is decoded.
fn admob(random: &SystemRandom, (pair, key): (&EcdsaKeyPair, &str), query: &str, signed: &str) -> Call {
    let signature = BASE64_URL_SAFE_NO_PAD.encode(pair.sign(random, signed.as_bytes()).unwrap());
    get("admob", format!("{query}&signature={signature}&key_id={key}"))
}

/// The ad units of a deployment with AdMob.
const AD_UNITS: &str = "[networks.admob.yours]\nad_unit = [\"1\", \"3543424263\"]";

#[tokio::test]
async fn an_ecdsa_signature_covers_the_decoded_query_and_its_keys_rotate() {
    let random = SystemRandom::new();
    let ((one, one_spki), (two, two_spki)) = (key_pair(&random), key_pair(&random));
    let secrets = json!({"admob": {"111": one_spki, "222": two_spki, "333": "bm8ga2V5"}}).to_string();
    let call = |id: &str, message: &str, pair: &EcdsaKeyPair, key: &str| {
        let query = "ad_unit=1&reward_amount=5&reward_item=Key%20%2BDoubler&transaction_id={id}&user_id=7";
        admob(&random, (pair, key), &query.replace("{id}", id), &message.replace("{id}", id))
    };
    let decoded = "ad_unit=1&reward_amount=5&reward_item=Key +Doubler&transaction_id={id}&user_id=7";
    let raw = "ad_unit=1&reward_amount=5&reward_item=Key%20%2BDoubler&transaction_id={id}&user_id=7";
    let form = "ad_unit=1&reward_amount=5&reward_item=Key  Doubler&transaction_id={id}&user_id=7";
    check_networks(&["admob"], AD_UNITS, &[("NETWORK_SECRETS", &secrets)], async |world| {
        for (call, expected) in [
            (call("a", decoded, &one, "111"), "credited: 200 OK"),
            (call("a", decoded, &one, "111"), "duplicate: 200 OK"),
            (call("b", decoded, &two, "222"), "credited: 200 OK"),
            (call("c", raw, &one, "111"), "bad_signature: 403 bad signature"),
            (call("c", form, &one, "111"), "bad_signature: 403 bad signature"),
            (call("c", decoded, &one, "222"), "bad_signature: 403 bad signature"),
            (call("c", decoded, &one, "333"), "bad_signature: 403 bad signature"),
            (call("c", decoded, &one, "444"), "bad_signature: 403 bad signature"),
            (call("c", decoded, &one, "111&user_id=8"), "bad_signature: 403 bad signature"),
            (call("c", decoded, &one, "111&key_id=111"), "bad_signature: 403 bad signature"),
        ] {
            assert_eq!(call.told(world).await, expected, "{}", call.query);
        }
        assert_eq!(world.balance("7").await, "10");
    })
    .await;
}

#[tokio::test]
async fn a_decoded_query_that_could_be_another_one_is_refused_though_its_network_signed_it() {
    let random = SystemRandom::new();
    let (pair, spki) = key_pair(&random);
    let secrets = json!({"admob": {"1": spki}}).to_string();
    let rest = "ad_unit=1&reward_amount=5&transaction_id=t1";
    check_networks(&["admob"], AD_UNITS, &[("NETWORK_SECRETS", &secrets)], async |world| {
        for (query, signed, expected) in [
            // One of each pair is what the network sent, and the other what somebody made of it.
            (format!("{rest}&user_id=8%26user_id2=7"), format!("{rest}&user_id=8&user_id2=7"), "bad_signature"),
            (format!("{rest}&custom_data=x%26user_id=7"), format!("{rest}&custom_data=x&user_id=7"), "bad_signature"),
            (format!("{rest}&user_id=7+8"), format!("{rest}&user_id=7+8"), "bad_signature"),
            (format!("{rest}&user_id%3D7=8"), format!("{rest}&user_id=7=8"), "bad_signature"),
            (format!("{rest}&user_id%3d7"), format!("{rest}&user_id=7"), "bad_signature"),
            (format!("{rest}&user_id=7%3D%2B8"), format!("{rest}&user_id=7=+8"), "credited"),
        ] {
            let handled = admob(&random, (&pair, "1"), &query, &signed).sent(world).await;
            assert_eq!((handled.outcome, handled.why.is_some()), (expected, expected != "credited"), "{query}");
            assert!(handled.why.is_none_or(|why| why.contains("it could be another one")), "{query}");
        }
        assert_eq!(world.balances().await, [("7=+8".to_owned(), "5".to_owned())].into());
    })
    .await;
}

#[tokio::test]
async fn another_publishers_ad_unit_is_signed_with_the_same_keys_and_pays_nothing() {
    let faults = configured(&["admob"], "").unwrap_err().to_string();
    assert!(faults.contains("list what is yours in `networks.admob.yours.ad_unit`"), "{faults}");
    let random = SystemRandom::new();
    let (pair, spki) = key_pair(&random);
    let secrets = json!({"admob": {"1": spki}}).to_string();
    check_networks(&["admob"], AD_UNITS, &[("NETWORK_SECRETS", &secrets)], async |world| {
        for (ad_unit, expected) in [
            ("ad_unit=2", "bad_parameters: 400 ad_unit: not one of yours"),
            ("ad_unit=11", "bad_parameters: 400 ad_unit: not one of yours"),
            ("ad_unit=", "bad_parameters: 400 ad_unit: missing"),
            ("ad_unit=1&ad_unit=2", "bad_parameters: 400 ad_unit: sent more than once"),
            ("x=1", "bad_parameters: 400 ad_unit: missing"),
            ("ad_unit=3543424263", "credited: 200 OK"),
        ] {
            let query = format!("{ad_unit}&reward_amount=5&transaction_id=t1&user_id=7");
            assert_eq!(admob(&random, (&pair, "1"), &query, &query).told(world).await, expected, "{query}");
        }
        assert_eq!(world.balance("7").await, "5");
    })
    .await;
}

#[tokio::test]
async fn a_captured_callback_of_the_console_verifies_by_the_published_key_and_pays_nobody() {
    let key = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE+nzvoGqvDeB9+SzE6igTl7TyK4JBbglwir9oTcQta8NuG26ZpZFxt+F2NDk7asTE6/2\
               Yc8i1ATcGIqtuS5hv0Q==";
    let secrets = json!({"admob": {"3335741209": key}}).to_string();
    check_networks(&["admob"], AD_UNITS, &[("NETWORK_SECRETS", &secrets)], async |world| {
        let query = "ad_network=5450213213286189855&ad_unit=1234567890&timestamp=1588756506292&\
                     transaction_id=123456789&signature=MEQCIA54vhOTh9NjebJJZM6Pvgcz1UMd6Jn3G6WQ8czPoEPdAiBwXX1aOG4Cz2\
                     19vH_VPXicw5K9w8XqOmWHYmQgKtJmsA&key_id=3335741209";
        assert_eq!(get("admob", query).told(world).await, "test: 200 OK");
        assert_eq!(get("admob", query.replace("506292", "506293")).heard(world).await, "403 bad signature");
        assert!(world.entries().await.is_empty());
    })
    .await;
}

/// A credit in AdGem's JSON.
fn reward(amount: &str, more: &str) -> String {
    let data = format!(r#""player_id": "7", "transaction_id": "t1", "amount": {amount}{more}"#);
    format!(r#"{{"request_id": "r1", "data": {{{data}, "conversion_type": "reward"}}}}"#)
}

#[tokio::test]
async fn a_signature_in_a_header_counts_once_whatever_the_case_of_its_name_and_nowhere_else() {
    check_everything(async |world| {
        let body = reward("5", "");
        let signature = hmac_sha256(&body);
        let bare = || post("adgem-v3", body.clone());
        let upper = signature.to_uppercase();
        for (call, expected) in [
            (bare(), "403 bad signature"),
            (bare().header("signature", ""), "403 bad signature"),
            (bare().header("signature", &signature[1..]), "403 bad signature"),
            (bare().header("signature", &format!("sha256={signature}")), "403 bad signature"),
            (bare().header("signature", &format!("{signature}, {signature}")), "403 bad signature"),
            (bare().header("signature", &signature).header("Signature", &signature), "403 bad signature"),
            (bare().header("x-signature", &signature), "403 bad signature"),
            (Call { query: format!("signature={signature}"), ..bare() }, "403 bad signature"),
            (post("adgem-v3", body.replace("r1", "r2")).header("signature", &signature), "403 bad signature"),
            (post("adgem-v3", format!("{body}\n")).header("signature", &signature), "403 bad signature"),
            (bare().header("SIGNATURE", &upper), "200 OK"),
            (bare().header("Signature", &format!(" {signature} ")), "200 OK"),
            (Call { base64: false, ..bare() }.header("signature", &signature), "200 OK"),
        ] {
            assert_eq!(call.heard(world).await, expected, "{call:?}");
        }
        let query = "amount=5&is_chargeback=0&trans_id=t1&user_id=8";
        let hash = hmac_sha256(query);
        let in_query = get("ayet", format!("{query}&x-ayetstudios-security-hash={hash}"));
        assert_eq!(in_query.heard(world).await, "403 bad signature");
        assert_eq!(get("ayet", query).header("x-ayetstudios-security-hash", &hash).heard(world).await, "200 OK");
        assert_eq!((world.balance("7").await, world.balance("8").await), ("5".into(), "5".into()));
    })
    .await;
}

#[tokio::test]
async fn a_json_number_is_kept_as_it_was_written_and_what_is_no_plain_number_pays_nothing() {
    const NOT_PLAIN: &str = "400 data.amount: not a plain decimal number such as 12.50";
    check_everything(async |world| {
        for (amount, expected) in [
            ("1e3", NOT_PLAIN),
            ("1.0E+2", NOT_PLAIN),
            ("\"1,000\"", NOT_PLAIN),
            ("\"+5\"", NOT_PLAIN),
            ("\" 5\"", NOT_PLAIN),
            ("true", NOT_PLAIN),
            ("\"null\"", NOT_PLAIN),
            ("null", "400 data.amount: missing"),
            ("\"\"", "400 data.amount: missing"),
            ("[5]", "400 data.amount: no text"),
            ("[]", "400 data.amount: no text"),
            ("{}", "400 data.amount: no text"),
            ("\"\\ud800\"", "400 data.amount: no text"),
            ("{\"value\": 5}", "400 data.amount: missing"),
            ("-5", "400 data.amount: a negative credit"),
            ("12345678901234567890", "400 data.amount: more than 15 digits before the point"),
            ("5, \"amount\": 6", "400 data.amount: sent more than once"),
            ("5, \"am\\u006funt\": 6", "400 data.amount: sent more than once"),
        ] {
            assert_eq!(adgem_v3(reward(amount, "")).heard(world).await, expected, "{amount}");
        }
        assert_eq!(adgem_v3(reward("100.5000", "")).told(world).await, "credited: 200 OK");
        assert_eq!(adgem_v3(reward("\"100.50\"", "")).told(world).await, "duplicate: 200 OK");
        let row = &world.entries().await[0];
        assert_eq!((row["amount"].as_str(), row["amount_received"].as_str()), ("100.5", "100.5000"));
    })
    .await;
}

#[tokio::test]
async fn a_body_that_is_no_json_repeats_a_key_or_is_nested_without_end_is_refused_and_ends_nothing() {
    let deep = |levels: usize| format!("{}1{}", r#"{"data":"#.repeat(levels), "}".repeat(levels));
    let survey = |rest: &str| inbrain(&uuid(1), format!(r#", "Reward": 5, "RewardType": "survey_completed"{rest}"#));
    const UNREADABLE: &str = "400 not a JSON object, or too large";
    check_everything(async |world| {
        for body in ["", "x", "{", "[]", "7", "null", "{} {}", "{\"data\": }", "player_id=7", "\u{feff}{}"] {
            assert_eq!(adgem_v3(body).heard(world).await, UNREADABLE, "{body}");
            let forged = post("adgem-v3", body).header("signature", "00");
            assert_eq!(forged.heard(world).await, "403 bad signature", "{body}");
            assert_eq!(post("inbrain", body).heard(world).await, "403 bad signature", "{body}");
        }
        let endless = deep(100_000);
        assert_eq!(post("inbrain", endless.as_str()).heard(world).await, "403 bad signature");
        assert_eq!(adgem_v3(endless).heard(world).await, UNREADABLE);
        let long_name = |length: usize| reward("5", &format!(r#", "{}": 1"#, "a".repeat(length)));
        assert_eq!(adgem_v3(long_name(257 - "data".len())).heard(world).await, UNREADABLE);
        let padded = |length: usize| reward("5", &" ".repeat(length - reward("5", "").len()));
        assert_eq!(adgem_v3(padded(128 * 1024 + 1)).heard(world).await, UNREADABLE);
        for (rest, expected) in [
            (r#", "PanelistId": "8""#, "403 bad signature"),
            (r#", "RewardId": "11111111-2222-4333-8444-000000000002""#, "403 bad signature"),
            (r#", "Sig": """#, "403 bad signature"),
            (r#", "Reward": 500"#, "400 Reward: sent more than once"),
            (r#", "RewardType": "offer_completed""#, "400 RewardType: sent more than once"),
            (r#", "IsTest": false, "IsTest": true"#, "400 IsTest: sent more than once"),
        ] {
            assert_eq!(survey(rest).heard(world).await, expected, "{rest}");
        }
        let shadow = reward("5", "").replacen("{", r#"{"data.amount": 500, "#, 1);
        assert_eq!(adgem_v3(shadow).heard(world).await, "400 data.amount: sent more than once");
        assert!(world.entries().await.is_empty());
        let extra = format!(r#", "more": {}, "list": [[[[{{"amount": 9}}]]]]"#, deep(60));
        assert_eq!(adgem_v3(reward("5", &extra)).told(world).await, "credited: 200 OK");
        for known in [padded(128 * 1024), long_name(256 - "data".len())] {
            assert_eq!(adgem_v3(known).told(world).await, "duplicate: 200 OK");
        }
        assert_eq!(survey(r#", "offer": {"Reward": 9}"#).told(world).await, "credited: 200 OK");
        assert_eq!(world.balance("7").await, "10");
    })
    .await;
}

#[tokio::test]
async fn bytes_that_are_no_utf8_cost_a_user_no_coins_unless_money_depends_on_them() {
    let json = |player: &[u8], name: &[u8]| {
        let parts: [&[u8]; 5] = [
            br#"{"data": {"conversion_type": "reward", "transaction_id": "t1", "amount": 5, "player_id": ""#,
            player,
            br#"", "offer_name": ""#,
            name,
            br#""}}"#,
        ];
        adgem_v3(parts.concat())
    };
    let form = |user: &[u8], name: &[u8], id: &str| {
        let signed = [user, format!("{id}5{SECRET}").as_bytes()].concat();
        let fields: [&[u8]; 4] = [b"subId=", user, b"&offer_name=", name];
        let rest = format!("&transId={id}&reward=5&status=1&signature={}", hex::encode(Md5::digest(signed)));
        post("ewall", [&fields.concat(), rest.as_bytes()].concat())
    };
    check_everything(async |world| {
        for (call, expected) in [
            (kiwiwall("7", "5", "trans_id=t1&status=1&offer_name=%FF%fe%C3"), "credited: 200 1"),
            (kiwiwall("7", "5", "trans_id=t2&status=1&offer_name=%C3%A9&offer_id=%zz%"), "credited: 200 1"),
            (kiwiwall("7", "5", "trans_id=%FF&status=1"), "bad_parameters: 400 0"),
            (kiwiwall("7", "5", "trans_id=t3&status=%FF"), "bad_parameters: 400 0"),
            (form(b"7", b"\xff\xfe", "t1"), "credited: 200 OK"),
            (form(b"7", b"%ff%FE%", "t2"), "credited: 200 OK"),
            (form(b"\xff", b"x", "t3"), "bad_signature: 403 bad signature"),
            (json(b"7", b"\xff\xfe"), "credited: 200 OK"),
            (json(b"7", b"\\ud800"), "duplicate: 200 OK"),
            (json(b"\xff", b"x"), "bad_parameters: 400 data.player_id: not UTF-8"),
            (json(b"\\ud800", b"x"), "bad_parameters: 400 data.player_id: no text"),
        ] {
            assert_eq!(call.told(world).await, expected, "{call:?}");
        }
        assert_eq!(world.balances().await, [("7".to_owned(), "25".to_owned())].into());
    })
    .await;
}

/// The networks that send a POST; all others send a GET.
const POSTS: &[&str] =
    &["adgem-v3", "dripoffers", "ewall", "inbrain", "offerwall-me", "offerwallmedia", "revlum", "revtoo"];

#[tokio::test]
async fn a_get_to_a_network_that_posts_and_a_post_to_one_that_gets_are_405() {
    check_everything(async |world| {
        for network in names() {
            let (right, wrong) = if POSTS.contains(&network.as_str()) { ("POST", "GET") } else { ("GET", "POST") };
            for method in [wrong, "HEAD", "PUT", "post", "get", ""] {
                let call = Call { method: method.into(), ..get(&network, "signature=00") };
                let expected = format!("405 method not allowed: send a {right}");
                assert_eq!(call.heard(world).await, expected, "{network} {method}");
            }
            let status = Call { method: right.into(), ..get(&network, "") }.sent(world).await.answer.status;
            assert!([400, 403].contains(&status), "{network}: {status}");
        }
        let credit = wall("ewall", ["7", "t1", "5"], "status=1");
        let posted = Call { method: "POST".into(), ..credit.clone() };
        assert_eq!(posted.heard(world).await, "403 bad signature", "the query of a POST is not its form");
        assert_eq!(post("ewall", credit.query).heard(world).await, "200 OK");
    })
    .await;
}
