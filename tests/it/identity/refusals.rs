//! What an OpenID provider, or somebody in its place, cannot do.

use larder::login::ProviderKind::Oidc;
use serde_json::{Value, json};

use super::{METADATA, World, outage, refusal};
use crate::auth::{
    issuer::{Issuer, Reply},
    signer::{Signer, part},
};

#[tokio::test]
async fn id_tokens_of_others_are_refused() {
    let world = World::start(Oidc).await;
    let claims = world.claims();
    let header = |alg: &str| json!({ "alg": alg, "kid": "rsa" });
    let with = |change: &dyn Fn(&mut Value)| {
        let mut claims = claims.clone();
        change(&mut claims);
        super::id_token(&claims)
    };
    let unsigned = format!("{}.{}.", part(header("none").to_string()), part(claims.to_string()));
    let now = world.now();
    for (name, token) in [
        ("another key", Signer::Stranger.sign(&header("RS256"), &claims)),
        ("a symmetric key", Signer::confused(&header("HS256"), &claims)),
        ("another algorithm", Signer::Rsa.sign(&header("PS256"), &claims)),
        ("another algorithm's key", Signer::Ec.sign(&header("ES256"), &claims)),
        ("no signature", unsigned),
        ("an access token", Signer::Rsa.token(&claims)),
        ("another login", with(&|claims| claims["nonce"] = json!("another"))),
        ("no login", with(&|claims| claims["nonce"] = Value::Null)),
        ("another issuer", with(&|claims| claims["iss"] = json!("https://other.example"))),
        ("another client", with(&|claims| claims["aud"] = json!("another"))),
        ("several clients", with(&|claims| claims["aud"] = json!(["larder", "another"]))),
        ("another party", with(&|claims| claims["azp"] = json!("another"))),
        ("the past", with(&|claims| claims["exp"] = json!(now - 31))),
        ("the future", with(&|claims| claims["iat"] = json!(now + 31))),
        ("nobody", with(&|claims| claims["sub"] = json!(""))),
        ("rubbish", "rubbish".to_owned()),
    ] {
        world.set_id_token(&token);
        let text = refusal(world.redeem().await);
        assert!(text.contains("the ID token is not accepted"), "{name}: {text}");
    }
    world
        .server
        .set_reply("/token", Reply::Json(json!({ "access_token": "a", "token_type": "Bearer" })));
    assert!(refusal(world.redeem().await).contains("no ID token"));
}

#[tokio::test]
async fn no_secret_follows_a_redirect_to_another_host() {
    let world = World::start(Oidc).await;
    let thief = Issuer::empty().await;
    world.server.set_reply("/token", Reply::Redirect(format!("{}/token", thief.url)));
    outage(world.redeem().await);
    world.set_tokens(|claims| claims["email"] = Value::Null);
    world.server.set_reply("/userinfo", Reply::Redirect(format!("{}/userinfo", thief.url)));
    refusal(world.redeem().await);
    assert_eq!((thief.hits("/token"), thief.hits("/userinfo")), (0, 0));

    let elsewhere = World::start(Oidc).await;
    elsewhere.server.set_reply(METADATA, Reply::Redirect(format!("{}{METADATA}", thief.url)));
    outage(elsewhere.redeem().await);
    assert_eq!(thief.hits(METADATA), 0);
}

#[tokio::test]
async fn responses_are_bounded() {
    let world = World::start(Oidc).await;
    let huge = json!({ "access_token": "a".repeat(600 << 10), "token_type": "Bearer" });
    world.server.set_reply("/token", Reply::Json(huge));
    assert!(outage(world.redeem().await).contains("larger than"));
    world.set_tokens(|claims| {
        claims["groups"] = (0..2_001).map(|n| json!(n.to_string())).collect();
    });
    assert!(refusal(world.redeem().await).contains("more than 2000 groups"));
}

#[tokio::test]
async fn an_outage_of_discovery_or_keys_is_no_refusal() {
    let world = World::start(Oidc).await;
    world.set_tokens(|_| {});
    world.server.set_reply("/jwks", Reply::Status(503, json!({})));
    outage(world.redeem().await);
    let world = World::start(Oidc).await;
    world.server.set_reply(METADATA, Reply::Status(503, json!({})));
    outage(world.redeem().await);
    outage(world.refresh().await);
    outage(world.provider.issuer().await);
}

/// A response in part, an unknown error or an outage: nothing panics, nobody is logged in.
#[tokio::test]
async fn malformed_responses_log_nobody_in() {
    let world = World::start(Oidc).await;
    for reply in [
        Reply::Text("<html>".into()),
        Reply::Json(json!([])),
        Reply::Json(json!({ "access_token": 7 })),
        Reply::Json(json!({ "access_token": "a", "token_type": "Bearer", "id_token": 7 })),
        Reply::Status(400, json!("x")),
        Reply::Status(418, json!({ "error": "teapot" })),
    ] {
        world.server.set_reply("/token", reply.clone());
        assert!(world.redeem().await.is_err(), "{reply:?}");
        assert!(world.refresh().await.is_err(), "{reply:?}");
    }
}
