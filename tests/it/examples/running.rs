//! By name, run, and with nothing to offer.

use serde_json::json;

use super::Example;
use crate::support::{Answer, Legacy, http};

#[tokio::test]
async fn a_server_has_the_name_and_options_that_it_was_given() {
    let example = Example::start("named_server").await;
    let client = example.client();
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
    let request = http().post(&example.url).header("content-type", "application/json");
    let initialized = Answer::of(request.body(initialize.to_string())).await.result();
    assert_eq!(initialized["serverInfo"]["name"], "server_name");
    assert_eq!(initialized["serverInfo"]["title"], "A server by name");
    assert_eq!(initialized["instructions"], "Ask it who it is.");
}

#[tokio::test]
async fn a_server_runs_until_it_is_told_to_stop() {
    for signal in ["-INT", "-TERM"] {
        let example = Example::start("run_server").await;
        assert_eq!(example.client().call("ping", json!({})).await.text(), "pong");
        let (code, printed, said) = example.stop(signal).await;
        assert_eq!((code, printed.as_str()), (Some(0), ""));
        assert!(said.contains("stopped"), "{said}");
    }
}

#[tokio::test]
async fn a_server_with_nothing_to_offer_says_so() {
    let example = Example::start("minimal_stdio").await;
    let client = example.client();
    let discovered = client.send("server/discover", json!({})).await.result();
    let info = &discovered["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(info["name"], "minimal-stdio-server");
    for offered in ["tools", "prompts", "completions"] {
        assert!(discovered["capabilities"].get(offered).is_none(), "{discovered}");
    }
    for method in ["tools/list", "prompts/list"] {
        assert_eq!(client.send(method, json!({})).await.error()["code"], -32601, "{method}");
    }
    assert!(client.list("resources/list", "resources").await.is_empty());
}

#[tokio::test]
async fn the_minimal_server_speaks_over_standard_input_and_output() {
    use std::{io::Write, process::Stdio};
    let mut child = std::process::Command::new(super::program("minimal_stdio"))
        .arg("--stdio")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "{}", Legacy::initialize("2025-11-25")).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    let message: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(message["result"]["serverInfo"]["name"], "minimal-stdio-server");
    assert!(output.status.success());
}
