//! `larder wrap`: the servers of a host's configuration go through Larder, and back.

use std::{fs, path::Path, process::Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
};

use crate::support::{
    Legacy, patiently,
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
        for forms in [&["--each"][..], &[]] {
            let (home, file) = file(client, text);
            let said = wrap(home.path(), &[&[client], forms].concat()).await;
            assert!(said.contains("fs") && said.contains(BACKUP), "{said}");
            assert_eq!(fs::read_to_string(backup(&file)).unwrap(), text);

            let wrapped = fs::read_to_string(&file).unwrap();
            for part in ["// The team's servers.", "/* remote */", "${input:key}", "1e2", "dark"] {
                assert_eq!(
                    text.contains(part),
                    wrapped.contains(part),
                    "{client} {part}: {wrapped}"
                );
            }
            assert_eq!(text.contains("\r\n"), wrapped.contains("\r\n"));
            if text.contains("\r\n") {
                let newlines = wrapped.matches('\n').count();
                assert_eq!(newlines, wrapped.matches("\r\n").count(), "{wrapped}");
            }
            assert!(wrapped.contains("\"serve\""), "{wrapped}");
            assert_eq!(wrapped.contains("\"larder\""), forms.is_empty(), "{wrapped}");

            // Another time nothing changes.
            let said = wrap(home.path(), &[&[client], forms].concat()).await;
            assert!(said.contains("unchanged"), "{said}");
            assert_eq!(fs::read_to_string(&file).unwrap(), wrapped);
            assert_eq!(fs::read_to_string(backup(&file)).unwrap(), text);

            let said = wrap(home.path(), &[client, "--undo"]).await;
            assert!(said.contains("fs"), "{said}");
            assert_eq!(fs::read_to_string(&file).unwrap(), text, "{client}");
            assert!(!backup(&file).exists() && !config(&file).exists());
            assert!(wrap(home.path(), &[client, "--undo"]).await.contains("unchanged"));
            assert_eq!(text.contains("servers"), section == "servers");
        }
    }
}

#[tokio::test]
async fn one_entry_has_the_servers_in_a_file_and_their_values_in_its_environment() {
    let (client, _, text) = FILES[0];
    let (home, file) = file(client, text);
    let said = wrap(home.path(), &[client]).await;
    assert!(said.contains("fs, crm through Larder now"), "{said}");
    assert!(said.contains("fs: timeout is a setting of the host, and is left out."), "{said}");

    let written = json_of(&file);
    let entry = json!({
        "type": "stdio",
        "command": env!("CARGO_BIN_EXE_larder"),
        "args": ["serve", "--stdio", "--config", config(&file)],
        "env": { "SERVER_FS_TOKEN": "${TOKEN}", "SERVER_CRM_AUTHORIZATION": "Bearer ${CRM}" },
    });
    assert_eq!(written["mcpServers"], json!({ "larder": entry }));
    assert_eq!(written["other"], json!(1e2));

    let servers: toml::Table = fs::read_to_string(config(&file)).unwrap().parse().unwrap();
    let servers = servers["upstreams"].as_array().unwrap();
    assert_eq!(servers[0]["command"], toml::toml!(a = ["npx", "-y", "fs", "/srv"])["a"]);
    assert_eq!(servers[0]["env"]["TOKEN"].as_str(), Some("${SERVER_FS_TOKEN}"));
    assert_eq!(servers[1]["url"].as_str(), Some("https://crm.example/mcp"));
}

