//! Several instances on one Redis: a process, and a call that waits for its client, live on one
//! of them.

use std::time::Duration;

use larder::{Registry, upstream::Settings};
use serde_json::json;

use super::{
    gateway,
    http::{everything, remote},
    lines, odd,
    questions::{modern, next_round},
    text,
};
use crate::support::{Legacy, RedisServer, Server, eventually};

/// An instance on a Redis, in front of this upstream.
async fn instance(redis: &RedisServer, upstream: Settings) -> Server {
    let (registry, url): (Registry, _) = (gateway(vec![upstream]), redis.url());
    Server::configured(|setup| {
        setup.config.store.url = url;
        setup.config.redis.migrate = true;
        setup.offers = Box::new(|_, _| registry);
    })
    .await
}

#[tokio::test]
async fn the_process_of_a_session_lives_on_one_instance() {
    let (redis, folder) = (RedisServer::start().await, tempfile::tempdir().unwrap());
    let upstream = |name: &str, idle: u64| {
        let pids = folder.path().join(name);
        let mut settings = odd("odd", &[&format!("--pid={}", pids.display())]);
        settings.idle = Some(Duration::from_millis(idle));
        (settings, pids)
    };
    let (first, pids) = upstream("first", 500);
    let (second, started) = upstream("second", 60_000);
    let (one, other) = (instance(&redis, first).await, instance(&redis, second).await);
    let client = Legacy::of(&one).await;
    let elsewhere = client.at(&other.url);
    let call = json!({ "name": "mute", "arguments": {} });
    let call = json!({ "jsonrpc": "2.0", "id": "open", "method": "tools/call", "params": call });
    let running = tokio::spawn(client.post(&call).send());
    // Until then, the claim is not taken.
    eventually("the start", async || !lines(&pids).is_empty()).await;
    // A list would show what the session's own process may not offer.
    for (method, params) in
        [("tools/call", json!({ "name": "echo", "arguments": {} })), ("tools/list", json!({}))]
    {
        let refused = elsewhere.send(method, params).await.error();
        assert_eq!(refused["code"], -32603);
        assert_eq!(
            refused["message"],
            "odd runs for this session on another instance of Larder, so nothing was done here. The load balancer must send all requests with the same Mcp-Session-Id to one instance (see \"Several instances\" in docs/gateway.md)."
        );
    }
    assert!(lines(&started).is_empty());

    // The claim ends with the process.
    client.notify("notifications/cancelled", json!({ "requestId": "open" })).await;
    running.abort();
    eventually("the other instance to take over", async || {
        let taken = elsewhere.call("echo", json!({ "n": 1 })).await.json();
        text(&taken["result"]) == r#"{"n":1}"#
    })
    .await;
    assert!(client.call("echo", json!({})).await.json()["error"].is_object());

    // The end of the session at one instance ends the process at the other.
    let pids = lines(&started);
    client.delete().await;
    eventually("the end", async || !pids.iter().any(|pid| super::exists(pid))).await;
}

#[tokio::test]
async fn a_call_that_waits_for_its_client_waits_on_one_instance() {
    let redis = RedisServer::start().await;
    let asking = || odd("odd", &["--tools=asking"]);
    let (one, other) = (instance(&redis, asking()).await, instance(&redis, asking()).await);
    let required = modern(&one).call("ask", json!({})).await.result();
    let round = next_round("ask", &json!({}), &required);
    let lost = modern(&other).send("tools/call", round.clone()).await.result();
    assert_eq!(lost["isError"], true);
    assert_eq!(
        text(&lost),
        "odd waits for this answer on another instance of Larder, or on one that has stopped. The load balancer must send a caller's requests to one instance (see \"Several instances\" in docs/gateway.md). To start over, send the request without requestState."
    );
    let done = modern(&one).send("tools/call", round).await.result();
    assert!(text(&done).contains("Ada"), "{done}");
}

#[tokio::test]
async fn any_instance_goes_on_with_the_session_of_a_server_over_http() {
    let redis = RedisServer::start().await;
    let (mut child, url) = everything();
    let one = instance(&redis, remote("everything", &url)).await;
    let other = instance(&redis, remote("everything", &url)).await;
    let client = Legacy::of(&one).await;
    eventually("the start", async || {
        let sum = client.call("get-sum", json!({ "a": 2, "b": 3 })).await.json();
        text(&sum["result"]) == "The sum of 2 and 3 is 5."
    })
    .await;
    // The server turns this on and off for each of its sessions. Its first log message may come
    // first.
    let toggle = async |server: &Server| {
        let toggled = client.at(&server.url).call("toggle-simulated-logging", json!({})).await;
        text(&toggled.in_any_form().result()).to_owned()
    };
    let started = toggle(&one).await;
    let session = started.split("session ").nth(1).unwrap().split(' ').next().unwrap();
    assert!(started.starts_with("Started"), "{started}");
    let stopped = format!("Stopped simulated logging for session {session}");
    assert_eq!(toggle(&other).await, stopped);
    assert!(toggle(&other).await.starts_with("Started"));
    assert_eq!(toggle(&one).await, stopped);

    // It ends with the client's session.
    client.at(&other.url).delete().await;
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
    eventually("the end", async || {
        let request = reqwest::Client::new().post(&url).header("mcp-session-id", session);
        let request = request.header("content-type", "application/json").body(ping.clone());
        let request = request.header("accept", "application/json, text/event-stream");
        request.send().await.unwrap().status().is_client_error()
    })
    .await;
    child.kill().await.unwrap();
}
