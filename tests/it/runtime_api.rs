//! The Lambda runtime API, served in this process, to drive a real bootstrap binary as Lambda would.
//!
//! One [`RuntimeApi`] is one execution environment: it has one process at a time, which answers one event after the
//! other. A process may be killed at any moment and the next one started on the same API. What the dead one held fails
//! as [`InvokeError::Gone`], for the caller to deliver again or not, as a network would; what it had not been given yet
//! waits for the next one. Environments that run side by side are several `RuntimeApi`s.
//!
//! It must never wait without a bound, leave a process behind, give an event to a dead process, or know what the
//! function does.

use std::collections::{HashMap, VecDeque};
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path as UrlPath, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use nix::time::clock_getcpuclockid;
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::NamedTempFile;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// How long a process may take to get ready, to come back for another event, or to end. It is generous, for a loaded
/// machine and for a process under an instrument; nothing but a failing test ever waits so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why an event was not answered, or why a process did not get ready for one.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum InvokeError {
    #[error("the function reported an error: {0}")]
    Function(Value),
    #[error("the process ended: {0}")]
    Gone(String),
    #[error("no answer within {0:?}")]
    Timeout(Duration),
}

/// One execution environment's runtime API on a loopback port, until it is dropped.
pub struct RuntimeApi {
    port: u16,
    environment: Environment,
    server: JoinHandle<()>,
}

/// What the API and its process know of each other. The lock inside the channel makes each step one act, and every
/// change wakes those who wait for one.
type Environment = Arc<watch::Sender<Situation>>;

#[derive(Default)]
struct Situation {
    /// The number of the newest process. It is part of the address that the process calls, so a request that an older
    /// one left in a socket buffer is told apart from the living one's.
    process: u64,
    phase: Phase,
    /// Whether the process asks for an event and there is none.
    waiting: bool,
    invocations: u64,
    queue: VecDeque<Invocation>,
    /// The events that the process holds, by request id.
    handed: HashMap<String, oneshot::Sender<Result<Value, InvokeError>>>,
}

#[derive(Default)]
enum Phase {
    #[default]
    Starting,
    Ready,
    Ended(InvokeError),
}

struct Invocation {
    id: String,
    event: String,
    deadline: SystemTime,
    answer: oneshot::Sender<Result<Value, InvokeError>>,
}

impl RuntimeApi {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a loopback port for the runtime API");
        let port = listener.local_addr().expect("a bound listener has an address").port();
        let listener = listener.tap_io(|stream| stream.set_nodelay(true).expect("a TCP stream takes TCP_NODELAY"));
        let environment = Environment::new(watch::Sender::default());
        let runtime = Router::new()
            .route("/invocation/next", get(next))
            .route("/invocation/{id}/response", post(response))
            .route("/invocation/{id}/error", post(error))
            .route("/init/error", post(init_error));
        let router = Router::new()
            .nest("/{process}/2018-06-01/runtime", runtime)
            .layer(DefaultBodyLimit::disable())
            .with_state(environment.clone());
        let server = tokio::spawn(async move { axum::serve(listener, router).await.expect("the runtime API serves") });
        Self { port, environment, server }
    }

    /// Waits until the newest process has asked for its first event, which is when its init is over.
    pub async fn ready(&self) -> Result<(), InvokeError> {
        self.reaches(|situation| match &situation.phase {
            Phase::Starting => None,
            Phase::Ready => Some(Ok(())),
            Phase::Ended(why) => Some(Err(why.clone())),
        })
        .await
    }

    /// Waits until the newest process asks for an event and there is none, which is when nothing is left to be done.
    #[allow(dead_code, reason = "only the benchmark measures")]
    pub async fn idle(&self) -> Result<(), InvokeError> {
        self.reaches(|situation| match &situation.phase {
            Phase::Ended(why) => Some(Err(why.clone())),
            _ => situation.waiting.then_some(Ok(())),
        })
        .await
    }

    /// Hands an event to the process, after those before it, and returns its answer. An event that no process has asked
    /// for when the deadline has passed is withdrawn; one that a process still works on then stays with it,
    /// unheard.
    pub async fn invoke(&self, event: &str, deadline: Duration) -> Result<Value, InvokeError> {
        let (answer, answered) = oneshot::channel();
        self.environment.send_modify(|situation| {
            situation.invocations += 1;
            let id = format!("00000000-0000-4000-8000-{:012x}", situation.invocations);
            let deadline = SystemTime::now() + deadline;
            situation.queue.push_back(Invocation { id, event: event.to_owned(), deadline, answer });
        });
        match timeout(deadline, answered).await {
            Ok(answer) => answer.expect("an event is dropped only when its caller is gone"),
            Err(_) => Err(InvokeError::Timeout(deadline)),
        }
    }

    async fn reaches<T>(
        &self,
        mut arrived: impl FnMut(&Situation) -> Option<Result<T, InvokeError>>,
    ) -> Result<T, InvokeError> {
        let mut result = None;
        let mut situation = self.environment.subscribe();
        let reached = situation.wait_for(|situation| {
            result = arrived(situation);
            result.is_some()
        });
        match timeout(PATIENCE, reached).await {
            Ok(_) => result.expect("the situation was reached"),
            Err(_) => Err(InvokeError::Timeout(PATIENCE)),
        }
    }
}

