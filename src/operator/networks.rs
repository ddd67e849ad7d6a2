//! The commands about networks: what is enabled, what to paste into a network's dashboard, a signed example, and why a
//! request does or does not verify.
//!
//! Never reaches AWS. A signed example carries what its network's requests carry; nothing else prints a secret.

use std::fmt;
use std::path::Path;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use secrecy::ExposeSecret;
use serde_json::json;

use super::CannotRun;
use crate::config::{Config, SecretsFrom};
use crate::event::{Answer, Request};
use crate::gate;
use crate::id::Network;
use crate::ledger::{OperationKind, Status};
use crate::offerwall::{self, Happened, Rejection, Report};
use crate::preset::{Class, Gap, Identity, Open, Preset, PresetError, SourceMode, Wallet};
use crate::sample::{self, Example, Wanted};
use crate::secrets::Secrets;
use crate::signature::{ALGORITHMS, Algorithm, BadSignature, ENCODINGS, Key, Message, Place, Recipe};
use crate::terminal::{Lines, Reply};
use crate::wallet::{self, Ask, Call, Path as WalletPath};

/// Where examples go to unless somebody says otherwise: `cargo local`.
const LOCAL_URL: &str = "http://127.0.0.1:9000";

/// What is configured, as far as these commands need it.
#[derive(Debug)]
pub struct Operator {
    config: Config,
    presets: Vec<Preset>,
    secrets: Result<Secrets, String>,
    /// Whether the secrets are those of local mode.
    pub local: bool,
}

/// The forms of a signed example.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Show {
    Curl,
    Url,
    Event,
}

/// A request that somebody wants explained.
#[derive(Debug)]
pub struct Question {
    /// The request as it arrived.
    pub request: Request,
}

impl Operator {
    /// Reads the function's variables. Where none says what networks sign with, it is what they sign with in local mode.
    ///
    /// # Errors
    ///
    /// Every fault in them.
    pub fn new(environment: impl Fn(&str) -> Option<String>) -> Result<Operator, CannotRun> {
        let set = |name: &str| environment(name).filter(|value| !value.is_empty());
        // These commands never reach AWS.
        let config = Config::read(|name| match name {
            "AWS_REGION" | "AWS_ACCESS_KEY_ID" | "AWS_SECRET_ACCESS_KEY" => Some("unused".to_owned()),
            name if name.starts_with("AWS_") => None,
            name => set(name),
        })?;
        let presets = config.catalogue.presets()?;
        let local = set("NETWORK_SECRETS").is_none() && set("NETWORK_SECRETS_ARN").is_none();
        let secrets = match &config.secrets {
            _ if local => Ok(Secrets::read(&sample::secrets(&presets).to_string()).unwrap_or_default()),
            SecretsFrom::Environment(secrets) => Ok(secrets.clone()),
            SecretsFrom::SecretsManager { arn } => Err(arn.clone()),
        };
        Ok(Operator { config, presets, secrets, local })
    }

