//! The commands about the books, on entries that the real store posted: what they add up to, what an export holds, what a
//! verification finds, and what is never written.

use std::collections::BTreeMap;
use std::path::Path;

use postback::id::{Currency, TransId, UserId};
use postback::ledger::{Decision, Entry, Held, Offer, Posting, Status, release};
use postback::money::Amount;
use postback::operator::finance::{self, Export, Format, Period};
use postback::operator::{CannotRun, Ledger, deadline};
use postback::terminal::Reply;
use serde_json::{Value, json};

use crate::faults::Fault;
use crate::world::{World, check};

/// Long after everything that is posted here.
const NOW: &str = "2027-01-15T12:00:00Z";

fn now() -> jiff::Timestamp {
    NOW.parse().unwrap()
}

fn amount(text: &str) -> Amount {
    Amount::stored(text).unwrap()
}

/// The ledger as an operator reaches it, through the same proxy as the function.
fn ledger(world: &World) -> Ledger {
    Ledger::connect(|name| world.variables.get(name).cloned(), false).unwrap()
}

fn entry(id: &str, status: Status, user: &str, coins: &str, at: &str) -> Entry {
    let key = (TransId::new(id).unwrap(), status);
    let account = (UserId::stored(user).unwrap(), Currency::new("coins").unwrap());
    Entry::plain(key, account, amount(coins), at.parse().unwrap())
}

/// The same with all coins held.
fn held(entry: Entry, release_at: Option<&str>) -> Entry {
    let held = Held { change: entry.amount, release_at: release_at.map(|at| at.parse().unwrap()) };
    Entry { held: Some(held), ..entry }
}

async fn post(ledger: &Ledger, entry: Entry) {
    ledger.store.post(&Posting::of(entry), deadline()).await.unwrap();
}

/// Two networks and the app in November 2026: credits, a reversal, a hold and its release, a correction, a spend.
async fn november(ledger: &Ledger) {
    november_of(ledger, 2026).await;
}

/// The same in another year.
async fn november_of(ledger: &Ledger, year: u16) {
    let at = |rest: &str| format!("{year}-{rest}");
    let entry = |id: &str, status, user: &str, coins: &str, rest: &str| entry(id, status, user, coins, &at(rest));
    let mut quest = entry("adgem/1", Status::Credit, "ana", "100.5", "11-01T00:00:00Z");
    quest.offer = Offer {
        offer_id: Some("7".into()),
        offer_name: Some("=cmd|'/c calc'!A1".into()),
        goal_id: None,
        payout_usd: Some(amount("1.25")),
    };
    post(ledger, quest).await;
    post(ledger, entry("adgem/1", Status::Reversal, "ana", "-100.5", "11-03T08:00:00Z")).await;
    post(ledger, entry("adgem/2", Status::Credit, "bob", "20", "11-03T08:00:00Z")).await;
    let waits = held(entry("standard/3", Status::Credit, "ana", "40", "11-30T23:59:59.999Z"), Some(NOW));
    post(ledger, waits.clone()).await;
    let due = held(entry("standard/4", Status::Credit, "bob", "8", "11-10T10:00:00Z"), Some(&at("11-12T10:00:00Z")));
    post(ledger, due.clone()).await;
    let hold = postback::ledger::held_now(std::slice::from_ref(&due)).unwrap();
    ledger.store.post(&release(&hold, at("11-12T10:00:05Z").parse().unwrap()), deadline()).await.unwrap();
    let mut correction =
        entry("adgem/1", Status::Adjust(postback::ledger::CaseKind::Overdrawn), "ana", "0.5", "11-20T10:00:00Z");
    correction.decision = Some(Decision { by: "eve".into(), reason: "-they agreed".into() });
    post(ledger, correction).await;
    post(ledger, entry("standard/9", Status::Credit, "bob", "1", "12-01T00:00:00Z")).await;
}

async fn sums(ledger: &Ledger, period: Period, networks: &[&str]) -> Value {
    let networks: Vec<_> = networks.iter().map(|name| (*name).to_owned()).collect();
    finance::sums(ledger, &period, &networks, now()).await.unwrap().json
}

