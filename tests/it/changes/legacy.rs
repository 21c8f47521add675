//! Change notifications of the legacy era: `resources/subscribe` and the GET stream of a
//! session.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Events, Legacy, Server};

pub(crate) async fn subscribe(client: &Legacy, uri: &str) {
    let subscribed = client.send("resources/subscribe", json!({ "uri": uri })).await.result();
    assert_eq!(subscribed, json!({}));
}

/// Updates `x:mark`, and returns the URIs of all notifications before that of the mark;
/// `None` is a changed list.
pub(crate) async fn until_marked(client: &Legacy, events: &mut Events) -> Vec<Option<String>> {
    subscribe(client, "x:mark").await;
    client.create(json!({ "uri": "x:mark", "text": "" })).await;
    client.call("update_resource", json!({ "uri": "x:mark", "text": "2" })).await.text();
    let mut heard = Vec::new();
    loop {
        let event = events.next().await.unwrap();
        if event.data.is_empty() {
            continue;
        }
        let message: Value = serde_json::from_str(&event.data).unwrap();
        assert!(message["params"].get("_meta").is_none(), "{message}");
        let uri = message["params"]["uri"].as_str().map(str::to_owned);
        let method = if uri.is_some() { "updated" } else { "list_changed" };
        assert_eq!(message["method"], format!("notifications/resources/{method}"));
        if uri.as_deref() == Some("x:mark") {
            return heard;
        }
        heard.push(uri);
    }
}

#[tokio::test]
async fn an_update_reaches_the_subscribers_of_its_uri() {
    let server = Server::start().await;
    let (one, two) = (Legacy::of(&server).await, Legacy::of(&server).await);
    one.create(json!({ "uri": "x:1", "text": "1" })).await;
    one.create(json!({ "uri": "x:2", "text": "2" })).await;
    subscribe(&one, "x:1").await;
    subscribe(&two, "x:2").await;
    let (mut heard_by_one, mut heard_by_two) = (one.listen().await, two.listen().await);
    two.call("update_resource", json!({ "uri": "x:1", "text": "new" })).await.text();
    let heard = until_marked(&one, &mut heard_by_one).await;
    assert_eq!(heard.iter().flatten().collect::<Vec<_>>(), ["x:1"], "{heard:?}");
    let heard = until_marked(&two, &mut heard_by_two).await;
    assert_eq!(heard.iter().flatten().count(), 0, "{heard:?}");
}

#[tokio::test]
async fn after_unsubscribing_no_notification_comes() {
    let server = Server::start().await;
    let client = Legacy::of(&server).await;
    client.create(json!({ "uri": "x:1", "text": "1" })).await;
    subscribe(&client, "x:1").await;
    let mut events = client.listen().await;
    client.call("update_resource", json!({ "uri": "x:1", "text": "2" })).await.text();
    while events.next().await.unwrap().data.find("updated").is_none() {}
    let unsubscribed = client.send("resources/unsubscribe", json!({ "uri": "x:1" })).await;
    assert_eq!(unsubscribed.result(), json!({}));
    client.call("update_resource", json!({ "uri": "x:1", "text": "3" })).await.text();
    let heard = until_marked(&client, &mut events).await;
    assert_eq!(heard.iter().flatten().count(), 0, "{heard:?}");
    // To unsubscribe twice is no error.
    client.send("resources/unsubscribe", json!({ "uri": "x:1" })).await.result();
}

#[tokio::test]
async fn an_expiry_is_notified_once() {
    let server = Server::start().await;
    let client = Legacy::of(&server).await;
    client.create(json!({ "uri": "x:1", "text": "1", "ttl": 60 })).await;
    subscribe(&client, "x:1").await;
    let mut events = client.listen().await;
    server.clock.advance(Duration::from_secs(61));
    while events.next().await.unwrap().data.find("x:1").is_none() {}
    client.send("resources/read", json!({ "uri": "x:1" })).await.error();
    client.call("delete_resource", json!({ "uri": "x:1" })).await.text();
    let heard = until_marked(&client, &mut events).await;
    assert_eq!(heard.iter().flatten().count(), 0, "{heard:?}");
}

#[tokio::test]
async fn notifications_before_the_stream_is_opened_are_kept() {
    let server = Server::start().await;
    let client = Legacy::of(&server).await;
    client.create(json!({ "uri": "x:1", "text": "1" })).await;
    subscribe(&client, "x:1").await;
    client.call("update_resource", json!({ "uri": "x:1", "text": "2" })).await.text();
    client.call("delete_resource", json!({ "uri": "x:1" })).await.text();
    let mut events = client.listen().await;
    let heard = until_marked(&client, &mut events).await;
    assert_eq!(heard.iter().flatten().collect::<Vec<_>>(), ["x:1", "x:1"], "{heard:?}");
}

#[tokio::test]
async fn invalid_uris_are_refused() {
    let server = Server::start().await;
    let client = Legacy::of(&server).await;
    for params in [json!({ "uri": "no scheme" }), json!({}), json!({ "uri": 7 })] {
        let answer = client.send("resources/subscribe", params).await;
        assert_eq!(answer.refusal(), (200, -32602, Some(json!(1))));
    }
    // A resource may be created later.
    subscribe(&client, "x:later").await;
}

#[tokio::test]
async fn the_number_of_subscriptions_is_bounded() {
    let server = Server::start().await;
    let client = Legacy::of(&server).await;
    for n in 0..1000 {
        subscribe(&client, &format!("x:{n}")).await;
    }
    let more = client.send("resources/subscribe", json!({ "uri": "x:more" })).await;
    assert_eq!(more.status, 429, "{more:?}");
    subscribe(&client, "x:0").await;
    client.send("resources/unsubscribe", json!({ "uri": "x:1" })).await.result();
    subscribe(&client, "x:more").await;
}
