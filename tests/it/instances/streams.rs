//! Streams that begin on one instance and are resumed on another.

use serde_json::json;

use super::{assert_counted, counted, counting, instances, session};
use crate::support::{RedisServer, ask};

#[tokio::test]
async fn a_running_call_is_resumed_elsewhere_and_then_heard_live() {
    let redis = RedisServer::start().await;
    let [a, b] = instances(&redis).await;
    let on_a = session(&a).await;
    let (mut events, _) = counting(&on_a, "x", 30, 20).await;
    events.next().await.unwrap();
    let second = events.next().await.unwrap().id;
    drop(events);
    let rest = counted(on_a.at(&b.url).resume(&second).await).await;
    assert_counted(rest, "x", 3..=30);
}

#[tokio::test]
async fn a_finished_call_is_resumed_elsewhere_even_when_its_instance_is_gone() {
    let redis = RedisServer::start().await;
    let [mut a, b] = instances(&redis).await;
    let on_a = session(&a).await;
    let (events, start) = counting(&on_a, 1, 3, 1).await;
    assert_counted(counted(events).await, 1, 1..=3);
    let on_b = on_a.at(&b.url);
    assert_counted(counted(on_b.resume(&start).await).await, 1, 1..=3);
    a.kill().await;
    assert_counted(counted(on_b.resume(&start).await).await, 1, 1..=3);
}

#[tokio::test]
async fn the_event_ids_of_another_session_are_unknown_everywhere() {
    let redis = RedisServer::start().await;
    let [a, b] = instances(&redis).await;
    let (mine, other) = (session(&a).await, session(&b).await);
    let (events, start) = counting(&mine, 1, 2, 1).await;
    assert_counted(counted(events).await, 1, 1..=2);
    for url in [&a.url, &b.url] {
        assert_eq!(other.at(url).get(Some(&start)).await.status(), 404);
    }
}

#[tokio::test]
async fn the_newest_connection_has_the_stream_wherever_it_is() {
    let redis = RedisServer::start().await;
    let [a, b] = instances(&redis).await;
    let on_a = session(&a).await;
    let (mut old, start) = counting(&on_a, 1, 20, 20).await;
    let new = on_a.at(&b.url).resume(&start).await;
    // The old stream was cut off before the end of the call.
    while let Some(event) = old.next().await {
        assert!(!event.data.contains("result"), "{event:?}");
    }
    assert_counted(counted(new).await, 1, 1..=20);
}

#[tokio::test]
async fn a_sessions_own_stream_is_served_and_resumed_anywhere() {
    let redis = RedisServer::start().await;
    let [a, b, c] = instances(&redis).await;
    let on_a = session(&a).await;
    let (on_b, on_c) = (on_a.at(&b.url), on_a.at(&c.url));
    let on_a = &on_a;
    for uri in ["x:1", "x:2", "x:3"] {
        on_a.create(json!({ "uri": uri, "text": "1" })).await;
        on_b.send("resources/subscribe", json!({ "uri": uri })).await.result();
    }
    let update = async |uri: &str| {
        on_a.call("update_resource", json!({ "uri": uri, "text": "2" })).await.text();
    };
    let mut events = on_b.listen().await;
    assert_eq!(events.next().await.unwrap().data, "", "a priming event");
    // Three resources were created since the session began: one notification.
    let first = events.next().await.unwrap();
    assert!(first.data.contains("list_changed"), "{first:?}");
    update("x:1").await;
    let seen = events.next().await.unwrap();
    assert!(seen.data.contains("x:1"), "{seen:?}");
    drop(events);
    update("x:2").await;
    let mut resumed = on_c.resume(&seen.id).await;
    update("x:3").await;
    for uri in ["x:2", "x:3"] {
        let message = resumed.message().await;
        assert_eq!(message["params"]["uri"], uri, "{message}");
    }
    let mut again = on_a.resume(&first.id).await;
    for uri in ["x:1", "x:2", "x:3"] {
        let message = again.message().await;
        assert_eq!(message["params"]["uri"], uri, "each once: {message}");
    }
}

#[tokio::test]
async fn requests_without_a_session_are_served() {
    let redis = RedisServer::start().await;
    let [a] = instances(&redis).await;
    let tools = ask(&a.url, "tools/list", json!({})).await.result();
    assert!(tools["tools"].as_array().unwrap().len() > 2);
}