    /// Every network with what a person must know of it: enabled or not, its evidence, what its signature leaves open, from
    /// where it sends, and which keys the deployment set.
    pub fn networks(&self) -> Networks<'_> {
        Networks(self)
    }

    /// The URL to paste into a network's dashboard, and what to switch on there.
    ///
    /// # Errors
    ///
    /// [`CannotRun::Network`].
    pub fn url(&self, network: &str) -> Result<Reply, CannotRun> {
        let preset = self.preset(network)?;
        let mut lines = Lines::default();
        match preset.wallet() {
            Some(wallet) => self.wallet_url(&preset, wallet, &mut lines),
            None => self.postback_url(&preset, &mut lines),
        }
        lines.line("signature", signature(&preset));
        lines.line("switch on", preset.about.dashboard.as_deref().unwrap_or("nothing that is known"));
        lines.line("not signed", gaps(&preset));
        lines.line("from", source(&preset));
        lines.line("docs", preset.about.docs.as_deref().unwrap_or("none that is known"));
        if !self.enabled(&preset.network) {
            lines.note(format_args!("Not enabled yet: add `{}` to NETWORKS, or to the settings.", preset.network));
        }
        Ok(Reply::fine(&lines, lines.json()))
    }

    /// Where a wallet is called, and with what.
    fn wallet_url(&self, preset: &Preset, wallet: &Wallet, lines: &mut Lines) {
        lines.line(
            "url",
            format_args!("{}/{}", self.origin("https://<the wallet's function URL's host>"), preset.network),
        );
        lines.line("method", preset.carrier.method());
        for (text, path) in wallet::PATHS {
            lines.note(format_args!("{text}: {}", path_in_words(path)));
        }
        for (name, holds) in wallet_fields(preset, wallet) {
            lines.note(format_args!("{name}: {holds}"));
        }
    }

    /// The URL of postbacks, and what its parameters hold.
    fn postback_url(&self, preset: &Preset, lines: &mut Lines) {
        let mut line = |label: &str, value: &str| lines.line(label, value);
        let postback = preset.about.postback.as_deref().map(|postback| format!("?{postback}")).unwrap_or_default();
        line("url", &format!("{}/{}{postback}", self.origin("https://<the function URL's host>"), preset.network));
        if preset.about.postback.is_none() {
            line("", "The network adds its parameters by itself, or wants its macros under these names:");
        }
        line("method", preset.carrier.method());
        for (ours, theirs) in names(preset) {
            line("", &format!("{theirs}: {ours}"));
        }
        if let Some(postback) = &preset.about.postback {
            let holds = |name: &str| postback.split('&').any(|pair| pair.split('=').next() == Some(name));
            let added: Vec<_> = names(preset).into_iter().map(|(_, name)| name).filter(|name| !holds(name)).collect();
            if !added.is_empty() {
                line("", &format!("Not in the URL, so the network must add by itself: {}", added.join(", ")));
            }
        }
    }

    /// A signed request, as the network would send it.
    ///
    /// # Errors
    ///
    /// [`CannotRun`] says what is missing.
    pub fn sign(&self, network: &str, wanted: &Wanted<'_>, url: Option<&str>, show: Show) -> Result<Reply, CannotRun> {
        let preset = self.preset(network)?;
        let unsigned = Key::default();
        let key = match self.keys(&preset.network)? {
            [key, ..] => key,
            [] if !preset.needs_secret() => &unsigned,
            [] => return Err(CannotRun::NoSecret(preset.network)),
        };
        // An event comes from a function URL, which is https.
        let here = if show == Show::Event { LOCAL_URL.replacen("http:", "https:", 1) } else { LOCAL_URL.to_owned() };
        let origin = url.map_or_else(|| self.origin(&here), |url| url.trim_end_matches('/').to_owned());
        let example = match wanted {
            Wanted::Postback(sample) => sample::example(&preset, key, sample, &origin),
            Wanted::Call(sample) => sample::call(&preset, key, sample, &origin),
        };
        let example: Example = example.map_err(|why| CannotRun::NoExample(preset.network.clone(), why))?;
        Ok(match show {
            Show::Curl => Reply::fine(example.curl(), json!({"curl": example.curl()})),
            Show::Url if !example.body.is_empty() => return Err(CannotRun::NotInUrl(preset.network)),
            Show::Url => Reply::fine(example.url(), json!({"url": example.url()})),
            Show::Event => Reply::fine(format_args!("{:#}", example.event()), example.event()),
        })
    }

    /// Why the function would believe a request, or would not.
    ///
    /// # Errors
    ///
    /// [`CannotRun`] says what is missing.
    pub fn check(&self, network: &str, question: &Question) -> Result<Reply, CannotRun> {
        let preset = self.preset(network)?;
        let mut request = self.in_front(&question.request);
        let only = std::slice::from_ref(&preset);
        let leads = match preset.wallet() {
            Some(_) => wallet::route(only, &request.path).is_some(),
            None => request.path.strip_suffix('/').unwrap_or(&request.path) == format!("/{}", preset.network),
        };
        let source = match (request.source_ip.is_empty(), preset.source.addresses.first()) {
            (true, Some(net)) => {
                request.source_ip = net.addr().to_string();
                "not given, so taken as one on the list".to_owned()
            }
            _ if preset.source.lists(&request.source_ip) => format!("{}, on the list", request.source_ip),
            _ => format!("{}, not on the list", request.source_ip),
        };
        let keys = self.keys(&preset.network)?;
        let explanation = gate::on_wire(&preset, &request, |wire, _| preset.signature.explain(keys, wire));

        let mut lines = Lines::default();
        let mut line = |label: &str, value: &str| lines.line(label, value);
        line("network", &format!("{} ({}, {})", preset.network, preset.about.name, preset.about.evidence.as_str()));
        line("request", &self.masked(&format!("{} {}", request.method, request.path)));
        if request.method != preset.carrier.method() && preset.carrier.method() == "POST" {
            line("", "This network sends a POST: give its --body.");
        }
        if !leads {
            let paths = match preset.wallet() {
                Some(_) => {
                    let paths = wallet::PATHS.map(|(path, _)| format!("/{}{path}", preset.network));
                    format!("this wallet's are {}", paths.join(" "))
                }
                None => format!("this network's is /{}", preset.network),
            };
            line("", &format!("The path leads elsewhere: {paths}."));
        }
        line("signature", &signature(&preset));
        if let Some(message) = &explanation.message {
            line("signed", &self.masked(&String::from_utf8_lossy(message)));
        }
        for (number, tried) in explanation.keys.iter().enumerate() {
            let came = tried.as_ref().map_or_else(ToString::to_string, |()| "verifies".to_owned());
            line(&format!("secret {}", number + 1), &came);
        }
        if preset.needs_secret() && keys.is_empty() {
            line("", &format!("No secret of `{}` is configured.", preset.network));
        }
        line("verifies", &explanation.verdict.as_ref().map_or_else(|why| format!("no: {why}"), |()| "yes".to_owned()));
        if matches!(explanation.verdict, Err(BadSignature::Other | BadSignature::NotEncoded(_)))
            && let Some(fit) = what_fits(&preset, keys, &request)
        {
            line("fits", &fit);
        }
        if preset.source.mode != SourceMode::Off {
            line("source", &format!("{source} ({})", preset.source.mode.as_str()));
        }
        let accepted = match preset.wallet() {
            Some(_) => self.says_as_wallet(&preset, keys, &request, &mut lines),
            None => self.says(&preset, keys, &request, &mut lines),
        };
        if !self.enabled(&preset.network) {
            lines.note(format_args!(
                "Not enabled, so {} until `{}` is in NETWORKS, or in the settings.",
                if preset.wallet().is_some() { 503 } else { 404 },
                preset.network
            ));
        }
        Ok(explained(&lines, leads && accepted))
    }

    /// What a postback says and hears, and whether it is taken.
    fn says(&self, preset: &Preset, keys: &[Key], request: &Request, lines: &mut Lines) -> bool {
        let read = offerwall::read(preset, keys, &self.config.coins, request);
        let mut line = |label: &str, value: &str| lines.line(label, value);
        match &read {
            Ok(Report::Claim(claim)) => {
                let (status, trans_id) = (claim.status.as_str(), &claim.trans_id);
                let says = format!("{status} {trans_id}, user {}, {} {}", claim.user, claim.amount, claim.currency);
                line("says", &self.masked(&says));
                let said = |happened| answer_line(&offerwall::answer(preset, request, happened));
                let (new, known) = (said(Happened::Credited), said(Happened::Duplicate));
                line("answer", &format!("{new}; if it is known: {known}"));
                if claim.status == Status::Credit && preset.cap.is_some_and(|cap| claim.amount > cap) {
                    line("", "Above the cap: the coins are kept back, with a case.");
                }
            }
            Ok(Report::Note(note)) => {
                let happened = Happened::Noted(*note);
                line("says", &format!("{}: nothing moves", happened.as_str()));
                line("answer", &answer_line(&offerwall::answer(preset, request, happened)));
            }
            Err(rejection) => line("answer", &refusal(preset, request, rejection)),
        }
        read.is_ok()
    }

    /// What a call of a wallet asks for, and whether it is taken. What it hears is the ledger's to say.
    fn says_as_wallet(&self, preset: &Preset, keys: &[Key], request: &Request, lines: &mut Lines) -> bool {
        let Some(route) = wallet::route(std::slice::from_ref(preset), &request.path) else { return false };
        match wallet::read(&route, keys, &self.config.coins.currency, request) {
            Ok(Call::Ping) => {
                lines.line("says", path_in_words(route.path));
                lines.line("answer", answer_line(&wallet::pong()));
            }
            Ok(Call::Balance(player, currency)) => {
                lines.line("says", self.masked(&format!("the balance of player {player} in {currency}")));
                lines.line("answer", "200 with the balance, 404 for a player without an account");
            }
            Ok(Call::Ask(ask)) => {
                lines.line("says", self.masked(&ask_in_words(&ask)));
                let key = ask.key.received();
                lines.line(
                    "answer",
                    self.masked(&format!("the ledger's: `operator wallet {key}` shows what was answered")),
                );
            }
            Err(rejection) => {
                let refused = answer_line(&wallet::refuse(&rejection));
                lines.line("answer", refused);
                return false;
            }
        }
        true
    }

    /// The request as the function sees it, where what stands in front of it says so.
    fn in_front(&self, request: &Request) -> Request {
        let mut front = self.config.front.clone();
        front.source = front.source.filter(|hop| request.header(&hop.header).is_some());
        let mut request = request.clone().behind(&front);
        // The path of the public URL belongs to what stands in front.
        let ours = front.public_url.as_deref().and_then(|url| url.splitn(4, '/').nth(3));
        if let Some(path) = ours.and_then(|ours| request.path.strip_prefix(&format!("/{ours}"))) {
            request.path = path.to_owned();
        }
        request
    }

    fn preset(&self, name: &str) -> Result<Preset, CannotRun> {
        let cannot = |problem: &dyn fmt::Display| CannotRun::Network(name.to_owned(), problem.to_string());
        let network = Network::new(name).map_err(|error| cannot(&error))?;
        self.config.catalogue.preset(&network).map_err(|error: PresetError| cannot(&error))
    }

    fn keys(&self, network: &Network) -> Result<&[Key], CannotRun> {
        match &self.secrets {
            Ok(secrets) => Ok(secrets.of(network)),
            Err(arn) => Err(CannotRun::SecretsManager(arn.clone())),
        }
    }

    fn enabled(&self, network: &Network) -> bool {
        self.config.networks.iter().any(|preset| preset.network == *network)
    }

    fn origin(&self, otherwise: &str) -> String {
        self.config.front.public_url.clone().unwrap_or_else(|| otherwise.to_owned())
    }

    /// A text without any secret that is configured, for whatever network.
    fn masked(&self, text: &str) -> String {
        let Ok(secrets) = &self.secrets else { return text.to_owned() };
        let networks: Vec<_> = secrets.networks().filter_map(|name| Network::new(name).ok()).collect();
        let keys = networks.iter().flat_map(|network| secrets.of(network)).flat_map(Key::iter);
        let mut known: Vec<_> = keys.map(|(name, secret)| (name, secret.expose_secret())).collect();
        // The longest first: one may begin like another.
        known.sort_by_key(|(_, secret)| std::cmp::Reverse(secret.len()));
        known.into_iter().filter(|(_, secret)| secret.len() > 3).fold(text.to_owned(), |text, (name, secret)| {
            let escaped = utf8_percent_encode(secret, NON_ALPHANUMERIC).to_string();
            let mask = format!("<{name}>");
            text.replace(secret, &mask).replace(&escaped, &mask)
        })
    }
}

