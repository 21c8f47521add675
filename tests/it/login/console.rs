//! The console of a server that is its own authorization server: people log in at its provider.

use reqwest::Url;
use serde_json::{Value, json};

use super::{Browser, Site, VERIFIER, body, parameter, refusal};
use crate::{
    auth::provider::Provider,
    console::walk,
    support::{http, patiently},
};

async fn site() -> Site {
    Site::configured(Provider::shared().await, |config| {
        config.console.enabled = true;
        let login = config.auth.login.as_mut().unwrap();
        login.grants.insert("larder:admin".into(), vec!["group:analysts".into()]);
    })
    .await
}

fn at(site: &Site, path: &str) -> Url {
    format!("http://{}/console/{path}", site.server.address).parse().unwrap()
}

/// Clicks the button. Returns the page at which the login goes on.
async fn begin(site: &Site, browser: &mut Browser) -> Url {
    let origin = format!("http://{}", site.server.address);
    let response = browser.answer(&at(site, "oidc"), "", &origin).await;
    assert_eq!(response.status(), 200);
    body(response).await["url"].as_str().unwrap().parse().unwrap()
}

async fn session(site: &Site, browser: &mut Browser) -> Value {
    body(browser.get(&at(site, "session")).await).await
}

async fn log_in(site: &Site, user: &str) -> (Browser, String) {
    let mut browser = Browser::of(user);
    let url = begin(site, &mut browser).await;
    let Err((page, response)) = browser.follow(url, "no such URL").await else {
        panic!("the login ends at the console");
    };
    assert_eq!((response.status().as_u16(), page.path()), (200, "/console/callback"));
    (browser, patiently("a page", response.text()).await.unwrap())
}

#[tokio::test]
async fn a_person_logs_in_at_the_provider_without_a_token() {
    let site = site().await;
    let mut stranger = Browser::of("alice");
    let before = session(&site, &mut stranger).await;
    assert_eq!((&before["login"], &before["tokens"]), (&json!(true), &json!(false)));
    assert!(before["oidc"].as_str().unwrap().starts_with("127.0.0.1"), "{before}");

    let (mut alice, page) = log_in(&site, "alice").await;
    assert!(page.contains("You are logged in"), "{page}");
    assert!(alice.pages.is_empty(), "nobody is asked what they have just begun");
    let found = session(&site, &mut alice).await;
    assert!(found["user"].as_str().unwrap().contains("alice"), "{found}");
    // A session is as long as the console's, not ten minutes as the tokens of clients.
    site.server.clock.advance(std::time::Duration::from_secs(3600));
    assert!(session(&site, &mut alice).await["user"].is_string());
    site.server.clock.advance(std::time::Duration::from_secs(8 * 3600));
    assert_eq!(session(&site, &mut alice).await["user"], Value::Null);
}

#[tokio::test]
async fn the_session_has_what_the_person_may_do_and_ends_with_a_logout() {
    let site = site().await;
    for (user, is_operator) in [("bob", true), ("alice", false)] {
        let (mut browser, page) = log_in(&site, user).await;
        let found = session(&site, &mut browser).await;
        assert_eq!(found["operator"], is_operator, "{user}: {found} {page}");

        let origin = format!("http://{}", site.server.address);
        assert_eq!(browser.answer(&at(&site, "logout"), "", &origin).await.status(), 204);
        assert_eq!(session(&site, &mut browser).await["user"], Value::Null);
    }
}

#[tokio::test]
async fn the_token_endpoint_gives_the_client_of_the_console_no_tokens() {
    let site = site().await;
    let client = site.client();
    let callback = at(&site, "callback").to_string();
    let mut parameters = client.request("larder-console");
    parameters.retain(|(name, _)| !matches!(*name, "redirect_uri" | "scope"));
    parameters.push(("redirect_uri", callback.clone()));

    let url = client.authorize_url(&parameters);
    let back = Browser::of("bob").follow(url, "/console/callback?").await;
    let back = back.unwrap_or_else(|(page, _)| panic!("{page}"));
    let code = parameter(&back, "code").unwrap();

    let forbidden = (401, "invalid_client".to_owned());
    for verifier in [VERIFIER, "another"] {
        let answer = client.redeem_with("larder-console", &code, verifier, &callback).await;
        assert_eq!(refusal(answer).await, forbidden, "{verifier}");
    }
    let tokens = json!({ "refresh_token": "a.b" });
    assert_eq!(refusal(client.refresh("larder-console", &tokens).await).await, forbidden);

    // Another client does not get the tokens of the code either.
    let other = client.register().await;
    let answer = client.redeem_with(&other, &code, VERIFIER, &callback).await;
    assert_eq!(refusal(answer).await, (400, "invalid_grant".to_owned()));
}

#[tokio::test]
async fn the_client_of_the_console_leads_nowhere_else() {
    let site = site().await;
    let client = site.client();
    let mut parameters = client.request("larder-console");
    let refused = Browser::of("alice").get(&client.authorize_url(&parameters)).await;
    assert_eq!(refused.status(), 400, "another redirect URI");

    // Any process of this machine may listen at another port, and would get the code unasked.
    let callback = at(&site, "callback");
    let mut other_port = callback.clone();
    other_port.set_port(Some(1)).unwrap();
    let mut other_host = callback.clone();
    other_host.set_host(Some("localhost")).unwrap();
    for other in [other_port.to_string(), other_host.to_string(), format!("{callback}?x")] {
        let mut parameters = client.request("larder-console");
        parameters.retain(|(name, _)| *name != "redirect_uri");
        parameters.push(("redirect_uri", other.clone()));
        let refused = Browser::of("alice").get(&client.authorize_url(&parameters)).await;
        assert_eq!(refused.status(), 400, "{other}");
    }

    // A login that nobody has begun at the console gives its browser no session.
    let callback = at(&site, "callback").to_string();
    parameters.retain(|(name, _)| *name != "redirect_uri");
    parameters.push(("redirect_uri", callback));
    let mut victim = Browser::of("alice");
    let (status, page) = victim.page(client.authorize_url(&parameters)).await;
    assert_eq!(status, 400, "{page}");
    assert_eq!(session(&site, &mut victim).await["user"], Value::Null);

    // Without a console there is no such client.
    let without = Site::start().await;
    let client = without.client();
    let mut parameters = client.request("larder-console");
    parameters.retain(|(name, _)| *name != "redirect_uri");
    parameters.push(("redirect_uri", at(&without, "callback").to_string()));
    let url = client.authorize_url(&parameters);
    let unknown = patiently("a page", http().get(url).send()).await.unwrap();
    assert_eq!(unknown.status(), 400);
    let page = patiently("a page", unknown.text()).await.unwrap();
    assert!(page.contains("not registered"), "{page}");
}

mod in_browser {
    use super::*;

    #[tokio::test]
    #[ignore = "needs Chromium: make browser-test"]
    async fn a_person_logs_in_at_the_provider_of_this_server() {
        let site = site().await;
        let given = json!({
            "chromium": "/usr/bin/chromium",
            "url": format!("http://{}/console/", site.server.address),
            "tokens": false,
            "screenshots": std::env::var("SCREENSHOTS").ok(),
        });
        let seen = walk("console_login.mjs", &given, async || {}).await;
        assert_eq!(seen["failed"], Value::Null, "{seen}");
        assert_eq!(seen["errors"], json!([]));
        assert_eq!((&seen["path"], &seen["victim"]), (&json!("/console/"), &json!([])));
        assert_eq!(seen["loggedOut"], true);
    }
}
