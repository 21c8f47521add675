//! Very many peers over real sockets: each of them gets a result, a stream that
//! can be resumed, or a clear error.

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

use super::metrics::Measured;
use crate::{
    instances::EXAMPLE,
    support::{
        Answer, Legacy, Modern, TextFile, ask, eventually, patiently, post,
        process::{example, serving, serving_in},
        request,
    },
};

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

#[tokio::test]
async fn connections_over_the_limit_are_refused_and_delay_nobody_else() {
    let (server, _) = serving_in(&[], &[("LARDER_LIMITS__CONNECTIONS", "3")]).await;
    let address = server.address();
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
    // The response to one connection more, if there is one before the connection is closed.
    let one_more = async || {
        let mut stream = TcpStream::connect(address).await.ok()?;
        // The server does not read the request, so that writing it may fail.
        let _ = stream.write_all(request.as_bytes()).await;
        let mut answer = String::new();
        let read = patiently("a refusal", stream.read_to_string(&mut answer)).await;
        read.ok().filter(|read| *read > 0).map(|_| answer)
    };
    let is_refusal = |answer: &String| {
        answer.starts_with("HTTP/1.1 503") && answer.contains("limits.connections")
    };
    // One at a time, each connection gets the refusal.
    for _ in 0..10 {
        let answer = one_more().await;
        assert!(answer.as_ref().is_some_and(is_refusal), "{answer:?}");
    }
    // Of very many at once some are closed without a response; none is kept waiting.
    let flood = join_all((0..600).map(|_| one_more()));
    let (answers, ()) = tokio::join!(flood, async {
        for stream in &mut held {
            served(stream).await;
        }
    });
    let answers: Vec<_> = answers.into_iter().flatten().collect();
    assert!(!answers.is_empty() && answers.iter().all(is_refusal), "{answers:?}");
    held.pop();
    let is_served = async || {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let mut status = [0; 12];
        let written = stream.write_all(request.as_bytes()).await;
        written.is_ok()
            && stream.read_exact(&mut status).await.is_ok()
            && &status == b"HTTP/1.1 200"
    };
    eventually("a free connection", is_served).await;
}

#[tokio::test]
async fn at_sigterm_two_hundred_running_calls_end_in_a_result_or_a_clear_error() {
    let file = TextFile::new("[server]\ngrace = 5\n");
    let mut command = example(EXAMPLE);
    command.args(["--config", file.path(), "--store", "memory:"]);
    let Measured { mut process, metrics } = Measured::start(command).await;
    let url = process.url.clone();
    // Half of the calls take three seconds, the others an hour.
    let count =
        |n: usize| json!({ "to": 1, "every": if n.is_multiple_of(2) { 3_000 } else { 3_600_000 } });
    let modern = Modern::at(&url);
    let sessions = join_all((0..4).map(|_| Legacy::at_url(&url))).await;
    let newer = join_all((0..70).map(|n| modern.stream_call(n, "count", count(n))));
    let older = join_all((0..70).map(|n| sessions[n % 4].stream_call(n, "count", count(n / 4))));
    let whole = (0..60).map(|n| {
        let body = request("tools/call", json!({ "name": "count", "arguments": count(n) }));
        tokio::spawn(Answer::of(post(&url, &body).header("accept", "application/json")))
    });
    let whole: Vec<_> = whole.collect();
    let (newer, older) = tokio::join!(newer, older);
    let begun = async || {
        let shown = metrics.scrape().await;
        let ended = "mcp_server_operation_duration_seconds_count";
        shown.sum("larder_calls", &[]) + shown.sum(ended, &["\"tools/call\""]) == 200
    };
    eventually("all calls to begin", begun).await;
    process.signal("-TERM").await;
    let streams = newer.into_iter().chain(older).map(|events| async {
        events.messages().await.pop().expect("a stream ends with a response")
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
    // The sums of the even and the odd numbers: `n` of `newer`, `n / 4` of `older`, `n` of `whole`.
    assert_eq!((done, stopped), (35 + 36 + 30, 35 + 34 + 30));
    assert_eq!(process.exit_code().await, Some(0));
}

/// Half of the streams are subscriptions of 2026-07-28, half the GET streams of sessions.
#[tokio::test]
async fn ten_thousand_idle_streams_receive_a_change_and_the_end() {
    const STREAMS: usize = 10_000;
    // This process has one socket for each stream, as the server has.
    let files = rlimit::increase_nofile_limit(u64::MAX).unwrap();
    assert!(files > 11_000, "only {files} files may be open: see ulimit -Hn");
    let limits = "[limits]\nopen_streams = 0\nconnections = 20000\nconnections_per_address = 0\n";
    let file = TextFile::new(&format!("[server]\ngrace = 30\n{limits}"));
    let (mut server, url) = serving(&["--config", file.path()]).await;
    let address = server.address().to_owned();
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
    // One JSON message, however busy the machine is.
    let initialize = post("accept: application/json\r\n", &Legacy::initialize("2025-11-25"));
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
    assert_ne!(ask(&url, "tools/call", create).await.result()["isError"], true);
    for (stream, bytes) in &mut streams {
        until(stream, bytes, b"list_changed").await;
        bytes.clear();
    }
    server.signal("-TERM").await;
    let (mut complete, mut to_resume) = (0, 0);
    for (stream, bytes) in &mut streams {
        // The last chunk of the body: the stream has ended, not only the connection.
        until(stream, bytes, b"\r\n0\r\n\r\n").await;
        let said = String::from_utf8_lossy(bytes);
        complete += usize::from(said.contains("\"resultType\":\"complete\""));
        to_resume += usize::from(said.contains("retry: 1000\n\n"));
    }
    assert_eq!((complete, to_resume), (STREAMS / 2, STREAMS / 2));
    drop(streams);
    assert_eq!(server.exit_code().await, Some(0));
}

/// Reads until `what` has come.
async fn until(stream: &mut TcpStream, bytes: &mut Vec<u8>, what: &[u8]) {
    let mut buffer = [0; 4096];
    while !bytes.windows(what.len()).any(|window| window == what) {
        let read = patiently("more of a stream", stream.read(&mut buffer)).await.unwrap();
        assert!(read > 0, "{}", String::from_utf8_lossy(bytes));
        bytes.extend_from_slice(&buffer[..read]);
    }
}
