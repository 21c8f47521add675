//! Codes, refresh tokens, revocation.

use std::time::Duration;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{Browser, Client, Site, body, parameter, refusal};
use crate::auth::provider::Provider;

/// Waits until an access token is refused: a verified one is cached for some seconds.
async fn until_refused(site: &Site, client: &Client, tokens: &serde_json::Value) {
    site.server.clock.advance(std::time::Duration::from_secs(11));
    assert_eq!(client.status(tokens).await, 401);
}

#[tokio::test]
async fn a_code_that_is_redeemed_twice_revokes_what_the_first_use_gave() {
    let site = Site::start().await;
    let client = site.client();
    let id = client.register().await;
    let code = client.code(&mut Browser::of("alice"), &id).await;
    let tokens = body(client.redeem(&id, &code).await).await;
    assert_eq!(client.status(&tokens).await, 200);
    assert_eq!(refusal(client.redeem(&id, &code).await).await, (400, "invalid_grant".into()));
    assert_eq!(refusal(client.refresh(&id, &tokens).await).await, (400, "invalid_grant".into()));
    until_refused(&site, &client, &tokens).await;
}

#[tokio::test]
async fn a_code_is_for_its_client_redirect_and_verifier_and_for_a_minute() {
    let site = Site::start().await;
    let client = site.client();
    let (id, other) = (client.register().await, client.register().await);
    let code = client.code(&mut Browser::of("alice"), &id).await;
    let (verifier, redirect) = (super::VERIFIER, super::REDIRECT);
    for (who, verifier, redirect) in [
        (&other, verifier, redirect),
        (&id, "another verifier of forty-three characters or more", redirect),
        (&id, "short", redirect),
        (&id, verifier, "http://127.0.0.1:3001/callback"),
    ] {
        let response = client.redeem_with(who, &code, verifier, redirect).await;
        assert_eq!(refusal(response).await, (400, "invalid_grant".into()), "{verifier} {redirect}");
    }
    let foreign = [
        ("grant_type", "authorization_code"),
        ("client_id", &id),
        ("code", &code),
        ("code_verifier", verifier),
        ("redirect_uri", redirect),
        ("resource", "https://other.example/mcp"),
    ];
    let response = client.post("token", &foreign).await;
    assert_eq!(refusal(response).await, (400, "invalid_target".into()));
    site.server.clock.advance(std::time::Duration::from_secs(61));
    assert_eq!(refusal(client.redeem(&id, &code).await).await, (400, "invalid_grant".into()));
}

#[tokio::test]
async fn a_refresh_token_is_used_once_and_its_reuse_ends_the_family() {
    let site = Site::start().await;
    let client = site.client();
    let id = client.register().await;
    let first = client.tokens("alice", &id).await;
    let second = body(client.refresh(&id, &first).await).await;
    assert_ne!(first["refresh_token"], second["refresh_token"]);
    assert_eq!(client.status(&second).await, 200);
    let third = body(client.refresh(&id, &second).await).await;
    // Not a moment later, when another process of the client may use it.
    site.server.clock.advance(Duration::from_secs(31));
    assert_eq!(refusal(client.refresh(&id, &first).await).await, (400, "invalid_grant".into()));
    assert_eq!(refusal(client.refresh(&id, &third).await).await, (400, "invalid_grant".into()));
    until_refused(&site, &client, &third).await;
}

#[tokio::test]
async fn processes_that_refresh_at_once_get_the_same_tokens() {
    let site = Site::start().await;
    let client = site.client();
    let id = client.register().await;
    let first = client.tokens("alice", &id).await;
    let answers = join_all((0..5).map(|_| client.refresh(&id, &first))).await;
    let mut same = Vec::new();
    for answer in answers {
        assert_eq!(answer.status(), 200);
        same.push(body(answer).await);
    }
    let token = |tokens: &Value, name: &str| tokens[name].as_str().unwrap().to_owned();
    for name in ["access_token", "refresh_token", "scope"] {
        let different = same.iter().find(|tokens| token(tokens, name) != token(&same[0], name));
        assert!(different.is_none(), "{name}");
    }
    assert_eq!(client.status(&same[0]).await, 200);

    // A process that comes a little later gets them, too, even if they were replaced again.
    site.server.clock.advance(Duration::from_secs(15));
    let second = body(client.refresh(&id, &same[0]).await).await;
    let late = body(client.refresh(&id, &first).await).await;
    assert_eq!(token(&late, "refresh_token"), token(&second, "refresh_token"));
    assert_eq!(token(&late, "access_token"), token(&second, "access_token"));

    // After half a minute it is a theft.
    site.server.clock.advance(Duration::from_secs(16));
    assert_eq!(refusal(client.refresh(&id, &first).await).await, (400, "invalid_grant".into()));
    assert_eq!(refusal(client.refresh(&id, &second).await).await, (400, "invalid_grant".into()));
}

