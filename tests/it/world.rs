//! A deployment in a test: tables of its own behind a proxy, the real handler, a network that signs, and the books.
//!
//! [`check`] runs a story in a world and then checks the books, so that no test can forget to. Knows nothing of how the
//! store lays out its requests; it reads tables as finance would.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{AttributeValue, Put, PutRequest, ReturnValue, TransactWriteItem, Update, WriteRequest};
use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use postback::cashier::{self, Action};
use postback::config::{Config, environment};
use postback::handler::{App, Handled};
use postback::id::{Currency, TransId, UserId};
use postback::ledger::{Decision, Outcome};
use postback::local::{self, Embedded};
use postback::money::Amount;
use postback::store::{Store, Tables, shard};
use postback::workers::{self, Released};
use serde_json::{Value, json};

use crate::faults::Proxy;

/// The secret that the tests' network signs with.
pub const SECRET: &str = "world-secret";

/// The network whose calls of a wallet the tests send.
pub const WALLET: &str = "19flip";

/// Longer than any time budget, as a Lambda deadline usually is.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// One deployment of one test.
pub struct World {
    pub app: App,
    /// Between the app and DynamoDB.
    pub proxy: Proxy,
    pub tables: Tables,
    /// What the app was configured with, for a second process of the same deployment.
    pub variables: BTreeMap<String, String>,
    /// Straight to DynamoDB, past the proxy, for looking and for the books.
    client: Client,
    database: Database,
}

/// The DynamoDB of a world.
enum Database {
    /// Serves as long as this lives.
    Embedded {
        _server: Embedded,
    },
    Given,
}

/// A row as finance sees it: attribute name to text.
pub type Row = BTreeMap<String, String>;

/// Runs a story in a fresh deployment, then checks that the books balance.
pub async fn check(story: impl AsyncFnOnce(&World)) {
    check_with(&[], story).await;
}

/// The same with variables of its own.
pub async fn check_with(variables: &[(&str, &str)], story: impl AsyncFnOnce(&World)) {
    let world = World::start(variables).await;
    story(&world).await;
    world.proxy.plan(|_| crate::faults::Fault::None);
    world.proxy.settled().await;
    world.books_balance().await;
}

/// The same where the networks' settings are this document.
pub async fn check_document(document: &str, story: impl AsyncFnOnce(&World)) {
    check_document_with(document, &[], story).await;
}

/// The same with variables of its own.
pub async fn check_document_with(document: &str, variables: &[(&str, &str)], story: impl AsyncFnOnce(&World)) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("networks.toml");
    std::fs::write(&file, document).unwrap();
    check_with(&[&[("NETWORKS_FILE", file.to_str().unwrap())], variables].concat(), story).await;
}

/// The same with a wallet beside the postbacks, and these settings of it.
pub async fn check_wallet(settings: &str, story: impl AsyncFnOnce(&World)) {
    let document = format!("[networks.{WALLET}]\n{settings}");
    check_document_with(&document, &[("NETWORKS", &format!("standard,{WALLET}"))], story).await;
}

