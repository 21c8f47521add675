//! Opaque tokens, checked by introspection (RFC 7662).

use std::time::Duration;

use larder::config::{Config, IntrospectionConfig};
use serde_json::{Value, json};

use super::{RESOURCE, World, assert_invalid, issuer::Reply, ping, world, world_with};
use crate::support::{Answer, Modern, eventually};

/// Enables introspection, with a client secret from a file.
fn introspect(config: &mut Config, secret: &tempfile::NamedTempFile) {
    std::fs::write(secret.path(), "s3cret with spaces\n").unwrap();
    config.auth.issuers[0].introspection = Some(IntrospectionConfig {
        client_id: "larder".into(),
        client_secret_file: Some(secret.path().to_owned()),
        ..IntrospectionConfig::default()
    });
}

/// A server that checks opaque tokens.
pub(super) async fn opaque() -> World {
    let secret = tempfile::NamedTempFile::new().unwrap();
    world_with(|config| introspect(config, &secret)).await
}

/// The introspection response for a valid token.
pub(super) fn active(world: &World) -> Value {
    let claims = world.claims();
    json!({
        "active": true,
        "sub": "alice",
        "aud": RESOURCE,
        "iss": world.issuer.url,
        "client_id": "app",
        "token_type": "Bearer",
        "scope": "mcp:read",
        "iat": claims["iat"],
        "exp": claims["exp"],
    })
}

impl World {
    pub(super) fn introspected(&self, reply: Reply) {
        self.issuer.set_reply("/introspect", reply);
    }

    /// The response to a request with an opaque token.
    async fn opaque(&self) -> Answer {
        self.with_token("an_opaque-token").await
    }
}

#[tokio::test]
async fn an_active_token_of_ours_is_accepted() {
    let world = opaque().await;
    world.introspected(Reply::Json(active(&world)));
    assert_eq!(world.opaque().await.status, 200);
    let body = world.issuer.bodies("/introspect").remove(0);
    assert!(body.contains("token=an_opaque-token"), "{body}");
}

#[tokio::test]
async fn a_token_that_introspection_does_not_confirm_is_refused() {
    let now = world().await.claims()["iat"].as_u64().unwrap();
    let changes = [
        json!({ "active": false }),
        // An active refresh token has no audience.
        json!({ "aud": null }),
        json!({ "aud": "https://other.example" }),
        json!({ "aud": ["a", "b"] }),
        json!({ "iss": "https://other.example" }),
        json!({ "token_type": "refresh_token" }),
        json!({ "token_type": "DPoP" }),
        json!({ "cnf": { "jkt": "x" } }),
        json!({ "exp": now - 31 }),
        json!({ "nbf": now + 31 }),
        json!({ "iat": now + 31 }),
        json!({ "sub": null, "client_id": null }),
    ];
    for change in changes {
        let world = opaque().await;
        let mut response = active(&world);
        for (name, value) in change.as_object().unwrap() {
            response[name] = value.clone();
            if value.is_null() {
                response.as_object_mut().unwrap().remove(name);
            }
        }
        world.introspected(Reply::Json(response));
        let answer = world.opaque().await;
        assert_eq!(answer.status, 401, "{change}");
        assert_invalid(&answer);
    }
}

#[tokio::test]
async fn while_introspection_fails_a_token_is_neither_accepted_nor_invalid() {
    for reply in [
        Reply::Status(503, json!({ "active": true, "error": "temporarily_unavailable" })),
        Reply::Status(500, json!({ "active": false })),
        Reply::Status(400, json!({ "error": "invalid_request" })),
        Reply::Status(401, json!({ "error": "invalid_client" })),
        Reply::Text("not JSON".into()),
        Reply::Redirect("https://elsewhere.example/introspect".into()),
    ] {
        let world = opaque().await;
        world.introspected(reply.clone());
        let answer = world.opaque().await;
        assert_eq!(answer.status, 503, "{reply:?}");
        assert!(answer.header("retry-after").is_some());
        assert_eq!(answer.header("www-authenticate"), None);
    }
}

