//! The environment, read once into typed values, with every fault reported together.
//!
//! The only reader of environment variables. A fault names its variable and says what to do; it never shows a secret.

use std::cell::RefCell;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use crate::aws::Aws;
use crate::event::{Front, Hop};
use crate::id::{Currency, Network};
use crate::money::Scale;
use crate::offerwall::Coins;
use crate::preset::{Catalogue, Preset, PresetError};
use crate::secrets::Secrets;
use crate::settings::unusable;
use crate::store::Tables;

/// A variable that is read, with its default and its meaning: the README's table, held together by a test.
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// What counts where it is not set; empty for nothing.
    pub default: &'static str,
    /// What it sets, with its range.
    pub meaning: &'static str,
}

/// Every variable of ours. Beside these, `AWS_*` are read as Lambda and the SDKs define them.
pub const VARIABLES: &[Variable] = &[
    variable("TRANSACTIONS_TABLE", "transactions", "the table of entries"),
    variable("ACCOUNTS_TABLE", "accounts", "the table of balances"),
    variable("HOLDS_TABLE", "holds", "the table of held coins"),
    variable("ROUNDS_TABLE", "rounds", "the table of rounds"),
    variable("CASES_TABLE", "cases", "the table of cases"),
    variable("SETTINGS_TABLE", "settings", "the table of settings"),
    variable(
        "NETWORKS",
        "",
        "the networks that are enabled, separated by commas; else those whose preset says `default = true`",
    ),
    variable(
        "NETWORKS_FILE",
        "",
        "a TOML file with networks of your own, and with keys of shipped ones that are to be others",
    ),
    variable(
        "NETWORK_SECRETS",
        "",
        "JSON: network to secret, to an object of secrets or public keys by name, or to a list of what is all in force",
    ),
    variable("NETWORK_SECRETS_ARN", "", "a secret in Secrets Manager that holds that JSON, instead"),
    variable(
        "PUBLIC_URL",
        "",
        "the URL that networks call, where a domain of your own stands in front of the function URL",
    ),
    variable(
        "SOURCE_HEADER",
        "",
        "`<header> <n>`: the caller's address is the n-th from the right in this header, which your own proxy sets",
    ),
    variable("CURRENCY", "coins", "the currency of the accounts"),
    variable("COIN_DECIMALS", "2", "decimals of a coin that are kept, 0 to 8; more are cut toward zero"),
    variable("TIME_BUDGET_MS", "3500", "the longest that a call may take before it is answered with 503, 100 to 60000"),
    variable("LOG_LEVEL", "info", "error, warn, info, debug or trace; a call has its line at any of these"),
];

const fn variable(name: &'static str, default: &'static str, meaning: &'static str) -> Variable {
    Variable { name, default, meaning }
}

/// What a function needs to know. `Debug` shows no secret.
#[derive(Debug, Clone)]
pub struct Config {
    /// The names of the tables.
    pub tables: Tables,
    /// The networks that are enabled while there are no settings.
    pub networks: Vec<Preset>,
    /// Every network that could be, while there are no settings.
    pub catalogue: Catalogue,
    /// What stands in front of the function URL.
    pub front: Front,
    /// Where the networks' secrets come from.
    pub secrets: SecretsFrom,
    /// What the deployment pays in.
    pub coins: Coins,
    /// The longest that a call may take.
    pub time_budget: Duration,
    /// The least serious line that is logged.
    pub log_level: tracing::Level,
    /// The function's name, which tells its metrics from those of another deployment.
    pub function: String,
    /// How AWS is reached.
    pub aws: Aws,
}

/// Where the networks' secrets come from.
#[derive(Debug, Clone)]
pub enum SecretsFrom {
    /// They stand in the environment.
    Environment(Secrets),
    /// They stand in one secret of Secrets Manager.
    SecretsManager { arn: String },
}

/// Every fault of an environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Faults(pub Vec<Fault>);

/// What is wrong with one variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The variable that must be corrected.
    pub variable: &'static str,
    /// What is wrong with it, without its value where that is secret.
    pub problem: String,
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.0.iter().map(|fault| format!("{}: {}", fault.variable, fault.problem)).collect();
        f.write_str(&lines.join("; "))
    }
}

