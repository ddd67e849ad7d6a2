//! Structured logs on standard output: one JSON object a line, which CloudWatch Logs Insights reads field by field.
//!
//! Never holds a secret, a whole query or a signature; what is logged is chosen where it is logged.

use tracing::Level;

/// Starts logging at `level`. Only the first call of a process counts.
pub fn start(level: Level) {
    let subscriber = tracing_subscriber::fmt().json().flatten_event(true).with_max_level(level).with_target(false);
    // A process that logs already, such as a test, keeps its way of logging.
    let _ = subscriber.with_current_span(false).with_span_list(false).try_init();
}
