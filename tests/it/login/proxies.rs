//! Limits of addresses, behind proxies.

use serde_json::json;

use super::{REDIRECT, Site};
use crate::{
    auth::provider::Provider,
    support::{http, patiently},
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