/// The list of `operator networks`.
pub struct Networks<'a>(&'a Operator);

impl Networks<'_> {
    /// The list, for a person and for a program.
    pub fn reply(&self) -> Reply {
        let Networks(operator) = self;
        let network = |preset: &Preset| {
            json!({
                "network": preset.network.as_str(),
                "contract": if preset.wallet().is_some() { "wallet" } else { "offerwall" },
                "name": preset.about.name,
                "enabled": operator.enabled(&preset.network),
                "evidence": preset.about.evidence.as_str(),
                "docs": preset.about.docs,
                "method": preset.carrier.method(),
                "algorithm": algorithm(preset),
                "not_signed": gaps_of(preset, Gap::NotSigned),
                "run_together": gaps_of(preset, Gap::RunsTogether),
                "undefended": preset.undefended().into_iter().map(Open::as_str).collect::<Vec<_>>(),
                "secrets": operator.secrets.as_ref().ok().map(|secrets| secrets.of(&preset.network).len()),
                "source": {
                    "mode": preset.source.mode.as_str(),
                    "addresses": preset.source.addresses.iter().map(ToString::to_string).collect::<Vec<_>>(),
                },
                "cap": preset.cap.map(|cap| cap.to_string()),
                "final_statuses": preset.answers.final_statuses,
                "file": preset.about.file,
                "own_keys": preset.about.own_keys,
            })
        };
        Reply::fine(self, operator.presets.iter().map(network).collect())
    }
}

