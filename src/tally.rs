//! What a call asks of DynamoDB, counted where each request leaves for it.
//!
//! A count belongs to the task of its call, so that calls side by side do not share one, and that nothing on the way has to
//! hand it on. It sees every attempt, the SDK's own too. It must never change a request or its fate.

use std::cell::Cell;

use aws_sdk_dynamodb::config::interceptors::BeforeTransmitInterceptorContextRef;
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::BoxError;

/// What a call has asked for so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests to DynamoDB, each attempt for itself.
    pub requests: u32,
    /// Postings that were tried again because another one was in their way.
    pub retries: u32,
}

tokio::task_local! {
    static CALL: Cell<Tally>;
}

/// Does the work of a call, and counts.
pub async fn counted<T>(work: impl Future<Output = T>) -> (T, Tally) {
    // In a place of its own: a future that is handed on by value is kept twice, and this one is large.
    let work = Box::pin(work);
    CALL.scope(Cell::default(), async { (work.await, CALL.with(Cell::get)) }).await
}

/// Counts a posting that is tried again.
pub fn retry() {
    count(|tally| tally.retries += 1);
}

/// What is asked outside a call, such as while the function starts, is nobody's.
fn count(change: impl FnOnce(&mut Tally)) {
    let _ = CALL.try_with(|call| {
        let mut tally = call.get();
        change(&mut tally);
        call.set(tally);
    });
}

/// Counts the requests of the client that it is given to.
#[derive(Debug)]
pub struct Requests;

impl Intercept for Requests {
    fn name(&self) -> &'static str {
        "Requests"
    }

    fn read_before_transmit(
        &self,
        _: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        count(|tally| tally.requests += 1);
        Ok(())
    }
}
