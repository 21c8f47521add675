//! `larder wrap`: the servers of a host's configuration go through Larder, and back.

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

const ODD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/upstreams/odd.mjs");
const BACKUP: &str = ".before-larder";

/// `larder wrap --client …` in a directory that is the home as well.
async fn wrap_in(home: &Path, arguments: &[&str]) -> Finished {
    let mut command = larder(&[&["wrap", "--client"], arguments].concat());
    command.current_dir(home).env("HOME", home).env_remove("XDG_CONFIG_HOME");
    run(command).await
}

/// The output of a command that succeeds.
async fn wrap(home: &Path, arguments: &[&str]) -> String {
    let wrapped = wrap_in(home, arguments).await;
    assert_eq!(wrapped.code, Some(0), "{wrapped:?}");
    wrapped.stdout
}

/// The error of a command that is refused.
async fn refused(home: &Path, arguments: &[&str]) -> String {
    let wrapped = wrap_in(home, arguments).await;
    assert_eq!(wrapped.code, Some(2), "{wrapped:?}");
    wrapped.stderr
}

/// A host's file with that text, in a home of its own.
fn file(client: &str, text: &str) -> (TempDir, std::path::PathBuf) {
    let name = match client {
        "claude-code" => ".mcp.json",
        "cursor" => ".cursor/mcp.json",
        "vscode" => ".vscode/mcp.json",
        _ => ".config/Claude/claude_desktop_config.json",
    };
    let home = TempDir::new().unwrap();
    let file = home.path().join(name);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, text).unwrap();
    (home, file)
}

fn backup(file: &Path) -> std::path::PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(BACKUP);
    name.into()
}

fn json_of(file: &Path) -> Value {
    serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
}

/// Files of four hosts, each in a style of its own.
const FILES: [(&str, &str, &str); 4] = [
    (
        "claude-code",
        "mcpServers",
        r#"{"mcpServers":{"fs":{"command":"npx","args":["-y","fs","/srv"],"env":{"TOKEN":"${TOKEN}"},"timeout":9},
"crm":{"type":"http","url":"https://crm.example/mcp","headers":{"Authorization":"Bearer ${CRM}"}}},"other":1e2}"#,
    ),
    (
        "claude-desktop",
        "mcpServers",
        "{\n    \"theme\": \"dark\",\n    \"mcpServers\": {\n        \"fs\": {\n            \"command\": \"npx\",\n            \"args\": [\"-y\", \"fs\"]\n        }\n    }\n}",
    ),
    (
        "vscode",
        "servers",
        "{\r\n\t// The team's servers.\r\n\t\"inputs\": [{ \"id\": \"key\", \"type\": \"promptString\" }],\r\n\t\"servers\": {\r\n\t\t\"fs\": {\r\n\t\t\t\"type\": \"stdio\", // local\r\n\t\t\t\"command\": \"npx\",\r\n\t\t\t\"args\": [\"${workspaceFolder}\"],\r\n\t\t},\r\n\t\t/* remote */ \"crm\": { \"type\": \"http\", \"url\": \"https://crm.example/mcp\", \"headers\": { \"X-Key\": \"${input:key}\" } },\r\n\t},\r\n}\r\n",
    ),
    (
        "cursor",
        "mcpServers",
        "{ \"mcpServers\": {\n  \"fs\": { \"command\": \"/bin/server\" },\n  \"crm\": {\n    \"url\": \"https://crm.example/mcp\"\n  }\n} }\n\n",
    ),
];

#[tokio::test]
async fn the_servers_of_each_host_are_wrapped_and_restored_to_the_byte() {
    for (client, section, text) in FILES {
        let (home, file) = file(client, text);
        let said = wrap(home.path(), &[client]).await;
        assert!(said.contains("fs") && said.contains(BACKUP), "{said}");
        assert_eq!(fs::read_to_string(backup(&file)).unwrap(), text);
        let wrapped = fs::read_to_string(&file).unwrap();
        for part in ["// The team's servers.", "/* remote */", "${workspaceFolder}", "1e2", "dark"]
        {
            assert_eq!(text.contains(part), wrapped.contains(part), "{client} {part}: {wrapped}");
        }
        assert_eq!(text.contains("\r\n"), wrapped.contains("\r\n"));
        assert_eq!(
            text.matches("\r\n").count() > 0,
            wrapped.matches('\n').count() == wrapped.matches("\r\n").count()
        );
        assert!(wrapped.contains("\"serve\"") && wrapped.contains("\"fs\""), "{wrapped}");
        // Another time nothing changes.
        let said = wrap(home.path(), &[client]).await;
        assert!(said.contains("already") && said.contains("unchanged"), "{said}");
        assert_eq!(fs::read_to_string(&file).unwrap(), wrapped);
        assert_eq!(fs::read_to_string(backup(&file)).unwrap(), text);

        let said = wrap(home.path(), &[client, "--undo"]).await;
        assert!(said.contains("fs"), "{said}");
        assert_eq!(fs::read_to_string(&file).unwrap(), text, "{client}");
        assert!(!backup(&file).exists());
        assert!(wrap(home.path(), &[client, "--undo"]).await.contains("unchanged"));
        assert_eq!(text.contains("servers"), section == "servers");
    }
}

