//! What a machine does not decide: caps, users who must be known, losses that are ours; and what people do about the cases.

use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use postback::cases::Action;
use postback::config::Config;
use postback::id::{Network, UserId};
use postback::ledger::Decision;
use postback::money::Amount;
use postback::operator::{CannotRun, Ledger, cases};

use crate::faults::Fault;
use crate::world::{World, check_document, line};

fn parts(available: &str, held: &str) -> (String, String) {
    (available.to_owned(), held.to_owned())
}

fn standard(settings: &str) -> String {
    format!("[networks.standard]\n{settings}")
}

fn ana(reason: &str) -> Decision {
    Decision { by: "ana".into(), reason: reason.into() }
}

fn adjust(amount: &str) -> Action {
    Action::Adjust(Amount::stored(amount).unwrap())
}

/// The ledger as the commands of people reach it.
fn ledger(world: &World) -> Ledger {
    let config = Config::read(|name| world.variables.get(name).cloned()).unwrap();
    Ledger { store: world.app.store().clone(), config }
}

/// What `resolve` says, or why it cannot.
async fn resolve(world: &World, case: &str, action: Action) -> Result<String, String> {
    let resolved = cases::resolve(&ledger(world), case, &action, &ana("asked the network")).await;
    resolved.map(|reply| reply.text).map_err(|problem: CannotRun| problem.to_string())
}

async fn reverse(world: &World, id: &str) -> Result<String, String> {
    let network = Network::new("standard").unwrap();
    let reversed = cases::reverse(&ledger(world), &network, id, &ana("fraud")).await;
    reversed.map(|reply| reply.text).map_err(|problem| problem.to_string())
}

#[tokio::test]
async fn what_goes_beyond_a_users_day_waits_for_a_person_and_the_next_day_begins_anew() {
    check_document(&standard("cap_per_day = \"100\""), async |world| {
        for (id, amount, available, held) in [
            ("c1", "60", "60", "0"),
            ("c2", "40", "100", "0"),
            ("c3", "0.01", "100", "0.01"),
            ("c4", "101", "100", "101.01"),
            ("c5", "0", "100", "101.01"),
        ] {
            assert_eq!(line(&world.tell(id, "1", "42", amount).await), "200 ok", "{id}");
            assert_eq!(world.account("42").await, parts(available, held), "{id}");
        }
        assert_eq!(world.case_ids().await, ["over_cap/standard/c3/credit", "over_cap/standard/c4/credit"]);
        assert_eq!(line(&world.tell("c6", "1", "43", "100").await), "200 ok");
        assert_eq!(world.account("43").await, parts("100", "0"), "each user has a day of his own");
        world.count_as_of_yesterday("42").await;
        assert_eq!(line(&world.tell("c7", "1", "42", "100").await), "200 ok");
        assert_eq!(world.account("42").await, parts("200", "101.01"));
    })
    .await;
}

#[tokio::test]
async fn credits_that_race_for_the_rest_of_a_day_do_not_get_more_than_there_is() {
    check_document(&standard("cap_per_day = \"10\""), async |world| {
        let ids: Vec<_> = (0..12).map(|number| format!("c{number}")).collect();
        let calls = ids.iter().map(|id| world.tell(id, "1", "42", "3"));
        for answer in futures_util::future::join_all(calls).await {
            assert_eq!(line(&answer), "200 ok");
        }
        assert_eq!(world.account("42").await, parts("9", "27"));
    })
    .await;
}

#[tokio::test]
async fn a_cap_comes_before_a_hold_and_both_before_the_users_day() {
    let rules = standard("hold = \"24h\"\ncap = \"50\"\ncap_per_day = \"60\"");
    check_document(&rules, async |world| {
        for (id, amount) in [("c1", "50"), ("c2", "51"), ("c3", "11")] {
            world.tell(id, "1", "42", amount).await;
        }
        let holds = world.holds().await;
        let waits: Vec<_> = holds.iter().map(|row| row.contains_key("release_at")).collect();
        assert_eq!(waits, [true, false, false], "the first is released by itself, the others by a person");
        assert_eq!(world.account("42").await, parts("0", "112"));
    })
    .await;
}