#[tokio::test]
async fn a_token_that_was_just_replaced_gives_fewer_scopes_and_revokes_the_login() {
    let site = Site::start().await;
    let client = site.client();
    let id = client.register().await;
    let mut request = client.request(&id);
    request[3].1 = "mcp:read offline_access".to_owned();
    let back = Browser::of("alice").log_in(client.authorize_url(&request), "allow").await;
    let first = body(client.redeem(&id, &parameter(&back, "code").unwrap()).await).await;
    let second = body(client.refresh(&id, &first).await).await;

    let replaced = first["refresh_token"].as_str().unwrap();
    let form = [
        ("grant_type", "refresh_token"),
        ("client_id", &*id),
        ("refresh_token", replaced),
        ("scope", "mcp:read"),
    ];
    let fewer = body(client.post("token", &form).await).await;
    assert_eq!(fewer["scope"], "mcp:read");
    assert_ne!(fewer["access_token"], second["access_token"]);
    assert_eq!(fewer["refresh_token"], second["refresh_token"]);
    assert_eq!(client.status(&fewer).await, 200);

    let form = [("token", replaced), ("client_id", &*id)];
    assert_eq!(client.post("revoke", &form).await.status(), 200);
    assert_eq!(refusal(client.refresh(&id, &second).await).await, (400, "invalid_grant".into()));
    until_refused(&site, &client, &second).await;
}

/// The claims of an access token.
fn claims(tokens: &Value) -> Value {
    let token = tokens["access_token"].as_str().unwrap();
    let claims = BASE64_URL_SAFE_NO_PAD.decode(token.split('.').nth(1).unwrap()).unwrap();
    serde_json::from_slice(&claims).unwrap()
}

#[tokio::test]
async fn access_tokens_name_the_client_by_its_registered_identifier() {
    let site = Site::start().await;
    let client = site.client();
    let id = client.register().await;
    let tokens = client.tokens("alice", &id).await;
    assert_eq!(claims(&tokens)["client_id"], id);
    let tokens = body(client.refresh(&id, &tokens).await).await;
    assert_eq!(claims(&tokens)["client_id"], id);
}

#[tokio::test]
async fn offline_access_is_granted_to_those_who_ask_for_it_and_is_in_no_access_token() {
    let site = Site::start().await;
    let client = site.client();
    let id = client.register().await;
    for (asked, granted) in [
        ("mcp:read offline_access", "mcp:read offline_access"),
        ("offline_access", "mcp:read offline_access"),
        ("openid offline_access mcp:read", "mcp:read offline_access"),
        ("mcp:read", "mcp:read"),
        ("openid", "mcp:read"),
    ] {
        let mut request = client.request(&id);
        request[3].1 = asked.to_owned();
        let back = Browser::of("alice").log_in(client.authorize_url(&request), "allow").await;
        let code = parameter(&back, "code").unwrap_or_else(|| panic!("{asked}: {back}"));
        let tokens = body(client.redeem(&id, &code).await).await;
        assert_eq!(tokens["scope"], granted, "{asked}");
        assert_eq!(claims(&tokens)["scope"], "mcp:read", "{asked}");
        let tokens = body(client.refresh(&id, &tokens).await).await;
        assert_eq!(tokens["scope"], granted, "{asked}");
        let form = [
            ("grant_type", "refresh_token"),
            ("client_id", &*id),
            ("refresh_token", tokens["refresh_token"].as_str().unwrap()),
            ("scope", granted),
        ];
        assert_eq!(client.post("token", &form).await.status(), 200, "{asked}");
    }
}

#[tokio::test]
async fn apps_register_schemes_that_begin_with_their_domain() {
    let client = Site::start().await;
    let client = client.client();
    for (uri, status) in [
        ("com.example.app:/cb", 201),
        ("com.example.app:/oauth/callback", 201),
        ("io.github.user.app:/", 201),
        ("com.example.app://host/cb", 201),
        ("com.example.app:/cb?command=x", 400),
        ("app:/cb", 400),
        ("com.apple.mail:/cb", 400),
    ] {
        let registration = json!({ "client_name": "An app", "redirect_uris": [uri] });
        assert_eq!(client.try_register(&registration).await.status(), status, "{uri}");
    }
}