#[tokio::test]
async fn a_server_that_comes_later_joins_the_entry() {
    let text = r#"{"mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}}, "x": 1}"#;
    let (home, file) = file("cursor", text);
    wrap(home.path(), &["cursor", "a"]).await;
    assert_eq!(names_in(&file), ["larder", "b"]);

    let changed =
        fs::read_to_string(&file).unwrap().replace("\"b\":", "\"c\": {\"command\": \"c\"}, \"b\":");
    fs::write(&file, changed.replace("\"x\": 1", "\"x\": 2")).unwrap();
    wrap(home.path(), &["cursor", "c"]).await;
    assert_eq!(names_in(&file), ["larder", "b"]);
    let servers = fs::read_to_string(config(&file)).unwrap();
    assert!(servers.contains("\"a\"") && servers.contains("\"c\""), "{servers}");

    // Servers cannot be in both forms.
    let error = refused(home.path(), &["cursor", "--each"]).await;
    assert!(error.contains("one entry: --undo"), "{error}");
    let error = refused(home.path(), &["cursor", "--undo", "a"]).await;
    assert!(error.contains("undo all"), "{error}");

    wrap(home.path(), &["cursor", "--undo"]).await;
    let expected = r#"{"mcpServers": {"a": {"command": "a"}, "c": {"command": "c"}, "b": {"command": "b"}}, "x": 2}"#;
    assert_eq!(fs::read_to_string(&file).unwrap(), expected);
    assert!(!config(&file).exists());
}

#[tokio::test]
async fn servers_with_entries_of_their_own_share_a_store() {
    let text = r#"{"servers": {"a": {"command": "a", "args": ["${workspaceFolder}"]}, "b": {"command": "b"}}}"#;
    let (home, file) = file("vscode", text);
    let said = wrap(home.path(), &["vscode"]).await;
    assert!(said.contains("a keeps an entry of its own"), "{said}");

    let written = json_of(&file);
    let store_of = |name: &str| {
        let arguments = written["servers"][name]["args"].as_array().unwrap();
        let at = arguments.iter().position(|part| part == "--store").unwrap();
        arguments[at + 1].as_str().unwrap().to_owned()
    };
    assert_eq!(store_of("a"), store_of("larder"));
    assert!(store_of("a").ends_with("/larder/resources"), "{written}");
}

