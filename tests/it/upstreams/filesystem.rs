//! The filesystem server of the MCP project: results that are too large for an answer.

use std::{fmt::Write, fs, process::Stdio};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use super::{command_line, in_front_of, listed, package, text};
use crate::support::{Legacy, patiently, process::larder, sha256};

/// A log of 9.3 MB with one line that differs.
fn log() -> String {
    let mut log = String::new();
    for n in 0..120_000 {
        let what = if n == 90_000 { "ERROR the disk is full" } else { "INFO all is well" };
        writeln!(log, "2026-11-22T12:00:00Z host service[{n:0>8}]: {what} and so it goes on")
            .unwrap();
    }
    log
}

/// The URI in a preview.
fn stored_uri(result: &Value) -> String {
    let mut links = result["content"].as_array().unwrap().iter();
    let link = links.rfind(|block| block["type"] == "resource_link");
    link.unwrap_or_else(|| panic!("{result}"))["uri"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_large_log_is_stored_once_previewed_and_searched() {
    let folder = tempfile::tempdir().unwrap();
    let (file, log) = (folder.path().join("app.log"), log());
    fs::write(&file, &log).unwrap();
    let server = in_front_of(vec![package("filesystem", &[folder.path().to_str().unwrap()])]).await;
    let client = Legacy::of(&server).await;
    let read = client.call("read_text_file", json!({ "path": file })).await.result();
    assert!(text(&read).starts_with("PREVIEW ONLY"), "{read}");
    assert!(read["structuredContent"]["spilled"]["complete"] == false, "{read}");
    assert!(read.to_string().len() < 40_000);
    let uri = stored_uri(&read);

    let search = json!({ "uri": uri, "query": "disk is full" });
    let found = client.call("search_resource", search).await.result();
    assert!(text(&found).contains("service[00090000]: ERROR the disk is full"), "{found}");
    let resources = client.send("resources/list", json!({})).await.result();
    assert_eq!(resources["resources"].as_array().unwrap().len(), 1, "{resources}");
    let content = client.send("resources/read", json!({ "uri": uri })).await.result();
    let content = content["contents"][0]["text"].as_str().unwrap();
    assert_eq!(sha256(content), sha256(&log));
}

#[tokio::test]
async fn every_tool_gives_what_its_listed_schema_allows_small_and_stored() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("small.txt"), "one\ntwo\n").unwrap();
    fs::write(path("large.txt"), "line\n".repeat(20_000)).unwrap();
    fs::write(path("image.png"), [137, 80, 78, 71, 13, 10, 26, 10, 0, 1, 2]).unwrap();
    fs::create_dir(path("many")).unwrap();
    for n in 0..1500 {
        fs::write(path(&format!("many/a file with a rather long name {n:0>6}")), "x").unwrap();
    }
    let server = in_front_of(vec![package("filesystem", &[folder.path().to_str().unwrap()])]).await;
    let client = Legacy::of(&server).await;
    let tools = listed(&client).await;
    let calls = [
        ("read_file", json!({ "path": path("small.txt") })),
        ("read_text_file", json!({ "path": path("small.txt") })),
        ("read_text_file", json!({ "path": path("large.txt") })),
        ("read_media_file", json!({ "path": path("image.png") })),
        ("read_multiple_files", json!({ "paths": [path("small.txt"), path("large.txt")] })),
        ("write_file", json!({ "path": path("new.txt"), "content": "new" })),
        (
            "edit_file",
            json!({ "path": path("small.txt"), "edits": [{ "oldText": "two", "newText": "2" }] }),
        ),
        ("create_directory", json!({ "path": path("made") })),
        ("list_directory", json!({ "path": folder.path() })),
        ("list_directory", json!({ "path": path("many") })),
        ("list_directory_with_sizes", json!({ "path": path("many") })),
        ("directory_tree", json!({ "path": path("many") })),
        ("move_file", json!({ "source": path("new.txt"), "destination": path("moved.txt") })),
        ("search_files", json!({ "path": folder.path(), "pattern": "**/*name*" })),
        ("get_file_info", json!({ "path": path("small.txt") })),
        ("list_allowed_directories", json!({})),
    ];
    let mut stored = 0;
    for (tool, arguments) in calls {
        let result = client.call(tool, arguments).await.result();
        assert_ne!(result["isError"], true, "{tool}: {result}");
        stored += usize::from(text(&result).starts_with("PREVIEW ONLY"));
        let schema = &tools[tool]["outputSchema"];
        assert!(schema.is_object(), "{tool}");
        let validator = jsonschema::draft202012::new(schema).unwrap();
        let content = &result["structuredContent"];
        assert!(validator.is_valid(content), "{tool}: {content}");
        // Some clients read every schema as draft-07.
        assert!(jsonschema::draft7::new(schema).unwrap().is_valid(content), "{tool}");
    }
    assert_eq!(stored, 6);
    assert_eq!(fs::read_to_string(path("moved.txt")).unwrap(), "new");
}

#[tokio::test]
async fn a_command_line_is_enough() {
    let folder = tempfile::tempdir().unwrap();
    let folder = fs::canonicalize(folder.path()).unwrap();
    fs::create_dir_all(&folder).unwrap();
    let settings = package("filesystem", &[folder.to_str().unwrap()]);
    let mut serve = larder(&["serve", "--stdio", "--"]);
    let mut child = serve.args(command_line(&settings)).stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
    for (id, method, params) in [
        (1, "initialize", Legacy::initialize("2025-11-25")["params"].clone()),
        (2, "tools/list", json!({})),
    ] {
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        input.write_all(format!("{body}\n").as_bytes()).await.unwrap();
    }
    let listed = loop {
        let line = patiently("a line", output.next_line()).await.unwrap().unwrap();
        let message: Value = serde_json::from_str(&line).unwrap();
        if message["id"] == 2 {
            break message["result"]["tools"].clone();
        }
    };
    let listed = listed.as_array().unwrap();
    let has = |name: &str| listed.iter().any(|tool| tool["name"] == name);
    assert!(has("read_resource") && has("directory_tree"), "{listed:?}");
    drop(input);
    assert_eq!(patiently("the end", child.wait()).await.unwrap().code(), Some(0));
}
