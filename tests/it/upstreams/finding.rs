//! `tools.listing = "search"`: tools are found and called instead of listed.

use serde_json::{Value, json};

use super::{FOLDER, uri_in};
use crate::support::{
    Modern, TextFile,
    process::{Process, larder},
    two_callers,
};

const TOPICS: [&str; 5] = ["invoices", "tickets", "servers", "photos", "contracts"];

/// A server in front of five others with sixty tools each. A token may use all of them, another
/// one no invoices.
async fn started() -> (Process, Modern, Modern) {
    let callers = two_callers(["all", "few"], "invoices__*", "invoices");
    let mut config = format!("[tools]\nlisting = \"search\"\n{callers}");
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

/// The names of the tools in an answer of `find_tools`, in their order.
fn found_tools(found: &str) -> Vec<&str> {
    let lines = found.lines().skip(1).filter_map(|line| line.split_once('('));
    lines.map(|(name, _)| name).filter(|name| name.contains("__")).collect()
}

#[tokio::test]
async fn three_hundred_tools_are_found_and_called_by_two() {
    let (_process, all, few) = started().await;
    let listed = all.list("tools/list", "tools").await;
    let names: Vec<_> = listed.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["find_tools", "call_tool"]);

    let found = all.call("find_tools", json!({ "query": "archive Invoice 42" })).await.text();
    let first = found.lines().next().unwrap();
    assert!(first.starts_with("5 of ") && first.contains("313 tools"), "{first}");
    assert_eq!(found_tools(&found)[0], "invoices__archive_42", "{found}");
    assert!(found.contains("fill?: number"), "{found}");
    let next = found.lines().last().unwrap();
    assert_eq!(next, r#"next: call_tool {"name":"invoices__archive_42","arguments":{}}"#);

    let whole = all.call("find_tools", json!({ "query": "invoices__archive_42" })).await.text();
    let definition: Value = serde_json::from_str(whole.lines().next().unwrap()).unwrap();
    assert_eq!(definition["name"], "invoices__archive_42");
    assert_eq!(definition["inputSchema"]["properties"]["fill"]["type"], "number");
    assert_eq!(whole.lines().last().unwrap(), next);

    let call = async |client: &Modern, name: &str, arguments: Value| {
        client.call("call_tool", json!({ "name": name, "arguments": arguments })).await
    };
    let answer = call(&all, "invoices__archive_42", json!({ "note": "x" })).await;
    assert_eq!(answer.text(), r#"archive_42 {"note":"x"}"#);
    // A large result is stored under the name of the tool, and can be an argument again.
    let preview = call(&all, "photos__archive_1", json!({ "fill": 50_000 })).await.text();
    assert!(preview.contains("photos__archive_1") && preview.len() < 10_000, "{preview}");
    let uri = uri_in(&preview);
    let reference = format!("{{{{{uri}}}}}");
    let answer = call(&all, "tickets__archive_2", json!({ "size_of": reference })).await;
    assert_eq!(answer.text(), "archive_2 50010");

    // The tools that read stored results are found, too, and called in the form of the preview.
    let found = all.call("find_tools", json!({ "query": "lines of a resource" })).await.text();
    assert!(found.contains("\nread_resource(uri"), "{found}");
    let next = format!(r#"call_tool {{"name":"read_resource","arguments":{{"uri":"{uri}","#);
    assert!(preview.contains(&next), "{preview}");
    let arguments = json!({ "uri": uri, "unit": "bytes", "limit": 9 });
    let read = call(&all, "read_resource", arguments).await.text();
    assert!(read.ends_with("archive_1"), "{read}");

    // Who may not use a tool does not find it, either.
    let found = few.call("find_tools", json!({ "query": "invoice", "limit": 50 })).await.failure();
    assert!(found.contains("253 tools"), "{found}");
    assert_eq!(call(&few, "invoices__archive_42", json!({})).await.status, 403);
    assert_eq!(call(&few, "photos__archive_42", json!({})).await.status, 200);

    let unknown = call(&all, "photos__nothing", json!({})).await.error();
    let message = unknown["message"].as_str().unwrap();
    assert!(
        message.contains("Did you mean photos__") && message.contains("find_tools"),
        "{message}"
    );
    let invalid = all.call("call_tool", json!({ "tool": "x" })).await.failure();
    assert!(invalid.contains("name"), "{invalid}");
    let none = all.call("find_tools", json!({ "query": "zebra" })).await.failure();
    assert!(none.contains("None of 313 tools"), "{none}");
}

/// Definitions of real servers, and what a model asks for, with the tools that do it.
const CORPUS: &str = include_str!("../../../bench/finding/corpus.json");
const QUESTIONS: &str = include_str!("../../../bench/finding/questions.json");

/// How many questions are answered by the first tool, and by one of the first three.
#[derive(Debug, Default, PartialEq, Eq)]
struct Recall {
    asked: usize,
    first: usize,
    in_three: usize,
}

#[tokio::test]
async fn the_tools_of_real_servers_are_found() {
    let corpus: Value = serde_json::from_str(CORPUS).unwrap();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/bench/finding/corpus.json");
    let mut config = String::from("[tools]\nlisting = \"search\"\n");
    for server in corpus.as_array().unwrap() {
        let name = server["name"].as_str().unwrap();
        let command = json!(["node", format!("{FOLDER}/listed.mjs"), file, name]);
        config += &format!("[[upstreams]]\nname = \"{name}\"\ncommand = {command}\n");
    }
    let file = TextFile::new(&config);
    let process = Process::start(larder(&["serve", "--config", file.path()])).await;
    let client = Modern::at(&process.url);

    let mut tuned = Recall::default();
    let mut apart = Recall::default();
    let questions: Value = serde_json::from_str(QUESTIONS).unwrap();
    for question in questions.as_array().unwrap() {
        let words = question["words"].as_str().unwrap();
        let found = client.call("find_tools", json!({ "query": words })).await.text();
        assert!(found.len() <= 1_500, "{} bytes: {found}", found.len());

        let is_right = |name: &str| question["tools"].as_array().unwrap().contains(&json!(name));
        let found: Vec<_> = found_tools(&found).into_iter().map(is_right).collect();
        let recall = if question["apart"] == true { &mut apart } else { &mut tuned };
        recall.asked += 1;
        recall.first += usize::from(found[0]);
        recall.in_three += usize::from(found.iter().take(3).any(|is_right| *is_right));
    }

    println!("tuned: {tuned:?}, apart: {apart:?}");
    // No worse than bench/README.md says.
    assert!(tuned.first >= 49 && tuned.in_three >= 57, "{tuned:?}");
    assert!(apart.first >= 20 && apart.in_three >= 27, "{apart:?}");
}
