//! A server whose store is on a full disk.

use larder::testing::SmallDisk;
use serde_json::json;

use crate::support::{Answer, Modern, Server, eventually, http};

#[tokio::test(flavor = "multi_thread")]
async fn a_server_on_a_full_disk_tells_so_and_deletes() {
    let Some(disk) = SmallDisk::mount(4 << 20) else { return };
    let url = disk.url();
    let server = Server::configured(|setup| {
        setup.config.store.url = url;
        setup.config.store.disk_reserve_bytes = 64 << 10;
    })
    .await;
    let client = Modern::of(&server);
    let url = server.url.replace("/mcp", "/readyz/dependencies");
    let available = async || Answer::of(http().get(&url)).await;
    assert_eq!(available().await.status, 200);
    client.create(json!({ "uri": "x:1", "text": "one" })).await;
    disk.fill();
    eventually("full", async || available().await.status == 503).await;
    let report = available().await.json();
    let reason = report["reason"].as_str().unwrap().to_owned();
    assert!(report["store"] == false && reason.contains("store.disk_reserve_bytes"), "{report}");
    let full = client.call("create_resource", json!({ "uri": "x:2", "text": "two" })).await;
    let full = full.failure();
    assert!(full.contains("The disk of the store is full"), "{full}");
    assert_eq!(client.read("x:1").await["text"], "one");
    let deleted = client.call("delete_resource", json!({ "uri": "x:1" })).await;
    assert!(deleted.text().contains("x:1"), "{}", deleted.text());
    disk.free();
    eventually("room again", async || available().await.status == 200).await;
    client.create(json!({ "uri": "x:2", "text": "two" })).await;
}

#[tokio::test]
async fn a_limit_of_all_owners_names_its_setting() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("file://{}", folder.path().display());
    let server = Server::configured(|setup| {
        setup.config.store.url = url;
        setup.config.objects.bytes = 10_000;
    })
    .await;
    refuses_the_second(&server, "objects.bytes").await;
}

#[tokio::test]
async fn a_limit_of_all_owners_in_redis_names_its_setting() {
    let redis = crate::support::RedisServer::start().await;
    let url = redis.url();
    let server = Server::configured(|setup| {
        setup.config.store.url = url;
        setup.config.redis.migrate = true;
        setup.config.redis.bytes = 10_000;
    })
    .await;
    refuses_the_second(&server, "redis.bytes").await;
}

async fn refuses_the_second(server: &Server, setting: &str) {
    let client = Modern::of(server);
    let text = "x".repeat(6000);
    client.create(json!({ "uri": "x:1", "text": text })).await;
    let full = client.call("create_resource", json!({ "uri": "x:2", "text": text })).await;
    let full = full.failure();
    assert!(full.contains(&format!("of 10000 bytes are used ({setting})")), "{full}");
    client.call("delete_resource", json!({ "uri": "x:1" })).await;
    client.create(json!({ "uri": "x:2", "text": text })).await;
}
