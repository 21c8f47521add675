//! `larder install` and `larder dev`: the server in the configuration of MCP hosts,
//! and in the Inspector.

use std::{fs, path::Path, process::Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::Command,
};

use crate::support::{
    patiently,
    process::{Finished, larder, run},
};

/// `larder install --client …` in a directory that is the home as well.
async fn install_in(home: &Path, arguments: &[&str]) -> Finished {
    let mut command = larder(&[&["install", "--client"], arguments].concat());
    command.current_dir(home).env("HOME", home).env_remove("XDG_CONFIG_HOME");
    run(command).await
}

/// The output of an installation that succeeds.
async fn install(home: &Path, arguments: &[&str]) -> String {
    let installed = install_in(home, arguments).await;
    assert_eq!(installed.code, Some(0), "{installed:?}");
    installed.stdout
}

/// The error of an installation that is refused.
async fn refused(home: &Path, arguments: &[&str]) -> String {
    let installed = install_in(home, arguments).await;
    assert_eq!(installed.code, Some(2), "{installed:?}");
    installed.stderr
}

fn json_of(file: &Path) -> Value {
    serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
}

#[tokio::test]
async fn each_host_gets_an_entry_in_its_own_file_and_form() {
    let program = env!("CARGO_BIN_EXE_larder");
    let arguments = json!(["serve", "--stdio"]);
    for (client, file, entry) in [
        ("claude-code", ".mcp.json", "/mcpServers/larder"),
        ("cursor", ".cursor/mcp.json", "/mcpServers/larder"),
        ("vscode", ".vscode/mcp.json", "/servers/larder"),
        #[cfg(target_os = "linux")]
        ("claude-desktop", ".config/Claude/claude_desktop_config.json", "/mcpServers/larder"),
    ] {
        let home = TempDir::new().unwrap();
        let said = install(home.path(), &[client]).await;
        assert!(said.contains(file), "{said}");
        let written = json_of(&home.path().join(file));
        let entry = written.pointer(entry).unwrap();
        assert_eq!((&entry["command"], &entry["args"]), (&json!(program), &arguments));
        assert_eq!(entry.get("type"), (client == "vscode").then_some(&json!("stdio")));
    }
}

#[tokio::test]
async fn the_installed_command_starts_a_server() {
    let home = TempDir::new().unwrap();
    fs::write(home.path().join("larder.toml"), "[tools]\nwrite = false\n").unwrap();
    install(home.path(), &["claude-code", "--config", "larder.toml", "--env", "RUST_LOG=error"])
        .await;
    let entry = json_of(&home.path().join(".mcp.json"))["mcpServers"]["larder"].clone();
    assert_eq!(entry["env"], json!({ "RUST_LOG": "error" }));
    let arguments = entry["args"].as_array().unwrap().iter().map(|a| a.as_str().unwrap());
    // A host may start it in any directory.
    let mut server = Command::new(entry["command"].as_str().unwrap())
        .args(arguments)
        .current_dir("/")
        .kill_on_drop(true)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let mut stdin = server.stdin.take().unwrap();
    stdin.write_all(format!("{list}\n").as_bytes()).await.unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let line = patiently("an answer", lines.next_line()).await.unwrap().unwrap();
    let answer: Value = serde_json::from_str(&line).unwrap();
    // The tools show that the configuration file is used.
    assert_eq!(answer["result"]["tools"].as_array().unwrap().len(), 7, "{answer}");
}

#[tokio::test]
async fn other_entries_of_the_file_are_kept() {
    let home = TempDir::new().unwrap();
    let file = home.path().join(".mcp.json");
    let other = json!({ "command": "other" });
    let before = json!({ "theme": "dark", "mcpServers": { "other": other }, "z": [1] });
    fs::write(&file, before.to_string()).unwrap();
    install(home.path(), &["claude-code"]).await;
    let after = json_of(&file);
    assert_eq!(after["mcpServers"]["other"], other);
    assert_eq!(after.as_object().unwrap().keys().collect::<Vec<_>>(), ["theme", "mcpServers", "z"]);
    // A second time changes nothing.
    let text = fs::read_to_string(&file).unwrap();
    assert!(install(home.path(), &["claude-code"]).await.contains("already"));
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
    // Another server of the same name is replaced only with `--replace`.
    let url = ["claude-code", "--url", "https://larder.example.com/mcp"];
    let error = refused(home.path(), &url).await;
    assert!(error.contains("--replace") && error.contains("https://larder"), "{error}");
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    install(home.path(), &[&url[..], &["--replace"]].concat()).await;
    let remote = json!({ "type": "http", "url": "https://larder.example.com/mcp" });
    assert_eq!(json_of(&file)["mcpServers"]["larder"], remote);
}

