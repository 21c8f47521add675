//! Sessions, streams, subscriptions and resources belong to a principal, whatever
//! token it uses. To other principals they do not exist.

use std::time::Duration;

use serde_json::json;

use super::{World, accept, issuer::Issuer, world};
use crate::{
    asking::offers,
    support::{Events, Legacy, Modern, Raw, Server, ToolState},
};

#[tokio::test]
async fn the_session_of_another_principal_is_not_found() {
    let world = world().await;
    let alice = Legacy::bearing(&world.server, &world.token_for("alice", "")).await;
    let mallory = alice.with_token(&world.token_for("mallory", ""));
    let nothing = (404, -32600, Some(json!(1)));
    assert_eq!(mallory.send("tools/list", json!({})).await.refusal(), nothing);
    let mut unknown = mallory.with_token(&world.token_for("mallory", ""));
    unknown.session = "0".repeat(32);
    // The response is the same as for an unknown session.
    assert_eq!(
        mallory.send("tools/list", json!({})).await.body,
        unknown.send("tools/list", json!({})).await.body
    );
    assert_eq!(mallory.get(None).await.status(), 404);
    assert_eq!(
        mallory.notify("notifications/cancelled", json!({ "requestId": 1 })).await.status,
        404
    );
    assert_eq!(mallory.delete().await.status, 404);
    alice.send("tools/list", json!({})).await.result();
}

#[tokio::test]
async fn a_session_id_does_not_replace_a_token() {
    let world = world().await;
    let alice = Legacy::bearing(&world.server, &world.token_for("alice", "")).await;
    let line = "POST /mcp HTTP/1.1";
    let headers = format!(
        "host: localhost\ncontent-type: application/json\nmcp-session-id: {}",
        alice.session
    );
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let answer = Raw::request(&world.server, line, &headers, body).await;
    assert_eq!(answer.status, 401);
}

#[tokio::test]
async fn a_refreshed_token_continues_the_session() {
    let world = world().await;
    let alice = Legacy::bearing(&world.server, &world.token_for("alice", "")).await;
    alice.create(json!({ "uri": "a://1", "text": "x" })).await;
    world.server.clock.advance(Duration::from_secs(1800));
    assert_eq!(alice.send("tools/list", json!({})).await.status, 401);
    let refreshed = alice.with_token(&world.token_for("alice", "more"));
    refreshed.send("tools/list", json!({})).await.result();
    let read = refreshed.send("resources/read", json!({ "uri": "a://1" })).await.result();
    assert_eq!(read["contents"][0]["text"], "x");
}

#[tokio::test]
async fn the_token_of_the_request_decides_and_not_that_of_the_session() {
    let issuer = Issuer::start().await;
    let server = Server::configured(|setup| {
        accept(&mut setup.config, &issuer.url);
        setup.config.auth.scopes.insert("echo".into(), vec!["x".into()]);
    })
    .await;
    let world = World { issuer, server };
    let with = Legacy::bearing(&world.server, &world.token_for("alice", "x")).await;
    assert_eq!(with.call("echo", json!({ "text": "a" })).await.text(), "a");
    let without = with.with_token(&world.token_for("alice", ""));
    assert_eq!(without.call("echo", json!({ "text": "a" })).await.status, 403);
    assert_eq!(with.call("echo", json!({ "text": "a" })).await.text(), "a");
}

#[tokio::test]
async fn the_resources_of_another_principal_do_not_exist() {
    let world = world().await;
    let alice = Modern::bearing(&world.server, &world.token_for("alice", ""));
    let mallory = Modern::bearing(&world.server, &world.token_for("mallory", ""));
    alice.create(json!({ "uri": "a://1", "text": "needle" })).await;
    let absent = |uri: &str| json!({ "uri": uri });
    let theirs = mallory.send("resources/read", absent("a://1")).await;
    let nobodys = mallory.send("resources/read", absent("a://2")).await;
    assert_eq!(theirs.status, nobodys.status);
    assert_eq!(theirs.error()["code"], nobodys.error()["code"]);
    for (tool, arguments) in [
        ("read_resource", json!({ "uri": "a://1" })),
        ("describe_resource", json!({ "uri": "a://1" })),
        ("search_resource", json!({ "uri": "a://1", "query": "needle" })),
        ("update_resource", json!({ "uri": "a://1", "text": "x" })),
    ] {
        let failure = mallory.call(tool, arguments).await.failure();
        assert!(failure.to_lowercase().contains("not found"), "{tool}: {failure}");
    }
    mallory.call("delete_resource", json!({ "uri": "a://1" })).await;
    assert!(mallory.list("resources/list", "resources").await.iter().all(|r| r["uri"] != "a://1"));
    assert_eq!(alice.read("a://1").await["text"], "needle");
    // The same URI names another resource for another principal.
    mallory.create(json!({ "uri": "a://1", "text": "mine" })).await;
    assert_eq!(alice.read("a://1").await["text"], "needle");
}

