//! A DynamoDB that misbehaves: a proxy between the real `store.rs` and any DynamoDB endpoint, which
//! loses, cuts, delays and refuses on demand, and writes down every request with what became of it.
//!
//! It works on HTTP/1.1 over TCP, so the SDK above it is the real one with its own timeouts,
//! retries and pool of connections.
//!
//! It must never decide by chance or by the clock (a test that wants chance brings its own seeded
//! rule), never send a request to the database twice, never change what a request means (it only
//! asks for the consumed capacity on top), and never invent a fault of its own: if the database
//! itself cannot be reached, it panics with a clear line.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// What happens to one request. "AfterCommit" means that the database got the request and has
/// replied; the client never sees that reply. The other faults keep the request from the database,
/// except those that say otherwise.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// Passed on and answered.
    None,
    /// The connection is closed without a reply.
    LostBeforeCommit,
    LostAfterCommit,
    /// The connection is reset (RST) instead of a reply.
    Reset,
    ResetAfterCommit,
    /// Passed on; the client gets the head and half of the reply's body, then the connection is
    /// closed.
    CutReply,
    /// No reply for as long as the client keeps the connection open.
    Stall,
    StallAfterCommit,
    /// No reply either; the request reaches the database only once a later request has come to its
    /// end: a delayed copy that its own retry has overtaken. Without a later request it never
    /// arrives.
    Overtaken,
    /// This status, with the body DynamoDB sends with a 500 or a 503.
    Status(u16),
    StatusAfterCommit(u16),
    /// 400 and this error, such as `ThrottlingException`.
    Error(&'static str),
    /// `TransactionCanceledException`; one code for each item of the transaction, in order, such as
    /// `None` or `TransactionConflict`.
    Cancel(Vec<&'static str>),
    /// The same; a reason may carry the stored item in DynamoDB's JSON, as `ALL_OLD` asks for.
    CancelWith(Vec<(&'static str, Option<Value>)>),
    /// Passed on and answered; then the server closes the idle connection, unannounced.
    CloseIdle,
    /// 200 and a body that is not JSON.
    Garbage,
    GarbageAfterCommit,
}

impl Fault {
    /// One or more of every kind, for a matrix; the cancellations are for a transaction of two
    /// items.
    pub fn all() -> Vec<Fault> {
        std::iter::successors(Some(Fault::None), Fault::next).collect()
    }

    /// A match without a wildcard, so that a new kind cannot be left out of the matrix.
    fn next(&self) -> Option<Fault> {
        Some(match self {
            Fault::None => Fault::LostBeforeCommit,
            Fault::LostBeforeCommit => Fault::LostAfterCommit,
            Fault::LostAfterCommit => Fault::Reset,
            Fault::Reset => Fault::ResetAfterCommit,
            Fault::ResetAfterCommit => Fault::CutReply,
            Fault::CutReply => Fault::Stall,
            Fault::Stall => Fault::StallAfterCommit,
            Fault::StallAfterCommit => Fault::Overtaken,
            Fault::Overtaken => Fault::Status(500),
            Fault::Status(500) => Fault::Status(503),
            Fault::Status(_) => Fault::StatusAfterCommit(500),
            Fault::StatusAfterCommit(500) => Fault::StatusAfterCommit(503),
            Fault::StatusAfterCommit(_) => Fault::Error("ThrottlingException"),
            Fault::Error("ThrottlingException") => Fault::Error("ProvisionedThroughputExceededException"),
            Fault::Error("ProvisionedThroughputExceededException") => Fault::Error("TransactionInProgressException"),
            Fault::Error("TransactionInProgressException") => Fault::Error("AccessDeniedException"),
            Fault::Error(_) => Fault::Cancel(vec!["None", "TransactionConflict"]),
            Fault::Cancel(codes) if codes[0] == "None" => Fault::Cancel(vec!["ThrottlingError", "TransactionConflict"]),
            Fault::Cancel(_) => Fault::CancelWith(vec![("ValidationError", None), ("None", None)]),
            Fault::CancelWith(_) => Fault::CloseIdle,
            Fault::CloseIdle => Fault::Garbage,
            Fault::Garbage => Fault::GarbageAfterCommit,
            Fault::GarbageAfterCommit => return None,
        })
    }

    /// Whether the request reaches the database (which may still refuse it).
    pub fn reaches_database(&self) -> bool {
        match self {
            Fault::None | Fault::CloseIdle | Fault::CutReply | Fault::Overtaken => true,
            Fault::LostAfterCommit | Fault::ResetAfterCommit | Fault::StallAfterCommit => true,
            Fault::StatusAfterCommit(_) | Fault::GarbageAfterCommit => true,
            Fault::LostBeforeCommit | Fault::Reset | Fault::Stall | Fault::Status(_) => false,
            Fault::Error(_) | Fault::Cancel(_) | Fault::CancelWith(_) | Fault::Garbage => false,
        }
    }

    /// The reply that the proxy makes up, for the faults that have one.
    fn reply(&self) -> Option<Message> {
        Some(match self {
            Fault::Status(code) | Fault::StatusAfterCommit(code) => match code {
                500 => error(500, "InternalServerError", MADE_UP, json!({})),
                _ => error(*code, "ServiceUnavailable", MADE_UP, json!({})),
            },
            Fault::Error(name) => error(400, name, MADE_UP, json!({})),
            Fault::Cancel(codes) => cancelled(&codes.iter().map(|code| (*code, None)).collect::<Vec<_>>()),
            Fault::CancelWith(reasons) => cancelled(reasons),
            Fault::Garbage | Fault::GarbageAfterCommit => reply(200, b"<html>not DynamoDB</html>".to_vec()),
            _ => return None,
        })
    }
}

/// A request as it arrived, and what became of it.
#[derive(Clone, Debug)]
pub struct Request {
    /// `TransactWriteItems`, `Query`, ...
    pub operation: String,
    /// As the client sent it; null if it was not JSON.
    pub body: Value,
    pub fault: Fault,
    /// The status that the client was sent, also with a reply that was cut; none for no reply.
    pub status: Option<u16>,
    /// The status that the database replied with; none as long as the request has not reached it.
    pub database: Option<u16>,
    /// What the database says it cost. It says so for successes only: AWS charges for failed
    /// conditions too.
    pub capacity: Vec<Capacity>,
}

/// What one request cost on one table, its indexes included.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Capacity {
    pub table: String,
    pub read: f64,
    pub write: f64,
    /// The part of it that each index took.
    pub indexes: BTreeMap<String, f64>,
}

impl Request {
    /// All write units, of all tables and indexes.
    pub fn write_units(&self) -> f64 {
        self.capacity.iter().fold(0.0, |sum, table| sum + table.write)
    }
}

/// The running proxy. It ends, with all its connections, when it is dropped.
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl Proxy {
    pub async fn start(upstream: SocketAddr) -> Proxy {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port on the loopback interface");
        let address = listener.local_addr().expect("a bound socket has an address");
        let plan: Mutex<Plan> = Mutex::new(Box::new(|_| Fault::None));
        let shared = Arc::new(Shared { upstream, plan, log: watch::Sender::new(Log::default()) });
        let task = tokio::spawn(accept(listener, shared.clone()));
        Proxy { address, shared, task }
    }

    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The next requests meet these faults, in order; every one after them is clean.
    pub fn script(&self, faults: impl IntoIterator<Item = Fault>) {
        let mut faults: VecDeque<Fault> = faults.into_iter().collect();
        self.plan(move |_| faults.pop_front().unwrap_or(Fault::None));
    }

    /// A rule for every request from now on, in the place of the script or rule before it.
    pub fn plan(&self, plan: impl FnMut(&Request) -> Fault + Send + 'static) {
        *self.shared.plan.lock().unwrap() = Box::new(plan);
    }

    /// Every request in the order of arrival, also those that have no reply yet.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.log.borrow().requests.clone()
    }

    /// The same, and forget them.
    pub fn take(&self) -> Vec<Request> {
        let mut taken = Vec::new();
        self.shared.log.send_modify(|log| {
            taken = std::mem::take(&mut log.requests);
            log.forgotten += taken.len();
        });
        taken
    }

    /// Waits until this many requests have come since the proxy started.
    pub async fn reached(&self, count: usize) {
        self.shared.wait(|log| log.forgotten + log.requests.len() >= count).await;
    }

    /// Waits until a request of this operation is among those that nobody took.
    pub async fn asked_for(&self, operation: &str) {
        self.shared.wait(|log| log.requests.iter().any(|request| request.operation == operation)).await;
    }

    /// How many connections were opened, and how many requests came on each.
    pub fn connections(&self) -> Vec<usize> {
        self.shared.log.borrow().connections.clone()
    }

    /// Waits until no request is under way: what was passed on has been answered by the database,
    /// and no client waits for a stalled reply.
    pub async fn settled(&self) {
        self.shared.wait(|log| log.under_way.is_empty()).await;
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

type Plan = Box<dyn FnMut(&Request) -> Fault + Send>;

struct Shared {
    upstream: SocketAddr,
    plan: Mutex<Plan>,
    log: watch::Sender<Log>,
}

#[derive(Default)]
struct Log {
    requests: Vec<Request>,
    /// How many requests were taken out: the number of the first one in `requests`.
    forgotten: usize,
    /// The numbers of the requests that have not come to their end.
    under_way: BTreeSet<usize>,
    /// One more than the highest number that has come to its end.
    ended: usize,
    connections: Vec<usize>,
}

impl Shared {
    async fn wait(&self, condition: impl FnMut(&Log) -> bool) {
        self.log.subscribe().wait_for(condition).await.expect("the sender is in self");
    }

    /// Chooses the fault and writes the request down, under one lock, so that the log has the order
    /// of the script.
    fn arrived(&self, connection: usize, message: &Message) -> (usize, Fault) {
        let mut plan = self.plan.lock().unwrap();
        let operation = message.operation().to_owned();
        let body = serde_json::from_slice(&message.body).unwrap_or(Value::Null);
        let mut request =
            Request { operation, body, fault: Fault::None, status: None, database: None, capacity: Vec::new() };
        request.fault = plan(&request);
        let fault = request.fault.clone();
        let mut id = 0;
        self.log.send_modify(|log| {
            id = log.forgotten + log.requests.len();
            log.requests.push(request);
            log.under_way.insert(id);
            log.connections[connection] += 1;
        });
        (id, fault)
    }

    fn note(&self, id: usize, note: impl FnOnce(&mut Request)) {
        self.log.send_modify(|log| {
            if let Some(request) = id.checked_sub(log.forgotten).and_then(|place| log.requests.get_mut(place)) {
                note(request);
            }
        });
    }

    /// Sends the request to the database, on a connection of its own, and waits for the reply.
    async fn forward(&self, id: usize, message: &Message) -> Message {
        let mut message = message.clone();
        if metered(message.operation())
            && let Ok(Value::Object(mut body)) = serde_json::from_slice(&message.body)
        {
            body.insert("ReturnConsumedCapacity".into(), "INDEXES".into());
            message.body = Value::Object(body).to_string().into_bytes();
        }
        message.headers.push(("connection".into(), "close".into()));
        let exchange = async {
            let mut upstream = BufReader::new(TcpStream::connect(self.upstream).await?);
            upstream.write_all(&message.bytes()).await?;
            read_message(&mut upstream).await?.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))
        };
        let reply = exchange
            .await
            .unwrap_or_else(|e| panic!("faults.rs: the database at {} does not answer: {e}", self.upstream));
        self.note(id, |request| {
            request.database = reply.status();
            request.capacity = capacity(&reply.body, reads(&request.operation));
        });
        reply
    }
}

/// A request from its arrival to its end, however it ends.
struct UnderWay<'a>(&'a Shared, usize);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.log.send_modify(|log| {
            log.under_way.remove(&self.1);
            log.ended = log.ended.max(self.1 + 1);
        });
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.expect("the listener accepts");
        let mut number = 0;
        shared.log.send_modify(|log| {
            number = log.connections.len();
            log.connections.push(0);
        });
        connections.spawn(serve(shared.clone(), stream, number));
    }
}

