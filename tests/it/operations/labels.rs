//! Labels of metrics: callers cannot make more of them.

use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

use super::metrics::Measured;
use crate::support::{Answer, TextFile, eventually, http, post, process::larder, request};

/// The name of nothing that exists, as long as names of tools may be.
fn invented(n: usize) -> String {
    format!("invented-{n}-{}", "x".repeat(100))
}

/// Sends requests, several at once.
async fn send_all(requests: impl Iterator<Item = reqwest::RequestBuilder>) {
    const AT_ONCE: usize = 16;

    let answers = stream::iter(requests).map(Answer::of).buffer_unordered(AT_ONCE);
    answers.for_each(async |_| {}).await;
}

#[tokio::test]
async fn four_thousand_invented_names_add_nothing_to_the_metrics() {
    // Without a list of an upstream, nobody knows which tools exist.
    let upstream = "[[upstreams]]\nname = \"down\"\ncommand = [\"false\"]\n";
    let file = TextFile::new(upstream);
    let mut command = larder(&["serve"]);
    command.env("LARDER_CONFIG", file.path());
    let server = Measured::start(command).await;
    let url = &server.process.url;
    let call = |name: &str, arguments: Value| {
        post(url, &request("tools/call", json!({ "name": name, "arguments": arguments })))
    };

    // One request of each kind, so that all series exist.
    let kinds = |n: usize| {
        let name = invented(n);
        let missing = json!({ "$ref": format!("larder://{name}") });
        [
            call(&name, json!({})),
            // References are resolved before the tool is looked up.
            call(&name, json!({ "x": missing })),
            post(url, &request("prompts/get", json!({ "name": name }))),
            post(url, &request("resources/read", json!({ "uri": format!("x:{name}") }))),
            post(url, &request(&name, json!({}))),
            post(url, &request("ping", json!({}))).header("user-agent", &name),
            post(url, &request("ping", json!({}))).header("host", format!("{name}.example")),
            post(url, &request("ping", json!({}))).header("mcp-protocol-version", &name),
            http().request(reqwest::Method::from_bytes(name.as_bytes()).unwrap(), url),
            http().get(format!("{url}/{name}")),
        ]
    };
    send_all(kinds(0).into_iter()).await;
    let before = server.metrics.scrape().await.text();
    assert!(!before.contains("invented"), "{before}");

    send_all((1..=20).flat_map(kinds)).await;
    send_all((1..=4_000).map(|n| call(&invented(n), json!({})))).await;

    // A measured value has some more digits.
    eventually("all calls to be recorded", async || {
        let recorded = "mcp_server_operation_duration_seconds_count";
        server.metrics.scrape().await.sum(recorded, &["\"tools/call\""]) >= 4_000
    })
    .await;
    let after = server.metrics.scrape().await.text();
    assert!(!after.contains("invented"));
    assert_eq!(after.lines().count(), before.lines().count());
    assert!(after.len() < before.len() + 16_000, "{} and {} bytes", before.len(), after.len());
}
