//! What an attacker tries with the pages of a login.

use larder::config::LoginConfig;
use reqwest::Url;
use serde_json::json;

use super::{Browser, Client, REDIRECT, Site, body, parameter, refusal};
use crate::auth::{
    issuer::{Issuer, Reply},
    provider::Provider,
};

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

/// Requests that are refused before anybody has logged in: a parameter, its value, and the error.
const REFUSED: [(&str, &str, &str); 10] = [
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
];

/// The ID of a new client with this redirect URI.
async fn register(client: &Client, redirect: &str) -> String {
    let response = client.try_register(&json!({ "redirect_uris": [redirect] })).await;
    assert_eq!(response.status(), 201, "{redirect}");
    body(response).await["client_id"].as_str().unwrap().to_owned()
}

/// An authorization request of a client with this redirect URI.
fn request_to(
    client: &Client,
    id: &str,
    redirect: &str,
    scope: &str,
) -> Vec<(&'static str, String)> {
    let mut request = client.request(id);
    for (name, value) in &mut request {
        match *name {
            "redirect_uri" => redirect.clone_into(value),
            "scope" => scope.clone_into(value),
            _ => {}
        }
    }
    request
}

#[tokio::test]
async fn an_error_leads_to_no_site_or_app_before_its_user_has_logged_in() {
    let site = Site::start().await;
    let client = site.client();
    for redirect in [
        "https://evil.example/cb",
        "cursor://anysphere.cursor-mcp/oauth/callback",
        "com.example.evil:/cb",
    ] {
        let id = register(&client, redirect).await;
        for (name, value, error) in REFUSED {
            let mut request = request_to(&client, &id, redirect, "mcp:read");
            request.retain(|(found, _)| *found != name);
            request.push((name, value.to_owned()));
            let response = Browser::of("alice").get(&client.authorize_url(&request)).await;
            assert_eq!(response.status(), 400, "{redirect} {name}={value} {error}");
            assert!(response.headers().get("location").is_none(), "{redirect} {name}={value}");
            let page = response.text().await.unwrap();
            assert!(!page.contains(redirect), "{page}");
        }
    }
}

#[tokio::test]
async fn an_error_leads_to_a_site_that_its_user_has_allowed() {
    const APP: &str = "https://app.example/cb";
    let site = Site::start().await;
    let client = site.client();
    let id = register(&client, APP).await;
    let url = |scope: &str| client.authorize_url(&request_to(&client, &id, APP, scope));

    // Nobody has allowed it, and who denies it does not.
    let mut alice = Browser::of("alice");
    let (status, page) = alice.page(url("mcp:write")).await;
    assert!(status == 400 && page.contains("none of the requested scopes"), "{page}");
    assert!(page.contains("app.example") && page.contains("error=invalid_scope"), "{page}");
    let (question, response) = alice.follow(url("mcp:read"), APP).await.unwrap_err();
    assert_eq!(response.status(), 200);
    let ticket = parameter(&question, "ticket").unwrap();
    let form = format!("ticket={ticket}&decision=deny");
    let denied = alice.answer(&question, &form, &question.origin().ascii_serialization()).await;
    assert_eq!((denied.status().as_u16(), denied.headers().get("location")), (403, None));
    assert!(denied.text().await.unwrap().contains("error=access_denied"));

    let back = alice.log_in(url("mcp:read"), "allow").await;
    assert!(back.as_str().starts_with(APP) && parameter(&back, "code").is_some(), "{back}");
    let back = alice.follow(url("mcp:write"), APP).await.expect("alice has allowed it");
    assert_eq!(parameter(&back, "error").as_deref(), Some("invalid_scope"));
    assert_eq!(parameter(&back, "state").as_deref(), Some("the state"));
    // Another user has not, nor has anybody before a login.
    assert_eq!(Browser::of("carol").page(url("mcp:write")).await.0, 400);
    let mut unknown = client.request(&id);
    unknown.retain(|(name, _)| *name != "code_challenge" && *name != "redirect_uri");
    assert_eq!(sent(client.authorize_url(&unknown)).await, (400, String::new()));
}

#[tokio::test]
async fn an_app_has_a_scheme_of_its_own_domain_or_of_a_known_host() {
    let site = Site::start().await;
    let client = site.client();
    for odd in [
        "ms-settings://x/cb",
        "ms-msdt://x/cb",
        "search-ms://x/cb",
        "ssh://x/cb",
        "telnet://x/cb",
        "smb://x/cb",
        "ldap://x/cb",
        "sms://x/cb",
        "market://x/cb",
        "itms-apps://x/cb",
        "steam://x/cb",
        "slack://x/cb",
        "zoommtg://x/cb",
        "x-apple.systempreferences://x/cb",
        "javascript://x/cb",
    ] {
        is_refused(&client, odd).await;
    }
    for known in [
        "com.example.app:/cb",
        "com.example.app://host/cb",
        "claude://claude.ai/mcp-auth-callback/sdk",
        "com.raycast:/oauth?package_name=Extension",
        "cursor://anysphere.cursor-mcp/oauth/callback",
        "cursor://anysphere.cursor-retrieval/oauth/user-larder/callback",
        "grokbot://mcp/oauth/callback",
        "raycast://oauth?package_name=mcp_server_larder",
        "vscode-insiders://saoudrizwan.claude-dev/mcp-auth/callback/0123456789abcdef",
        "warp://mcp/oauth2callback",
    ] {
        register(&client, known).await;
    }

    let change = |login: &mut LoginConfig| login.redirect_schemes = vec!["steam".to_owned()];
    let configured = Site::with(Provider::shared().await, change).await;
    register(&configured.client(), "steam://x/cb").await;
    is_refused(&configured.client(), "steam://x/cb?y").await;
}

