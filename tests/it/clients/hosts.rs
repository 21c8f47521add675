//! `larder install` and `larder dev`: the server in hosts' configurations, and
//! in the Inspector.

use std::{fs, path::Path, process::Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::Command,
};

use crate::{process::larder, support::patiently};

/// Exit code, standard output and standard error of a command in that directory.
async fn run(directory: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = larder(arguments);
    command.current_dir(directory).env("HOME", directory).env_remove("XDG_CONFIG_HOME");
    let output = patiently("the process to end", command.output()).await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

async fn install(directory: &Path, arguments: &[&str]) -> String {
    let (code, said, error) = run(directory, &[&["install", "--client"], arguments].concat()).await;
    assert_eq!(code, Some(0), "{error}");
    said
}

async fn refused(directory: &Path, arguments: &[&str]) -> String {
    let (code, _, error) = run(directory, &[&["install", "--client"], arguments].concat()).await;
    assert_eq!(code, Some(2), "{error}");
    error
}

fn json_of(file: &Path) -> Value {
    serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
}

#[tokio::test]
async fn each_host_has_the_entry_that_it_reads() {
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
async fn what_was_installed_starts_and_answers() {
    let home = TempDir::new().unwrap();
    fs::write(home.path().join("larder.toml"), "[tools]\nwrite = false\n").unwrap();
    install(home.path(), &["claude-code", "--config", "larder.toml", "--env", "RUST_LOG=error"])
        .await;
    let entry = json_of(&home.path().join(".mcp.json"))["mcpServers"]["larder"].clone();
    assert_eq!(entry["env"], json!({ "RUST_LOG": "error" }));
    let arguments = entry["args"].as_array().unwrap().iter().map(|a| a.as_str().unwrap());
    // A host starts it wherever it likes.
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
    // The configuration counts.
    assert_eq!(answer["result"]["tools"].as_array().unwrap().len(), 5, "{answer}");
}

#[tokio::test]
async fn what_else_is_in_the_file_stays() {
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
    // Another server of that name is replaced only where that is said.
    let url = ["claude-code", "--url", "https://larder.example.com/mcp"];
    let error = refused(home.path(), &url).await;
    assert!(error.contains("--replace") && error.contains("https://larder"), "{error}");
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    install(home.path(), &[&url[..], &["--replace"]].concat()).await;
    let remote = json!({ "type": "http", "url": "https://larder.example.com/mcp" });
    assert_eq!(json_of(&file)["mcpServers"]["larder"], remote);
}

#[tokio::test]
async fn what_cannot_be_changed_is_left_and_shown() {
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
async fn a_file_that_a_variable_names_is_the_servers_where_there_is_one_to_start() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("larder.toml");
    fs::write(&file, "[tools]\nwrite = false\n").unwrap();
    let printed = async |config: &str, more: &[&str]| {
        let mut command = larder(&["install", "--client", "cursor", "--print"]);
        command.args(more).env("LARDER_CONFIG", config).current_dir(directory.path());
        let output = patiently("the process to end", command.output()).await.unwrap();
        let said = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
        let error = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), said["mcpServers"]["larder"].clone(), error)
    };
    let name = file.to_str().unwrap();
    let (code, entry, error) = printed("larder.toml", &[]).await;
    assert_eq!(code, Some(0), "{error}");
    assert_eq!(entry["args"], json!(["serve", "--stdio", "--config", name]));
    let (code, entry, error) = printed("", &[]).await;
    assert_eq!((code, &entry["args"]), (Some(0), &json!(["serve", "--stdio"])), "{error}");
    let (code, _, error) = printed("/no/such/file", &[]).await;
    assert!(code == Some(2) && error.contains("/no/such/file"), "{error}");
    // A server that runs elsewhere has a configuration of its own.
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

/// An `npx` that says how it was called and then is the Inspector's part: it
/// starts the server and asks it something.
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
async fn the_inspector_is_given_this_server() {
    let bin = TempDir::new().unwrap();
    let path = format!("{}:{}", npx(bin.path()).display(), std::env::var("PATH").unwrap());
    let program = env!("CARGO_BIN_EXE_larder");
    for arguments in
        [&["dev", "--max-version", "2025-11-25"][..], &["dev", "--", program, "serve", "--stdio"]]
    {
        let mut command = larder(arguments);
        let output = patiently("its end", command.env("PATH", &path).output()).await.unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let (called, answered) = said.split_once('\n').unwrap();
        assert_eq!(called, "--yes @modelcontextprotocol/inspector --");
        let answer: Value = serde_json::from_str(answered).unwrap();
        assert!(answer["result"]["tools"].is_array(), "{said}");
        assert_eq!(output.status.code(), Some(7));
    }
    let none = larder(&["dev"]).env("PATH", "/nowhere").output();
    let none = patiently("its end", none).await.unwrap();
    assert_eq!(none.status.code(), Some(2));
    assert!(String::from_utf8(none.stderr).unwrap().contains("Node.js"));
}
