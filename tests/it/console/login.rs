//! The beginning and the end of sessions.

use std::time::Duration;

use larder::config::AuthMode;
use serde_json::json;

use super::{Browser, configure, said, server, token};
use crate::support::{Answer, RedisServer, Server};

#[tokio::test]
async fn a_cookie_is_for_the_console_alone_and_no_script_reads_it() {
    let server = server(|_| {}).await;
    let mut browser = Browser::of(&server);
    assert_eq!(browser.session().await, json!({ "login": true }));
    let answer = browser.log_in("anna").await;
    assert_eq!(answer.status, 204);
    let cookie = answer.headers["set-cookie"].to_str().unwrap();
    let (pair, attributes) = cookie.split_once("; ").unwrap();
    assert_eq!(attributes, "HttpOnly; SameSite=Strict; Path=/console; Max-Age=28800");
    assert!(pair.starts_with("larder-console="), "{pair}");
    assert!(!pair.contains("anna"), "the token stays on the server");
    let session = browser.session().await;
    assert!(session["user"].as_str().unwrap().contains("anna"), "{session}");
    // The cookie is no credential of the MCP endpoint.
    let request = crate::support::post(&server.url, &crate::support::request("ping", json!({})));
    let answer = Answer::of(request.header("cookie", browser.cookie.unwrap())).await;
    assert_eq!(answer.status, 401);
}

/// A console behind a proxy that terminates TLS.
async fn behind_https() -> Server {
    server(|config| {
        config.server.public_url = Some("https://larder.example/mcp".into());
        config.server.allowed_hosts = vec!["intern.example".into()];
    })
    .await
}

async fn log_in_at(server: &Server, host: &str, origin: &str) -> Answer {
    let url = format!("http://{}/console/login", server.address);
    let request = crate::support::http().post(url).header("host", host);
    let form = request.header("content-type", "application/x-www-form-urlencoded");
    Answer::of(form.header("origin", origin).body("token=anna")).await
}

#[tokio::test]
async fn over_https_the_cookie_has_the_host_prefix_and_plain_http_is_refused() {
    let server = behind_https().await;
    let answer = log_in_at(&server, "larder.example", "https://larder.example").await;
    assert_eq!(answer.status, 204);
    let cookie = answer.headers["set-cookie"].to_str().unwrap();
    let (pair, attributes) = cookie.split_once("; ").unwrap();
    assert!(pair.starts_with("__Host-larder.console="), "{cookie}");
    assert_eq!(attributes, "HttpOnly; SameSite=Strict; Secure; Path=/; Max-Age=28800");
    let own = server.address.to_string();
    for (host, origin) in
        [("intern.example", "http://intern.example"), (&*own, &*format!("http://{own}"))]
    {
        let answer = log_in_at(&server, host, origin).await;
        assert_eq!(answer.status, 403, "{host}");
        assert!(said(&answer).contains("needs HTTPS"), "{answer:?}");
        assert!(!answer.headers.contains_key("set-cookie"), "{answer:?}");
    }
}

#[tokio::test]
async fn behind_https_no_cookie_without_the_prefix_is_read() {
    let server = behind_https().await;
    let answer = log_in_at(&server, "larder.example", "https://larder.example").await;
    let cookie = answer.headers["set-cookie"].to_str().unwrap();
    let (pair, _) = cookie.split_once("; ").unwrap();
    let (own, key) = pair.split_once('=').unwrap();
    let session = async |name: &str| {
        let url = format!("http://{}/console/session", server.address);
        let request = crate::support::http().get(url).header("host", "larder.example");
        Answer::of(request.header("cookie", format!("{name}={key}"))).await.json()
    };
    assert!(session(own).await["user"].is_string());
    // Other pages of the domain, and pages without TLS, could set these.
    for name in ["larder-console", "__Secure-larder", "larder.console", "__host-larder.console"] {
        assert_eq!(session(name).await, json!({ "login": true }), "{name}");
    }
    let log_out = crate::support::http().post(format!("http://{}/console/logout", server.address));
    let log_out = log_out.header("host", "larder.example").header("cookie", pair);
    let answer = Answer::of(log_out.header("origin", "https://larder.example")).await;
    let cookies: Vec<_> = answer.headers.get_all("set-cookie").iter().collect();
    assert_eq!(
        cookies,
        ["__Host-larder.console=; HttpOnly; SameSite=Strict; Secure; Path=/; Max-Age=0"]
    );
}

#[tokio::test]
async fn only_an_accepted_token_begins_a_session() {
    let server = server(|_| {}).await;
    let mut browser = Browser::of(&server);
    for (token, text) in
        [("", "Enter a token."), ("carl", "not accepted"), ("a%20b", "not a token")]
    {
        let answer = browser.log_in(token).await;
        assert_eq!(answer.status, 401, "{token}");
        assert!(said(&answer).contains(text), "{answer:?}");
        assert!(browser.cookie.is_none());
    }
}