impl std::error::Error for Faults {}

impl Config {
    /// Reads the process's environment.
    ///
    /// # Errors
    ///
    /// Every fault in it.
    pub fn from_env() -> Result<Config, Faults> {
        Config::read(environment)
    }

    /// Reads variables from anywhere; one that is empty counts as not set.
    ///
    /// # Errors
    ///
    /// Every fault in them.
    pub fn read(lookup: impl Fn(&str) -> Option<String>) -> Result<Config, Faults> {
        let env = Env { lookup: &lookup, faults: RefCell::default() };
        let catalogue = catalogue(&env);
        let config = Config {
            tables: Tables {
                transactions: env.parsed("TRANSACTIONS_TABLE", table),
                accounts: env.parsed("ACCOUNTS_TABLE", table),
                holds: env.parsed("HOLDS_TABLE", table),
                rounds: env.parsed("ROUNDS_TABLE", table),
                cases: env.parsed("CASES_TABLE", table),
                settings: env.parsed("SETTINGS_TABLE", table),
            },
            networks: networks(&env, &catalogue),
            catalogue,
            front: front(&env),
            secrets: secrets(&env),
            coins: Coins {
                currency: env.parsed("CURRENCY", |text| Currency::new(text).map_err(|error| error.to_string())),
                scale: env.parsed("COIN_DECIMALS", |text| {
                    text.parse()
                        .ok()
                        .and_then(Scale::new)
                        .ok_or_else(|| format!("not a whole number from 0 to {}", Scale::MAX))
                }),
            },
            time_budget: env.parsed("TIME_BUDGET_MS", |text| match text.parse() {
                Ok(ms @ 100..=60_000) => Ok(Duration::from_millis(ms)),
                _ => Err("not a whole number from 100 to 60000".into()),
            }),
            log_level: env.parsed("LOG_LEVEL", |text| {
                tracing::Level::from_str(text).map_err(|_| "not error, warn, info, debug or trace".into())
            }),
            function: env.get("AWS_LAMBDA_FUNCTION_NAME").unwrap_or_else(|| "local".to_owned()),
            aws: aws(&env),
        };
        let faults = env.faults.into_inner();
        if faults.is_empty() { Ok(config) } else { Err(Faults(faults)) }
    }
}

/// A variable of the process's environment.
pub fn environment(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}

/// The log level alone, so that the faults of an environment can be logged; its default where it does not read.
pub fn log_level() -> tracing::Level {
    let level = environment("LOG_LEVEL").and_then(|text| text.parse().ok());
    level.unwrap_or(tracing::Level::INFO)
}

/// Variables being read, and the faults found so far.
struct Env<'a> {
    lookup: &'a dyn Fn(&str) -> Option<String>,
    faults: RefCell<Vec<Fault>>,
}

impl Env<'_> {
    fn get(&self, name: &'static str) -> Option<String> {
        let value = (self.lookup)(name).filter(|value| !value.is_empty())?;
        if value.contains(char::REPLACEMENT_CHARACTER) {
            self.fault(name, "not UTF-8");
        }
        Some(value)
    }

    /// One of [`VARIABLES`], or its default.
    fn ours(&self, name: &'static str) -> String {
        self.get(name).unwrap_or_else(|| default(name).to_owned())
    }

    /// One of [`VARIABLES`], parsed. Where it does not parse that is a fault, and its default stands in so that reading
    /// can go on to the next fault.
    fn parsed<T>(&self, name: &'static str, parse: impl Fn(&str) -> Result<T, String>) -> T {
        parse(&self.ours(name)).unwrap_or_else(|problem| {
            self.fault(name, problem);
            parse(default(name)).expect("every default parses")
        })
    }

    fn fault(&self, variable: &'static str, problem: impl fmt::Display) {
        self.faults.borrow_mut().push(Fault { variable, problem: problem.to_string() });
    }

    /// A variable that Lambda sets.
    fn lambda(&self, name: &'static str) -> String {
        self.get(name).unwrap_or_else(|| {
            self.fault(name, "not set; Lambda sets it, elsewhere set it yourself");
            String::new()
        })
    }
}

