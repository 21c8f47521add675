//! Request ids in logs, and traces.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use crate::support::{
    Answer, RedisServer, TextFile, ask, http, patiently, post,
    process::{Process, larder, run, serving_in},
    request,
};

#[tokio::test]
async fn log_lines_carry_the_request_id() {
    let mut command = larder(&["serve"]);
    command.env("LARDER_LOG__FORMAT", "json").env("LARDER_LOG__LEVEL", "error,audit=warn");
    command.env("LARDER_LIMITS__REQUESTS_PER_WINDOW", "1");
    let mut server = Process::start(command).await;
    let ping = request("ping", json!({}));
    let url = server.url.clone();
    let send = |id: &'static str| Answer::of(post(&url, &ping).header("x-request-id", id));
    assert_eq!(send("first").await.header("x-request-id"), Some("first"));
    assert_eq!(send("second").await.status, 429);
    let line = server.logs("second").await;
    let line: Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"));
    assert_eq!(line["level"], "WARN");
    assert_eq!(line["span"]["request"], "second", "{line}");
    // An invalid id is replaced.
    let minted = send("a b").await;
    assert_eq!(minted.header("x-request-id").unwrap().len(), 32);
}

/// A collector of traces that accepts one request; its URL, and the bytes of the request.
async fn collector() -> (String, tokio::task::JoinHandle<Vec<u8>>) {
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
    (endpoint, collected)
}

/// The bytes of the ID of a trace.
fn bytes_of(trace: &str) -> Vec<u8> {
    (0..16).map(|n| u8::from_str_radix(&trace[2 * n..2 * n + 2], 16).unwrap()).collect()
}

#[tokio::test]
async fn traces_are_exported_and_continue_the_callers_trace() {
    let (endpoint, collected) = collector().await;
    let environment = [
        ("LARDER_TRACES__ENDPOINT", &endpoint[..]),
        ("LARDER_TRACES__SERVICE_NAME", "larder-under-test"),
        // Only requests that the caller samples.
        ("LARDER_TRACES__SAMPLE", "0"),
        ("NO_PROXY", "127.0.0.1"),
    ];
    let (mut server, url) = serving_in(&[], &environment).await;
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let meta = json!({ "traceparent": format!("00-{trace}-b7ad6b7169203331-01") });
    let list = json!({ "name": "list_resources", "arguments": {}, "_meta": meta });
    assert_eq!(ask(&url, "tools/call", list).await.status, 200);
    // An invalid trace context is ignored.
    for bad in [json!(7), json!("nonsense")] {
        let answer = ask(&url, "ping", json!({ "_meta": { "traceparent": bad } })).await;
        assert!(answer.result().is_object());
    }
    server.signal("-TERM").await;
    assert_eq!(server.exit_code().await, Some(0));
    let bytes = patiently("traces", collected).await.unwrap();
    let has = |part: &[u8]| bytes.windows(part.len()).any(|w| w == part);
    let id = bytes_of(trace);
    assert!(has(&id), "the caller's trace is not continued");
    assert!(has(b"tools/call list_resources") && has(b"larder-under-test"));
    assert!(!has(b"ping"), "a request that is not sampled was exported");
}

#[tokio::test]
async fn links_to_content_are_neither_in_traces_nor_in_logs() {
    let (endpoint, collected) = collector().await;
    let environment = [
        ("LARDER_TRACES__ENDPOINT", &endpoint[..]),
        ("LARDER_TRACES__SAMPLE", "1"),
        ("LARDER_LOG__LEVEL", "trace"),
        ("NO_PROXY", "127.0.0.1"),
    ];
    let (server, url) = serving_in(&[], &environment).await;
    let call = async |tool: &str, arguments: Value| -> Value {
        let call = json!({ "name": tool, "arguments": arguments });
        ask(&url, "tools/call", call).await.result()["structuredContent"].take()
    };
    call("create_resource", json!({ "uri": "x:1", "text": "text" })).await;
    let download = call("download_url", json!({ "uri": "x:1" })).await;
    let upload = call("upload_url", json!({ "uri": "x:2" })).await;
    let urls =
        [&download["download"]["url"], &upload["upload"]["url"]].map(|u| u.as_str().unwrap());
    assert_eq!(http().get(urls[0]).send().await.unwrap().status(), 200);
    assert_eq!(http().put(urls[1]).body("more").send().await.unwrap().status(), 201);
    let stopped = server.stop("-TERM").await;
    assert_eq!(stopped.code, Some(0), "{stopped:?}");
    assert!(stopped.stderr.contains("TRACE"), "all is logged: {stopped:?}");
    let bytes = patiently("traces", collected).await.unwrap();
    let has = |part: &str| bytes.windows(part.len()).any(|w| w == part.as_bytes());
    assert!(has("tools/call download_url") && has("tools/call upload_url"));
    for url in urls {
        let token = url.split('/').find(|part| part.len() > 40).unwrap();
        // Neither all of it nor its end, which is the signature.
        let end = &token[token.len() - 20..];
        assert!(!has(token) && !has(end) && !stopped.stderr.contains(end), "{token}");
    }
}

