//! Peers that are many, over real sockets: whatever becomes of the server, each
//! of them gets a result, a stream that can be resumed, or a clear error.

use std::io::Write;

use futures_util::{
    StreamExt,
    future::{join_all, try_join_all},
    stream,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{
    examples::program,
    process::{serving, serving_in, serving_with, signal},
    support::{Answer, Legacy, Modern, http, patiently},
};

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

/// A configuration file with that in it.
fn configured(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

#[tokio::test]
async fn a_flood_past_the_limit_is_told_so_and_holds_up_nobody_within() {
    let (_child, url) = serving_in(&[], &[("LARDER_LIMITS__CONNECTIONS", "3")]).await;
    let address = &*url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    let request = &*format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{PING}",
        PING.len()
    );
    let served = async |stream: &mut TcpStream| {
        stream.write_all(request.as_bytes()).await.unwrap();
        until(stream, &mut Vec::new(), b"\"result\"").await;
    };
    let mut held = Vec::new();
    for _ in 0..3 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        served(&mut stream).await;
        held.push(stream);
    }
    // What one more is told, if anything before the connection is closed.
    let one_more = async || {
        let mut stream = TcpStream::connect(address).await.ok()?;
        // Nobody waits for the request, so it may not get through.
        let _ = stream.write_all(request.as_bytes()).await;
        let mut answer = String::new();
        let read = patiently("a refusal", stream.read_to_string(&mut answer)).await;
        read.ok().filter(|read| *read > 0).map(|_| answer)
    };
    let is_told = |answer: &String| {
        answer.starts_with("HTTP/1.1 503") && answer.contains("limits.connections")
    };
    // Each by itself is told what is the matter.
    for _ in 0..10 {
        let answer = one_more().await;
        assert!(answer.as_ref().is_some_and(is_told), "{answer:?}");
    }
    // Of very many at once some find the door closed; none is kept waiting.
    let flood = join_all((0..600).map(|_| one_more()));
    let (told, ()) = tokio::join!(flood, async {
        for stream in &mut held {
            served(stream).await;
        }
    });
    let told: Vec<_> = told.into_iter().flatten().collect();
    assert!(told.len() > 100 && told.iter().all(is_told), "{told:?}");
    held.pop();
    let again = async { while one_more_is_refused(address, request).await {} };
    patiently("a place", Box::pin(again)).await;
}

async fn one_more_is_refused(address: &str, request: &str) -> bool {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let mut status = [0; 12];
    let written = stream.write_all(request.as_bytes()).await;
    written.is_err() || stream.read_exact(&mut status).await.is_err() || &status != b"HTTP/1.1 200"
}

#[tokio::test]
async fn at_sigterm_two_hundred_running_calls_end_in_a_result_or_a_clear_error() {
    let file = configured("[server]\ngrace = 5\n");
    let arguments = ["--config", file.path().to_str().unwrap(), "--store", "memory:"];
    let program = program("instances");
    let (mut child, url) = serving_with(program.to_str().unwrap(), &arguments).await;
    // Half of them are done three seconds from now, the others some day.
    let count =
        |n: usize| json!({ "to": 1, "every": if n.is_multiple_of(2) { 3_000 } else { 3_600_000 } });
    let modern = Modern::at(&url);
    let body = Legacy::initialize("2025-11-25");
    let sessions = join_all((0..4).map(|_| Legacy::begin(&url, &body))).await;
    let newer = join_all((0..70).map(|n| modern.stream_call(n, "count", count(n))));
    let older = join_all((0..70).map(|n| sessions[n % 4].stream_call(n, "count", count(n / 4))));
    let whole = (0..60).map(|n| {
        let params = json!({ "name": "count", "arguments": count(n) });
        let body = json!({ "jsonrpc": "2.0", "id": n, "method": "tools/call", "params": params });
        let request = http().post(&url).header("content-type", "application/json");
        tokio::spawn(Answer::of(
            request.header("accept", "application/json").body(body.to_string()),
        ))
    });
    let whole: Vec<_> = whole.collect();
    let (newer, older) = tokio::join!(newer, older);
    signal(&child, "-TERM").await;
    let streams = newer.into_iter().chain(older).map(|events| async {
        events.messages().await.pop().expect("it is no end without a word")
    });
    let (streams, whole) = tokio::join!(join_all(streams), try_join_all(whole));
    let whole = whole.unwrap().into_iter().map(|answer| answer.json());
    let ends: Vec<Value> = streams.into_iter().chain(whole).collect();
    assert_eq!(ends.len(), 200);
    let (mut done, mut stopped) = (0, 0);
    for end in ends {
        let text = &end["result"]["content"][0]["text"];
        if *text == "counted to 1" {
            done += 1;
        } else {
            let said = end["error"]["message"].as_str().unwrap_or_else(|| panic!("{end}"));
            assert_eq!(said, "The server is stopping. Send the request again.");
            stopped += 1;
        }
    }
    // How the counts are dealt out: by n, and by n / 4 in the sessions.
    assert_eq!((done, stopped), (35 + 36 + 30, 35 + 34 + 30));
    assert_eq!(patiently("the end", child.wait()).await.unwrap().code(), Some(0));
}