fn default(name: &str) -> &'static str {
    VARIABLES
        .iter()
        .find(|variable| variable.name == name)
        .map(|variable| variable.default)
        .expect("a variable of ours")
}

/// A table's name, or its ARN.
fn table(text: &str) -> Result<String, String> {
    let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-:/".contains(&byte));
    if plain { Ok(text.to_owned()) } else { Err("not the name or the ARN of a table".into()) }
}

/// The variable that names a file of networks.
const NETWORKS_FILE: &str = "NETWORKS_FILE";

/// The networks that are shipped, and the deployment's own.
fn catalogue(env: &Env<'_>) -> Catalogue {
    const NAME: &str = NETWORKS_FILE;
    let Some(path) = env.get(NAME) else { return Catalogue::default() };
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => {
            env.fault(NAME, format_args!("{path}: {error}"));
            return Catalogue::default();
        }
    };
    Catalogue::with(&path, &text).unwrap_or_else(|faults| {
        faults.iter().for_each(|fault| env.fault(NAME, fault));
        Catalogue::default()
    })
}

fn networks(env: &Env<'_>, catalogue: &Catalogue) -> Vec<Preset> {
    const NAME: &str = "NETWORKS";
    let Some(names) = env.get(NAME) else {
        let defaults = catalogue.enabled_by_default().unwrap_or_else(|error| {
            env.fault(NETWORKS_FILE, error);
            Vec::new()
        });
        for preset in &defaults {
            if let Some(problem) = unusable(preset, NETWORKS_FILE) {
                env.fault(NAME, format_args!("`{}`, enabled by default: {problem}", preset.network));
            }
        }
        return defaults;
    };
    let mut presets: Vec<Preset> = Vec::new();
    // Where the file does not read, what it would have said of a network is not known.
    let file_reads = !env.faults.borrow().iter().any(|fault| fault.variable == NETWORKS_FILE);
    for name in names.split(',').map(str::trim) {
        let fault = |problem: &dyn fmt::Display| env.fault(NAME, format_args!("`{name}`: {problem}"));
        match Network::new(name).map(|network| catalogue.preset(&network)) {
            Ok(Ok(preset)) if presets.iter().any(|other| other.network == preset.network) => {
                env.fault(NAME, format_args!("`{name}` is named twice"));
            }
            Ok(Ok(preset)) => {
                if file_reads && let Some(problem) = unusable(&preset, NETWORKS_FILE) {
                    fault(&problem);
                }
                presets.push(preset);
            }
            Ok(Err(PresetError::Unknown)) if !file_reads => {}
            Ok(Err(error)) => fault(&error),
            Err(error) => fault(&error),
        }
    }
    presets
}

fn front(env: &Env<'_>) -> Front {
    let public_url = env.get("PUBLIC_URL").map(|url| {
        let uri = url.parse::<http::Uri>().ok().filter(|uri| matches!(uri.scheme_str(), Some("http" | "https")));
        let host = uri.as_ref().and_then(http::Uri::authority).is_some_and(|host| !host.as_str().contains('@'));
        if !host || uri.is_none_or(|uri| uri.query().is_some()) || url.contains('#') {
            env.fault("PUBLIC_URL", "not an http:// or https:// URL without a query or a fragment");
        }
        url.trim_end_matches('/').to_owned()
    });
    let source = env.get("SOURCE_HEADER").and_then(|text| {
        let hop = text.split_once(' ').and_then(|(header, from_right)| {
            let from_right = from_right.trim().parse().ok().filter(|from_right| *from_right > 0)?;
            let plain = !header.is_empty() && header.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
            plain.then(|| Hop { header: header.to_ascii_lowercase(), from_right })
        });
        if hop.is_none() {
            env.fault(
                "SOURCE_HEADER",
                "not a header's name, a space, and a number from 1, such as `x-forwarded-for 1`",
            );
        }
        hop
    });
    Front { public_url, source }
}

