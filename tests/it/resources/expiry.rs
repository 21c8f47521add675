//! What time does to resources.

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
async fn a_resource_lives_a_day_where_nobody_says_otherwise() {
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
async fn a_resource_lives_as_long_as_it_was_given() {
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
async fn who_asks_for_what_expired_is_told_when_it_did() {
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
async fn an_update_does_not_prolong_a_life() {
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
async fn creating_anew_begins_a_new_life() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    client.create(json!({ "uri": "x:1", "text": "1", "ttl": 60 })).await;
    server.clock.advance(seconds(59));
    client.create(json!({ "uri": "x:1", "text": "2", "ttl": 60 })).await;
    server.clock.advance(seconds(59));
    assert_eq!(client.read("x:1").await["text"], "2");
}

#[tokio::test]
async fn listings_leave_out_what_has_expired() {
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
async fn what_stood_before_a_static_resource_gives_way_to_it() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    client.create(json!({ "uri": "docs://welcome", "text": "mine", "ttl": 60 })).await;
    assert_eq!(client.read("docs://welcome").await["text"], "mine");
    server.clock.advance(seconds(60));
    assert_eq!(client.read("docs://welcome").await["text"], "Welcome.");
}

#[tokio::test]
async fn what_expires_makes_room_without_being_asked_for() {
    let server = Server::configured(|setup| setup.config.memory.bytes_per_owner = 10_000).await;
    let client = Modern::of(&server);
    for round in 0..3 {
        let arguments = json!({ "uri": format!("x:{round}"), "text": "a".repeat(8000), "ttl": 60 });
        client.create(arguments).await;
        server.clock.advance(seconds(61));
        // Nobody reads it: the sweep alone must free it, soon.
        let mut other =
            client.call("create_resource", json!({ "text": "b".repeat(8000), "ttl": 1 }));
        let mut answer = other.await.result();
        while answer["isError"] == true {
            tokio::task::yield_now().await;
            other = client.call("create_resource", json!({ "text": "b".repeat(8000), "ttl": 1 }));
            answer = other.await.result();
        }
        server.clock.advance(seconds(2));
        let gone = read(&client, answer["content"][0]["text"].as_str().unwrap()).await;
        assert_eq!(gone.error()["code"], -32602);
    }
}
