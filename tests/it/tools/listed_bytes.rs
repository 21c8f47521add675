//! The bytes that the list of tools takes of a model's context, for each set and transport.

use std::{fs, process::Stdio};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use crate::support::{
    Legacy, patiently,
    process::{larder, run, serving},
};

/// A server behind Larder, whose tools are listed, too.
const UPSTREAM: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/upstreams/node_modules/@modelcontextprotocol/server-memory/dist/index.js"
);

/// What a server of this configuration tells a client that connects to its standard input: its
/// instructions, and its tools.
async fn over_stdio(config: &str) -> (String, Vec<Value>) {
    let mut server = larder(&["serve", "--stdio", "--config", config]);
    let mut server =
        server.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let mut stdin = server.stdin.take().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();

    let initialize = Legacy::initialize("2025-06-18");
    let list = json!({ "jsonrpc": "2.0", "id": "list", "method": "tools/list" });
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    for message in [initialize, initialized, list] {
        stdin.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    let mut instructions = String::new();
    loop {
        let line = patiently("an answer", lines.next_line()).await.unwrap().unwrap();
        let mut answer: Value = serde_json::from_str(&line).unwrap();
        if let Some(told) = answer["result"]["instructions"].as_str() {
            told.clone_into(&mut instructions);
        }
        if answer["id"] == "list" {
            let tools = answer["result"]["tools"].as_array_mut().unwrap().split_off(0);
            return (instructions, tools);
        }
    }
}

/// The same of a client over HTTP.
async fn over_http(config: &str) -> (String, Vec<Value>) {
    let (_larder, url) = serving(&["--config", config]).await;
    let client = Legacy::at_url(&url).await;
    let told = client.initialized["instructions"].as_str().unwrap_or_default().to_owned();
    let mut listed = client.send("tools/list", json!({})).await.result();
    (told, listed["tools"].as_array_mut().unwrap().split_off(0))
}

fn bytes(tools: &[Value]) -> usize {
    tools.iter().map(|tool| tool.to_string().len() + 1).sum()
}

fn names(tools: &[Value]) -> Vec<&str> {
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn each_set_lists_its_tools_in_few_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("larder.toml");
    let path = config.to_str().unwrap();

    let upstream =
        format!("\n[[upstreams]]\nname = \"memory\"\ncommand = [\"node\", \"{UPSTREAM}\"]\n");
    let essential = ["read_resource", "search_resource", "query_resource"];
    let reading = 7;
    let (stdio_all, http_all) = (11, 14);

    for (set, upstream, stdio, http, most_bytes) in [
        ("", "", stdio_all, http_all, 10_000),
        ("set = \"auto\"", "", stdio_all, http_all, 10_000),
        ("set = \"all\"", "", stdio_all, http_all, 10_000),
        ("set = \"reading\"", "", reading, reading, 5_600),
        ("set = [\"read_resource\", \"create_resource\"]", "", 2, 2, 1_800),
        ("", &*upstream, 3, 3, 3_000),
        ("set = \"all\"", &*upstream, stdio_all, http_all, 10_000),
        ("listing = \"search\"", &*upstream, 2, 2, 900),
        ("listing = \"search\"\nset = \"reading\"", &*upstream, reading + 2, reading + 2, 6_500),
    ] {
        fs::write(&config, format!("[tools]\n{set}\n{upstream}")).unwrap();
        for (transport, expected) in [("stdio", stdio), ("http", http)] {
            let (instructions, tools) =
                if transport == "stdio" { over_stdio(path).await } else { over_http(path).await };
            let is_own = |tool: &Value| {
                larder::tools::BUILT_IN_TOOLS.contains(&tool["name"].as_str().unwrap())
            };
            let own: Vec<_> = tools.iter().filter(|tool| is_own(tool)).cloned().collect();

            let what = format!("{set} over {transport}: {:?}: {} bytes", names(&own), bytes(&own));
            println!("{what}, instructions {} bytes", instructions.len());
            assert_eq!(own.len(), expected, "{what}");
            assert!(bytes(&own) <= most_bytes, "{what}");
            let most_instructions = if set == "listing = \"search\"" { 1_000 } else { 1_500 };
            assert!(instructions.len() <= most_instructions, "{}", instructions.len());
            let lists_upstream = !upstream.is_empty() && !set.contains("search");
            assert_eq!(tools.len() > own.len(), lists_upstream, "{what}");
            if !upstream.is_empty() && expected == 3 {
                assert_eq!(names(&own), essential);
            }
        }
    }
}

#[tokio::test]
async fn a_tool_that_is_not_listed_can_be_called() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("larder.toml");
    fs::write(&config, "[tools]\nset = [\"read_resource\"]\n").unwrap();
    let (_larder, url) = serving(&["--config", config.to_str().unwrap()]).await;
    let client = Legacy::at_url(&url).await;

    let listed = client.send("tools/list", json!({})).await.result();
    assert_eq!(names(listed["tools"].as_array().unwrap()), ["read_resource"]);
    let stored = json!({ "uri": "x:1", "text": "one" });
    client.call("create_resource", stored).await.text();
    let described = client.call("describe_resource", json!({ "uri": "x:1" })).await.text();
    assert!(described.contains("3 bytes"), "{described}");
}

#[tokio::test]
async fn a_name_that_is_no_tool_is_an_error_of_the_setting() {
    for (set, said) in [
        ("[\"read_resources\"]", "tools.set: there is no built-in tool read_resources"),
        ("\"some\"", "it must be \"auto\", \"reading\", \"all\" or a list"),
        ("7", "it must be \"auto\", \"reading\", \"all\" or a list"),
        (
            "[\"query_resource\"]\n[[upstreams]]\nname = \"a\"\ncommand = [\"true\"]",
            "tools.set: with upstreams it must have read_resource",
        ),
        (
            "\"auto\"\n[[upstreams]]\nname = \"a\"\ncommand = [\"true\"]\nproject = { x = \".[\" }",
            "upstreams.project: \"a\": x: ",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("larder.toml");
        fs::write(&config, format!("[tools]\nset = {set}\n")).unwrap();
        let check = larder(&["config", "check", "--config", config.to_str().unwrap()]);
        let checked = run(check).await;
        assert_ne!(checked.code, Some(0), "{checked:?}");
        assert!(checked.stderr.contains(said), "{checked:?}");
    }
}
