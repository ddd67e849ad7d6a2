//! The function URL's side of a call: an HTTP request as an event of payload format 2.0, as AWS shapes it.
//!
//! The query goes through byte for byte, since signatures are over it. Left out is what AWS adds of its own (the headers
//! `x-amzn-*` and `x-forwarded-*`) and the decoded `queryStringParameters`, which is no evidence of anything.

use std::net::IpAddr;

use axum::http::{HeaderMap, Method, Uri, Version, header};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// An HTTP request as it arrived.
#[derive(Debug)]
pub struct Call<'a> {
    pub method: &'a Method,
    pub uri: &'a Uri,
    pub version: Version,
    pub headers: &'a HeaderMap,
    pub body: &'a [u8],
    pub source_ip: IpAddr,
}

/// The event that the function URL makes of a request.
pub fn event(call: &Call<'_>, request_id: &str, now: Timestamp) -> Value {
    let path = call.uri.path();
    let headers = headers(call.headers);
    let mut event = json!({
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": call.uri.query().unwrap_or_default(),
        "requestContext": {
            "accountId": "anonymous",
            "apiId": "local",
            "domainName": headers.get("host"),
            "domainPrefix": "local",
            "http": {
                "method": call.method.as_str(),
                "path": path,
                "protocol": format!("{:?}", call.version),
                "sourceIp": call.source_ip,
                "userAgent": headers.get("user-agent"),
            },
            "requestId": request_id,
            "routeKey": "$default",
            "stage": "$default",
            "time": now.strftime("%d/%b/%Y:%H:%M:%S +0000").to_string(),
            "timeEpoch": now.as_millisecond(),
        },
        "isBase64Encoded": false,
    });
    if let Some(cookies) = headers.get("cookie").and_then(Value::as_str) {
        event["cookies"] = cookies.split(';').map(str::trim).collect();
    }
    if !call.body.is_empty() {
        let text = std::str::from_utf8(call.body).ok().filter(|_| is_text(call.headers));
        event["isBase64Encoded"] = text.is_none().into();
        event["body"] = text.map_or_else(|| BASE64_STANDARD.encode(call.body), str::to_owned).into();
    }
    event["headers"] = headers.into();
    event
}

/// Names in lower case, one value for each: several of one name are joined by commas, and cookies as cookies are.
fn headers(headers: &HeaderMap) -> Map<String, Value> {
    headers
        .keys()
        .map(|name| {
            let values = headers.get_all(name).iter();
            let values: Vec<_> = values.map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
            let joint = if name == header::COOKIE { "; " } else { "," };
            (name.as_str().to_owned(), values.join(joint).into())
        })
        .collect()
}

/// Whether AWS hands a body of this content type over as text. Everything else is binary to it, a form and no type at all
/// included.
fn is_text(headers: &HeaderMap) -> bool {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = content_type.and_then(|value| value.split(';').next()).unwrap_or_default();
    let essence = essence.trim().to_ascii_lowercase();
    essence.starts_with("text/")
        || matches!(essence.as_str(), "application/json" | "application/xml" | "application/javascript")
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::net::Ipv4Addr;

    use crate::event::Request;

    fn check(target: &'static str, headers: &[(&'static str, &'static str)], body: &[u8]) -> Value {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        let call = Call {
            method: &Method::POST,
            uri: &Uri::from_static(target),
            version: Version::HTTP_11,
            headers: &map,
            body,
            source_ip: Ipv4Addr::LOCALHOST.into(),
        };
        event(&call, "id", Timestamp::from_millisecond(1_583_348_638_390).unwrap())
    }

    #[test]
    fn an_event_has_the_shape_of_aws() {
        let event = check(
            "/a%20b/c?x=1&y=a+b%2B|&&x=2",
            &[
                ("Host", "localhost:9000"),
                ("User-Agent", "agent"),
                ("X-Two", "1"),
                ("Cookie", "a=1; b=2"),
                ("x-two", "2"),
                ("Cookie", "c=3"),
            ],
            b"",
        );
        let expected = json!({
            "version": "2.0",
            "routeKey": "$default",
            "rawPath": "/a%20b/c",
            "rawQueryString": "x=1&y=a+b%2B|&&x=2",
            "cookies": ["a=1", "b=2", "c=3"],
            "headers": {
                "host": "localhost:9000",
                "user-agent": "agent",
                "x-two": "1,2",
                "cookie": "a=1; b=2; c=3"
            },
            "requestContext": {
                "accountId": "anonymous",
                "apiId": "local",
                "domainName": "localhost:9000",
                "domainPrefix": "local",
                "http": {
                    "method": "POST",
                    "path": "/a%20b/c",
                    "protocol": "HTTP/1.1",
                    "sourceIp": "127.0.0.1",
                    "userAgent": "agent"
                },
                "requestId": "id",
                "routeKey": "$default",
                "stage": "$default",
                "time": "04/Mar/2020:19:03:58 +0000",
                "timeEpoch": 1_583_348_638_390_i64
            },
            "isBase64Encoded": false
        });
        assert_eq!(event, expected);
    }

    #[test]
    fn a_body_is_text_or_base64_by_its_type_as_on_aws() {
        let check = |content_type: &'static str, body: &[u8]| {
            let event = check("/", &[("Content-Type", content_type)], body);
            (event["isBase64Encoded"].as_bool().unwrap(), event["body"].as_str().unwrap().to_owned())
        };
        assert_eq!(check("application/json; charset=utf-8", b"{}"), (false, "{}".to_owned()));
        assert_eq!(check("Text/Plain", "ü".as_bytes()), (false, "ü".to_owned()));
        assert_eq!(check("text/plain", b"\xff"), (true, "/w==".to_owned()));
        assert_eq!(check("application/x-www-form-urlencoded", b"a=1"), (true, "YT0x".to_owned()));
        assert_eq!(check("", b"a=1"), (true, "YT0x".to_owned()));
    }

    #[test]
    fn the_handler_reads_every_event() {
        let request = Request::read(&check("/standard?a=b+c", &[], b"").to_string()).unwrap();
        assert_eq!((request.path.as_str(), request.query.as_str()), ("/standard", "a=b+c"));
        assert_eq!((request.method.as_str(), request.source_ip.as_str()), ("POST", "127.0.0.1"));
    }
}
