//! The audit log: one line for each decision, and never a token.

use std::ffi::OsStr;

use larder::clock::{Clock, SystemClock};
use serde_json::{Value, json};

use super::{RESOURCE, issuer::Issuer, signer::Signer};
use crate::support::{
    Answer, TextFile, http, poll, post,
    process::{Process, larder},
    request,
};

const WORKFLOW: &str = r#"
[[workflows]]
name = "both"
description = "Lists, then writes"
steps = [
    { name = "list", tool = "list_resources" },
    { name = "write", tool = "create_resource", arguments = { text = { constant = "x" } } },
]
"#;

/// The binary, since the log belongs to the whole process.
pub(super) struct Logging {
    process: Process,
}

impl Logging {
    pub(super) async fn start(issuer: &str, environment: &[(&str, &OsStr)]) -> Self {
        let file = TextFile::new(&format!(
            "[server]\npublic_url = \"{RESOURCE}\"\n[limits]\nrequests_per_window = 3\n[auth]\nmode = \"oauth\"\n[auth.scopes]\ncreate_resource = [\"write\"]\n[[auth.issuers]]\nissuer = \"{issuer}\"\n{WORKFLOW}"
        ));
        let mut command = larder(&["serve", "--config", file.path()]);
        command.envs(environment.iter().copied());
        Self { process: Process::start(command).await }
    }

    /// The status of a request with a token.
    pub(super) async fn send(&self, token: &str, method: &str, params: &Value) -> u16 {
        let request = post(&self.process.url, &request(method, params.clone()));
        Answer::of(request.bearer_auth(token)).await.status
    }

    /// The whole log and the lines of the audit log, once there are so many.
    async fn decisions(&self, number: usize) -> (String, Vec<String>) {
        self.lines(" audit: ", number).await
    }

    /// The whole log and its lines of a target, once there are so many.
    async fn lines(&self, target: &str, number: usize) -> (String, Vec<String>) {
        let logged = async || {
            let log = self.process.stderr();
            let lines = log.lines().filter(|line| line.contains(target));
            let lines: Vec<_> = lines.map(str::to_owned).collect();
            (lines.len() >= number).then_some((log, lines))
        };
        poll("the log", logged).await
    }
}

fn token(issuer: &Issuer, aud: &str) -> String {
    let now = SystemClock.now().as_millis() / 1000;
    let claims = json!({
        "iss": issuer.url, "sub": "alice", "aud": aud, "exp": now + 600, "iat": now, "jti": aud,
        "client_id": "app",
    });
    Signer::Rsa.token(&claims)
}

#[tokio::test]
async fn each_decision_is_one_line_and_no_token_is_logged() {
    let issuer = Issuer::start().await;
    let larder = Logging::start(&issuer.url, &[("RUST_LOG", "trace".as_ref())]).await;
    let (good, bad) = (token(&issuer, RESOURCE), token(&issuer, "elsewhere"));
    let read = json!({ "name": "list_resources", "arguments": { "prefix": "a-secret-argument" } });
    assert_eq!(larder.send(&good, "tools/call", &read).await, 200);
    let create = json!({ "name": "create_resource", "arguments": { "text": "x" } });
    assert_eq!(larder.send(&good, "tools/call", &create).await, 403);
    assert_eq!(larder.send(&good, "tools/list", &json!({})).await, 200);
    assert_eq!(larder.send(&good, "tools/list", &json!({})).await, 429);
    assert_eq!(larder.send(&bad, "tools/list", &json!({})).await, 401);
    let query = http().post(format!("{}?access_token={good}", larder.process.url));
    assert_eq!(Answer::of(query).await.status, 401);

    let (text, audit) = larder.decisions(6).await;
    assert_eq!(audit.len(), 6, "{audit:#?}");
    for (line, parts) in [
        ["alice", "tools/call list_resources", "allowed"],
        ["alice", "tools/call create_resource", "write"],
        ["alice", "tools/list", "allowed"],
        ["alice", "POST /mcp", "limits.requests_per_window"],
        ["unknown", "POST /mcp", "not for this resource"],
        ["unknown", "POST /mcp", "no credentials"],
    ]
    .iter()
    .enumerate()
    {
        assert!(parts.iter().all(|part| audit[line].contains(part)), "{parts:?}: {audit:#?}");
    }
    assert!(audit.iter().all(|line| line.contains("peer=127.0.0.1")), "{audit:#?}");
    let token = format!("client=\"app\" jti=\"{RESOURCE}\"");
    assert!(audit[..4].iter().all(|line| line.contains(&token)), "{audit:#?}");
    for token in [&good, &bad] {
        // The first part is the header, which is the same for all tokens.
        for part in token.split('.').skip(1) {
            assert!(!text.contains(part), "{text}");
        }
    }
    assert!(!audit.iter().any(|line| line.contains("a-secret-argument")));
}

