//! Limits of addresses, behind proxies.

use futures_util::future::join_all;
use serde_json::json;

use super::{REDIRECT, Site};
use crate::{
    auth::provider::Provider,
    support::{UnfinishedForm, eventually, http, patiently},
};

/// A server with one registration per address, and these trusted proxies.
async fn site(trusted: &str) -> Site {
    Site::configured(Provider::shared().await, |config| {
        config.server.trusted_proxies = vec![trusted.to_owned()];
        config.auth.login.as_mut().unwrap().registrations_per_minute = 1;
    })
    .await
}

/// The status of a registration with this header.
async fn register(site: &Site, forwarded_for: &str) -> u16 {
    let request = http()
        .post(site.client().url("register"))
        .header("content-type", "application/json")
        .header("x-forwarded-for", forwarded_for)
        .body(json!({ "redirect_uris": [REDIRECT] }).to_string());
    patiently("a registration", request.send()).await.unwrap().status().as_u16()
}

#[tokio::test]
async fn clients_behind_a_trusted_proxy_have_limits_of_their_own() {
    let site = site("127.0.0.0/8").await;
    assert_eq!(register(&site, "198.51.100.1").await, 201);
    assert_eq!(register(&site, "198.51.100.1").await, 429);
    assert_eq!(register(&site, "198.51.100.2").await, 201);
    // What a client sends itself, the proxy has moved to the left.
    assert_eq!(register(&site, "198.51.100.3, 198.51.100.2").await, 429);
    assert_eq!(register(&site, "198.51.100.3, 127.0.0.9").await, 201);
}

#[tokio::test]
async fn nobody_else_chooses_an_address() {
    let site = site("10.0.0.0/8").await;
    assert_eq!(register(&site, "198.51.100.1").await, 201);
    assert_eq!(register(&site, "198.51.100.2").await, 429);
    assert_eq!(register(&site, "10.0.0.1").await, 429);
}

#[tokio::test]
async fn unfinished_forms_of_one_address_are_bounded_and_keep_nobody_else_out() {
    const PER_ADDRESS: usize = 64;
    let site = site("127.0.0.0/8").await;
    for path in ["/mcp/login/register", "/mcp/login/token", "/mcp/login/consent"] {
        let begin = || UnfinishedForm::begin(&site.server, path, "203.0.113.1", 1_000);
        let flood = join_all((0..2 * PER_ADDRESS).map(|_| begin())).await;

        assert_eq!(flood.iter().filter(|form| form.is_read()).count(), PER_ADDRESS, "{path}");
        for UnfinishedForm { answer, .. } in flood.iter().filter(|form| !form.is_read()) {
            assert!(answer.starts_with("HTTP/1.1 429"), "{path}: {answer}");
            assert!(answer.to_lowercase().contains("\r\nretry-after: 1\r\n"), "{path}: {answer}");
        }
        let other = UnfinishedForm::begin(&site.server, path, "203.0.113.2", 1_000).await;
        assert!(other.is_read(), "{path}: {}", other.answer);

        // Clients that leave give their slots back.
        drop(flood);
        eventually("a free slot", async || begin().await.is_read()).await;
    }
}
