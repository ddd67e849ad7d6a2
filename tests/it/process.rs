//! The release binaries themselves, built as they are deployed, on Lambda's runtime API: killed at random points in a stream
//! of credits, duplicates and reversals, or of a wallet's calls, restarted and told again, until the books balance.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use fastrand::Rng;
use serde_json::Value;

use crate::faults::Fault;
use crate::model::{Event, Model};
use crate::runtime_api::{Bootstrap, InvokeError, RuntimeApi};
use crate::wallet;
use crate::wallet::simulation::{Traffic, agrees};
use crate::world::{SECRET, World, call_event, call_event_with, check, check_wallet, conversion, event, query, signed};

/// The release binaries, built once with the default features, which contain no emulator, by name.
fn release_binary(name: &str) -> &'static Path {
    static BINARIES: OnceLock<BTreeMap<String, PathBuf>> = OnceLock::new();
    let binaries = BINARIES.get_or_init(|| {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args(["build", "--release", "--locked", "--bin", "offerwall", "--bin", "wallet"])
            .args(["--message-format", "json", "--manifest-path"])
            .arg(manifest);
        // What `cargo test` tells this process about its package would make build scripts run again, here and afterwards.
        for (name, _) in std::env::vars() {
            if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
                cargo.env_remove(name);
            }
        }
        let output = cargo.stderr(std::process::Stdio::inherit()).output().expect("cargo runs");
        assert!(output.status.success(), "the release binaries build");
        let messages = String::from_utf8(output.stdout).expect("cargo's messages are text");
        let executables = messages.lines().filter_map(|line| {
            let message: Value = serde_json::from_str(line).ok()?;
            let executable = message["executable"].as_str().map(PathBuf::from)?;
            Some((message["target"]["name"].as_str()?.to_owned(), executable))
        });
        executables.collect()
    });
    binaries.get(name).expect("cargo names the binary that it built")
}

/// One delivery of a conversion as the event that the function URL makes of it.
fn delivery(id: &str, status: &str, user: &str, amount: &str) -> String {
    event("GET", "/standard", &signed(&query(&conversion(id, status, user, amount))))
}

const DEADLINE: Duration = Duration::from_secs(30);

/// The status and body of a response.
fn line(response: &Value) -> String {
    format!("{} {}", response["statusCode"], response["body"].as_str().expect("a text body"))
}

fn start(binary: &str, world: &World, api: &RuntimeApi) -> Bootstrap {
    Bootstrap::spawn(release_binary(binary), &world.variables, api)
}

#[tokio::test]
async fn the_release_binaries_contain_no_emulator() {
    for binary in ["offerwall", "wallet"] {
        let bytes = std::fs::read(release_binary(binary)).unwrap();
        let contains =
            |text: &str| bytes.windows(text.len()).any(|window| window.eq_ignore_ascii_case(text.as_bytes()));
        assert!(contains("TransactWriteItems"), "this looks for texts in the right file");
        for text in ["dynoxide", "sqlite", "local-secret"] {
            assert!(!contains(text), "{binary}: {text}");
        }
    }
}