impl Drop for RuntimeApi {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn next(State(environment): State<Environment>, UrlPath(process): UrlPath<u64>) -> Response {
    let mut changes = environment.subscribe();
    loop {
        let mut taken = None;
        environment.send_if_modified(|situation| {
            if process != situation.process || matches!(situation.phase, Phase::Ended(_)) {
                taken = Some(Err(StatusCode::GONE));
                return false;
            }
            situation.queue.retain(|invocation| !invocation.answer.is_closed());
            let was_waiting = situation.waiting;
            let was_ready = matches!(situation.phase, Phase::Ready);
            situation.phase = Phase::Ready;
            situation.waiting = situation.queue.is_empty();
            if let Some(Invocation { id, event, deadline, answer }) = situation.queue.pop_front() {
                situation.handed.insert(id.clone(), answer);
                taken = Some(Ok((id, event, deadline)));
            }
            !was_ready || was_waiting != situation.waiting
        });
        match taken {
            Some(Ok((id, event, deadline))) => return invocation(id, event, deadline),
            Some(Err(status)) => return status.into_response(),
            None => changes.changed().await.expect("the environment outlives its requests"),
        }
    }
}

fn invocation(id: String, event: String, deadline: SystemTime) -> Response {
    let deadline = deadline.duration_since(UNIX_EPOCH).expect("the clock is past 1970").as_millis();
    let headers = [
        ("content-type", "application/json".to_owned()),
        ("lambda-runtime-aws-request-id", id),
        ("lambda-runtime-deadline-ms", deadline.to_string()),
        ("lambda-runtime-invoked-function-arn", "arn:aws:lambda:eu-west-1:123456789012:function:postback".to_owned()),
        ("lambda-runtime-trace-id", "Root=1-65a1b2c3-0123456789abcdef01234567;Sampled=0".to_owned()),
    ];
    (headers, event).into_response()
}

async fn response(
    State(environment): State<Environment>,
    UrlPath((process, id)): UrlPath<(u64, String)>,
    body: Bytes,
) -> StatusCode {
    answer(&environment, process, &id, Ok(json(&body)))
}

async fn error(
    State(environment): State<Environment>,
    UrlPath((process, id)): UrlPath<(u64, String)>,
    body: Bytes,
) -> StatusCode {
    answer(&environment, process, &id, Err(InvokeError::Function(json(&body))))
}

async fn init_error(State(environment): State<Environment>, UrlPath(process): UrlPath<u64>, body: Bytes) -> StatusCode {
    environment.end(process, InvokeError::Function(json(&body)));
    StatusCode::ACCEPTED
}

fn answer(environment: &Environment, process: u64, id: &str, answer: Result<Value, InvokeError>) -> StatusCode {
    let mut caller = None;
    environment.send_if_modified(|situation| {
        if process == situation.process {
            caller = situation.handed.remove(id);
        }
        false
    });
    // A caller that went away is no fault of the function's.
    match caller.map(|caller| caller.send(answer)) {
        Some(_) => StatusCode::ACCEPTED,
        None => StatusCode::GONE,
    }
}

/// A body as JSON, or as a JSON string when it is none.
fn json(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap_or_else(|_| Value::String(String::from_utf8_lossy(body).into_owned()))
}

/// What happens to a process as a whole.
trait Lifecycle {
    fn admit(&self) -> u64;
    fn end(&self, process: u64, why: InvokeError);
}

impl Lifecycle for Environment {
    /// Makes room for another process and returns its number.
    fn admit(&self) -> u64 {
        let mut process = 0;
        self.send_modify(|situation| {
            let occupied = situation.process > 0 && !matches!(situation.phase, Phase::Ended(_));
            assert!(!occupied, "an execution environment has one process at a time: kill the old one first");
            situation.process += 1;
            situation.phase = Phase::Starting;
            process = situation.process;
        });
        process
    }

