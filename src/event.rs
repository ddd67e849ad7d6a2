//! A function URL's event as a request, and an answer as the function URL's response (payload format 2.0).
//!
//! Reads leniently, since an event can carry any bytes that a caller sent: what is not needed is not looked at, and
//! what cannot be read is a refusal with a sentence. Never rebuilds a URI: signatures are over the bytes as they were
//! on the wire.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// What a contract needs of a request. Headers and the body are read when they are asked for: most networks need
/// neither.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// `GET` or `POST`, as the function URL names it.
    pub method: String,
    /// The path as it was on the wire, beginning with `/`.
    pub path: String,
    /// The query as it was on the wire, without `?`.
    pub query: String,
    /// Scheme and host of the URL that was called, without a `/` at the end: those of the function URL or, where something
    /// stands in front of it, what the deployment says. Empty where the event does not tell.
    pub origin: String,
    /// The caller's address as the function URL saw it or, where something stands in front of it, as that passed it on.
    /// Empty where nobody can tell.
    pub source_ip: String,
    /// The event's headers, as JSON.
    headers: Option<String>,
    /// The event's body, as a JSON string.
    body: Option<String>,
    is_base64_encoded: bool,
}

/// What stands in front of the function URL, as the deployment says. Without it, only the request context counts:
/// headers are the caller's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Front {
    /// The URL that callers use, without a `/` at the end.
    pub public_url: Option<String>,
    /// Where the caller's address stands.
    pub source: Option<Hop>,
}

/// One address of a list in a header that a proxy of the deployment sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hop {
    /// The header's name, in lower case.
    pub header: String,
    /// Counted from the right, since what stands to the left is the caller's word; 1 is the last.
    pub from_right: usize,
}

/// What goes back to the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The body.
    pub body: Cow<'static, str>,
    /// What the body is.
    pub content_type: ContentType,
    /// Whether it is one that was given before and kept: the caller is told so in the header `idempotent-replayed`.
    pub replayed: bool,
}

/// What a body is. Both are UTF-8.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ContentType {
    #[default]
    Text,
    Json,
}

impl ContentType {
    /// The value of the header.
    pub fn as_str(self) -> &'static str {
        match self {
            ContentType::Text => "text/plain; charset=utf-8",
            ContentType::Json => "application/json",
        }
    }
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
    headers: Option<&'a RawValue>,
    #[serde(borrow)]
    body: Option<&'a RawValue>,
    #[serde(borrow)]
    is_base64_encoded: Option<&'a RawValue>,
    #[serde(borrow)]
    request_context: RequestContext<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RequestContext<'a> {
    #[serde(borrow)]
    domain_name: Option<&'a RawValue>,
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

/// Without the query, the headers and the body, which may carry a secret.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Request { method, path, source_ip, .. } = self;
        f.debug_struct("Request")
            .field("method", method)
            .field("path", path)
            .field("source_ip", source_ip)
            .finish_non_exhaustive()
    }
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
        let text = |value: Option<&RawValue>| serde_json::from_str(value?.get()).ok();
        Ok(Request {
            method: event.request_context.http.method.into_owned(),
            path: event.raw_path.into_owned(),
            query: event.raw_query_string.replace(' ', "+"),
            origin: text(event.request_context.domain_name)
                .map_or_else(String::new, |host: String| format!("https://{host}")),
            source_ip: event.request_context.http.source_ip.into_owned(),
            headers: event.headers.map(|headers| headers.get().to_owned()),
            body: event.body.map(|body| body.get().to_owned()),
            is_base64_encoded: event.is_base64_encoded.is_some_and(|flag| flag.get() == "true"),
        })
    }

    /// The request as it was before what stands in front passed it on.
    #[must_use]
    pub fn behind(mut self, front: &Front) -> Request {
        if let Some(url) = &front.public_url {
            self.origin.clone_from(url);
        }
        if let Some(hop) = &front.source {
            let list = self.header(&hop.header).unwrap_or_default();
            let address = list.rsplit(',').nth(hop.from_right - 1).map(str::trim).unwrap_or_default();
            self.source_ip = address.to_owned();
        }
        self
    }

    /// The same request with these headers and this body.
    #[must_use]
    pub fn with(self, headers: &[(String, String)], body: &[u8]) -> Request {
        let headers: Value = headers.iter().cloned().collect();
        let body = Value::from(BASE64_STANDARD.encode(body));
        Request { headers: Some(headers.to_string()), body: Some(body.to_string()), is_base64_encoded: true, ..self }
    }

    /// The value of a header, whose name is given in lower case. `None` where it was not sent, or not once.
    pub fn header(&self, name: &str) -> Option<String> {
        let headers: HashMap<String, Value> = serde_json::from_str(self.headers.as_deref()?).ok()?;
        let mut values = headers.into_iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        match (values.next(), values.next()) {
            (Some((_, Value::String(value))), None) => Some(value),
            _ => None,
        }
    }

    /// The body as it was on the wire; `None` where the event holds none that can be read.
    pub fn body(&self) -> Option<Vec<u8>> {
        let body: String = serde_json::from_str(self.body.as_deref()?).ok()?;
        if self.is_base64_encoded { BASE64_STANDARD.decode(body).ok() } else { Some(body.into_bytes()) }
    }
}

