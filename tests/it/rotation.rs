//! Secrets that change while the function runs: read from Secrets Manager at the start, and again, at most once a
//! minute, when none of them verifies.
//!
//! The Secrets Manager here is a loopback server of a few lines that counts how often it is asked.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use postback::config::Config;
use postback::handler::App;
use postback::secrets::REFRESH_EVERY;
use serde_json::{Value, json};

use crate::world::{PATIENCE, World, check, conversion, event, line, pass, query, signed_with};

const ARN: &str = "arn:aws:secretsmanager:eu-west-1:111122223333:secret:postback-AbCdEf";

/// A Secrets Manager with one secret; `None` is an outage.
#[derive(Clone, Default)]
struct Vault {
    secret: Arc<Mutex<Option<Value>>>,
    /// A reply that is none of Secrets Manager's.
    broken: Arc<Mutex<Option<String>>>,
    asked: Arc<AtomicUsize>,
}

impl Vault {
    fn put(&self, secret: Option<Value>) {
        *self.secret.lock().unwrap() = secret;
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    /// Serves until the test's runtime ends, and gives the endpoint.
    async fn serve(&self) -> String {
        let vault = self.clone();
        let answer = async move |Json(request): Json<Value>| {
            assert_eq!(request, json!({"SecretId": ARN}));
            vault.asked.fetch_add(1, Ordering::SeqCst);
            if let Some(broken) = &*vault.broken.lock().unwrap() {
                return (StatusCode::OK, broken.clone());
            }
            let (status, Json(reply)) = match &*vault.secret.lock().unwrap() {
                Some(secret) => (StatusCode::OK, Json(json!({"ARN": ARN, "SecretString": secret.to_string()}))),
                None => (StatusCode::BAD_REQUEST, Json(json!({"__type": "AccessDeniedException", "message": "no"}))),
            };
            (status, reply.to_string())
        };
        let json = axum::middleware::map_request(async |mut request: axum::extract::Request| {
            request.headers_mut().insert("content-type", "application/json".parse().unwrap());
            request
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().route("/", post(answer)).layer(json);
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        endpoint
    }
}

/// The world's deployment with its secrets in a vault.
async fn deployed(world: &World, vault: &Vault) -> Result<App, String> {
    let mut variables = world.variables.clone();
    variables.remove("NETWORK_SECRETS");
    variables.insert("NETWORK_SECRETS_ARN".into(), ARN.into());
    variables.insert("AWS_ENDPOINT_URL_SECRETS_MANAGER".into(), vault.serve().await);
    let config = Config::read(|name| variables.get(name).cloned()).unwrap();
    App::start(config).await.map_err(|error| error.to_string())
}

async fn told(app: &App, secret: &str, id: &str) -> String {
    let query = signed_with(secret, &query(&conversion(id, "1", "42", "1")));
    line(&app.offerwall(&event("GET", "/standard", &query), PATIENCE).await)
}

#[tokio::test]
async fn a_new_secret_is_in_force_without_a_deployment_and_the_old_one_as_long_as_it_is_listed() {
    check(async |world| {
        let vault = Vault::default();
        vault.put(Some(json!({"standard": "old"})));
        let app = deployed(world, &vault).await.unwrap();
        assert_eq!(told(&app, "old", "c1").await, "200 ok");
        assert_eq!(vault.asked(), 1);

        vault.put(Some(json!({"standard": ["old", "new"]})));
        assert_eq!(told(&app, "new", "c2").await, "403 bad signature", "read less than a minute ago");
        pass(REFRESH_EVERY).await;
        assert_eq!(told(&app, "old", "c3").await, "200 ok");
        assert_eq!(vault.asked(), 1, "what verifies asks for nothing");
        assert_eq!(told(&app, "new", "c2").await, "200 ok");
        assert_eq!(told(&app, "old", "c4").await, "200 ok");
        assert_eq!(vault.asked(), 2);
    })
    .await;
}

#[tokio::test]
async fn forged_requests_ask_secrets_manager_and_for_the_settings_at_most_once_a_minute_and_dynamodb_never_else() {
    check(async |world| {
        let vault = Vault::default();
        vault.put(Some(json!({"standard": "old"})));
        let app = deployed(world, &vault).await.unwrap();
        for _ in 0..3 {
            pass(REFRESH_EVERY).await;
            for _ in 0..20 {
                assert_eq!(told(&app, "forged", "c1").await, "403 bad signature");
            }
        }
        assert_eq!(vault.asked(), 1 + 3);
        let tables: Vec<_> = world.proxy.take().into_iter().map(|request| request.body["TableName"].clone()).collect();
        assert_eq!(tables, vec![world.tables.settings.as_str(); 1 + 3]);
    })
    .await;
}

#[tokio::test]
async fn while_newer_secrets_cannot_be_read_what_does_not_verify_is_503_and_what_does_is_paid() {
    check(async |world| {
        let vault = Vault::default();
        vault.put(Some(json!({"standard": "old"})));
        let app = deployed(world, &vault).await.unwrap();
        for broken in [None, Some(json!("not an object")), Some(json!({"standard": ""}))] {
            vault.put(broken);
            pass(REFRESH_EVERY).await;
            // It may be signed with a secret that we cannot see: the network must send it again.
            assert_eq!(told(&app, "new", "c1").await, "503 try again");
            assert_eq!(told(&app, "new", "c1").await, "503 try again");
            assert!(told(&app, "old", "c2").await.starts_with("200 ok"));
        }
        vault.put(Some(json!({"standard": "new"})));
        pass(REFRESH_EVERY).await;
        assert_eq!(told(&app, "new", "c1").await, "200 ok");
        assert_eq!(told(&app, "old", "c3").await, "403 bad signature");
    })
    .await;
}

#[tokio::test]
async fn a_function_whose_secrets_cannot_be_read_does_not_start_and_says_why() {
    check(async |world| {
        let vault = Vault::default();
        let error = deployed(world, &vault).await.unwrap_err();
        assert!(error.contains(ARN) && error.contains("AccessDeniedException"), "{error}");
        vault.put(Some(json!({"standard": ["hunter2", 7]})));
        let error = deployed(world, &vault).await.unwrap_err();
        assert_eq!(
            error,
            format!("the secret {ARN}: the value of `standard` is neither a secret, nor an object of secrets by name, nor a list of these")
        );
    })
    .await;
}

#[tokio::test]
async fn a_reply_of_secrets_manager_that_does_not_read_is_told_without_what_is_in_it() {
    check(async |world| {
        for broken in [
            r#"{"SecretString": "{\"standard\": \"hunter2\"}""#,
            r#"{"SecretString": {"standard": "hunter2"}}"#,
            r#"{"SecretString": "{\"standard\": \"hunter2\"}", "CreatedDate": "yesterday"}"#,
        ] {
            let vault = Vault::default();
            *vault.broken.lock().unwrap() = Some(broken.to_owned());
            let error = deployed(world, &vault).await.unwrap_err();
            assert_eq!(error, format!("reading the secret {ARN}: its reply does not read"));
        }
    })
    .await;
}
