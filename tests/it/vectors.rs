//! Signatures that networks published, or that are real: what no program of ours had a part in.

use postback::event::Request;
use postback::gate::on_wire;
use postback::id::Network;
use postback::preset::{Catalogue, Preset};
use postback::signature::{BadSignature, Key};

use crate::recipes::{SECRET, get, judge, network};

fn shipped(name: &str) -> Preset {
    Catalogue::default().preset(&Network::new(name).unwrap()).unwrap()
}

/// What is signed of a request, the secrets masked.
fn message(preset: &Preset, request: &Request) -> String {
    let message = on_wire(preset, request, |wire, _| preset.signature.explain(&[], wire).message);
    String::from_utf8(message.unwrap()).unwrap()
}

#[test]
fn the_published_vector_of_bitlabs_verifies() {
    // https://developer.bitlabs.ai/docs/securing-callbacks-through-hashing
    let signed = "https://publisher.com/complete?uid=8cc877ee-af19-488d-b28d-216fb866b996&val=500";
    let keys = ["JLOIAUNMHFli7ZJOQVEzm98rzqnm9".into()];
    let url = format!("{signed}&hash=dbcd6bb8ca677344592842a52b4fca9bec36cd4b");
    let preset = shipped("bitlabs");
    assert_eq!(judge(&preset, &keys, &get(&url)), Ok(()));
    assert_eq!(message(&preset, &get(&url)), signed);
    for (from, to) in [("val=500", "val=501"), ("8cc", "9cc"), ("/complete", "/Complete"), ("cd4b", "cd4c")] {
        assert_eq!(judge(&preset, &keys, &get(&url.replace(from, to))), Err(BadSignature::Other), "{to}");
    }
}

#[test]
fn real_callbacks_of_admob_verify_with_its_public_key_over_the_decoded_query() {
    // Captured by the authors of the packages rust_admob_ssv and go-lib-ssv, and verified with `openssl dgst -verify`.
    let plain = "https://a/?ad_network=5450213213286189855&ad_unit=1234567890&timestamp=1588756506292\
        &transaction_id=123456789&signature=MEQCIA54vhOTh9NjebJJZM6Pvgcz1UMd6Jn3G6WQ8czPoEPd\
        AiBwXX1aOG4Cz219vH_VPXicw5K9w8XqOmWHYmQgKtJmsA&key_id=3335741209";
    let escaped = "https://a/?ad_network=4970775877303683148&ad_unit=3543424263&reward_amount=1\
        &reward_item=Key%20Doubler&timestamp=1584428655496&transaction_id=0280088a3d615a1a28929ba7c00861d4\
        &user_id=KK1nqvkZ4tQDon92LrStOXPJbx93&signature=MEUCIQChVBUhVph0ymVFqHzdld9PWZitruPy2Q-OELQZH9g35wIg\
        O3cVUChofhVrlSXZodlQFQM5vIvf5dGLqBAGXz6AmaE&key_id=3335741209";
    let spki = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE+nzvoGqvDeB9+SzE6igTl7TyK4JBbglwir9oTcQta8NuG26ZpZFxt+F2\
        NDk7asTE6/2Yc8i1ATcGIqtuS5hv0Q==";
    let keys = [Key::of([("3335741209".to_owned(), spki.into())])];
    let raw = network(
        "query",
        "algorithm = \"ecdsa-p256\"\nmessage = \"{$query|cut}\"\nencoding = \"base64url\"\n\
         parameter = \"signature\"\nkey = \"key_id\"",
    );
    for (preset, url, expected) in [
        (shipped("admob"), plain, Ok(())),
        (shipped("admob"), escaped, Ok(())),
        (raw.clone(), plain, Ok(())),
        (raw, escaped, Err(BadSignature::Other)),
    ] {
        assert_eq!(judge(&preset, &keys, &get(url)), expected, "{url}");
        for (from, to) in [("ad_unit=", "ad_unit=9"), ("ad_network", "Ad_network"), ("timestamp=", "timestamp=0")] {
            assert_eq!(judge(&preset, &keys, &get(&url.replace(from, to))), Err(BadSignature::Other), "{to}");
        }
        let other_key = get(&url.replace("key_id=3335741209", "key_id=3335741208"));
        assert_eq!(judge(&preset, &keys, &other_key), Err(BadSignature::UnknownKey));
        assert_eq!(judge(&preset, &keys, &get(&format!("{url}&x=1"))), Err(BadSignature::NotLast));
        assert_eq!(judge(&preset, &[], &get(url)), Err(BadSignature::NoKey));
        let broken = [Key::of([("3335741209".to_owned(), "AAAA".into())])];
        assert_eq!(judge(&preset, &broken, &get(url)), Err(BadSignature::NoPublicKey));
    }
}

#[test]
fn pollfish_signs_the_values_of_its_macros_in_the_order_of_their_names() {
    // https://github.com/pollfish/docs/blob/master/s2s.md publishes the string and the signature, not the secret.
    let url = "https://www.example.com/?device_id=my-device-id&cpa=30&timestamp=1463152452308\
               &tx_id=08f31d41d800cc7a0beb7eb4897639a8ba7fd7db&signature=BbgBlH5HODk%2FSKw3MQuvqM%2BgTxQ%3D";
    // The macros of the shipped preset, and the one that the example's template has beside them; the example lacks some.
    let shipped = include_str!("../../src/presets/pollfish.toml");
    let list = shipped.split_once("message = ").unwrap().1.split_once(']').unwrap().0;
    let list = list.replace("\"{cpa}\",", "\"{cpa}\", \"{device_id}\",").replace('}', "|optional}");
    let encoding = "encoding = \"base64\"\nparameter = \"signature\"\nseparator = \":\"";
    let preset = network("query", &format!("algorithm = \"hmac-sha1\"\nmessage = {list}]\n{encoding}"));
    assert_eq!(message(&preset, &get(url)), "30:my-device-id:1463152452308:08f31d41d800cc7a0beb7eb4897639a8ba7fd7db");
    let judged = judge(&preset, &[SECRET.into()], &get(url));
    assert_eq!(judged, Err(BadSignature::Other), "it reads as base64, + and / too");
    // base64.b64encode(hmac.new(b"s3cret", b"30:my-device-id:1463152452308:08f31d41d800cc7a0beb7eb4897639a8ba7fd7db",
    // "sha1").digest()), escaped
    let ours = url.split_once("signature=").unwrap().0.to_owned() + "signature=VQxow%2BRUUU7mpX4MBt7dLKfw8iw%3D";
    assert_eq!(judge(&preset, &[SECRET.into()], &get(&ours)), Ok(()));
}
