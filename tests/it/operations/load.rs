//! Peers that are slow, silent, or too many, over real sockets: whatever they
//! do, it ends in a result, a stream that can be resumed, or a clear error.

use std::{io::Write, sync::Arc, time::Duration};

use axum::{Router, body::Body, routing};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use larder::http::{ServeLimits, serve};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
};

use crate::{
    process::{serving, signal},
    support::{Beat, Legacy, Modern, Raw, Server, http, patiently},
};

const SHORT: Duration = Duration::from_millis(200);

/// A server of that router whose patience is short.
async fn impatient(router: Router) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let limits =
        ServeLimits { head_timeout: SHORT, write_timeout: SHORT, ..ServeLimits::default() };
    tokio::spawn(async move {
        serve(listener, None, router, &limits, std::future::pending()).await.unwrap();
    });
    address
}

/// Until the other side has closed.
async fn closed(mut stream: TcpStream) {
    let mut buffer = [0; 1024];
    let end = async { while stream.read(&mut buffer).await.is_ok_and(|read| read > 0) {} };
    patiently("the server to close", end).await;
}

#[tokio::test]
async fn whoever_sends_no_request_is_not_waited_for() {
    let address = impatient(Router::new().route("/", routing::get(|| async { "hello" }))).await;
    let whole = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";
    for begun in [
        &b""[..],
        b"G",
        b"GET / HTTP/1.1\r\nhost: a\r\n",
        // HTTP/2, up to somewhere.
        b"PRI * HT",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        // A request, and then the next does not come.
        whole,
        &[&whole[..], b"GET / HT"].concat(),
    ] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(begun).await.unwrap();
        closed(stream).await;
    }
    // Byte by byte is no faster.
    let mut stream = TcpStream::connect(address).await.unwrap();
    let drip = async {
        for byte in b"GET / HTTP/1.1\r\nx-slow: ".iter().chain(std::iter::repeat(&b'a')) {
            if stream.write_all(&[*byte]).await.is_err() {
                return;
            }
            tokio::time::sleep(SHORT / 10).await;
        }
    };
    patiently("the server to close", drip).await;
}

#[tokio::test]
async fn a_body_that_drips_is_refused() {
    let server = Server::configured(|setup| {
        setup.http = Box::new(|http| http.body_timeout = SHORT);
    })
    .await;
    let stream = TcpStream::connect(server.address).await.unwrap();
    let (mut read, mut write) = stream.into_split();
    let head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100000\r\n\r\n";
    // Each byte comes in time, and all of them would take for ever.
    let drip = tokio::spawn(async move {
        let mut next = head.as_bytes();
        while write.write_all(next).await.is_ok() {
            tokio::time::sleep(SHORT / 10).await;
            next = b" ";
        }
    });
    let mut status = [0; 12];
    patiently("an answer", read.read_exact(&mut status)).await.unwrap();
    assert_eq!(&status, b"HTTP/1.1 408");
    drip.abort();
}

#[tokio::test]
async fn whoever_takes_nothing_is_not_sent_to_for_ever() {
    let (gone, is_gone) = oneshot::channel::<()>();
    let gone = Arc::new(std::sync::Mutex::new(Some(gone)));
    let endless = move || {
        let held = gone.lock().unwrap().take();
        async move {
            let pieces = stream::repeat(Bytes::from(vec![b'a'; 64 << 10]));
            Body::from_stream(pieces.map(move |piece| {
                let _held = &held;
                Ok::<_, std::io::Error>(piece)
            }))
        }
    };
    let address = impatient(Router::new().route("/", routing::get(endless))).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    // It lives, and reads nothing. The stream that is sent to it is dropped.
    assert!(patiently("the stream to be dropped", is_gone).await.is_err());
    drop(stream);
}