#[tokio::test]
async fn posts_of_other_pages_are_refused() {
    let server = server(|_| {}).await;
    let browser = Browser::logged_in(&server, "anna").await;
    let own = browser.origin.clone();
    for path in ["login", "logout", "rpc"] {
        for headers in [
            vec![],
            vec![("origin", "https://evil.example")],
            vec![("origin", "null")],
            vec![("origin", "http://127.0.0.1:1")],
            vec![("origin", &*own), ("sec-fetch-site", "cross-site")],
            vec![("origin", &*own), ("sec-fetch-site", "same-site")],
        ] {
            let mut request = browser.request(reqwest::Method::POST, path).body("token=ben");
            for (name, value) in &headers {
                request = request.header(*name, *value);
            }
            let answer = Answer::of(request).await;
            assert_eq!(answer.status, 403, "{path} {headers:?}");
        }
    }
    let stream = browser.get("events").header("sec-fetch-site", "cross-site");
    assert_eq!(Answer::of(stream).await.status, 403);
    assert!(browser.session().await["user"].is_string(), "nothing has ended the session");
}

#[tokio::test]
async fn a_logout_ends_the_session_of_each_copy_of_the_cookie() {
    let server = server(|_| {}).await;
    let browser = Browser::logged_in(&server, "anna").await;
    let copy = Browser { origin: browser.origin.clone(), cookie: browser.cookie.clone() };
    assert_eq!(copy.listed().await, Vec::<String>::new());
    let answer = browser.log_out().await;
    assert_eq!(answer.status, 204);
    let cookies: Vec<_> = answer.headers.get_all("set-cookie").iter().collect();
    assert!(cookies.iter().all(|cookie| cookie.to_str().unwrap().contains("Max-Age=0")));
    assert_eq!(copy.session().await, json!({ "login": true }));
    let refused = copy.call("list_resources", json!({})).await;
    assert_eq!(refused.status, 401);
    assert_eq!(Answer::of(copy.get("events")).await.status, 401);
}

#[tokio::test]
async fn a_new_login_in_a_browser_ends_the_session_before() {
    let server = server(|_| {}).await;
    let mut browser = Browser::logged_in(&server, "anna").await;
    let before = Browser { origin: browser.origin.clone(), cookie: browser.cookie.clone() };
    browser.log_in("ben").await;
    assert!(browser.session().await["user"].as_str().unwrap().contains("ben"));
    assert_eq!(before.session().await, json!({ "login": true }));
}

#[tokio::test]
async fn a_session_expires_by_its_setting_and_with_its_token() {
    let server = server(|config| {
        config.console.session = 600;
        config.auth.tokens[1].expires = Some("2026-01-01T00:05:00Z".into());
    })
    .await;
    let browser = Browser::logged_in(&server, "anna").await;
    let short = Browser::logged_in(&server, "ben").await;
    server.clock.advance(Duration::from_secs(300));
    assert_eq!(short.session().await, json!({ "login": true }));
    assert!(browser.session().await["user"].is_string());
    server.clock.advance(Duration::from_secs(299));
    assert!(browser.session().await["user"].is_string());
    server.clock.advance(Duration::from_secs(1));
    assert_eq!(browser.session().await, json!({ "login": true }));
    assert_eq!(browser.call("list_resources", json!({})).await.status, 401);
}

#[tokio::test]
async fn without_authentication_nobody_logs_in() {
    let server = server(|config| {
        config.auth.mode = AuthMode::None;
        config.auth.tokens.clear();
    })
    .await;
    let browser = Browser::of(&server);
    let session = browser.session().await;
    assert_eq!((&session["login"], &session["user"]), (&json!(false), &json!("local")));
    browser.call("create_resource", json!({ "uri": "x:a", "text": "a" })).await.result();
    assert_eq!(browser.listed().await, ["x:a"]);
}

#[tokio::test]
async fn a_session_is_known_to_all_instances_and_ends_on_all() {
    let redis = RedisServer::start().await;
    let instance = async || {
        Server::configured(|setup| {
            configure(setup, |config| {
                config.store.url = redis.url();
                config.redis.migrate = true;
                config.auth.tokens = vec![token("anna")];
            });
        })
        .await
    };
    let (one, other) = (instance().await, instance().await);
    let browser = Browser::logged_in(&one, "anna").await;
    let elsewhere = Browser { cookie: browser.cookie.clone(), ..Browser::of(&other) };
    assert!(elsewhere.session().await["user"].as_str().unwrap().contains("anna"));
    browser.log_out().await;
    assert_eq!(elsewhere.session().await, json!({ "login": true }));
}
