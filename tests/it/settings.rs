//! Settings that change while the function runs: versions that come into force, that do not read, that race, and a table
//! that cannot be reached.
//!
//! No test waits for a minute: the clock that the age of settings is measured by is moved.

use std::time::Duration;

use futures_util::future::{join, join_all};
use jiff::Timestamp;
use postback::handler::{App, Handled};
use postback::in_force::REFRESH_EVERY;
use postback::ledger::Decision;
use postback::operator::Ledger;
use postback::operator::settings::{self, Plan};
use postback::settings::Version;
use postback::store::PutSettings;
use tokio::time::Instant;

use crate::faults::{Fault, Request};
use crate::world::{PATIENCE, World, check, conversion, event, line, pass, query, signed};

/// Lets every caller in.
const OPEN: &str = "enabled = [\"standard\"]";

/// Lets nobody in: the tests call from another address.
const SHUT: &str = r#"
    enabled = ["standard"]
    [networks.standard.source]
    mode = "enforce"
    addresses = ["198.51.100.1"]
"#;

const LET_IN: &str = "200 ok";
const SHUT_OUT: &str = "403 source address not allowed";

fn version(number: u64, who: &str, document: &str) -> Version {
    let at = Timestamp::from_second(1_796_000_000 + i64::try_from(number).unwrap()).unwrap();
    Version { number, document: document.to_owned(), who: who.to_owned(), at, why: "a test".to_owned() }
}

/// Puts a version as a person does, but without looking whether it reads.
async fn put(world: &World, number: u64, document: &str) {
    let put = world.app.store().put_settings(&version(number, "ana", document), deadline()).await;
    assert_eq!(put.unwrap(), PutSettings::Done);
}

fn deadline() -> Instant {
    Instant::now() + PATIENCE
}

async fn call(app: &App, id: &str) -> Handled {
    let query = signed(&query(&conversion(id, "1", "42", "1")));
    app.offerwall(&event("GET", "/standard", &query), PATIENCE).await
}

/// The answer to a call right now.
async fn told(app: &App, id: &str) -> String {
    line(&call(app, id).await)
}

/// The answer to a call when the settings have become too old.
async fn told_later(app: &App, id: &str) -> String {
    pass(REFRESH_EVERY).await;
    told(app, id).await
}

fn in_force(app: &App) -> Option<u64> {
    app.in_force().expect("the settings were read").version
}

/// Makes the settings table unreachable, and nothing else.
fn cut_off(world: &World) {
    let table = world.tables.settings.clone();
    world.proxy.plan(move |request: &Request| match request.body["TableName"] == table.as_str() {
        true => Fault::Error("AccessDeniedException"),
        false => Fault::None,
    });
}

#[tokio::test]
async fn a_change_takes_effect_in_a_running_process_once_its_settings_are_too_old_and_not_before() {
    check(async |world| {
        let app = world.redeployed(&[]).await;
        assert_eq!((told(&app, "c1").await.as_str(), in_force(&app)), (LET_IN, None), "the variables count");
        put(world, 1, SHUT).await;
        pass(REFRESH_EVERY - Duration::from_secs(10)).await;
        assert_eq!((told(&app, "c2").await.as_str(), in_force(&app)), (LET_IN, None), "within the minute");
        assert_eq!((told_later(&app, "c3").await.as_str(), in_force(&app)), (SHUT_OUT, Some(1)));
        put(world, 2, OPEN).await;
        assert_eq!((told(&app, "c4").await.as_str(), in_force(&app)), (SHUT_OUT, Some(1)));
        assert_eq!((told_later(&app, "c4").await.as_str(), in_force(&app)), (LET_IN, Some(2)));
        // A process that starts has the newest.
        assert_eq!(in_force(&world.redeployed(&[]).await), Some(2));
    })
    .await;
}

#[tokio::test]
async fn settings_take_the_place_of_the_variables_altogether() {
    check(async |world| {
        let mine = "enabled = [\"mine\"]\n[networks.mine]\nbase = \"standard\"\nnetwork.name = \"Mine\"";
        put(world, 1, mine).await;
        let app = world.redeployed(&[]).await;
        assert_eq!(told(&app, "c1").await, "404 no such network");
        let query = signed(&query(&conversion("c1", "1", "42", "1")));
        let handled = app.offerwall(&event("GET", "/mine", &query), PATIENCE).await;
        assert_eq!(line(&handled), "403 bad signature", "it has no secret yet");
    })
    .await;
}

