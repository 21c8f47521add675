//! The issuer's keys: found by discovery, fetched seldom, and kept while the issuer fails.

use std::time::Duration;

use serde_json::json;

use super::{
    World, accept, assert_invalid,
    issuer::{Issuer, Reply},
    signer::Signer,
    world, world_with,
};
use crate::support::Server;

#[tokio::test]
async fn both_kinds_of_metadata_are_found() {
    for (path, tenant) in [
        ("/.well-known/oauth-authorization-server", ""),
        ("/.well-known/openid-configuration", ""),
        ("/.well-known/oauth-authorization-server/tenant", "/tenant"),
        ("/.well-known/openid-configuration/tenant", "/tenant"),
        ("/tenant/.well-known/openid-configuration", "/tenant"),
    ] {
        let issuer = Issuer::empty().await;
        let name = format!("{}{tenant}", issuer.url);
        let mut metadata = issuer.metadata();
        metadata["issuer"] = json!(name);
        issuer.set_reply(path, Reply::Json(metadata));
        issuer.set_keys(&[Signer::Rsa.jwk()]);
        let server = Server::configured(|setup| accept(&mut setup.config, &name)).await;
        let world = World { issuer, server };
        let token = world.token(|claims| claims["iss"] = json!(name));
        assert_eq!(world.with_token(&token).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn an_explicit_key_set_needs_no_discovery() {
    let issuer = Issuer::empty().await;
    issuer.set_reply("/keys", Reply::Json(json!({ "keys": [Signer::Rsa.jwk()] })));
    let server = Server::configured(|setup| {
        accept(&mut setup.config, &issuer.url);
        setup.config.auth.issuers[0].jwks_url = Some(format!("{}/keys", issuer.url));
    })
    .await;
    let world = World { issuer, server };
    assert_eq!(world.with_token(&world.token(|_| {})).await.status, 200);
    assert_eq!(world.issuer.hits("/keys"), 1);
}

#[tokio::test]
async fn many_requests_are_one_fetch() {
    let world = world().await;
    let tokens: Vec<_> = (0..40).map(|n| world.token(|claims| claims["jti"] = json!(n))).collect();
    let all = tokens.iter().map(|token| world.with_token(token));
    for answer in futures_util::future::join_all(all).await {
        assert_eq!(answer.status, 200);
    }
    assert_eq!(world.issuer.hits("/jwks"), 1);
}

#[tokio::test]
async fn thirty_unknown_keys_in_210_requests_are_one_fetch() {
    let world = world().await;
    assert_eq!(world.with_token(&world.token(|_| {})).await.status, 200);
    let before = world.issuer.hits("/jwks");
    for n in 0..210 {
        let mut header = Signer::Rsa.header();
        header["kid"] = json!(format!("made up {}", n % 30));
        let mut claims = world.claims();
        claims["jti"] = json!(n);
        // Not invalid as long as the key cannot be looked for.
        let answer = world.with_token(&Signer::Rsa.sign(&header, &claims)).await;
        assert!(matches!(answer.status, 401 | 503), "{answer:?}");
    }
    assert!(world.issuer.hits("/jwks") - before <= 1);
}

#[tokio::test]
async fn rotated_keys_are_fetched_at_once() {
    let world = world().await;
    assert_eq!(world.with_token(&world.token(|_| {})).await.status, 200);
    let mut rotated = Signer::Stranger.jwk();
    rotated["kid"] = json!("new");
    world.issuer.set_keys(&[rotated]);
    let mut header = Signer::Stranger.header();
    header["kid"] = json!("new");
    let token = Signer::Stranger.sign(&header, &world.claims());
    assert_eq!(world.with_token(&token).await.status, 200);
    world.server.clock.advance(Duration::from_secs(5));
    assert_invalid(&world.with_token(&world.token(|claims| claims["jti"] = json!("2"))).await);
}

#[tokio::test]
async fn the_last_key_set_is_used_while_the_endpoint_fails_or_hangs() {
    for reply in [
        Reply::Status(503, json!({})),
        Reply::Hang,
        Reply::Json(json!({})),
        Reply::Text("x".into()),
    ] {
        let world = world().await;
        assert_eq!(world.with_token(&world.token(|_| {})).await.status, 200);
        world.issuer.set_reply("/jwks", reply.clone());
        for hour in 1..3 {
            world.server.clock.advance(Duration::from_secs(3600));
            let begun = tokio::time::Instant::now();
            let answer = world.with_token(&world.token(|claims| claims["jti"] = json!(hour))).await;
            assert_eq!(answer.status, 200, "{reply:?}");
            assert!(
                begun.elapsed() < Duration::from_secs(3),
                "the request waited for the endpoint"
            );
        }
    }
}

#[tokio::test]
async fn redirects_are_followed_within_the_issuer_only() {
    let world = world().await;
    let elsewhere = Issuer::start().await;
    world.issuer.set_reply("/jwks", Reply::Redirect(format!("{}/jwks", elsewhere.url)));
    assert_eq!(world.with_token(&world.token(|_| {})).await.status, 503);
    assert_eq!(elsewhere.hits("/jwks"), 0);

    let world = super::world().await;
    world.issuer.set_reply("/jwks", Reply::Redirect("/moved".into()));
    world.issuer.set_reply("/moved", Reply::Json(json!({ "keys": [Signer::Rsa.jwk()] })));
    assert_eq!(world.with_token(&world.token(|_| {})).await.status, 200);
}

#[tokio::test]
async fn a_key_set_that_is_too_large_is_ignored() {
    let world = world().await;
    let padding = "x".repeat(1 << 20);
    world
        .issuer
        .set_reply("/jwks", Reply::Json(json!({ "keys": [Signer::Rsa.jwk()], "x": padding })));
    assert_eq!(world.with_token(&world.token(|_| {})).await.status, 503);
}

#[tokio::test]
async fn an_invalid_key_does_not_affect_the_others() {
    let world = world().await;
    let mut numeric = Signer::Ec.jwk();
    numeric["kid"] = json!(7);
    world.issuer.set_keys(&[json!(null), json!({ "kty": "new" }), numeric, Signer::Rsa.jwk()]);
    assert_eq!(world.with_token(&world.token(|_| {})).await.status, 200);
}

#[tokio::test]
async fn a_key_for_encryption_verifies_no_signature() {
    let world = world_with(|_| {}).await;
    let mut key = Signer::Rsa.jwk();
    key["use"] = json!("enc");
    world.issuer.set_keys(&[key]);
    assert_invalid(&world.with_token(&world.token(|_| {})).await);
}