#[tokio::test]
async fn the_release_binary_answers_a_function_url_and_logs_no_secret() {
    check(async |world| {
        let api = RuntimeApi::start().await;
        // The most that can be logged.
        let mut variables = world.variables.clone();
        variables.insert("LOG_LEVEL".into(), "trace".into());
        let before = world.proxy.connections().len();
        let mut function = Bootstrap::spawn(release_binary("offerwall"), &variables, &api);
        api.ready().await.unwrap();
        let opened = world.proxy.connections().split_off(before);
        assert_eq!(opened, [1], "the connection is open before the first event, by the reading of the settings");
        for (event, expected) in [
            (delivery("c1", "1", "42", "10.50"), "200 ok"),
            (delivery("c1", "1", "42", "10.50"), "200 ok (duplicate)"),
            (delivery("c1", "2", "42", "10.50"), "200 ok"),
            (delivery("c2", "1", "42", "x"), "400 currency_amount: not a plain decimal number such as 12.50"),
            (event("GET", "/standard", "user_id=1|\"' {x}\u{0}&signature=00"), "403 bad signature"),
            ("\"user_id=1&signature=00\"".into(), "400 not a function URL event of payload version 2.0"),
            ("[[[[1]]]]".into(), "400 not a function URL event of payload version 2.0"),
        ] {
            let response = api.invoke(&event, DEADLINE).await.unwrap();
            assert!(line(&response).starts_with(expected), "{response}");
            assert_eq!(response["headers"]["content-type"], "text/plain; charset=utf-8");
        }
        let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(api.invoke(&deep, DEADLINE).await.unwrap()["statusCode"], 400);
        // Not even JSON is handed over: the runtime itself refuses, and the process lives.
        assert!(matches!(api.invoke("{\"rawPath\": ", DEADLINE).await, Err(InvokeError::Function(_))));
        assert_eq!(
            line(&api.invoke(&delivery("c1", "1", "42", "10.50"), DEADLINE).await.unwrap()),
            "200 ok (duplicate)"
        );

        function.kill().await;
        let log = function.output();
        assert!(log.contains(r#""outcome":"credited""#) && log.contains(r#""trans_id":"standard/c1""#), "{log}");
        for secret in [SECRET, "retired-secret", "signature=", "dummy secret key", "currency_amount="] {
            assert!(!log.contains(secret), "{secret} in {log}");
        }
    })
    .await;
}

#[tokio::test]
async fn the_release_binary_of_the_wallet_answers_a_function_url_and_logs_neither_secret_nor_signature() {
    check_wallet("", async |world| {
        world.fund("7", "10").await;
        let api = RuntimeApi::start().await;
        let mut variables = world.variables.clone();
        variables.insert("LOG_LEVEL".into(), "trace".into());
        let mut function = Bootstrap::spawn(release_binary("wallet"), &variables, &api);
        let placed = call_event("/bet/debit", &wallet::bet("b-1", "7", "4").to_string());
        let answer = wallet::applied("b-1", "10.00", "6.00");
        for replayed in [Value::Null, "true".into()] {
            let response = api.invoke(&placed, DEADLINE).await.unwrap();
            assert_eq!(line(&response), answer);
            assert_eq!(response["headers"]["content-type"], "application/json");
            assert_eq!(response["headers"]["idempotent-replayed"], replayed);
        }
        for (event, expected) in [
            (call_event("/balance", r#"{"player_id":7}"#), r#"200 {"balance":6.00,"currency":"coins"}"#),
            (call_event_with("/balance", r#"{"player_id":7}"#, "00"), r#"401 {"error":"bad signature"}"#),
            (event("GET", "/bet/debit", ""), r#"405 {"error":"method not allowed: send a POST"}"#),
            (event("GET", "/standard", ""), r#"404 {"error":"no such path"}"#),
        ] {
            assert_eq!(line(&api.invoke(&event, DEADLINE).await.unwrap()), expected);
        }
        function.kill().await;
        let log = function.output();
        assert!(log.contains(r#""outcome":"bet""#) && log.contains(r#""trans_id":"19flip/b-1""#), "{log}");
        let event: Value = serde_json::from_str(&placed).unwrap();
        let signature = event["headers"]["x-signature"].as_str().unwrap();
        for secret in [SECRET, signature, "dummy secret key"] {
            assert!(!log.contains(secret), "{secret} in {log}");
        }
    })
    .await;
}

#[tokio::test]
async fn an_environment_with_faults_ends_the_start_with_all_of_them_in_one_line() {
    check(async |world| {
        let api = RuntimeApi::start().await;
        let mut variables = world.variables.clone();
        variables.insert("COIN_DECIMALS".into(), "many".into());
        variables.insert("NETWORK_SECRETS".into(), "hunter2".into());
        let mut function = Bootstrap::spawn(release_binary("offerwall"), &variables, &api);
        api.ready().await.unwrap_err();
        function.ended().await;
        let log = function.output();
        let expected = "NETWORK_SECRETS: not JSON (line 1, column 1); COIN_DECIMALS: not a whole number from 0 to 8";
        assert!(log.contains(expected) && !log.contains("hunter2"), "{log}");
        assert_eq!(log.lines().count(), 1, "{log}");
    })
    .await;
}

/// A release binary that dies on the way to its answer, twice in five times, and is started again.
struct Mortal<'a> {
    binary: &'static str,
    world: &'a World,
    api: RuntimeApi,
    function: Bootstrap,
    rng: Rng,
    kills: usize,
}

impl<'a> Mortal<'a> {
    async fn start(binary: &'static str, world: &'a World, rng: Rng) -> Mortal<'a> {
        let api = RuntimeApi::start().await;
        let function = start(binary, world, &api);
        Mortal { binary, world, api, function, rng, kills: 0 }
    }

    /// The answer to an event, which is sent again until there is one.
    async fn answer(&mut self, event: &str) -> Value {
        let Mortal { binary, world, api, function, rng, kills } = self;
        loop {
            let dies = rng.u8(..5) < 2;
            // Before or after its first, second or third request is committed, or at whatever it does at some moment.
            match (dies, rng.u8(..4)) {
                (false, _) => world.proxy.plan(|_| Fault::None),
                (true, 0) => world.proxy.script([Fault::Stall]),
                (true, 1) => world.proxy.script([Fault::StallAfterCommit]),
                (true, 2) => world.proxy.script([Fault::None, Fault::StallAfterCommit]),
                (true, _) => world.proxy.script([Fault::None, Fault::None, Fault::StallAfterCommit]),
            }
            let seen = world.proxy.requests().len();
            let answer = api.invoke(event, DEADLINE);
            let murder = async {
                if dies {
                    let moment = tokio::time::Duration::from_micros(rng.u64(..15_000));
                    let asked = async {
                        while world.proxy.requests().len() == seen {
                            tokio::task::yield_now().await;
                        }
                    };
                    // Whichever comes first: some moment, or its first request.
                    let _ = tokio::time::timeout(moment, asked).await;
                    function.kill().await;
                    // The next one begins in good weather.
                    world.proxy.plan(|_| Fault::None);
                    *function = start(binary, world, api);
                    *kills += 1;
                }
            };
            match tokio::join!(answer, murder).0 {
                Ok(response) => return response,
                Err(InvokeError::Gone(_)) => {}
                Err(other) => panic!("{other}"),
            }
        }
    }
}

#[tokio::test]
async fn killed_at_random_points_and_told_again_the_books_balance() {
    check(async |world| {
        let mut rng = Rng::with_seed(7);
        let mut function = Mortal::start("offerwall", world, rng.fork()).await;
        let mut model = Model::new(false);
        for _ in 0..120 {
            let event = Event {
                conversation: rng.usize(..25),
                reversal: rng.u8(..3) == 0,
                user: rng.usize(..3),
                amount: 1 + rng.u64(..3),
            };
            let (id, user, amount) =
                (format!("c{}", event.conversation), format!("u{}", event.user), event.amount.to_string());
            // The network sends again until it hears 200.
            let delivery = delivery(&id, if event.reversal { "2" } else { "1" }, &user, &amount);
            let response = function.answer(&delivery).await;
            assert!(line(&response).starts_with("200 ok"), "{response}");
            model.tell(event);
            world.proxy.settled().await;
            for user in 0..3 {
                assert_eq!(world.balance(&format!("u{user}")).await, model.balance(user).to_string(), "{event:?}");
            }
        }
        assert!(function.kills > 30, "{} kills", function.kills);
    })
    .await;
}

#[tokio::test]
async fn a_wallet_killed_at_random_points_and_called_again_agrees_with_the_model_to_the_byte() {
    check_wallet("", async |world| {
        let mut function = Mortal::start("wallet", world, Rng::with_seed(7)).await;
        let mut model = wallet::model::Model::new(false);
        for player in 0..3 {
            let player = format!("p{player}");
            world.fund(&player, "20").await;
            model.fund(&player, 2_000);
        }
        let mut traffic = Traffic::new(7, 3);
        for _ in 0..120 {
            let call = traffic.call();
            let response = function.answer(&call_event(call.path(), &call.body(false).to_string())).await;
            let (expected, known) = model.tell(&call);
            assert_eq!(line(&response), expected, "{call:?}");
            let replayed = response["headers"]["idempotent-replayed"] == "true";
            assert!(replayed || !known, "{call:?} is known, and came to {response}");
            world.proxy.settled().await;
            agrees(world, &model, &format!("{call:?}")).await;
        }
        assert!(function.kills > 30, "{} kills", function.kills);
    })
    .await;
}
