//! Probes, and the binary's own.

use std::process::Output;

use serde_json::json;

use crate::{
    process::{larder, serving},
    support::{Answer, Raw, RedisServer, Server, http, patiently},
};

async fn probe(server: &Server, path: &str) -> Answer {
    Answer::of(http().get(server.url.replace("/mcp", path))).await
}

#[tokio::test]
async fn probes_come_under_any_name_and_without_a_token() {
    let server = Server::configured(|setup| {
        setup.config.auth.mode = larder::config::AuthMode::Static;
        let token = larder::config::TokenConfig {
            name: "a".into(),
            sha256: "0".repeat(64),
            scopes: Vec::new(),
            groups: Vec::new(),
        };
        setup.config.auth.tokens = vec![token];
    })
    .await;
    for (path, status) in [("/healthz", "alive"), ("/readyz", "ready")] {
        let line = format!("GET {path} HTTP/1.1");
        let answer = Raw::request(&server, &line, "host: 10.1.2.3:8000", "").await;
        assert_eq!((answer.status, &answer.json()["status"]), (200, &json!(status)));
        let line = format!("POST {path} HTTP/1.1");
        assert_eq!(Raw::request(&server, &line, "host: localhost", "").await.status, 405);
    }
}

#[tokio::test]
async fn a_server_without_its_redis_lives_and_is_not_ready() {
    let mut redis = RedisServer::durable().await;
    let url = redis.url();
    let server = Server::configured(|setup| {
        setup.config.store.url = url;
        setup.config.redis.migrate = true;
        setup.config.redis.timeout = 0.5;
    })
    .await;
    assert_eq!(probe(&server, "/readyz").await.status, 200);
    redis.kill();
    let turned = |wanted| {
        let server = &server;
        async move { while probe(server, "/readyz").await.status != wanted {} }
    };
    patiently("not ready", turned(503)).await;
    let report = probe(&server, "/readyz").await.json();
    let expected =
        json!({ "status": "not ready", "store": false, "sessions": false, "keys": true });
    assert_eq!(report, expected);
    assert_eq!(probe(&server, "/healthz").await.status, 200);
    redis.restart().await;
    patiently("ready again", turned(200)).await;
}

#[tokio::test]
async fn a_server_without_its_issuers_keys_is_not_ready() {
    let server = Server::configured(|setup| {
        setup.config.server.public_url = Some("http://127.0.0.1:8000/mcp".into());
        setup.config.auth.mode = larder::config::AuthMode::OAuth;
        let issuer = "http://127.0.0.1:1".to_owned();
        setup.config.auth.issuers =
            vec![larder::config::IssuerConfig { issuer, ..Default::default() }];
    })
    .await;
    let answer = probe(&server, "/readyz").await;
    assert_eq!((answer.status, answer.json()["keys"].as_bool()), (503, Some(false)));
}

async fn health(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let arguments = [&["health"], arguments].concat();
    let mut command = larder(&arguments);
    patiently("an answer", command.envs(environment.iter().copied()).output()).await.unwrap()
}

#[tokio::test]
async fn the_binary_asks_for_container_engines() {
    let (child, url) = serving(&[]).await;
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    for arguments in [&["--listen", &address][..], &["--ready", "--listen", &address]] {
        let output = health(arguments, &[]).await;
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    }
    // From the same environment as the server, which listens everywhere there.
    let everywhere = address.replace("127.0.0.1", "0.0.0.0");
    let environment =
        [("LARDER_SERVER__LISTEN", &everywhere[..]), ("LARDER_SERVER__INSECURE_NO_AUTH", "true")];
    assert_eq!(health(&[], &environment).await.status.code(), Some(0));
    drop(child);
    let gone = async { while health(&["--listen", &address], &[]).await.status.success() {} };
    patiently("the server to be gone", gone).await;
    let output = health(&["--listen", &address], &[]).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains(&address), "{output:?}");
}