/// A line for each network, in columns.
impl fmt::Display for Networks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Networks(operator) = self;
        let head = ["network", "enabled", "evidence", "signature", "not signed", "from", "settings"];
        let mut rows = vec![head.map(str::to_owned)];
        let (enabled, others): (Vec<_>, Vec<_>) =
            operator.presets.iter().partition(|preset| operator.enabled(&preset.network));
        rows.extend(enabled.into_iter().chain(others).map(|preset| {
            let enabled = match (operator.enabled(&preset.network), preset.undefended().is_empty()) {
                (true, _) => "yes",
                _ if preset.unsaid().next().is_some() => "no, yours?",
                (false, true) => "no",
                (false, false) => "no, weak",
            };
            [
                preset.network.to_string(),
                enabled.to_owned(),
                preset.about.evidence.as_str().to_owned(),
                algorithm(preset).to_owned(),
                gaps(preset),
                source(preset),
                settings(preset),
            ]
        }));
        let widths: Vec<_> = (0..head.len()).map(|column| rows.iter().map(|row| row[column].len()).max()).collect();
        for row in &rows {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<0$}", width.unwrap_or_default()));
            writeln!(f, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
        }
        write!(
            f,
            "\nnot signed: whoever has seen one URL can change it. In parentheses: signed, with nothing between it and its\n\
             neighbour, so that what belongs to one can be moved to the other.\n\
             weak: the amount or the id is among these, and no source list or cap stands in the way: see the README.\n\
             yours?: it starts only with a table `yours` of what is yours, as its preset says."
        )
    }
}