#[tokio::test]
async fn settings_cost_one_request_a_minute_and_process_however_many_calls_there_are() {
    check(async |world| {
        put(world, 1, OPEN).await;
        world.proxy.take();
        let app = world.redeployed(&[]).await;
        assert_eq!(world.proxy.take().len(), 1, "the start");
        assert_eq!(call(&app, "c1").await.tally.requests, 1, "within the minute");
        pass(REFRESH_EVERY).await;
        assert_eq!(call(&app, "c2").await.tally.requests, 2, "after it");
        assert_eq!(call(&app, "c2").await.tally.requests, 1, "and within the next");
        assert_eq!(world.proxy.take().len(), 4);
        pass(REFRESH_EVERY).await;
        let calls = ["c3", "c4", "c5", "c6"].map(|id| told(&app, id));
        assert!(join_all(calls).await.iter().all(|line| line == LET_IN));
        let reads = world.proxy.take().into_iter().filter(|request| request.operation == "Query").count();
        assert_eq!(reads, 1, "one of the calls reads, the others go on");
    })
    .await;
}

#[tokio::test]
async fn a_start_with_settings_that_do_not_read_takes_the_last_that_do_and_opens_a_case_once() {
    check(async |world| {
        put(world, 1, OPEN).await;
        put(world, 2, SHUT).await;
        put(world, 3, "enabled = [").await;
        put(world, 4, "enabled = [\"nobody\"]").await;
        for id in ["c1", "c2"] {
            let app = world.redeployed(&[]).await;
            assert_eq!((told(&app, id).await.as_str(), in_force(&app)), (SHUT_OUT, Some(2)));
        }
        let [case] = &world.cases().await[..] else { panic!("one case") };
        assert_eq!((case["case_id"].as_str(), case["version"].as_str()), ("settings_broken/4", "4"));
        assert_eq!(
            case["detail"],
            "version 4, line 1: enabled: `nobody`: no network of that name is known; `cargo operator networks` lists \
             them; version 2 stays in force"
        );
        let app = world.redeployed(&[]).await;
        put(world, 5, OPEN).await;
        assert_eq!(told_later(&app, "c3").await, LET_IN);
        assert_eq!(world.case_ids().await, ["settings_broken/4"]);
    })
    .await;
}

#[tokio::test]
async fn settings_that_break_while_the_function_runs_never_come_into_force() {
    check(async |world| {
        put(world, 1, SHUT).await;
        let app = world.redeployed(&[]).await;
        put(world, 2, "enabled = 7").await;
        assert_eq!(told_later(&app, "c1").await, SHUT_OUT);
        assert_eq!(world.case_ids().await, ["settings_broken/2"]);
        // As long as it lasts it costs what any reading costs: it is not read again, and its case is there.
        pass(REFRESH_EVERY).await;
        assert_eq!(call(&app, "c2").await.tally.requests, 1);
        // A good version that a broken one follows before anybody looked.
        put(world, 3, OPEN).await;
        put(world, 4, "").await;
        assert_eq!((told_later(&app, "c3").await.as_str(), in_force(&app)), (LET_IN, Some(3)));
        assert_eq!(world.case_ids().await, ["settings_broken/2", "settings_broken/4"]);
    })
    .await;
}

#[tokio::test]
async fn a_row_under_a_number_that_no_version_has_is_none_and_stands_in_nobodys_way() {
    check(async |world| {
        put(world, 1, OPEN).await;
        world.put_settings_row("1.5").await;
        let app = world.redeployed(&[]).await;
        assert_eq!((in_force(&app), told(&app, "c1").await.as_str()), (Some(1), LET_IN));
        let history = world.app.store().settings_history(None, deadline()).await.unwrap();
        assert_eq!(history.iter().map(|version| version.number).collect::<Vec<_>>(), [1]);
        put(world, 2, SHUT).await;
        assert_eq!((told_later(&app, "c2").await.as_str(), in_force(&app)), (SHUT_OUT, Some(2)));
    })
    .await;
}

