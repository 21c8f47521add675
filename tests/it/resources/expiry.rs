//! The time to live of resources.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Answer, Modern, Server};

async fn read(client: &Modern, uri: &str) -> Answer {
    client.send("resources/read", json!({ "uri": uri })).await
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[tokio::test]
async fn a_resource_lives_for_a_day_by_default() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    client.create(json!({ "uri": "x:1", "text": "1" })).await;
    server.clock.advance(seconds(86_399));
    assert_eq!(read(&client, "x:1").await.status, 200);
    assert_eq!(client.read("x:1").await["text"], "1");
    server.clock.advance(seconds(2));
    assert_eq!(read(&client, "x:1").await.error()["code"], -32602);
}

#[tokio::test]
async fn a_resource_lives_for_its_ttl() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    for ttl in [60, 1800, 3600, 7200] {
        client.create(json!({ "uri": "x:1", "text": "1", "ttl": ttl })).await;
        server.clock.advance(seconds(ttl - 1));
        assert_eq!(client.read("x:1").await["text"], "1");
        server.clock.advance(seconds(1));
        assert_eq!(read(&client, "x:1").await.error()["code"], -32602, "{ttl}");
    }
}

#[tokio::test]
async fn an_expired_resource_is_reported_with_the_time_of_its_expiry() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    client.create(json!({ "uri": "x:1", "text": "1", "ttl": 60 })).await;
    server.clock.advance(seconds(3600));
    let error = read(&client, "x:1").await.error();
    assert!(error["message"].as_str().unwrap().contains("2026-01-01T00:01:00Z"), "{error}");
    assert_eq!(error["data"]["uri"], "x:1");
    for (tool, arguments) in [
        ("read_resource", json!({ "uri": "x:1" })),
        ("search_resource", json!({ "uri": "x:1", "query": "x" })),
        ("describe_resource", json!({ "uri": "x:1" })),
        ("update_resource", json!({ "uri": "x:1", "text": "2" })),
    ] {
        let failure = client.call(tool, arguments).await.failure();
        assert!(failure.contains("x:1") && failure.contains("00:01:00Z"), "{tool}: {failure}");
    }
    client.call("delete_resource", json!({ "uri": "x:1" })).await.text();
}

#[tokio::test]
async fn an_update_does_not_extend_the_ttl() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    client.create(json!({ "uri": "x:1", "text": "1", "ttl": 60 })).await;
    server.clock.advance(seconds(30));
    client.call("update_resource", json!({ "uri": "x:1", "text": "2" })).await.text();
    server.clock.advance(seconds(29));
    assert_eq!(client.read("x:1").await["text"], "2");
    server.clock.advance(seconds(1));
    assert_eq!(read(&client, "x:1").await.error()["code"], -32602);
}

#[tokio::test]
async fn creating_a_resource_again_sets_a_new_ttl() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    client.create(json!({ "uri": "x:1", "text": "1", "ttl": 60 })).await;
    server.clock.advance(seconds(59));
    client.create(json!({ "uri": "x:1", "text": "2", "ttl": 60 })).await;
    server.clock.advance(seconds(59));
    assert_eq!(client.read("x:1").await["text"], "2");
}

#[tokio::test]
async fn listings_do_not_contain_expired_resources() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    client.create(json!({ "uri": "x:short", "text": "1", "ttl": 60 })).await;
    client.create(json!({ "uri": "x:long", "text": "1", "ttl": 600 })).await;
    server.clock.advance(seconds(61));
    let listed = client.list("resources/list", "resources").await;
    let has = |uri: &str| listed.iter().any(|r: &Value| r["uri"] == uri);
    assert!(has("x:long") && !has("x:short"));
    let text = client.call("list_resources", json!({})).await.text();
    assert!(text.contains("x:long") && !text.contains("x:short"), "{text}");
}

#[tokio::test]
async fn a_static_resource_is_read_again_when_the_one_that_overrides_it_expires() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    client.create(json!({ "uri": "docs://welcome", "text": "mine", "ttl": 60 })).await;
    assert_eq!(client.read("docs://welcome").await["text"], "mine");
    server.clock.advance(seconds(60));
    assert_eq!(client.read("docs://welcome").await["text"], "Welcome.");
}

#[tokio::test]
async fn the_sweep_frees_the_room_of_expired_resources() {
    let server = Server::configured(|setup| setup.config.memory.bytes_per_owner = 10_000).await;
    let client = Modern::of(&server);
    let mut events = client.listen(1, json!({ "resourcesListChanged": true })).await;
    let mut list_changed = async || {
        assert_eq!(events.message().await["method"], "notifications/resources/list_changed");
    };
    for round in 0..3 {
        let resource = json!({ "uri": format!("x:{round}"), "text": "a".repeat(8000), "ttl": 60 });
        client.create(resource).await;
        list_changed().await;
        server.clock.advance(seconds(61));
        // A request would remove what has expired, so only the sweep can cause this
        // notification: none is sent meanwhile.
        list_changed().await;
    }
}

#[tokio::test]
async fn an_expired_resource_does_not_count_against_the_quota() {
    let server = Server::configured(|setup| setup.config.memory.bytes_per_owner = 10_000).await;
    let client = Modern::of(&server);
    for round in 0..3 {
        let resource = json!({ "uri": format!("x:{round}"), "text": "a".repeat(8000), "ttl": 60 });
        client.create(resource).await;
        server.clock.advance(seconds(61));
    }
}
