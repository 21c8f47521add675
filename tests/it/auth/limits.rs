//! Limits for each principal, which protect the others.

use std::time::Duration;

use larder::config::Config;
use serde_json::json;

use super::world_with;
use crate::support::{Answer, Beat, Legacy, Modern, eventually, post};

#[track_caller]
fn assert_limited(answer: &Answer, setting: &str) {
    assert_eq!(answer.status, 429, "{answer:?}");
    assert!(answer.header("retry-after").unwrap().parse::<u64>().unwrap() > 0);
    let message = answer.error()["message"].as_str().unwrap().to_owned();
    assert!(message.contains(setting), "{message}");
}

#[tokio::test]
async fn requests_in_a_window() {
    let world = world_with(|config| {
        config.limits.requests_per_window = 3;
        config.limits.window = 60;
    })
    .await;
    let alice = Modern::bearing(&world.server, &world.token_for("alice", ""));
    let bob = Modern::bearing(&world.server, &world.token_for("bob", ""));
    for _ in 0..3 {
        alice.send("tools/list", json!({})).await.result();
    }
    let limited = alice.send("tools/list", json!({})).await;
    assert_limited(&limited, "limits.requests_per_window");
    assert_eq!(limited.header("retry-after"), Some("20"));
    bob.send("tools/list", json!({})).await.result();
    // The limit counts the requests of all tokens of a principal.
    let again = Modern::bearing(&world.server, &world.token_for("alice", "other"));
    assert_limited(&again.send("tools/list", json!({})).await, "limits.requests_per_window");
    world.server.clock.advance(Duration::from_secs(20));
    alice.send("tools/list", json!({})).await.result();
}

#[tokio::test]
async fn calls_at_the_same_time() {
    let world = world_with(|config| config.limits.concurrent_calls = 1).await;
    let alice = Modern::bearing(&world.server, &world.token_for("alice", ""));
    let bob = Modern::bearing(&world.server, &world.token_for("bob", ""));
    let running = tokio::spawn({
        let alice = alice.clone();
        async move { alice.call("stepwise", json!({ "key": "k" })).await }
    });
    world.server.stage.reached("k", Beat::Started).await;
    let echo = json!({ "text": "a" });
    assert_limited(&alice.call("echo", echo.clone()).await, "limits.concurrent_calls");
    bob.call("echo", echo.clone()).await.text();
    world.server.stage.release("k", 1);
    running.await.unwrap().text();
    alice.call("echo", echo).await.text();
}

#[tokio::test]
async fn open_streams() {
    fn one(config: &mut Config) {
        config.limits.open_streams = 1;
    }
    let world = world_with(one).await;
    let alice = Modern::bearing(&world.server, &world.token_for("alice", ""));
    let params = json!({ "notifications": { "toolsListChanged": true } });
    let first = alice.listen(1, json!({ "toolsListChanged": true })).await;
    let limited = alice.send("subscriptions/listen", params.clone()).await;
    assert_limited(&limited, "limits.open_streams");
    let legacy = Legacy::bearing(&world.server, &world.token_for("alice", "")).await;
    assert_limited(&Answer::read(legacy.get(None).await).await, "limits.open_streams");
    let bob = Modern::bearing(&world.server, &world.token_for("bob", ""));
    bob.listen(1, json!({ "toolsListChanged": true })).await;
    drop(first);
    // The server closes the dropped stream when it notices the lost connection.
    let is_open = async || legacy.get(None).await.status() == 200;
    eventually("the first stream to end", is_open).await;
}

#[tokio::test]
async fn sessions() {
    let world = world_with(|config| config.sessions.per_principal = 1).await;
    let token = world.token_for("alice", "");
    let first = Legacy::bearing(&world.server, &token).await;
    let initialize =
        |token: &str| post(&world.server.url, &Legacy::initialize("2025-11-25")).bearer_auth(token);
    assert_limited(&Answer::of(initialize(&token)).await, "sessions.per_principal");
    Answer::of(initialize(&world.token_for("bob", ""))).await.result();
    first.delete().await;
    Answer::of(initialize(&token)).await.result();
}
