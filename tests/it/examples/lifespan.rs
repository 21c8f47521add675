//! State that is set up once before a server starts, and torn down once after it.

use serde_json::json;

use super::{serving, start};
use crate::support::process::{Finished, example, run};

fn count(log: &str, ending: &str) -> usize {
    log.lines().filter(|line| line.ends_with(ending)).count()
}

#[tokio::test]
async fn it_begins_before_the_first_request_and_ends_after_the_last() {
    let (example, client) = serving("lifespan").await;
    assert_eq!(count(&example.stderr(), ": Server started"), 1);
    assert_eq!(client.list("tools/list", "tools").await.len(), 1);
    let added = client.call("add", json!({ "a": 2, "b": 3 })).await.result();
    assert_eq!(added["structuredContent"]["sum"], 5.0);
    // A failing call does not tear the state down.
    client.call("add", json!({ "a": true })).await.failure();

    // All handlers share one value.
    let resource = client.read("log://all").await;
    let prompt = client.send("prompts/get", json!({ "name": "history" })).await.result();
    let message = prompt["messages"][0]["content"]["text"].as_str().unwrap();
    for said in [resource["text"].as_str().unwrap(), message] {
        assert!(said.contains("Server started") && said.contains("Tool called"), "{said}");
        assert!(said.contains("Tools listed"), "{said}");
    }

    let Finished { code, stdout, stderr } = example.stop("-TERM").await;
    assert_eq!((code, stdout.as_str()), (Some(0), ""));
    assert_eq!(count(&stderr, ": Server started"), 1, "{stderr}");
    assert_eq!(count(&stderr, ": Server stopped"), 1, "{stderr}");
    assert!(stderr.trim_end().ends_with("Server stopped"), "{stderr}");
}

#[tokio::test]
async fn it_ends_after_an_error_too() {
    let other = start("lifespan").await;
    let mut command = example("lifespan");
    command.args(["--listen", other.address()]);
    let Finished { code, stdout, stderr } = run(command).await;
    assert_eq!((code, stdout.as_str()), (Some(2), ""), "{stderr}");
    assert!(stderr.contains("server.listen"), "{stderr}");
    assert_eq!(count(&stderr, ": Server started"), 1, "{stderr}");
    assert_eq!(count(&stderr, ": Server stopped"), 1, "{stderr}");
}
