//! Upstreams that do not start, do not answer, or end: what the caller reads, and that
//! nobody else is affected.

use std::time::Duration;

use larder::{
    Builder, Registry,
    tools::{self, ToolOptions},
    upstream::{Settings, Upstreams},
};
use serde_json::json;
use tokio::time::Instant;

use super::{SOON, env, in_front_of, lines, listed, odd, text};
use crate::support::{Legacy, Server, eventually};

#[tokio::test]
async fn an_upstream_that_ends_or_says_nothing_on_discover_is_up_soon() {
    for discover in ["exit", "silent"] {
        let server = in_front_of(vec![odd("odd", &[&format!("--discover={discover}")])]).await;
        let client = Legacy::of(&server).await;
        let begun = Instant::now();
        assert!(listed(&client).await.contains_key("echo"), "{discover}");
        assert!(begun.elapsed() < SOON);
    }
}

#[tokio::test]
async fn one_that_is_missing_and_one_that_hangs_hold_nobody_up() {
    let missing = Settings::new("missing", vec!["/nowhere/at-all".to_owned()]);
    let server = in_front_of(vec![missing, odd("hangs", &["--hang=1"]), odd("healthy", &[])]).await;
    let begun = Instant::now();
    let client = Legacy::of(&server).await;
    assert!(begun.elapsed() < Duration::from_secs(2));
    let tools = listed(&client).await;
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    assert!(tools.contains_key("healthy__echo") && !tools.keys().any(|t| t.starts_with("hangs")));
    let echo = client.call("healthy__echo", json!({ "a": 1 })).await.result();
    assert_eq!(text(&echo), "{\"a\":1}");
    let refused = client.call("missing__x", json!({})).await.result();
    assert_eq!(refused["isError"], true);
    let reason = text(&refused);
    assert!(
        reason.starts_with("missing could not be started (/nowhere/at-all: No such file"),
        "{reason}"
    );
    assert!(reason.ends_with(" s, or with the next call."), "{reason}");
}

#[tokio::test]
async fn a_start_that_fails_says_why() {
    let server = in_front_of(vec![odd("odd", &["--fail=1"])]).await;
    let refused = Legacy::of(&server).await.call("echo", json!({})).await.result();
    let reason = text(&refused);
    // Its standard error is for operators.
    let expected = "odd could not be started (exit code 3). Next try in ";
    assert!(refused["isError"] == true && reason.starts_with(expected), "{reason}");
}

#[tokio::test]
async fn a_killed_upstream_fails_its_call_and_the_next_one_works() {
    let server = in_front_of(vec![odd("a", &[]), odd("b", &[])]).await;
    let client = Legacy::of(&server).await;
    assert_eq!(text(&client.call("b__echo", json!({})).await.result()), "{}");
    let killed = client.call("a__die", json!({})).await.result();
    assert_eq!(text(&killed), "a ended (signal 9) during die; whether it was done is unknown.");
    assert_eq!(killed["isError"], true);
    for tool in ["a__echo", "b__echo"] {
        assert_eq!(text(&client.call(tool, json!({})).await.result()), "{}");
    }
    // It stays listed.
    client.call("a__die", json!({})).await.result();
    assert!(listed(&client).await.contains_key("a__echo"));
}

#[tokio::test]
async fn an_idempotent_call_is_sent_again_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = odd("odd", &[]);
    let file = folder.path().join("once").display().to_string();
    env(&mut settings).insert("ONCE".into(), file);
    let server = in_front_of(vec![settings]).await;
    let result = Legacy::of(&server).await.call("again", json!({})).await.result();
    assert_eq!(text(&result), "survived");
}

#[tokio::test]
async fn answers_that_are_too_long_or_too_late_fail_alone() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("received");
    let mut settings = odd("odd", &[&format!("--record={}", record.display())]);
    settings.max_message = 1 << 20;
    settings.call_timeout = Duration::from_secs(2);
    let server = in_front_of(vec![settings]).await;
    let client = Legacy::of(&server).await;
    assert_eq!(text(&client.call("echo", json!({})).await.result()), "{}");
    let mute = client.clone();
    let mute = tokio::spawn(async move { mute.call("mute", json!({})).await.result() });
    let huge = client.call("huge", json!({ "bytes": 2 << 20 })).await.result();
    assert_eq!(text(&huge), "odd sent more than 1 MiB (upstreams.max_message); nothing was kept.");
    let mute = mute.await.unwrap();
    assert_eq!(
        text(&mute),
        "odd did not answer within 2 s (upstreams.call_timeout) and was told to stop."
    );
    eventually("the cancellation", async || {
        lines(&record).iter().any(|line| line.contains("notifications/cancelled"))
    })
    .await;
    assert_eq!(text(&client.call("echo", json!({})).await.result()), "{}");
}

#[tokio::test]
async fn an_answer_of_too_many_values_fails_alone() {
    let mut settings = odd("odd", &[]);
    settings.max_values = 20_000;
    let server = in_front_of(vec![settings]).await;
    let client = Legacy::of(&server).await;
    let many = client.call("huge", json!({ "values": 30_000 })).await.result();
    let problem = "odd sent more than 20000 JSON values in one message (upstreams.max_values); nothing was kept.";
    assert_eq!(text(&many), problem);
    let fewer = client.call("huge", json!({ "values": 19_000 })).await.result();
    assert_ne!(fewer["isError"], true);
}

#[tokio::test]
async fn the_memory_for_messages_is_given_back_when_a_call_ends() {
    let builder = Registry::builder("gateway").with(tools::reading(ToolOptions::default()));
    let upstreams = Upstreams::new(vec![odd("odd", &[])], Vec::new(), builder.tool_names());
    let upstreams = upstreams.unwrap();
    upstreams.limit_messages(1 << 20);
    let builder = upstreams.providers().into_iter().fold(builder, Builder::provider);
    let server = Server::of(builder.build().unwrap()).await;
    let client = Legacy::of(&server).await;
    // Together, these are more than the limit; the last one is so alone.
    for bytes in [700_000, 700_000, 2_000_000, 700_000] {
        let result = client.call("huge", json!({ "bytes": bytes })).await.result();
        assert_ne!(result["isError"], true, "{result}");
    }
}
