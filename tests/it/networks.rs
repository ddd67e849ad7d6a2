//! Every network that is shipped, played from its event files, and the presets themselves.
//!
//! The events and what each must be answered were computed by another program (`tests/events`, Python) from the networks'
//! own formulas. Nothing here signs with our own recipes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use postback::event::Request;
use postback::handler::Handled;
use postback::id::{Currency, Network};
use postback::ledger::Status;
use postback::money::Scale;
use postback::offerwall::{self, Coins, Report};
use postback::operator::{Operator, Question, Show};
use postback::preset::{Catalogue, Class, Contract, Evidence, Preset, SourceMode};
use postback::sample::{self, CallSample, Sample, Wanted};
use postback::secrets::Secrets;
use postback::signature::{Algorithm, Key};
use postback::wallet;
use serde_json::json;

use crate::world::{PATIENCE, WALLET, World, check_with, line};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The networks that send postbacks.
fn shipped() -> Vec<Preset> {
    let presets = Catalogue::default().presets().unwrap();
    presets.into_iter().filter(|preset| preset.contract == Contract::Offerwall).collect()
}

/// Their names.
pub fn names() -> Vec<String> {
    shipped().iter().map(|preset| preset.network.to_string()).collect()
}

fn preset(catalogue: &Catalogue, name: &str) -> Preset {
    catalogue.preset(&Network::new(name).unwrap()).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The variables of a deployment that has every network, accepts the weak ones, and has the secrets of local mode.
pub fn everything(folder: &Path) -> BTreeMap<&'static str, String> {
    let presets = shipped();
    let weak = presets.iter().filter(|preset| !preset.undefended().is_empty());
    let accepted: String = weak.map(|preset| format!("[networks.{}]\naccept_weak = true\n", preset.network)).collect();
    let file = folder.join("networks.toml");
    let yours = "[networks.admob.yours]\nad_unit = [\"2747237135\"]\n";
    std::fs::write(&file, format!("{accepted}{yours}")).unwrap();
    let names: Vec<_> = presets.iter().map(|preset| preset.network.to_string()).collect();
    BTreeMap::from([
        ("NETWORKS", names.join(",")),
        ("NETWORKS_FILE", file.display().to_string()),
        ("NETWORK_SECRETS", sample::secrets(&presets).to_string()),
    ])
}

/// Runs a story in a deployment that has every network.
pub async fn check_everything(story: impl AsyncFnOnce(&World)) {
    let folder = tempfile::tempdir().unwrap();
    let variables = everything(folder.path());
    let variables: Vec<_> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    check_with(&variables, story).await;
}

/// The event files of the network without habits, in the order of a conversation, with what the network hears.
const STANDARD: &[(&str, &str, &str)] = &[
    ("standard-credit", "credited", "200 ok"),
    ("standard-credit-again", "duplicate", "200 ok (duplicate)"),
    ("standard-conflict", "conflict", "200 ok (duplicate)"),
    ("standard-reversal", "reversed", "200 ok"),
    ("standard-plus-as-space", "credited", "200 ok"),
    ("standard-forged", "bad_signature", "403 bad signature"),
    ("standard-macro", "bad_parameters", "400 trans_id: a macro that the network did not replace"),
    ("standard-status-unknown", "bad_parameters", "400 status: not a status of this network"),
    ("standard-zero", "credited", "200 ok"),
    ("standard-reversal-first", "reversed_unseen", "200 ok"),
    ("standard-late-credit", "late_credit", "200 ok"),
];

/// Every event file's name, outcome and answer, in the order in which they are played.
fn expected() -> Vec<(String, String, String)> {
    let standard = STANDARD
        .iter()
        .map(|(file, outcome, answer)| ((*file).to_owned(), (*outcome).to_owned(), (*answer).to_owned()));
    standard.chain(computed("offerwall")).collect()
}