impl Question {
    /// A request as a network's log or ours shows it: its URL, and for a POST its headers and body.
    ///
    /// # Errors
    ///
    /// [`CannotRun::NotAUrl`] and [`CannotRun::NotAHeader`].
    pub fn of(url: &str, headers: &[String], body: Option<&[u8]>, source: &str) -> Result<Question, CannotRun> {
        let not_a_url = || CannotRun::NotAUrl(url.split('?').next().unwrap_or_default().to_owned());
        let (scheme, rest) = url.split_once("://").ok_or_else(not_a_url)?;
        let (host, target) = rest.split_at(rest.find('/').ok_or_else(not_a_url)?);
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let header = |text: &String| {
            let (name, value) = text.split_once(':').ok_or(CannotRun::NotAHeader)?;
            Ok((name.trim().to_ascii_lowercase(), value.trim().to_owned()))
        };
        let headers = headers.iter().map(header).collect::<Result<Vec<_>, CannotRun>>()?;
        let mut request = Request::default().with(&headers, body.unwrap_or_default());
        request.method = if body.is_some() { "POST" } else { "GET" }.to_owned();
        request.origin = format!("{scheme}://{host}");
        request.path = path.to_owned();
        request.query = query.replace(' ', "+");
        request.source_ip = source.to_owned();
        Ok(Question { request })
    }

    /// A function URL's event.
    ///
    /// # Errors
    ///
    /// [`CannotRun::File`] and [`CannotRun::Event`].
    pub fn from_event(file: &Path) -> Result<Question, CannotRun> {
        let text =
            std::fs::read_to_string(file).map_err(|problem| CannotRun::File { file: file.to_owned(), problem })?;
        let request = Request::read(&text).map_err(|problem| CannotRun::Event { file: file.to_owned(), problem })?;
        Ok(Question { request })
    }
}

/// The class of the example that a person asks for.
pub fn class(reversal: bool) -> Class {
    if reversal { Class::Reversal } else { Class::Credit }
}

/// What a path of a wallet asks for.
fn path_in_words(path: WalletPath) -> &'static str {
    match path {
        WalletPath::Ping => "whether the wallet is there and knows the secret",
        WalletPath::Balance => "a player's balance",
        WalletPath::Operation(kind) => match kind {
            OperationKind::Bet => "a stake is taken",
            OperationKind::Win => "a win is paid",
            OperationKind::BetRollback => "a stake is given back",
            OperationKind::WinRollback => "a win is taken back",
            OperationKind::RoundFinish => "a round is over, for its player or, where none is named, for all",
        },
    }
}

