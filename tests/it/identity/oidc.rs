//! Any OpenID provider.

use larder::login::ProviderKind::Oidc;
use serde_json::json;

use super::{METADATA, REDIRECT_URI, World, has, outage, refresh_token, refusal};
use crate::auth::{issuer::Reply, signer::Signer};

#[tokio::test]
async fn a_login_is_bound_by_state_nonce_and_challenge() {
    let world = World::start(Oidc).await;
    let parameters = world.authorization().await;
    for (name, value) in [
        ("audience", "x"),
        ("response_type", "code"),
        ("client_id", "larder"),
        ("redirect_uri", REDIRECT_URI),
        ("scope", "openid profile email offline_access"),
        ("prompt", "consent"),
        ("state", "the state"),
        ("nonce", "the nonce"),
        ("code_challenge", "the challenge"),
        ("code_challenge_method", "S256"),
    ] {
        assert!(has(&parameters, name, value), "{name}: {parameters:?}");
    }
    let issuer = world.provider.issuer().await.unwrap();
    assert_eq!((issuer.issuer, issuer.is_required), (Some(world.server.url.clone()), true));
}

#[tokio::test]
async fn offline_access_is_asked_for_only_where_the_provider_lists_it() {
    let world = World::start(Oidc).await;
    world.set_metadata(|metadata| metadata["scopes_supported"] = json!(["openid"]));
    let parameters = world.authorization().await;
    assert!(has(&parameters, "scope", "openid profile email"), "{parameters:?}");
    assert!(parameters.iter().all(|(name, _)| name != "prompt"));
}

#[tokio::test]
async fn a_code_gives_the_user_of_the_id_token() {
    let world = World::start(Oidc).await;
    world.set_tokens(|_| {});
    let user = world.redeem().await.unwrap();
    let person = &user.person;
    assert_eq!(person.issuer, world.server.url);
    assert_eq!(person.subject, "alice");
    assert_eq!(person.email.as_deref(), Some("alice@example.com"));
    assert!(person.email_verified);
    assert_eq!(person.name.as_deref(), Some("Alice"));
    assert_eq!(person.groups, ["engineering"]);
    assert_eq!(user.grant, Some(refresh_token("the refresh token")));
    assert_eq!(world.server.hits("/userinfo"), 0);
    let request = &world.server.requests("/token")[0];
    // larder:s%26cret, as RFC 6749, section 2.3.1, encodes it.
    assert_eq!(request.authorization.as_deref(), Some("Basic bGFyZGVyOnMlMjZjcmV0"));
    for part in ["grant_type=authorization_code", "code=the+code", "code_verifier=the+verifier"] {
        assert!(request.body.contains(part), "{}", request.body);
    }
}

#[tokio::test]
async fn a_secret_in_the_body_is_not_in_the_header() {
    let world = World::start(Oidc).await;
    world.set_metadata(|metadata| {
        metadata["token_endpoint_auth_methods_supported"] = json!(["client_secret_post"]);
    });
    world.set_tokens(|_| {});
    world.redeem().await.unwrap();
    let request = &world.server.requests("/token")[0];
    assert_eq!(request.authorization, None);
    assert!(request.body.contains("client_secret=s%26cret"), "{}", request.body);
}

#[tokio::test]
async fn userinfo_has_what_the_id_token_lacks() {
    let world = World::with(Oidc, |options| options.groups_claim = Some("roles".into())).await;
    world.set_tokens(|claims| {
        for name in ["email", "email_verified", "name"] {
            claims.as_object_mut().unwrap().remove(name);
        }
    });
    let userinfo = json!({
        "sub": "alice", "email": "a@example.com", "email_verified": true, "roles": ["admins"],
    });
    world.server.set_reply("/userinfo", Reply::Json(userinfo.clone()));
    let person = world.redeem().await.unwrap().person;
    assert_eq!(person.email.as_deref(), Some("a@example.com"));
    assert_eq!(person.groups, ["admins"]);
    let request = &world.server.requests("/userinfo")[0];
    assert_eq!(request.authorization.as_deref(), Some("Bearer the access token"));

    let mut other = userinfo;
    other["sub"] = json!("bob");
    world.server.set_reply("/userinfo", Reply::Json(other));
    assert!(refusal(world.redeem().await).contains("another user"));
}