/// Those of a contract that were computed.
fn computed(contract: &str) -> Vec<(String, String, String)> {
    let table = std::fs::read_to_string(root().join(format!("tests/events/{contract}.tsv"))).unwrap();
    let rows = table.lines().skip(1).map(|row| {
        let [file, outcome, status, body] = <[&str; 4]>::try_from(row.split('\t').collect::<Vec<_>>()).unwrap();
        let body: String = serde_json::from_str(body).unwrap();
        (file.to_owned(), outcome.to_owned(), format!("{status} {body}"))
    });
    rows.collect()
}

/// Asserts that each event file of a contract has its line, and each line its file.
fn assert_no_file_is_left_out(contract: &str, expected: &[(String, String, String)]) {
    let names: BTreeSet<_> = expected.iter().map(|(file, ..)| format!("{file}.json")).collect();
    let found = std::fs::read_dir(root().join("events").join(contract)).unwrap();
    let found: BTreeSet<_> = found.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(names, found, "each event file has its line, and each line its file");
}

fn event_file(contract: &str, name: &str) -> PathBuf {
    root().join("events").join(contract).join(format!("{name}.json"))
}

#[tokio::test]
async fn every_event_file_gets_the_answer_that_its_network_expects() {
    let expected = expected();
    assert_no_file_is_left_out("offerwall", &expected);
    check_everything(async |world| {
        let mut wrong = Vec::new();
        for (file, outcome, answer) in &expected {
            let event = std::fs::read_to_string(event_file("offerwall", file)).unwrap();
            Request::read(&event).unwrap();
            let handled: Handled = world.app.offerwall(&event, PATIENCE).await;
            if (handled.outcome, &line(&handled)) != (outcome.as_str(), answer) {
                let why = handled.why.clone().unwrap_or_default();
                wrong.push(format!("{file}: {} {} ({why}), not {outcome} {answer}", handled.outcome, line(&handled)));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    })
    .await;
}

#[tokio::test]
async fn every_event_of_a_wallet_gets_the_answer_that_its_caller_expects_and_each_path_has_one() {
    let expected = computed("wallet");
    assert_no_file_is_left_out("wallet", &expected);
    let mut paths = BTreeSet::new();
    let secrets = json!({WALLET: sample::LOCAL_SECRET, "standard": "s"}).to_string();
    let variables = [("NETWORKS", format!("standard,{WALLET}")), ("NETWORK_SECRETS", secrets)];
    check_with(&variables.each_ref().map(|(name, value)| (*name, value.as_str())), async |world| {
        world.fund("0042", "100").await;
        for (file, outcome, answer) in &expected {
            let event = std::fs::read_to_string(event_file("wallet", file)).unwrap();
            paths.insert(Request::read(&event).unwrap().path);
            let handled = world.app.wallet(&event, PATIENCE).await;
            let why = handled.why.clone().unwrap_or_default();
            assert_eq!((handled.outcome, &line(&handled)), (outcome.as_str(), answer), "{file} {why}");
            let repeats = ["duplicate", "conflict", "late"].contains(&handled.outcome);
            assert_eq!(handled.answer.replayed, repeats, "{file}");
        }
    })
    .await;
    assert_eq!(paths, wallet::PATHS.iter().map(|(path, _)| (*path).to_owned()).collect());
}

#[test]
fn every_network_has_a_credit_its_repetition_a_forgery_and_one_of_each_other_kind_that_it_knows() {
    let expected = expected();
    for preset in shipped() {
        let network = preset.network.as_str();
        let of = |kind: &str| expected.iter().any(|(file, ..)| *file == format!("{network}-{kind}"));
        for kind in ["credit", "credit-again", "forged"] {
            assert!(of(kind), "{network} has no event {kind}");
        }
        let classes = [
            (Class::Reversal, "reversal"),
            (Class::Pending, "pending"),
            (Class::Test, "test"),
            (Class::Ignore, "ignored"),
        ];
        for (class, kind) in classes {
            let ruled = preset.rules.iter().any(|rule| rule.is == class);
            assert_eq!(of(kind), ruled, "{network}: an event {kind}, and a rule for one");
        }
    }
}

#[test]
fn no_shipped_network_speaks_for_a_deployment_or_claims_more_than_it_has() {
    for preset in shipped() {
        let network = &preset.network;
        assert!(!preset.accept_weak && preset.cap.is_none(), "{network} decides what only a deployment can");
        assert!(!preset.default || preset.about.evidence != Evidence::Experimental, "{network} is on by itself");
        assert!(preset.source.mode != SourceMode::Enforce || !preset.source.addresses.is_empty(), "{network}");
        assert!(
            preset.about.docs.is_some() || preset.about.evidence != Evidence::Official || preset.default,
            "{network}"
        );
    }
}

#[test]
fn the_example_of_every_network_reads_as_what_it_shows_and_its_reversal_names_its_credit() {
    let presets = shipped();
    let secrets = Secrets::read(&sample::secrets(&presets).to_string()).unwrap();
    let coins = Coins { currency: Currency::new("coins").unwrap(), scale: Scale::new(2).unwrap() };
    let signed = presets.iter().filter(|preset| preset.signature.algorithm != Algorithm::EcdsaP256);
    for preset in signed.filter(|preset| preset.wallet().is_none()) {
        let keys = secrets.of(&preset.network);
        let none = Key::default();
        let read = |class| {
            let sample = Sample { class, user: "0042", trans_id: "t7", amount: "10.50", seconds: 1_780_000_000 };
            let example = sample::example(preset, keys.first().unwrap_or(&none), &sample, "https://a.example").ok()?;
            match offerwall::read(preset, keys, &coins, &example.request()) {
                Ok(Report::Claim(claim)) => Some(claim),
                other => panic!("{}: {other:?}", preset.network),
            }
        };
        let credit = read(Class::Credit).unwrap_or_else(|| panic!("{} shows a credit", preset.network));
        assert_eq!((credit.status, credit.user.as_str()), (Status::Credit, "0042"), "{}", preset.network);
        assert_eq!(credit.amount.to_string(), "10.5", "{}", preset.network);
        let reverses = preset.rules.iter().any(|rule| rule.is == Class::Reversal);
        let reversal = read(Class::Reversal);
        assert_eq!(reversal.is_some(), reverses, "{}", preset.network);
        if let Some(reversal) = reversal {
            assert_eq!((reversal.status, reversal.trans_id), (Status::Reversal, credit.trans_id), "{}", preset.network);
        }
    }
}

#[test]
fn the_readme_names_every_network_under_what_it_rests_on() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let rows: Vec<_> = ["| the network's own documentation |", "| integrations that work with it |", "| contradictory"]
        .map(|start| readme.lines().find(|line| line.starts_with(start)).expect("the README lists the networks"))
        .into();
    let evidence = [Evidence::Official, Evidence::Community, Evidence::Experimental];
    for (row, evidence) in rows.into_iter().zip(evidence) {
        let named: BTreeSet<_> = row.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        let rests = shipped().into_iter().filter(|preset| preset.about.evidence == evidence);
        assert_eq!(named, rests.map(|preset| preset.network.to_string()).collect(), "{evidence:?}");
    }
}

#[test]
fn the_networks_of_the_readme_read_as_a_deployments_own() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let example = readme.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
    let catalogue = Catalogue::with("networks.toml", example).unwrap();
    for name in ["monlix", "bitlabs", "admob", "mine"] {
        let preset = preset(&catalogue, name);
        assert_eq!((preset.undefended(), preset.unsaid().count()), (Vec::new(), 0), "{name} can be enabled");
    }
}

