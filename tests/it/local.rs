//! Local mode from outside: the tables at an endpoint, and `cargo local` as a process that is called, stopped and started again.
//!
//! Waits for what a process prints and never for a while.

use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::Duration;

use jiff::Timestamp;
use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;
use postback::config::VARIABLES;
use postback::handler::App;
use postback::local::{Embedded, config, create_tables};
use postback::settings::Version;
use postback::store::{PutSettings, Store};

use crate::world::PATIENCE;

const CREDIT: &str = include_str!("../../events/offerwall/standard-credit.json");

/// The function over a DynamoDB.
async fn function(embedded: &Embedded) -> App {
    let config = config(&embedded.endpoint(), None, |_| None).unwrap();
    let client = config.aws.dynamodb(Duration::from_secs(5));
    create_tables(&client, &config.tables).await.unwrap();
    App::start(config).await.unwrap()
}

#[tokio::test]
async fn tables_that_exist_are_left_as_they_are() {
    let embedded = Embedded::memory().await.unwrap();
    let first = function(&embedded).await.offerwall(CREDIT, Duration::MAX).await;
    let again = function(&embedded).await.offerwall(CREDIT, Duration::MAX).await;
    assert_eq!((first.outcome, again.outcome), ("credited", "duplicate"));
}

#[tokio::test]
async fn embedded_databases_in_memory_do_not_see_each_other() {
    let (one, other) = (Embedded::memory().await.unwrap(), Embedded::memory().await.unwrap());
    for embedded in [one, other] {
        let handled = function(&embedded).await.offerwall(CREDIT, Duration::MAX).await;
        assert_eq!(handled.outcome, "credited");
    }
}

#[tokio::test]
async fn a_table_that_cannot_be_made_is_told_on_one_line() {
    let config = config("http://127.0.0.1:1", None, |_| None).unwrap();
    let client = config.aws.dynamodb(Duration::from_secs(5));
    let error = create_tables(&client, &config.tables).await.unwrap_err().to_string();
    assert!(error.starts_with("the table transactions cannot be made: "), "{error}");
    assert!(error.len() < 200 && !error.contains('\n'), "{error}");
}

/// `cargo local` in a shell without settings of ours.
fn local(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_local"));
    command.args(arguments).envs(VARIABLES.iter().map(|variable| (variable.name, "")));
    command
}

/// Checks that a command refuses to run, with one line and exit code 2.
fn refused(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let line = String::from_utf8(stderr).unwrap();
    assert_eq!((status.code(), stdout), (Some(2), Vec::new()), "{line}");
    assert_eq!(line.lines().count(), 1, "{line}");
    line
}

#[test]
fn the_line_of_a_call_is_written_beside_what_is_printed_only_where_it_is_asked_for() {
    for (level, lines) in [("", 0), ("warn", 0), ("info", 1)] {
        let event = concat!(env!("CARGO_MANIFEST_DIR"), "/events/offerwall/standard-credit.json");
        let output = local(&["invoke", event, "--memory"]).env("LOG_LEVEL", level).output().unwrap();
        let (printed, logged) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert!(printed.starts_with("200\n") && !printed.contains("_aws"), "{printed}");
        assert_eq!(logged.lines().filter(|line| line.contains("\"_aws\":")).count(), lines, "{level}: {logged}");
    }
}

/// A `cargo local` that serves.
struct Served {
    process: Child,
    printed: Lines<BufReader<ChildStdout>>,
    introduction: Vec<String>,
}

