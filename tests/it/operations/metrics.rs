//! Metrics, request ids and traces, as the binary gives them away.

use std::{collections::BTreeSet, io::Write, process::Stdio};

use larder::telemetry::{Kind, METRICS};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpListener,
    process::{Child, Command},
};

use crate::{
    examples::program,
    process::{larder, signal},
    support::{Answer, Legacy, RedisServer, http, patiently},
};

/// A server with metrics: where it is, and where they are.
async fn measured(environment: &[(&str, &str)]) -> (Child, String, String) {
    let mut command = larder(&["serve", "--listen", "127.0.0.1:0"]);
    command.envs(environment.iter().copied());
    measuring(command).await
}

/// The same of any server's command line.
async fn measuring(mut command: Command) -> (Child, String, String) {
    command.env("LARDER_METRICS__LISTEN", "127.0.0.1:0").kill_on_drop(true);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut found = Vec::new();
    for start in ["larder listening on ", "larder metrics on "] {
        let line = patiently(start, lines.next_line()).await.unwrap().unwrap();
        found.push(line.strip_prefix(start).unwrap_or_else(|| panic!("{line}")).to_owned());
    }
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    (child, found.remove(0), found.remove(0))
}

async fn send(url: &str, method: &str, params: Value) -> Answer {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let request = http().post(url).header("content-type", "application/json");
    Answer::of(request.body(body.to_string())).await
}

async fn scrape(metrics: &str) -> String {
    let answer = Answer::of(http().get(metrics)).await;
    assert!(answer.header("content-type").unwrap().starts_with("text/plain; version=0.0.4"));
    String::from_utf8(answer.body.to_vec()).unwrap()
}

/// The sum of all numbers of that name whose labels have all of these.
fn value(metrics: &str, name: &str, labels: &[&str]) -> u64 {
    let lines = metrics.lines().filter(|line| {
        let rest = line.strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with([' ', '{']))
            && labels.iter().all(|label| line.contains(label))
    });
    lines.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

#[tokio::test]
async fn what_happens_is_counted() {
    let (_child, url, metrics) = measured(&[]).await;
    let before = scrape(&metrics).await;
    assert_eq!(value(&before, "larder_stored_bytes_total", &[]), 0);
    let call = |name: &str, arguments: Value| json!({ "name": name, "arguments": arguments });
    let text = "x".repeat(1000);
    send(&url, "tools/call", call("create_resource", json!({ "uri": "x:1", "text": text }))).await;
    send(&url, "tools/call", call("read_resource", json!({ "uri": "x:none" }))).await;
    send(&url, "tools/call", call("no_such_tool", json!({}))).await;
    send(&url, "tools/call", call("delete_resource", json!({ "uri": "x:1" }))).await;
    let answer = Answer::of(
        http()
            .post(&url)
            .header("content-type", "application/json")
            .body(Legacy::initialize("2025-11-25").to_string()),
    )
    .await;
    let session = answer.header("mcp-session-id").unwrap();
    let stream = http().get(&url).header("mcp-session-id", session).send().await.unwrap();

    let after = scrape(&metrics).await;
    let calls = "mcp_server_operation_duration_seconds_count";
    let method = "mcp_method_name=\"tools/call\"";
    let of = |tool: &str, error: &str| {
        let (tool, error) =
            (format!("gen_ai_tool_name=\"{tool}\""), format!("error_type=\"{error}\""));
        value(&after, calls, &[method, &tool, &error])
    };
    assert_eq!(of("create_resource", ""), 1, "{after}");
    assert_eq!(of("read_resource", "tool_error"), 1);
    assert!(!after.contains("no_such_tool"), "what clients make up is no label");
    assert_eq!(of("", "error"), 1);
    for (name, expected) in [
        ("larder_stored_bytes_total", 1000),
        ("larder_resources_written_total", 1),
        ("larder_resources_deleted_total", 1),
        ("larder_sessions_started_total", 1),
        ("larder_streams", 1),
        // The text came with the request: the model had it already.
        ("larder_context_kept_out_bytes_total", 0),
    ] {
        assert_eq!(value(&after, name, &[]), expected, "{name}");
    }
    let requests = "http_server_request_duration_seconds_count";
    assert_eq!(value(&after, requests, &["\"POST\"", "\"200\""]), 5);
    drop(stream);
}

