//! What the offerwall function costs, beside a plain handler of the same job (`plain/`), measured in the same run.
//!
//! Both release binaries are started as Lambda starts them, on the emulated runtime API, against a DynamoDB endpoint on
//! loopback with TLS that answers every call at once. So the figures are the functions' own: no network, no database. They
//! are for comparing; the ratios carry over to Lambda, the times do not.
//!
//! `cargo bench --bench offerwall`. It must never reach beyond loopback, and needs nothing but Cargo; with valgrind on the
//! machine it counts instructions too, which are the same on a busy machine, as times are not.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints what it measured")]

#[allow(dead_code, reason = "the tests use what the benchmark does not")]
#[path = "../it/runtime_api.rs"]
mod runtime_api;

use std::collections::BTreeMap;
use std::fs;
use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::response::IntoResponse;
use hmac::{Hmac, KeyInit, Mac};
use nix::sys::signal::{Signal, kill};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::json;
use sha2::Sha256;
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::server::TlsStream;

use runtime_api::{Bootstrap, RuntimeApi};

const REPETITIONS: usize = 7;
const WARM_CALLS: usize = 2_000;
/// Under callgrind everything is some fifty times slower, and a count needs no repetition.
const COUNTED_CALLS: usize = 200;
const SECRET: &str = "local-secret";
const DEADLINE: Duration = Duration::from_secs(30);