/// What an operation asks for.
fn ask_in_words(ask: &Ask) -> String {
    let requested = ask.requested.map(|requested| format!(" of {requested} {}", ask.currency)).unwrap_or_default();
    let original = match &ask.what {
        wallet::What::BetRollback(original) | wallet::What::WinRollback(original) => format!(", takes back {original}"),
        wallet::What::Bet(_) | wallet::What::Win(_) | wallet::What::RoundFinish { .. } => String::new(),
    };
    let round = ask.round.as_ref().map(|round| format!(", round {round}")).unwrap_or_default();
    let for_all = matches!(&ask.what, wallet::What::RoundFinish { for_all: true });
    let player = if for_all { "all players".to_owned() } else { format!("player {}", ask.player) };
    format!("{}{requested}, key {}, {player}{round}{original}", ask.what.kind().as_str().replace('_', " "), ask.key)
}

/// The fields of a wallet's calls, and what they hold.
fn wallet_fields(preset: &Preset, wallet: &Wallet) -> Vec<(String, &'static str)> {
    let names = &wallet.names;
    let key = match &preset.parameters.trans_id {
        Identity::Field(name) => name.clone(),
        Identity::Fingerprint(_) => String::new(),
    };
    vec![
        (key, "the key: the same in every repeat, and no other operation's"),
        (preset.parameters.user_id.clone(), "the player"),
        (preset.parameters.amount.clone(), "the amount, with at most two decimals"),
        (names.round_id.clone(), "the round, a number or a string"),
        (names.game_id.clone(), "the game; may be empty"),
        (names.original.clone(), "what a rollback takes back: its key, or our transaction id"),
        (names.currency.clone(), "the currency, where it is named"),
    ]
}

/// What is said of a request that the function would take, or would not.
fn explained(lines: &Lines, accepted: bool) -> Reply {
    let mut json = lines.json();
    json["accepted"] = accepted.into();
    Reply { text: lines.to_string(), json, differs: !accepted }
}

/// An answer on one line.
fn answer_line(answer: &Answer) -> String {
    format!("{} {}", answer.status, answer.body)
}

fn refusal(preset: &Preset, request: &Request, rejection: &Rejection) -> String {
    let Answer { status, body, .. } = offerwall::refuse(Some(preset), request, rejection);
    let last = preset.answers.final_statuses.contains(&status);
    format!(
        "{status} {}{}",
        body.replace('\n', "; "),
        if last { " (the network does not send again after this)" } else { "" }
    )
}

/// Another recipe that the signature fits, where a person most likely mistook one for another: the algorithm, the encoding,
/// the bytes that are signed, or the scheme of the URL.
fn what_fits(preset: &Preset, keys: &[Key], request: &Request) -> Option<String> {
    let wholes = ["{$query}", "{$query|decoded}", "{$query|cut}", "{$url}", "{$url|decoded}", "{$url|cut}", "{$body}"];
    let hashed = wholes.iter().flat_map(|whole| [format!("{whole}{{$secret}}"), format!("{{$secret}}{whole}")]);
    let texts: Vec<String> = wholes.iter().map(|whole| (*whole).to_owned()).chain(hashed).collect();
    let own = ("the same bytes".to_owned(), preset.signature.message.clone());
    let parsed = texts.into_iter().filter_map(|text| Some((text.clone(), Message::parse(&[text], "").ok()?)));
    let messages: Vec<(String, Message)> = std::iter::once(own).chain(parsed).collect();
    let swapped = match request.origin.split_once("://") {
        Some(("http", host)) => format!("https://{host}"),
        Some(("https", host)) => format!("http://{host}"),
        _ => String::new(),
    };
    let algorithms =
        ALGORITHMS.iter().filter(|(_, algorithm)| matches!(algorithm, Algorithm::Hash(_) | Algorithm::Hmac(_)));
    for (name, algorithm) in algorithms {
        for (text, message) in &messages {
            // Without a secret in it, a hash proves nothing.
            if matches!(algorithm, Algorithm::Hash(_)) && message.secrets().is_empty() {
                continue;
            }
            for (written, encoding) in ENCODINGS {
                let recipe = Recipe {
                    algorithm: *algorithm,
                    message: message.clone(),
                    encoding: *encoding,
                    ..preset.signature.clone()
                };
                for origin in [&request.origin, &swapped] {
                    let mut request = request.clone();
                    request.origin.clone_from(origin);
                    if gate::on_wire(preset, &request, |wire, _| recipe.verify(keys, wire)).is_ok() {
                        let url =
                            if message.takes_url() { format!(", for {}", url_of(&request)) } else { String::new() };
                        return Some(format!("{name} of {text}, in {written}{url}"));
                    }
                }
            }
        }
    }
    None
}

