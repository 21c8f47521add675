//! What a page can call, and as whom.

use std::time::Duration;

use serde_json::json;

use super::{Browser, server};
use crate::support::{Answer, Events, Modern, patiently};

#[tokio::test]
async fn a_page_calls_as_the_identity_of_its_token() {
    let server = server(|_| {}).await;
    Modern::bearing(&server, "anna")
        .call("create_resource", json!({ "uri": "x:annas", "text": "a" }))
        .await
        .result();
    let (anna, ben) =
        (Browser::logged_in(&server, "anna").await, Browser::logged_in(&server, "ben").await);
    assert_eq!(anna.listed().await, ["x:annas"]);
    assert_eq!(ben.listed().await, Vec::<String>::new());
    for (tool, arguments) in [
        ("read_resource", json!({ "uri": "x:annas" })),
        ("view_window", json!({ "uri": "x:annas", "as": "info" })),
        ("share_resource", json!({ "uri": "x:annas", "with": "everyone" })),
    ] {
        let answer = ben.call(tool, arguments).await;
        assert_eq!(answer.result()["isError"], true, "{tool} {answer:?}");
    }
    ben.call("delete_resource", json!({ "uri": "x:annas" })).await;
    assert_eq!(anna.listed().await, ["x:annas"]);
}

#[tokio::test]
async fn scopes_and_limits_hold_for_a_page() {
    let server = server(|config| {
        config.auth.tokens[1].scopes = vec!["mcp:write".into()];
        config.auth.scopes.insert("create_resource".into(), vec!["mcp:write".into()]);
        config.limits.body_bytes = 2_000;
    })
    .await;
    let (anna, ben) =
        (Browser::logged_in(&server, "anna").await, Browser::logged_in(&server, "ben").await);
    let create = json!({ "uri": "x:a", "text": "a" });
    let refused = anna.call("create_resource", create.clone()).await;
    assert_eq!(refused.status, 403, "{refused:?}");
    assert_eq!(ben.call("create_resource", create).await.status, 200);
    let large = json!({ "uri": "x:a", "text": "a".repeat(3_000) });
    assert_eq!(ben.call("create_resource", large).await.status, 413);
    let stream = anna.rpc("subscriptions/listen", json!({ "notifications": {} }));
    let stream = stream.header("accept", "text/event-stream");
    assert_eq!(Answer::of(stream).await.status, 406);
}

#[tokio::test]
async fn a_new_resource_is_announced_and_the_stream_ends_with_the_session() {
    let server = server(|_| {}).await;
    let browser = Browser::logged_in(&server, "anna").await;
    let opened = patiently("the stream", browser.get("events?uri=x:a").send()).await.unwrap();
    assert_eq!(opened.headers()["content-type"], "text/event-stream; charset=utf-8");
    let mut events = Events::of(opened);
    let acknowledged = events.message().await;
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    Modern::bearing(&server, "anna")
        .call("create_resource", json!({ "uri": "x:a", "text": "a" }))
        .await
        .result();
    let announced = events.message().await;
    assert!(announced["method"].as_str().unwrap().starts_with("notifications/resources/"));
    browser.log_out().await;
    // The stream looks for the end of its session now and then.
    let pass_time = async {
        loop {
            server.clock.advance(Duration::from_secs(5));
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        _ = events.rest() => {}
        () = pass_time => {}
    }
}

#[tokio::test]
async fn a_page_opens_no_legacy_session() {
    let server = server(|_| {}).await;
    let browser = Browser::logged_in(&server, "anna").await;
    let initialize = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": { "name": "page", "version": "1" },
    });
    for body in [
        crate::support::request("initialize", initialize),
        crate::support::request("tools/list", json!({})),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 1, "result": {} }),
    ] {
        let request = browser.post("rpc").header("content-type", "application/json");
        let answer = Answer::of(request.body(body.to_string())).await;
        assert_eq!(answer.status, 400, "{body} {answer:?}");
        assert!(!answer.headers.contains_key("mcp-session-id"), "{body} {answer:?}");
        assert!(super::said(&answer).contains("2026-07-28"), "{body} {answer:?}");
    }
    assert_eq!(browser.listed().await, Vec::<String>::new(), "calls of the page go on");
}