#[tokio::test]
async fn tokens_are_revoked_by_either_of_them() {
    let site = Site::start().await;
    let client = site.client();
    let id = client.register().await;
    for kind in ["refresh_token", "access_token"] {
        let tokens = client.tokens("alice", &id).await;
        let token = tokens[kind].as_str().unwrap();
        let form = [("token", token), ("client_id", id.as_str())];
        assert_eq!(client.post("revoke", &form).await.status(), 200);
        let refused = refusal(client.refresh(&id, &tokens).await).await;
        assert_eq!(refused, (400, "invalid_grant".into()), "{kind}");
        until_refused(&site, &client, &tokens).await;
        // Unknown ones are revoked already.
        assert_eq!(client.post("revoke", &form).await.status(), 200);
    }
    assert_eq!(client.post("revoke", &[("token", "x")]).await.status(), 200);
}

#[tokio::test]
async fn a_user_who_is_disabled_at_the_provider_is_out_at_the_next_refresh() {
    let provider = Provider::start().await;
    let site = Site::with(&provider, |_| {}).await;
    let client = site.client();
    let id = client.register().await;
    let tokens = client.tokens("alice", &id).await;
    let tokens = body(client.refresh(&id, &tokens).await).await;
    provider.disable("alice").await;
    assert_eq!(refusal(client.refresh(&id, &tokens).await).await, (400, "invalid_grant".into()));
    until_refused(&site, &client, &tokens).await;
}

#[tokio::test]
async fn while_the_provider_is_away_nobody_is_logged_out() {
    let provider = Provider::start().await;
    let site = Site::with(&provider, |_| {}).await;
    let client = site.client();
    let id = client.register().await;
    let tokens = client.tokens("alice", &id).await;
    provider.kill();
    for _ in 0..2 {
        let response = client.refresh(&id, &tokens).await;
        assert!(response.headers().contains_key("retry-after"));
        assert_eq!(refusal(response).await, (503, "temporarily_unavailable".into()));
    }
    assert_eq!(client.status(&tokens).await, 200);
}

#[tokio::test]
async fn a_refresh_that_fails_after_the_provider_replaced_its_token_loses_nothing() {
    let provider = Provider::start().await;
    let site = Site::with(&provider, |_| {}).await;
    let client = site.client();
    let id = client.register().await;
    let tokens = client.tokens("alice", &id).await;
    // The provider accepts each of its refresh tokens once.
    provider.userinfo("down").await;
    for _ in 0..2 {
        let refused = refusal(client.refresh(&id, &tokens).await).await;
        assert_eq!(refused, (503, "temporarily_unavailable".into()));
    }
    provider.userinfo("up").await;
    let tokens = body(client.refresh(&id, &tokens).await).await;
    assert_eq!(client.status(&tokens).await, 200);
}

#[tokio::test]
async fn clients_without_an_identity_get_401_and_bad_requests_400() {
    let site = Site::start().await;
    let client = site.client();
    let id = client.register().await;
    for form in [
        vec![("grant_type", "authorization_code"), ("client_id", "unknown"), ("code", "x")],
        vec![("grant_type", "refresh_token"), ("refresh_token", "x")],
        vec![("grant_type", "refresh_token"), ("client_id", &*id), ("client_secret", "x")],
    ] {
        let refused = refusal(client.post("token", &form).await).await;
        assert_eq!(refused, (401, "invalid_client".into()), "{form:?}");
    }
    for (form, code) in [
        (vec![("grant_type", "password"), ("client_id", &*id)], "unsupported_grant_type"),
        (vec![("client_id", &*id)], "invalid_request"),
        (vec![("grant_type", "refresh_token"), ("client_id", &*id)], "invalid_request"),
        (
            vec![("grant_type", "refresh_token"), ("client_id", &*id), ("refresh_token", "x.y")],
            "invalid_grant",
        ),
        (
            vec![("grant_type", "refresh_token"), ("client_id", &*id), ("client_id", &*id)],
            "invalid_request",
        ),
    ] {
        let refused = refusal(client.post("token", &form).await).await;
        assert_eq!(refused, (400, code.to_owned()), "{form:?}");
    }
}

#[tokio::test]
async fn registrations_are_rate_limited_and_expire_unused() {
    let site =
        Site::with(Provider::shared().await, |login| login.registrations_per_minute = 3).await;
    let client = site.client();
    let (used, unused) = (client.register().await, client.register().await);
    client.tokens("alice", &used).await;
    client.register().await;
    let limited = client.try_register(&json!({ "redirect_uris": [super::REDIRECT] })).await;
    assert!(limited.headers().contains_key("retry-after"));
    assert_eq!(limited.status(), 429);
    site.server.clock.advance(std::time::Duration::from_secs(24 * 3600 + 1));
    for (id, status) in [(&used, 303), (&unused, 400)] {
        let url = client.authorize_url(&client.request(id));
        assert_eq!(Browser::of("alice").get(&url).await.status(), status);
    }
}