#[tokio::test]
async fn one_connection_too_many_is_told_so() {
    let server = Server::configured(|setup| setup.config.limits.connections = 3).await;
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        ping.len()
    );
    let mut held = Vec::new();
    for _ in 0..3 {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(format!("{head}{ping}").as_bytes()).await.unwrap();
        let mut buffer = [0; 12];
        patiently("an answer", stream.read_exact(&mut buffer)).await.unwrap();
        assert_eq!(&buffer, b"HTTP/1.1 200");
        held.push(stream);
    }
    // A flood: each is told, or finds the door closed; none hangs.
    for _ in 0..50 {
        let refused = Raw::request(&server, "POST /mcp HTTP/1.1", "host: localhost", ping).await;
        assert_eq!(refused.status, 503, "{refused:?}");
        assert!(
            refused.json()["error"]["message"].as_str().unwrap().contains("limits.connections")
        );
    }
    held.pop();
    let headers = "host: localhost\ncontent-type: application/json";
    let again = async {
        while Raw::request(&server, "POST /mcp HTTP/1.1", headers, ping).await.status != 200 {}
    };
    patiently("a place", Box::pin(again)).await;
}

#[tokio::test]
async fn two_hundred_running_calls_end_well_or_clearly() {
    let server = Server::configured(|setup| {
        setup.config.server.grace = 2;
        setup.http = Box::new(|http| http.promote_after = Duration::ZERO);
    })
    .await;
    let modern = Modern::of(&server);
    let stage = Arc::clone(&server.stage);
    let (mut newer, mut older) = (Vec::new(), Vec::new());
    let mut legacy = Legacy::of(&server).await;
    for n in 0..100 {
        // One session takes so many calls at a time, and no more.
        if n % 25 == 24 {
            legacy = Legacy::of(&server).await;
        }
        let key = |kind: &str| json!({ "key": format!("{kind}{n}") });
        newer.push(modern.stream_call(n, "stepwise", key("m")).await);
        older.push(legacy.stream_call(n, "stepwise", key("l")).await);
    }
    let stopping = server.stop();
    // Half of them come to their end in time.
    for n in 0..50 {
        stage.release(&format!("m{n}"), 1);
        stage.release(&format!("l{n}"), 1);
    }
    let rest = (newer.split_off(50), older.split_off(50));
    for (n, (newer, older)) in newer.into_iter().zip(older).enumerate() {
        for (kind, events) in [("m", newer), ("l", older)] {
            let last = events.messages().await.pop().unwrap();
            let text = &last["result"]["content"][0]["text"];
            assert_eq!(*text, format!("done {kind}{n}"));
        }
    }
    assert!(!stopping.finished().await, "the others were ended");
    for n in 50..100 {
        for kind in ["m", "l"] {
            stage.reached(&format!("{kind}{n}"), Beat::Dropped).await;
        }
    }
    drop(rest);
}

#[tokio::test]
async fn thousands_of_idle_streams_hear_of_a_change_and_of_the_end() {
    const STREAMS: usize = 4_000;
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"[server]\ngrace = 30\n").unwrap();
    let (mut child, url) = serving(&["--config", file.path().to_str().unwrap()]).await;
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    let listen = json!({ "notifications": { "resourcesListChanged": true } });
    let listen = Modern::body(&json!(1), "subscriptions/listen", listen).to_string();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: subscriptions/listen\r\ncontent-length: {}\r\n\r\n{listen}",
        listen.len()
    );
    let open = |_| async {
        let mut stream = TcpStream::connect(&address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut bytes = Vec::new();
        until(&mut stream, &mut bytes, b"acknowledged").await;
        (stream, bytes)
    };
    let mut streams: Vec<_> =
        stream::iter(0..STREAMS).map(open).buffer_unordered(64).collect().await;
    assert_eq!(streams.len(), STREAMS);
    let create = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "create_resource", "arguments": { "uri": "x:1", "text": "1" } } });
    let request = http().post(&url).header("content-type", "application/json");
    assert_eq!(request.body(create.to_string()).send().await.unwrap().status(), 200);
    for (stream, bytes) in &mut streams {
        until(stream, bytes, b"list_changed").await;
    }
    signal(&child, "-TERM").await;
    for (stream, bytes) in &mut streams {
        until(stream, bytes, b"\"resultType\":\"complete\"").await;
    }
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