#[tokio::test]
async fn an_unknown_tool_is_refused_and_not_allowed() {
    let issuer = Issuer::start().await;
    let larder = Logging::start(&issuer.url, &[("RUST_LOG", "audit=info".as_ref())]).await;
    let good = token(&issuer, RESOURCE);
    let unknown = json!({ "name": "no_such_tool", "arguments": { "a": "a-secret-argument" } });
    larder.send(&good, "tools/call", &unknown).await;
    larder.send(&good, "tools/list", &json!({})).await;

    let (_, audit) = larder.decisions(2).await;
    let parts = ["alice", "tools/call no_such_tool", "refused", "Unknown tool"];
    assert!(parts.iter().all(|part| audit[0].contains(part)), "{audit:#?}");
    assert!(audit.len() == 2 && audit[1].contains("tools/list"), "{audit:#?}");
}

#[tokio::test]
async fn the_access_log_says_who_called_what_how_it_ended_and_how_much_that_was() {
    let issuer = Issuer::start().await;
    let larder = Logging::start(&issuer.url, &[("LARDER_LOG__ACCESS", "1".as_ref())]).await;
    let good = token(&issuer, RESOURCE);
    let read = json!({ "name": "read_resource", "arguments": { "uri": "x:none" } });
    assert_eq!(larder.send(&good, "tools/call", &read).await, 200);
    assert_eq!(larder.send(&good, "tools/list", &json!({})).await, 200);

    let uri = "postgres://u:secretpw@h/x?sig=secretsig";
    let create = json!({ "name": "create_resource", "arguments": { "uri": uri, "text": "x" } });
    assert_eq!(larder.send(&good, "tools/call", &create).await, 403);

    let (log, lines) = larder.lines(" access: ", 3).await;
    for (line, parts) in [
        vec![
            "alice",
            "client=\"app\"",
            "method=\"tools/call\"",
            "tool=\"read_resource\"",
            "uri=\"x:none\"",
            "outcome=\"tool_error\"",
            "bytes_in=",
            "bytes_out=",
            "ms=",
            "request=",
        ],
        vec!["alice", "method=\"tools/list\"", "outcome=\"ok\"", "bytes_in=", "ms="],
        vec!["alice", "tool=\"create_resource\"", "@h/x?", "outcome=\"refused\"", "bytes_in="],
    ]
    .iter()
    .enumerate()
    {
        assert!(parts.iter().all(|part| lines[line].contains(part)), "{parts:?}: {lines:#?}");
    }
    assert!(good.split('.').skip(1).all(|part| !log.contains(part)));
    assert!(!log.contains("secretpw") && !log.contains("secretsig"), "{log}");
}

#[tokio::test]
async fn by_default_only_refusals_are_logged() {
    let issuer = Issuer::start().await;
    let larder = Logging::start(&issuer.url, &[]).await;
    let good = token(&issuer, RESOURCE);
    assert_eq!(larder.send(&good, "tools/list", &json!({})).await, 200);
    assert_eq!(larder.send("x", "tools/list", &json!({})).await, 401);
    let (_, audit) = larder.decisions(1).await;
    assert!(audit.len() == 1 && audit[0].contains("refused"), "{audit:?}");
}

#[tokio::test]
async fn each_step_of_a_workflow_is_a_decision() {
    let issuer = Issuer::start().await;
    let larder = Logging::start(&issuer.url, &[("RUST_LOG", "audit=info".as_ref())]).await;
    let good = token(&issuer, RESOURCE);
    let both = json!({ "name": "both", "arguments": {} });
    assert_eq!(larder.send(&good, "prompts/get", &both).await, 200);
    let (_, audit) = larder.decisions(3).await;
    for (line, parts) in [
        ["alice", "prompts/get both", "allowed"],
        ["alice", "tools/call list_resources", "allowed"],
        ["alice", "tools/call create_resource", "write"],
    ]
    .iter()
    .enumerate()
    {
        assert!(parts.iter().all(|part| audit[line].contains(part)), "{parts:?}: {audit:#?}");
    }
}

#[tokio::test]
async fn a_query_is_a_decision_and_so_is_storing_its_result_but_its_text_is_not_logged() {
    let issuer = Issuer::start().await;
    let larder = Logging::start(&issuer.url, &[("RUST_LOG", "audit=info".as_ref())]).await;
    let good = token(&issuer, RESOURCE);
    let mut query = json!({ "from": "x:a-secret-uri", "sql": "SELECT 'a-secret-text' FROM t" });
    let call = json!({ "name": "query_resource", "arguments": query });
    assert_eq!(larder.send(&good, "tools/call", &call).await, 200);
    // The token lacks the scope of create_resource.
    query["into"] = json!({ "name": "a-secret-name" });
    let call = json!({ "name": "query_resource", "arguments": query });
    assert_eq!(larder.send(&good, "tools/call", &call).await, 200);
    let (text, audit) = larder.decisions(3).await;
    for (line, parts) in [
        ["alice", "tools/call query_resource", "allowed"],
        ["alice", "tools/call query_resource", "allowed"],
        ["alice", "tools/call create_resource", "write"],
    ]
    .iter()
    .enumerate()
    {
        assert!(parts.iter().all(|part| audit[line].contains(part)), "{parts:?}: {audit:#?}");
    }
    assert!(!text.contains("a-secret"), "{text}");
}
