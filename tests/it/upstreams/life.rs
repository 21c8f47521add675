//! The states of an upstream that starts slowly, or again and again: what a client sees of them.

use std::{fs, path::Path, time::Duration};

use larder::upstream::Settings;
use serde_json::{Value, json};

use super::{FOLDER, command_line, in_front_of, lines, listed, package, text};
use crate::support::{Legacy, Modern, eventually, patiently};

/// An upstream whose program waits for a file, as `npx` does for a download, before it is this one.
fn downloaded(program: &Settings, file: &Path) -> Settings {
    let wait = format!("while [ ! -e {} ]; do sleep 0.05; done; exec \"$@\"", file.display());
    let command = ["sh", "-c", &wait, "sh"].map(str::to_owned);
    let command = command.into_iter().chain(command_line(program).iter().cloned());
    let mut settings = Settings::new(&program.name, command.collect::<Vec<_>>());
    settings.list_timeout = Duration::from_millis(300);
    settings
}

/// The tools of a list, and the trouble of upstreams that it tells of.
fn tools_and_trouble(result: &Value) -> (Vec<&str>, &Value) {
    let tools = result["tools"].as_array().unwrap();
    let names = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    (names, &result["_meta"]["larder/upstreams"])
}

/// Servers of both eras, and that of the TypeScript SDK, each with a tool.
fn programs() -> Vec<(Settings, &'static str, Value)> {
    let odd = |flags: &[&str]| super::odd("odd", flags);
    vec![
        (odd(&[]), "echo", json!({})),
        (odd(&["--discover=modern", "--modern=1"]), "echo", json!({})),
        (package("everything", &[]), "echo", json!({ "message": "hello" })),
    ]
}

#[tokio::test]
async fn a_server_that_is_downloaded_first_is_starting_until_a_session_hears_of_its_tools() {
    for (program, tool, arguments) in programs() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("downloaded");
        let server = in_front_of(vec![downloaded(&program, &file)]).await;
        let client = Legacy::of(&server).await;
        let mut events = client.listen().await;
        assert_eq!(events.next().await.unwrap().data, "");

        let first = client.send("tools/list", json!({})).await.result();
        let (tools, trouble) = tools_and_trouble(&first);
        assert!(!tools.contains(&tool), "{tools:?}");
        assert_eq!(trouble, &json!([{ "name": program.name, "state": "starting" }]));

        let caller = client.clone();
        let call = tokio::spawn(async move { caller.call(tool, arguments).await.result() });
        fs::write(&file, "").unwrap();
        let called = patiently("the call", call).await.unwrap();
        assert_ne!(called["isError"], true, "{called}");

        let mut told = Value::Null;
        while told != "notifications/tools/list_changed" {
            told = events.message().await["method"].take();
        }
        let then = client.send("tools/list", json!({})).await.result();
        let (tools, trouble) = tools_and_trouble(&then);
        assert!(tools.contains(&tool) && trouble.is_null(), "{tools:?} {trouble}");
    }
}

#[tokio::test]
async fn a_server_that_is_downloaded_first_is_starting_until_a_subscriber_hears_of_its_tools() {
    for (program, tool, arguments) in programs() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("downloaded");
        let server = in_front_of(vec![downloaded(&program, &file)]).await;
        let client = Modern::of(&server);
        let mut events = client.listen(1, json!({ "toolsListChanged": true })).await;

        let first = client.send("tools/list", json!({})).await.result();
        let (tools, trouble) = tools_and_trouble(&first);
        assert!(!tools.contains(&tool), "{tools:?}");
        assert_eq!(trouble, &json!([{ "name": program.name, "state": "starting" }]));

        let call = client.call(tool, arguments);
        let go = async { fs::write(&file, "").unwrap() };
        let (called, ()) = patiently("the call", async { tokio::join!(call, go) }).await;
        let called = called.result();
        assert_ne!(called["isError"], true, "{called}");

        let told = events.message().await;
        assert_eq!(told["method"], "notifications/tools/list_changed");
        let then = client.send("tools/list", json!({})).await.result();
        let (tools, trouble) = tools_and_trouble(&then);
        assert!(tools.contains(&tool) && trouble.is_null(), "{tools:?} {trouble}");
    }
}

#[tokio::test]
async fn an_upstream_that_has_failed_and_starts_again_is_starting() {
    let folder = tempfile::tempdir().unwrap();
    let (starts, fixed) = (folder.path().join("starts"), folder.path().join("fixed"));
    let script = format!(
        "echo >> {starts}; if [ -e {fixed} ]; then exec sleep 1000; fi; exit 3",
        starts = starts.display(),
        fixed = fixed.display()
    );
    let mut settings = Settings::new("odd", ["sh", "-c", &script].map(str::to_owned).to_vec());
    settings.list_timeout = Duration::from_millis(300);
    let server = in_front_of(vec![settings]).await;
    let client = Modern::of(&server);
    let trouble = async || {
        let result = client.send("tools/list", json!({})).await.result();
        result["_meta"]["larder/upstreams"].clone()
    };

    let failed = client.call("echo", json!({})).await.result();
    assert!(text(&failed).starts_with("odd could not be started (exit code 3)"), "{failed}");
    let down = json!([{ "name": "odd", "state": "down", "problem": "start" }]);
    eventually("the failure", async || trouble().await == down).await;

    fs::write(&fixed, "").unwrap();
    let before = lines(&starts).len();
    eventually("the next start", async || lines(&starts).len() > before).await;
    let starting = json!([{ "name": "odd", "state": "starting" }]);
    eventually("its state", async || trouble().await == starting).await;
}

#[tokio::test]
async fn a_session_that_begins_while_a_server_is_down_has_its_tools_when_it_runs() {
    let folder = tempfile::tempdir().unwrap();
    let fixed = folder.path().join("fixed");
    let script =
        format!("if [ -e {} ]; then exec node {FOLDER}/odd.mjs; fi; exit 3", fixed.display());
    let settings = Settings::new("odd", ["sh", "-c", &script].map(str::to_owned).to_vec());
    let server = in_front_of(vec![settings]).await;
    let client = Legacy::of(&server).await;
    assert!(!listed(&client).await.contains_key("echo"));

    fs::write(&fixed, "").unwrap();
    eventually("the tools", async || listed(&client).await.contains_key("echo")).await;
    assert_eq!(text(&client.call("echo", json!({})).await.result()), "{}");
}
