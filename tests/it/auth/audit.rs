//! One line for each decision, and never a token.

use std::{
    ffi::OsStr,
    fmt::Write as _,
    process::Stdio,
    sync::{Arc, Mutex},
};

use larder::clock::{Clock, SystemClock};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

use super::{RESOURCE, issuer::Issuer, signer::Signer};
use crate::support::{Answer, http, patiently};

/// The binary, because what it logs is the whole process's matter.
pub(super) struct Logging {
    url: String,
    lines: Arc<Mutex<String>>,
    _child: Child,
}

impl Logging {
    pub(super) async fn start(issuer: &str, environment: &[(&str, &OsStr)]) -> Self {
        let file = tempfile::NamedTempFile::new().unwrap();
        let toml = format!(
            "[server]\nlisten = \"127.0.0.1:0\"\npublic_url = \"{RESOURCE}\"\n[limits]\nrequests_per_window = 3\n[auth]\nmode = \"oauth\"\n[auth.scopes]\ncreate_resource = [\"write\"]\n[[auth.issuers]]\nissuer = \"{issuer}\"\n"
        );
        std::fs::write(file.path(), toml).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
        command.args(["serve", "--config"]).arg(file.path()).env_remove("RUST_LOG");
        command.envs(environment.iter().copied());
        command.kill_on_drop(true).stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines();
        let lines = Arc::new(Mutex::new(String::new()));
        let url = loop {
            let line = patiently("a line", stderr.next_line()).await.unwrap().unwrap();
            if let Some(url) = line.strip_prefix("larder listening on ") {
                break url.to_owned();
            }
        };
        let seen = Arc::clone(&lines);
        tokio::spawn(async move {
            while let Ok(Some(line)) = stderr.next_line().await {
                writeln!(seen.lock().unwrap(), "{line}").unwrap();
            }
        });
        Self { url, lines, _child: child }
    }

    pub(super) async fn send(&self, token: &str, method: &str, params: &Value) -> u16 {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let request = http().post(&self.url).header("content-type", "application/json");
        let request = request.header("authorization", format!("Bearer {token}"));
        Answer::of(request.body(body.to_string())).await.status
    }

    /// All that was logged, once so many decisions are in it.
    async fn decisions(&self, number: usize) -> (String, Vec<String>) {
        let logged = async {
            loop {
                let text = self.lines.lock().unwrap().clone();
                let audit = text.lines().filter(|line| line.contains(" audit: "));
                let audit: Vec<_> = audit.map(str::to_owned).collect();
                if audit.len() >= number {
                    return (text, audit);
                }
                tokio::task::yield_now().await;
            }
        };
        patiently("the log", logged).await
    }
}

fn token(issuer: &Issuer, aud: &str) -> String {
    let now = SystemClock.now().as_millis() / 1000;
    let claims = json!({
        "iss": issuer.url, "sub": "alice", "aud": aud, "exp": now + 600, "iat": now, "jti": aud,
    });
    Signer::Rsa.token(&claims)
}

#[tokio::test]
async fn each_decision_is_one_line_and_no_token_is_ever_written() {
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
    let query = http().post(format!("{}?access_token={good}", larder.url));
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
    for token in [&good, &bad] {
        // The header is the same for all and says nothing.
        for part in token.split('.').skip(1) {
            assert!(!text.contains(part), "{text}");
        }
    }
    assert!(!audit.iter().any(|line| line.contains("a-secret-argument")));
}

#[tokio::test]
async fn by_default_refusals_are_shown() {
    let issuer = Issuer::start().await;
    let larder = Logging::start(&issuer.url, &[]).await;
    let good = token(&issuer, RESOURCE);
    assert_eq!(larder.send(&good, "tools/list", &json!({})).await, 200);
    assert_eq!(larder.send("x", "tools/list", &json!({})).await, 401);
    let (_, audit) = larder.decisions(1).await;
    assert!(audit.len() == 1 && audit[0].contains("refused"), "{audit:?}");
}
