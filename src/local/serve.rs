//! `cargo local`: the function URL on this machine, what to try on it, and one line for each call.
//!
//! Decides nothing about a call: the handler does, and this tells what became of it. Never prints a query or a signature of a
//! caller.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{StatusCode, header, request};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use tokio::time::{Instant, MissedTickBehavior};
use tracing::warn;

use super::function_url::{Call, event};
use super::{ANY, CannotRun, Data, Embedded, PATIENCE, bind, called, change, function, say};
use crate::config::{Config, SecretsFrom};
use crate::handler::{App, Handled, Subject};
use crate::preset::Class;
use crate::sample::{self, Sample};
use crate::store::{Store, StoreError};
use crate::workers::{self, Released};

/// The largest body that a function URL takes.
const BODY_MAX: usize = 6 * 1024 * 1024;

/// How often due holds are looked for: more often than in a deployment, since somebody is watching.
const ROUND_EVERY: Duration = Duration::from_secs(10);

/// Where to serve.
#[derive(Debug, Clone)]
pub struct Serve {
    pub port: u16,
    pub dynamodb_port: u16,
    pub data: Data,
}

/// Serves the function URL and DynamoDB until the process is told to stop.
///
/// # Errors
///
/// [`CannotRun`] says what is in the way.
pub async fn serve(options: &Serve) -> Result<(), CannotRun> {
    let stop = stop_signal().map_err(CannotRun::Server)?;
    let listener = bind(options.port, "--port").await?;
    let address = listener.local_addr().map_err(CannotRun::Server)?;
    let dynamodb = bind(options.dynamodb_port, "--dynamodb-port").await?;
    let embedded = Embedded::start(dynamodb, &options.data)?;
    let (config, app) = function(&embedded.endpoint(), Some(&format!("http://{address}"))).await?;
    embedded.announce()?;

    say(introduction(&config, address, &embedded.endpoint(), &options.data));
    let store = app.store().clone();
    let router = Router::new().fallback(answer).with_state(Arc::new(app));
    let service = router.into_make_service_with_connect_info::<SocketAddr>();
    tokio::select! {
        ended = async { axum::serve(listener, service).await } => ended.map_err(CannotRun::Server),
        never = release_holds(&store, &config.function) => match never {},
        // A call that is cut off here is as safe to repeat as one that meets a crash.
        () = stop => Ok(()),
    }
}

/// What a schedule does in a deployment: held coins that are due become available.
async fn release_holds(store: &Store, function: &str) -> Infallible {
    let mut rounds = tokio::time::interval(ROUND_EVERY);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        rounds.tick().await;
        let deadline = Instant::now() + workers::ROUND_MAX;
        match workers::release_holds(store, function, Timestamp::now(), deadline).await {
            Ok(Released { released: 0, .. }) => {}
            Ok(Released { released, .. }) => {
                say(format_args!("{}  released {released} that were held", Timestamp::now().strftime("%H:%M:%SZ")));
            }
            Err(problem) => warn!(error = %problem, "due holds are not released; the next round tries again"),
        }
    }
}

/// Ctrl-C or SIGTERM, from now on.
#[cfg(unix)]
fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
    })
}

/// Ctrl-C, from now on.
#[cfg(windows)]
fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    let mut interrupt = tokio::signal::windows::ctrl_c()?;
    Ok(async move {
        interrupt.recv().await;
    })
}

