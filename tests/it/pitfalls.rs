//! Every way in which postbacks were got wrong before, by networks, by their samples and by those who read them, each
//! shown to be closed: through the real handler, on a real ledger, with the shipped presets.
//!
//! Every signature here is made by the few lines below from a message that the test spells out. Nothing signs with our
//! own recipes.

use std::fmt::Display;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use postback::config::{Config, Faults};
use postback::handler::Handled;
use serde_json::{Map, Value, json};
use sha1::Sha1;
use sha2::{Digest, Sha256};

use crate::world::{PATIENCE, World, check_with, line};

mod bytes; // what is signed: queries, encodings, headers, bodies
mod money; // amounts, classes, reversals, ids, replies
mod trust; // secrets, sources, tests, macros, logs

/// What every network signs with here.
const SECRET: &str = "local-secret";

/// The function URL's host.
const HOST: &str = "api.example.com";

fn md5(message: impl Display) -> String {
    hex::encode(Md5::digest(message.to_string()))
}

fn sha1(message: impl Display) -> String {
    hex::encode(Sha1::digest(message.to_string()))
}

fn sha256(message: impl Display) -> String {
    hex::encode(Sha256::digest(message.to_string()))
}

fn hmac<M: KeyInit + Mac>(message: impl AsRef<[u8]>) -> Vec<u8> {
    let mut mac = <M as KeyInit>::new_from_slice(SECRET.as_bytes()).unwrap();
    mac.update(message.as_ref());
    mac.finalize().into_bytes().to_vec()
}

fn hmac_md5(message: impl AsRef<[u8]>) -> String {
    hex::encode(hmac::<Hmac<Md5>>(message))
}

fn hmac_sha1(message: impl AsRef<[u8]>) -> String {
    hex::encode(hmac::<Hmac<Sha1>>(message))
}

fn hmac_sha256(message: impl AsRef<[u8]>) -> String {
    hex::encode(hmac::<Hmac<Sha256>>(message))
}

/// A call as the function URL sees it.
#[derive(Debug, Clone)]
struct Call {
    method: String,
    path: String,
    query: String,
    headers: Map<String, Value>,
    body: Vec<u8>,
    /// Whether the function URL hands the body over in base64, as it does with what it takes for no text.
    base64: bool,
    host: String,
    source_ip: String,
}

/// An address that a network is known to send from.
fn address(network: &str) -> &'static str {
    match network {
        "adgate" => "52.42.57.125",
        "adtogame" => "64.226.124.135",
        "cpalead" => "34.69.179.33",
        "gemiad" => "64.226.92.208",
        "ironsource" => "79.125.5.179",
        "kiwiwall" => "34.193.235.172",
        "mmwall" => "63.32.127.99",
        "mychips" => "168.63.37.145",
        "personaly" => "52.200.142.249",
        "pubscale" => "34.100.236.68",
        "timewall" => "51.81.120.73",
        "torox" => "54.175.173.245",
        _ => "192.0.2.7",
    }
}

/// A GET, from an address of the network.
fn get(network: &str, query: impl Display) -> Call {
    Call {
        method: "GET".into(),
        path: format!("/{network}"),
        query: query.to_string(),
        headers: Map::new(),
        body: Vec::new(),
        base64: true,
        host: HOST.into(),
        source_ip: address(network).into(),
    }
}

/// A POST, from an address of the network.
fn post(network: &str, body: impl Into<Vec<u8>>) -> Call {
    Call { method: "POST".into(), body: body.into(), ..get(network, "") }
}