#[tokio::test]
async fn a_machine_is_not_the_user_of_the_same_name() {
    let world = world().await;
    let user = world.token(|claims| claims["sub"] = json!("robot"));
    let machine = world.token(|claims| {
        claims["sub"] = json!("robot");
        claims["client_id"] = json!("robot");
    });
    let (user, machine) =
        (Modern::bearing(&world.server, &user), Modern::bearing(&world.server, &machine));
    machine.create(json!({ "uri": "a://1", "text": "x" })).await;
    let missing = user.send("resources/read", json!({ "uri": "a://1" })).await;
    assert_eq!(missing.error()["code"], -32602);
    assert_eq!(machine.read("a://1").await["text"], "x");
}

#[tokio::test]
async fn nobody_is_notified_of_changes_of_another_principal() {
    let world = world().await;
    let alice = Modern::bearing(&world.server, &world.token_for("alice", ""));
    let mallory = Modern::bearing(&world.server, &world.token_for("mallory", ""));
    let both = json!({ "resourcesListChanged": true, "resourceSubscriptions": ["a://1"] });
    let mut heard = mallory.listen(1, both).await;
    alice.create(json!({ "uri": "a://1", "text": "x" })).await;
    alice.call("update_resource", json!({ "uri": "a://1", "text": "y" })).await.text();
    mallory.create(json!({ "uri": "a://own", "text": "x" })).await;
    // The first notification is about mallory's own resource.
    assert_eq!(heard.message().await["method"], "notifications/resources/list_changed");
    world.server.clock.advance(Duration::from_secs(600));
    assert_expired(heard).await;
}

#[tokio::test]
async fn a_stream_ends_with_its_token_and_is_resumed_with_the_next() {
    let world = world().await;
    let alice = Legacy::bearing(&world.server, &world.token_for("alice", "")).await;
    let mut own = alice.listen().await;
    let primed = own.next().await.unwrap().id;
    world.server.control.release("k", 1);
    let mut call = alice.stream_call(7, "stepwise", json!({ "key": "k", "steps": 1 })).await;
    let seen = loop {
        let event = call.next().await.unwrap();
        if !event.data.is_empty() {
            break event.id;
        }
    };
    world.server.clock.advance(Duration::from_secs(600));
    assert!(own.next().await.is_none());
    assert!(call.next().await.is_none());
    assert!(!world.server.control.has("k", ToolState::Dropped), "the call was cancelled");

    let refreshed = alice.with_token(&world.token_for("alice", ""));
    world.server.control.release("k", 1);
    let messages = refreshed.resume(&seen).await.messages().await;
    assert_eq!(messages.last().unwrap()["id"], 7);
    refreshed.resume(&primed).await;
    // The event id is unknown to other principals.
    let mallory = alice.with_token(&world.token_for("mallory", ""));
    assert_eq!(mallory.get(Some(&seen)).await.status(), 404);
}

#[tokio::test]
async fn a_modern_stream_ends_with_its_token() {
    let world = world().await;
    let alice = Modern::bearing(&world.server, &world.token_for("alice", ""));
    let listening = alice.listen(1, json!({ "toolsListChanged": true })).await;
    let arguments = json!({ "key": "k", "steps": 1 });
    let call = alice.stream_call_begun(&world.server, "k", arguments).await;
    world.server.clock.advance(Duration::from_secs(600));
    assert_expired(listening).await;
    assert_expired(call).await;
    world.server.control.reached("k", ToolState::Dropped).await;
}

/// Checks that a stream ends with an error that says why, and with nothing else.
async fn assert_expired(events: Events) {
    let messages = events.messages().await;
    assert_eq!(messages.len(), 1, "{messages:?}");
    let said = messages[0]["error"]["message"].as_str().unwrap();
    assert!(said.contains("token expired"), "{said}");
}

impl Modern {
    /// A call whose stream has begun.
    async fn stream_call_begun(
        &self,
        server: &Server,
        key: &str,
        arguments: serde_json::Value,
    ) -> Events {
        server.control.release(key, 1);
        let mut call = self.stream_call(2, "stepwise", arguments).await;
        assert_eq!(call.message().await["method"], "notifications/progress");
        call
    }
}

#[tokio::test]
async fn a_request_state_is_bound_to_the_principal_and_not_to_the_token() {
    let issuer = Issuer::start().await;
    let server = Server::configured(|setup| {
        accept(&mut setup.config, &issuer.url);
        setup.offer(offers);
    })
    .await;
    let world = World { issuer, server };
    let able = || Modern::able(&world.server, json!({ "elicitation": {} }));
    let client = |subject: &str, scope: &str| able().with_token(&world.token_for(subject, scope));
    let asked = client("alice", "").call("ask_name", json!({})).await.result();
    let again = json!({
        "name": "ask_name",
        "arguments": {},
        "requestState": asked["requestState"],
        "inputResponses": { "name": { "action": "accept", "content": { "name": "Ana" } } },
    });
    let stolen = client("mallory", "").send("tools/call", again.clone()).await;
    assert_eq!(stolen.refusal(), (200, -32602, Some(json!(1))));
    let refreshed = client("alice", "another").send("tools/call", again).await;
    assert_eq!(refreshed.text(), "Hello, Ana!");
}