/// One connection until either side closes it. An error is the client that went away, which is its
/// right.
async fn serve(shared: Arc<Shared>, stream: TcpStream, number: usize) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut client = BufReader::new(stream);
    while let Some(message) = read_message(&mut client).await? {
        let (id, fault) = shared.arrived(number, &message);
        let _under_way = UnderWay(&shared, id);
        if !exchange(&shared, &mut client, id, &fault, &message).await? {
            break;
        }
    }
    Ok(())
}

/// One request with its fault. Tells whether the connection goes on.
async fn exchange(
    shared: &Shared,
    client: &mut BufReader<TcpStream>,
    id: usize,
    fault: &Fault,
    message: &Message,
) -> io::Result<bool> {
    if *fault == Fault::Overtaken {
        shared.wait(|log| log.ended > id + 1).await;
    }
    let mut reply = fault.reply();
    if fault.reaches_database() {
        let genuine = shared.forward(id, message).await;
        reply = reply.or(Some(genuine));
    }
    match fault {
        Fault::LostBeforeCommit | Fault::LostAfterCommit => return Ok(false),
        Fault::Reset | Fault::ResetAfterCommit => {
            return client.get_ref().set_zero_linger().map(|()| false);
        }
        Fault::Stall | Fault::StallAfterCommit | Fault::Overtaken => {
            tokio::io::copy(client, &mut tokio::io::sink()).await?;
            return Ok(false);
        }
        _ => {}
    }
    let reply = reply.expect("every other fault has a reply");
    let mut bytes = reply.bytes();
    if *fault == Fault::CutReply {
        bytes.truncate(bytes.len() - reply.body.len().div_ceil(2));
    }
    shared.note(id, |request| request.status = reply.status());
    client.write_all(&bytes).await?;
    Ok(!matches!(fault, Fault::CutReply | Fault::CloseIdle))
}

