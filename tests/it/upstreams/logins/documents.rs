//! Larder as a client of an authorization server: by its Client ID Metadata Document where the
//! server supports those, else registered.

use std::time::Duration;

use serde_json::json;

use super::{Browser, World, crm, gateway, link, upstream, whoami};
use crate::{
    auth::provider::Provider,
    support::{Answer, http},
};

/// The origin of the gateway as clients and authorization servers know it.
const ORIGIN: &str = "https://larder.example";

/// A gateway whose metadata document others can fetch.
async fn public_world() -> World {
    let provider = Provider::start().await;
    let upstream = upstream(&provider.issuer).await;
    let url = format!("{ORIGIN}/mcp");
    let gateway = gateway(crm(&upstream.url), |config| config.server.public_url = Some(url)).await;
    World { provider, upstream, gateway }
}

/// Logs in, and returns the client ID that the authorization server was given.
async fn log_in(world: &World, name: &str, user: &str) -> String {
    let client = world.client(name);
    let link = link(&client, "whoami").await;
    let mut browser = Browser::reaching(&world.gateway, ORIGIN);
    let response = browser.confirm(&link).await;
    let url = super::location(&response, &link);
    let id = url.query_pairs().find(|(name, _)| name == "client_id").unwrap().1.into_owned();
    Browser::reaching(&world.gateway, ORIGIN).log_in(&link, user).await;
    assert!(whoami(&client).await.contains(user));
    id
}

#[tokio::test]
async fn the_metadata_document_is_the_client_where_the_server_supports_those() {
    let world = public_world().await;
    world.provider.read_documents(world.gateway.address).await;
    let document = format!("{ORIGIN}/mcp/upstreams/crm/client.json");
    assert_eq!(log_in(&world, "alice", "anna").await, document);
    assert_eq!(log_in(&world, "bob", "bert").await, document);
    assert_eq!(world.provider.fetches("/reg").await, 0, "registered");

    let url = format!("{}/upstreams/crm/client.json", world.gateway.url);
    let shown = Answer::of(http().get(url)).await.json();
    let callback = format!("{ORIGIN}/mcp/upstreams/crm/callback");
    assert_eq!(
        (&shown["client_id"], &shown["redirect_uris"]),
        (&json!(document), &json!([callback]))
    );

    // The same client refreshes and revokes.
    let alice = world.client("alice");
    let before = world.provider.fetches("/token").await;
    world.gateway.clock.advance(Duration::from_secs(590));
    assert!(whoami(&alice).await.contains("\"anna\""));
    assert_eq!(world.provider.fetches("/token").await, before + 1);
    let account = format!("{}/upstreams/crm/account", world.gateway.url);
    let done = Answer::of(http().delete(account).bearer_auth("alice")).await;
    assert_eq!(done.status, 200, "{done:?}");
    assert!(world.provider.fetches("/token/revocation").await >= 1);
    link(&alice, "whoami").await;
}

#[tokio::test]
async fn without_support_for_metadata_documents_the_client_is_registered_once() {
    let world = public_world().await;
    let id = log_in(&world, "alice", "anna").await;
    assert!(!id.starts_with("https://"), "{id}");
    assert_eq!(log_in(&world, "bob", "bert").await, id);
    assert_eq!(world.provider.fetches("/reg").await, 1);
}