#[tokio::test]
async fn a_file_that_cannot_be_changed_is_left_and_the_entry_printed() {
    let home = TempDir::new().unwrap();
    for text in ["{ // mine\n}", "[]", "{\"mcpServers\": 1}"] {
        let file = home.path().join(".mcp.json");
        fs::write(&file, text).unwrap();
        let error = refused(home.path(), &["claude-code"]).await;
        assert!(error.contains(".mcp.json") && error.contains("--stdio"), "{error}");
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }
    let error = refused(home.path(), &["claude-desktop", "--url", "https://e.com/mcp"]).await;
    assert!(error.contains("Connectors"), "{error}");
    for (arguments, named) in [
        (&["claude"][..], "claude-desktop"),
        (&["cursor", "--env", "x"], "KEY=VALUE"),
        (&["cursor", "--config", "none.toml"], "none.toml"),
        (&["cursor", "--store", "bogus:", "--max-version", "1"], "server.max_version"),
    ] {
        let error = refused(home.path(), arguments).await;
        assert!(error.contains(named), "{error}");
    }
    assert!(!home.path().join(".cursor").exists());
}

#[tokio::test]
async fn the_configuration_of_the_environment_is_installed_with_a_local_server_only() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("larder.toml");
    fs::write(&file, "[tools]\nwrite = false\n").unwrap();
    let printed = async |config: &str, more: &[&str]| {
        let mut command = larder(&["install", "--client", "cursor", "--print"]);
        command.args(more).env("LARDER_CONFIG", config).current_dir(directory.path());
        let printed = run(command).await;
        let entries = serde_json::from_str(&printed.stdout).unwrap_or(Value::Null);
        (printed.code, entries["mcpServers"]["larder"].clone(), printed.stderr)
    };
    let name = file.to_str().unwrap();
    let (code, entry, error) = printed("larder.toml", &[]).await;
    assert_eq!(code, Some(0), "{error}");
    assert_eq!(entry["args"], json!(["serve", "--stdio", "--config", name]));
    let (code, entry, error) = printed("", &[]).await;
    assert_eq!((code, &entry["args"]), (Some(0), &json!(["serve", "--stdio"])), "{error}");
    let (code, _, error) = printed("/no/such/file", &[]).await;
    assert!(code == Some(2) && error.contains("/no/such/file"), "{error}");
    // A remote server has its own configuration.
    let url = "http://127.0.0.1:8000/mcp";
    let (code, entry, error) = printed("/no/such/file", &["--url", url]).await;
    assert_eq!((code, &entry["url"]), (Some(0), &json!(url)), "{error}");
}

#[tokio::test]
async fn printing_writes_nothing() {
    let home = TempDir::new().unwrap();
    let said = install(home.path(), &["cursor", "--print", "--name", "mine"]).await;
    let printed: Value = serde_json::from_str(&said).unwrap();
    assert!(printed["mcpServers"]["mine"]["command"].is_string());
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
}

/// A directory with an `npx` that prints its arguments, and then does as the Inspector
/// does: it starts the server and sends a request.
#[cfg(unix)]
fn npx(directory: &Path) -> std::path::PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let file = directory.join("npx");
    let script = r#"#!/bin/sh
echo "$1 $2 $3"
shift 3
echo '{"jsonrpc":"2.0","id":1,"method":"tools/list"}' | "$@"
exit 7
"#;
    fs::write(&file, script).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    directory.to_owned()
}

#[cfg(unix)]
#[tokio::test]
async fn a_new_file_of_a_host_is_readable_by_its_user_only() {
    use std::os::unix::fs::PermissionsExt;
    let home = TempDir::new().unwrap();
    let file = home.path().join("new/config.json");
    let installed =
        run(larder(&["install", "--client", "claude-desktop", "--file", file.to_str().unwrap()]));
    let installed = installed.await;
    assert_eq!(installed.code, Some(0), "{installed:?}");
    assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
}

#[cfg(unix)]
#[tokio::test]
async fn the_inspector_is_started_with_this_server() {
    let bin = TempDir::new().unwrap();
    let path = format!("{}:{}", npx(bin.path()).display(), std::env::var("PATH").unwrap());
    let program = env!("CARGO_BIN_EXE_larder");
    for arguments in
        [&["dev", "--max-version", "2025-11-25"][..], &["dev", "--", program, "serve", "--stdio"]]
    {
        let mut command = larder(arguments);
        command.env("PATH", &path);
        let finished = run(command).await;
        let (called, answered) = finished.stdout.split_once('\n').unwrap();
        assert_eq!(called, "--yes @modelcontextprotocol/inspector --");
        let answer: Value = serde_json::from_str(answered).unwrap();
        assert!(answer["result"]["tools"].is_array(), "{finished:?}");
        assert_eq!(finished.code, Some(7));
    }
    let mut without_npx = larder(&["dev"]);
    without_npx.env("PATH", "/nowhere");
    let finished = run(without_npx).await;
    assert_eq!(finished.code, Some(2));
    assert!(finished.stderr.contains("Node.js"), "{finished:?}");
}