#[tokio::test]
async fn where_no_version_ever_read_the_variables_count() {
    check(async |world| {
        put(world, 1, "enabled = []").await;
        let app = world.redeployed(&[]).await;
        assert_eq!((told(&app, "c1").await.as_str(), in_force(&app)), (LET_IN, None));
        assert!(world.cases().await[0]["detail"].ends_with("; what the variables say stays in force"));
    })
    .await;
}

#[tokio::test]
async fn a_settings_table_that_cannot_be_reached_leaves_what_is_in_force() {
    check(async |world| {
        put(world, 1, SHUT).await;
        let app = world.redeployed(&[]).await;
        put(world, 2, OPEN).await;
        cut_off(world);
        assert_eq!(told_later(&app, "c1").await, SHUT_OUT);
        world.proxy.plan(|_| Fault::None);
        assert_eq!(told(&app, "c2").await, SHUT_OUT, "a minute after the last try");
        assert_eq!(told_later(&app, "c2").await, LET_IN);
    })
    .await;
}

#[tokio::test]
async fn a_settings_table_that_stalls_holds_one_call_up_for_a_second_and_no_other() {
    check(async |world| {
        put(world, 1, SHUT).await;
        let app = world.redeployed(&[]).await;
        let table = world.tables.settings.clone();
        world.proxy.plan(move |request: &Request| match request.body["TableName"] == table.as_str() {
            true => Fault::Stall,
            false => Fault::None,
        });
        pass(REFRESH_EVERY).await;
        let started = Instant::now();
        let timed = async |id| (told(&app, id).await, started.elapsed());
        let ((reads, held_up), (goes_on, not)) = join(timed("c1"), timed("c2")).await;
        assert_eq!((reads.as_str(), goes_on.as_str()), (SHUT_OUT, SHUT_OUT));
        let second = Duration::from_secs(1);
        assert!(not < second && (second..5 * second).contains(&held_up), "{not:?} and {held_up:?}");
    })
    .await;
}