    /// Closes the door behind a process, and fails what it held. Its first reason stands.
    fn end(&self, process: u64, why: InvokeError) {
        self.send_modify(|situation| {
            if process != situation.process || matches!(situation.phase, Phase::Ended(_)) {
                return;
            }
            for (_, caller) in situation.handed.drain() {
                // A caller that went away needs no reason.
                let _ = caller.send(Err(why.clone()));
            }
            situation.waiting = false;
            situation.phase = Phase::Ended(why);
        });
    }
}

/// A bootstrap binary that runs on a [`RuntimeApi`]. It is killed when this is dropped.
pub struct Bootstrap {
    pid: Pid,
    /// Dropping it kills the process.
    kill: Option<oneshot::Sender<()>>,
    ended: watch::Receiver<bool>,
    log: NamedTempFile,
}

impl Bootstrap {
    /// Starts a binary with these variables, Lambda's own, and no others.
    pub fn spawn<K: AsRef<OsStr>, V: AsRef<OsStr>>(
        binary: &Path,
        variables: impl IntoIterator<Item = (K, V)>,
        api: &RuntimeApi,
    ) -> Self {
        Self::spawn_command(Command::new(binary), variables, api)
    }

    /// The same for a whole command, such as an instrument that runs the binary inside itself.
    pub fn spawn_command<K: AsRef<OsStr>, V: AsRef<OsStr>>(
        mut command: Command,
        variables: impl IntoIterator<Item = (K, V)>,
        api: &RuntimeApi,
    ) -> Self {
        let log = NamedTempFile::new().expect("a temporary file for the process's output");
        let output = log.reopen().expect("the log opens again");
        let process = api.environment.admit();
        command
            .env_clear()
            .env("AWS_LAMBDA_RUNTIME_API", format!("http://127.0.0.1:{}/{process}", api.port))
            .env("AWS_LAMBDA_FUNCTION_NAME", "postback")
            .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "256")
            .env("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST")
            .env("AWS_REGION", "eu-west-1")
            .env("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
            .env("AWS_SECRET_ACCESS_KEY", "a dummy secret key")
            .env("AWS_SESSION_TOKEN", "a-dummy-session-token")
            .envs(variables)
            .stdin(std::process::Stdio::null())
            .stdout(output.try_clone().expect("the log opens once more"))
            .stderr(output)
            .kill_on_drop(true);
        let child = command.spawn().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        let pid = child.id().expect("a child that was not awaited has a pid");
        let pid = Pid::from_raw(pid.try_into().expect("a pid is small"));
        let (kill, killed) = oneshot::channel();
        let (has_ended, ended) = watch::channel(false);
        tokio::spawn(attend(child, killed, has_ended, process, api.environment.clone()));
        Self { pid, kill: Some(kill), ended, log }
    }

    #[allow(dead_code, reason = "only the benchmark measures")]
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// SIGKILL, in the middle of whatever it does, and waits until it is gone.
    pub async fn kill(&mut self) {
        drop(self.kill.take());
        self.ended().await;
    }

    /// Waits until the process has ended by itself.
    pub async fn ended(&mut self) {
        let ended = timeout(PATIENCE, self.ended.wait_for(|ended| *ended)).await;
        // A closed channel is an end, too: the runtime that attended the process has stopped, and killed it.
        assert!(ended.is_ok(), "the process {} does not end", self.pid);
    }

    /// What the process has written so far, standard output and error together.
    pub fn output(&self) -> String {
        let output = fs::read(self.log.path()).expect("the log is readable");
        String::from_utf8_lossy(&output).into_owned()
    }

    /// The time that all its threads, ended ones too, have spent on a processor, in user and kernel.
    #[allow(dead_code, reason = "only the benchmark measures")]
    pub fn cpu(&self) -> Duration {
        let clock = clock_getcpuclockid(self.pid).expect("the process lives");
        clock.now().expect("a process's clock can be read").into()
    }

    /// The most memory that it has held at once, in bytes: the high-water mark of its resident set.
    #[allow(dead_code, reason = "only the benchmark measures")]
    pub fn peak_memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).expect("the process lives");
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a living process has memory");
        let kilobytes: u64 = peak.trim_end_matches("kB").trim().parse().expect("VmHWM is a number of kB");
        kilobytes * 1024
    }
}

/// Stays with a process to its end, which comes by itself or by the other half of `killed` being dropped.
async fn attend(
    mut child: Child,
    killed: oneshot::Receiver<()>,
    has_ended: watch::Sender<bool>,
    process: u64,
    environment: Environment,
) {
    let by_itself = tokio::select! {
        status = child.wait() => Some(status),
        _ = killed => None,
    };
    let status = match by_itself {
        Some(status) => status,
        None => {
            child.start_kill().expect("a child that was not awaited can be killed");
            child.wait().await
        }
    };
    let status = status.expect("a child of ours can be awaited");
    environment.end(process, InvokeError::Gone(status.to_string()));
    has_ended.send_replace(true);
}