/// What is where, and what to type first.
fn introduction(config: &Config, url: SocketAddr, dynamodb: &str, kept: &Data) -> String {
    let names: Vec<_> = config.networks.iter().take(3).map(|preset| preset.network.as_str()).collect();
    let more = match config.networks.len().saturating_sub(names.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let data = match kept {
        Data::Memory => "in memory, gone at the end".to_owned(),
        Data::Folder(folder) => format!("{}, kept for the next run", folder.display()),
    };
    let tables = &config.tables;
    let scans = [&tables.transactions, &tables.accounts, &tables.cases].map(|table| {
        format!(
            "  AWS_ACCESS_KEY_ID={ANY} AWS_SECRET_ACCESS_KEY={ANY} aws dynamodb scan \
             --region {ANY} --endpoint-url {dynamodb} --table-name {table}"
        )
    });
    let examples = match examples(config, url, Timestamp::now()) {
        Some(examples) => format!(
            "A credit, the same again, and its reversal:\n{}",
            examples.map(|line| format!("  {line}")).join("\n")
        ),
        None => "No network has a secret, so none can call: see NETWORK_SECRETS.".to_owned(),
    };
    let is_wallet = config.networks.iter().any(|preset| preset.wallet().is_some());
    let player = match kept {
        Data::Folder(folder) if is_wallet => {
            format!("A player for the wallet:\n  cargo local fund 42 100 --data {}\n\n", folder.display())
        }
        Data::Folder(_) | Data::Memory => String::new(),
    };
    format!(
        "function URL  http://{url}  networks: {}{more}\n\
         DynamoDB      {dynamodb}\n\
         data          {data}\n\n\
         The tables, with the AWS CLI:\n{}\n\n\
         {examples}\n\n\
         {player}Calls, until Ctrl-C:",
        names.join(", "),
        scans.join("\n"),
    )
}

/// A credit, the same again, and its reversal, of a conversation that no earlier run has seen; for the first network that has
/// a secret and sends all of these.
fn examples(config: &Config, url: SocketAddr, now: Timestamp) -> Option<[String; 3]> {
    let SecretsFrom::Environment(secrets) = &config.secrets else { return None };
    let origin = config.front.public_url.clone().unwrap_or_else(|| format!("http://{url}"));
    let trans_id = format!("demo-{}", now.as_millisecond());
    config.networks.iter().find_map(|preset| {
        let key = secrets.of(&preset.network).first()?;
        let curl = |class, later| {
            let seconds = now.as_second() + later;
            let sample = Sample { class, user: "42", trans_id: &trans_id, amount: "10.50", seconds };
            Some(sample::example(preset, key, &sample, &origin).ok()?.curl())
        };
        Some([curl(Class::Credit, 0)?, curl(Class::Credit, 1)?, curl(Class::Reversal, 2)?])
    })
}

async fn answer(
    State(app): State<Arc<App>>,
    ConnectInfo(caller): ConnectInfo<SocketAddr>,
    request: Request,
) -> Response {
    let now = Timestamp::now();
    let (parts, body) = request.into_parts();
    let handled = match body::to_bytes(body, BODY_MAX).await {
        Ok(body) => {
            let call = Call {
                method: &parts.method,
                uri: &parts.uri,
                version: parts.version,
                headers: &parts.headers,
                body: &body,
                source_ip: caller.ip(),
            };
            called(&app, parts.uri.path(), &event(&call, &request_id(), now).to_string()).await
        }
        // The function URL refuses it; a function never sees it.
        Err(_) => Handled::not_a_request(413, "larger than 6 MB, or not sent to its end".into()),
    };
    say(line(app.store(), now, &parts, &handled).await);
    let status = StatusCode::from_u16(handled.answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let content_type = [(header::CONTENT_TYPE, handled.answer.content_type.as_str())];
    let replayed = handled.answer.replayed.then_some([("idempotent-replayed", "true")]);
    (status, content_type, replayed, handled.answer.body).into_response()
}

/// A fresh id in the form of AWS's.
fn request_id() -> String {
    let (a, b) = (fastrand::u64(..), fastrand::u64(..));
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        a >> 32,
        (a >> 16) & 0xffff,
        a & 0xffff,
        b >> 48,
        b & 0xffff_ffff_ffff
    )
}

/// What became of a call, for the person at the terminal.
async fn line(store: &Store, at: Timestamp, call: &request::Parts, handled: &Handled) -> String {
    let Handled { answer, subject, outcome, why, moved, cases, .. } = handled;
    let time = at.strftime("%H:%M:%SZ");
    let told = match subject {
        None => {
            // The answer to parameters that cannot be used says why already.
            let why = why.as_ref().filter(|_| answer.status != 400).map(|why| format!("  ({why})"));
            format!("{} {}{}", call.method, call.uri.path().escape_debug(), why.unwrap_or_default())
        }
        Some(subject) if answer.status == 200 => match standing(store, subject, moved.is_some()).await {
            Ok(told) => told,
            Err(error) => format!("{}  ({error})", subject.trans_id),
        },
        Some(subject) => format!("{}  user {}", subject.trans_id, subject.user),
    };
    let cases: String = cases.iter().map(|case| format!("  case {}", case.id())).collect();
    format!("{time}  {} {}  {outcome}  {told}{cases}", answer.status, answer.body.replace('\n', "; "))
}

/// What a settled call moved, and where its account stands.
async fn standing(store: &Store, subject: &Subject, moved: bool) -> Result<String, StoreError> {
    let deadline = Instant::now() + PATIENCE;
    let entries = store.conversation(&subject.trans_id, deadline).await?;
    let entry = entries.iter().find(|entry| entry.status == subject.status);
    let (user, currency) = entry.map_or((&subject.user, &subject.currency), |entry| (&entry.user, &entry.currency));
    let account = store.account(user, currency, deadline).await?.unwrap_or_default();
    let held = if account.held.is_zero() { String::new() } else { format!("  held {}", account.held) };
    let change = entry.filter(|_| moved).map(|entry| format!("  {}", change(entry)));
    Ok(format!("{}  user {user}{}  balance {}{held}", subject.trans_id, change.unwrap_or_default(), account.available))
}