#[tokio::test]
async fn an_entry_keeps_its_name_environment_and_unknown_members() {
    let (client, _, text) = FILES[0];
    let (home, file) = file(client, text);
    wrap(home.path(), &[client, "--store", "file:///tmp/x"]).await;
    let servers = json_of(&file)["mcpServers"].take();
    let program = env!("CARGO_BIN_EXE_larder");
    let fs = json!({
        "command": program,
        "args": ["serve", "--stdio", "--store", "file:///tmp/x", "--env", "TOKEN", "--", "npx", "-y", "fs", "/srv"],
        "env": { "TOKEN": "${TOKEN}" },
        "timeout": 9,
    });
    let crm = json!({
        "type": "stdio",
        "command": program,
        "args": [
            "serve", "--stdio", "--store", "file:///tmp/x", "--upstream", "https://crm.example/mcp",
            "--header", "Authorization=UPSTREAM_HEADER_AUTHORIZATION",
        ],
        "env": { "UPSTREAM_HEADER_AUTHORIZATION": "Bearer ${CRM}" },
    });
    assert_eq!(servers, json!({ "fs": fs, "crm": crm }));
}

#[tokio::test]
async fn what_was_changed_since_is_not_lost() {
    let (client, _, text) = FILES[2];
    let (home, file) = file(client, text);
    // One now, the other one later: the backup stays the file without Larder.
    wrap(home.path(), &[client, "fs"]).await;
    wrap(home.path(), &[client]).await;
    assert_eq!(fs::read_to_string(backup(&file)).unwrap(), text);
    let wrapped = fs::read_to_string(&file).unwrap();
    let changed = wrapped
        .replace("// The team's servers.", "// Ours.")
        .replacen("\"servers\": {", "\"servers\": {\"new\": { \"command\": \"n\" },", 1)
        .replace("X_KEY\":\"${input:key}\"", "X_KEY\":\"${input:other}\"");
    fs::write(&file, &changed).unwrap();
    wrap(home.path(), &[client, "--undo", "fs"]).await;
    let restored = fs::read_to_string(&file).unwrap();
    assert!(
        restored.contains("\"stdio\", // local") && restored.contains("--upstream"),
        "{restored}"
    );
    wrap(home.path(), &[client, "--undo"]).await;
    let restored = fs::read_to_string(&file).unwrap();
    let expected = text
        .replace("// The team's servers.", "// Ours.")
        .replacen("\"servers\": {", "\"servers\": {\"new\": { \"command\": \"n\" },", 1)
        .replace(
            r#"{ "type": "http", "url": "https://crm.example/mcp", "headers": { "X-Key": "${input:key}" } }"#,
            r#"{"type":"http","url":"https://crm.example/mcp","headers":{"X-Key":"${input:other}"}}"#,
        );
    assert_eq!(restored, expected);
    // It differs from the file, so it stays.
    assert_eq!(fs::read_to_string(backup(&file)).unwrap(), text);
}

#[tokio::test]
async fn what_cannot_be_wrapped_is_left_and_the_reason_given() {
    let text = r#"{"mcpServers":{"a":{"url":"https://a.example","oauth":{}},"b":{"type":"sse","url":"x"},"c":{"command":"c"},"l":{"command":"larder","args":["serve","--stdio"]}}}"#;
    let (home, file) = file("claude-code", text);
    for (arguments, named) in [
        (&["claude-code", "a"][..], "logs in"),
        (&["claude-code", "c", "l"], "it is Larder"),
        (&["claude-code", "d"], "no server \"d\""),
        (&["claude-code", "--config", "none.toml"], "none.toml"),
        (&["cursor"], "does not exist"),
    ] {
        let error = refused(home.path(), arguments).await;
        assert!(error.contains(named), "{error}");
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }
    let printed = wrap(home.path(), &["claude-code", "c", "--print"]).await;
    let printed: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(printed["mcpServers"]["c"]["args"], json!(["serve", "--stdio", "--", "c"]));
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
    let said = wrap(home.path(), &["claude-code"]).await;
    assert!(said.contains("Streamable HTTP") && said.contains("c through Larder"), "{said}");
    for bad in [
        "[]",
        "{\"mcpServers\": 1}",
        "{\"mcpServers\": {'a': {}}}",
        "{",
        "{\"mcpServers\": {\"a\": 1}}",
    ] {
        fs::write(&file, bad).unwrap();
        let error = refused(home.path(), &["claude-code"]).await;
        assert!(error.contains("unchanged"), "{error}");
        assert_eq!(fs::read_to_string(&file).unwrap(), bad);
    }
}

#[cfg(unix)]
#[tokio::test]
async fn the_files_keep_their_permissions() {
    use std::os::unix::fs::PermissionsExt;
    let (home, file) = file("claude-code", FILES[0].2);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    wrap(home.path(), &["claude-code"]).await;
    for file in [&backup(&file), &file] {
        assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[tokio::test]
async fn a_wrapped_server_works_with_its_environment() {
    let entry = json!({ "command": "node", "args": [ODD], "env": { "TOKEN": "secret" } });
    let text = json!({ "mcpServers": { "odd": entry } }).to_string();
    let (home, file) = file("claude-code", &text);
    wrap(home.path(), &["claude-code"]).await;
    let entry = json_of(&file)["mcpServers"]["odd"].take();
    let arguments = entry["args"].as_array().unwrap().iter().map(|a| a.as_str().unwrap());
    let mut server = Command::new(entry["command"].as_str().unwrap())
        .args(arguments)
        .env("TOKEN", "secret")
        .env("OTHER", "of the host")
        .kill_on_drop(true)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let params = json!({ "name": "env", "arguments": {} });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let mut stdin = server.stdin.take().unwrap();
    stdin.write_all(format!("{call}\n").as_bytes()).await.unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let line = patiently("an answer", lines.next_line()).await.unwrap().unwrap();
    let answer: Value = serde_json::from_str(&line).unwrap();
    let env = answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
    let env: Value = serde_json::from_str(env).unwrap();
    assert_eq!((&env["TOKEN"], &env["OTHER"]), (&json!("secret"), &json!("of the host")));
}