/// A name that no other world of this or another run on the same endpoint has.
fn unique() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let nanos = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
    format!("w{nanos}-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

impl World {
    async fn start(overrides: &[(&str, &str)]) -> World {
        let (database, upstream): (Database, SocketAddr) = match environment("POSTBACK_TEST_ENDPOINT") {
            Some(endpoint) => {
                let address = endpoint.trim_start_matches("http://").trim_end_matches('/');
                (Database::Given, address.parse().expect("POSTBACK_TEST_ENDPOINT is http://<ip>:<port>"))
            }
            None => {
                let embedded = Embedded::memory().await.expect("the embedded DynamoDB starts");
                let address = embedded.address();
                (Database::Embedded { _server: embedded }, address)
            }
        };
        let proxy = Proxy::start(upstream).await;
        let world = unique();
        let mut variables: BTreeMap<String, String> = [
            ("TRANSACTIONS_TABLE", format!("{world}-transactions")),
            ("ACCOUNTS_TABLE", format!("{world}-accounts")),
            ("HOLDS_TABLE", format!("{world}-holds")),
            ("ROUNDS_TABLE", format!("{world}-rounds")),
            ("CASES_TABLE", format!("{world}-cases")),
            ("SETTINGS_TABLE", format!("{world}-settings")),
            ("NETWORK_SECRETS", json!({"standard": ["retired-secret", SECRET], "19flip": SECRET}).to_string()),
            // The SDK keeps one budget of retries for each region: worlds must not spend each other's.
            ("AWS_REGION", world.clone()),
            ("AWS_ACCESS_KEY_ID", "test".into()),
            ("AWS_SECRET_ACCESS_KEY", "test".into()),
            ("AWS_ENDPOINT_URL_DYNAMODB", proxy.endpoint()),
            // A loaded machine must not fail a test that is not about time.
            ("TIME_BUDGET_MS", "20000".into()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        variables.extend(overrides.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let config = Config::read(|name| variables.get(name).cloned()).expect("the test's variables are right");
        let mut direct = config.aws.clone();
        direct.dynamodb_endpoint = Some(format!("http://{upstream}"));
        let client = direct.dynamodb(Duration::from_secs(60));
        let tables = config.tables.clone();
        local::create_tables(&client, &tables).await.expect("the tables are created");
        let app = App::start(config).await.expect("the app starts");
        // What the start asks for is no test's business but those that say so.
        proxy.take();
        World { app, proxy, tables, variables, client, database }
    }

    /// A signed postback with these parameters.
    pub async fn postback(&self, parameters: &[(&str, &str)]) -> Handled {
        self.query(&signed(&query(parameters))).await
    }

    /// A postback of the conversation `id` of `user`, with status and amount: what most tests need.
    pub async fn tell(&self, id: &str, status: &str, user: &str, amount: &str) -> Handled {
        self.postback(&conversion(id, status, user, amount)).await
    }

    /// The postback with exactly this query.
    pub async fn query(&self, query: &str) -> Handled {
        self.app.offerwall(&event("GET", "/standard", query), PATIENCE).await
    }

    /// A signed call of the wallet, answered: status, body, and whether it says that it is a repeated answer.
    pub async fn call(&self, path: &str, body: &Value) -> String {
        call_on(&self.app, path, body).await
    }

    /// Opens a player's account and pays money in, as an operator does.
    pub async fn fund(&self, player: &str, amount: &str) {
        self.cash(player, "fund", Action::Open).await;
        self.cash(player, "fund", Action::Deposit(Amount::stored(amount).unwrap())).await;
    }

    /// Does this to a player's account, under a reference that is new among those of the player.
    pub async fn cash(&self, player: &str, reference: &str, action: Action) {
        let account = (UserId::new(player).unwrap(), Currency::new("coins").unwrap());
        let decision = Decision { by: "test".into(), reason: "a player".into() };
        let trans_id = cashier::trans_id(&format!("{reference}-{player}")).unwrap();
        let posting = cashier::posting(action, trans_id, account, decision, Timestamp::now());
        let deadline = tokio::time::Instant::now() + PATIENCE;
        assert_eq!(self.direct().post(&posting, deadline).await.unwrap(), Outcome::Posted);
    }

    /// The same deployment after a change of its variables.
    pub async fn redeployed(&self, changes: &[(&str, &str)]) -> App {
        let mut variables = self.variables.clone();
        variables.extend(changes.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        App::start(Config::read(|name| variables.get(name).cloned()).unwrap()).await.unwrap()
    }

    /// Whether this is the embedded DynamoDB, which counts capacity as AWS does.
    pub fn is_embedded(&self) -> bool {
        matches!(self.database, Database::Embedded { .. })
    }

    /// Puts an entry that moves nothing as a person would, by hand.
    pub async fn put_by_hand(&self, trans_id: &str, status: &str, user: &str) {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let put = self.client.put_item().table_name(&self.tables.transactions).item("trans_id", text(trans_id));
        let put = put.item("status", text(status)).item("user_id", text(user)).item("currency", text("coins"));
        put.item("amount", AttributeValue::N("0".into())).send().await.expect("the entry is put");
    }

    /// Puts a row as somebody who is not us would, with these texts beside what every entry has.
    pub async fn put_row(&self, trans_id: &str, status: &str, user: &str, amount: &str, texts: &[(&str, &str)]) {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let put = self.client.put_item().table_name(&self.tables.transactions).item("trans_id", text(trans_id));
        let put = put.item("status", text(status)).item("user_id", text(user)).item("currency", text("coins"));
        let put = put.item("amount", AttributeValue::N(amount.to_owned()));
        let put = texts.iter().fold(put, |put, (name, value)| put.item(*name, text(value)));
        put.send().await.expect("the row is put");
    }

    /// Deletes an entry, which nothing of ours ever does.
    pub async fn delete_row(&self, trans_id: &str, status: &str) -> HashMap<String, AttributeValue> {
        let delete = self.client.delete_item().table_name(&self.tables.transactions).return_values(ReturnValue::AllOld);
        let delete = delete.key("trans_id", AttributeValue::S(trans_id.into()));
        let deleted = delete.key("status", AttributeValue::S(status.into())).send().await.expect("the row is deleted");
        deleted.attributes.expect("the row was there")
    }

    /// Puts a row back that was deleted.
    pub async fn put_back(&self, row: HashMap<String, AttributeValue>) {
        let put = self.client.put_item().table_name(&self.tables.transactions).set_item(Some(row));
        put.send().await.expect("the row is put back");
    }

    /// Changes a part of an account past its entries, which nothing of ours ever does.
    pub async fn change_account(&self, user: &str, part: &str, change: &str) {
        let update = self.client.update_item().table_name(&self.tables.accounts);
        let update = update.key("user_id", AttributeValue::S(user.into()));
        let update = update.key("currency", AttributeValue::S("coins".into())).update_expression("ADD #part :change");
        let update = update.expression_attribute_names("#part", part);
        let update = update.expression_attribute_values(":change", AttributeValue::N(change.into()));
        update.send().await.expect("the account is changed");
    }

    /// Empties the queue of holds, which nothing of ours ever does, and gives what was in it.
    pub async fn delete_holds(&self) -> Vec<Row> {
        let rows = self.scan(&self.tables.holds).await;
        for row in &rows {
            let delete = self.client.delete_item().table_name(&self.tables.holds);
            let delete = delete.key("bucket", AttributeValue::S(row["bucket"].clone()));
            delete.key("due", AttributeValue::S(row["due"].clone())).send().await.expect("the row is deleted");
        }
        rows
    }

    /// Makes the queue of holds what it was.
    pub async fn restore_holds(&self, rows: Vec<Row>) {
        self.delete_holds().await;
        for row in rows {
            let value = |(name, text): (String, String)| {
                let value = if name == "amount" { AttributeValue::N(text) } else { AttributeValue::S(text) };
                (name, value)
            };
            let put = self.client.put_item().table_name(&self.tables.holds);
            put.set_item(Some(row.into_iter().map(value).collect())).send().await.expect("the row is put");
        }
    }

    /// Puts a row into the queue of holds that waits for a person, without the entry that would hold its coins.
    pub async fn put_hold(&self, trans_id: &str, user: &str, amount: &str) {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let put = self.client.put_item().table_name(&self.tables.holds).item("bucket", text("waiting"));
        let put = put.item("due", text(trans_id)).item("trans_id", text(trans_id)).item("user_id", text(user));
        let put = put.item("currency", text("coins")).item("amount", AttributeValue::N(amount.to_owned()));
        put.send().await.expect("the row is put");
    }

    /// Deletes the row of an account, which nothing of ours ever does.
    pub async fn forget_account(&self, user: &str) {
        let delete = self.client.delete_item().table_name(&self.tables.accounts);
        let delete =
            delete.key("user_id", AttributeValue::S(user.into())).key("currency", AttributeValue::S("coins".into()));
        delete.send().await.expect("the row is deleted");
    }

    /// Spends coins as an app does, past the postbacks: an entry and the account in one transaction, if the coins are
    /// there. The entry has what a ledger needs and nothing for finance.
    pub async fn spend(&self, user: &str, amount: &str) {
        self.spend_with(&unique(), user, amount, HashMap::new()).await;
    }

    /// The same for an order of the app's, with what finance reads.
    pub async fn spend_on(&self, order: &str, user: &str, amount: &str) {
        let now = format!("{:.3}", Timestamp::now());
        let day = format!("app#{}#0", &now[..10]);
        let more = [("network", "app".to_owned()), ("received_at", now), ("day", day)];
        let more = more.map(|(name, value)| (name.to_owned(), AttributeValue::S(value))).into();
        self.spend_with(order, user, amount, more).await;
    }

    async fn spend_with(&self, order: &str, user: &str, amount: &str, more: HashMap<String, AttributeValue>) {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let number = |text: &str| AttributeValue::N(text.to_owned());
        let entry = Put::builder()
            .table_name(&self.tables.transactions)
            .set_item(Some(more))
            .item("trans_id", text(&format!("app/{order}")))
            .item("status", text("spend"))
            .item("user_id", text(user))
            .item("currency", text("coins"))
            .item("amount", number(&format!("-{amount}")))
            .condition_expression("attribute_not_exists(trans_id)")
            .build()
            .unwrap();
        let account = Update::builder()
            .table_name(&self.tables.accounts)
            .key("user_id", text(user))
            .key("currency", text("coins"))
            .update_expression("ADD available :change")
            .condition_expression("available >= :amount")
            .expression_attribute_values(":change", number(&format!("-{amount}")))
            .expression_attribute_values(":amount", number(amount))
            .build()
            .unwrap();
        let request = self.client.transact_write_items();
        let request = request.transact_items(TransactWriteItem::builder().put(entry).build());
        request
            .transact_items(TransactWriteItem::builder().update(account).build())
            .send()
            .await
            .expect("the coins are there");
    }

    /// The rows of the transactions table, by key.
    pub async fn entries(&self) -> Vec<Row> {
        let mut rows = self.scan(&self.tables.transactions).await;
        rows.sort_by_key(|row| (row["trans_id"].clone(), row["status"].clone()));
        rows
    }

    /// The rows of the cases table, by id.
    pub async fn cases(&self) -> Vec<Row> {
        let mut rows = self.scan(&self.tables.cases).await;
        rows.sort_by_key(|row| row["case_id"].clone());
        rows
    }

    /// The ids of all cases, in order.
    pub async fn case_ids(&self) -> Vec<String> {
        self.cases().await.into_iter().map(|row| row["case_id"].clone()).collect()
    }

    /// Every balance, by user.
    pub async fn balances(&self) -> BTreeMap<String, String> {
        let rows = self.scan(&self.tables.accounts).await;
        let available = |row: &Row| row.get("available").cloned().unwrap_or_else(|| "0".into());
        rows.into_iter().map(|row| (row["user_id"].clone(), available(&row))).collect()
    }

    /// The balance of one user; `0` without an account.
    pub async fn balance(&self, user: &str) -> String {
        self.balances().await.remove(user).unwrap_or_else(|| "0".into())
    }

    /// What each user can spend, and what is held for them.
    pub async fn accounts(&self) -> BTreeMap<String, (String, String)> {
        let part = |row: &Row, name: &str| row.get(name).cloned().unwrap_or_else(|| "0".into());
        let rows = self.scan(&self.tables.accounts).await;
        rows.iter().map(|row| (row["user_id"].clone(), (part(row, "available"), part(row, "held")))).collect()
    }

    /// The same of one user; nothing without an account.
    pub async fn account(&self, user: &str) -> (String, String) {
        self.accounts().await.remove(user).unwrap_or_else(|| ("0".into(), "0".into()))
    }

    /// The rows of the queue of holds, by conversation.
    pub async fn holds(&self) -> Vec<Row> {
        let mut rows = self.scan(&self.tables.holds).await;
        rows.sort_by_key(|row| row["trans_id"].clone());
        rows
    }

    /// Puts a row into the table of settings by hand.
    pub async fn put_settings_row(&self, version: &str) {
        let put = self.client.put_item().table_name(&self.tables.settings);
        let put = put.item("name", AttributeValue::S("settings".into()));
        put.item("version", AttributeValue::N(version.into())).send().await.expect("the row is put");
    }

    /// Makes an account as the app does when somebody signs up: with nothing in it.
    pub async fn make_account(&self, user: &str) {
        let put =
            self.client.put_item().table_name(&self.tables.accounts).item("user_id", AttributeValue::S(user.into()));
        let put = put.item("currency", AttributeValue::S("coins".into()));
        put.item("available", AttributeValue::N("0".into())).send().await.expect("the account is made");
    }

    /// As if what counts of today's credits had been yesterday's.
    pub async fn count_as_of_yesterday(&self, user: &str) {
        let update = self.client.update_item().table_name(&self.tables.accounts);
        let update = update.key("user_id", AttributeValue::S(user.into()));
        let update = update.key("currency", AttributeValue::S("coins".into()));
        let update =
            update.update_expression("SET #on = :day").expression_attribute_names("#on", "credited_on/standard");
        let yesterday = AttributeValue::S("2026-01-01".into());
        update.expression_attribute_values(":day", yesterday).send().await.expect("the account is changed");
    }

    /// Spoils the row of a hold: what it holds is no number.
    pub async fn break_hold(&self, id: &str) {
        self.set_hold(id, AttributeValue::S("many".into())).await;
    }

    /// Puts it right again.
    pub async fn mend_hold(&self, id: &str, amount: &str) {
        self.set_hold(id, AttributeValue::N(amount.into())).await;
    }

    async fn set_hold(&self, id: &str, amount: AttributeValue) {
        let row = self.holds().await.into_iter().find(|row| row["trans_id"] == format!("standard/{id}")).unwrap();
        let key = |name: &str| AttributeValue::S(row[name].clone());
        let update = self.client.update_item().table_name(&self.tables.holds).key("bucket", key("bucket"));
        let update = update.key("due", key("due")).update_expression("SET amount = :amount");
        update.expression_attribute_values(":amount", amount).send().await.expect("the row is changed");
    }

    /// Credits of one coin that are held and due, written past the ledger as it would write them, since only what comes
    /// after them is looked at: `count` of them, spread evenly over `users`.
    pub async fn seed_holds(&self, count: usize, users: usize) {
        let text = |text: String| AttributeValue::S(text);
        let one = || AttributeValue::N("1".into());
        let due = "2026-01-02T00:00:00.000Z";
        let mut writes: Vec<(String, HashMap<String, AttributeValue>)> = Vec::new();
        for number in 0..count {
            let (id, user) = (format!("standard/c{number}"), format!("u{}", number % users));
            let common = [
                ("trans_id", text(id.clone())),
                ("user_id", text(user)),
                ("currency", text("coins".into())),
                ("amount", one()),
                ("release_at", text(due.into())),
            ];
            let entry = [
                ("status", text("credit".into())),
                ("held", one()),
                ("received_at", text("2026-01-01T00:00:00.000Z".into())),
                ("day", text(format!("standard#2026-01-01#{}", shard(&TransId::new(&id).unwrap())))),
            ];
            let shard = shard(&TransId::new(&id).unwrap());
            let hold = [("bucket", text(shard.to_string())), ("due", text(format!("{due}#{id}")))];
            let item = |own: &[(&str, AttributeValue)]| {
                common.iter().chain(own).map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
            };
            writes.push((self.tables.transactions.clone(), item(&entry)));
            writes.push((self.tables.holds.clone(), item(&hold)));
        }
        for user in 0..users {
            let held = AttributeValue::N((count / users).to_string());
            let row = [("user_id", text(format!("u{user}"))), ("currency", text("coins".into())), ("held", held)];
            let row = row.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
            writes.push((self.tables.accounts.clone(), row));
        }
        for batch in writes.chunks(25) {
            let mut tables: HashMap<String, Vec<WriteRequest>> = HashMap::new();
            for (table, item) in batch {
                let put = PutRequest::builder().set_item(Some(item.clone())).build().unwrap();
                tables.entry(table.clone()).or_default().push(WriteRequest::builder().put_request(put).build());
            }
            let written = self.client.batch_write_item().set_request_items(Some(tables)).send().await;
            assert!(written.expect("the rows are written").unprocessed_items.unwrap_or_default().is_empty());
        }
    }

    /// The ledger without the proxy before it.
    pub fn direct(&self) -> Store {
        Store::new(self.client.clone(), self.tables.clone())
    }

    /// One round of the worker that releases holds, as if it were `now`.
    pub async fn release(&self, now: Timestamp) -> Released {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        workers::release_holds(self.app.store(), "test", now, deadline).await.expect("the queue can be read")
    }

    /// The invariant: each account has available and held what its entries sum up to, no account is without entries, and
    /// what is held is in the queue of holds, coin for coin. Rounds are what became of their bets.
    pub async fn books_balance(&self) {
        self.rounds_agree().await;
        type Parts = BTreeMap<(String, String), (Amount, Amount)>;
        let add = |sum: &mut Amount, amount: Amount| *sum = sum.checked_add(amount).unwrap();
        let part = |row: &Row, name| row.get(name).map_or(Amount::ZERO, |text: &String| Amount::stored(text).unwrap());
        let account = |row: &Row| (row["user_id"].clone(), row["currency"].clone());
        let mut sums = Parts::new();
        for row in self.entries().await {
            let (amount, held) = (part(&row, "amount"), part(&row, "held"));
            let sum = sums.entry(account(&row)).or_default();
            add(&mut sum.0, amount.checked_add(held.negated()).unwrap());
            add(&mut sum.1, held);
        }
        let accounts: Parts = self
            .scan(&self.tables.accounts)
            .await
            .iter()
            .map(|row| (account(row), (part(row, "available"), part(row, "held"))))
            .collect();
        // An account that was never moved need not exist.
        sums.retain(|account, sum| *sum != (Amount::ZERO, Amount::ZERO) || accounts.contains_key(account));
        assert_eq!(accounts, sums, "the accounts on the left, the sums of their entries on the right");

        let mut queued: BTreeMap<_, Amount> = BTreeMap::new();
        for row in self.holds().await {
            add(queued.entry(account(&row)).or_default(), part(&row, "amount"));
        }
        let held: BTreeMap<_, _> = accounts
            .into_iter()
            .map(|(account, (_, held))| (account, held))
            .filter(|(_, held)| !held.is_zero())
            .collect();
        assert_eq!(queued, held, "the queue of holds on the left, what accounts hold on the right");
    }

    /// Each player's part in a round counts the bets that stand and those that were rolled back, as entries tell of them,
    /// and has ended only where somebody finished it.
    async fn rounds_agree(&self) {
        let entries = self.entries().await;
        let is = |row: &Row, status: &str, kind: &str| {
            row["status"] == status && row.get("kind").is_some_and(|known| known == kind)
        };
        // What a part of a round is called, without the shard that it is in.
        let round = |row: &Row, name: &str| row.get(name).map(|text| text.rsplit_once('#').unwrap().0.to_owned());
        let part = |row: &Row| Some((round(row, "round")?, row["user_id"].clone()));
        let operations: HashMap<_, _> =
            entries.iter().filter(|row| row["status"] == "operation").map(|row| (&row["trans_id"], row)).collect();
        let mut expected: BTreeMap<_, (i64, i64)> = BTreeMap::new();
        let (mut ended, mut ended_for_all) = (BTreeSet::new(), BTreeSet::new());
        for row in &entries {
            let placed = |row: &Row| row["answer_status"] == "200" && !row.contains_key("void");
            if is(row, "operation", "bet") && placed(row) {
                expected.entry(part(row).expect("a bet has a round")).or_default().0 += 1;
            }
            if is(row, "rollback", "bet_rollback") {
                let bet = operations[&row["trans_id"]];
                match part(bet) {
                    Some(part) if placed(bet) => {
                        let counts = expected.entry(part).or_default();
                        *counts = (counts.0 - 1, counts.1 + 1);
                    }
                    Some(part) if bet.contains_key("void") => expected.entry(part).or_default().1 += 1,
                    Some(_) | None => {}
                }
            }
            if is(row, "operation", "round_finish") {
                let part = part(row).expect("what is finished is a round");
                if row["user_id"].starts_with("suspense/") {
                    ended_for_all.insert(part.0);
                } else {
                    expected.entry(part.clone()).or_default();
                    ended.insert(part);
                }
            }
        }
        let rows = self.scan(&self.tables.rounds).await;
        let count = |row: &Row, name| row.get(name).map_or(0, |text| text.parse().unwrap());
        let key = |row: &Row| (round(row, "round_id").unwrap(), row["user_id"].clone());
        let found: BTreeMap<_, _> =
            rows.iter().map(|row| (key(row), (count(row, "bets"), count(row, "rolled_back")))).collect();
        assert_eq!(
            found, expected,
            "bets that stand and that were rolled back: rounds on the left, entries on the right"
        );
        for row in &rows {
            let key = key(row);
            let finished = row.contains_key("finished_at");
            let told = ended.contains(&key) || ended_for_all.contains(&key.0);
            assert!(told || !finished, "{key:?} was finished by nobody");
            assert!(finished || !ended.contains(&key), "{key:?} is not finished");
        }
    }

    async fn scan(&self, table: &str) -> Vec<Row> {
        let pages = self.client.scan().table_name(table).consistent_read(true).into_paginator().items().send();
        let items = pages.collect::<Result<Vec<_>, _>>().await.expect("the table can be read");
        let text = |value: AttributeValue| match value {
            AttributeValue::S(text) => text,
            // DynamoDB may keep the zeros that a sum ends with.
            AttributeValue::N(text) => Amount::stored(&text).expect("a number that we can read").to_string(),
            AttributeValue::Bool(flag) => flag.to_string(),
            other => panic!("an attribute of a kind that we never write: {other:?}"),
        };
        items.into_iter().map(|item| item.into_iter().map(|(name, value)| (name, text(value))).collect()).collect()
    }
}

/// Moves the clock that a process measures ages by, and nothing else.
pub async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

/// The parameters of one delivery of a conversion.
pub fn conversion<'a>(id: &'a str, status: &'a str, user: &'a str, amount: &'a str) -> [(&'a str, &'a str); 5] {
    [("user_id", user), ("trans_id", id), ("status", status), ("currency_amount", amount), ("timestamp", "1764500000")]
}

/// Parameters as a query, every byte escaped that may be.
pub fn query(parameters: &[(&str, &str)]) -> String {
    let escaped = |text| utf8_percent_encode(text, NON_ALPHANUMERIC);
    let pairs: Vec<_> = parameters.iter().map(|(name, value)| format!("{name}={}", escaped(value))).collect();
    pairs.join("&")
}

/// A query with its signature appended, as the network makes it.
pub fn signed(query: &str) -> String {
    signed_with(SECRET, query)
}

/// The same by another secret.
pub fn signed_with(secret: &str, query: &str) -> String {
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(query.as_bytes());
    format!("{query}&signature={}", hex::encode(mac.finalize().into_bytes()))
}

/// A function URL's event.
pub fn event(method: &str, path: &str, query: &str) -> String {
    let http =
        json!({"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.7", "userAgent": "test"});
    json!({
        "version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": query, "headers": {},
        "requestContext": {"accountId": "anonymous", "http": http, "stage": "$default", "timeEpoch": 1764500000000u64},
        "isBase64Encoded": false,
    })
    .to_string()
}

/// A signed call of the wallet of this process, answered, see [`World::call`].
pub async fn call_on(app: &App, path: &str, body: &Value) -> String {
    call_line(&app.wallet(&call_event(path, &body.to_string()), PATIENCE).await)
}

/// A function URL's event with a call of the wallet, signed as its caller signs.
pub fn call_event(path: &str, body: &str) -> String {
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
    mac.update(body.as_bytes());
    call_event_with(path, body, &hex::encode(mac.finalize().into_bytes()))
}

/// The same with this signature.
pub fn call_event_with(path: &str, body: &str, signature: &str) -> String {
    let http =
        json!({"method": "POST", "path": path, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.7", "userAgent": "test"});
    json!({
        "version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": "",
        "headers": {"content-type": "application/json", "x-signature": signature},
        "requestContext": {"accountId": "anonymous", "http": http, "stage": "$default", "timeEpoch": 1764500000000u64},
        "body": body, "isBase64Encoded": false,
    })
    .to_string()
}

/// A wallet's answer as one line: status, body, and whether it says that it is a repeated one.
pub fn call_line(handled: &Handled) -> String {
    let replayed = if handled.answer.replayed { " (replayed)" } else { "" };
    format!("{}{replayed}", line(handled))
}

/// An answer as one line: status and body.
pub fn line(handled: &Handled) -> String {
    format!("{} {}", handled.answer.status, handled.answer.body)
}