fn main() {
    // `cargo test --all-targets` starts benchmarks too, without this argument, to see that they start.
    if !std::env::args().any(|argument| argument == "--bench") {
        println!("offerwall: a benchmark, run by cargo bench");
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(compare());
}

async fn compare() {
    let target =
        Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("Cargo's folder for temporary files has a parent");
    let world = World::start().await;
    let ours = Contestant {
        binary: build("Cargo.toml", "offerwall", target),
        variables: world.variables([
            ("CASES_TABLE", "cases"),
            ("NETWORK_SECRETS", &json!({ "standard": SECRET }).to_string()),
            ("LOG_LEVEL", "info"),
            ("AWS_CA_BUNDLE", &world.path("test-ca.pem")),
        ]),
    };
    let plain = Contestant {
        binary: build("tests/bench/plain/Cargo.toml", "plain", &target.join("plain")),
        variables: world.variables([("SECRET", SECRET), ("SSL_CERT_FILE", &world.path("all-ca.pem"))]),
    };

    let mut figures = Figures { ours: Vec::new(), plain: Vec::new() };
    for repetition in 1..=REPETITIONS {
        eprintln!("run {repetition} of {REPETITIONS}");
        // In turns, so that a machine that gets busier does so for both.
        figures.ours.push(run(&ours, &world).await);
        figures.plain.push(run(&plain, &world).await);
    }
    let mut table = Table::default();
    figures.tabulate(&mut table);
    match which("valgrind") {
        Some(valgrind) => {
            eprintln!("counting instructions");
            let (ours, plain) = (count(&valgrind, &ours, &world).await, count(&valgrind, &plain, &world).await);
            table.row("init", "million instructions", ours.init / 1e6, plain.init / 1e6, Some(0.15));
            table.row("cold start", "million instructions", ours.cold_start / 1e6, plain.cold_start / 1e6, None);
            table.row("warm call", "thousand instructions", ours.warm / 1e3, plain.warm / 1e3, Some(1.0));
        }
        None => println!("valgrind is not installed, so that instructions were not counted."),
    }
    let size = |contestant: &Contestant| fs::metadata(&contestant.binary).expect("a built binary").len() as f64 / 1e6;
    table.row("binary", "MB", size(&ours), size(&plain), Some(0.6));
    if !world.has_system_roots {
        println!(
            "This machine has no bundle of root certificates: the plain handler's init is cheaper than in Lambda."
        );
    }
    println!(
        "Medians of {REPETITIONS} runs, {WARM_CALLS} warm calls in each, on a loopback DynamoDB that answers at once.\n\
         Ours opens its connection during init, the plain one during its first call: a cold start is both together.\n"
    );
    table.print();
}

/// The runs of both, by turns.
struct Figures {
    ours: Vec<Run>,
    plain: Vec<Run>,
}

impl Figures {
    fn tabulate(&self, table: &mut Table) {
        let mut row = |stage, what, figure: &dyn Fn(&Run) -> f64, aim| {
            table.row(stage, what, median(&self.ours, figure), median(&self.plain, figure), aim);
        };
        row("init", "wall, ms", &|run| milliseconds(run.init.wall), None);
        row("init", "CPU, ms", &|run| milliseconds(run.init.cpu), Some(0.15));
        row("init", "memory, MB", &|run| run.init_memory as f64 / 1e6, None);
        row("init", "TLS handshakes", &|run| run.init.traffic.handshakes as f64, None);
        row("init", "DynamoDB requests", &|run| run.init.traffic.requests as f64, None);
        row("first call", "wall, ms", &|run| milliseconds(run.first.wall), None);
        row("first call", "CPU, ms", &|run| milliseconds(run.first.cpu), None);
        row("first call", "TLS handshakes", &|run| run.first.traffic.handshakes as f64, None);
        row("first call", "DynamoDB requests", &|run| run.first.traffic.requests as f64, None);
        row("cold start", "wall, ms", &|run| milliseconds(run.init.wall + run.first.wall), None);
        row("cold start", "CPU, ms", &|run| milliseconds(run.init.cpu + run.first.cpu), None);
        let per_call = WARM_CALLS as f64;
        row("warm call", "wall, ms", &|run| milliseconds(run.warm.wall) / per_call, None);
        row("warm call", "CPU, ms", &|run| milliseconds(run.warm.cpu) / per_call, Some(1.0));
        row("warm call", "DynamoDB requests", &|run| run.warm.traffic.requests as f64 / per_call, None);
        row("whole life", "TLS handshakes", &|run| run.handshakes() as f64, None);
        row("whole life", "peak memory, MB", &|run| run.memory as f64 / 1e6, Some(0.75));
    }
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn median(runs: &[Run], figure: &dyn Fn(&Run) -> f64) -> f64 {
    let mut figures: Vec<_> = runs.iter().map(figure).collect();
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// Ours beside the plain one's, and their ratio beside its aim.
#[derive(Default)]
struct Table {
    rows: Vec<String>,
}

impl Table {
    fn row(&mut self, stage: &str, what: &str, ours: f64, plain: f64, aim: Option<f64>) {
        let ratio = ours / plain;
        let shown = if ratio.is_finite() { format!("{ratio:.2}") } else { "-".to_owned() };
        let verdict = aim.map(|aim| {
            let verdict = if ratio <= aim { "met" } else { "MISSED" };
            format!("<= {aim:.2} {verdict}")
        });
        let verdict = verdict.unwrap_or_default();
        let row = format!("{stage:<11} {what:<22} {ours:>9.2} {plain:>9.2} {shown:>7}  {verdict}");
        self.rows.push(row.trim_end().to_owned());
    }

    fn print(&self) {
        println!("{:<34} {:>9} {:>9} {:>7}  aim", "", "ours", "plain", "ratio");
        // The counted rows were added last, and stand with their stages.
        for stage in ["init", "first call", "cold start", "warm call", "whole life", "binary"] {
            self.rows.iter().filter(|row| row.starts_with(stage)).for_each(|row| println!("{row}"));
        }
    }
}

/// One of the two binaries, and what its environment says.
struct Contestant {
    binary: PathBuf,
    variables: Vec<(String, String)>,
}

/// Builds one binary as `sam build` does: its release profile, default features.
fn build(manifest: &str, binary: &str, target: &Path) -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join(manifest);
    eprintln!("building {binary}");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--release", "--locked", "--bin", binary, "--manifest-path"])
        .arg(manifest)
        .arg("--target-dir")
        .arg(target)
        .status()
        .expect("Cargo starts");
    assert!(built.success(), "{binary} does not build");
    target.join("release").join(binary)
}

fn which(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// What one life of a process cost: from its start to its first `next`, its first call, and the calls after that.
struct Run {
    init: Cost,
    first: Cost,
    warm: Cost,
    init_memory: u64,
    memory: u64,
}

impl Run {
    fn handshakes(&self) -> u64 {
        [self.init, self.first, self.warm].iter().map(|stage| stage.traffic.handshakes).sum()
    }
}

#[derive(Clone, Copy)]
struct Cost {
    wall: Duration,
    cpu: Duration,
    traffic: Traffic,
}

async fn run(contestant: &Contestant, world: &World) -> Run {
    let api = RuntimeApi::start().await;
    let mut meter = Meter::start(world);
    let process = Bootstrap::spawn(&contestant.binary, contestant.variables.clone(), &api);
    or_explain(api.ready(), &process).await;
    let init = meter.lap(&process);
    let init_memory = process.peak_memory();

    let mut calls = Calls::default();
    call(&mut calls, &api, &process).await;
    let first = meter.lap(&process);

    for _ in 0..WARM_CALLS {
        call(&mut calls, &api, &process).await;
    }
    let warm = meter.lap(&process);
    Run { init, first, warm, init_memory, memory: process.peak_memory() }
}

/// One credit, from the event to the moment when the process asks for another: what it does after its answer counts, too.
async fn call(calls: &mut Calls, api: &RuntimeApi, process: &Bootstrap) {
    let event = calls.next().expect("there is always another call");
    let answer = or_explain(api.invoke(&event, DEADLINE), process).await;
    assert_eq!((&answer["statusCode"], &answer["body"]), (&json!(200), &json!("ok")), "{}", process.output());
    or_explain(api.idle(), process).await;
}

async fn or_explain<T>(step: impl Future<Output = Result<T, runtime_api::InvokeError>>, process: &Bootstrap) -> T {
    step.await.unwrap_or_else(|error| panic!("{error}; its output:\n{}", process.output()))
}

/// Takes the time, the processor time and the traffic since its last lap.
struct Meter<'a> {
    world: &'a World,
    started: Instant,
    cpu: Duration,
    traffic: Traffic,
}

impl<'a> Meter<'a> {
    fn start(world: &'a World) -> Self {
        Self { world, started: Instant::now(), cpu: Duration::ZERO, traffic: world.traffic() }
    }

    fn lap(&mut self, process: &Bootstrap) -> Cost {
        let last =
            Self { world: self.world, started: Instant::now(), cpu: process.cpu(), traffic: self.world.traffic() };
        let before = std::mem::replace(self, last);
        Cost {
            wall: self.started - before.started,
            cpu: self.cpu - before.cpu,
            traffic: self.traffic.since(before.traffic),
        }
    }
}

/// Instructions of the whole init, of that and the first call, and of one warm call.
struct Instructions {
    init: f64,
    cold_start: f64,
    warm: f64,
}

/// Counts by lives that differ in nothing but the number of calls.
async fn count(valgrind: &Path, contestant: &Contestant, world: &World) -> Instructions {
    let init = callgrind(valgrind, contestant, world, 0).await;
    let one = callgrind(valgrind, contestant, world, 1).await;
    let many = callgrind(valgrind, contestant, world, 1 + COUNTED_CALLS).await;
    Instructions { init, cold_start: one, warm: (many - one) / COUNTED_CALLS as f64 }
}

async fn callgrind(valgrind: &Path, contestant: &Contestant, world: &World, number: usize) -> f64 {
    let profile = world.path("callgrind.out");
    let mut command = tokio::process::Command::new(valgrind);
    command.args(["--tool=callgrind", "--quiet"]);
    command.arg(format!("--callgrind-out-file={profile}")).arg(&contestant.binary);
    let api = RuntimeApi::start().await;
    let mut process = Bootstrap::spawn_command(command, contestant.variables.clone(), &api);
    or_explain(api.ready(), &process).await;
    let mut calls = Calls::default();
    for _ in 0..number {
        call(&mut calls, &api, &process).await;
    }
    // Callgrind writes its count when the process ends, which a SIGKILL would not let it do.
    kill(process.pid(), Signal::SIGTERM).expect("the process lives");
    process.ended().await;
    let profile = fs::read_to_string(profile).expect("callgrind has written its profile");
    let total = profile.lines().find_map(|line| line.strip_prefix("totals: ")).expect("a profile has a total");
    total.trim().parse().expect("the total is a number")
}

/// Signed credits of one user after the other, each another one, as function URL events.
#[derive(Default)]
struct Calls {
    made: usize,
}

impl Iterator for Calls {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        self.made += 1;
        let (n, user) = (self.made, self.made % 100);
        let query = format!(
            "user_id=user-{user}&trans_id=7f3a91c2-{n:06}&status=credited&currency_amount=1250.50&offer_id=48213\
             &offer_name=Reach%20level%2020%20in%20Castle%20Story&payout=1.75&goal_id=level-20&timestamp=17350{n:05}"
        );
        let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).expect("HMAC takes a key of any length");
        mac.update(query.as_bytes());
        let query = format!("{query}&signature={}", hex::encode(mac.finalize().into_bytes()));
        let domain = "abcdefghijklmnopqrstuvwxyz012345.lambda-url.eu-west-1.on.aws";
        let parameters: BTreeMap<_, _> = query.split('&').filter_map(|pair| pair.split_once('=')).collect();
        let event = json!({
            "version": "2.0",
            "routeKey": "$default",
            "rawPath": "/standard",
            "rawQueryString": query,
            "headers": {
                "accept": "*/*",
                "host": domain,
                "user-agent": "offer-network/1.0",
                "x-amzn-trace-id": "Root=1-65a1b2c3-0123456789abcdef01234567",
                "x-forwarded-for": "203.0.113.7",
                "x-forwarded-port": "443",
                "x-forwarded-proto": "https"
            },
            "queryStringParameters": parameters,
            "requestContext": {
                "accountId": "anonymous",
                "apiId": "abcdefghijklmnopqrstuvwxyz012345",
                "domainName": domain,
                "domainPrefix": "abcdefghijklmnopqrstuvwxyz012345",
                "http": {
                    "method": "GET",
                    "path": "/standard",
                    "protocol": "HTTP/1.1",
                    "sourceIp": "203.0.113.7",
                    "userAgent": "offer-network/1.0"
                },
                "requestId": format!("5c6f7d0e-1111-4222-8333-{n:012}"),
                "routeKey": "$default",
                "stage": "$default",
                "time": "24/Dec/2024:00:00:00 +0000",
                "timeEpoch": 1_734_998_400_000_u64
            },
            "isBase64Encoded": false
        });
        Some(event.to_string())
    }
}