/// `network: credits, reversals, net` of each line.
fn lines(json: &Value) -> Vec<String> {
    let line = |line: &Value| {
        let text = |name: &str| format!("{} of {}", line[name]["amount"].as_str().unwrap(), line[name]["count"]);
        format!("{}: {}, {}, {}", line["network"].as_str().unwrap(), text("credits"), text("reversals"), text("net"))
    };
    json["networks"].as_array().unwrap().iter().map(line).collect()
}

#[tokio::test]
async fn a_month_is_what_its_days_are_and_a_day_ends_at_midnight_in_utc() {
    check(async |world| {
        let ledger = ledger(world);
        november(&ledger).await;
        let month = sums(&ledger, Period::month("2026-11").unwrap(), &["adgem", "standard"]).await;
        assert_eq!(lines(&month), ["adgem: 120.5 of 2, -100.5 of 1, 20.5 of 4", "standard: 48 of 2, 0 of 0, 48 of 3"]);
        let standard = &month["networks"][1];
        assert_eq!(standard["held"], json!({"count": 2, "amount": "48"}));
        assert_eq!(standard["released"], json!({"count": 1, "amount": "8"}));
        assert_eq!(month["totals"][0]["users"], 2);
        assert_eq!(month["totals"][0]["payout_usd"], json!({"count": 1, "amount": "1.25"}));

        let mut added: BTreeMap<String, (u64, Amount)> = BTreeMap::new();
        for day in Period::month("2026-11").unwrap().days() {
            let day = sums(&ledger, Period::day(&day.to_string()).unwrap(), &["adgem", "standard"]).await;
            for line in day["networks"].as_array().unwrap() {
                for part in ["credits", "reversals", "held", "released", "adjustments", "net"] {
                    let sum = added.entry(format!("{} {part}", line["network"].as_str().unwrap())).or_default();
                    sum.0 += line[part]["count"].as_u64().unwrap();
                    sum.1 = sum.1.checked_add(amount(line[part]["amount"].as_str().unwrap())).unwrap();
                }
            }
        }
        for line in month["networks"].as_array().unwrap() {
            for part in ["credits", "reversals", "held", "released", "adjustments", "net"] {
                let (count, sum) = added[&format!("{} {part}", line["network"].as_str().unwrap())];
                assert_eq!(line[part], json!({"count": count, "amount": sum.to_string()}), "{part}");
            }
        }
        let last = sums(&ledger, Period::day("2026-11-30").unwrap(), &[]).await;
        assert_eq!(lines(&last), ["standard: 40 of 1, 0 of 0, 40 of 1"]);
    })
    .await;
}

#[tokio::test]
async fn what_the_app_posts_is_summed_when_it_is_asked_for_and_a_row_that_does_not_read_is_told() {
    check(async |world| {
        let ledger = ledger(world);
        post(&ledger, entry("standard/1", Status::Credit, "ana", "10", "2026-11-01T10:00:00Z")).await;
        let at = ("received_at", "2026-11-02T10:00:00.000Z");
        world.put_row("app/order-1", "spend", "ana", "-4", &[("day", "app#2026-11-02#0"), at]).await;
        world.change_account("ana", "available", "-4").await;
        let month = Period::month("2026-11").unwrap();
        assert_eq!(lines(&sums(&ledger, month, &["app"]).await), ["app: 0 of 0, 0 of 0, -4 of 1"]);

        world.put_row("standard/2", "credit", "ana", "0.000000001", &[("day", "standard#2026-11-02#0"), at]).await;
        let reply = finance::sums(&ledger, &month, &["standard".to_owned()], now()).await.unwrap();
        assert!(reply.differs && reply.text.contains("trans_id standard/2, status credit"), "{}", reply.text);
        world.delete_row("standard/2", "credit").await;
    })
    .await;
}