#[tokio::test]
async fn several_servers_are_behind_one_process_each_with_its_environment() {
    let server =
        |token: &str| json!({ "command": "node", "args": [ODD], "env": { "TOKEN": token } });
    let text = json!({ "mcpServers": { "a": server("one"), "b": server("two") } }).to_string();
    let (home, file) = file("claude-code", &text);
    wrap(home.path(), &["claude-code"]).await;
    let mut client = Host::start(&json_of(&file)["mcpServers"]["larder"], &[]).await;

    let listed = client.send("tools/list", json!({})).await;
    let names: Vec<_> = listed["tools"].as_array().unwrap().iter().map(|t| &t["name"]).collect();
    assert_eq!(names.iter().filter(|name| **name == "read_resource").count(), 1, "{names:?}");
    for (name, token) in [("a__env", "one"), ("b__env", "two")] {
        let answer = client.send("tools/call", json!({ "name": name, "arguments": {} })).await;
        let env: Value =
            serde_json::from_str(answer["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(env["TOKEN"], token);
        assert!(!env.to_string().contains("SERVER_"), "{env}");
    }
}

#[tokio::test]
async fn ten_servers_behind_one_entry_take_few_bytes_more_than_alone() {
    let server = json!({ "command": "node", "args": [ODD, "--tools=many", "--topic=files"] });
    let servers: serde_json::Map<_, _> =
        (0..10).map(|number| (format!("server-{number}"), server.clone())).collect();
    let text = json!({ "mcpServers": servers }).to_string();
    let (home, file) = file("claude-code", &text);
    let listed = async |entry: &Value, env: &[(&str, &str)]| {
        let mut client = Host::start(entry, env).await;
        client.send("tools/list", json!({})).await["tools"].to_string().len()
    };
    let direct = 10 * listed(&server, &[]).await;

    wrap(home.path(), &["claude-code"]).await;
    let entry = json_of(&file)["mcpServers"]["larder"].take();
    let behind = listed(&entry, &[]).await;
    // Names have a prefix, and tools an argument for parts of results.
    let tools = 10 * 60;
    assert!(behind <= direct + 3_000 + tools * 45, "{behind} where direct is {direct}");

    let found = listed(&entry, &[("LARDER_TOOLS__LISTING", "search")]).await;
    assert!(found <= 1_000, "{found}");
}

#[tokio::test]
async fn an_entry_keeps_its_name_environment_and_unknown_members() {
    let (client, _, text) = FILES[0];
    let (home, file) = file(client, text);
    wrap(home.path(), &[client, "--each", "--store", "file:///tmp/x"]).await;
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
    wrap(home.path(), &[client, "--each", "fs"]).await;
    wrap(home.path(), &[client, "--each"]).await;
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
    let printed = wrap(home.path(), &["claude-code", "c", "--each", "--print"]).await;
    let printed: Value = serde_json::from_str(&printed).unwrap();
    let arguments = printed["mcpServers"]["c"]["args"].as_array().unwrap();
    assert_eq!(arguments[..2], ["serve", "--stdio"]);
    assert_eq!(arguments[arguments.len() - 2..], ["--", "c"]);
    let printed = wrap(home.path(), &["claude-code", "c", "--print"]).await;
    assert!(printed.contains("\"larder\"") && printed.contains("[[upstreams]]"), "{printed}");
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
    for file in [&backup(&file), &config(&file), &file] {
        assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[tokio::test]
async fn a_wrapped_server_works_with_its_environment() {
    let entry = json!({ "command": "node", "args": [ODD], "env": { "TOKEN": "secret" } });
    let text = json!({ "mcpServers": { "odd": entry } }).to_string();
    for forms in [&["claude-code", "--each"][..], &["claude-code"]] {
        let (home, file) = file("claude-code", &text);
        wrap(home.path(), forms).await;

        let written = json_of(&file);
        let entry = written["mcpServers"].as_object().unwrap().values().next().unwrap();
        let mut client = Host::start(entry, &[("OTHER", "of the host")]).await;
        let answer = client.send("tools/call", json!({ "name": "env", "arguments": {} })).await;
        let env = answer["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
        let env: Value = serde_json::from_str(env).unwrap();
        assert_eq!((&env["TOKEN"], &env["OTHER"]), (&json!("secret"), &json!("of the host")));
    }
}

/// A host that has started the server of an entry.
struct Host {
    _server: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Host {
    async fn start(entry: &Value, env: &[(&str, &str)]) -> Self {
        let arguments = entry["args"].as_array().unwrap().iter().map(|a| a.as_str().unwrap());
        let of_entry = entry["env"].as_object().into_iter().flatten();
        let of_entry = of_entry.map(|(name, value)| (name.as_str(), value.as_str().unwrap()));
        let mut server = Command::new(entry["command"].as_str().unwrap())
            .args(arguments)
            .envs(of_entry)
            .envs(env.iter().copied())
            .kill_on_drop(true)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();

        let stdin = server.stdin.take().unwrap();
        let lines = BufReader::new(server.stdout.take().unwrap()).lines();
        let mut host = Self { _server: server, stdin, lines };
        host.write(&Legacy::initialize("2025-06-18")).await;
        host.answer(&json!(0)).await;
        host.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        host
    }

    /// The result of a request.
    async fn send(&mut self, method: &str, params: Value) -> Value {
        let request = json!({ "jsonrpc": "2.0", "id": method, "method": method, "params": params });
        self.write(&request).await;
        self.answer(&json!(method)).await
    }

    async fn write(&mut self, message: &Value) {
        self.stdin.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn answer(&mut self, id: &Value) -> Value {
        loop {
            let line = patiently("an answer", self.lines.next_line()).await.unwrap().unwrap();
            let mut answer: Value = serde_json::from_str(&line).unwrap();
            if answer["id"] == *id {
                return answer["result"].take();
            }
        }
    }
}

/// The names of the servers in a file.
fn names_in(file: &Path) -> Vec<String> {
    json_of(file)["mcpServers"].as_object().unwrap().keys().cloned().collect()
}

fn config(file: &Path) -> std::path::PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".larder.toml");
    name.into()
}
