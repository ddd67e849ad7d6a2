//! What people see and do of a wallet, on what the real handler posted: keys, rounds, players, the cashier, the books, cases.

use std::path::Path;

use jiff::Timestamp;
use postback::cases;
use postback::cashier::Action;
use postback::id::Network;
use postback::ledger::Decision;
use postback::money::Amount;
use postback::operator::cashier::{self, Whose};
use postback::operator::finance::{self, Export, Format, Period};
use postback::operator::{CannotRun, Ledger, cases as work, wallet};
use postback::terminal::Reply;
use serde_json::{Value, json};

use crate::world::{WALLET, World, check_wallet};

fn ledger(world: &World) -> Ledger {
    Ledger::connect(|name| world.variables.get(name).cloned(), false).unwrap()
}

fn amount(text: &str) -> Amount {
    Amount::stored(text).unwrap()
}

fn decision() -> Decision {
    Decision { by: "ana".into(), reason: "as agreed".into() }
}

async fn act(ledger: &Ledger, action: Action, player: &str, reference: &str) -> Result<Reply, CannotRun> {
    let whose = Whose { player, currency: None };
    cashier::act(ledger, action, whose, reference, decision(), Timestamp::now()).await
}

fn refusal(result: Result<Reply, CannotRun>) -> String {
    result.unwrap_err().to_string()
}

fn bet(key: &str, player: &str, amount: &str, round: &str) -> Value {
    json!({"idempotency_key": key, "player_id": player, "amount": amount, "round_id": round, "game_id": "jet"})
}

fn rollback(key: &str, player: &str, original: &str) -> Value {
    json!({"idempotency_key": key, "player_id": player, "original_transaction_id": original})
}

/// Two players in round 1: bets, a win, a rollback that came twice, a bet that was declined, the end.
async fn evening(world: &World) {
    world.fund("7", "100").await;
    world.fund("8", "20").await;
    world.call("/bet/debit", &bet("b-1", "7", "10.5", "1")).await;
    world.call("/bet/debit", &bet("b-2", "8", "5", "1")).await;
    world.call("/bet/debit", &bet("b-3", "8", "500", "1")).await;
    world.call("/win/credit", &bet("w-1", "7", "21", "1")).await;
    world.call("/bet/rollback", &rollback("r-1", "8", "b-2")).await;
    world.call("/bet/rollback", &rollback("manual-rb-2", "8", "19flip/b-2")).await;
    world.call("/round/finish", &json!({"idempotency_key": "f-1", "round_id": 1})).await;
}

/// The texts under these names.
fn texts<const N: usize>(json: &Value, names: [&str; N]) -> [String; N] {
    names.map(|name| json[name].as_str().unwrap_or("none").to_owned())
}