fn secrets(env: &Env<'_>) -> SecretsFrom {
    const NAME: &str = "NETWORK_SECRETS";
    match (env.get(NAME), env.get("NETWORK_SECRETS_ARN")) {
        (Some(_), Some(_)) => env.fault(NAME, "set together with NETWORK_SECRETS_ARN; set one of them"),
        (None, Some(arn)) if arn.starts_with("arn:") => return SecretsFrom::SecretsManager { arn },
        (None, Some(_)) => env.fault("NETWORK_SECRETS_ARN", "not an ARN, which begins with `arn:`"),
        (None, None) => {}
        (Some(text), None) => match Secrets::read(&text) {
            Ok(secrets) => return SecretsFrom::Environment(secrets),
            Err(error) => env.fault(NAME, error),
        },
    }
    SecretsFrom::Environment(Secrets::default())
}

fn aws(env: &Env<'_>) -> Aws {
    let endpoint = |own: &'static str| {
        let (name, url) = [own, "AWS_ENDPOINT_URL"].into_iter().find_map(|name| Some((name, env.get(name)?)))?;
        let read = url.parse::<http::Uri>().ok().filter(|uri| matches!(uri.scheme_str(), Some("http" | "https")));
        if read.and_then(|uri| uri.authority().cloned()).is_none_or(|host| host.as_str().contains('@')) {
            env.fault(name, "not an http:// or https:// URL of a host");
        }
        Some(url)
    };
    // What goes into a request's headers and host: the SDK would panic, or fail at every call.
    let checked = |name: &'static str, value: String| {
        if !value.bytes().all(|byte| byte.is_ascii_graphic()) {
            env.fault(name, "contains a space or a character that is not ASCII");
        }
        value
    };
    let region = env.get("AWS_DEFAULT_REGION").filter(|_| env.get("AWS_REGION").is_none());
    let region = region.unwrap_or_else(|| env.lambda("AWS_REGION"));
    Aws {
        region: checked("AWS_REGION", region),
        access_key_id: checked("AWS_ACCESS_KEY_ID", env.lambda("AWS_ACCESS_KEY_ID")),
        secret_access_key: env.lambda("AWS_SECRET_ACCESS_KEY").into(),
        session_token: env.get("AWS_SESSION_TOKEN").map(|token| checked("AWS_SESSION_TOKEN", token).into()),
        dynamodb_endpoint: endpoint("AWS_ENDPOINT_URL_DYNAMODB"),
        secrets_manager_endpoint: endpoint("AWS_ENDPOINT_URL_SECRETS_MANAGER"),
        extra_roots: extra_roots(env),
    }
}