#[test]
fn the_event_that_a_person_is_shown_is_one_that_the_function_takes() {
    let operator = Operator::new(|_| None).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let presets = Catalogue::default().presets().unwrap();
    for preset in presets.iter().filter(|preset| preset.signature.algorithm != Algorithm::EcdsaP256) {
        let network = preset.network.as_str();
        let postback = |seconds| Sample { class: Class::Credit, user: "42", trans_id: "t7", amount: "10.50", seconds };
        let call = |path| CallSample { path, player: "42", key: "t7", amount: "10.50", round: "1", original: "t6" };
        let shown = match preset.wallet() {
            Some(_) => wallet::PATHS.map(|(_, path)| Wanted::Call(call(path))).to_vec(),
            None => vec![Wanted::Postback(postback(1_780_000_000))],
        };
        for wanted in shown {
            let event = operator.sign(network, &wanted, None, Show::Event).unwrap();
            let file = folder.path().join("event.json");
            std::fs::write(&file, event.text).unwrap();
            let explained = operator.check(network, &Question::from_event(&file).unwrap()).unwrap();
            assert!(!explained.differs, "{network}: {wanted:?}: {}", explained.text);
        }
    }
}

#[test]
fn what_a_deployment_says_of_a_shipped_network_counts_for_no_other() {
    let document = "[networks.radientwall]\ncap = \"5\"\nanswers.applied = \"GREAT\"\n\
                    [networks.mine]\nbase = \"radientwall\"\nnetwork.name = \"Mine\"";
    let catalogue = Catalogue::with("networks.toml", document).unwrap();
    let cap = |name: &str| preset(&catalogue, name).cap.map(|cap| cap.to_string());
    assert_eq!(cap("radientwall").as_deref(), Some("5"));
    assert_eq!(cap("ewall"), None, "a shipped network builds on what is shipped");
    assert_eq!(cap("mine").as_deref(), Some("5"), "a network of one's own builds on what one says");
}