impl Call {
    fn header(mut self, name: &str, value: &str) -> Call {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// The same with another text in its query.
    fn with(self, what: &str, instead: &str) -> Call {
        Call { query: self.query.replace(what, instead), ..self }
    }

    fn sender(self, source_ip: &str) -> Call {
        Call { source_ip: source_ip.into(), ..self }
    }

    fn event(&self) -> String {
        let body = match self.base64 {
            true => BASE64_STANDARD.encode(&self.body),
            false => String::from_utf8(self.body.clone()).unwrap(),
        };
        let http = json!({"method": self.method, "path": self.path, "sourceIp": self.source_ip});
        json!({
            "version": "2.0", "rawPath": self.path, "rawQueryString": self.query, "headers": self.headers,
            "requestContext": {"domainName": self.host, "http": http}, "body": body, "isBase64Encoded": self.base64,
        })
        .to_string()
    }

    async fn sent(&self, world: &World) -> Handled {
        world.app.offerwall(&self.event(), PATIENCE).await
    }

    /// Status and body of the answer.
    async fn heard(&self, world: &World) -> String {
        line(&self.sent(world).await)
    }

    /// What became of it, and status and body of the answer.
    async fn told(&self, world: &World) -> String {
        let handled = self.sent(world).await;
        format!("{}: {}", handled.outcome, line(&handled))
    }
}

/// CPX Research: nothing but the id is signed.
fn cpx(trans_id: &str, rest: impl Display) -> Call {
    get("cpx", format!("trans_id={trans_id}&{rest}&hash={}", md5(format!("{trans_id}-{SECRET}"))))
}

/// KiwiWall: user and amount are signed.
fn kiwiwall(user: &str, amount: &str, rest: impl Display) -> Call {
    let signature = md5(format!("{user}:{amount}:{SECRET}"));
    get("kiwiwall", format!("sub_id={user}&amount={amount}&{rest}&signature={signature}"))
}

/// Wannads and the family of `radientwall`: user, id and amount are signed.
fn wall(network: &str, [user, id, reward]: [&str; 3], rest: impl Display) -> Call {
    let signature = md5(format!("{user}{id}{reward}{SECRET}"));
    get(network, format!("subId={user}&transId={id}&reward={reward}&{rest}&signature={signature}"))
}

/// AdGem, version 2: the URL is signed.
fn adgem(query: impl Display) -> Call {
    get("adgem", format!("{query}&verifier={}", hmac_sha256(format!("https://{HOST}/adgem?{query}"))))
}

/// AdGem, version 3: the body is signed.
fn adgem_v3(body: impl Into<Vec<u8>>) -> Call {
    let body = body.into();
    let signature = hmac_sha256(&body);
    post("adgem-v3", body).header("signature", &signature)
}

/// BitLabs and Notik: the URL up to the signature is signed.
fn url_sha1(network: &str, query: impl Display) -> Call {
    get(network, format!("{query}&hash={}", hmac_sha1(format!("https://{HOST}/{network}?{query}"))))
}

/// ayeT: `message` is signed, whatever stands in the query.
fn ayet(query: impl Display, message: &str) -> Call {
    get("ayet", query).header("x-ayetstudios-security-hash", &hmac_sha256(message))
}

/// GemiAd: user, offer and id are signed.
fn gemiad(user: &str, id: &str, rest: impl Display) -> Call {
    let hash = sha256(format!("{user}77{id}{SECRET}"));
    get("gemiad", format!("user_id={user}&offer_id=77&txid={id}&{rest}&hash={hash}"))
}

/// TimeWall: user and dollars are signed.
fn timewall(user: &str, id: &str, rest: impl Display) -> Call {
    let hash = sha256(format!("{user}0.50{SECRET}"));
    get("timewall", format!("userID={user}&transactionID={id}&revenue=0.50&{rest}&hash={hash}"))
}

/// Pollfish: the values of the macros are signed; `message` is what the test says they make.
fn pollfish(query: impl Display, message: &str) -> Call {
    let signature = BASE64_STANDARD.encode(hmac::<Hmac<Sha1>>(message));
    let signature = signature.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
    get("pollfish", format!("{query}&signature={signature}"))
}

/// What Pollfish sends for user 7, with every macro of its template, and `more` that is not signed.
fn pollfish_survey([cpa, status, reason]: [&str; 3], more: &str) -> Call {
    let fields = format!("reward_value=5&reward_name=Coins&cpa={cpa}&status={status}&term_reason={reason}");
    let query = format!("request_uuid=7&tx_id=t1&timestamp=1764500000000&{fields}{more}");
    pollfish(query, &format!("{cpa}:7:Coins:5:{status}:{reason}:1764500000000:t1"))
}

/// inBrain: user and id are signed.
fn inbrain(id: &str, rest: impl Display) -> Call {
    let signature = md5(format!("7{id}{SECRET}"));
    post("inbrain", format!(r#"{{"PanelistId": "7", "RewardId": "{id}"{rest}, "Sig": "{signature}"}}"#))
}

/// ironSource: time, event, user and coins are signed.
fn ironsource([time, event, user, rewards]: [&str; 4], secret: &str) -> Call {
    let signature = md5(format!("{time}{event}{user}{rewards}{secret}"));
    let query = format!("timestamp={time}&eventId={event}&userId={user}&rewards={rewards}");
    get("ironsource", format!("{query}&signature={signature}"))
}

/// Fyber: user, coins and id are signed.
fn fyber(id: &str) -> Call {
    get("fyber", format!("uid=7&amount=5&_trans_id_={id}&sid={}", sha1(format!("{SECRET}75{id}"))))
}

/// Tapjoy: id, user and coins are signed.
fn tapjoy([id, user, coins]: [&str; 3]) -> Call {
    let verifier = md5(format!("{id}:{user}:{coins}:{SECRET}"));
    get("tapjoy", format!("id={id}&snuid={user}&currency={coins}&verifier={verifier}"))
}

/// A UUID of its own for each number.
fn uuid(number: u32) -> String {
    format!("11111111-2222-4333-8444-{number:012}")
}

/// A deployment's variables: these networks, with this file of its own.
fn variables(networks: &[&str], file: &std::path::Path, text: &str) -> Vec<(&'static str, String)> {
    std::fs::write(file, text).unwrap();
    let secrets: Map<String, Value> = networks.iter().map(|name| ((*name).to_owned(), SECRET.into())).collect();
    vec![
        ("NETWORKS", networks.join(",")),
        ("NETWORKS_FILE", file.display().to_string()),
        ("NETWORK_SECRETS", Value::from(secrets).to_string()),
    ]
}

/// Runs a story in a deployment with these networks, a `NETWORKS_FILE`, and other variables on top.
async fn check_networks(networks: &[&str], file: &str, on_top: &[(&str, &str)], story: impl AsyncFnOnce(&World)) {
    let folder = tempfile::tempdir().unwrap();
    let ours = variables(networks, &folder.path().join("networks.toml"), file);
    let ours = ours.iter().map(|(name, value)| (*name, value.as_str()));
    let all: Vec<_> = ours.chain(on_top.iter().copied()).collect();
    check_with(&all, story).await;
}

/// Reads the configuration of a deployment with these networks and a `NETWORKS_FILE`.
fn configured(networks: &[&str], file: &str) -> Result<Config, Faults> {
    let folder = tempfile::tempdir().unwrap();
    let mut all = variables(networks, &folder.path().join("networks.toml"), file);
    for name in ["AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"] {
        all.push((name, "test".into()));
    }
    Config::read(|name| all.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone()))
}

#[test]
fn the_signatures_of_these_tests_are_those_of_another_program() {
    assert_eq!(md5("t1-local-secret"), "bdea3eaf9ba1b9abfd479978636edc99");
    assert_eq!(sha1("local-secret7100t1"), "4b05ff06b4adb7c3b7087a13d916498737120383");
    assert_eq!(sha256("7t1local-secret"), "9a65ff6d8f4f577e30cf1d54aa30f15201c9dc05fb245636900277193e4a18d5");
    assert_eq!(hmac_md5("a=1"), "e53a0932031ce0130c21057e10a4f322");
    assert_eq!(hmac_sha1("a=1"), "4995ed8396fd82cefe2133df591b813364c0498e");
    assert_eq!(hmac_sha256("a=1"), "1f7c57b36d911cae7007d06208ec046539165adcf073621fcdf7ffa234c1ab9f");
}