#[tokio::test]
async fn a_conversation_is_shown_with_its_hold_and_its_cases_and_one_that_is_not_there_is_said() {
    check(async |world| {
        let ledger = ledger(world);
        november(&ledger).await;
        let shown = finance::show(&ledger, "standard", "3").await.unwrap();
        assert_eq!(shown.json["hold"]["amount"], "40");
        let released = finance::show(&ledger, "standard", "4").await.unwrap();
        assert_eq!(released.json["hold"], Value::Null);
        let statuses: Vec<_> =
            released.json["entries"].as_array().unwrap().iter().map(|entry| entry["status"].clone()).collect();
        assert_eq!(statuses, ["credit", "release"]);
        world.tell("c-1", "1", "ana", "10").await;
        world.tell("c-1", "1", "ana", "11").await;
        let conflict = finance::show(&ledger, "standard", "c-1").await.unwrap();
        assert_eq!(conflict.json["cases"][0]["case_id"], "conflict/standard/c-1/credit/amount");
        assert_eq!(conflict.json["cases"][0]["state"], "open");
        assert!(finance::show(&ledger, "standard", "nobody").await.unwrap().differs);
    })
    .await;
}

#[tokio::test]
async fn a_history_is_newest_first_and_says_when_there_is_more() {
    check(async |world| {
        let ledger = ledger(world);
        november(&ledger).await;
        let newest = finance::user(&ledger, "ana", 2).await.unwrap().json;
        let ids: Vec<_> = newest["entries"].as_array().unwrap().iter().map(|entry| entry["trans_id"].clone()).collect();
        assert_eq!((ids, newest["more"].as_bool()), (vec![json!("standard/3"), json!("adgem/1")], Some(true)));
        assert_eq!(newest["accounts"][0]["available"], "0.5");
        assert_eq!(newest["accounts"][0]["held"], "40");
        let all = finance::user(&ledger, "ana", 20).await.unwrap().json;
        assert_eq!((all["entries"].as_array().unwrap().len(), all["more"].as_bool()), (4, Some(false)));
        assert!(finance::user(&ledger, "nobody", 20).await.unwrap().differs);
    })
    .await;
}

/// An export of November into `file` of this folder.
fn export_to(folder: &Path, file: &str, format: Format) -> Export {
    let networks = vec!["standard".to_owned(), "adgem".to_owned()];
    Export { period: Period::month("2026-11").unwrap(), networks, format, out: folder.join(file) }
}

async fn export(ledger: &Ledger, export: &Export) -> Result<Reply, CannotRun> {
    finance::export(ledger, export, now()).await
}

#[tokio::test]
async fn an_export_has_every_entry_once_in_an_order_that_stays_and_no_formula() {
    check(async |world| {
        let ledger = ledger(world);
        november(&ledger).await;
        let folder = tempfile::tempdir().unwrap();
        let csv = export_to(folder.path(), "month.csv", Format::Csv);
        let reply = export(&ledger, &csv).await.unwrap();
        assert_eq!(reply.json["entries"], 7);
        let text = std::fs::read_to_string(&csv.out).unwrap();
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let heads: Vec<_> = reader.headers().unwrap().iter().map(str::to_owned).collect();
        let rows: Vec<BTreeMap<String, String>> = reader
            .records()
            .map(|row| heads.iter().cloned().zip(row.unwrap().iter().map(str::to_owned)).collect())
            .collect();
        let keys: Vec<_> =
            rows.iter().map(|row| format!("{} {} {}", row["day"], row["trans_id"], row["status"])).collect();
        assert_eq!(
            keys,
            [
                "2026-11-01 adgem/1 credit",
                "2026-11-03 adgem/1 reversal",
                "2026-11-03 adgem/2 credit",
                "2026-11-20 adgem/1 adjust_overdrawn",
                "2026-11-10 standard/4 credit",
                "2026-11-12 standard/4 release",
                "2026-11-30 standard/3 credit",
            ]
        );
        assert_eq!(rows[0]["offer_name"], "'=cmd|'/c calc'!A1");
        assert_eq!(rows[1]["amount"], "-100.5");
        assert_eq!((rows[3]["by"].as_str(), rows[3]["reason"].as_str()), ("eve", "'-they agreed"));

        let again = Export { out: folder.path().join("again.csv"), ..csv };
        export(&ledger, &again).await.unwrap();
        assert_eq!(std::fs::read_to_string(&again.out).unwrap(), text);

        let jsonl = export_to(folder.path(), "month.jsonl", Format::JsonLines);
        export(&ledger, &jsonl).await.unwrap();
        let text = std::fs::read_to_string(&jsonl.out).unwrap();
        let first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        assert_eq!(first["offer_name"], "=cmd|'/c calc'!A1");
        assert_eq!(first["void"], false);
        let names: Vec<_> = first.as_object().unwrap().keys().cloned().collect();
        let mut heads = heads;
        heads.sort();
        assert_eq!(names, heads);
        let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
        assert_eq!(left.len(), 3, "no folder of parts is left: {left:?}");
    })
    .await;
}