/// Commands of apps, and schemes that only look like those of apps.
const COMMANDS: [&str; 16] = [
    "vscode://vscode.git/clone?url=https://evil.example/a.git",
    "vscode://vscode.git/clone",
    "vscode://saoudrizwan.claude-dev/task?prompt=x",
    "vscode-insiders://vscode.mcp/cb",
    "cursor://anysphere.cursor-deeplink/mcp/install?name=x&config=e30=",
    "cursor://anysphere.cursor-mcp/oauth/../../x/callback",
    "goose://extension?cmd=npx&arg=-y&arg=evil",
    "claude://claude.ai/new?q=x",
    "raycast://extensions/raycast/system/sleep",
    "warp://action/new_tab?path=/tmp",
    "zed://extension/evil",
    "com.apple.systempreferences:/x",
    "com.example.app:/run?command=x",
    "javascript.x:/",
    "com.vbscript:/x",
    "data.example:/x",
];

async fn is_refused(client: &Client, redirect: &str) {
    let response = client.try_register(&json!({ "redirect_uris": [redirect] })).await;
    assert_eq!(refusal(response).await, (400, "invalid_redirect_uri".into()), "{redirect}");
}

#[tokio::test]
async fn a_command_of_an_app_is_no_redirect_uri() {
    let change = |login: &mut LoginConfig| login.allow_private_documents = true;
    let site = Site::with(Provider::shared().await, change).await;
    let client = site.client();
    let documents = Issuer::empty().await;

    for (number, command) in COMMANDS.into_iter().enumerate() {
        is_refused(&client, command).await;

        // A URI among good ones, and in a metadata document.
        let mixed = json!({ "redirect_uris": [REDIRECT, command] });
        let response = client.try_register(&mixed).await;
        assert_eq!(refusal(response).await, (400, "invalid_redirect_uri".into()), "{command}");

        let path = format!("/{number}.json");
        let id = format!("{}{path}", documents.url);
        let document = json!({
            "client_id": id, "redirect_uris": [command], "token_endpoint_auth_method": "none",
        });
        documents.set_reply(&path, Reply::Json(document));
        let url = client.authorize_url(&request_to(&client, &id, command, "mcp:read"));
        assert_eq!(sent(url).await, (400, String::new()), "{command}");
    }
}

#[tokio::test]
async fn the_question_shows_the_whole_redirect_uri() {
    let site = Site::start().await;
    let client = site.client();
    let long = format!("https://app.example/{}/end", "x".repeat(900));
    for (redirect, name, shown) in [
        (&*long, "app.example", &*long),
        ("https://app.example/cb?a=1&b='2'", "app.example", "/cb?a=1&amp;b=&#39;2&#39;"),
        ("com.example.app://host/%0a%e2%80%ae/run", "com.example.app", "//host/%0a%e2%80%ae/run"),
        ("http://127.0.0.1:61234/deep/path", "(this device)", "http://127.0.0.1:61234/deep/path"),
    ] {
        let id = register(&client, redirect).await;
        let url = client.authorize_url(&request_to(&client, &id, redirect, "mcp:read"));
        let (status, page) = Browser::of("alice").page(url).await;
        assert_eq!(status, 200, "{redirect}: {page}");
        assert!(page.contains(name) && page.contains(shown), "{redirect}: {page}");
    }
}

#[tokio::test]
async fn consent_is_for_the_redirect_uri_that_was_shown() {
    let site = Site::start().await;
    let client = site.client();
    let uris = ["com.example.app:/cb", "com.example.app:/run"];
    let response = client.try_register(&json!({ "redirect_uris": uris })).await;
    let id = body(response).await["client_id"].as_str().unwrap().to_owned();
    let url = |uri| client.authorize_url(&request_to(&client, &id, uri, "mcp:read"));

    let mut alice = Browser::of("alice");
    let back = alice.log_in(url(uris[0]), "allow").await;
    assert!(back.as_str().starts_with(uris[0]), "{back}");

    let (status, page) = alice.page(url(uris[1])).await;
    assert!(status == 200 && page.contains(uris[1]), "{page}");
    let again = alice.follow(url(uris[0]), uris[0]).await;
    assert!(again.is_ok(), "the first one is not asked for again");
}

#[tokio::test]
async fn a_request_without_a_proof_key_or_for_another_resource_is_refused() {
    let site = Site::start().await;
    let client = site.client();
    let id = client.register().await;
    for (name, value, error) in REFUSED {
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
