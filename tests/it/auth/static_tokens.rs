//! Static tokens: the configuration has their digests.

use std::time::Duration;

use larder::config::{AuthMode, Config, TokenConfig};
use serde_json::{Value, json};

use super::ping;
use crate::support::{
    Answer, Modern, Server, TextFile,
    process::{Process, larder},
    sha256,
};

fn token(name: &str, token: &str, scopes: &[&str]) -> TokenConfig {
    let scopes = scopes.iter().map(ToString::to_string).collect();
    TokenConfig { name: name.into(), sha256: sha256(token), scopes, ..TokenConfig::default() }
}

fn tokens(config: &mut Config) {
    config.auth.mode = AuthMode::Static;
    config.auth.required_scopes = vec!["mcp:read".into()];
    config.auth.scopes.insert("echo".into(), vec!["mcp:echo".into()]);
    config.auth.tokens = vec![
        token("ci", "first-secret", &["mcp:read"]),
        token("ops", "second-secret", &["mcp:read", "mcp:echo"]),
    ];
}

#[tokio::test]
async fn a_known_token_is_accepted_and_no_other() {
    let server = Server::configured(|setup| tokens(&mut setup.config)).await;
    for (header, status) in [
        ("Bearer first-secret", 200),
        ("bearer second-secret", 200),
        ("Bearer third-secret", 401),
        ("Bearer first-secre", 401),
        ("Bearer first-secrets", 401),
        ("Basic first-secret", 401),
    ] {
        let answer = Answer::of(ping(&server).header("authorization", header)).await;
        assert_eq!(answer.status, status, "{header}");
        if status == 401 {
            let challenge = answer.header("www-authenticate").unwrap();
            assert!(challenge.starts_with("Bearer realm=\"larder\""), "{challenge}");
            assert!(!challenge.contains("resource_metadata"), "{challenge}");
        }
    }
    assert_eq!(Answer::of(ping(&server)).await.status, 401);
}

#[tokio::test]
async fn each_token_has_its_own_scopes_and_resources() {
    let server = Server::configured(|setup| tokens(&mut setup.config)).await;
    let ci = Modern::bearing(&server, "first-secret");
    let ops = Modern::bearing(&server, "second-secret");
    assert_eq!(ci.call("echo", json!({ "text": "a" })).await.status, 403);
    assert_eq!(ops.call("echo", json!({ "text": "a" })).await.text(), "a");
    ci.create(json!({ "uri": "a://1", "text": "x" })).await;
    assert_eq!(ops.send("resources/read", json!({ "uri": "a://1" })).await.error()["code"], -32602);
    assert!(ops.list("resources/list", "resources").await.iter().all(|r| r["uri"] != "a://1"));
    assert_eq!(ci.read("a://1").await["text"], "x");
}

#[tokio::test]
async fn a_token_expires_and_another_of_the_same_name_takes_its_place() {
    let server = Server::configured(|setup| {
        tokens(&mut setup.config);
        let mut next = token("ci", "next-secret", &["mcp:read"]);
        next.expires = Some("2026-01-01T02:00:00+01:00".into());
        setup.config.auth.tokens.push(next);
    })
    .await;
    let [first, next] =
        ["first-secret", "next-secret"].map(|token| Modern::bearing(&server, token));
    next.create(json!({ "uri": "a://1", "text": "x" })).await;
    assert_eq!(first.read("a://1").await["text"], "x");
    let mut stream = next.listen(1, json!({ "toolsListChanged": true })).await;
    server.clock.advance(Duration::from_secs(3600));
    assert_eq!(next.send("tools/list", json!({})).await.status, 401);
    let last: Value = serde_json::from_str(&stream.next().await.unwrap().data).unwrap();
    assert!(last["error"]["message"].as_str().unwrap().contains("token"), "{last}");
    assert!(stream.next().await.is_none(), "the stream goes on");
    assert_eq!(first.send("tools/list", json!({})).await.status, 200);
}

#[tokio::test]
async fn tokens_change_without_a_restart() {
    let config = |tokens: &[&str]| {
        let tokens = tokens.iter().map(|token| {
            format!("[[auth.tokens]]\nname = \"ci\"\nsha256 = \"{}\"\n", sha256(token))
        });
        let tokens: String = tokens.collect();
        format!("[log]\nlevel = \"info\"\n[auth]\nmode = \"static\"\n{tokens}")
    };
    let file = TextFile::new(&config(&["old"]));
    let mut server = Process::start(larder(&["serve", "--config", file.path()])).await;
    let [old, new] = ["old", "new"].map(|token| Modern::at(&server.url).with_token(token));
    let mut stream = old.listen(1, json!({ "toolsListChanged": true })).await;
    assert_eq!(new.send("tools/list", json!({})).await.status, 401);
    file.write(&config(&["old", "new"]));
    let line = server.logs("read again").await;
    assert!(line.contains("auth.tokens"), "{line}");
    for client in [&old, &new] {
        assert_eq!(client.send("tools/list", json!({})).await.status, 200);
    }
    file.write(&config(&["new"]));
    server.logs("read again").await;
    let last: Value = serde_json::from_str(&stream.next().await.unwrap().data).unwrap();
    assert!(last["error"]["message"].as_str().unwrap().contains("token"), "{last}");
    assert!(stream.next().await.is_none(), "the stream goes on");
    assert_eq!(old.send("tools/list", json!({})).await.status, 401);
    assert_eq!(new.send("tools/list", json!({})).await.status, 200);
}