#[tokio::test]
async fn the_parts_of_one_day_do_not_get_into_each_others_way() {
    check(async |world| {
        let ledger = ledger(world);
        for number in 0..120 {
            post(&ledger, entry(&format!("adgem/{number}"), Status::Credit, "ana", "1", "2026-11-30T13:00:00Z")).await;
        }
        let folder = tempfile::tempdir().unwrap();
        let day = Period::day("2026-11-30").unwrap();
        for round in 0..5 {
            let name = format!("{round}.csv");
            let file = Export { period: day, ..export_to(folder.path(), &name, Format::Csv) };
            assert_eq!(export(&ledger, &file).await.unwrap().json["entries"], 120);
            let mut reader = csv::Reader::from_path(&file.out).unwrap();
            let ids: std::collections::BTreeSet<_> =
                reader.records().map(|row| row.unwrap().get(3).unwrap().to_owned()).collect();
            assert_eq!(ids.len(), 120);
        }
    })
    .await;
}

/// DynamoDB refuses everything after so many requests.
fn refuse_after(world: &World, requests: u32) {
    let mut seen = 0;
    world.proxy.plan(move |_| {
        seen += 1;
        if seen > requests { Fault::Error("AccessDeniedException") } else { Fault::None }
    });
}

#[tokio::test]
async fn an_export_that_was_interrupted_goes_on_and_ends_as_if_it_had_not_been() {
    check(async |world| {
        let ledger = ledger(world);
        november(&ledger).await;
        let folder = tempfile::tempdir().unwrap();
        let whole = export_to(folder.path(), "whole.csv", Format::Csv);
        export(&ledger, &whole).await.unwrap();

        let file = export_to(folder.path(), "month.csv", Format::Csv);
        refuse_after(world, 200);
        let problem = export(&ledger, &file).await.unwrap_err().to_string();
        assert!(problem.starts_with("reading the day of "), "{problem}");
        assert!(!file.out.exists());
        world.proxy.plan(|_| Fault::None);

        let other = Export { format: Format::JsonLines, ..file.clone() };
        let problem = export(&ledger, &other).await.unwrap_err().to_string();
        assert!(problem.contains("is the beginning of another export"), "{problem}");

        let reply = export(&ledger, &file).await.unwrap();
        let (resumed, parts) = (reply.json["resumed_parts"].as_u64().unwrap(), reply.json["parts"].as_u64().unwrap());
        assert!(resumed > 0 && resumed < parts, "{resumed} of {parts}");
        let read = |export: &Export| std::fs::read_to_string(&export.out).unwrap();
        assert_eq!(read(&file), read(&whole));
        let problem = export(&ledger, &file).await.unwrap_err().to_string();
        assert!(problem.contains("is there already"), "{problem}");
    })
    .await;
}