async fn call(url: &str, tool: &str, arguments: Value) -> Value {
    let answer = send(url, "tools/call", json!({ "name": tool, "arguments": arguments })).await;
    let result = answer.result();
    assert_ne!(result["isError"], true, "{result}");
    result
}

async fn begin_session(url: &str) -> Answer {
    let request = http().post(url).header("content-type", "application/json");
    Answer::of(request.body(Legacy::initialize("2025-11-25").to_string())).await
}

#[tokio::test]
async fn what_a_tool_puts_by_is_kept_out_of_the_context() {
    let mut command = Command::new(program("search_logs"));
    command.args(["--listen", "127.0.0.1:0", "--store", "memory:"]);
    let (_child, url, metrics) = measuring(command).await;
    let result = call(&url, "search_logs", json!({ "query": "timeout" })).await;
    let metrics = scrape(&metrics).await;
    let stored = value(&metrics, "larder_resource_bytes", &[]);
    assert!(stored > 100_000, "{metrics}");
    let came = json!({ "name": "search_logs", "arguments": { "query": "timeout" } });
    let seen = (came.to_string().len() + result.to_string().len()) as u64;
    // To the byte, but for how the request was spelt.
    let kept_out = value(&metrics, "larder_context_kept_out_bytes_total", &[]);
    assert!(kept_out.abs_diff(stored - seen) < 100, "{kept_out} of {stored}, {seen} seen");
}

#[tokio::test]
async fn what_is_too_large_for_an_answer_is_kept_out_of_the_context() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"[tools.spill]\nlist_resources = \"always\"").unwrap();
    let path = file.path().to_str().unwrap();
    let (_child, url, metrics) = measured(&[("LARDER_CONFIG", path)]).await;
    for n in 0..100 {
        let uri = format!("notes://a-long-name-that-says-what-is-in-it-from-its-first-line-on/{n}");
        call(&url, "create_resource", json!({ "uri": uri, "text": "" })).await;
    }
    assert_eq!(value(&scrape(&metrics).await, "larder_context_kept_out_bytes_total", &[]), 0);
    let result = call(&url, "list_resources", json!({ "limit": 100 })).await;
    let shown = scrape(&metrics).await;
    let stored = value(&shown, "larder_stored_bytes_total", &[]);
    let seen = result.to_string().len() as u64;
    assert!(stored > 2 * seen, "{stored}: {result}");
    let kept_out = value(&shown, "larder_context_kept_out_bytes_total", &[]);
    assert!((stored - seen).abs_diff(kept_out) < 200, "{kept_out} of {stored}, {seen} seen");
}

#[tokio::test]
async fn what_is_there_just_now_is_shown() {
    let (_child, url, metrics) = measured(&[]).await;
    for n in 0..3 {
        call(&url, "create_resource", json!({ "uri": format!("x:{n}"), "text": "12345" })).await;
    }
    call(&url, "delete_resource", json!({ "uri": "x:0" })).await;
    let [kept, ended] = [begin_session(&url).await, begin_session(&url).await];
    let end = http().delete(&url).header("mcp-session-id", ended.header("mcp-session-id").unwrap());
    assert!(end.send().await.unwrap().status().is_success());
    let stream = http().get(&url).header("mcp-session-id", kept.header("mcp-session-id").unwrap());
    let stream = stream.send().await.unwrap();
    let shown = scrape(&metrics).await;
    let own = ["{store=\"memory:"];
    for (name, labels, expected) in [
        ("larder_resources", &own[..], 2),
        ("larder_resource_bytes", &own, 10),
        ("larder_sessions", &own, 1),
        ("larder_streams", &[], 1),
    ] {
        assert_eq!(value(&shown, name, labels), expected, "{name}: {shown}");
    }
    drop(stream);
}

