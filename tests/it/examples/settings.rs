//! Settings that code sets are defaults.

use serde_json::json;

use crate::support::{
    Modern, TextFile,
    process::{Process, example, run},
};

async fn started(arguments: &[&str], environment: &[(&str, &str)]) -> Process {
    let mut command = example("settings_in_code");
    command.args(arguments).envs(environment.iter().copied());
    Process::start(command).await
}

/// The content type of the answer of a call that tells its progress.
async fn content_type(process: &Process) -> String {
    let params = json!({ "name": "count", "arguments": {}, "_meta": { "progressToken": "p" } });
    let request = Modern::at(&process.url).request(1, "tools/call", params);
    let response = request.send().await.unwrap();
    response.headers()["content-type"].to_str().unwrap().to_owned()
}

#[tokio::test]
async fn settings_in_code_hold_where_nothing_else_is_set() {
    let process = started(&[], &[]).await;
    assert!(process.stderr().contains("DEBUG"), "{}", process.stderr());
    assert_eq!(content_type(&process).await, "application/json");

    let file = TextFile::new("[tools]\nwrite = false\n");
    let process = started(&["--config", file.path()], &[]).await;
    assert_eq!(content_type(&process).await, "application/json");
}

#[tokio::test]
async fn file_environment_and_flags_override_settings_in_code_one_by_one() {
    let file = TextFile::new("[server]\njson_response = false\n[log]\nlevel = \"info\"\n");
    let process = started(&["--config", file.path()], &[]).await;
    assert_eq!(content_type(&process).await, "text/event-stream; charset=utf-8");
    assert!(!process.stderr().contains("DEBUG"), "{}", process.stderr());

    let environment = [("LARDER_SERVER__JSON_RESPONSE", "true"), ("LARDER_LOG__LEVEL", "debug")];
    let process = started(&["--config", file.path()], &environment).await;
    assert_eq!(content_type(&process).await, "application/json");
    assert!(process.stderr().contains("DEBUG"), "{}", process.stderr());
}

#[tokio::test]
async fn the_settings_of_all_sources_together_are_checked() {
    // The default time to live of the code is 60 seconds.
    for (text, words) in [
        ("[store]\nmax_ttl = 30\n", "store.default_ttl"),
        ("[server]\npth = \"/x\"\n", ":2: "),
        ("[store]\ndefault_ttl = \"x\"\n", ":2: store.default_ttl"),
    ] {
        let file = TextFile::new(text);
        let mut command = example("settings_in_code");
        command.args(["--config", file.path()]);
        let refused = run(command).await;
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains(words), "{words}: {refused:?}");
    }
}

#[tokio::test]
async fn help_and_version_are_those_of_the_server() {
    let mut version = example("named_server");
    version.arg("--version");
    let version = run(version).await;
    assert_eq!(version.stdout, "server_name 0.1.0\n", "{version:?}");

    let mut help = example("named_server");
    help.arg("--help");
    let help = run(help).await;
    assert!(help.stdout.starts_with("server_name, an MCP server\n"), "{help:?}");
    assert!(help.stdout.contains("Usage: named_server [OPTIONS]"), "{help:?}");
}
