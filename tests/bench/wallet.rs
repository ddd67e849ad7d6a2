//! What each operation of a wallet costs: requests and write units at DynamoDB, and the function's own processor time, beside
//! a credit of the offerwall in the same run.
//!
//! The release binaries are started as Lambda starts them, on the emulated runtime API, over an embedded DynamoDB in this
//! process, whose work does not count. Each call is a warm one of a player whom the process has seen.
//!
//! `cargo bench --bench wallet --features local --profile release`. It must never reach beyond loopback.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints what it measured")]

#[allow(dead_code, reason = "the tests use what the benchmark does not")]
#[path = "../it/faults.rs"]
mod faults;
#[allow(dead_code, reason = "the tests use what the benchmark does not")]
#[path = "../it/runtime_api.rs"]
mod runtime_api;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use postback::cashier::{self, Action};
use postback::config::Config;
use postback::id::{Currency, UserId};
use postback::ledger::{Decision, Outcome};
use postback::local::{self, Embedded};
use postback::money::Amount;
use postback::preset::Catalogue;
use postback::sample::LOCAL_SECRET;
use postback::store::Store;
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::time::Instant;

use faults::{Proxy, Request};
use runtime_api::{Bootstrap, RuntimeApi};

/// Warm calls of each operation.
const CALLS: usize = 500;
const PLAYER: &str = "player-1";
const DEADLINE: Duration = Duration::from_secs(30);