/// What the endpoint shows to be trusted, made anew each time. DynamoDB's own chain is of RSA and one certificate longer,
/// which costs a client about the same.
struct Identity {
    /// The root, as PEM.
    root: String,
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl Identity {
    fn new() -> Self {
        let (root_key, key) = (KeyPair::generate().expect("a key"), KeyPair::generate().expect("a key"));
        let mut root = CertificateParams::default();
        root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root_pem = root.self_signed(&root_key).expect("a root certificate").pem();
        let leaf = CertificateParams::new(["localhost".to_owned()]).expect("localhost is a name");
        let certificate = leaf.signed_by(&key, &Issuer::new(root, root_key)).expect("a certificate");
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        Self { root: root_pem, certificate: certificate.into(), key }
    }
}

/// The DynamoDB endpoint, and a folder with the certificates that make it trusted.
struct World {
    endpoint: String,
    counters: Arc<Counters>,
    folder: TempDir,
    has_system_roots: bool,
}

#[derive(Default)]
struct Counters {
    connections: AtomicU64,
    handshakes: AtomicU64,
    requests: AtomicU64,
}

#[derive(Clone, Copy)]
struct Traffic {
    connections: u64,
    handshakes: u64,
    requests: u64,
}

impl Traffic {
    fn since(self, before: Self) -> Self {
        Self {
            connections: self.connections - before.connections,
            handshakes: self.handshakes - before.handshakes,
            requests: self.requests - before.requests,
        }
    }
}

impl World {
    async fn start() -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        let identity = Identity::new();

