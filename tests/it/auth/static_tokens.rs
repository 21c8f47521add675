//! Static tokens: the configuration has their digests.

use larder::config::{AuthMode, Config, TokenConfig};
use serde_json::json;

use super::ping;
use crate::support::{Answer, Modern, Server, sha256};

fn token(name: &str, token: &str, scopes: &[&str]) -> TokenConfig {
    let scopes = scopes.iter().map(ToString::to_string).collect();
    TokenConfig { name: name.into(), sha256: sha256(token), scopes, groups: Vec::new() }
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