fn main() {
    // `cargo test --all-targets` starts benchmarks too, without this argument, to see that they start.
    if !std::env::args().any(|argument| argument == "--bench") {
        println!("wallet: a benchmark, run by cargo bench");
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(measure());
}

async fn measure() {
    let presets = Catalogue::default().presets().expect("the shipped networks read");
    let wallet =
        presets.iter().find(|preset| preset.wallet().is_some()).expect("a wallet is shipped").network.to_string();
    let embedded = Embedded::memory().await.expect("the embedded DynamoDB starts");
    let proxy = Proxy::start(embedded.address()).await;
    let variables: Vec<(String, String)> = [
        ("NETWORKS", format!("standard,{wallet}")),
        ("NETWORK_SECRETS", json!({"standard": LOCAL_SECRET, &wallet: LOCAL_SECRET}).to_string()),
        ("AWS_REGION", "local".into()),
        ("AWS_ACCESS_KEY_ID", "bench".into()),
        ("AWS_SECRET_ACCESS_KEY", "bench".into()),
        ("AWS_ENDPOINT_URL_DYNAMODB", proxy.endpoint()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    let config = Config::read(|name| {
        let value = variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        if name == "AWS_ENDPOINT_URL_DYNAMODB" { Some(embedded.endpoint()) } else { value }
    });
    let config = config.expect("the variables are right");
    let client = config.aws.dynamodb(DEADLINE);
    local::create_tables(&client, &config.tables).await.expect("the tables are made");
    fund(&Store::new(client, config.tables)).await;

    println!("{:<34} {:>8} {:>11} {:>12}", "", "requests", "write units", "CPU, ms");
    let api = RuntimeApi::start().await;
    let process = Bootstrap::spawn(&build("offerwall"), variables.clone(), &api);
    api.ready().await.unwrap_or_else(|error| panic!("{error}\n{}", process.output()));
    row("offerwall: a credit", &proxy, &api, &process, credit).await;
    drop(process);

    let api = RuntimeApi::start().await;
    let process = Bootstrap::spawn(&build("wallet"), variables, &api);
    api.ready().await.unwrap_or_else(|error| panic!("{error}\n{}", process.output()));
    for (name, path, body) in OPERATIONS {
        row(name, &proxy, &api, &process, |n| call(path, &body(n))).await;
    }
}

type Body = fn(usize) -> Value;

/// What is measured, in an order in which each finds what it needs.
const OPERATIONS: [(&str, &str, Body); 9] = [
    ("bet", "/bet/debit", |n| operation("bet", n, json!({"amount": 1.25, "round_id": n, "game_id": ""}))),
    ("the same bet again", "/bet/debit", |n| {
        operation("bet", n, json!({"amount": 1.25, "round_id": n, "game_id": ""}))
    }),
    ("win", "/win/credit", |n| operation("win", n, json!({"amount": "2.50", "round_id": n, "game_id": ""}))),
    ("rollback of a bet", "/bet/rollback", |n| {
        operation("rb", n, json!({"original_transaction_id": format!("bet-{n}")}))
    }),
    ("a second rollback of it", "/bet/rollback", |n| {
        operation("rb2", n, json!({"original_transaction_id": format!("bet-{n}")}))
    }),
    ("rollback of a win", "/win/rollback", |n| {
        operation("wrb", n, json!({"original_transaction_id": format!("win-{n}")}))
    }),
    ("rollback of what never came", "/bet/rollback", |n| {
        operation("early", n, json!({"original_transaction_id": format!("never-{n}"), "round_id": n}))
    }),
    ("a bet beyond the balance", "/bet/debit", |n| operation("large", n, json!({"amount": 99_999_999, "round_id": n}))),
    ("finish", "/round/finish", |n| operation("end", n, json!({"round_id": n}))),
];

fn operation(kind: &str, n: usize, fields: Value) -> Value {
    let mut body = json!({"idempotency_key": format!("{kind}-{n}"), "player_id": PLAYER});
    body.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
    body
}

/// Calls once to warm up, then [`CALLS`] times, and prints what one of these cost.
async fn row(name: &str, proxy: &Proxy, api: &RuntimeApi, process: &Bootstrap, event: impl Fn(usize) -> String) {
    let mut cpu = Duration::ZERO;
    for n in 0..=CALLS {
        if n == 1 {
            proxy.take();
            cpu = process.cpu();
        }
        let answer = api.invoke(&event(n), DEADLINE).await;
        let answer = answer.unwrap_or_else(|error| panic!("{error}\n{}", process.output()));
        let status = answer["statusCode"].as_u64();
        assert!(matches!(status, Some(200 | 402)), "{name}: {answer}\n{}", process.output());
        api.idle().await.unwrap_or_else(|error| panic!("{error}\n{}", process.output()));
    }
    let (cpu, requests) = (process.cpu() - cpu, proxy.take());
    let calls = CALLS as f64;
    let units: f64 = requests.iter().map(Request::write_units).sum();
    println!(
        "{name:<34} {:>8.2} {:>11.2} {:>12.3}",
        requests.len() as f64 / calls,
        units / calls,
        cpu.as_secs_f64() * 1e3 / calls
    );
}

/// Opens the player's account and pays money in.
async fn fund(store: &Store) {
    let account = || (UserId::new(PLAYER).expect("an id"), Currency::new("coins").expect("a currency"));
    for action in [Action::Open, Action::Deposit(Amount::stored("1000000").expect("an amount"))] {
        let decision = Decision { by: "bench".into(), reason: "a player".into() };
        let trans_id = cashier::trans_id("bench").expect("a reference");
        let posting = cashier::posting(action, trans_id, account(), decision, Timestamp::now());
        let outcome = store.post(&posting, Instant::now() + DEADLINE).await;
        assert_eq!(outcome.expect("it is posted"), Outcome::Posted);
    }
}

fn signature(message: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(LOCAL_SECRET.as_bytes()).expect("HMAC takes a key of any length");
    mac.update(message.as_bytes());
    hex::encode(mac.finalize().into_bytes())
}

fn credit(n: usize) -> String {
    let query = format!("user_id=user-1&trans_id=7f3a91c2-{n:06}&status=credited&currency_amount=1250.50&payout=1.75");
    event("GET", "/standard", &format!("{query}&signature={}", signature(&query)), json!({}), None)
}

fn call(path: &str, body: &Value) -> String {
    let body = body.to_string();
    let headers = json!({"content-type": "application/json", "x-signature": signature(&body)});
    event("POST", path, "", headers, Some(body))
}

fn event(method: &str, path: &str, query: &str, headers: Value, body: Option<String>) -> String {
    let http = json!({"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "203.0.113.7"});
    json!({
        "version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": query, "headers": headers,
        "requestContext": {"accountId": "anonymous", "http": http, "stage": "$default"},
        "body": body, "isBase64Encoded": false,
    })
    .to_string()
}

/// Builds one binary as `sam build` does: its release profile, default features.
fn build(binary: &str) -> PathBuf {
    let target =
        Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("Cargo's folder for temporary files has a parent");
    eprintln!("building {binary}");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--release", "--locked", "--bin", binary, "--manifest-path"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"))
        .arg("--target-dir")
        .arg(target)
        .status()
        .expect("Cargo starts");
    assert!(built.success(), "{binary} does not build");
    target.join("release").join(binary)
}