/// A request's URL without its query.
fn url_of(request: &Request) -> String {
    format!("{}{}", request.origin, request.path)
}

/// Our names for what a network's parameters hold.
fn names(preset: &Preset) -> Vec<(&'static str, String)> {
    let names = &preset.parameters;
    let trans_id = match &names.trans_id {
        Identity::Field(name) => name.clone(),
        Identity::Fingerprint(picks) => picks.iter().map(|pick| pick.name.as_str()).collect::<Vec<_>>().join(" and "),
    };
    let optional = [
        ("the offer's id", names.offer_id.clone()),
        ("the offer's name", names.offer_name.clone()),
        ("the goal's id", names.goal_id.clone()),
        ("what the network pays", names.payout.as_ref().map(|payout| payout.parameter.clone())),
    ];
    let required =
        [("your user", names.user_id.clone()), ("the conversion", trans_id), ("the coins", names.amount.clone())];
    let optional = optional.into_iter().filter_map(|(ours, theirs)| Some((ours, theirs?)));
    let mut names: Vec<_> = required.into_iter().chain(optional).collect();
    let said = preset.class_parameters().into_iter().map(|name| ("what happened", name.to_owned()));
    let signed = preset.signature.message.fields().map(|name| ("signed", name.to_owned()));
    for (ours, theirs) in said.chain(signed) {
        if !names.iter().any(|(_, known)| *known == theirs) {
            names.push((ours, theirs));
        }
    }
    names
}

fn algorithm(preset: &Preset) -> &'static str {
    let found = ALGORITHMS.iter().find(|(_, algorithm)| *algorithm == preset.signature.algorithm);
    found.map_or("", |(name, _)| name)
}

fn signature(preset: &Preset) -> String {
    let place = match &preset.signature.place {
        Some(Place::Field(name)) => format!(" in the parameter {name}"),
        Some(Place::Header(name)) => format!(" in the header {name}"),
        None => String::new(),
    };
    match preset.signature.algorithm {
        Algorithm::None => "none: only the source address speaks for a request".to_owned(),
        Algorithm::Token => format!("the secret itself{place}"),
        _ => format!("{}{place}", algorithm(preset)),
    }
}

fn gaps_of(preset: &Preset, gap: Gap) -> Vec<&'static str> {
    preset.gaps().into_iter().filter(|(_, known)| *known == gap).map(|(open, _)| open.as_str()).collect()
}

/// What the deployment says of it.
fn settings(preset: &Preset) -> String {
    let keys = match preset.about.own_keys {
        0 => None,
        1 => Some("1 key of its own".to_owned()),
        keys => Some(format!("{keys} keys of its own")),
    };
    let cap = preset.cap.map(|cap| format!("cap {cap}"));
    let weak = preset.accept_weak.then(|| "weak accepted".to_owned());
    let wallet = preset.wallet().map(|_| "calls a wallet".to_owned());
    let said: Vec<_> = [wallet, keys, cap, weak].into_iter().flatten().collect();
    if said.is_empty() { "as shipped".to_owned() } else { said.join(", ") }
}

/// What is not signed, and in parentheses what is, but runs together.
fn gaps(preset: &Preset) -> String {
    let (open, run) = (gaps_of(preset, Gap::NotSigned).join(" "), gaps_of(preset, Gap::RunsTogether).join(" "));
    match (open.is_empty(), run.is_empty()) {
        (true, true) => "-".to_owned(),
        (false, true) => open,
        (true, false) => format!("({run})"),
        (false, false) => format!("{open} ({run})"),
    }
}

fn source(preset: &Preset) -> String {
    let count = preset.source.addresses.len();
    match (preset.source.mode, count) {
        (_, 0) => "anywhere".to_owned(),
        (mode, 1) => {
            let net = preset.source.addresses[0];
            let one = net.prefix_len() == net.max_prefix_len();
            format!("{} ({})", if one { net.addr().to_string() } else { net.to_string() }, mode.as_str())
        }
        (mode, count) => format!("{count} addresses ({})", mode.as_str()),
    }
}
