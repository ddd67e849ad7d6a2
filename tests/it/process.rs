//! The release binary itself, built as it is deployed, on Lambda's runtime API: killed at random points in a stream of
//! credits, duplicates and reversals, restarted and told again, until the books balance.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use fastrand::Rng;
use serde_json::Value;

use crate::faults::Fault;
use crate::model::{Event, Model};
use crate::runtime_api::{Bootstrap, InvokeError, RuntimeApi};
use crate::world::{SECRET, World, check, conversion, event, query, signed};

/// The release binary, built once with the default features, which contain no emulator.
fn release_binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args([
                "build",
                "--release",
                "--locked",
                "--bin",
                "offerwall",
                "--message-format",
                "json",
                "--manifest-path",
            ])
            .arg(manifest);
        // What `cargo test` tells this process about its package would make build scripts run again, here and afterwards.
        for (name, _) in std::env::vars() {
            if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
                cargo.env_remove(name);
            }
        }
        let output = cargo.stderr(std::process::Stdio::inherit()).output().expect("cargo runs");
        assert!(output.status.success(), "the release binary builds");
        let messages = String::from_utf8(output.stdout).expect("cargo's messages are text");
        let executable = messages.lines().find_map(|line| {
            let message: Value = serde_json::from_str(line).ok()?;
            message["executable"].as_str().map(PathBuf::from)
        });
        executable.expect("cargo names the binary that it built")
    })
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

fn start(world: &World, api: &RuntimeApi) -> Bootstrap {
    Bootstrap::spawn(release_binary(), &world.variables, api)
}

#[tokio::test]
async fn the_release_binary_contains_no_emulator() {
    let bytes = std::fs::read(release_binary()).unwrap();
    let contains = |text: &str| bytes.windows(text.len()).any(|window| window.eq_ignore_ascii_case(text.as_bytes()));
    assert!(contains("TransactWriteItems"), "this looks for texts in the right file");
    for text in ["dynoxide", "sqlite", "local-secret"] {
        assert!(!contains(text), "{text}");
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
        let mut function = Bootstrap::spawn(release_binary(), &variables, &api);
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
async fn an_environment_with_faults_ends_the_start_with_all_of_them_in_one_line() {
    check(async |world| {
        let api = RuntimeApi::start().await;
        let mut variables = world.variables.clone();
        variables.insert("COIN_DECIMALS".into(), "many".into());
        variables.insert("NETWORK_SECRETS".into(), "hunter2".into());
        let mut function = Bootstrap::spawn(release_binary(), &variables, &api);
        api.ready().await.unwrap_err();
        function.ended().await;
        let log = function.output();
        let expected = "NETWORK_SECRETS: not JSON (line 1, column 1); COIN_DECIMALS: not a whole number from 0 to 8";
        assert!(log.contains(expected) && !log.contains("hunter2"), "{log}");
        assert_eq!(log.lines().count(), 1, "{log}");
    })
    .await;
}

#[tokio::test]
async fn killed_at_random_points_and_told_again_the_books_balance() {
    check(async |world| {
        let mut rng = Rng::with_seed(7);
        let api = RuntimeApi::start().await;
        let mut function = start(world, &api);
        let mut model = Model::new(false);
        let mut kills = 0;
        for _ in 0..120 {
            let event = Event {
                conversation: rng.usize(..25),
                reversal: rng.u8(..3) == 0,
                user: rng.usize(..3),
                amount: 1 + rng.u64(..3),
            };
            let (id, user, amount) =
                (format!("c{}", event.conversation), format!("u{}", event.user), event.amount.to_string());
            let delivery = delivery(&id, if event.reversal { "2" } else { "1" }, &user, &amount);
            // The network sends again until it hears 200; twice in five times the function dies on the way.
            loop {
                let dies = rng.u8(..5) < 2;
                // Before or after its first or second request is committed, or at whatever it does at some moment.
                match (dies, rng.u8(..3)) {
                    (false, _) => world.proxy.plan(|_| Fault::None),
                    (true, 0) => world.proxy.script([Fault::Stall]),
                    (true, 1) => world.proxy.script([Fault::StallAfterCommit]),
                    (true, _) => world.proxy.script([Fault::None, Fault::StallAfterCommit]),
                }
                let seen = world.proxy.requests().len();
                let answer = api.invoke(&delivery, DEADLINE);
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
                        function = start(world, &api);
                        kills += 1;
                    }
                };
                match tokio::join!(answer, murder).0 {
                    Ok(response) => {
                        assert!(line(&response).starts_with("200 ok"), "{response}");
                        break;
                    }
                    Err(InvokeError::Gone(_)) => {}
                    Err(other) => panic!("{other}"),
                }
            }
            model.tell(event);
            world.proxy.settled().await;
            for user in 0..3 {
                assert_eq!(world.balance(&format!("u{user}")).await, model.balance(user).to_string(), "{event:?}");
            }
        }
        assert!(kills > 30, "{kills} kills");
    })
    .await;
}