impl Answer {
    /// An answer in JSON.
    pub fn json(status: u16, body: impl Into<Cow<'static, str>>) -> Answer {
        Answer { content_type: ContentType::Json, ..Answer::new(status, body) }
    }

    /// An answer in plain text.
    pub fn new(status: u16, body: impl Into<Cow<'static, str>>) -> Answer {
        Answer { status, body: body.into(), content_type: ContentType::Text, replayed: false }
    }
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
            #[serde(rename = "idempotent-replayed", skip_serializing_if = "Option::is_none")]
            replayed: Option<&'static str>,
        }
        let headers = Headers { content_type: self.content_type.as_str(), replayed: self.replayed.then_some("true") };
        let (status_code, is_base64_encoded) = (self.status, false);
        Response { status_code, headers, body: &self.body, is_base64_encoded, cookies: [] }.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;
    use serde_json::json;

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
    fn a_body_is_read_as_it_was_on_the_wire_and_headers_that_are_no_text_are_left_out() {
        let event = |body: Value, base64: bool| {
            json!({
                "rawPath": "/n", "requestContext": {"http": {"method": "POST"}, "domainName": "a.example"},
                "headers": {"X-Signature": "ab", "x-list": ["a"], "x-twice": "1", "X-Twice": "2"},
                "body": body, "isBase64Encoded": base64,
            })
            .to_string()
        };
        let request = Request::read(&event("YT0lRkbDvw==".into(), true)).unwrap();
        assert_eq!(
            (request.body().unwrap(), request.origin.as_str()),
            ("a=%FFÿ".as_bytes().to_vec(), "https://a.example")
        );
        assert_eq!(request.header("x-signature").as_deref(), Some("ab"));
        assert_eq!((request.header("x-list"), request.header("x-twice")), (None, None));
        let body = |value, base64| Request::read(&event(value, base64)).unwrap().body();
        assert_eq!(body("a=1".into(), false).as_deref(), Some(&b"a=1"[..]));
        assert_eq!(body(Value::Null, true), None);
        assert_eq!(body("%".into(), true), None);
        let headers = [("x-a".to_owned(), "1".to_owned())];
        let with = Request::default().with(&headers, b"\xff");
        assert!(!format!("{with:?}").contains("x-a"), "{with:?}");
        assert_eq!((with.header("x-a").as_deref(), with.body().as_deref()), (Some("1"), Some(&b"\xff"[..])));
    }

    #[test]
    fn only_a_fixed_hop_from_the_right_of_a_header_that_the_deployment_names_is_believed() {
        let request = |header: &str| {
            let request = Request { source_ip: "192.0.2.1".into(), ..Request::default() };
            request.with(&[("x-forwarded-for".to_owned(), header.to_owned())], b"")
        };
        let hop = |from_right| Front {
            source: Some(Hop { header: "x-forwarded-for".into(), from_right }),
            ..Front::default()
        };
        let spoofed = "198.51.100.7, 203.0.113.9,10.0.0.1";
        for (front, header, expected) in [
            (Front::default(), spoofed, "192.0.2.1"),
            (hop(1), spoofed, "10.0.0.1"),
            (hop(2), spoofed, "203.0.113.9"),
            (hop(4), spoofed, ""),
            (hop(2), "203.0.113.9", ""),
        ] {
            assert_eq!(request(header).behind(&front).source_ip, expected, "{front:?}");
        }
        assert_eq!(Request::default().behind(&hop(1)).source_ip, "", "a proxy that sets no header tells nothing");
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
