//! Metrics, request ids and traces, as the binary gives them away.

use std::collections::BTreeSet;

use larder::telemetry::{Kind, METRICS};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpListener,
    process::Child,
};

use crate::{
    process::{larder, signal},
    support::{Answer, Legacy, http, patiently},
};

/// A server with metrics: where it is, and where they are.
async fn measured(environment: &[(&str, &str)]) -> (Child, String, String) {
    let mut command = larder(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("LARDER_METRICS__LISTEN", "127.0.0.1:0");
    let mut child = command.envs(environment.iter().copied()).spawn().unwrap();
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
            Kind::Gauge => "gauge",
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
    let dashboard: Value =
        serde_json::from_str(include_str!("../../../deploy/grafana/larder.json")).unwrap();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().unwrap() {
            let names = named(target["expr"].as_str().unwrap());
            assert!(!names.is_empty(), "{panel}");
            used.extend(names);
        }
    }
    let alerts = include_str!("../../../deploy/prometheus/alerts.yml");
    let expressions: String = alerts.lines().filter(|line| line.contains("expr:")).collect();
    assert!(alerts.matches("- alert:").count() >= 5);
    used.extend(named(&expressions));
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