#[tokio::test]
async fn an_address_is_verified_only_if_the_provider_says_so() {
    let world = World::start(Oidc).await;
    for (claim, is_verified) in
        [(json!(true), true), (json!("true"), true), (json!(false), false), (json!(null), false)]
    {
        world.set_tokens(|claims| claims["email_verified"] = claim.clone());
        let person = world.redeem().await.unwrap().person;
        assert_eq!(person.email_verified, is_verified, "{claim}");
    }
}

#[tokio::test]
async fn a_refresh_asks_the_provider_again() {
    let world = World::start(Oidc).await;
    let id_token = {
        let mut claims = world.claims();
        claims.as_object_mut().unwrap().remove("nonce");
        claims["groups"] = json!(["others"]);
        super::id_token(&claims)
    };
    let tokens = json!({
        "access_token": "a", "token_type": "Bearer", "refresh_token": "the next",
        "id_token": id_token,
    });
    world.server.set_reply("/token", Reply::Json(tokens));
    let user = world.refresh().await.unwrap();
    assert_eq!(user.person.groups, ["others"]);
    assert_eq!(user.grant, Some(refresh_token("the next")));
    let body = &world.server.bodies("/token")[0];
    assert!(body.contains("refresh_token=the+refresh+token"), "{body}");

    // Without an ID token and a new refresh token.
    let tokens = json!({ "access_token": "a", "token_type": "Bearer" });
    world.server.set_reply("/token", Reply::Json(tokens));
    world.server.set_reply("/userinfo", Reply::Json(json!({ "sub": "alice" })));
    let user = world.refresh().await.unwrap();
    assert_eq!(user.person.subject, "alice");
    assert_eq!(user.grant, Some(refresh_token("the refresh token")));
}

#[tokio::test]
async fn a_disabled_user_is_out_and_an_outage_says_nothing_about_users() {
    let world = World::start(Oidc).await;
    let error = |status, code| {
        let body = json!({ "error": code, "error_description": "AADSTS50057: disabled" });
        world.server.set_reply("/token", Reply::Status(status, body));
    };
    error(400, "invalid_grant");
    assert!(refusal(world.refresh().await).contains("invalid_grant"));
    error(400, "interaction_required");
    refusal(world.refresh().await);
    for (status, code) in
        [(503, "invalid_grant"), (500, ""), (429, "slow_down"), (400, "temporarily_unavailable")]
    {
        error(status, code);
        outage(world.refresh().await);
    }
    // The operator's mistake ends nobody's login.
    error(401, "invalid_client");
    assert!(outage(world.refresh().await).contains("auth.login.client_secret_file"));
}

#[tokio::test]
async fn keys_are_fetched_again_after_a_rotation() {
    let world = World::start(Oidc).await;
    world.set_tokens(|_| {});
    world.redeem().await.unwrap();
    world.redeem().await.unwrap();
    assert_eq!((world.server.hits("/jwks"), world.server.hits(METADATA)), (1, 1));
    let mut key = Signer::Rsa.jwk();
    key["kid"] = json!("new");
    world.server.set_keys(&[key]);
    let header = json!({ "alg": "RS256", "kid": "new", "typ": "JWT" });
    world.set_id_token(&Signer::Rsa.sign(&header, &world.claims()));
    world.redeem().await.unwrap();
    assert_eq!(world.server.hits("/jwks"), 2);
}

#[tokio::test]
async fn a_check_says_what_an_operator_must_change() {
    let world = World::start(Oidc).await;
    world.server.set_reply("/token", Reply::Status(400, json!({ "error": "invalid_grant" })));
    assert_eq!(world.provider.check().await.unwrap(), "2 usable keys, the client is accepted");
    world.server.set_reply("/token", Reply::Status(401, json!({ "error": "invalid_client" })));
    assert!(world.provider.check().await.unwrap_err().contains("auth.login.client_id"));

    let without_keys = World::start(Oidc).await;
    without_keys.server.set_keys(&[]);
    assert!(without_keys.provider.check().await.unwrap_err().contains("no usable key"));

    let other = World::start(Oidc).await;
    other.set_metadata(|metadata| metadata["issuer"] = json!("https://other.example"));
    assert!(other.provider.check().await.unwrap_err().contains("auth.login.issuer"));

    let absent = World::start(Oidc).await;
    absent.server.set_reply(METADATA, Reply::Status(404, json!({})));
    assert!(absent.provider.check().await.unwrap_err().contains("status 404"));
}
