//! The probes of the server, and `larder health`.

use serde_json::json;

use crate::support::{
    Answer, Raw, RedisServer, Server, eventually, http,
    process::{Finished, larder, run, serving},
};

const DEPENDENCIES: &str = "/readyz/dependencies";

async fn probe(server: &Server, path: &str) -> Answer {
    Answer::of(http().get(server.url.replace("/mcp", path))).await
}

#[tokio::test]
async fn probes_need_neither_an_allowed_host_nor_a_token() {
    let server = Server::configured(|setup| {
        setup.config.auth.mode = larder::config::AuthMode::Static;
        let token = larder::config::TokenConfig {
            name: "a".into(),
            sha256: "0".repeat(64),
            scopes: Vec::new(),
            groups: Vec::new(),
            expires: None,
        };
        setup.config.auth.tokens = vec![token];
    })
    .await;
    for (path, status) in [("/healthz", "alive"), ("/readyz", "ready"), (DEPENDENCIES, "available")]
    {
        let line = format!("GET {path} HTTP/1.1");
        let answer = Raw::request(&server, &line, "host: 10.1.2.3:8000", "").await;
        assert_eq!((answer.status, &answer.json()["status"]), (200, &json!(status)));
        let line = format!("POST {path} HTTP/1.1");
        assert_eq!(Raw::request(&server, &line, "host: localhost", "").await.status, 405);
    }
}

#[tokio::test]
async fn a_server_without_its_redis_is_ready_and_tells_what_is_missing() {
    let mut redis = RedisServer::durable().await;
    let url = redis.url();
    let server = Server::configured(|setup| {
        setup.config.store.url = url;
        setup.config.redis.migrate = true;
        setup.config.redis.timeout = 0.5;
    })
    .await;
    let available = async || probe(&server, DEPENDENCIES).await.status == 200;
    assert!(available().await);
    redis.kill();
    eventually("not available", async || !available().await).await;
    let report = probe(&server, DEPENDENCIES).await.json();
    let expected = json!({
        "status": "not available",
        "store": false, "sessions": false, "keys": true, "upstreams": true,
    });
    assert_eq!(report, expected);
    // An orchestrator takes out no instance, so what needs no Redis is still served.
    for path in ["/healthz", "/readyz"] {
        assert_eq!(probe(&server, path).await.status, 200, "{path}");
    }
    redis.restart().await;
    eventually("available again", available).await;
}

#[tokio::test]
async fn a_server_without_its_issuers_keys_tells_so() {
    let server = Server::configured(|setup| {
        setup.config.server.public_url = Some("http://127.0.0.1:8000/mcp".into());
        setup.config.auth.mode = larder::config::AuthMode::OAuth;
        let issuer = "http://127.0.0.1:1".to_owned();
        setup.config.auth.issuers =
            vec![larder::config::IssuerConfig { issuer, ..Default::default() }];
    })
    .await;
    let answer = probe(&server, DEPENDENCIES).await;
    assert_eq!((answer.status, answer.json()["keys"].as_bool()), (503, Some(false)));
}

async fn health(arguments: &[&str], environment: &[(&str, &str)]) -> Finished {
    let mut command = larder(&[&["health"], arguments].concat());
    command.envs(environment.iter().copied());
    run(command).await
}

#[tokio::test]
async fn the_binary_probes_for_container_engines() {
    let (mut server, _) = serving(&[]).await;
    let address = server.address().to_owned();
    for flags in [&[][..], &["--ready"], &["--dependencies"]] {
        let arguments = &[flags, &["--listen", &address]].concat();
        let probed = health(arguments, &[]).await;
        assert_eq!(probed.code, Some(0), "{probed:?}");
    }
    // In a container the probe has the environment of the server, which listens on 0.0.0.0.
    let everywhere = address.replace("127.0.0.1", "0.0.0.0");
    let environment =
        [("LARDER_SERVER__LISTEN", &everywhere[..]), ("LARDER_SERVER__INSECURE_NO_AUTH", "true")];
    assert_eq!(health(&[], &environment).await.code, Some(0));
    server.kill().await;
    let probed = health(&["--listen", &address], &[]).await;
    assert_eq!(probed.code, Some(1));
    assert!(probed.stderr.contains(&address), "{probed:?}");
}

#[tokio::test]
async fn a_running_server_is_healthy_whatever_became_of_its_configuration() {
    let file = crate::support::TextFile::new("[limits]\nwindow = 60");
    let mut command = larder(&["serve"]);
    command.env("LARDER_CONFIG", file.path());
    let server = crate::support::process::Process::start(command).await;
    for invalid in ["[unknown]", "[server"] {
        file.write(invalid);
        let environment =
            [("LARDER_CONFIG", file.path()), ("LARDER_SERVER__LISTEN", server.address())];
        let probed = health(&[], &environment).await;
        assert_eq!(probed.code, Some(0), "{probed:?}");
    }
}
