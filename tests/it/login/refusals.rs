//! What an attacker tries with the pages of a login.

use reqwest::Url;
use serde_json::json;

use super::{Browser, Client, REDIRECT, Site, parameter, refusal};

/// Sends an authorization request with one parameter changed. Returns the status, and where it
/// leads.
async fn changed(client: &Client, id: &str, name: &'static str, value: &str) -> (u16, String) {
    let mut request = client.request(id);
    request.retain(|(found, _)| *found != name);
    if !value.is_empty() {
        request.push((name, value.to_owned()));
    }
    sent(client.authorize_url(&request)).await
}

async fn sent(url: Url) -> (u16, String) {
    let response = Browser::of("alice").get(&url).await;
    let location = response.headers().get("location").map(|url| url.to_str().unwrap().to_owned());
    (response.status().as_u16(), location.unwrap_or_default())
}

#[tokio::test]
async fn a_request_leads_nowhere_but_to_the_redirect_uri_of_its_client() {
    let site = Site::start().await;
    let client = site.client();
    let id = client.register().await;
    for uri in [
        "https://evil.example/callback",
        "http://127.0.0.1:3000@evil.example/callback",
        "http://127.0.0.1:3000/callback/../x",
        "http://localhost:3000/callback",
        "javascript:alert(1)",
        "//evil.example",
    ] {
        // A page, no redirect.
        assert_eq!(changed(&client, &id, "redirect_uri", uri).await, (400, String::new()), "{uri}");
    }
    for unknown in ["", "unknown", "https://127.0.0.1/client.json", &id[1..]] {
        assert_eq!(changed(&client, unknown, "scope", "").await, (400, String::new()), "{unknown}");
    }
    // Any port of loopback.
    let other_port = "http://127.0.0.1:61234/callback";
    let (status, to) = changed(&client, &id, "redirect_uri", other_port).await;
    assert!(status == 303 && to.contains("/auth?"), "{to}");
    for uri in ["javascript:alert(1)", "http://evil.example/cb", "data:text/html,x"] {
        let response = client.try_register(&json!({ "redirect_uris": [uri] })).await;
        assert_eq!(refusal(response).await, (400, "invalid_redirect_uri".into()), "{uri}");
    }
}

#[tokio::test]
async fn a_request_without_a_proof_key_or_for_another_resource_is_refused() {
    let site = Site::start().await;
    let client = site.client();
    let id = client.register().await;
    for (name, value, error) in [
        ("code_challenge", "", "invalid_request"),
        ("code_challenge", "short", "invalid_request"),
        ("code_challenge_method", "", "invalid_request"),
        ("code_challenge_method", "plain", "invalid_request"),
        ("response_type", "token", "unsupported_response_type"),
        ("response_mode", "fragment", "invalid_request"),
        ("request_uri", "https://evil.example/", "invalid_request"),
        ("prompt", "none", "interaction_required"),
        ("resource", "https://other.example/mcp", "invalid_target"),
        ("scope", "root", "invalid_scope"),
    ] {
        let (status, to) = changed(&client, &id, name, value).await;
        assert_eq!(status, 303, "{name}={value}");
        let to = Url::parse(&to).unwrap();
        assert!(to.as_str().starts_with(REDIRECT), "{to}");
        assert_eq!(parameter(&to, "error").as_deref(), Some(error), "{name}={value}");
        assert_eq!(parameter(&to, "state").as_deref(), Some("the state"));
        assert_eq!(parameter(&to, "iss").as_deref(), Some(client.resource.as_str()));
    }
}