#[test]
fn every_table_that_is_missing_is_told_at_once() {
    let faults = Catalogue::with("networks.toml", "[networks.mine]\ncap = \"5\"").unwrap_err();
    let missing: BTreeSet<_> = faults.iter().map(|fault| fault.key.as_str()).collect();
    let tables = ["answers", "classes", "network", "parameters", "request", "signature"];
    assert_eq!(
        missing,
        tables
            .iter()
            .map(|table| format!("networks.mine.{table}"))
            .collect::<BTreeSet<_>>()
            .iter()
            .map(String::as_str)
            .collect()
    );
}

#[test]
fn fields_encoded_anew_are_signed_in_the_order_in_which_they_were_sent_or_by_their_names() {
    let coins = Coins { currency: Currency::new("coins").unwrap(), scale: Scale::new(2).unwrap() };
    // By hashlib, of the fields as PHP's http_build_query writes them, and the secret behind.
    let as_sent = "ca94b153478b06e8a90120b135dcf6ed681a14b11bf3b111a9755aeab417730e";
    let by_name = "2dec89711769a3591b7055b09c556a111795142e262722dc702f1fbd1f710226";
    for (message, right, wrong) in [("{$fields}", as_sent, by_name), ("{$sorted}", by_name, as_sent)] {
        let document = format!(
            "[networks.mine]\nbase = \"standard\"\nnetwork.name = \"Mine\"\n\
             [networks.mine.signature]\nalgorithm = \"sha256\"\nmessage = \"{message}{{$secret}}\"\nparameter = \"sig\"\n\
             fields = {{ form = \"pairs\", joiner = \"&\", encoding = \"php\" }}"
        );
        let mine = preset(&Catalogue::with("networks.toml", &document).unwrap(), "mine");
        let read = |hash: &str| {
            let query = format!("user_id=42&trans_id=b%20c&status=1&currency_amount=5&sig={hash}");
            let mut request = Request::default();
            (request.method, request.query) = ("GET".to_owned(), query);
            offerwall::read(&mine, &[Key::from("local-secret")], &coins, &request).is_ok()
        };
        assert_eq!((read(right), read(wrong)), (true, false), "{message}");
    }
}