/// Half of them are requests of 2026-07-28, half the own streams of as many
/// sessions.
#[tokio::test]
async fn ten_thousand_idle_streams_hear_of_a_change_and_of_the_end() {
    const STREAMS: usize = 10_000;
    // This process has as many sockets as the server.
    let files = rlimit::increase_nofile_limit(u64::MAX).unwrap();
    assert!(files > 11_000, "only {files} files may be open: see ulimit -Hn");
    let file = configured("[server]\ngrace = 30\n");
    let (mut child, url) = serving(&["--config", file.path().to_str().unwrap()]).await;
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    let post = |headers: &str, body: &Value| {
        let body = body.to_string();
        let length = body.len();
        format!(
            "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n{headers}content-length: {length}\r\n\r\n{body}"
        )
    };
    let listen = json!({ "notifications": { "resourcesListChanged": true } });
    let listen = Modern::body(&json!(1), "subscriptions/listen", listen);
    let listen = post(
        "accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: subscriptions/listen\r\n",
        &listen,
    );
    let initialize = post("", &Legacy::initialize("2025-11-25"));
    let open = |n: usize| {
        let (address, listen, initialize) = (&address, &listen, &initialize);
        async move {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let mut bytes = Vec::new();
            if n.is_multiple_of(2) {
                stream.write_all(listen.as_bytes()).await.unwrap();
                until(&mut stream, &mut bytes, b"acknowledged").await;
            } else {
                stream.write_all(initialize.as_bytes()).await.unwrap();
                until(&mut stream, &mut bytes, b"\"serverInfo\"").await;
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let session = text.split_once("mcp-session-id: ").unwrap().1.split('\r').next();
                let get = format!(
                    "GET /mcp HTTP/1.1\r\nhost: {address}\r\naccept: text/event-stream\r\nmcp-session-id: {}\r\n\r\n",
                    session.unwrap()
                );
                stream.write_all(get.as_bytes()).await.unwrap();
                until(&mut stream, &mut bytes, b"data:\n\n").await;
            }
            bytes.clear();
            (stream, bytes)
        }
    };
    let mut streams: Vec<_> =
        stream::iter(0..STREAMS).map(open).buffer_unordered(64).collect().await;
    assert_eq!(streams.len(), STREAMS);
    let create = json!({ "name": "create_resource", "arguments": { "uri": "x:1", "text": "1" } });
    let create = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": create });
    let request = http().post(&url).header("content-type", "application/json");
    assert_eq!(request.body(create.to_string()).send().await.unwrap().status(), 200);
    for (stream, bytes) in &mut streams {
        until(stream, bytes, b"list_changed").await;
        bytes.clear();
    }
    signal(&child, "-TERM").await;
    let (mut complete, mut to_resume) = (0, 0);
    for (stream, bytes) in &mut streams {
        // The end of a body, as HTTP has it: not merely of a connection.
        until(stream, bytes, b"\r\n0\r\n\r\n").await;
        let said = String::from_utf8_lossy(bytes);
        complete += usize::from(said.contains("\"resultType\":\"complete\""));
        to_resume += usize::from(said.contains("retry: 1000\n\n"));
    }
    assert_eq!((complete, to_resume), (STREAMS / 2, STREAMS / 2));
    drop(streams);
    assert_eq!(patiently("the end", child.wait()).await.unwrap().code(), Some(0));
}

/// Reads until that has come.
async fn until(stream: &mut TcpStream, bytes: &mut Vec<u8>, what: &[u8]) {
    let mut buffer = [0; 4096];
    while !bytes.windows(what.len()).any(|window| window == what) {
        let read = patiently("more of a stream", stream.read(&mut buffer)).await.unwrap();
        assert!(read > 0, "{}", String::from_utf8_lossy(bytes));
        bytes.extend_from_slice(&buffer[..read]);
    }
}