/// Whether the operation reports what it consumed: those on items, PartiQL's included.
fn metered(operation: &str) -> bool {
    let endings = ["Item", "Items", "Query", "Scan", "Statement", "Transaction"];
    endings.iter().any(|ending| operation.ends_with(ending))
}

/// Whether it only reads. (PartiQL may do either: it counts as writing where the reply does not
/// tell.)
fn reads(operation: &str) -> bool {
    operation.contains("Get") || ["Query", "Scan"].contains(&operation)
}

/// A reply has one report or a list of one per table; only transactions tell read from write units.
fn capacity(reply: &[u8], reads: bool) -> Vec<Capacity> {
    let reply: Value = serde_json::from_slice(reply).unwrap_or(Value::Null);
    let reports = match &reply["ConsumedCapacity"] {
        Value::Array(reports) => reports.as_slice(),
        Value::Null => &[],
        report => std::slice::from_ref(report),
    };
    let units = |detail: &Value, kind: &str| detail[kind].as_f64();
    reports
        .iter()
        .map(|report| {
            let (mut read, mut write) = (units(report, "ReadCapacityUnits"), units(report, "WriteCapacityUnits"));
            if (read, write) == (None, None) {
                *(if reads { &mut read } else { &mut write }) = units(report, "CapacityUnits");
            }
            let indexes = ["GlobalSecondaryIndexes", "LocalSecondaryIndexes"].into_iter();
            let indexes = indexes.filter_map(|kind| report[kind].as_object()).flatten();
            let indexes = indexes.map(|(name, detail)| (name.clone(), units(detail, "CapacityUnits").unwrap_or(0.0)));
            Capacity {
                table: report["TableName"].as_str().unwrap_or_default().to_owned(),
                read: read.unwrap_or(0.0),
                write: write.unwrap_or(0.0),
                indexes: indexes.collect(),
            }
        })
        .collect()
}

