//! `tools.listing = "search"`: tools are found and called instead of listed.

use serde_json::{Value, json};

use super::{FOLDER, uri_in};
use crate::support::{
    Modern, TextFile,
    process::{Process, larder},
    sha256,
};

const TOPICS: [&str; 5] = ["invoices", "tickets", "servers", "photos", "contracts"];

/// A server in front of five others with sixty tools each. A token may use all of them, another
/// one no invoices.
async fn started() -> (Process, Modern, Modern) {
    let mut config = format!(
        r#"
        [tools]
        listing = "search"
        [auth]
        mode = "static"
        [auth.scopes]
        "invoices__*" = ["invoices"]
        [[auth.tokens]]
        name = "all"
        sha256 = "{}"
        scopes = ["invoices"]
        [[auth.tokens]]
        name = "few"
        sha256 = "{}"
        "#,
        sha256("all-secret"),
        sha256("few-secret"),
    );
    for topic in TOPICS {
        let script = format!("{FOLDER}/odd.mjs");
        let command = json!(["node", script, "--tools=many", format!("--topic={topic}")]);
        config += &format!("[[upstreams]]\nname = \"{topic}\"\ncommand = {command}\n");
    }
    let file = TextFile::new(&config);
    let process = Process::start(larder(&["serve", "--config", file.path()])).await;
    let [all, few] = ["all-secret", "few-secret"].map(|t| Modern::at(&process.url).with_token(t));
    (process, all, few)
}

/// The definitions that `find_tools` returns, and the lines around them.
fn definitions(found: &str) -> (Vec<Value>, &str, &str) {
    let lines: Vec<_> = found.lines().collect();
    let (first, last) = (lines[0], lines[lines.len() - 1]);
    let between = lines[1..lines.len() - 1].iter();
    (between.map(|line| serde_json::from_str(line).unwrap()).collect(), first, last)
}

#[tokio::test]
async fn three_hundred_tools_are_found_and_called_by_two() {
    let (_process, all, few) = started().await;
    let listed = all.list("tools/list", "tools").await;
    let names: Vec<_> = listed.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(!names.iter().any(|name| name.contains("__")), "{names:?}");
    assert!(names.contains(&"read_resource"), "{names:?}");
    let both = listed
        .iter()
        .filter(|tool| ["find_tools", "call_tool"].contains(&tool["name"].as_str().unwrap()));
    let both: Vec<_> = both.collect();
    assert_eq!(both.len(), 2);
    assert!(json!(both).to_string().len() < 2_000, "{}", json!(both));

    let found = all.call("find_tools", json!({ "query": "archive Invoice 42" })).await.text();
    let (tools, first, next) = definitions(&found);
    assert!(first.starts_with("5 of ") && first.contains("300 tools"), "{first}");
    assert_eq!(tools[0]["name"], "invoices__archive_42", "{found}");
    assert_eq!(tools[0]["inputSchema"]["properties"]["fill"]["type"], "number");
    assert_eq!(next, r#"next: call_tool {"name":"invoices__archive_42","arguments":{}}"#);

    let call = async |client: &Modern, name: &str, arguments: Value| {
        client.call("call_tool", json!({ "name": name, "arguments": arguments })).await
    };
    let answer = call(&all, "invoices__archive_42", json!({ "note": "x" })).await;
    assert_eq!(answer.text(), r#"archive_42 {"note":"x"}"#);
    // A large result is stored under the name of the tool, and can be an argument again.
    let preview = call(&all, "photos__archive_1", json!({ "fill": 50_000 })).await.text();
    assert!(preview.contains("photos__archive_1") && preview.len() < 10_000, "{preview}");
    let reference = format!("{{{{{}}}}}", uri_in(&preview));
    let answer = call(&all, "tickets__archive_2", json!({ "size_of": reference })).await;
    assert_eq!(answer.text(), "archive_2 50010");

    // Who may not use a tool does not find it, either.
    let found = few.call("find_tools", json!({ "query": "invoice", "limit": 50 })).await.failure();
    assert!(found.contains("240 tools"), "{found}");
    assert_eq!(call(&few, "invoices__archive_42", json!({})).await.status, 403);
    assert_eq!(call(&few, "photos__archive_42", json!({})).await.status, 200);

    let unknown = call(&all, "photos__nothing", json!({})).await.error();
    assert!(unknown["message"].as_str().unwrap().contains("find_tools"), "{unknown}");
    let invalid = all.call("call_tool", json!({ "tool": "x" })).await.failure();
    assert!(invalid.contains("name"), "{invalid}");
    let none = all.call("find_tools", json!({ "query": "zebra" })).await.failure();
    assert!(none.contains("None of 300 tools"), "{none}");
}