#[tokio::test]
async fn a_start_that_cannot_read_the_settings_decides_nothing_until_it_can() {
    check(async |world| {
        put(world, 1, SHUT).await;
        cut_off(world);
        let app = world.redeployed(&[]).await;
        assert!(app.in_force().is_none());
        let handled = call(&app, "c1").await;
        assert_eq!((line(&handled).as_str(), handled.outcome), ("503 try again", "unavailable"));
        let elsewhere = app.offerwall(&event("GET", "/nowhere", ""), PATIENCE).await;
        assert_eq!(line(&elsewhere), "503 try again", "nobody knows whether it is a network");
        world.proxy.plan(|_| Fault::None);
        assert_eq!(told(&app, "c1").await, SHUT_OUT);
        assert!(world.entries().await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn of_two_who_put_the_same_version_one_is_told_of_the_other() {
    check(async |world| {
        let store = world.app.store();
        let (ana, ben) = (version(1, "ana", OPEN), version(1, "ben", SHUT));
        let (one, other) = join(store.put_settings(&ana, deadline()), store.put_settings(&ben, deadline())).await;
        let kept = store.settings(1, deadline()).await.unwrap().unwrap();
        let taken = || PutSettings::Taken(Box::new(kept.clone()));
        let expected = if kept == ana { (PutSettings::Done, taken()) } else { (taken(), PutSettings::Done) };
        assert_eq!((one.unwrap(), other.unwrap()), expected);
    })
    .await;
}

#[tokio::test]
async fn a_version_whose_reply_was_lost_is_there_once() {
    check(async |world| {
        world.proxy.script([Fault::ResetAfterCommit]);
        put(world, 1, OPEN).await;
        let kept = world.app.store().settings_history(None, deadline()).await.unwrap();
        assert_eq!(kept, [version(1, "ana", OPEN)]);
    })
    .await;
}

#[tokio::test]
async fn the_history_is_read_page_by_page_the_newest_first() {
    check(async |world| {
        const VERSIONS: u64 = 45;
        let store = world.app.store();
        for number in 1..=VERSIONS {
            put(world, number, OPEN).await;
        }
        let (mut numbers, mut before) = (Vec::new(), None);
        loop {
            let page = store.settings_history(before, deadline()).await.unwrap();
            let Some(last) = page.last() else { break };
            before = Some(last.number);
            numbers.extend(page.iter().map(|version| version.number));
        }
        assert_eq!(numbers, (1..=VERSIONS).rev().collect::<Vec<_>>());
        let before = store.newest_settings(Some(10), deadline()).await.unwrap().map(|version| version.number);
        assert_eq!(before, Some(9));
        assert_eq!(store.settings(VERSIONS + 1, deadline()).await.unwrap(), None);
    })
    .await;
}

/// The ledger as an operator reaches it, through the same proxy as the function.
fn ledger(world: &World) -> Ledger {
    Ledger::connect(|name| world.variables.get(name).cloned(), false).unwrap()
}

fn decision(by: &str) -> Decision {
    Decision { by: by.to_owned(), reason: "a test".to_owned() }
}

#[tokio::test]
async fn whoever_puts_what_was_compared_with_an_older_version_is_told_whose_is_newer() {
    check(async |world| {
        let ledger = ledger(world);
        let plan = async |document: &str| Plan::of(&ledger, "settings.toml", document.to_owned()).await.unwrap();
        let (ana, ben) = (plan(OPEN).await, plan(SHUT).await);
        let now = Timestamp::UNIX_EPOCH;
        assert_eq!(ana.put(&ledger, decision("ana"), now).await.unwrap().json["version"], 1);
        let told = ben.put(&ledger, decision("ben"), now).await.unwrap_err().to_string();
        assert_eq!(told, "version 1 was put by ana meanwhile; look at it and put again");
        assert_eq!(plan(SHUT).await.put(&ledger, decision("ben"), now).await.unwrap().json["version"], 2);
    })
    .await;
}

#[tokio::test]
async fn a_change_that_is_rolled_back_is_out_of_force_again() {
    check(async |world| {
        let ledger = ledger(world);
        let put = async |document: String| {
            let plan = Plan::of(&ledger, "settings.toml", document).await.unwrap();
            plan.put(&ledger, decision("ana"), Timestamp::UNIX_EPOCH).await.unwrap();
        };
        put(OPEN.to_owned()).await;
        put(SHUT.to_owned()).await;
        assert_eq!(told_later(&world.app, "c1").await, SHUT_OUT);
        put(settings::version(&ledger, 1).await.unwrap().document).await;
        assert_eq!(told_later(&world.app, "c1").await, LET_IN);
        assert_eq!(in_force(&world.app), Some(3));
    })
    .await;
}

#[tokio::test]
async fn what_does_not_read_is_told_to_whoever_looks_and_a_better_version_is_compared_with_what_is_in_force() {
    check(async |world| {
        put(world, 1, OPEN).await;
        put(world, 2, "enabled = 7").await;
        let ledger = ledger(world);
        let shown = settings::show(&ledger, None).await.unwrap();
        assert_eq!((shown.reply.text.as_str(), shown.reply.json["version"].as_u64()), (OPEN, Some(1)));
        let broken = "version 2 does not read, so version 1 is in force:";
        assert_eq!(shown.remarks[1], broken);
        assert!(settings::show(&ledger, Some(2)).await.unwrap().reply.differs);
        let plan = Plan::of(&ledger, "settings.toml", SHUT.to_owned()).await.unwrap();
        assert!(plan.reply().text.starts_with(broken), "{}", plan.reply().text);
        assert!(plan.reply().text.contains("  networks.standard.source.mode: not set -> enforce"));
        // To put what is in force already is how one leaves a broken version behind.
        let back = Plan::of(&ledger, "version 1", OPEN.to_owned()).await.unwrap();
        back.must_change().unwrap();
        assert_eq!(back.put(&ledger, decision("ana"), Timestamp::UNIX_EPOCH).await.unwrap().json["version"], 3);
        let states: Vec<_> = settings::history(&ledger).await.unwrap().text.lines().map(str::to_owned).collect();
        assert!(states[1].contains("in force") && states.len() == 4, "{states:?}");
        settings::diff(&ledger, Some(2), Some(3)).await.unwrap_err();
    })
    .await;
}