/// Certificates to trust beside the roots of AWS, for an endpoint of one's own.
fn extra_roots(env: &Env<'_>) -> Option<String> {
    const NAME: &str = "AWS_CA_BUNDLE";
    let path = env.get(NAME)?;
    let text = std::fs::read_to_string(&path).map_err(|error| env.fault(NAME, format_args!("{path}: {error}"))).ok()?;
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    let readable = |certificate: &Result<CertificateDer<'_>, _>| {
        certificate.as_ref().is_ok_and(|certificate| webpki::anchor_from_trusted_cert(certificate).is_ok())
    };
    if certificates.is_empty() || !certificates.iter().all(readable) {
        env.fault(NAME, format_args!("{path}: holds no certificate, or one that does not read"));
        return None;
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAMBDA: [(&str, &str); 3] =
        [("AWS_REGION", "eu-west-1"), ("AWS_ACCESS_KEY_ID", "AKID"), ("AWS_SECRET_ACCESS_KEY", "hunter1")];

    fn read(variables: &[(&str, &str)]) -> Result<Config, Faults> {
        let all: Vec<_> = LAMBDA.iter().chain(variables).rev().copied().collect();
        Config::read(|name| all.iter().find(|(variable, _)| *variable == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn an_environment_of_lambda_alone_gives_the_documented_defaults() {
        let config = read(&[]).unwrap();
        assert_eq!(config.tables.transactions, "transactions");
        assert_eq!(config.coins.currency.as_str(), "coins");
        assert_eq!(config.coins.scale.decimals(), 2);
        assert_eq!(config.time_budget, Duration::from_millis(3500));
        assert_eq!(config.log_level, tracing::Level::INFO);
        assert_eq!(config.networks.len(), 1);
        assert_eq!(config.aws.dynamodb_endpoint, None);
    }

    #[test]
    fn every_fault_is_reported_together_with_its_variable() {
        let faults = read(&[
            ("NETWORKS", "nobody, Standard,"),
            ("NETWORK_SECRETS", "hunter2"),
            ("CURRENCY", "US dollars"),
            ("COIN_DECIMALS", "9"),
            ("TIME_BUDGET_MS", "0"),
            ("LOG_LEVEL", "loud"),
            ("AWS_ENDPOINT_URL_DYNAMODB", "localhost:8000"),
            ("AWS_ACCESS_KEY_ID", ""),
            ("AWS_CA_BUNDLE", "/nowhere.pem"),
        ])
        .unwrap_err();
        let variables: Vec<_> = faults.0.iter().map(|fault| fault.variable).collect();
        assert_eq!(
            variables,
            [
                "NETWORKS",
                "NETWORKS",
                "NETWORKS",
                "NETWORK_SECRETS",
                "CURRENCY",
                "COIN_DECIMALS",
                "TIME_BUDGET_MS",
                "LOG_LEVEL",
                "AWS_ACCESS_KEY_ID",
                "AWS_ENDPOINT_URL_DYNAMODB",
                "AWS_CA_BUNDLE",
            ]
        );
        assert!(!faults.to_string().contains("hunter"), "{faults}");
    }

    #[test]
    fn what_would_make_the_sdk_panic_or_fail_at_every_call_is_a_fault() {
        let dir = tempfile::tempdir().unwrap();
        let not_pem = dir.path().join("not.pem");
        std::fs::write(&not_pem, "hunter2").unwrap();
        for (variable, value) in [
            ("AWS_ACCESS_KEY_ID", "hunter\n2"),
            ("AWS_SESSION_TOKEN", "hunter\u{1}2"),
            ("AWS_REGION", "eu west"),
            ("NETWORK_SECRETS_ARN", "{\"a\": \"hunter2\"}"),
            ("AWS_SECRET_ACCESS_KEY", "hunter\u{fffd}"),
            ("ACCOUNTS_TABLE", "my accounts"),
            ("AWS_ENDPOINT_URL_DYNAMODB", "http://"),
            ("AWS_ENDPOINT_URL_DYNAMODB", "http://["),
            ("AWS_ENDPOINT_URL_DYNAMODB", "http://me:hunter2@127.0.0.1"),
            ("AWS_ENDPOINT_URL_SECRETS_MANAGER", "ftp://127.0.0.1"),
            ("AWS_CA_BUNDLE", not_pem.to_str().unwrap()),
        ] {
            let faults = read(&[(variable, value)]).unwrap_err();
            assert_eq!(faults.0.iter().map(|fault| fault.variable).collect::<Vec<_>>(), [variable], "{value}");
            assert!(!faults.to_string().contains("hunter"), "{faults}");
        }
    }

    /// Reads with this text as NETWORKS_FILE, which is called `networks.toml` in faults.
    fn read_file(text: &str, variables: &[(&str, &str)]) -> Result<Config, String> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("networks.toml");
        std::fs::write(&file, text).unwrap();
        let file = file.to_str().unwrap();
        let variables = [variables, &[("NETWORKS_FILE", file)]].concat();
        read(&variables).map_err(|faults| faults.to_string().replace(file, "networks.toml"))
    }

    /// A network whose signature leaves the amount and the id open.
    const WEAK: &str = r#"[networks.weak]
        network = { name = "Weak", evidence = "community" }
        request.carrier = "query"
        signature = { algorithm = "md5", message = "{user}{$secret}", encoding = "hex", parameter = "sig" }
        parameters = { user_id = "user", trans_id = "id", amount = "amount" }
        classes = [{ is = "credit" }]
        answers.applied = "ok"
        "#;

    #[test]
    fn a_network_that_leaves_money_open_is_refused_until_the_deployment_says_how_it_is_defended() {
        let enforced = "source = { mode = \"enforce\", addresses = [\"192.0.2.1\"] }";
        let warned = "source = { mode = \"warn\", addresses = [\"192.0.2.1\"] }";
        let refusal = "NETWORKS: `weak`: its signature leaves the amount and the id open: whoever has seen one URL can \
                       change it. In NETWORKS_FILE, set `networks.weak.cap`, or `networks.weak.source` to `enforce` \
                       with its addresses, or accept it with `networks.weak.accept_weak = true`";
        for (more, enabled) in [
            ("", false),
            ("accept_weak = false", false),
            (warned, false),
            ("accept_weak = true", true),
            ("cap = \"5000\"", true),
            (enforced, true),
        ] {
            let text = format!("{WEAK}{more}\n");
            let outcome = read_file(&text, &[("NETWORKS", "weak")]).map(|config| config.networks.len());
            assert_eq!(outcome, if enabled { Ok(1) } else { Err(refusal.to_owned()) }, "{more}");
            // Where NETWORKS names none, what is enabled by itself is held to the same.
            let by_default = read_file(&format!("{text}default = true"), &[]).map(|config| config.networks.len());
            let refusal = refusal.replacen("`weak`", "`weak`, enabled by default", 1);
            assert_eq!(by_default, if enabled { Ok(2) } else { Err(refusal) }, "{more}, by default");
            assert_eq!(read_file(&text, &[]).unwrap().networks.len(), 1, "{more}: not by itself");
        }
    }

    #[test]
    fn a_network_cannot_take_the_name_that_stands_for_none_in_the_metrics() {
        let text = WEAK.replace("weak", "none") + "accept_weak = true\n";
        let refusal = "NETWORKS: `none`: it is what the metrics call a path without a network";
        assert_eq!(read_file(&text, &[("NETWORKS", "none")]).map(drop), Err(refusal.to_owned()));
    }

    #[test]
    fn each_shipped_network_is_enabled_by_its_name_unless_it_leaves_money_open() {
        for preset in Catalogue::default().presets().unwrap() {
            let name = preset.network.as_str();
            let enabled = read(&[("NETWORKS", name)]).map(|config| config.networks.len());
            let enabled_with =
                |key: &str| enabled.clone().unwrap_err().to_string().contains(&format!("networks.{name}.{key}"));
            match &preset.undefended()[..] {
                _ if preset.unsaid().next().is_some() => assert!(enabled_with("yours"), "{name}"),
                [] => assert_eq!(enabled, Ok(1), "{name}"),
                _ => assert!(enabled_with("accept_weak"), "{name}"),
            }
        }
    }

    #[test]
    fn the_faults_of_the_file_of_networks_are_reported_with_all_others_and_hide_no_network() {
        let told = |from: &str, to: &str| read_file(&WEAK.replace(from, to), &[("NETWORKS", "weak")]).unwrap_err();
        for (from, to, expected) in [
            (
                "{$secret}",
                "",
                "networks.toml, line 4: networks.weak.signature.message: holds no {$secret}: anybody could make this \
                 hash",
            ),
            (
                "\"md5\", message = \"{user}{$secret}\", encoding = \"hex\", parameter = \"sig\"",
                "\"none\"",
                "networks.toml, line 1: networks.weak.source.mode: must be `enforce` where nothing is signed: \
                 anybody could call",
            ),
            (
                "\"community\" }",
                "\"experimental\" }\ndefault = true",
                "networks.toml, line 1: networks.weak.default: an experimental network is enabled only where a \
                 deployment names it",
            ),
            (
                "answers.applied = \"ok\"",
                "answers = { applied = \"ok\", bad_signature = { status = 200 } }",
                "networks.toml, line 7: networks.weak.answers.bad_signature: its status must be from 400 to 599: a \
                 network takes anything else as done",
            ),
        ] {
            // The network is known, but what it would have been is not: nothing more is said of it.
            assert_eq!(told(from, to), format!("NETWORKS_FILE: {expected}"));
        }
        let both = read_file("[networks.a]\ncap = 7\n[networks.b]", &[("NETWORKS", "a, B"), ("LOG_LEVEL", "loud")])
            .unwrap_err();
        for part in ["line 2: networks.a.cap", "line 3: networks.b.network", "NETWORKS: `B`", "LOG_LEVEL"] {
            assert!(both.contains(part), "{part}: {both}");
        }
        let missing = read(&[("NETWORKS_FILE", "/nowhere.toml")]).unwrap_err().to_string();
        assert!(missing.starts_with("NETWORKS_FILE: /nowhere.toml: "), "{missing}");
        let secret = read_file("networks.a.signature.message = \"hunter2", &[]).unwrap_err();
        assert!(!secret.contains("hunter2"), "{secret}");
    }

    #[test]
    fn a_public_url_is_one_that_a_network_can_sign() {
        for (url, expected) in [
            ("https://pay.example", "https://pay.example"),
            ("https://pay.example/", "https://pay.example"),
            ("http://10.0.0.1:8080/base/", "http://10.0.0.1:8080/base"),
        ] {
            assert_eq!(read(&[("PUBLIC_URL", url)]).unwrap().front.public_url.as_deref(), Some(expected));
        }
        for url in [
            "pay.example",
            "ftp://pay.example",
            "https://",
            "https://me:hunter2@pay.example",
            "https://pay.example?",
            "/x",
            "https://pay.example/?a=1",
            "https://pay.example#x",
            "https://pay.example/x#y",
            "https://pay example",
            "hunter2",
        ] {
            let told = read(&[("PUBLIC_URL", url)]).map(|config| config.front).unwrap_err().to_string();
            assert_eq!(told, "PUBLIC_URL: not an http:// or https:// URL without a query or a fragment", "{url}");
        }
        assert_eq!(read(&[("PUBLIC_URL", ""), ("SOURCE_HEADER", "")]).unwrap().front, Front::default());
    }

    #[test]
    fn a_source_header_is_a_name_and_a_place_from_the_right() {
        for (text, header, from_right) in [
            ("x-forwarded-for 1", "x-forwarded-for", 1),
            ("CF-Connecting-IP 2", "cf-connecting-ip", 2),
            ("X-Real-IP  10", "x-real-ip", 10),
        ] {
            let hop = read(&[("SOURCE_HEADER", text)]).unwrap().front.source;
            assert_eq!(hop, Some(Hop { header: header.into(), from_right }), "{text}");
        }
        for text in [
            "x-forwarded-for",
            "x-forwarded-for 0",
            "x-forwarded-for -1",
            "x-forwarded-for 1.5",
            "x-forwarded-for 1 2",
            " 1",
            "1",
            "x: 1",
            "x\u{e9} 1",
            "x-forwarded-for 99999999999999999999",
            "x-forwarded-for first",
        ] {
            let told = read(&[("SOURCE_HEADER", text)]).map(|config| config.front).unwrap_err().to_string();
            let expected =
                "SOURCE_HEADER: not a header's name, a space, and a number from 1, such as `x-forwarded-for 1`";
            assert_eq!(told, expected, "{text}");
        }
    }

    #[test]
    fn secrets_come_from_one_place() {
        let both = read(&[("NETWORK_SECRETS", r#"{"a": "b"}"#), ("NETWORK_SECRETS_ARN", "arn:x")]).unwrap_err();
        assert_eq!(both.to_string(), "NETWORK_SECRETS: set together with NETWORK_SECRETS_ARN; set one of them");
        assert!(matches!(
            read(&[("NETWORK_SECRETS_ARN", "arn:x")]).unwrap().secrets,
            SecretsFrom::SecretsManager { .. }
        ));
    }

    #[test]
    fn no_debug_shows_a_secret() {
        let secrets = r#"{"standard": ["hunter2", "hunter3"]}"#;
        let shown = format!("{:?}", read(&[("NETWORK_SECRETS", secrets), ("AWS_SESSION_TOKEN", "hunter4")]).unwrap());
        assert!(!shown.contains("hunter"), "{shown}");
    }
}
