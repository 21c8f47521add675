//! With the certified OpenID provider: valid tokens of all kinds, and failures of the provider.

use std::{ops::Deref, time::Duration};

use larder::{
    clock::{Clock, SystemClock},
    config::{Config, IntrospectionConfig},
};
use serde_json::{Value, json};

use super::{accept, assert_invalid, ping, provider::Provider};
use crate::{
    sharing::links::{reads, share},
    support::{Answer, Legacy, Modern, Server},
};

const KINDS: [&str; 5] = ["rs256", "es256", "eddsa", "ed25519", "opaque"];

/// A provider, and a server that accepts its tokens.
struct Together<P> {
    provider: P,
    server: Server,
}

/// With the provider that tests share.
async fn together() -> Together<&'static Provider> {
    with(Provider::shared().await).await
}

/// With a provider that the test changes.
async fn with_own_provider() -> Together<Box<Provider>> {
    with(Box::new(Provider::start().await)).await
}

async fn with<P: Deref<Target = Provider>>(provider: P) -> Together<P> {
    let secret = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(secret.path(), "a secret for tests only").unwrap();
    let configure = |config: &mut Config| {
        accept(config, &provider.issuer);
        config.auth.required_scopes = vec!["mcp:read".into()];
        config.auth.scopes.insert("create_resource".into(), vec!["mcp:write".into()]);
        config.auth.issuers[0].introspection = Some(IntrospectionConfig {
            client_id: "resource-server".into(),
            client_secret_file: Some(secret.path().to_owned()),
            ..IntrospectionConfig::default()
        });
    };
    let server = Server::configured(|setup| configure(&mut setup.config)).await;
    // The clock of the provider is that of the machine.
    let now = SystemClock.now().since(server.clock.now());
    server.clock.advance(now);
    Together { provider, server }
}

impl<P> Together<P> {
    async fn with_token(&self, token: &str) -> Answer {
        Answer::of(ping(&self.server).header("authorization", format!("Bearer {token}"))).await
    }
}

