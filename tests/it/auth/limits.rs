//! Limits for each principal, which protect the others.

use std::time::Duration;

use larder::config::Config;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::world_with;
use crate::support::{Answer, Legacy, Modern, ToolState, eventually, patiently, post};

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
    world.server.control.reached("k", ToolState::Started).await;
    let echo = json!({ "text": "a" });
    assert_limited(&alice.call("echo", echo.clone()).await, "limits.concurrent_calls");
    bob.call("echo", echo.clone()).await.text();
    world.server.control.release("k", 1);
    running.await.unwrap().text();
    alice.call("echo", echo).await.text();
}

#[tokio::test]
async fn bodies_that_are_not_complete() {
    let world = world_with(|config| {
        config.limits.body_bytes = 100_000;
        config.limits.caller_body_bytes = 200_000;
        config.limits.total_body_bytes = 300_000;
        config.limits.concurrent_requests = 3;
    })
    .await;
    // Sends all but some bytes, once the server reads them.
    let unfinished = async |token: &str, bytes: usize| {
        let mut stream = TcpStream::connect(world.server.address).await.unwrap();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\nexpect: 100-continue\r\ncontent-length: {}\r\n\r\n",
            bytes + 5_000
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut status = [0; 12];
        patiently("the server to read", stream.read_exact(&mut status)).await.unwrap();
        assert_eq!(&status, b"HTTP/1.1 100");
        stream.write_all(&vec![b' '; bytes]).await.unwrap();
        stream
    };
    let text = json!({ "text": "a".repeat(80_000) });
    let (alice, bob) = (world.token_for("alice", ""), world.token_for("bob", ""));
    let caller = |token: &str| Modern::bearing(&world.server, token);
    let mut held = vec![unfinished(&alice, 90_000).await, unfinished(&alice, 90_000).await];
    let refused = async |token: &str, status: u16, setting: &str| {
        let answer = caller(token).call("echo", text.clone()).await;
        let message = answer.json()["error"]["message"].as_str().unwrap_or_default().to_owned();
        answer.status == status
            && answer.header("retry-after").is_some()
            && message.contains(setting)
    };
    let limited = async || refused(&alice, 429, "limits.caller_body_bytes").await;
    eventually("the bodies of the caller to be counted", limited).await;
    assert!(!refused(&bob, 503, "limits.total_body_bytes").await, "there is room for one");
    held.push(unfinished(&bob, 90_000).await);
    let limited = async || refused(&bob, 503, "limits.total_body_bytes").await;
    eventually("the bodies of all callers to be counted", limited).await;
    // A small body has room, and a request too many is refused without its body.
    caller(&alice).call("echo", json!({ "text": "a" })).await.text();
    held.push(unfinished(&alice, 1).await);
    let limited = async || {
        let answer = caller(&alice).call("echo", json!({ "text": "a" })).await;
        answer.status == 429 && answer.json().to_string().contains("limits.concurrent_requests")
    };
    eventually("the requests to be counted", limited).await;
    drop(held);
    let is_free = async || caller(&bob).call("echo", text.clone()).await.status == 200;
    eventually("the unfinished bodies to be released", is_free).await;
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

#[tokio::test]
async fn sessions_of_all_callers() {
    let world = world_with(|config| config.sessions.total = 1).await;
    let initialize = |name: &str| {
        let request = post(&world.server.url, &Legacy::initialize("2025-11-25"));
        request.bearer_auth(world.token_for(name, ""))
    };
    let first = Legacy::bearing(&world.server, &world.token_for("alice", "")).await;
    let full = Answer::of(initialize("bob")).await;
    assert_eq!((full.status, full.header("retry-after")), (503, Some("1")), "{full:?}");
    assert!(full.error()["message"].as_str().unwrap().contains("sessions.total"), "{full:?}");
    first.delete().await;
    Answer::of(initialize("bob")).await.result();
}