/// The text of errors, where nobody may depend on DynamoDB's own words.
const MADE_UP: &str = "made up by tests/it/faults.rs";

/// The reasons and the message in the shape that DynamoDB gives them.
fn cancelled(reasons: &[(&'static str, Option<Value>)]) -> Message {
    let codes = reasons.iter().map(|(code, _)| *code).collect::<Vec<_>>().join(", ");
    let reasons = reasons.iter().map(|(code, item)| {
        let mut reason = json!({ "Code": code });
        if let Some(item) = item {
            reason["Item"] = item.clone();
        }
        let message = match *code {
            "None" => return reason,
            "ConditionalCheckFailed" => "The conditional request failed",
            "TransactionConflict" => "Transaction is ongoing for the item",
            "ThrottlingError" => "Throughput exceeds the current capacity of your table or index.",
            _ => MADE_UP,
        };
        reason["Message"] = message.into();
        reason
    });
    let reasons = json!({ "CancellationReasons": reasons.collect::<Vec<_>>() });
    let message = format!("Transaction cancelled, please refer cancellation reasons for specific reasons [{codes}]");
    error(400, "TransactionCanceledException", &message, reasons)
}

/// DynamoDB's error body. Its errors about transactions spell `Message` with a capital.
fn error(status: u16, name: &str, message: &str, mut body: Value) -> Message {
    body["__type"] = format!("com.amazonaws.dynamodb.v20120810#{name}").into();
    body[if name.starts_with("Transaction") { "Message" } else { "message" }] = message.into();
    reply(status, body.to_string().into_bytes())
}

fn reply(status: u16, body: Vec<u8>) -> Message {
    let headers = vec![("content-type".to_owned(), "application/x-amz-json-1.0".to_owned())];
    Message { start: format!("HTTP/1.1 {status} made up"), headers, body }
}

/// An HTTP/1.1 request or reply, without the headers that belong to one connection.
#[derive(Clone)]
struct Message {
    start: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Message {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }

    /// Empty where the header is missing.
    fn operation(&self) -> &str {
        self.header("x-amz-target").and_then(|target| target.rsplit('.').next()).unwrap_or_default()
    }

    fn status(&self) -> Option<u16> {
        self.start.split(' ').nth(1)?.parse().ok()
    }

    fn bytes(&self) -> Vec<u8> {
        let headers: String = self.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let mut bytes = format!("{}\r\n{headers}content-length: {}\r\n\r\n", self.start, self.body.len()).into_bytes();
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

/// Reads one whole message, its body by length, in chunks or, for a reply with neither, to the end.
/// None when the peer has closed.
async fn read_message(stream: &mut BufReader<TcpStream>) -> io::Result<Option<Message>> {
    let start = read_line(stream).await?;
    if start.is_empty() {
        return Ok(None);
    }
    let mut message = Message { start, headers: Vec::new(), body: Vec::new() };
    loop {
        let line = read_line(stream).await?;
        let Some((name, value)) = line.split_once(':') else { break };
        message.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    if message.header("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
        loop {
            let size = read_line(stream).await?;
            let size = usize::from_str_radix(size.split(';').next().unwrap_or_default().trim(), 16)
                .map_err(io::Error::other)?;
            read_exact(stream, size, &mut message.body).await?;
            // A chunk is closed by an empty line; the last one may have trailers before it.
            while !read_line(stream).await?.is_empty() {
                if size > 0 {
                    return Err(io::Error::other("a chunk is longer than it says"));
                }
            }
            if size == 0 {
                break;
            }
        }
    } else if let Some(length) = message.header("content-length") {
        let length = length.parse().map_err(io::Error::other)?;
        read_exact(stream, length, &mut message.body).await?;
    } else if message.start.starts_with("HTTP/") {
        stream.read_to_end(&mut message.body).await?;
    }
    message.headers.retain(|(name, _)| !["connection", "content-length", "transfer-encoding"].contains(&name.as_str()));
    Ok(Some(message))
}

/// A line without its end; empty at the end of the stream too.
async fn read_line(stream: &mut BufReader<TcpStream>) -> io::Result<String> {
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

async fn read_exact(stream: &mut BufReader<TcpStream>, length: usize, body: &mut Vec<u8>) -> io::Result<()> {
    let start = body.len();
    body.resize(start + length, 0);
    stream.read_exact(&mut body[start..]).await.map(|_| ())
}
