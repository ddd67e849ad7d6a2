//! What must agree does: the template, the binaries, the variables, the events and the README. And the house's rules, which are
//! mostly about what is never there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use postback::config::VARIABLES;
use postback::metrics::{METRICS, NAMESPACE};
use postback::preset::Catalogue;
use serde::Deserialize;
use serde::de::IgnoredAny;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every file below a folder, in order.
fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let path = entry.unwrap().path();
            match path.extension() {
                _ if path.is_dir() => folders.push(path),
                Some(found_extension) if found_extension == extension => found.push(path),
                _ => {}
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "{folder} has .{extension} files");
    found
}

/// A source file's path below the root, and its text up to its unit tests.
fn sources() -> impl Iterator<Item = (String, String)> {
    files("src", "rs").into_iter().map(|path| {
        let text = std::fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap().to_owned();
        (path.strip_prefix(root()).unwrap().display().to_string(), code)
    })
}

/// What of the template these tests look at.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Template {
    globals: Option<IgnoredAny>,
    parameters: BTreeMap<String, Parameter>,
    resources: BTreeMap<String, Resource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Parameter {
    default: Option<serde_json::Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Resource {
    r#type: String,
    metadata: Option<Metadata>,
    #[serde(default)]
    properties: Properties,
    deletion_policy: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Metadata {
    build_properties: BuildProperties,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct BuildProperties {
    binary: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Properties {
    environment: Option<Environment>,
    timeout: Option<u64>,
    time_to_live_specification: Option<IgnoredAny>,
    deletion_protection_enabled: Option<bool>,
    namespace: Option<String>,
    metric_name: Option<String>,
    #[serde(default)]
    dimensions: Vec<Dimension>,
    #[serde(default)]
    metrics: Vec<Query>,
    treat_missing_data: Option<String>,
    alarm_actions: Option<Vec<String>>,
    dashboard_body: Option<String>,
}

/// A metric of an alarm.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Watched {
    namespace: String,
    metric_name: String,
    dimensions: Vec<Dimension>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Query {
    metric_stat: Option<MetricStat>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct MetricStat {
    metric: Watched,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Dimension {
    name: String,
    value: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Environment {
    variables: BTreeMap<String, serde_json::Value>,
}

fn template() -> Template {
    serde_saphyr::from_str(&read("template.yaml")).expect("template.yaml reads")
}

fn functions() -> impl Iterator<Item = (String, Resource)> {
    template().resources.into_iter().filter(|(_, resource)| resource.r#type == "AWS::Serverless::Function")
}

#[test]
fn the_template_deploys_exactly_the_binaries_that_a_build_without_features_makes() {
    #[derive(Deserialize)]
    struct Manifest {
        bin: Vec<Bin>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "kebab-case")]
    struct Bin {
        name: String,
        #[serde(default)]
        required_features: Vec<String>,
    }
    let manifest: Manifest = toml::from_str(&read("Cargo.toml")).unwrap();
    let built = manifest.bin.into_iter().filter(|bin| bin.required_features.is_empty()).map(|bin| bin.name);
    let deployed = functions().map(|(_, function)| function.metadata.expect("how it is built").build_properties.binary);
    assert_eq!(built.collect::<BTreeSet<_>>(), deployed.collect::<BTreeSet<_>>());
}

#[test]
fn the_template_sets_every_variable_of_the_function_and_no_other() {
    assert!(template().globals.is_none(), "variables are set where these tests look");
    let ours: BTreeSet<_> = VARIABLES.iter().map(|variable| variable.name.to_owned()).collect();
    for (name, function) in functions() {
        let set = function.properties.environment.unwrap_or_else(|| panic!("{name} has variables")).variables;
        let set: BTreeSet<_> = set.into_keys().filter(|variable| !variable.starts_with("AWS_")).collect();
        match name.as_str() {
            "Offerwall" => assert_eq!(set, ours, "{name}"),
            // It asks for tables, and for nothing of a network's.
            _ => assert!(set.is_subset(&ours) && set.contains("TRANSACTIONS_TABLE"), "{name}: {set:?}"),
        }
    }
}

#[test]
fn the_template_and_the_function_have_the_same_defaults() {
    let template = template();
    let text = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let default = |name: &str| text(template.parameters[name].default.as_ref().unwrap());
    let ours = |name: &str| VARIABLES.iter().find(|variable| variable.name == name).unwrap().default;
    assert_eq!(default("Currency"), ours("CURRENCY"));
    assert_eq!(default("CoinDecimals"), ours("COIN_DECIMALS"));
    assert_eq!(default("LogLevel"), ours("LOG_LEVEL"));
    let networks: Vec<_> =
        Catalogue::default().enabled_by_default().unwrap().iter().map(|preset| preset.network.to_string()).collect();
    assert_eq!(default("Networks"), networks.join(","));
    for (name, function) in functions() {
        // A wallet's caller must know what became of its call before it gives up.
        let budget = if name == "Wallet" { "3000" } else { ours("TIME_BUDGET_MS") };
        assert_eq!(text(&function.properties.environment.unwrap().variables["TIME_BUDGET_MS"]), budget, "{name}");
    }
}

#[test]
fn the_plain_handler_of_the_benchmark_is_built_as_ours_is() {
    #[derive(Deserialize)]
    struct Manifest {
        profile: BTreeMap<String, toml::Table>,
    }
    let release = |path: &str| toml::from_str::<Manifest>(&read(path)).unwrap().profile.remove("release").unwrap();
    assert_eq!(release("Cargo.toml"), release("tests/bench/plain/Cargo.toml"));
}

#[test]
fn a_function_lives_longer_than_its_time_budget() {
    for (name, function) in functions() {
        let variables = function.properties.environment.unwrap().variables;
        let budget = variables["TIME_BUDGET_MS"].as_u64().unwrap();
        assert!(function.properties.timeout.unwrap() * 1000 > budget + 1000, "{name}");
    }
}

#[test]
fn tables_outlive_the_stack_and_entries_never_expire() {
    let tables = template().resources.into_iter().filter(|(_, resource)| resource.r#type == "AWS::DynamoDB::Table");
    let names: Vec<_> = tables
        .map(|(name, table)| {
            assert_eq!(table.deletion_policy.as_deref(), Some("Retain"), "{name}");
            assert_eq!(table.properties.deletion_protection_enabled, Some(true), "{name}");
            assert!(table.properties.time_to_live_specification.is_none(), "{name}");
            name
        })
        .collect();
    assert_eq!(names, ["Accounts", "Cases", "Holds", "Rounds", "Settings", "Transactions"]);
}

/// The alarms with the metrics that each watches.
fn alarms() -> impl Iterator<Item = (String, Properties, Vec<Watched>)> {
    let alarms = template().resources.into_iter().filter(|(_, resource)| resource.r#type == "AWS::CloudWatch::Alarm");
    alarms.map(|(name, alarm)| {
        let mut properties = alarm.properties;
        let queries = std::mem::take(&mut properties.metrics).into_iter();
        let mut watched: Vec<_> = queries.filter_map(|query| Some(query.metric_stat?.metric)).collect();
        let only = properties.namespace.take().zip(properties.metric_name.take());
        let dimensions = std::mem::take(&mut properties.dimensions);
        watched.extend(only.map(|(namespace, metric_name)| Watched { namespace, metric_name, dimensions }));
        assert!(!watched.is_empty(), "{name} watches something");
        (name, properties, watched)
    })
}

/// Asserts that a metric of ours exists, and is kept by just these dimensions.
#[track_caller]
fn assert_kept(name: &str, dimensions: &BTreeSet<&str>) {
    let metric = METRICS.into_iter().find(|metric| metric.name == name);
    let metric = metric.unwrap_or_else(|| panic!("no metric is called {name}"));
    let kept = metric.dimensions().iter().any(|set| set.iter().copied().collect::<BTreeSet<_>>() == *dimensions);
    assert!(kept, "{name} is not kept by {dimensions:?}");
}

#[test]
fn every_alarm_watches_what_there_is_tells_the_topic_and_is_told_by_the_readme() {
    let readme = read("README.md");
    let table = readme.split("\n| alarm |").nth(1).and_then(|rest| rest.split("\n\n").next()).unwrap();
    let told: BTreeSet<_> =
        table.lines().filter_map(|row| row.strip_prefix("| `")?.split('`').next()).map(str::to_owned).collect();
    let mut names = BTreeSet::new();
    for (name, properties, watched) in alarms() {
        assert_eq!(properties.alarm_actions.as_deref(), Some(&["Alarms".to_owned()][..]), "{name}");
        // Only where silence is the alarm is nothing worse than something.
        let silence = name.starts_with("Silen") || name == "HoldsOverdue";
        let missing = if silence { "breaching" } else { "notBreaching" };
        assert_eq!(properties.treat_missing_data.as_deref(), Some(missing), "{name}");
        for Watched { namespace, metric_name, dimensions } in watched.iter().filter(|w| w.namespace == NAMESPACE) {
            assert_kept(metric_name, &dimensions.iter().map(|dimension| dimension.name.as_str()).collect());
            for Dimension { name, value } in dimensions {
                match name.as_str() {
                    "function" => assert!(functions().any(|(function, _)| function == *value), "{name}: {value}"),
                    "network" => assert_eq!(value, "WatchedNetwork"),
                    _ => assert!(readme.contains(&format!("`{value}` ")), "{namespace}: {value} is no outcome"),
                }
            }
        }
        names.insert(name);
    }
    assert_eq!(names, told, "on the left the template's alarms, on the right the README's");
}

#[test]
fn the_dashboard_is_json_and_shows_every_metric_of_ours() {
    let dashboard = template().resources.remove("Dashboard").and_then(|dashboard| dashboard.properties.dashboard_body);
    // As CloudFormation fills it in.
    let body = dashboard.unwrap().replace("${!", "$").replace("${AWS::Region}", "eu-west-1").replace("${", "{");
    let body: serde_json::Value = serde_json::from_str(&body).expect("the dashboard is JSON");
    let mut shown = BTreeSet::new();
    for widget in body["widgets"].as_array().unwrap().iter().filter(|widget| widget["type"] == "metric") {
        for row in widget["properties"]["metrics"].as_array().unwrap() {
            let texts: Vec<&str> = row.as_array().unwrap().iter().filter_map(|cell| cell.as_str()).collect();
            if let [NAMESPACE, name, dimensions @ ..] = &texts[..] {
                assert_kept(name, &dimensions.iter().copied().step_by(2).collect());
                shown.insert((*name).to_owned());
            } else if let Some(search) = row[0]["expression"].as_str() {
                let schema =
                    search.split(['{', '}']).nth(1).unwrap().strip_prefix("postback,").expect("a schema of ours");
                let name = search.split("MetricName=\"").nth(1).unwrap().split('"').next().unwrap();
                assert_kept(name, &schema.split(',').collect());
                shown.insert(name.to_owned());
            }
        }
    }
    let kinds_are_shown = "cases_opened";
    let all = METRICS.into_iter().map(|metric| metric.name.to_owned()).filter(|name| name != kinds_are_shown);
    assert_eq!(shown, all.collect());
}

#[test]
fn the_readme_lists_every_variable_with_its_default_and_meaning() {
    let readme = read("README.md");
    for variable in VARIABLES {
        let default = if variable.default.is_empty() { String::new() } else { format!("`{}` ", variable.default) };
        let row = format!("| `{}` | {default}| {} |", variable.name, variable.meaning);
        assert!(readme.contains(&row), "the README lacks the line\n{row}");
    }
    let section = readme.split("## Configuration").nth(1).and_then(|rest| rest.split("\n## ").next()).unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    assert_eq!(rows.count(), VARIABLES.len(), "the README lists no other variable");
    for preset in Catalogue::default().enabled_by_default().unwrap() {
        assert!(readme.contains(&format!("Shipped with `default = true` is `{}`.", preset.network)));
    }
}

/// Files that touch the world, each in one way. All others are the pure core.
const EDGE: &[&str] = &[
    "src/aws.rs",
    "src/config.rs",
    "src/function.rs",
    "src/in_force.rs",
    "src/log.rs",
    "src/secrets.rs",
    "src/tally.rs",
    "src/terminal.rs",
    "src/workers.rs",
];

/// Folders of such files, and the files they belong to.
const EDGES: &[&str] = &["src/bin/", "src/handler", "src/local", "src/operator", "src/store"];

#[test]
fn the_core_is_pure() {
    for (path, code) in sources() {
        let edge = EDGE.contains(&path.as_str()) || EDGES.iter().any(|folder| path.starts_with(folder));
        for word in
            ["aws_", "tokio", "std::env", "std::fs", "SystemTime", "Instant", "Timestamp::now", "lambda_", "hyper"]
        {
            assert!(edge || !code.contains(word), "{path} is pure, and names {word}");
        }
    }
}

#[test]
fn only_the_store_knows_items_only_the_config_the_environment_and_no_code_a_network() {
    for (path, code) in sources() {
        let local = path.starts_with("src/local");
        assert!(path.starts_with("src/store") || !code.contains("AttributeValue"), "{path} knows an item's layout");
        assert!(path == "src/config.rs" || !code.contains("std::env::var"), "{path} reads the environment");
        for network in Catalogue::default().names() {
            let named = code.contains(&format!("\"{network}\"")) || code.contains(&format!("/{network}"));
            assert!(!named, "{path} names the network {network}");
        }
        for word in ["f32", "f64"] {
            assert!(
                local || !code.split(|c: char| !c.is_ascii_alphanumeric()).any(|token| token == word),
                "{path} has a float"
            );
        }
    }
}

#[test]
fn every_file_says_what_it_is_for_and_none_holds_what_was_left_unfinished() {
    for path in files("src", "rs").into_iter().chain(files("tests", "rs")) {
        let text = std::fs::read_to_string(&path).unwrap();
        let path = path.strip_prefix(root()).unwrap().display().to_string();
        assert!(
            text.starts_with("//!") || text.starts_with("#![doc = include_str!"),
            "{path} does not say what it is for"
        );
        for words in [
            ["todo", "!("],
            ["dbg", "!("],
            ["unimplemented", "!("],
            ["#[ign", "ore"],
            ["#[should_", "panic"],
            ["FIX", "ME"],
        ] {
            assert!(!text.contains(&words.concat()), "{path} has {}", words.concat());
        }
    }
}

#[test]
fn the_top_level_holds_nothing_else() {
    let allowed = ["Cargo.lock", "Cargo.toml", "LICENSE", "README.md", "events", "src", "template.yaml", "tests"];
    let git = std::process::Command::new("git").args(["ls-files"]).current_dir(root()).output().expect("git runs");
    let tracked = String::from_utf8(git.stdout).unwrap();
    assert!(tracked.lines().any(|path| path == "Cargo.toml"), "git lists what is tracked");
    for path in tracked.lines() {
        let name = path.split('/').next().unwrap();
        assert!(name.starts_with('.') || allowed.contains(&name), "{name} does not belong to the top level");
    }
}
