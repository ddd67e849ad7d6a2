//! The offerwall postback as a competent team would write it from the documentation, for one network, and no more.
//!
//! The benchmark compares the real function with this one, so it must stay fair in both directions: the same check of the
//! same signature, the same one transaction with the same two writes, one log line a call, the same answers, the same
//! release profile. It must never learn the real one's tricks, nor be made slower than its authors would have left it.

use std::collections::HashMap;
use std::env;
use std::str::FromStr;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::DisplayErrorContext;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::error::TransactionCanceledException;
use aws_sdk_dynamodb::types::{AttributeValue, Put, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update};
use hmac::{Hmac, KeyInit, Mac};
use lambda_http::request::RequestContext;
use lambda_http::{Body, Error, Request, RequestExt, Response, run, service_fn, tracing};
use rust_decimal::Decimal;
use sha2::{Digest, Sha256};

struct App {
    dynamodb: Client,
    transactions: String,
    accounts: String,
    secret: String,
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let config = aws_config::load_from_env().await;
    let app = App {
        dynamodb: Client::new(&config),
        transactions: env::var("TRANSACTIONS_TABLE")?,
        accounts: env::var("ACCOUNTS_TABLE")?,
        secret: env::var("SECRET")?,
    };
    run(service_fn(|request: Request| postback(&app, request))).await
}

async fn postback(app: &App, request: Request) -> Result<Response<Body>, Error> {
    let query = request.uri().query().unwrap_or_default();
    if !verified(&app.secret, query) {
        return answer(403, "bad signature");
    }
    let Ok(parameters) = serde_urlencoded::from_str::<HashMap<String, String>>(query) else {
        return answer(400, "the query cannot be read");
    };
    for required in ["user_id", "trans_id", "status", "currency_amount"] {
        if parameters.get(required).is_none_or(String::is_empty) {
            return answer(400, &format!("{required} is missing"));
        }
    }
    let Ok(amount) = Decimal::from_str(&parameters["currency_amount"]) else {
        return answer(400, "currency_amount is not a number");
    };
    let amount = amount.trunc_with_scale(2);
    match parameters["status"].as_str() {
        "1" | "credited" | "approved" | "completed" => {}
        _ => return answer(400, "status is unknown"),
    }

    match credit(app, &request, &parameters, amount).await {
        Ok(true) => {
            tracing::info!(trans_id = parameters["trans_id"], %amount, "credited");
            answer(200, "ok")
        }
        Ok(false) => {
            tracing::info!(trans_id = parameters["trans_id"], %amount, "duplicate");
            answer(200, "ok (duplicate)")
        }
        Err(error) => {
            tracing::error!(error = %DisplayErrorContext(&*error), "the credit failed");
            answer(503, "try again")
        }
    }
}

/// Whether the query carries the signature of its own bytes without the signature.
fn verified(secret: &str, query: &str) -> bool {
    let mut signature = None;
    let mut signed = Vec::new();
    for pair in query.split('&') {
        match pair.strip_prefix("signature=") {
            Some(hex) => signature = hex::decode(hex).ok(),
            None => signed.push(pair),
        }
    }
    let Some(signature) = signature else { return false };
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes a key of any length");
    mac.update(signed.join("&").as_bytes());
    mac.verify_slice(&signature).is_ok()
}

/// Records the credit and pays it, in one transaction. False: it was there already.
async fn credit(
    app: &App,
    request: &Request,
    parameters: &HashMap<String, String>,
    amount: Decimal,
) -> Result<bool, Error> {
    let user_id = &parameters["user_id"];
    let trans_id = format!("standard/{}", parameters["trans_id"]);
    let received_at = jiff::Timestamp::now().to_string();
    let fingerprint = hex::encode(Sha256::digest(format!("{user_id}\n{trans_id}\n{amount}")));
    let shard = fingerprint.as_bytes()[0] % 8;

    let mut entry = Put::builder()
        .table_name(&app.transactions)
        .item("trans_id", text(&trans_id))
        .item("status", text("credit"))
        .item("network", text("standard"))
        .item("preset", text("standard"))
        .item("user_id", text(user_id))
        .item("currency", text("coins"))
        .item("amount", number(amount))
        .item("amount_received", text(&parameters["currency_amount"]))
        .item("received_at", text(&received_at))
        .item("network_day", text(&format!("standard#{}#{shard}", &received_at[..10])))
        .item("fingerprint", text(&fingerprint))
        .condition_expression("attribute_not_exists(trans_id)")
        .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
    for optional in ["offer_id", "offer_name", "goal_id"] {
        if let Some(value) = parameters.get(optional) {
            entry = entry.item(optional, text(value));
        }
    }
    if let Some(payout) = parameters.get("payout").and_then(|payout| Decimal::from_str(payout).ok()) {
        entry = entry.item("payout_usd", number(payout));
    }
    if let RequestContext::ApiGatewayV2(context) = request.request_context()
        && let Some(source_ip) = context.http.source_ip
    {
        entry = entry.item("source_ip", text(&source_ip));
    }
    let account = Update::builder()
        .table_name(&app.accounts)
        .key("user_id", text(user_id))
        .key("currency", text("coins"))
        .update_expression("ADD available :amount")
        .expression_attribute_values(":amount", number(amount));

    let sent = app
        .dynamodb
        .transact_write_items()
        .transact_items(TransactWriteItem::builder().put(entry.build()?).build())
        .transact_items(TransactWriteItem::builder().update(account.build()?).build())
        .send()
        .await
        .map_err(|error| error.into_service_error());
    match sent {
        Ok(_) => Ok(true),
        Err(TransactWriteItemsError::TransactionCanceledException(cancelled)) if already_there(&cancelled) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn already_there(cancelled: &TransactionCanceledException) -> bool {
    let entry = cancelled.cancellation_reasons().first();
    entry.and_then(|reason| reason.code()) == Some("ConditionalCheckFailed")
}

fn text(value: &str) -> AttributeValue {
    AttributeValue::S(value.to_owned())
}

fn number(value: Decimal) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

fn answer(status: u16, body: &str) -> Result<Response<Body>, Error> {
    let answer = Response::builder().status(status).header("content-type", "text/plain; charset=utf-8");
    Ok(answer.body(body.into())?)
}