#[tokio::test]
async fn servers_that_share_a_store_tell_the_same_under_the_same_name() {
    let redis = RedisServer::start().await;
    let store = redis.url().replace("redis://", "redis://:hush@");
    redis.command(&["CONFIG", "SET", "requirepass", "hush"]).await;
    let on_redis = [("LARDER_STORE__URL", &store[..]), ("LARDER_REDIS__MIGRATE", "true")];
    let servers = [measured(&on_redis).await, measured(&on_redis).await];
    for (n, (_child, url, _)) in servers.iter().enumerate() {
        call(url, "create_resource", json!({ "uri": format!("x:{n}"), "text": "12345" })).await;
        begin_session(url).await;
    }
    let mut shown = BTreeSet::new();
    for (_child, _, metrics) in &servers {
        let metrics = scrape(metrics).await;
        assert!(!metrics.contains("hush"), "{metrics}");
        let lines = metrics.lines().filter(|line| line.contains("{store="));
        shown.extend(lines.map(str::to_owned));
    }
    let place = redis.url().trim_end_matches('/').to_owned() + "#larder";
    let expected = [("resource_bytes", 10), ("resources", 2), ("sessions", 2)];
    let expected = expected.map(|(name, n)| format!("larder_{name}{{store=\"{place}\"}} {n}"));
    assert_eq!(shown, BTreeSet::from(expected));
}

#[tokio::test]
async fn what_cannot_be_found_out_is_no_number() {
    let mut redis = RedisServer::start().await;
    let store = redis.url();
    let on_redis = [("LARDER_STORE__URL", &store[..]), ("LARDER_REDIS__MIGRATE", "true")];
    let (_child, _, metrics) = measured(&on_redis).await;
    redis.kill();
    let shown = scrape(&metrics).await;
    for name in ["larder_resources", "larder_resource_bytes", "larder_sessions"] {
        let line = shown.lines().find(|line| line.starts_with(&format!("{name}{{"))).unwrap();
        assert!(line.ends_with(" NaN"), "{line}");
    }
}

#[tokio::test]
async fn names_are_those_of_the_table_and_follow_the_conventions() {
    let (_child, url, metrics) = measured(&[]).await;
    send(&url, "ping", json!({})).await;
    let shown = scrape(&metrics).await;
    let shown: BTreeSet<_> = shown
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '))
        .map(|(name, kind)| (name.to_owned(), kind.to_owned()))
        .collect();
    let table = METRICS.map(|(kind, name, _)| {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge | Kind::SharedGauge => "gauge",
            Kind::Histogram => "histogram",
        };
        (name.to_owned(), kind.to_owned())
    });
    assert_eq!(shown, BTreeSet::from(table));
    for (kind, name, says) in METRICS {
        assert_eq!(name.ends_with("_total"), kind == Kind::Counter, "{name}");
        assert!(kind != Kind::Histogram || name.ends_with("_seconds"), "{name}");
        assert!(says.ends_with('.'), "{name}");
    }
}

/// The words in an expression that name a metric of ours.
fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    let ours = |word: &&str| {
        ["larder_", "mcp_server_", "http_server_"].iter().any(|start| word.starts_with(start))
    };
    words.filter(ours).map(str::to_owned).collect()
}