        // The plain handler reads the system's roots at its start, so it gets them here as it would in Lambda.
        let system_roots =
            ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"]
                .into_iter()
                .find_map(|bundle| fs::read_to_string(bundle).ok());
        fs::write(folder.path().join("test-ca.pem"), &identity.root).expect("a writable folder");
        let all_roots = format!("{}{}", system_roots.as_deref().unwrap_or_default(), identity.root);
        fs::write(folder.path().join("all-ca.pem"), all_roots).expect("a writable folder");

        let tls = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|tls| tls.with_no_client_auth().with_single_cert(vec![identity.certificate], identity.key))
            .expect("a TLS configuration");
        let tcp = TcpListener::bind("127.0.0.1:0").await.expect("a loopback port");
        let endpoint =
            format!("https://localhost:{}", tcp.local_addr().expect("a bound listener has an address").port());
        let counters = Arc::<Counters>::default();
        let listener = TlsListener { tcp, tls: TlsAcceptor::from(Arc::new(tls)), counters: counters.clone() };
        let requests = counters.clone();
        let router = Router::new().fallback(async move || {
            requests.requests.fetch_add(1, Ordering::Relaxed);
            done()
        });
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { endpoint, counters, folder, has_system_roots: system_roots.is_some() }
    }

    fn path(&self, file: &str) -> String {
        let path = self.folder.path().join(file);
        path.into_os_string().into_string().expect("a temporary folder's name is Unicode")
    }

    fn variables<const N: usize>(&self, own: [(&str, &str); N]) -> Vec<(String, String)> {
        let shared = [
            ("TRANSACTIONS_TABLE", "transactions"),
            ("ACCOUNTS_TABLE", "accounts"),
            ("AWS_ENDPOINT_URL_DYNAMODB", &self.endpoint),
        ];
        shared.into_iter().chain(own).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    fn traffic(&self) -> Traffic {
        Traffic {
            connections: self.counters.connections.load(Ordering::Relaxed),
            handshakes: self.counters.handshakes.load(Ordering::Relaxed),
            requests: self.counters.requests.load(Ordering::Relaxed),
        }
    }
}

/// What DynamoDB answers to a transaction that went through.
fn done() -> impl IntoResponse {
    let headers = [
        ("content-type", "application/x-amz-json-1.0"),
        ("x-amzn-requestid", "B0NQ3C6PKL2M1H0F9E8D7C6B5AVV4KQNSO5AEMVJF66Q9ASUAAJG"),
        ("x-amz-crc32", "2745614147"),
    ];
    (headers, "{}")
}

struct TlsListener {
    tcp: TcpListener,
    tls: TlsAcceptor,
    counters: Arc<Counters>,
}

impl axum::serve::Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (stream, peer) = self.tcp.accept().await.expect("a loopback connection");
            self.counters.connections.fetch_add(1, Ordering::Relaxed);
            stream.set_nodelay(true).expect("a TCP stream takes TCP_NODELAY");
            match self.tls.accept(stream).await {
                Ok(stream) => {
                    self.counters.handshakes.fetch_add(1, Ordering::Relaxed);
                    return (stream, peer);
                }
                Err(error) => eprintln!("a TLS handshake failed: {error}"),
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.tcp.local_addr()
    }
}
