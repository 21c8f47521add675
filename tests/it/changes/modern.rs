//! Change notifications of the modern era: `subscriptions/listen`.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Events, Modern, Server};

const ID: &str = "io.modelcontextprotocol/subscriptionId";

/// Creates and deletes `x:mark`: the last change of a test.
async fn mark(client: &Modern) {
    client.create(json!({ "uri": "x:mark", "text": "" })).await;
    client.call("delete_resource", json!({ "uri": "x:mark" })).await.text();
}

/// The methods and URIs of all notifications until `x:mark` is deleted. The subscription has
/// to include it.
async fn until_marked(events: &mut Events, id: &Value) -> Vec<(String, String)> {
    let mut heard = Vec::new();
    loop {
        let message = events.message().await;
        assert_eq!(&message["params"]["_meta"][ID], id, "{message}");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (method, uri) = (text(&message["method"]), text(&message["params"]["uri"]));
        if uri == "x:mark" {
            return heard;
        }
        heard.push((method.trim_start_matches("notifications/resources/").to_owned(), uri));
    }
}

#[tokio::test]
async fn the_acknowledgement_comes_first_and_names_the_accepted_notifications() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    let asked = json!({ "notifications": {
        "resourcesListChanged": true, "resourceSubscriptions": ["x:1"],
        "toolsListChanged": true, "promptsListChanged": true,
    } });
    let mut events = client.stream("sub-1", "subscriptions/listen", asked).await;
    let first = events.message().await;
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(first["params"]["_meta"][ID], "sub-1");
    // The server has no prompts, so their list cannot change.
    let honoured = json!({
        "toolsListChanged": true,
        "resourcesListChanged": true, "resourceSubscriptions": ["x:1"],
    });
    assert_eq!(first["params"]["notifications"], honoured);
    assert!(first.get("id").is_none());
    let mut nothing =
        client.stream(2, "subscriptions/listen", json!({ "notifications": {} })).await;
    assert_eq!(nothing.message().await["params"]["notifications"], json!({}));
}

#[tokio::test]
async fn a_subscription_gets_only_the_notifications_that_it_asks_for() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    client.create(json!({ "uri": "x:1", "text": "1" })).await;
    client.create(json!({ "uri": "x:2", "text": "2" })).await;
    let mut one = client.listen(1, json!({ "resourceSubscriptions": ["x:1", "x:mark"] })).await;
    let mut two = client.listen("2", json!({ "resourceSubscriptions": ["x:2", "x:mark"] })).await;
    let both = json!({ "resourcesListChanged": true, "resourceSubscriptions": ["x:1", "x:mark"] });
    let mut lists = client.listen(3, both).await;
    client.call("update_resource", json!({ "uri": "x:1", "text": "new" })).await.text();
    client.create(json!({ "uri": "x:3", "text": "3" })).await;
    client.call("delete_resource", json!({ "uri": "x:2" })).await.text();
    mark(&client).await;
    let pair = |method: &str, uri: &str| (method.to_owned(), uri.to_owned());
    assert_eq!(until_marked(&mut one, &json!(1)).await, [pair("updated", "x:1")]);
    assert_eq!(until_marked(&mut two, &json!("2")).await, [pair("updated", "x:2")]);
    let heard = until_marked(&mut lists, &json!(3)).await;
    assert_eq!(heard[..2], [pair("updated", "x:1"), pair("list_changed", "")], "{heard:?}");
    assert!(heard[2..].iter().all(|h| *h == pair("list_changed", "")), "{heard:?}");
    assert!(heard.len() >= 4);
}

#[tokio::test]
async fn an_expiry_is_notified_once() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    client.create(json!({ "uri": "x:1", "text": "1", "ttl": 60 })).await;
    let asked = json!({ "resourcesListChanged": true, "resourceSubscriptions": ["x:1", "x:mark"] });
    let mut events = client.listen(1, asked).await;
    server.clock.advance(Duration::from_secs(61));
    assert_eq!(events.message().await["method"], "notifications/resources/list_changed");
    assert_eq!(events.message().await["params"]["uri"], "x:1");
    // Neither a read nor a deletion repeats the notification.
    client.send("resources/read", json!({ "uri": "x:1" })).await.error();
    client.call("delete_resource", json!({ "uri": "x:1" })).await.text();
    mark(&client).await;
    let heard = until_marked(&mut events, &json!(1)).await;
    assert!(heard.iter().all(|(method, _)| method == "list_changed"), "{heard:?}");
    assert_eq!(heard.len(), 2, "the mark came and went: {heard:?}");
}

#[tokio::test]
async fn resources_that_tools_store_are_notified_as_well() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    let mut events = client.listen(1, json!({ "resourcesListChanged": true })).await;
    client.call("park", json!({ "lines": 3 })).await.text();
    assert_eq!(events.message().await["method"], "notifications/resources/list_changed");
}

#[tokio::test]
async fn an_invalid_subscription_is_refused() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    for params in [
        json!({}),
        json!({ "notifications": 7 }),
        json!({ "notifications": { "resourceSubscriptions": "x:1" } }),
        json!({ "notifications": { "resourceSubscriptions": vec!["x:1".to_owned(); 5000].iter().enumerate().map(|(n, u)| format!("{u}{n}")).collect::<Vec<_>>() } }),
    ] {
        let answer = client.send("subscriptions/listen", params).await;
        assert_eq!(answer.refusal(), (200, -32602, Some(json!(1))));
    }
}

#[tokio::test]
async fn many_subscriptions_can_follow_each_other() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    for n in 0..20 {
        // The same request id each time, on another stream.
        let events = client.listen(1, json!({ "resourcesListChanged": true })).await;
        client.create(json!({ "uri": format!("x:{n}"), "text": "" })).await;
        drop(events);
    }
    let mut last = client.listen(1, json!({ "resourcesListChanged": true })).await;
    client.create(json!({ "uri": "x:last", "text": "" })).await;
    assert_eq!(last.message().await["params"]["_meta"][ID], 1);
}

#[tokio::test]
async fn a_silent_stream_is_kept_open_by_comments() {
    let server =
        Server::configured(|s| s.http = Box::new(|h| h.keep_alive = Duration::from_millis(20)))
            .await;
    let client = Modern::of(&server);
    let mut events = client.listen(1, json!({ "resourcesListChanged": true })).await;
    events.comes("\n\n:\n\n:\n\n").await;
    client.create(json!({ "uri": "x:1", "text": "" })).await;
    assert_eq!(events.message().await["method"], "notifications/resources/list_changed");
}