#[tokio::test]
async fn the_last_traces_of_a_server_over_stdio_are_sent() {
    let (endpoint, collected) = collector().await;
    let mut command = larder(&["serve", "--stdio"]);
    command.env("LARDER_TRACES__ENDPOINT", &endpoint).env("NO_PROXY", "127.0.0.1");
    command.env("LARDER_TRACES__SAMPLE", "1");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let list = request("tools/call", json!({ "name": "list_resources", "arguments": {} }));
    let mut input = child.stdin.take().unwrap();
    input.write_all(format!("{list}\n").as_bytes()).await.unwrap();
    drop(input);
    assert!(patiently("the exit", child.wait()).await.unwrap().success());
    let bytes = patiently("traces", collected).await.unwrap();
    assert!(bytes.windows(25).any(|w| w == b"tools/call list_resources"));
}

#[tokio::test]
async fn a_trace_of_one_call_shows_where_it_was() {
    let (redis, (endpoint, collected)) = (RedisServer::start().await, collector().await);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/upstreams/odd.mjs");
    let config = TextFile::new(&format!(
        "[[upstreams]]\nname = \"odd\"\ncommand = {}\n",
        json!(["node", script])
    ));
    let (redis_url, config) = (redis.url(), config.path().to_owned());
    let migrated = run(larder(&["migrate", "--store", &redis_url])).await;
    assert_eq!(migrated.code, Some(0), "{migrated:?}");
    let environment = [
        ("LARDER_TRACES__ENDPOINT", &endpoint[..]),
        ("LARDER_TRACES__SAMPLE", "0"),
        ("NO_PROXY", "127.0.0.1"),
    ];
    let arguments = ["--config", &config, "--store", &redis_url];
    let (mut server, url) = serving_in(&arguments, &environment).await;

    // Only the last two calls are of the caller's trace.
    let stored = json!({ "uri": "a:b", "json": [{ "n": 1 }, { "n": 2 }] });
    let stored = json!({ "name": "create_resource", "arguments": stored });
    assert_eq!(ask(&url, "tools/call", stored).await.status, 200);
    let trace = "1af7651916cd43dd8448eb211c80319d";
    let meta = json!({ "traceparent": format!("00-{trace}-b7ad6b7169203331-01") });
    for (name, arguments) in
        [("query_resource", json!({ "from": "a:b", "jq": ".[].n" })), ("env", json!({}))]
    {
        let call = json!({ "name": name, "arguments": arguments, "_meta": meta });
        assert_eq!(ask(&url, "tools/call", call).await.status, 200);
    }
    server.signal("-TERM").await;
    assert_eq!(server.exit_code().await, Some(0));

    let bytes = patiently("traces", collected).await.unwrap();
    let count = |part: &[u8]| bytes.windows(part.len()).filter(|w| *w == part).count();
    let id = bytes_of(trace);
    let parts = ["query waits for its turn", "query jq", "redis ", "upstream odd tools/call"];
    for part in parts {
        assert!(count(part.as_bytes()) > 0, "{part}");
    }
    assert_eq!(count(b"tools/call create_resource"), 0);
    // All of them are of the trace: two calls, and at least one span of each part.
    assert!(count(&id) >= 2 + parts.len(), "{}", count(&id));
}