#[tokio::test]
async fn doubled_and_oversized_parameters_are_refused() {
    let site = Site::start().await;
    let client = site.client();
    let id = client.register().await;
    for name in ["state", "redirect_uri", "client_id", "resource"] {
        let mut request = client.request(&id);
        let value = request.iter().find(|(found, _)| *found == name).unwrap().1.clone();
        request.push((name, value));
        assert_eq!(sent(client.authorize_url(&request)).await, (400, String::new()), "{name}");
    }
    let long = "x".repeat(20_000);
    assert_eq!(changed(&client, &id, "state", &long).await, (400, String::new()));
    let (_, to) = changed(&client, &id, "state", &long[..2_000]).await;
    assert!(to.contains("error=invalid_request") && !to.contains("xxx"), "{to}");
    let registration = json!({ "redirect_uris": [REDIRECT], "client_name": "x".repeat(20_000) });
    assert_eq!(client.try_register(&registration).await.status(), 413);
    let form = [("grant_type", "refresh_token"), ("refresh_token", long.as_str())];
    assert_eq!(client.post("token", &form).await.status(), 413);
}

#[tokio::test]
async fn a_callback_works_in_the_browser_that_began_and_once() {
    let site = Site::start().await;
    let client = site.client();
    let id = client.register().await;
    let url = client.authorize_url(&client.request(&id));
    let mut alice = Browser::of("alice");
    let callback = alice.follow(url.clone(), "/login/callback").await.unwrap();
    // Another browser, with or without a login of its own.
    let mut eve = Browser::of("eve");
    assert_eq!(eve.get(&callback).await.status(), 400);
    eve.follow(url, "/login/callback").await.unwrap();
    assert_eq!(eve.get(&callback).await.status(), 400);
    // Another state in the right browser.
    let mut stolen = callback.clone();
    let state = parameter(&callback, "state").unwrap();
    let other = format!("{}{}", &state[..1], "0".repeat(31));
    stolen.set_query(Some(&callback.query().unwrap().replace(&state, &other)));
    assert_eq!(alice.get(&stolen).await.status(), 400);
    // An issuer that is not the provider (RFC 9207).
    let iss = parameter(&callback, "iss").unwrap();
    let mut mixed = callback.clone();
    mixed.query_pairs_mut().clear().extend_pairs(callback.query_pairs().map(|(name, value)| {
        let is_issuer = name == "iss";
        (name, if is_issuer { "https://evil.example".into() } else { value })
    }));
    assert_ne!(parameter(&mixed, "iss"), Some(iss));
    assert_eq!(alice.get(&mixed).await.status(), 400);
    assert_eq!(alice.get(&callback).await.status(), 303);
    assert_eq!(alice.get(&callback).await.status(), 400);
}

#[tokio::test]
async fn the_question_is_answered_by_its_own_page_in_its_own_browser_once() {
    let site = Site::start().await;
    let client = site.client();
    let id = client.register().await;
    let url = client.authorize_url(&client.request(&id));
    let mut alice = Browser::of("alice");
    let (page, response) = alice.follow(url.clone(), "no such URL").await.unwrap_err();
    let headers = response.headers();
    let policy = headers["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("frame-ancestors 'none'") && policy.contains("default-src 'none'"));
    assert_eq!(headers["cache-control"], "no-store");
    let form = format!("ticket={}&decision=allow", parameter(&page, "ticket").unwrap());
    let origin = page.origin().ascii_serialization();
    // Another browser neither sees nor answers it, also with a question of its own.
    let mut eve = Browser::of("eve");
    assert_eq!(eve.get(&page).await.status(), 400);
    assert_eq!(eve.answer(&page, &form, &origin).await.status(), 400);
    eve.follow(url, "no such URL").await.unwrap_err();
    assert_eq!(eve.answer(&page, &form, &origin).await.status(), 400);
    // A page of others in the right browser.
    for origin in ["https://evil.example", "null"] {
        assert_eq!(alice.answer(&page, &form, origin).await.status(), 403, "{origin}");
    }
    let answered = alice.answer(&page, &form, &origin).await;
    assert_eq!(answered.status(), 303);
    assert!(answered.headers()["location"].to_str().unwrap().starts_with(REDIRECT));
    assert_eq!(alice.answer(&page, &form, &origin).await.status(), 400);
}
