//! Roots: a server that asks for them gets them, also between calls, and knows them at the next
//! call.

#![allow(deprecated, reason = "clients have roots all the same")]

use std::fs;

use rmcp::{
    ClientHandler, ClientLifecycleMode, ClientServiceExt, ErrorData, RoleClient,
    model::{
        CallToolRequestParams, ClientInfo, Implementation, ListRootsResult, ProtocolVersion, Root,
    },
    service::{RequestContext, RunningService},
    transport::{
        StreamableHttpClientTransport, TokioChildProcess,
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use serde_json::{Value, json};

use super::{command_line, host::Host, in_front_of, odd, package, questions::response, text};
use crate::support::{Events, Legacy, Modern, eventually, http, patiently, process::larder};

/// A folder with a file in it, by its URI and the path of the file.
fn root(folder: &tempfile::TempDir, name: &str) -> (String, String) {
    let path = folder.path().canonicalize().unwrap().join(name);
    fs::create_dir_all(&path).unwrap();
    let file = path.join("file.txt");
    fs::write(&file, name).unwrap();
    (format!("file://{}", path.display()), file.display().to_string())
}

fn roots(list_changed: bool) -> Value {
    json!({ "roots": { "listChanged": list_changed } })
}

#[tokio::test]
async fn the_first_call_of_the_filesystem_server_knows_the_roots() {
    let folder = tempfile::tempdir().unwrap();
    let (_, elsewhere) = root(&folder, "elsewhere");
    let (uri, file) = root(&folder, "project");
    let settings = package("filesystem", &[elsewhere.rsplit_once('/').unwrap().0]);
    for _ in 0..6 {
        let mut host = Host::start(&settings, roots(true), &[]).await;
        host.roots = vec![uri.clone()];
        assert_eq!(host.call("read_text_file", json!({ "path": file })).await, "project");
        assert_eq!(host.asked, ["roots/list"]);
        let refused = host.call("read_text_file", json!({ "path": elsewhere })).await;
        assert!(refused.contains("Access denied"), "{refused}");
        host.end().await;
    }
}

#[tokio::test]
async fn roots_that_change_are_known_at_the_next_call() {
    let folder = tempfile::tempdir().unwrap();
    let [(one, first), (other, second)] = ["one", "other"].map(|name| root(&folder, name));
    let mut host = Host::start(&package("filesystem", &[]), roots(true), &[]).await;
    host.roots = vec![one.clone()];
    assert_eq!(host.call("read_text_file", json!({ "path": first })).await, "one");

    for (uri, file, name, gone) in
        [(&other, &second, "other", &first), (&one, &first, "one", &second)]
    {
        host.roots = vec![uri.clone()];
        host.notify("notifications/roots/list_changed").await;
        assert_eq!(host.call("read_text_file", json!({ "path": file })).await, name);
        let refused = host.call("read_text_file", json!({ "path": gone })).await;
        assert!(refused.contains("Access denied"), "{refused}");
    }
    host.end().await;
}

#[tokio::test]
async fn a_host_is_asked_without_a_call() {
    let mut host =
        Host::start(&odd("odd", &["--roots=1", "--tools=living"]), roots(true), &[]).await;
    host.roots = vec!["file:///a".into()];
    host.tools().await;
    host.is_asked(1).await;
    assert_eq!(host.call("roots", json!({})).await, r#"["file:///a"]"#);
    host.roots = vec!["file:///b".into(), "file:///c".into()];
    host.notify("notifications/roots/list_changed").await;
    host.is_asked(2).await;
    assert_eq!(host.call("roots", json!({})).await, r#"["file:///b","file:///c"]"#);
    host.roots = Vec::new();
    host.notify("notifications/roots/list_changed").await;
    assert_eq!(host.call("roots", json!({})).await, "[]");
    host.end().await;
}

#[tokio::test]
async fn an_upstream_is_told_what_the_host_declares() {
    let folder = tempfile::tempdir().unwrap();
    for (number, declared) in
        [json!({}), json!({ "roots": {} }), roots(true), roots(false)].into_iter().enumerate()
    {
        let record = folder.path().join(number.to_string());
        let settings = odd("odd", &[&format!("--record={}", record.display())]);
        let mut host = Host::start(&settings, declared.clone(), &[]).await;
        host.call("echo", json!({})).await;
        let lines = super::lines(&record);
        let messages = lines.iter().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let initialize = messages.into_iter().find(|message| message["method"] == "initialize");
        assert_eq!(initialize.unwrap()["params"]["capabilities"], declared);
        host.end().await;
    }
}

/// Answers the questions on a stream.
fn answer_on(mut events: Events, client: &Legacy) -> tokio::task::JoinHandle<()> {
    let client = client.clone();
    tokio::spawn(async move {
        while let Some(event) = events.next().await {
            let message: Value = serde_json::from_str(&event.data).unwrap_or_default();
            if let Some(method) = message["method"].as_str().filter(|_| message.get("id").is_some())
            {
                client.answer(&message, "result", response(method)).await;
            }
        }
    })
}

#[tokio::test]
async fn a_client_over_http_is_asked_on_the_stream_of_its_session() {
    let server = in_front_of(vec![odd("odd", &["--roots=1", "--tools=living"])]).await;
    let client = Legacy::able(&server, roots(true)).await;
    let answering = answer_on(client.listen().await, &client);
    for _ in 0..2 {
        let known = client.call("roots", json!({})).await.result();
        assert_eq!(text(&known), r#"["file:///srv/project"]"#);
        client.notify("notifications/roots/list_changed", json!({})).await;
    }
    answering.abort();
}

#[tokio::test]
async fn a_client_that_does_not_answer_is_asked_by_its_call() {
    let server = in_front_of(vec![odd("odd", &["--roots=1", "--tools=living"])]).await;
    let client = Legacy::able(&server, roots(true)).await;
    // The client reads the stream of its session, and answers nothing there.
    let _listening = client.listen().await;
    let mut events = client.stream_call(1, "roots", json!({})).await;
    let question = super::questions::next(&mut events).await;
    assert_eq!(question["method"], "roots/list");
    client.answer(&question, "result", response("roots/list")).await;
    let result = super::questions::next(&mut events).await;
    assert_eq!(text(&result["result"]), r#"["file:///srv/project"]"#);
}

#[tokio::test]
async fn a_refusal_of_the_client_reaches_the_upstream() {
    let server = in_front_of(vec![odd("odd", &["--roots=1", "--tools=living"])]).await;
    let client = Legacy::able(&server, roots(true)).await;
    let mut listening = client.listen().await;
    client.send("tools/list", json!({})).await.result();
    let question = super::questions::next(&mut listening).await;
    client.answer(&question, "error", json!({ "code": -32603, "message": "not now" })).await;
    let known = client.call("roots", json!({})).await.result();
    assert_eq!(text(&known), "\"refused\"");
}

/// A client without a session, which names its roots when it is asked.
async fn call_by_rounds(client: &Modern, tool: &str) -> (usize, String) {
    let mut params = json!({ "name": tool, "arguments": {} });
    let mut rounds = 0;
    loop {
        let result = client.send("tools/call", params).await.result();
        if result["resultType"] != "input_required" {
            return (rounds, text(&result).to_owned());
        }
        rounds += 1;
        params = super::questions::next_round(tool, &json!({}), &result);
    }
}

#[tokio::test]
async fn a_client_without_a_session_is_asked_also_long_after_the_start() {
    for patience in [None, Some("--patience=1")] {
        let folder = tempfile::tempdir().unwrap();
        let record = folder.path().join("received");
        let record_flag = format!("--record={}", record.display());
        let mut flags = vec!["--roots=1", "--tools=living", &record_flag];
        flags.extend(patience);
        let server = in_front_of(vec![odd("odd", &flags)]).await;
        let client = Modern::at(&server.url).with(json!({ "roots": {} }));
        client.send("tools/list", json!({})).await.result();
        if patience.is_some() {
            eventually("the end of its patience", async || {
                super::lines(&record).iter().any(|line| line == "\"gave up\"")
            })
            .await;
        }

        if patience.is_none() {
            let known = call_by_rounds(&client, "roots").await;
            assert_eq!(known, (1, r#"["file:///srv/project"]"#.to_owned()));
            assert_eq!(call_by_rounds(&client, "roots").await.0, 0);
        } else {
            // Each time it asks, it gives up after a millisecond: the call is answered all the
            // same.
            let (rounds, known) = call_by_rounds(&client, "roots").await;
            assert!(rounds > 0 || known == "null", "{rounds} rounds: {known}");
            assert!(known == "null" || known.contains("project"), "{known}");
            let asked = super::lines(&record);
            assert!(asked.iter().any(|line| line.contains("roots/list_changed")), "{asked:?}");
        }
    }
}

/// A client of the official Rust SDK that names a root.
struct Official(String);

impl ClientHandler for Official {
    fn get_info(&self) -> ClientInfo {
        let capabilities = serde_json::from_value(roots(true)).unwrap();
        ClientInfo::new(capabilities, Implementation::new("official", "1"))
    }

    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        Ok(ListRootsResult::new(vec![Root::new(self.0.clone())]))
    }
}

/// Reads a file by the filesystem server. Returns the result as text.
async fn read(client: &RunningService<RoleClient, Official>, path: &str) -> String {
    let Value::Object(arguments) = json!({ "path": path }) else { panic!("an object") };
    let call = CallToolRequestParams::new("read_text_file").with_arguments(arguments);
    let result = patiently("a result", client.call_tool(call)).await.unwrap();
    serde_json::to_string(&result).unwrap()
}

#[tokio::test]
async fn an_official_client_of_both_eras_gives_its_roots_over_both_transports() {
    let folder = tempfile::tempdir().unwrap();
    let (_, elsewhere) = root(&folder, "elsewhere");
    let (uri, file) = root(&folder, "project");
    let settings = package("filesystem", &[elsewhere.rsplit_once('/').unwrap().0]);
    let server = in_front_of(vec![settings.clone()]).await;
    let modern = vec![ProtocolVersion::V_2026_07_28];
    for lifecycle in [
        ClientLifecycleMode::Initialize,
        ClientLifecycleMode::Discover { preferred_versions: modern },
    ] {
        let config = StreamableHttpClientTransportConfig::with_uri(server.url.as_str());
        let remote = StreamableHttpClientTransport::with_client(http().clone(), config);
        let remote = Official(uri.clone()).serve_with_lifecycle(remote, lifecycle.clone());
        let remote = patiently("a client", remote).await.unwrap();

        let mut command = larder(&["serve", "--stdio", "--"]);
        command.args(command_line(&settings));
        let local = TokioChildProcess::new(command).unwrap();
        let local = Official(uri.clone()).serve_with_lifecycle(local, lifecycle);
        let local = patiently("a client", local).await.unwrap();

        for client in [&remote, &local] {
            assert!(read(client, &file).await.contains("\"project\""));
            assert!(read(client, &elsewhere).await.contains("Access denied"));
        }
    }
}
