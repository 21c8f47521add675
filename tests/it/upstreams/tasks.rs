//! Tools of legacy upstreams that must run as tasks.

use serde_json::json;

use super::{in_front_of, listed, package, text};
use crate::support::{Legacy, Modern};

#[tokio::test]
async fn a_tool_that_must_run_as_a_task_is_called_like_any_other() {
    let server = in_front_of(vec![package("everything", &[])]).await;
    let client = Legacy::of(&server).await;
    // Its upstream accepts no other call of it, but Larder does.
    assert!(listed(&client).await["simulate-research-query"].get("execution").is_none());
    let (tool, arguments) = ("simulate-research-query", json!({ "topic": "tests" }));
    let modern = Modern::of(&server);
    let (legacy, modern) =
        tokio::join!(client.call(tool, arguments.clone()), modern.call(tool, arguments));
    for result in [legacy.result(), modern.result()] {
        assert!(text(&result).starts_with("# Research Report: tests"), "{result}");
        assert!(result["_meta"].get("io.modelcontextprotocol/related-task").is_none());
    }
}

#[tokio::test]
async fn a_task_tells_its_state_as_progress() {
    let server = in_front_of(vec![package("everything", &[])]).await;
    let client = Legacy::of(&server).await;
    let mut events =
        client.stream_call(1, "simulate-research-query", json!({ "topic": "tests" })).await;
    assert_eq!(events.next().await.unwrap().data, "");
    let mut said = Vec::new();
    loop {
        let message = events.message().await;
        if message["method"] != "notifications/progress" {
            assert!(text(&message["result"]).starts_with("# Research Report"), "{message}");
            break;
        }
        said.push(message["params"]["message"].as_str().unwrap_or_default().to_owned());
    }
    // The stages that Larder has seen.
    assert!(said.iter().any(|control| control.ends_with("...")), "{said:?}");
}
