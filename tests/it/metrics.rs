//! The line of a call, as the real binary writes it: one for each, valid in CloudWatch's embedded metric format, and true: its
//! requests are those that arrived, its coins are the change of the balance. And what it must never hold.
//!
//! What is valid is written down here once more, from the format's specification and not from our code.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use postback::ledger::Case;
use postback::metrics::{METRICS, NAMESPACE};
use postback::money::Amount;
use postback::wallet::{Denied, Happened};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::faults::Fault;
use crate::runtime_api::{Bootstrap, RuntimeApi};
use crate::world::{PATIENCE, SECRET, World, check, check_document, conversion, event, query, signed};

/// The member that makes a line a document of the embedded metric format. It may hold nothing else.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Metadata {
    timestamp: i64,
    cloud_watch_metrics: Vec<Directive>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Directive {
    namespace: String,
    dimensions: Vec<Vec<String>>,
    metrics: Vec<Definition>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Definition {
    name: String,
    unit: String,
}

/// A line that keeps the specification.
struct Line {
    /// Every member, as it is written.
    members: BTreeMap<String, Box<RawValue>>,
    /// Metric to value, as it is written.
    counted: BTreeMap<String, String>,
    /// Every dimension with the value that it has here.
    dimensions: BTreeSet<(String, String)>,
}

impl Line {
    fn read(text: &str) -> Line {
        let members: BTreeMap<String, Box<RawValue>> = serde_json::from_str(text).unwrap();
        let again: Vec<_> = members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        assert_eq!(again.join(",").len() + 2, text.len(), "a member stands twice, or there are spaces: {text}");
        let metadata: Metadata = serde_json::from_str(members["_aws"].get()).unwrap();
        let mut line = Line { members, counted: BTreeMap::new(), dimensions: BTreeSet::new() };
        let written: jiff::Timestamp = line.text("timestamp").parse().unwrap();
        assert_eq!(metadata.timestamp, written.as_millisecond(), "{text}");
        for directive in metadata.cloud_watch_metrics {
            assert_eq!(directive.namespace, NAMESPACE);
            assert!(!directive.dimensions.is_empty() && !directive.metrics.is_empty(), "{text}");
            for name in directive.dimensions.into_iter().flatten() {
                let value = line.text(&name);
                assert!((1..=1024).contains(&value.len()) && value.is_ascii(), "{name} in {text}");
                line.dimensions.insert((name, value));
            }
            for Definition { name, unit } in directive.metrics {
                assert!(["Count", "Milliseconds", "None"].contains(&unit.as_str()), "{unit}");
                let value = line.members.get(&name).unwrap_or_else(|| panic!("{name} is no member of {text}"));
                let number = value.get().bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
                assert!(number, "{name} is no plain number in {text}");
                let before = line.counted.insert(name, value.get().to_owned());
                assert_eq!(before, None, "counted twice in {text}");
            }
        }
        line
    }

    /// A member that is a text.
    fn text(&self, name: &str) -> String {
        let member = self.members.get(name).unwrap_or_else(|| panic!("{name} is no member"));
        serde_json::from_str(member.get()).unwrap_or_else(|_| panic!("{name} is no text but {member}"))
    }

    /// A metric's number of coins.
    fn coins(&self, name: &str) -> Amount {
        self.counted.get(name).map_or(Amount::ZERO, |text| Amount::stored(text).unwrap())
    }

    /// By how much the line says that all balances together changed.
    fn change(&self) -> Amount {
        let given = ["coins_credited", "coins_held", "coins_suspended"].map(|metric| self.coins(metric));
        let sum = given.into_iter().fold(Amount::ZERO, |sum, coins| sum.checked_add(coins).unwrap());
        sum.checked_add(self.coins("coins_reversed").negated()).unwrap()
    }
}

/// The binary, with all that it has logged.
struct Function {
    api: RuntimeApi,
    process: Bootstrap,
    read: usize,
}

impl Function {
    async fn start(world: &World, variables: &[(&str, &str)]) -> Function {
        let api = RuntimeApi::start().await;
        let mut all = world.variables.clone();
        all.extend(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let process = Bootstrap::spawn(Path::new(env!("CARGO_BIN_EXE_offerwall")), &all, &api);
        api.ready().await.unwrap();
        world.proxy.take();
        Function { api, process, read: 0 }
    }

    /// One call, and the one line that it has.
    async fn call(&mut self, event: &str) -> Line {
        self.api.invoke(event, PATIENCE).await.unwrap();
        let output = self.process.output();
        let new = output[self.read..].lines().filter(|line| line.contains("\"message\":\"postback\""));
        let lines: Vec<_> = new.map(Line::read).collect();
        self.read = output.len();
        let [line] = <[Line; 1]>::try_from(lines).unwrap_or_else(|lines| panic!("{} lines of a call", lines.len()));
        line
    }
}

async fn total(world: &World) -> Amount {
    let parts = world.accounts().await.into_values().flat_map(|(available, held)| [available, held]);
    parts.fold(Amount::ZERO, |sum, text| sum.checked_add(Amount::stored(&text).unwrap()).unwrap())
}

/// A call, what its requests meet, its outcome, and what it counts beside itself.
type Step = (String, Vec<Fault>, &'static str, &'static str);

fn told(id: &str, status: &str, user: &str, amount: &str) -> String {
    event("GET", "/standard", &signed(&query(&conversion(id, status, user, amount))))
}

/// The network of [`steps`].
const NETWORK: &str = r#"[networks.standard]
cap = "100"
hold = "24h"
hold_above = "50"
source = { mode = "enforce", addresses = ["192.0.2.7"] }
classes = [
    { when = { status = "1" }, is = "credit" },
    { when = { status = "2" }, is = "reversal" },
    { when = { status = "3" }, is = "pending" },
    { when = { status = "4" }, is = "test" },
    { when = { status = "5" }, is = "ignore" },
]
"#;

fn steps() -> Vec<Step> {
    let clean = |event, outcome, counted| (event, Vec::new(), outcome, counted);
    let query = signed(&query(&conversion("c9", "1", "42", "5")));
    let contention = || Fault::Cancel(vec!["None", "TransactionConflict"]);
    vec![
        clean(told("c1", "1", "42", "10.50"), "credited", "understood=1 coins_credited=10.5"),
        clean(told("c1", "1", "42", "10.50"), "duplicate", "understood=1"),
        clean(told("c1", "1", "42", "11"), "conflict", "understood=1 cases_opened=1 cases_conflict=1"),
        clean(told("c1", "1", "42", "11"), "conflict", "understood=1"),
        clean(told("c1", "2", "42", ""), "reversed", "understood=1 coins_reversed=10.5"),
        clean(told("c1", "2", "42", ""), "duplicate", "understood=1"),
        clean(
            told("c2", "2", "42", "10"),
            "reversed_unseen",
            "understood=1 cases_opened=1 cases_reversal_without_credit=1",
        ),
        clean(told("c2", "1", "42", "10"), "late_credit", "understood=1 cases_opened=1 cases_late_credit=1"),
        clean(told("c2", "1", "42", "10"), "duplicate", "understood=1"),
        // More digits than a float has.
        clean(
            told("c3", "1", "42", "123456789012345.67"),
            "suspended",
            "understood=1 cases_opened=1 cases_over_cap=1 coins_suspended=123456789012345.67",
        ),
        clean(told("c3", "2", "42", ""), "reversed", "understood=1 coins_reversed=123456789012345.67"),
        clean(told("c3h", "1", "42", "50.01"), "held", "understood=1 coins_held=50.01"),
        clean(told("c3h", "2", "42", ""), "reversed", "understood=1 coins_reversed=50.01"),
        clean(told("c4", "1", "42", "0.001"), "credited", "understood=1"),
        clean(told("c5", "1", "7", "0.07"), "credited", "understood=1 coins_credited=0.07"),
        clean(told("c6", "3", "7", "1"), "pending", "understood=1"),
        clean(told("c6", "4", "7", "1"), "test", "understood=1"),
        clean(told("c6", "5", "7", "1"), "ignored", "understood=1"),
        clean(event("GET", "/standard", "user_id=7&signature=00"), "bad_signature", ""),
        clean(event("GET", "/standard", &query).replace("192.0.2.7", "192.0.2.8"), "bad_source", ""),
        clean(told("c7", "1", "7", "many"), "bad_parameters", ""),
        clean(event("GET", "/cpx", &query), "unknown_network", ""),
        clean(event("POST", "/standard", &query), "method_not_allowed", ""),
        clean("{}".to_owned(), "not_a_request", ""),
        (told("c8", "1", "7", "1"), vec![Fault::Error("AccessDeniedException")], "unavailable", "understood=1"),
        (
            told("c8", "1", "7", "1"),
            vec![contention(), Fault::Status(500), Fault::LostBeforeCommit, contention()],
            "credited",
            "understood=1 contention_retries=2 coins_credited=1",
        ),
        // What is lost after the commit is still a credit of this call.
        (told("c9", "1", "7", "2"), vec![Fault::LostAfterCommit], "credited", "understood=1 coins_credited=2"),
        (told("c9", "2", "7", ""), vec![Fault::Status(503)], "reversed", "understood=1 coins_reversed=2"),
    ]
}

#[tokio::test]
async fn every_outcome_has_one_line_at_any_log_level_whose_counts_requests_and_coins_are_true() {
    for level in ["error", "trace"] {
        check_document(NETWORK, async |world| {
            let mut function = Function::start(world, &[("LOG_LEVEL", level)]).await;
            let mut outcomes = BTreeSet::new();
            for (event, faults, outcome, counted) in steps() {
                let before = total(world).await;
                world.proxy.script(faults);
                let line = function.call(&event).await;
                assert_eq!(line.text("outcome"), outcome, "{event}");

                let mut expected = BTreeMap::from([("callbacks".to_owned(), "1".to_owned())]);
                expected.extend(counted.split_whitespace().map(|counted| {
                    let (metric, value) = counted.split_once('=').unwrap();
                    (metric.to_owned(), value.to_owned())
                }));
                let mut found = line.counted.clone();
                found.remove("duration_ms").expect("how long it took");
                assert_eq!(found, expected, "{outcome} {event}");

                let requests = world.proxy.take().len().to_string();
                assert_eq!(line.members["dynamodb_requests"].get(), requests, "{outcome} {event}");
                assert_eq!(before.checked_add(line.change()), Some(total(world).await), "{outcome} {event}");
                outcomes.insert(outcome);
            }
            assert_eq!(outcomes, told_by_the_readme(), "on the left what was seen, on the right the README");

            function.process.kill().await;
            let log = function.process.output();
            assert_eq!(log.contains("\"level\":\"WARN\""), level == "trace", "the level counts for every other line");
            for secret in [SECRET, "retired-secret", "signature=", "user_id=", "dummy", "amount="] {
                assert!(!log.contains(secret), "{secret} in {log}");
            }
        })
        .await;
    }
}

#[test]
fn the_readme_explains_every_outcome_of_a_wallet() {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
    let table = readme.split("| `outcome` of a wallet | what to do |").nth(1).unwrap().split("\n\n").next().unwrap();
    let told: BTreeSet<_> = table.split('`').skip(1).step_by(2).filter(|word| !word.contains(' ')).collect();
    let shared = ["duplicate", "conflict"];
    let mut outcomes: BTreeSet<_> = Happened::ALL.map(Happened::as_str).into();
    outcomes.extend(Denied::ALL.map(Denied::as_str));
    outcomes.extend(["balance", "ping"]);
    assert_eq!(told, outcomes.into_iter().filter(|outcome| !shared.contains(outcome)).collect());
}

/// The outcomes that the README explains, but for the one that needs a Secrets Manager that is out of order.
fn told_by_the_readme() -> BTreeSet<&'static str> {
    let readme = include_str!("../../README.md");
    let table = readme.split("| `outcome` | what to do |").nth(1).unwrap().split("\n\n").next().unwrap();
    let names = table.lines().filter_map(|row| row.strip_prefix('|')?.split('|').next());
    let names = names.flat_map(|cell| cell.split(',').next().unwrap_or_default().split_whitespace());
    let names = names.filter_map(|word| word.strip_prefix('`')?.strip_suffix('`'));
    names.filter(|name| *name != "unverifiable").collect()
}

#[tokio::test]
async fn a_reversal_that_names_another_user_and_finds_the_coins_spent_counts_both_cases() {
    check(async |world| {
        let mut function = Function::start(world, &[]).await;
        function.call(&told("c1", "1", "42", "10")).await;
        world.spend("42", "4").await;
        let line = function.call(&told("c1", "2", "43", "10")).await;
        let count = |metric: &str| line.counted.get(metric).map(String::as_str);
        assert_eq!(
            ["cases_opened", "cases_conflict", "cases_overdrawn", "coins_reversed"].map(count),
            [Some("2"), Some("1"), Some("1"), Some("10")]
        );
        let cases = line.text("cases");
        assert_eq!(
            cases.split(' ').collect::<BTreeSet<_>>(),
            world.case_ids().await.iter().map(String::as_str).collect()
        );
    })
    .await;
}

#[tokio::test]
async fn no_caller_can_make_a_dimension() {
    check(async |world| {
        let mut function = Function::start(world, &[]).await;
        let query = signed(&query(&conversion("c1", "1", "evil-user", "5")));
        let mut seen = BTreeSet::new();
        for path in ["/standard", "/standard/", "/cpx", "/evil", "/Standard", "/none", "/evil/standard", "//", "/%7B"] {
            for query in [&query, "user_id=evil&signature=evil"] {
                let line = function.call(&event("GET", path, query)).await;
                seen.extend(line.dimensions);
            }
        }
        seen.extend(function.call(&told("evil", "1", "evil", "evil")).await.dimensions);
        seen.extend(function.call("\"evil\"").await.dimensions);
        let seen: Vec<_> = seen.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let outcomes = ["bad_parameters", "bad_signature", "credited", "duplicate", "not_a_request", "unknown_network"];
        let outcomes = outcomes.map(|outcome| format!("outcome={outcome}"));
        let others = ["currency=coins", "function=postback", "network=none", "network=standard"].map(String::from);
        assert_eq!(seen, [&others[..], &outcomes[..]].concat());
    })
    .await;
}

#[tokio::test]
async fn calls_side_by_side_count_their_own_requests() {
    check(async |world| {
        // The first call of each user meets contention once for each of its coins.
        let mut left = BTreeMap::from([("0", 0), ("1", 1), ("2", 2), ("3", 3)]);
        world.proxy.plan(move |request| {
            let body = request.body.to_string();
            let (_, left) = left.iter_mut().find(|(user, _)| body.contains(&format!("\"u{user}\""))).unwrap();
            if *left == 0 {
                return Fault::None;
            }
            *left -= 1;
            Fault::Cancel(vec!["None", "TransactionConflict"])
        });
        let users = ["u0", "u1", "u2", "u3"];
        let calls = users.map(|user| world.tell(user, "1", user, "1"));
        let tallies = futures_util::future::join_all(calls).await.into_iter().map(|handled| handled.tally);
        let counts: Vec<_> = tallies.map(|tally| (tally.requests, tally.retries)).collect();
        assert_eq!(counts, [(1, 0), (2, 1), (3, 2), (4, 3)]);
    })
    .await;
}

#[tokio::test]
async fn what_is_asked_outside_a_call_is_not_the_calls() {
    check(async |world| {
        let handled = world.tell("c1", "1", "42", "10").await;
        world.redeployed(&[]).await;
        assert_eq!((handled.tally.requests, world.proxy.take().len()), (1, 2));
        let handled = world.tell("c1", "1", "42", "11").await;
        assert_eq!(handled.tally.requests, 2);
        assert_eq!(handled.cases.iter().map(Case::id).collect::<Vec<_>>(), world.case_ids().await);
    })
    .await;
}

#[test]
fn the_readme_lists_every_metric() {
    let readme = include_str!("../../README.md");
    for metric in METRICS {
        assert!(readme.contains(&format!("`{}`", metric.name)), "the README does not tell `{}`", metric.name);
    }
}
