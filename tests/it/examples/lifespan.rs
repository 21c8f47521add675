//! What is set up once and taken down once.

use std::process::Stdio;

use serde_json::json;
use tokio::process::Command;

use super::{Example, program};
use crate::support::patiently;

fn count(said: &str, what: &str) -> usize {
    said.lines().filter(|line| line.ends_with(what)).count()
}

#[tokio::test]
async fn it_begins_before_the_first_request_and_ends_after_the_last() {
    let example = Example::start("lifespan").await;
    assert_eq!(count(&example.said(), ": Server started"), 1);
    let client = example.client();
    assert_eq!(client.list("tools/list", "tools").await.len(), 1);
    let added = client.call("add", json!({ "a": 2, "b": 3 })).await.result();
    assert_eq!(added["structuredContent"]["sum"], 5.0);
    // A failing call ends nothing.
    client.call("add", json!({ "a": true })).await.failure();

    // Everywhere it is the same value.
    let resource = client.read("log://all").await;
    let prompt = client.send("prompts/get", json!({ "name": "history" })).await.result();
    let message = prompt["messages"][0]["content"]["text"].as_str().unwrap();
    for said in [resource["text"].as_str().unwrap(), message] {
        assert!(said.contains("Server started") && said.contains("Tool called"), "{said}");
        assert!(said.contains("Tools listed"), "{said}");
    }

    let (code, printed, said) = example.stop("-TERM").await;
    assert_eq!((code, printed.as_str()), (Some(0), ""));
    assert_eq!(count(&said, ": Server started"), 1, "{said}");
    assert_eq!(count(&said, ": Server stopped"), 1, "{said}");
    assert!(said.trim_end().ends_with("Server stopped"), "{said}");
}

#[tokio::test]
async fn it_ends_after_an_error_too() {
    let other = Example::start("lifespan").await;
    let address = other.url.trim_start_matches("http://").trim_end_matches("/mcp");
    let mut command = Command::new(program("lifespan"));
    command.args(["--listen", address]).stdin(Stdio::null()).kill_on_drop(true);
    let output = patiently("the end", command.output()).await.unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("server.listen"), "{said}");
    assert_eq!(count(&said, ": Server started"), 1, "{said}");
    assert_eq!(count(&said, ": Server stopped"), 1, "{said}");
    assert!(output.stdout.is_empty());
}