fn ids(entries: &Value) -> Vec<String> {
    entries.as_array().unwrap().iter().map(|entry| entry["trans_id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn everything_about_a_key_is_found_by_it_or_by_our_id_and_its_answer_is_the_one_that_was_given() {
    check_wallet("", async |world| {
        let ledger = ledger(world);
        evening(world).await;
        let heard = world.call("/bet/debit", &bet("b-2", "8", "5", "1")).await;
        let found = wallet::key(&ledger, "b-2", None).await.unwrap();
        assert!(!found.differs, "{}", found.text);
        let operation = &found.json["operation"];
        let answer = &operation["answer"];
        assert_eq!(format!("{} {} (replayed)", answer["status"], answer["body"].as_str().unwrap()), heard);
        assert_eq!(
            texts(operation, ["kind", "user_id", "requested", "amount", "round_id", "game_id", "source_ip"]),
            ["bet", "8", "5", "-5", "19flip/1", "jet", "192.0.2.7"]
        );
        assert_eq!(found.json["rolled_back_by"], "19flip/r-1");
        assert_eq!(ids(&found.json["rollbacks"]), ["19flip/manual-rb-2", "19flip/r-1"], "newest first");
        assert_eq!(found.json["round"]["part"], json!({"bets": 0, "rolled_back": 1, "finished": true}));
        let mut in_round = ids(&found.json["round"]["entries"]);
        in_round.sort();
        let of_all = ["19flip/b-2", "19flip/b-2", "19flip/b-3", "19flip/f-1", "19flip/manual-rb-2", "19flip/r-1"];
        assert_eq!(in_round, of_all, "the player's, with the mark and both rollbacks, and what is of all");
        assert_eq!(wallet::key(&ledger, "19flip/b-2", None).await.unwrap().json, found.json);
        assert_eq!(wallet::key(&ledger, "b-2", Some(WALLET)).await.unwrap().json, found.json);

        let second = wallet::key(&ledger, "manual-rb-2", None).await.unwrap().json;
        assert_eq!(second["original"]["trans_id"], "19flip/b-2");
        assert_eq!((&second["operation"]["amount"], &second["rolled_back_by"]), (&json!("0"), &Value::Null));
        let declined = wallet::key(&ledger, "b-3", None).await.unwrap().json;
        assert_eq!(declined["operation"]["answer"]["status"], 402);

        let unknown = wallet::key(&ledger, "b-9", None).await.unwrap();
        assert_eq!((unknown.differs, unknown.text.as_str()), (true, "no operation under the key b-9 of 19flip"));
        assert!(refusal(wallet::key(&ledger, "", None).await).starts_with("the key: ``: empty"));
    })
    .await;
}

#[tokio::test]
async fn a_bet_that_never_came_is_found_as_its_tombstone() {
    check_wallet("", async |world| {
        let ledger = ledger(world);
        world.fund("7", "100").await;
        world.call("/bet/rollback", &rollback("r-1", "7", "b-1")).await;
        let late = world.call("/bet/debit", &bet("b-1", "7", "5", "1")).await;
        let found = wallet::key(&ledger, "b-1", None).await.unwrap();
        let answer = &found.json["operation"]["answer"];
        assert_eq!(format!("{} {} (replayed)", answer["status"], answer["body"].as_str().unwrap()), late);
        assert!(found.text.contains("It never came"), "{}", found.text);
        assert_eq!(ids(&found.json["rollbacks"]), ["19flip/r-1"]);
        let rollback = wallet::key(&ledger, "r-1", None).await.unwrap();
        assert!(rollback.text.contains("takes back  19flip/b-1, which never came"), "{}", rollback.text);
    })
    .await;
}

#[tokio::test]
async fn a_round_has_every_players_part_and_its_entries_add_up() {
    check_wallet("", async |world| {
        let ledger = ledger(world);
        evening(world).await;
        let found = wallet::round(&ledger, "1", None).await.unwrap();
        let player = |user: &str| {
            let players = found.json["players"].as_array().unwrap();
            players.iter().find(|player| player["user_id"] == user).unwrap().clone()
        };
        assert_eq!(player("7")["part"], json!({"bets": 1, "rolled_back": 0, "finished": true}));
        let sums = |staked, given_back, won, net| {
            json!({"staked": staked, "given_back": given_back, "won": won, "taken_back": "0", "net": net})
        };
        assert_eq!(player("7")["sums"], sums("-10.5", "0", "21", "10.5"));
        assert_eq!(player("8")["part"], json!({"bets": 0, "rolled_back": 1, "finished": true}));
        assert_eq!(player("8")["sums"], sums("-5", "5", "0", "0"), "a rollback is of its original's round");
        assert_eq!(found.json["entries"].as_array().unwrap().len(), 8, "{}", found.text);
        let times: Vec<_> =
            found.json["entries"].as_array().unwrap().iter().map(|entry| entry["received_at"].clone()).collect();
        assert!(times.is_sorted_by_key(|time| time.as_str().unwrap().to_owned()), "{times:?}");
        assert_eq!(wallet::round(&ledger, "19flip/1", None).await.unwrap().json, found.json);
        let unknown = wallet::round(&ledger, "2", None).await.unwrap();
        assert_eq!((unknown.differs, unknown.text.as_str()), (true, "no round 2 of 19flip"));
    })
    .await;
}

#[tokio::test]
async fn a_player_is_opened_funded_and_closed_and_every_refusal_says_how_the_account_stands() {
    check_wallet("", async |world| {
        let ledger = ledger(world);
        let deposit = |text| Action::Deposit(amount(text));
        let withdraw = |text| Action::Withdraw(amount(text));
        let said = refusal(act(&ledger, deposit("50"), "7", "p-1").await);
        assert_eq!(said, "the player: `7`: there is no account in coins; `operator player open` makes it");
        assert_eq!(world.call("/bet/debit", &bet("b-0", "7", "1", "1")).await, r#"404 {"error":"player not found"}"#);
        act(&ledger, Action::Open, "7", "o-1").await.unwrap();
        assert!(refusal(act(&ledger, Action::Open, "7", "o-2").await).contains("is open already, with 0 available"));
        assert!(!act(&ledger, deposit("50"), "7", "p-1").await.unwrap().differs);
        let again = act(&ledger, deposit("50"), "7", "p-1").await.unwrap();
        assert_eq!((again.differs, &again.json["known"]), (false, &json!(true)), "{}", again.text);
        assert_eq!(act(&ledger, deposit("50"), "7", "cashier/p-1").await.unwrap().json["known"], true);
        assert_eq!(world.balance("7").await, "50");
        for (action, player, field) in [(deposit("51"), "7", "amount"), (deposit("50"), "8", "user")] {
            let said = refusal(act(&ledger, action, player, "p-1").await);
            assert!(said.contains(&format!("another {field}: deposit of +50 coins for player 7")), "{said}");
        }
        let said = refusal(act(&ledger, withdraw("50.01"), "7", "p-2").await);
        assert!(said.contains("50 coins are available, and not the 50.01 that would go out"), "{said}");
        assert!(refusal(act(&ledger, Action::Close, "7", "c-1").await).contains("50 coins available are left in"));
        act(&ledger, withdraw("50"), "7", "p-2").await.unwrap();
        act(&ledger, Action::Close, "7", "c-1").await.unwrap();
        assert!(refusal(act(&ledger, Action::Close, "7", "c-2").await).contains("is closed already"));
        assert!(
            refusal(act(&ledger, deposit("1"), "7", "p-3").await).contains("`operator player open` opens it again")
        );
        assert_eq!(world.call("/bet/debit", &bet("b-1", "7", "1", "1")).await, r#"403 {"error":"account closed"}"#);
        let shown = wallet::player(&ledger, "7", 20).await.unwrap();
        assert_eq!(shown.json["accounts"][0]["closed"], true);
        assert_eq!(ids(&shown.json["cashier"]), ["cashier/c-1", "cashier/p-2", "cashier/p-1", "cashier/o-1"]);
        assert!(
            finance::user(&ledger, "7", 20).await.unwrap().text.contains("0 coins available (stored balance), closed")
        );
        act(&ledger, Action::Open, "7", "o-3").await.unwrap();
        act(&ledger, deposit("1"), "7", "p-3").await.unwrap();
        assert!(
            refusal(act(&ledger, Action::Open, "suspense/x", "o-4").await).contains("kept for money without a user")
        );
        assert!(refusal(act(&ledger, deposit("1"), "7", "").await).starts_with("--reference: ``: empty"));
        assert!(wallet::player(&ledger, "nobody", 20).await.unwrap().differs);
        assert!(!finance::verify(&ledger, None).await.unwrap().differs);
    })
    .await;
}

#[tokio::test]
async fn a_wallet_with_a_currency_of_its_own_has_its_players_funded_in_that() {
    check_wallet("currency = \"EUR\"", async |world| {
        let ledger = ledger(world);
        act(&ledger, Action::Open, "7", "o-1").await.unwrap();
        let reply = act(&ledger, Action::Deposit(amount("5")), "7", "p-1").await.unwrap();
        assert_eq!(reply.json["entry"]["currency"], "EUR");
        let other = Whose { player: "7", currency: Some("coins") };
        let opened = cashier::act(&ledger, Action::Open, other, "o-2", decision(), Timestamp::now()).await.unwrap();
        assert_eq!(opened.json["entry"]["currency"], "coins");
    })
    .await;
}

/// Today, as every clock of the test sees it; a test over midnight in UTC has two days.
fn today() -> Period {
    let now = Timestamp::now();
    let day = |at: Timestamp| at.strftime("%Y-%m-%d").to_string();
    Period::between(&day(now - jiff::SignedDuration::from_hours(1)), &day(now)).unwrap()
}

#[tokio::test]
async fn the_books_have_a_wallets_money_and_the_cashiers_by_what_they_are() {
    check_wallet("", async |world| {
        let ledger = ledger(world);
        evening(world).await;
        act(&ledger, Action::Withdraw(amount("30")), "7", "p-9").await.unwrap();
        let sums = finance::sums(&ledger, &today(), &[], Timestamp::now()).await.unwrap();
        let of = |network: &str, name: &str| {
            let lines = sums.json["networks"].as_array().unwrap();
            let line = lines.iter().find(|line| line["network"] == network).unwrap();
            format!("{} {}", line[name]["count"], line[name]["amount"].as_str().unwrap())
        };
        assert_eq!([of(WALLET, "bets"), of(WALLET, "wins")], ["2 -15.5", "1 21"]);
        assert_eq!([of(WALLET, "bet_rollbacks"), of(WALLET, "win_rollbacks")], ["1 5", "0 0"]);
        assert_eq!([of("cashier", "deposits"), of("cashier", "withdrawals")], ["2 120", "1 -30"]);
        assert_eq!([of(WALLET, "other"), of("cashier", "other")], ["0 0", "0 0"]);
        let heads = sums.text.lines().find(|line| line.starts_with("network")).unwrap();
        assert!(heads.contains("staked") && heads.contains("withdrawn") && !heads.contains("credits"), "{heads}");

        let folder = tempfile::tempdir().unwrap();
        let (period, out) = (today(), folder.path().join("days.jsonl"));
        let export = Export { period, networks: vec![], format: Format::JsonLines, out };
        finance::export(&ledger, &export, Timestamp::now()).await.unwrap();
        let text = std::fs::read_to_string(&export.out).unwrap();
        let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(rows.len(), 13, "seven operations, a mark, and five of the cashier");
        let row = |id: &str, status: &str| {
            rows.iter().find(|row| row["trans_id"] == id && row["status"] == status).unwrap().clone()
        };
        let names = ["kind", "requested", "round_id", "game_id", "counterpart", "answer_status"];
        assert_eq!(texts(&row("19flip/b-3", "operation"), names), ["bet", "500", "19flip/1", "jet", "none", "402"]);
        assert_eq!(
            texts(&row("19flip/r-1", "operation"), names),
            ["bet_rollback", "none", "19flip/1", "none", "19flip/b-2", "200"]
        );
        assert_eq!(row("19flip/b-2", "rollback")["counterpart"], "19flip/r-1");
        assert!(!text.contains("balance_before"), "an answer is no matter of finance");

        let page = folder.path().join("page.html");
        finance::report(&ledger, &today(), &[], &page, Timestamp::now()).await.unwrap();
        let page = std::fs::read_to_string(page).unwrap();
        for text in ["Staked", "Withdrawn", "\u{2212}15.5", "cashier"] {
            assert!(page.contains(text), "{text}");
        }
        let shown = finance::show(&ledger, WALLET, "b-2").await.unwrap();
        assert!(shown.text.contains("rolled back by 19flip/r-1"), "{}", shown.text);
    })
    .await;
}

#[tokio::test]
async fn the_books_of_a_wallet_verify_and_a_rollback_without_its_mark_is_found() {
    check_wallet("", async |world| {
        let ledger = ledger(world);
        evening(world).await;
        world.call("/bet/rollback", &rollback("r-9", "7", "never-came")).await;
        world.call("/bet/rollback", &rollback("r-8", "8", "b-3")).await;
        act(&ledger, Action::Withdraw(amount("20")), "8", "p-8").await.unwrap();
        act(&ledger, Action::Close, "8", "c-8").await.unwrap();
        let verified = finance::verify(&ledger, None).await.unwrap();
        assert!(!verified.differs && verified.json["looked_at_again"] == 0, "{}", verified.text);
        for player in ["7", "8", "suspense/19flip"] {
            let verified = finance::verify(&ledger, Some(player)).await.unwrap();
            assert!(!verified.differs, "{}", verified.text);
        }
        let mark = world.delete_row("19flip/b-2", "rollback").await;
        let found = finance::verify(&ledger, None).await.unwrap();
        let [difference] = &found.json["differences"].as_array().unwrap()[..] else { panic!("{}", found.text) };
        assert_eq!(
            texts(difference, ["severity", "subject", "original"]),
            ["error", "rollback 19flip/r-1", "19flip/b-2"]
        );
        assert!(finance::verify(&ledger, Some("8")).await.unwrap().differs);
        world.put_back(mark).await;
    })
    .await;
}

#[tokio::test]
async fn rollbacks_meanwhile_are_no_difference() {
    check_wallet("", async |world| {
        let ledger = ledger(world);
        world.fund("7", "100").await;
        let traffic = async {
            for number in 0..40 {
                let (key, back) = (format!("b-{number}"), format!("r-{number}"));
                world.call("/bet/debit", &bet(&key, "7", "1", "1")).await;
                world.call("/bet/rollback", &rollback(&back, "7", &key)).await;
            }
        };
        let verifying = async {
            for _ in 0..4 {
                let reply = finance::verify(&ledger, None).await.unwrap();
                assert!(!reply.text.contains("error"), "{}", reply.text);
            }
        };
        tokio::join!(traffic, verifying);
    })
    .await;
}

#[tokio::test]
async fn every_kind_of_case_about_an_operation_is_shown_and_worked() {
    check_wallet("", async |world| {
        let ledger = ledger(world);
        world.fund("7", "100").await;
        world.call("/bet/debit", &bet("b-1", "7", "10", "1")).await;
        world.call("/bet/debit", &bet("b-1", "7", "11", "1")).await;
        world.call("/bet/debit", &bet("b-1", "7", "10", "2")).await;
        world.call("/win/credit", &bet("b-1", "7", "10", "1")).await;
        world.call("/win/credit", &bet("w-1", "7", "5", "99")).await;
        world.call("/round/finish", &json!({"idempotency_key": "f-1", "round_id": "1", "player_id": "7"})).await;
        world.call("/win/credit", &bet("w-2", "7", "5", "1")).await;
        world.call("/bet/debit", &bet("b-2", "7", "100", "3")).await;
        world.call("/win/rollback", &rollback("r-1", "7", "w-2")).await;
        world.call("/bet/rollback", &rollback("r-2", "7", "b-1")).await;
        world.call("/bet/rollback", &rollback("r-2", "7", "b-2")).await;
        world.fund("8", "10").await;
        world.call("/bet/debit", &bet("b-8", "8", "10", "4")).await;
        act(&ledger, Action::Close, "8", "c-8").await.unwrap();
        world.call("/bet/rollback", &rollback("r-8", "8", "b-8")).await;
        let expected = [
            "closed_account/19flip/r-8/operation",
            "conflict/19flip/b-1/operation/amount",
            "conflict/19flip/b-1/operation/kind",
            "conflict/19flip/b-1/operation/round",
            "conflict/19flip/r-2/operation/original",
            "overdrawn/19flip/r-1/operation",
            "win_after_end/19flip/w-2/operation",
            "win_without_bet/19flip/w-1/operation",
        ];
        assert_eq!(world.case_ids().await, expected);
        let shown = wallet::key(&ledger, "b-1", None).await.unwrap();
        assert_eq!(shown.json["cases"].as_array().unwrap().len(), 3, "{}", shown.text);
        let shown = work::show(&ledger, expected[4]).await.unwrap();
        assert!(shown.text.contains("operation: bet rollback 19flip/b-1"), "{}", shown.text);

        let listed = work::open(&ledger, None, Some(&Network::new(WALLET).unwrap())).await.unwrap();
        assert_eq!(listed.json["cases"].as_array().unwrap().len(), expected.len());
        let before = amount(&world.balance("7").await);
        for case in &expected[1..] {
            let adjust = cases::Action::Adjust(amount("1"));
            let resolved = work::resolve(&ledger, case, &adjust, &decision()).await.unwrap();
            assert_eq!(resolved.json["moved"], true, "{case}");
        }
        assert_eq!(amount(&world.balance("7").await), before.checked_add(amount("7")).unwrap());
        let noted = work::resolve(&ledger, expected[0], &cases::Action::Note, &decision()).await.unwrap();
        assert_eq!(noted.json["moved"], false);
        let key = wallet::key(&ledger, "w-1", None).await.unwrap();
        assert!(key.text.contains("corrected   adjust_win_without_bet +1 coins"), "{}", key.text);
        assert!(!finance::verify(&ledger, None).await.unwrap().differs);
    })
    .await;
}

#[tokio::test]
async fn no_correction_makes_a_player_and_no_operation_is_reversed_by_hand() {
    check_wallet("", async |world| {
        let ledger = ledger(world);
        world.fund("7", "10").await;
        world.call("/win/credit", &bet("w-1", "7", "5", "99")).await;
        world.call("/bet/debit", &bet("b-1", "7", "15", "1")).await;
        world.forget_account("7").await;
        let adjust = cases::Action::Adjust(amount("1"));
        let case = "win_without_bet/19flip/w-1/operation";
        let said = refusal(work::resolve(&ledger, case, &adjust, &decision()).await);
        assert!(said.contains("user 7 has no account"), "{said}");
        assert!(!world.accounts().await.contains_key("7"));
        let said = refusal(work::reverse(&ledger, &Network::new(WALLET).unwrap(), "b-1", &decision()).await);
        assert!(said.contains("taken back by its caller alone, with a rollback"), "{said}");
    })
    .await;
}

/// Replays a session of `tests/transcripts/wallet` against the ledger of a world.
async fn replay(world: &World, session: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts/wallet").join(session);
    crate::transcripts::assert_replays_without_times(&path, world.variables.clone()).await;
}

#[tokio::test]
async fn an_evening_is_looked_into_at_the_command_line() {
    check_wallet("", async |world| {
        evening(world).await;
        world.call("/bet/debit", &bet("b-1", "7", "11", "1")).await;
        replay(world, "evening.txt").await;
    })
    .await;
}

#[tokio::test]
async fn a_player_is_served_at_the_command_line() {
    check_wallet("", async |world| replay(world, "cashier.txt").await).await;
}
