//! Structured logs on standard output: one JSON object a line, which CloudWatch Logs Insights reads field by field.
//!
//! Never holds a secret, a whole query or a signature: what is logged is chosen where it is logged, and what libraries say
//! below a warning is left out, since a runtime may log the events that it hands over. The line of a call is written at any
//! level, since CloudWatch counts it.

use std::io::{self, Write};
use std::sync::OnceLock;

use tracing::Level;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::Registry;
use tracing_subscriber::util::SubscriberInitExt;

/// Where the lines of calls go; nowhere in a process that does not log, such as a test.
static CALLS: OnceLock<fn() -> Box<dyn Write>> = OnceLock::new();

/// Sends the lines of calls somewhere.
pub(crate) fn send_calls(to: fn() -> Box<dyn Write>) {
    let _ = CALLS.set(to);
}

/// Writes the line of a call, which is made only where it goes somewhere.
pub(crate) fn call(line: impl FnOnce() -> String) {
    if let Some(to) = CALLS.get() {
        // In one piece, so that no other line comes in between. Nobody could be told that the output is gone.
        let _ = to().write_all((line() + "\n").as_bytes());
    }
}

/// Starts logging at `level` as JSON. Only the first call of a process counts.
pub fn start(level: Level) {
    send_calls(|| Box::new(io::stdout()));
    let format = tracing_subscriber::fmt::layer().json().flatten_event(true).with_target(false);
    start_as(level, format.with_current_span(false).with_span_list(false));
}

/// Starts logging at `level` in a format, and at no more than warnings what is not of this package.
pub(crate) fn start_as(level: Level, format: impl Layer<Registry> + Send + Sync) {
    let ours = [env!("CARGO_PKG_NAME"), "offerwall"];
    let filter = Targets::new().with_default(level.min(Level::WARN)).with_targets(ours.map(|target| (target, level)));
    // A process that logs already, such as a test, keeps its way of logging.
    let _ = tracing_subscriber::registry().with(format.with_filter(filter)).try_init();
}
