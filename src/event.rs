//! A function URL's event as a request, and an answer as the function URL's response (payload format 2.0).
//!
//! Reads leniently, since an event can carry any bytes that a caller sent: what is not needed is not looked at, and
//! what cannot be read is a refusal with a sentence. Never rebuilds a URI: signatures are over the bytes as they were
//! on the wire.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// What a contract needs of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// `GET`, as the function URL names it.
    pub method: String,
    /// The path as it was on the wire, beginning with `/`.
    pub path: String,
    /// The query as it was on the wire, without `?`.
    pub query: String,
    /// The caller's address as the function URL saw it, which no header can change.
    pub source_ip: String,
}

/// What goes back to the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The body, plain text.
    pub body: Cow<'static, str>,
}

/// An event that is not a request to a function URL. Shows nothing of what is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a function URL event of payload version 2.0: rawPath, rawQueryString, requestContext.http.method or \
     requestContext.http.sourceIp is missing or no text (line {line}, column {column})"
)]
pub struct NotARequest {
    line: usize,
    column: usize,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    #[serde(borrow)]
    raw_path: Cow<'a, str>,
    #[serde(borrow, default)]
    raw_query_string: Cow<'a, str>,
    #[serde(borrow)]
    request_context: RequestContext<'a>,
}

#[derive(Deserialize)]
struct RequestContext<'a> {
    #[serde(borrow)]
    http: Http<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Http<'a> {
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow, default)]
    source_ip: Cow<'a, str>,
}

impl Request {
    /// Reads an event.
    ///
    /// Function URLs have been reported to deliver a `+` of the query as a space (aws/aws-lambda-web-adapter#491). A
    /// space cannot be on the wire, so it was a `+`, and is one again before anything looks at the query.
    ///
    /// # Errors
    ///
    /// [`NotARequest`] says where the event stops being one.
    pub fn read(event: &str) -> Result<Request, NotARequest> {
        let event: Event<'_> =
            serde_json::from_str(event).map_err(|error| NotARequest { line: error.line(), column: error.column() })?;
        Ok(Request {
            method: event.request_context.http.method.into_owned(),
            path: event.raw_path.into_owned(),
            query: event.raw_query_string.replace(' ', "+"),
            source_ip: event.request_context.http.source_ip.into_owned(),
        })
    }
}

impl Answer {
    /// An answer of one line.
    pub fn new(status: u16, body: impl Into<Cow<'static, str>>) -> Answer {
        Answer { status, body: body.into() }
    }

    /// The content type of every answer.
    pub const CONTENT_TYPE: &'static str = "text/plain; charset=utf-8";
}

/// The form in which the function URL takes an answer.
impl Serialize for Answer {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Response<'a> {
            status_code: u16,
            headers: Headers,
            body: &'a str,
            is_base64_encoded: bool,
            /// None, but tools that stand in for a function URL look for them.
            cookies: [&'a str; 0],
        }
        #[derive(Serialize)]
        struct Headers {
            #[serde(rename = "content-type")]
            content_type: &'static str,
        }
        let headers = Headers { content_type: Answer::CONTENT_TYPE };
        let (status_code, is_base64_encoded) = (self.status, false);
        Response { status_code, headers, body: &self.body, is_base64_encoded, cookies: [] }.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;
    use serde_json::{Value, json};

    #[test]
    fn a_plus_that_was_delivered_as_a_space_is_a_plus_again() {
        let event = |query: &str| {
            json!({"rawPath": "/n", "rawQueryString": query, "requestContext": {"http": {"method": "GET"}}}).to_string()
        };
        assert_eq!(Request::read(&event("a=b c d")), Request::read(&event("a=b+c+d")));
    }

    #[test]
    fn an_event_of_another_kind_is_refused_and_shows_nothing_of_itself() {
        for event in [
            "",
            "null",
            "[]",
            "7",
            "{}",
            "\"hunter2\"",
            r#"{"Records": ["hunter2"]}"#,
            r#"{"rawPath": "hunter2", "requestContext": {}}"#,
            r#"{"rawPath": {"hunter2": 7}}"#,
            r#"{"rawPath": "\ud800"}"#,
        ] {
            let why = Request::read(event).unwrap_err().to_string();
            assert!(why.starts_with("not a function URL event of payload version 2.0: rawPath, "), "{why}");
            assert!(!why.contains("hunter2"), "{why}");
        }
    }

    #[test]
    fn an_answer_is_what_a_function_url_takes() {
        let response = serde_json::to_value(Answer::new(200, "ok")).unwrap();
        let headers = json!({"content-type": "text/plain; charset=utf-8"});
        assert_eq!(
            response,
            json!({"statusCode": 200, "headers": headers, "body": "ok", "isBase64Encoded": false, "cookies": []})
        );
    }

    /// Any JSON, biased toward the shape of an event.
    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".*".prop_map(Value::from)
        ];
        let key = prop_oneof![
            Just("rawPath"),
            Just("rawQueryString"),
            Just("requestContext"),
            Just("http"),
            Just("method"),
            Just("sourceIp"),
            Just("x")
        ];
        leaf.prop_recursive(4, 64, 8, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::hash_map(key.clone().prop_map(String::from), inner, 0..8)
                    .prop_map(|map| map.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn any_json_is_read_or_refused_without_panic(value in any_json()) {
            let _ = Request::read(&value.to_string());
        }

        #[test]
        fn any_text_is_read_or_refused_without_panic(text in "\\PC*") {
            let _ = Request::read(&text);
        }
    }
}
