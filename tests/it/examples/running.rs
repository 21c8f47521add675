//! Servers with a name and options, over HTTP and stdio, and one that offers nothing.

use std::process::Stdio;

use serde_json::json;
use tokio::io::AsyncWriteExt;

use super::serving;
use crate::support::{
    Answer, Legacy, patiently, post,
    process::{Finished, example},
};

#[tokio::test]
async fn name_and_options_reach_clients_and_handlers() {
    let (server, client) = serving("named_server").await;
    let discovered = client.send("server/discover", json!({})).await.result();
    assert_eq!(discovered["instructions"], "Ask it who it is.");
    let info = &discovered["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!((&info["name"], &info["version"]), (&json!("server_name"), &json!("0.1.0")));
    // A handler reads them from its context.
    let said: serde_json::Value =
        serde_json::from_str(&client.call("who_are_you", json!({})).await.text()).unwrap();
    assert_eq!(said["name"], "server_name");
    assert_eq!(said["instructions"], "Ask it who it is.");
    assert_eq!(said["request"].as_str().unwrap().len(), 32);

    let initialize = Legacy::initialize("2025-11-25");
    let initialized = Answer::of(post(&server.url, &initialize)).await.result();
    assert_eq!(initialized["serverInfo"]["name"], "server_name");
    assert_eq!(initialized["serverInfo"]["title"], "A server by name");
    assert_eq!(initialized["instructions"], "Ask it who it is.");
}

#[tokio::test]
async fn a_server_runs_until_a_signal_stops_it() {
    for signal in ["-INT", "-TERM"] {
        let (server, client) = serving("run_server").await;
        assert_eq!(client.call("ping", json!({})).await.text(), "pong");
        let Finished { code, stdout, stderr } = server.stop(signal).await;
        assert_eq!((code, stdout.as_str()), (Some(0), ""));
        assert!(stderr.contains("stopped"), "{stderr}");
    }
}

#[tokio::test]
async fn a_server_that_offers_nothing_declares_nothing() {
    let (_example, client) = serving("minimal_stdio").await;
    let discovered = client.send("server/discover", json!({})).await.result();
    let info = &discovered["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(info["name"], "minimal-stdio-server");
    for offered in ["tools", "prompts", "completions", "resources", "logging", "extensions"] {
        assert!(discovered["capabilities"].get(offered).is_none(), "{discovered}");
    }
    let lists = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"];
    for method in lists.into_iter().chain(["tasks/get"]) {
        assert_eq!(client.send(method, json!({})).await.error()["code"], -32601, "{method}");
    }
}

#[tokio::test]
async fn the_minimal_server_works_over_stdio() {
    let mut command = example("minimal_stdio");
    let mut server = command.arg("--stdio").stdin(Stdio::piped()).spawn().unwrap();
    let mut input = server.stdin.take().unwrap();
    let initialize = Legacy::initialize("2025-11-25");
    input.write_all(format!("{initialize}\n").as_bytes()).await.unwrap();
    drop(input);
    let output = patiently("the end", server.wait_with_output()).await.unwrap();
    let message: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(message["result"]["serverInfo"]["name"], "minimal-stdio-server");
    assert!(output.status.success());
}