/// What dashboard and alerts ask for, each with something of ours in it or
/// `up`, which is Prometheus's own.
fn expressions() -> Vec<String> {
    let dashboard: Value =
        serde_json::from_str(include_str!("../../../deploy/grafana/larder.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().unwrap());
    let mut expressions: Vec<_> =
        targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect();
    let alerts = include_str!("../../../deploy/prometheus/alerts.yml");
    let rules = alerts.lines().filter_map(|line| line.trim().strip_prefix("expr: "));
    let rules: Vec<_> = rules.map(str::to_owned).collect();
    assert_eq!(alerts.matches("- alert:").count(), rules.len());
    assert!(rules.len() >= 5, "{rules:?}");
    expressions.extend(rules);
    for expression in &expressions {
        assert!(!named(expression).is_empty() || expression.starts_with("up{"), "{expression}");
    }
    expressions
}

#[test]
fn what_servers_share_is_not_added_up() {
    let mut used = BTreeSet::new();
    for expression in expressions() {
        for (kind, name, _) in METRICS {
            if kind == Kind::SharedGauge && named(&expression).contains(name) {
                let once = format!("max by (store) ({name}");
                let uses = expression.matches(name).count();
                assert_eq!(expression.matches(&once).count(), uses, "{expression}");
                used.insert(name);
            }
        }
    }
    let shared = METRICS.iter().filter(|(kind, ..)| *kind == Kind::SharedGauge);
    assert_eq!(used, shared.map(|(_, name, _)| *name).collect());
}

#[test]
fn alerts_and_dashboard_name_only_what_exists() {
    let known: BTreeSet<String> = METRICS
        .iter()
        .flat_map(|(kind, name, _)| match kind {
            Kind::Histogram => {
                ["_bucket", "_sum", "_count"].map(|end| format!("{name}{end}")).to_vec()
            }
            _ => vec![(*name).to_owned()],
        })
        .collect();
    let mut used = BTreeSet::new();
    for expression in expressions() {
        used.extend(named(&expression));
    }
    let unknown: Vec<_> = used.difference(&known).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    assert!(used.len() >= 8, "{used:?}");
}

#[tokio::test]
async fn lines_of_log_bear_the_names_of_request_and_call() {
    let mut command = larder(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("LARDER_LOG__FORMAT", "json").env("LARDER_LOG__LEVEL", "error,audit=warn");
    command.env("LARDER_LIMITS__CONCURRENT_CALLS", "1").env_remove("RUST_LOG");
    command.env("LARDER_LIMITS__REQUESTS_PER_WINDOW", "1");
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let line = patiently("the first line", lines.next_line()).await.unwrap().unwrap();
    let url = line.strip_prefix("larder listening on ").unwrap().to_owned();
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
    let post = |id: &'static str| {
        let request = http().post(&url).header("content-type", "application/json");
        Answer::of(request.header("x-request-id", id).body(ping.clone()))
    };
    assert_eq!(post("first").await.header("x-request-id"), Some("first"));
    assert_eq!(post("second").await.status, 429);
    let line = patiently("a refusal", lines.next_line()).await.unwrap().unwrap();
    let line: Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"));
    assert_eq!(line["level"], "WARN");
    assert_eq!(line["span"]["request"], "second", "{line}");
    // What is no name is replaced.
    let minted = post("a b").await;
    assert_eq!(minted.header("x-request-id").unwrap().len(), 32);
}

#[tokio::test]
async fn traces_go_out_and_go_on_from_the_caller() {
    // What collects them: takes one request, and keeps its bytes.
    let collector = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}/v1/traces", collector.local_addr().unwrap());
    let collected = tokio::spawn(async move {
        let (mut stream, _) = collector.accept().await.unwrap();
        let mut bytes = Vec::new();
        let mut buffer = [0; 8192];
        loop {
            let read = stream.read(&mut buffer).await.unwrap();
            bytes.extend_from_slice(&buffer[..read]);
            let text = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
            let end = bytes.windows(4).position(|w| w == b"\r\n\r\n");
            let length = text.split("content-length: ").nth(1);
            let length = length.and_then(|l| l.split("\r\n").next()?.parse::<usize>().ok());
            if end.zip(length).is_some_and(|(end, length)| bytes.len() >= end + 4 + length) {
                break;
            }
            assert!(read > 0, "{text}");
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        bytes
    });
    let environment = [
        ("LARDER_TRACES__ENDPOINT", &endpoint[..]),
        ("LARDER_TRACES__SERVICE_NAME", "larder-under-test"),
        // Only what the caller traces.
        ("LARDER_TRACES__SAMPLE", "0"),
        ("NO_PROXY", "127.0.0.1"),
    ];
    let (mut child, url, _) = measured(&environment).await;
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let meta = json!({ "traceparent": format!("00-{trace}-b7ad6b7169203331-01") });
    let list = json!({ "name": "list_resources", "arguments": {}, "_meta": meta });
    assert_eq!(send(&url, "tools/call", list).await.status, 200);
    // What is no trace is no reason to refuse.
    for bad in [json!(7), json!("nonsense")] {
        let answer = send(&url, "ping", json!({ "_meta": { "traceparent": bad } })).await;
        assert!(answer.result().is_object());
    }
    signal(&child, "-TERM").await;
    assert_eq!(patiently("the end", child.wait()).await.unwrap().code(), Some(0));
    let bytes = patiently("traces", collected).await.unwrap();
    let has = |part: &[u8]| bytes.windows(part.len()).any(|w| w == part);
    let id: Vec<u8> =
        (0..16).map(|n| u8::from_str_radix(&trace[2 * n..2 * n + 2], 16).unwrap()).collect();
    assert!(has(&id), "the caller's trace goes on");
    assert!(has(b"tools/call list_resources") && has(b"larder-under-test"));
    assert!(!has(b"ping"), "what nobody traces is not sent");
}