fn access(tokens: &Value) -> String {
    tokens["access_token"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn tokens_of_machines_of_every_kind() {
    let Together { provider, server } = together().await;
    for kind in KINDS {
        let token = provider.machine(kind, "mcp:read mcp:write").await;
        assert_eq!(token.starts_with("eyJ"), kind != "opaque");
        let client = Modern::bearing(&server, &token);
        client.create(json!({ "uri": "a://1", "text": kind })).await;
        // Each machine is its own principal.
        assert_eq!(client.read("a://1").await["text"], kind);
    }
}

#[tokio::test]
async fn tokens_of_users_of_every_kind() {
    let Together { provider, server } = together().await;
    for kind in KINDS {
        let tokens = provider.login(kind, "alice", "mcp:read mcp:write").await;
        let client = Modern::bearing(&server, &access(&tokens));
        if kind == KINDS[0] {
            client.create(json!({ "uri": "a://1", "text": "alice's" })).await;
        }
        // A user is the same principal with every client and every kind of token.
        assert_eq!(client.read("a://1").await["text"], "alice's", "{kind}");
        let bob = provider.login(kind, "bob", "mcp:read").await;
        let bob = Modern::bearing(&server, &access(&bob));
        assert_eq!(
            bob.send("resources/read", json!({ "uri": "a://1" })).await.error()["code"],
            -32602
        );
        assert_eq!(bob.call("create_resource", json!({ "text": "x" })).await.status, 403);
    }
}

#[tokio::test]
async fn resources_are_shared_with_groups_of_the_provider() {
    let Together { provider, server } = together().await;
    let client = async |kind: &str, user: &str, scope: &str| {
        Modern::bearing(&server, &access(&provider.login(kind, user, scope).await))
    };
    let alice = client("rs256", "alice", "mcp:read mcp:write").await;
    alice.create(json!({ "uri": "x:report", "text": "the report" })).await;
    let link = share(&alice, "x:report", "group", Some("analysts")).await;
    // The claim is in the JWT, or in the introspection response.
    for kind in ["es256", "opaque"] {
        for (user, is_shared) in [("bob", true), ("carol", false), ("dave", false)] {
            let client = client(kind, user, "mcp:read").await;
            assert_eq!(reads(&client, &link, "the report").await, is_shared, "{kind} {user}");
        }
    }
    let machine = Modern::bearing(&server, &provider.machine("es256", "mcp:read").await);
    assert!(!reads(&machine, &link, "the report").await);
}

#[tokio::test]
async fn a_refreshed_token_goes_on_in_the_same_session() {
    let Together { provider, server } = together().await;
    for kind in ["es256", "opaque"] {
        let tokens = provider.login(kind, "alice", "mcp:read mcp:write").await;
        let legacy = Legacy::bearing(&server, &access(&tokens)).await;
        let refreshed = provider.refresh(kind, &tokens).await;
        assert_ne!(access(&refreshed), access(&tokens));
        let legacy = legacy.with_token(&access(&refreshed));
        legacy.send("tools/list", json!({})).await.result();
        let bob = provider.login(kind, "bob", "mcp:read").await;
        let bob = legacy.with_token(&access(&bob));
        assert_eq!(bob.send("tools/list", json!({})).await.status, 404);
    }
}

#[tokio::test]
async fn tokens_for_other_purposes_are_refused() {
    let together = together().await;
    let provider = together.provider;
    for kind in ["rs256", "opaque"] {
        let tokens = provider.login(kind, "alice", "mcp:read").await;
        assert_eq!(together.with_token(&access(&tokens)).await.status, 200);
        for other in ["id_token", "refresh_token"] {
            let answer = together.with_token(tokens[other].as_str().unwrap()).await;
            assert_eq!(answer.status, 401, "{kind} {other}");
            assert_invalid(&answer);
        }
        let elsewhere = provider.machine_for(kind, "mcp:read", "https://other.example/mcp").await;
        assert_invalid(&together.with_token(&elsewhere).await);
    }
    // A token without the required scope.
    let token = provider.machine("rs256", "mcp:write").await;
    assert_eq!(together.with_token(&token).await.status, 403);
}

#[tokio::test]
async fn a_revoked_token_is_refused_shortly_after() {
    let together = together().await;
    let token = together.provider.machine("opaque", "mcp:read").await;
    assert_eq!(together.with_token(&token).await.status, 200);
    together.provider.revoke("machine-opaque", &token).await;
    together.server.clock.advance(Duration::from_secs(30));
    assert_invalid(&together.with_token(&token).await);
}

#[tokio::test]
async fn tokens_expire() {
    for kind in ["ed25519", "opaque"] {
        let together = together().await;
        let token = together.provider.machine(kind, "mcp:read").await;
        assert_eq!(together.with_token(&token).await.status, 200);
        together.server.clock.advance(Duration::from_secs(700));
        assert_invalid(&together.with_token(&token).await);
    }
}

#[tokio::test]
async fn keys_are_rotated() {
    let together = with_own_provider().await;
    let old = together.provider.machine("es256", "mcp:read").await;
    assert_eq!(together.with_token(&old).await.status, 200);
    together.provider.rotate().await;
    let new = together.provider.machine("es256", "mcp:read").await;
    assert_eq!(together.with_token(&new).await.status, 200);
    assert_eq!(together.provider.fetches("/jwks").await, 2);
    // A token that was verified with the old key is accepted for a few minutes more.
    together.server.clock.advance(Duration::from_secs(300));
    assert_invalid(&together.with_token(&old).await);
    assert_eq!(together.with_token(&new).await.status, 200);
}

#[tokio::test]
async fn the_key_endpoint_is_down_or_hangs() {
    for mode in ["down", "hang"] {
        let together = with_own_provider().await;
        let provider = &together.provider;
        provider.jwks(mode).await;
        let token = provider.machine("rs256", "mcp:read").await;
        let answer = together.with_token(&token).await;
        assert_eq!(answer.status, 503, "{mode}");
        assert!(answer.header("retry-after").is_some());
        provider.jwks("up").await;
        together.server.clock.advance(Duration::from_secs(5));
        assert_eq!(together.with_token(&token).await.status, 200, "{mode}");
        provider.jwks(mode).await;
        together.server.clock.advance(Duration::from_secs(60 * 9));
        let another = provider.machine("eddsa", "mcp:read").await;
        assert_eq!(together.with_token(&another).await.status, 200, "{mode}");
    }
}

#[tokio::test]
async fn the_provider_is_frozen_or_gone() {
    let together = with_own_provider().await;
    let jwts = [
        together.provider.machine("rs256", "mcp:read").await,
        together.provider.machine("es256", "mcp:read").await,
    ];
    let opaque = together.provider.machine("opaque", "mcp:read").await;
    assert_eq!(together.with_token(&jwts[0]).await.status, 200);
    together.provider.freeze();
    // Its keys are cached; opaque tokens cannot be checked.
    assert_eq!(together.with_token(&jwts[1]).await.status, 200);
    assert_eq!(together.with_token(&opaque).await.status, 503);
    together.provider.kill();
    assert_eq!(together.with_token(&jwts[1]).await.status, 200);
    assert_eq!(together.with_token(&opaque).await.status, 503);
}