#[tokio::test]
async fn a_credit_above_a_cap_is_released_by_a_person_once() {
    check_document(&standard("cap = \"50\""), async |world| {
        world.tell("c1", "1", "42", "51").await;
        assert_eq!(world.release(Timestamp::MAX).await.released, 0, "no time releases it");
        let case = "over_cap/standard/c1/credit";
        let told = resolve(world, case, Action::Note).await.unwrap_err();
        assert!(told.contains("its coins are still held"), "{told}");
        let told = resolve(world, case, Action::Release).await.unwrap();
        assert!(told.contains("42: 51 available, 0 held") && told.contains("ana: asked the network"), "{told}");
        assert_eq!(world.account("42").await, parts("51", "0"));
        let again = resolve(world, case, Action::Release).await.unwrap_err();
        assert!(again.contains("closed already") && again.contains("by ana: released (asked the network)"), "{again}");
        let row = &world.cases().await[0];
        assert_eq!((row["state"].as_str(), row["closed_by"].as_str()), ("closed", "ana"));
        assert!(!row.contains_key("open"), "it is not among the open ones");
        assert_eq!(line(&world.tell("c1", "1", "42", "51").await), "200 ok (duplicate)");
        assert_eq!(line(&world.tell("c1", "2", "42", "51").await), "200 ok");
        assert_eq!(world.account("42").await, parts("0", "0"));
    })
    .await;
}

#[tokio::test]
async fn what_a_reversal_took_from_a_case_can_only_be_noted() {
    check_document(&standard("cap = \"50\""), async |world| {
        world.tell("c1", "1", "42", "51").await;
        world.tell("c1", "2", "42", "51").await;
        assert_eq!(world.account("42").await, parts("0", "0"));
        let case = "over_cap/standard/c1/credit";
        assert!(resolve(world, case, Action::Release).await.unwrap_err().contains("not held any more"));
        resolve(world, case, Action::Note).await.unwrap();
        assert_eq!(world.entries().await.len(), 2);
    })
    .await;
}