#[tokio::test]
async fn a_jwt_is_never_introspected() {
    let world = opaque().await;
    world.introspected(Reply::Json(active(&world)));
    for token in [
        world.token(|claims| claims["exp"] = json!(1)),
        "a.b.c".to_owned(),
        "eyJhbGciOiJub25lIn0.e30.".to_owned(),
        "a.b.c.d.e".to_owned(),
    ] {
        assert_invalid(&world.with_token(&token).await);
    }
    assert_eq!(world.issuer.hits("/introspect"), 0);
}

#[tokio::test]
async fn introspection_is_cached_briefly_and_never_past_the_expiry() {
    let world = opaque().await;
    world.introspected(Reply::Json(active(&world)));
    for _ in 0..5 {
        assert_eq!(world.opaque().await.status, 200);
    }
    assert_eq!(world.issuer.hits("/introspect"), 1);
    world.introspected(Reply::Json(json!({ "active": false })));
    world.server.clock.advance(Duration::from_secs(30));
    assert_invalid(&world.opaque().await);

    let world = opaque().await;
    let mut response = active(&world);
    response["exp"] = json!(world.claims()["iat"].as_u64().unwrap() + 5);
    world.introspected(Reply::Json(response));
    assert_eq!(world.opaque().await.status, 200);
    world.introspected(Reply::Json(json!({ "active": false })));
    world.server.clock.advance(Duration::from_secs(5));
    assert_invalid(&world.opaque().await);
}

#[tokio::test]
async fn without_introspection_opaque_tokens_are_refused() {
    let world = world().await;
    world.introspected(Reply::Json(active(&world)));
    assert_invalid(&world.opaque().await);
    assert_eq!(world.issuer.hits("/introspect"), 0);
}

#[tokio::test]
async fn the_token_of_a_machine_needs_no_subject() {
    let world = opaque().await;
    let mut response = active(&world);
    response.as_object_mut().unwrap().remove("sub");
    world.introspected(Reply::Json(response));
    assert_eq!(world.opaque().await.status, 200);
}

#[tokio::test]
async fn too_many_tokens_that_are_checked_at_once_are_refused_until_later() {
    let secret = tempfile::NamedTempFile::new().unwrap();
    let world = world_with(|config| {
        introspect(config, &secret);
        let introspection = config.auth.issuers[0].introspection.as_mut().unwrap();
        (introspection.concurrent, introspection.waiting) = (1, 1);
    })
    .await;
    world.introspected(Reply::Hang);
    let pending = ["one", "two"].map(|token| {
        let request = ping(&world.server).bearer_auth(token);
        tokio::spawn(async move { request.send().await })
    });
    let refused = async || {
        let answer = world.with_token("three").await;
        (answer.status, answer.header("retry-after")) == (503, Some("1"))
    };
    eventually("a full queue", refused).await;
    // A token that needs no request is not affected.
    assert_eq!(world.with_token(&world.token(|_| {})).await.status, 200);
    for task in pending {
        task.abort();
    }
}

#[tokio::test]
async fn a_token_with_another_prefix_costs_no_request() {
    let secret = tempfile::NamedTempFile::new().unwrap();
    let world = world_with(|config| {
        introspect(config, &secret);
        let introspection = config.auth.issuers[0].introspection.as_mut().unwrap();
        introspection.token_prefix = Some("an_".into());
    })
    .await;
    world.introspected(Reply::Json(active(&world)));
    assert_invalid(&world.with_token("junk").await);
    assert_eq!(world.issuer.hits("/introspect"), 0);
    assert_eq!(world.opaque().await.status, 200);
}

#[tokio::test]
async fn the_stream_of_a_revoked_token_ends() {
    let world = opaque().await;
    let mut response = active(&world);
    response.as_object_mut().unwrap().remove("exp");
    world.introspected(Reply::Json(response));
    let client = Modern::bearing(&world.server, "an_opaque-token");
    let mut stream = client.listen(1, json!({ "toolsListChanged": true })).await;
    // As long as the token is active the stream goes on.
    world.server.clock.advance(Duration::from_secs(30));
    let checked = async || world.issuer.hits("/introspect") == 2;
    eventually("the token to be checked again", checked).await;
    world.introspected(Reply::Json(json!({ "active": false })));
    world.server.clock.advance(Duration::from_secs(30));
    let last: Value = serde_json::from_str(&stream.next().await.unwrap().data).unwrap();
    assert!(last["error"]["message"].as_str().unwrap().contains("token"), "{last}");
    assert!(stream.next().await.is_none(), "the stream goes on");
}