impl Served {
    /// Starts it on free ports and waits until it takes calls.
    fn start(arguments: &[&str]) -> Served {
        let mut command = local(&["--port", "0", "--dynamodb-port", "0"]);
        let mut process = command.args(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let mut printed = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut introduction = Vec::new();
        loop {
            match printed.next().expect("an introduction").unwrap() {
                line if line.starts_with("Calls") => break,
                line => introduction.push(line),
            }
        }
        Served { process, printed, introduction }
    }

    fn over(data: &Path) -> Served {
        Served::start(&["--data", data.to_str().unwrap()])
    }

    fn address(&self) -> &str {
        let url = self.introduction[0].split_whitespace().nth(2).unwrap();
        url.strip_prefix("http://").unwrap()
    }

    /// Path and query of the printed `curl` lines.
    fn examples(&self) -> Vec<String> {
        let curl = self.introduction.iter().filter_map(|line| line.trim().strip_prefix("curl "));
        let base = format!("http://{}", self.address());
        curl.map(|url| url.trim_matches('\'').strip_prefix(&base).unwrap().to_owned()).collect()
    }

    /// Sends one request: the status and the body of its answer.
    fn send(&self, method: &str, target: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.address()).unwrap();
        write!(stream, "{method} {target} HTTP/1.1\r\nHost: local\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("content-type: text/plain; charset=utf-8"), "{head}");
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    /// The next line about a call, without its time.
    fn line(&mut self) -> String {
        let line = self.printed.next().unwrap().unwrap();
        let (time, rest) = line.split_once("  ").unwrap();
        assert_eq!(time.len(), "12:00:01Z".len(), "{line}");
        rest.to_owned()
    }

    /// Asks it to stop, and waits for its exit code.
    fn stop(mut self, how: Signal) -> Option<i32> {
        signal::kill(Pid::from_raw(self.process.id().cast_signed()), how).unwrap();
        self.process.wait().unwrap().code()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn the_printed_curl_lines_pay_once_and_reverse_also_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let mut served = Served::over(folder.path());
    let [credit, again, reversal] = <[String; 3]>::try_from(served.examples()).unwrap();
    let id = credit.split_once("trans_id=").unwrap().1.split('&').next().unwrap().to_owned();

    assert_eq!(served.send("GET", &credit), (200, "ok".into()));
    assert_eq!(served.line(), format!("200 ok  credited  standard/{id}  user 42  +10.5 coins  balance 10.5"));
    assert_eq!(served.send("GET", &again), (200, "ok (duplicate)".into()));
    assert_eq!(served.line(), format!("200 ok (duplicate)  duplicate  standard/{id}  user 42  balance 10.5"));
    assert_eq!(served.stop(Signal::SIGTERM), Some(0));

    let mut served = Served::over(folder.path());
    assert_ne!(served.examples()[0], credit, "a conversation of its own for each start");
    assert_eq!(served.send("GET", &reversal), (200, "ok".into()));
    assert_eq!(served.line(), format!("200 ok  reversed  standard/{id}  user 42  -10.5 coins  balance 0"));
    assert_eq!(served.stop(Signal::SIGINT), Some(0));
}

#[test]
fn what_is_refused_gets_a_line_without_its_query() {
    let mut served = Served::start(&["--memory"]);
    let unsigned =
        "bad_signature  GET /standard  (the signature is missing or doubled: it belongs into the parameter signature)";
    for (method, target, answer, line) in [
        ("GET", "/nobody?a=1", (404, "no such network"), "unknown_network  GET /nobody"),
        ("GET", "/standard?a=1", (403, "bad signature"), unsigned),
        ("POST", "/standard", (405, "method not allowed: send a GET"), "method_not_allowed  POST /standard"),
    ] {
        let (status, body) = answer;
        assert_eq!(served.send(method, target), (status, body.to_owned()));
        assert_eq!(served.line(), format!("{status} {body}  {line}"));
    }
}

#[test]
fn a_port_that_is_taken_is_told_with_the_option_that_changes_it() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for option in ["--port", "--dynamodb-port"] {
        let other = if option == "--port" { "--dynamodb-port" } else { "--port" };
        let line = refused(&mut local(&["--memory", option, &port, other, "0"]));
        assert!(line.starts_with(&format!("error: cannot listen on 127.0.0.1:{port}: ")), "{line}");
        assert!(line.ends_with(&format!("; choose another port with {option}\n")), "{line}");
    }
}

#[test]
fn over_a_folder_that_is_served_an_event_runs_beside_the_calls_and_a_second_server_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let mut served = Served::over(folder.path());
    let data = folder.path().to_str().unwrap();

    let event = concat!(env!("CARGO_MANIFEST_DIR"), "/events/offerwall/standard-credit.json");
    let invoked = local(&["invoke", event, "--data", data]).output().unwrap();
    let printed = String::from_utf8(invoked.stdout).unwrap();
    assert!(printed.ends_with("balance  user 42: 0 -> 10.5 coins\n"), "{printed}");

    let line = refused(&mut local(&["--port", "0", "--dynamodb-port", "0", "--data", data]));
    assert_eq!(
        line,
        format!(
            "error: another `cargo local` is using {data}; wait for it, stop it, or choose another folder with --data\n"
        )
    );

    assert_eq!(served.send("GET", &served.examples()[0]), (200, "ok".into()));
    assert!(served.line().ends_with("balance 21"));
}

#[tokio::test]
async fn settings_count_here_too_their_networks_sign_with_the_local_secret_and_what_does_not_read_is_counted() {
    let data = tempfile::tempdir().unwrap();
    let put = async |served: &Served, number: u64, document: &str| {
        let dynamodb = served.introduction[1].split_whitespace().nth(1).unwrap();
        let config = config(dynamodb, None, |_| None).unwrap();
        let store = Store::new(config.aws.dynamodb(PATIENCE), config.tables);
        let (who, why) = ("ana".to_owned(), "a test".to_owned());
        let version = Version { number, document: document.to_owned(), who, at: Timestamp::UNIX_EPOCH, why };
        let put = store.put_settings(&version, tokio::time::Instant::now() + PATIENCE).await;
        assert_eq!(put.unwrap(), PutSettings::Done);
    };
    let served = Served::over(data.path());
    put(&served, 1, "enabled = [\"mine\"]\n[networks.mine]\nbase = \"standard\"\nnetwork.name = \"Mine\"").await;
    served.stop(Signal::SIGTERM);

    let served = Served::over(data.path());
    assert!(served.introduction[0].ends_with("  networks: mine"), "{}", served.introduction[0]);
    let [credit, _, _] = &served.examples()[..] else { panic!("three examples") };
    assert!(credit.starts_with("/mine?"), "{credit}");
    assert_eq!(served.send("GET", credit), (200, "ok".to_owned()));
    assert_eq!(served.send("GET", "/standard").0, 404);

    put(&served, 2, "enabled = [").await;
    for first in [true, false] {
        let event = concat!(env!("CARGO_MANIFEST_DIR"), "/events/offerwall/standard-credit.json");
        let mut invoke = local(&["invoke", event, "--data", data.path().to_str().unwrap()]);
        let logged = String::from_utf8(invoke.env("LOG_LEVEL", "info").output().unwrap().stderr).unwrap();
        let line = logged.lines().find(|line| line.contains("\"settings_broken\":1")).expect("the line is written");
        assert_eq!(line.contains("\"cases_settings_broken\":1"), first, "{line}");
        assert!(logged.contains("version 1 stays in force"), "{logged}");
    }
}