#[tokio::test]
async fn what_a_day_had_before_it_was_over_is_read_again() {
    check(async |world| {
        let ledger = ledger(world);
        let folder = tempfile::tempdir().unwrap();
        let last_days = Period::between("2026-11-29", "2026-11-30").unwrap();
        let file = Export { period: last_days, ..export_to(folder.path(), "days.csv", Format::Csv) };
        post(&ledger, entry("adgem/1", Status::Credit, "ana", "1", "2026-11-30T10:00:00Z")).await;
        refuse_after(world, 26);
        let noon = "2026-11-30T12:00:00Z".parse().unwrap();
        finance::export(&ledger, &file, noon).await.unwrap_err();
        world.proxy.plan(|_| Fault::None);
        for number in 2..20 {
            post(&ledger, entry(&format!("adgem/{number}"), Status::Credit, "ana", "1", "2026-11-30T13:00:00Z")).await;
        }
        let reply = finance::export(&ledger, &file, now()).await.unwrap();
        assert_eq!(reply.json["entries"], 19);
        let resumed = reply.json["resumed_parts"].as_u64().unwrap();
        assert!((1..=16).contains(&resumed), "{resumed}");
    })
    .await;
}

/// `severity subject: detail` of each difference.
fn differences(reply: &Reply) -> Vec<String> {
    let text = |difference: &Value| {
        let text = |name: &str| difference[name].as_str().unwrap().to_owned();
        format!("{} {}: {}", text("severity"), text("subject"), text("detail"))
    };
    reply.json["differences"].as_array().unwrap().iter().map(text).collect()
}

#[tokio::test]
async fn books_that_are_right_verify_also_with_what_the_app_spent_without_a_time() {
    check(async |world| {
        let ledger = ledger(world);
        november(&ledger).await;
        world.spend("bob", "5").await;
        let reply = finance::verify(&ledger, None).await.unwrap();
        assert!(!reply.differs, "{}", reply.text);
        assert_eq!(
            (&reply.json["entries"], &reply.json["accounts"], &reply.json["holds"]),
            (&json!(9), &json!(2), &json!(1))
        );
        assert_eq!(reply.json["entries_without_received_at"], 1);
        for user in ["ana", "bob", "nobody"] {
            let reply = finance::verify(&ledger, Some(user)).await.unwrap();
            assert!(!reply.differs, "{user}: {}", reply.text);
        }
    })
    .await;
}

#[tokio::test]
async fn an_account_that_was_changed_past_the_entries_is_found() {
    check(async |world| {
        let ledger = ledger(world);
        november(&ledger).await;
        world.change_account("bob", "available", "3").await;
        world.change_account("ana", "held", "-1").await;
        world.change_account("stray", "available", "7").await;
        world.change_account("empty", "available", "0").await;
        let expected = [
            "error account ana coins: stored: available 0.5, held 39; summed entries: available 0.5, held 40",
            "error account bob coins: stored: available 32, held 0; summed entries: available 29, held 0",
            "error account stray coins: stored: available 7, held 0; no entries",
            "warning account empty coins: an account with nothing in it, and no entry",
        ];
        let reply = finance::verify(&ledger, None).await.unwrap();
        assert!(reply.differs);
        assert_eq!(differences(&reply), expected);
        for (user, expected) in ["ana", "bob", "stray", "empty"].iter().zip(expected) {
            let reply = finance::verify(&ledger, Some(user)).await.unwrap();
            assert_eq!(differences(&reply), [expected]);
        }
        world.change_account("bob", "available", "-3").await;
        world.change_account("ana", "held", "1").await;
        world.forget_account("stray").await;
        world.forget_account("empty").await;
        world.forget_account("bob").await;
        let reply = finance::verify(&ledger, None).await.unwrap();
        let missing = "error account bob coins: no account; summed entries: available 29, held 0";
        assert_eq!(differences(&reply), [missing]);
        world.change_account("bob", "available", "29").await;
    })
    .await;
}

#[tokio::test]
async fn a_hold_without_its_credit_and_a_credit_without_its_hold_are_found() {
    check(async |world| {
        let ledger = ledger(world);
        november(&ledger).await;
        let holds = world.delete_holds().await;
        world.put_hold("standard/77", "bob", "12").await;
        let reply = finance::verify(&ledger, None).await.unwrap();
        assert_eq!(
            differences(&reply),
            [
                "error hold standard/3: entries hold 40 coins of user ana; no row of the queue, so that they are never released",
                "error hold standard/77: the queue holds 12 coins of user bob; no entry holds them",
            ]
        );
        let ana = finance::verify(&ledger, Some("ana")).await.unwrap();
        assert_eq!(differences(&ana).len(), 1, "{}", ana.text);
        world.restore_holds(holds).await;
    })
    .await;
}

