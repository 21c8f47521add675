//! Messages that nobody needs, in any number.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use super::{
    super::{FOLDER, text},
    Any, WAYS, Way, result,
};
use crate::support::{
    Legacy, TextFile, patiently,
    process::{Process, larder},
};

/// How many useless messages come before an answer.
const MESSAGES: usize = 2_000;

fn fine() -> String {
    result(r#"{"content":[{"type":"text","text":"fine"}]}"#)
}

/// The binary in front of an upstream of `tests/upstreams`.
async fn serving(script: &str, flags: &[&str]) -> (TextFile, Process) {
    let command = json!([&["node", &format!("{FOLDER}/{script}")], flags].concat());
    let config = format!("[[upstreams]]\nname = \"any\"\ncommand = {command}\n");
    let file = TextFile::new(&config);
    let server = Process::start(larder(&["serve", "--config", file.path()])).await;
    (file, server)
}

#[tokio::test]
async fn useless_messages_are_logged_at_a_limited_rate() {
    let id = "i".repeat(2_000);
    let nested = format!("[{}[]]", "[],".repeat(900));
    for (useless, logged) in [
        ("listening on port 3000".to_owned(), "no valid message"),
        (json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }).to_string(), "a long id"),
        (nested, "a batch in a batch"),
    ] {
        // The rate is shared by all lines of an upstream, so each kind gets a server of its own.
        let (_file, server) = serving("any.mjs", &[]).await;
        let client = Legacy::at_url(&server.url).await;

        let sent = format!("{useless}\n").repeat(MESSAGES) + &fine();
        let bytes = BASE64_STANDARD.encode(sent);
        let called = client.call("say", json!({ "bytes": bytes }));
        assert_eq!(text(&patiently("an answer", called).await.result()), "fine", "{logged}");

        let stderr = server.stderr();
        let lines = stderr.lines().filter(|line| line.contains(logged)).count();
        assert!((1..MESSAGES / 4).contains(&lines), "{logged}: {lines} lines");
    }
}

#[tokio::test]
async fn long_descriptions_are_logged_at_a_limited_rate() {
    let flags = ["--list=long", "--items=1000", "--size=10500"];
    let (_file, server) = serving("large.mjs", &flags).await;
    let client = Legacy::at_url(&server.url).await;
    let called = client.call("t999", json!({}));
    assert_eq!(text(&patiently("an answer", called).await.result()), "echo");

    let stderr = server.stderr();
    let lines = stderr.lines().filter(|line| line.contains("description of an upstream's item"));
    let lines = lines.count();
    assert!((1..250).contains(&lines), "{lines} lines");
}

#[tokio::test]
async fn a_batch_of_too_many_messages_fails_its_call() {
    for way in WAYS {
        let any = Any::by(way).await;
        let batch = |others: usize| format!("[{}{}]", fine(), ",5".repeat(others));

        let answer = patiently("an answer", any.call(batch(999))).await.result();
        assert_eq!(text(&answer), "fine", "{way:?}");

        let answer: Value = patiently("an answer", any.call(batch(1_000))).await.result();
        let said = text(&answer);
        assert!(said.contains("more than 1000 messages in one batch"), "{way:?}: {said}");
        assert_eq!(answer["isError"], true, "{way:?}");
    }
}

#[tokio::test]
async fn a_question_that_is_refused_gets_an_answer() {
    let mut settings = super::upstream(Way::Stdio, Vec::new()).await;
    settings.max_message = 64 << 10;
    let server = super::in_front_of(vec![settings]).await;
    let client = Legacy::of(&server).await;

    let long = "x".repeat(100_000);
    let method = "sampling/createMessage";
    for (id, question) in [
        ("7", json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": { "a": long } })),
        ("q1", json!({ "id": "q1", "jsonrpc": "2.0", "method": method, "params": { "a": long } })),
    ] {
        let bytes = BASE64_STANDARD.encode(question.to_string());
        let called = client.call("say", json!({ "bytes": bytes, "then": "wait" }));
        let answer = patiently("an answer", called).await.result();
        let expected = format!("{id}: any sent more than 64 KiB (upstreams.max_message)");
        assert!(text(&answer).starts_with(&expected), "{}", text(&answer));
    }
}