#[tokio::test]
async fn a_hold_that_is_lost_ends_a_decision_with_what_to_do_and_moves_nothing() {
    check_document(&standard("cap = \"1\""), async |world| {
        world.tell("c1", "1", "42", "2").await;
        let rows = world.delete_holds().await;
        for told in [resolve(world, "over_cap/standard/c1/credit", Action::Release).await, reverse(world, "c1").await] {
            assert!(told.unwrap_err().contains("run `operator verify` for its user"));
        }
        assert_eq!(world.entries().await.len(), 1);
        world.restore_holds(rows).await;
        resolve(world, "over_cap/standard/c1/credit", Action::Release).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_conversion_that_was_corrected_is_reversed_as_it_was_corrected() {
    for (rules, adjusted, spent, expected, cases) in [
        ("", "-5", "0", "20", 1),
        ("", "5", "0", "20", 1),
        ("", "-15", "0", "15", 1),
        ("", "-5", "22", "-2", 2),
        ("spent = \"absorb\"", "-5", "22", "0", 2),
        ("hold = \"24h\"", "-5", "0", "20", 1),
        ("hold = \"24h\"", "5", "0", "20", 1),
        ("hold = \"24h\"", "5", "22", "-2", 2),
        ("hold = \"24h\"\nspent = \"absorb\"", "5", "22", "0", 2),
    ] {
        check_document(&standard(rules), async |world| {
            let place = format!("{rules}: adjusted by {adjusted}, then {spent} were spent");
            world.tell("other", "1", "42", "20").await;
            world.release(Timestamp::now() + SignedDuration::from_hours(25)).await;
            world.tell("c1", "1", "42", "10").await;
            world.tell("c1", "1", "42", "5").await;
            resolve(world, "conflict/standard/c1/credit/amount", adjust(adjusted)).await.unwrap();
            if spent != "0" {
                world.spend("42", spent).await;
            }
            assert_eq!(line(&world.tell("c1", "2", "42", "10").await), "200 ok", "{place}");
            assert_eq!(world.account("42").await, parts(expected, "0"), "{place}");
            assert_eq!(world.cases().await.len(), cases, "{place}");
        })
        .await;
    }
}

#[tokio::test]
async fn a_reversal_that_came_first_is_corrected_once_though_it_has_two_cases() {
    check_document(&standard(""), async |world| {
        world.tell("c1", "2", "42", "10").await;
        world.tell("c1", "1", "42", "10").await;
        resolve(world, "late_credit/standard/c1/credit", adjust("10")).await.unwrap();
        let told = resolve(world, "reversal_without_credit/standard/c1/reversal", adjust("10")).await.unwrap_err();
        assert!(told.contains("has an entry `adjust_late_credit` already"), "{told}");
        resolve(world, "reversal_without_credit/standard/c1/reversal", Action::Note).await.unwrap();
        assert_eq!(world.balance("42").await, "10");
    })
    .await;
}

#[tokio::test]
async fn a_correction_makes_no_account_where_users_must_be_known() {
    check_document(&standard("unknown_users = \"require\""), async |world| {
        world.tell("c1", "2", "4Z", "10").await;
        world.tell("c1", "1", "4Z", "10").await;
        let told = resolve(world, "late_credit/standard/c1/credit", adjust("10")).await.unwrap_err();
        assert!(told.contains("user 4Z has no account"), "{told}");
        world.make_account("4Z").await;
        resolve(world, "late_credit/standard/c1/credit", adjust("10")).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn what_was_done_is_said_though_the_balance_cannot_be_read() {
    check_document(&standard("cap = \"1\""), async |world| {
        world.tell("c1", "1", "42", "2").await;
        let mut reads = 0;
        world.proxy.plan(move |request| {
            // The first is of the case.
            reads += usize::from(request.operation == "GetItem");
            if reads > 1 { Fault::Error("AccessDeniedException") } else { Fault::None }
        });
        let told = resolve(world, "over_cap/standard/c1/credit", Action::Release).await.unwrap();
        assert!(told.contains("42: not known now: ") && told.contains("released"), "{told}");
    })
    .await;
}

#[tokio::test]
async fn people_who_resolve_the_same_case_at_once_move_its_coins_once() {
    check_document(&standard("cap = \"1\""), async |world| {
        for number in 0..8 {
            let id = format!("c{number}");
            world.tell(&id, "1", "42", "2").await;
            let case = format!("over_cap/standard/{id}/credit");
            let (one, other, reversed) = tokio::join!(
                resolve(world, &case, Action::Release),
                resolve(world, &case, Action::Release),
                reverse(world, &id),
            );
            assert!(one.is_err() || other.is_err(), "{one:?} {other:?}");
            assert!(reversed.is_ok(), "{reversed:?}");
            assert_eq!(world.account("42").await, parts("0", "0"), "{one:?} {other:?} {reversed:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_credit_for_a_user_whom_the_app_does_not_know_is_in_suspense_until_somebody_finds_the_user() {
    check_document(&standard("unknown_users = \"require\""), async |world| {
        world.make_account("42").await;
        assert_eq!(line(&world.tell("c1", "1", "42", "10").await), "200 ok");
        assert_eq!(line(&world.tell("c2", "1", "4Z", "10").await), "200 ok");
        assert_eq!(line(&world.tell("c2", "1", "4Z", "10").await), "200 ok (duplicate)");
        assert_eq!(world.account("42").await, parts("10", "0"));
        assert_eq!(world.account("4Z").await, parts("0", "0"));
        assert_eq!(world.account("suspense/standard").await, parts("0", "10"));
        let case = "unknown_user/standard/c2/credit";
        assert_eq!(world.case_ids().await, [case]);

        let user = |name| Action::Assign(UserId::new(name).unwrap());
        assert!(resolve(world, case, Action::Release).await.unwrap_err().contains("--assign"));
        assert!(resolve(world, case, adjust("1")).await.is_err());
        let told = resolve(world, case, user("4z")).await.unwrap_err();
        assert!(told.contains("user 4z has no account"), "{told}");
        resolve(world, case, user("42")).await.unwrap();
        assert_eq!(world.account("42").await, parts("20", "0"));
        assert_eq!(world.account("suspense/standard").await, parts("0", "0"));
        assert!(resolve(world, case, user("42")).await.unwrap_err().contains("closed already"));

        assert_eq!(line(&world.tell("c2", "2", "4Z", "10").await), "200 ok", "taken from whoever got it");
        assert_eq!(world.account("42").await, parts("10", "0"));
        assert_eq!(world.case_ids().await, [case], "the network names the user whom it always named");
    })
    .await;
}

#[tokio::test]
async fn a_reversal_of_coins_in_suspense_takes_them_from_there() {
    check_document(&standard("unknown_users = \"require\"\ncap = \"100\""), async |world| {
        world.tell("c1", "1", "4Z", "10").await;
        world.tell("c2", "1", "4Z", "1000").await;
        assert_eq!(world.account("suspense/standard").await, parts("0", "1010"));
        assert_eq!(line(&world.tell("c1", "2", "4Z", "10").await), "200 ok");
        assert_eq!(line(&world.tell("c2", "2", "4Z", "1000").await), "200 ok");
        assert_eq!(world.account("suspense/standard").await, parts("0", "0"));
        assert_eq!(world.case_ids().await.len(), 2, "one for each credit, none for a reversal");
    })
    .await;
}

#[tokio::test]
async fn a_loss_that_is_ours_takes_what_is_left_and_says_what_was_not() {
    check_document(&standard("spent = \"absorb\""), async |world| {
        for (id, spent) in [("c1", "0"), ("c2", "4"), ("c3", "10")] {
            world.tell(id, "1", id, "10").await;
            if spent != "0" {
                world.spend(id, spent).await;
            }
            assert_eq!(line(&world.tell(id, "2", id, "10").await), "200 ok");
            assert_eq!(line(&world.tell(id, "2", id, "10").await), "200 ok (duplicate)");
            assert_eq!(world.balance(id).await, "0", "{id}");
        }
        let reversals: Vec<_> = world.entries().await.into_iter().filter(|row| row["status"] == "reversal").collect();
        let told: Vec<_> = reversals
            .iter()
            .map(|row| (row["amount"].as_str(), row.get("absorbed").map_or("0", String::as_str)))
            .collect();
        assert_eq!(told, [("-10", "0"), ("-6", "4"), ("0", "10")]);
        let cases: Vec<_> = world.case_ids().await;
        assert_eq!(cases, ["shortfall/standard/c2/reversal", "shortfall/standard/c3/reversal"]);
        assert!(world.cases().await[0]["detail"].contains("6 were left and taken, 4 are our loss"));
    })
    .await;
}

#[tokio::test]
async fn a_balance_that_is_below_zero_already_is_not_raised_by_a_loss() {
    check_document(&standard("spent = \"negative\""), async |world| {
        world.tell("c1", "1", "42", "10").await;
        world.spend("42", "10").await;
        world.tell("c1", "2", "42", "10").await;
        assert_eq!(world.balance("42").await, "-10");
        world.tell("c2", "1", "42", "5").await;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("networks.toml");
        std::fs::write(&file, standard("spent = \"absorb\"")).unwrap();
        let app = world.redeployed(&[("NETWORKS_FILE", file.to_str().unwrap())]).await;
        let query = crate::world::query(&crate::world::conversion("c2", "2", "42", "5"));
        let event = crate::world::event("GET", "/standard", &crate::world::signed(&query));
        assert_eq!(line(&app.offerwall(&event, crate::world::PATIENCE).await), "200 ok");
        assert_eq!(world.balance("42").await, "-5", "the debt stays as it was");
    })
    .await;
}

#[tokio::test]
async fn a_loss_is_exact_though_the_balance_changes_while_it_is_reckoned() {
    check_document(&standard("spent = \"absorb\""), async |world| {
        for number in 0..10 {
            let (id, user) = (format!("c{number}"), format!("u{number}"));
            world.tell(&id, "1", &user, "10").await;
            world.spend(&user, "7").await;
            let more = format!("d{number}");
            let (reversal, credit) =
                tokio::join!(world.tell(&id, "2", &user, "10"), world.tell(&more, "1", &user, "2"));
            assert_eq!((line(&reversal), line(&credit)), ("200 ok".into(), "200 ok".into()));
            let row = world
                .entries()
                .await
                .into_iter()
                .find(|row| row["trans_id"] == format!("standard/{id}") && row["status"] == "reversal")
                .unwrap();
            let taken = Amount::stored(&row["amount"]).unwrap().negated();
            let absorbed = Amount::stored(&row["absorbed"]).unwrap();
            assert_eq!(taken.checked_add(absorbed), Amount::stored("10"), "{row:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn an_overdrawn_reversal_is_written_off_by_an_entry_of_its_own() {
    check_document(&standard(""), async |world| {
        world.tell("c1", "1", "42", "10").await;
        world.spend("42", "10").await;
        world.tell("c1", "2", "42", "10").await;
        let case = "overdrawn/standard/c1/reversal";
        let told = resolve(world, case, Action::Release).await.unwrap_err();
        assert!(told.contains("not held any more"), "{told}");
        resolve(world, case, adjust("10")).await.unwrap();
        assert_eq!(world.balance("42").await, "0");
        let entry = world.entries().await.into_iter().find(|row| row["status"] == "adjust_overdrawn").unwrap();
        assert_eq!((entry["by"].as_str(), entry["reason"].as_str()), ("ana", "asked the network"));
        assert!(resolve(world, case, adjust("10")).await.unwrap_err().contains("closed already"));
        assert!(
            resolve(world, "overdrawn/standard/c9/reversal", adjust("1")).await.unwrap_err().contains("there is none")
        );
    })
    .await;
}

#[tokio::test]
async fn a_person_reverses_a_credit_once_and_the_networks_own_reversal_after_that_moves_nothing() {
    check_document(&standard(""), async |world| {
        world.tell("c1", "1", "42", "10").await;
        let told = reverse(world, "c1").await.unwrap();
        assert!(told.contains("standard/c1 reversal -10 coins") && told.contains("42: 0 available"), "{told}");
        assert!(reverse(world, "c1").await.unwrap_err().contains("it is reversed already"));
        assert!(reverse(world, "c2").await.unwrap_err().contains("there is no credit of it"));
        assert_eq!(line(&world.tell("c1", "2", "42", "10").await), "200 ok (duplicate)");
        assert_eq!(line(&world.tell("c2", "1", "42", "5").await), "200 ok", "what was asked for in vain left no trace");
        let entry = world.entries().await.into_iter().find(|row| row["status"] == "reversal").unwrap();
        assert_eq!(entry["by"], "ana");
    })
    .await;
}

#[tokio::test]
async fn a_decision_whose_reply_is_lost_is_told_as_done_when_it_is_asked_again() {
    check_document(&standard("cap = \"1\""), async |world| {
        for (number, fault) in
            [Fault::LostAfterCommit, Fault::Reset, Fault::Cancel(vec!["None", "TransactionConflict"])]
                .into_iter()
                .enumerate()
        {
            let id = format!("c{number}");
            world.tell(&id, "1", "42", "2").await;
            let case = format!("over_cap/standard/{id}/credit");
            let mut once = Some(fault.clone());
            world.proxy.plan(move |request| match request.operation.as_str() {
                "TransactWriteItems" => once.take().unwrap_or(Fault::None),
                _ => Fault::None,
            });
            let first = resolve(world, &case, Action::Release).await;
            let second = resolve(world, &case, Action::Release).await;
            assert!(
                first.is_ok() || second.is_ok() || second.as_ref().unwrap_err().contains("by ana: released"),
                "{fault:?}: {first:?} {second:?}"
            );
            assert_eq!(world.account("42").await.1, "0", "{fault:?}");
        }
        assert_eq!(world.balance("42").await, "6");
    })
    .await;
}

#[tokio::test]
async fn open_cases_are_listed_by_kind_and_network_until_they_are_closed() {
    check_document(&standard("cap = \"1\""), async |world| {
        world.tell("c1", "1", "42", "2").await;
        world.tell("c2", "2", "43", "2").await;
        world.tell("c2", "1", "43", "2").await;
        let listed = async |kind: Option<&str>, network: Option<&str>| {
            let network = network.map(|name| Network::new(name).unwrap());
            let reply = cases::open(&ledger(world), kind, network.as_ref()).await.unwrap();
            let cases = reply.json["cases"].as_array().unwrap().clone();
            let mut ids: Vec<_> = cases.iter().map(|case| case["case"].as_str().unwrap().to_owned()).collect();
            ids.sort();
            ids
        };
        let (over, late, unseen) = (
            "over_cap/standard/c1/credit",
            "late_credit/standard/c2/credit",
            "reversal_without_credit/standard/c2/reversal",
        );
        assert_eq!(listed(None, None).await, [late, over, unseen]);
        assert_eq!(listed(Some("late_credit"), Some("standard")).await, [late]);
        assert_eq!(listed(None, Some("other")).await, [""; 0]);
        resolve(world, late, adjust("2")).await.unwrap();
        resolve(world, unseen, Action::Note).await.unwrap();
        assert_eq!(listed(None, Some("standard")).await, [over]);
        let reply = cases::show(&ledger(world), late).await.unwrap();
        assert_eq!((reply.json["open"].as_bool(), reply.json["closed_by"].as_str()), (Some(false), Some("ana")));
        assert_eq!(reply.json["entries"].as_array().unwrap().len(), 3, "credit, reversal, adjustment: {}", reply.text);
        world.tell("c2", "1", "43", "2").await;
        assert_eq!(listed(Some("late_credit"), None).await, [""; 0], "a fact that repeats opens nothing again");
    })
    .await;
}

/// Replays a session of `tests/transcripts/cases` against the ledger of a world, as ana.
async fn replay(world: &World, session: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts/cases").join(session);
    let mut shell = world.variables.clone();
    shell.insert("USER".into(), "ana".into());
    crate::transcripts::assert_replays_without_times(&path, shell).await;
}

#[tokio::test]
async fn the_story_of_an_overdrawn_reversal_that_is_worked() {
    check_document(&standard(""), async |world| {
        world.tell("conv-7", "1", "42", "100").await;
        world.spend_on("order-1", "42", "80").await;
        world.tell("conv-7", "2", "42", "100").await;
        replay(world, "overdrawn.txt").await;
        assert_eq!(world.balance("42").await, "0");
    })
    .await;
}

#[tokio::test]
async fn the_story_of_a_hold_that_a_person_releases() {
    check_document(&standard("hold = \"24h\"\ncap = \"5000\""), async |world| {
        world.tell("conv-7", "1", "42", "10").await;
        world.tell("conv-8", "1", "42", "7500").await;
        replay(world, "held.txt").await;
        assert_eq!(world.account("42").await, parts("7500", "10"));
        world.release(Timestamp::now() + SignedDuration::from_hours(25)).await;
        replay(world, "released.txt").await;
    })
    .await;
}

#[tokio::test]
async fn the_story_of_a_user_who_was_found() {
    check_document(&standard("unknown_users = \"require\""), async |world| {
        world.make_account("42").await;
        world.tell("conv-7", "1", "0042", "10").await;
        replay(world, "found.txt").await;
        assert_eq!(world.balance("42").await, "10");
    })
    .await;
}