#[tokio::test]
async fn traffic_meanwhile_is_no_difference() {
    check(async |world| {
        let ledger = ledger(world);
        november(&ledger).await;
        let traffic = async {
            for number in 0..60 {
                world.tell(&format!("t-{number}"), "1", "ana", "1").await;
            }
        };
        let verifying = async {
            for _ in 0..6 {
                let reply = finance::verify(&ledger, None).await.unwrap();
                assert!(!reply.text.contains("error"), "{}", reply.text);
            }
        };
        tokio::join!(traffic, verifying);
    })
    .await;
}

#[tokio::test]
async fn a_report_is_one_page_that_says_what_the_month_says() {
    check(async |world| {
        let ledger = ledger(world);
        november(&ledger).await;
        world.tell("c-1", "1", "ana", "10").await;
        world.tell("c-1", "1", "ana", "11").await;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("report.html");
        let month = Period::month("2026-11").unwrap();
        let networks = ["adgem".to_owned(), "standard".to_owned()];
        let reply = finance::report(&ledger, &month, &networks, &file, now()).await.unwrap();
        assert_eq!(reply.json["open_cases"], 1);
        let page = std::fs::read_to_string(&file).unwrap();
        for text in
            ["November 2026", "120.5", "\u{2212}100.5", "=cmd|&#39;/c calc&#39;!A1", "conflict", "40 coins", "50.0%"]
        {
            assert!(page.contains(text), "{text}");
        }
        for word in ["<script", "http://", "https://", "src=", "url(", "@import"] {
            assert!(!page.contains(word), "{word}");
        }
        let problem = finance::report(&ledger, &month, &networks, &file, now()).await.unwrap_err().to_string();
        assert!(problem.contains("is there already"), "{problem}");
    })
    .await;
}

#[tokio::test]
async fn without_dynamodb_a_command_says_so_and_writes_nothing() {
    check(async |world| {
        let folder = tempfile::tempdir().unwrap();
        let unreachable = |name: &str| match name {
            "AWS_ENDPOINT_URL_DYNAMODB" => Some("http://127.0.0.1:1".to_owned()),
            name => world.variables.get(name).cloned(),
        };
        let ledger = Ledger::connect(unreachable, false).unwrap();
        let month = Period::month("2026-11").unwrap();
        let file = export_to(folder.path(), "month.csv", Format::Csv);
        let page = folder.path().join("report.html");
        let problems = [
            finance::export(&ledger, &file, now()).await.unwrap_err(),
            finance::report(&ledger, &month, &["standard".to_owned()], &page, now()).await.unwrap_err(),
            finance::verify(&ledger, None).await.unwrap_err(),
            finance::user(&ledger, "ana", 5).await.unwrap_err(),
            finance::show(&ledger, "standard", "1").await.unwrap_err(),
        ];
        for problem in problems {
            let line = problem.to_string();
            assert!(line.starts_with("reading ") && line.lines().count() == 1, "{line}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    })
    .await;
}

/// Replays a session of `tests/transcripts/books` against the ledger of a world.
async fn replay(world: &World, session: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts/books").join(session);
    crate::transcripts::assert_replays(&path, world.variables.clone()).await;
}

#[tokio::test]
async fn a_month_is_closed_at_the_command_line_and_what_does_not_agree_is_found_there() {
    check(async |world| {
        // In the past for every clock.
        november_of(&ledger(world), 2025).await;
        replay(world, "month.txt").await;
        replay(world, "statement.txt").await;
        world.change_account("bob", "available", "3").await;
        let holds = world.delete_holds().await;
        world.put_hold("standard/77", "bob", "12").await;
        replay(world, "differences.txt").await;
        world.change_account("bob", "available", "-3").await;
        world.restore_holds(holds).await;
    })
    .await;
}
