//! Peers that are slow or silent, over real sockets: no wait for them is endless.

use std::{sync::Arc, time::Duration};

use axum::{Router, body::Body, routing};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use larder::http::{ServeLimits, serve};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
};

use crate::support::{Server, patiently};

const SHORT: Duration = Duration::from_millis(200);

/// A server of a router, with short timeouts.
async fn impatient(router: Router) -> std::net::SocketAddr {
    serving(
        router,
        ServeLimits {
            head_timeout: SHORT,
            idle_timeout: SHORT,
            write_timeout: SHORT,
            ..ServeLimits::default()
        },
    )
    .await
}

/// A server of a router.
async fn serving(router: Router, limits: ServeLimits) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        serve(listener, None, router, &limits, std::future::pending()).await.unwrap();
    });
    address
}

/// Waits until the server has closed the connection.
async fn closed(mut stream: TcpStream) {
    let mut buffer = [0; 1024];
    let end = async { while stream.read(&mut buffer).await.is_ok_and(|read| read > 0) {} };
    patiently("the server to close", end).await;
}

#[tokio::test]
async fn a_connection_without_a_request_is_closed() {
    let address = impatient(Router::new().route("/", routing::get(|| async { "hello" }))).await;
    let whole = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";
    for begun in [
        &b""[..],
        b"G",
        b"GET / HTTP/1.1\r\nhost: a\r\n",
        // The beginning of an HTTP/2 preface.
        b"PRI * HT",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        // A whole request, and no second one.
        whole,
        &[&whole[..], b"GET / HT"].concat(),
    ] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(begun).await.unwrap();
        closed(stream).await;
    }
    // Single bytes do not extend the timeout.
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

/// A server that waits for `SHORT`, and a request of which `sent` bytes of the body come at
/// once, and then single bytes or nothing.
async fn assert_body_times_out(sent: usize, drips: bool) {
    let server = Server::configured(|setup| {
        setup.http = Box::new(|http| http.body.timeout = SHORT);
    })
    .await;
    let stream = TcpStream::connect(server.address).await.unwrap();
    let (mut read, mut write) = stream.into_split();
    let head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 4000000\r\n\r\n";
    // Each byte comes within the timeout; the whole body would take hours.
    let sending = tokio::spawn(async move {
        let _ = write.write_all(head.as_bytes()).await;
        let _ = write.write_all(&vec![b' '; sent]).await;
        while !drips || write.write_all(b" ").await.is_ok() {
            tokio::time::sleep(SHORT / 10).await;
        }
    });
    let mut response = Vec::new();
    // The server closes the connection, too.
    let _ = patiently("an answer", read.read_to_end(&mut response)).await;
    assert!(response.starts_with(b"HTTP/1.1 408"), "{}", String::from_utf8_lossy(&response));
    sending.abort();
}

#[tokio::test]
async fn a_body_that_stalls_is_refused() {
    for sent in [0, 1, 2 << 20] {
        for drips in [false, true] {
            assert_body_times_out(sent, drips).await;
        }
    }
}

#[tokio::test]
async fn a_response_that_nobody_reads_is_dropped() {
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
    // The client stays connected and reads nothing: the server drops the body.
    assert!(patiently("the stream to be dropped", is_gone).await.is_err());
    drop(stream);
}

#[tokio::test]
async fn a_connection_between_requests_has_more_time_than_a_head() {
    let limits = ServeLimits {
        head_timeout: SHORT,
        idle_timeout: Duration::from_secs(3600),
        ..ServeLimits::default()
    };
    let address =
        serving(Router::new().route("/", routing::get(|| async { "hello" })), limits).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let mut buffer = [0; 1024];
    for _ in 0..2 {
        stream.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
        let read = patiently("a response", stream.read(&mut buffer)).await.unwrap();
        assert!(buffer[..read].starts_with(b"HTTP/1.1 200"));
        tokio::time::sleep(3 * SHORT).await;
    }
    stream.write_all(b"GET / HT").await.unwrap();
    closed(stream).await;
}

/// A frame of HTTP/2 (RFC 9113, 4.1).
fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).unwrap();
    [&[0, 0, length, kind, flags, 0, 0, 0, stream], payload].concat()
}

/// The kind, the stream and the payload of the next frame.
async fn next_frame(stream: &mut TcpStream) -> Option<(u8, u8, Vec<u8>)> {
    let mut head = [0; 9];
    patiently("a frame", stream.read_exact(&mut head)).await.ok()?;
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
    let mut payload = vec![0; length.try_into().unwrap()];
    patiently("a payload", stream.read_exact(&mut payload)).await.ok()?;
    Some((head[3], head[8], payload))
}

const SETTINGS: u8 = 4;
const PING: u8 = 6;
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// `GET path` as a complete request on a stream.
fn get(stream: u8, path: &str) -> Vec<u8> {
    // GET, http, and literals for path and authority (RFC 7541, appendix A).
    let path = [&[0x04, u8::try_from(path.len()).unwrap()], path.as_bytes()].concat();
    let block = [&[0x82, 0x86], &path[..], &[0x41, 1, b'a']].concat();
    // END_STREAM and END_HEADERS.
    frame(1, 5, stream, &block)
}

#[tokio::test]
async fn an_http2_connection_without_requests_is_closed_although_it_sends_pings() {
    let address = impatient(Router::new().route("/", routing::get(|| async { "hello" }))).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let opening = [PREFACE, &frame(SETTINGS, 0, 0, &[]), &get(1, "/")].concat();
    stream.write_all(&opening).await.unwrap();
    let mut kinds = Vec::new();
    let ends = async {
        loop {
            let pause = tokio::time::sleep(SHORT / 4);
            tokio::select! {
                next = next_frame(&mut stream) => match next {
                    Some((kind, ..)) => kinds.push(kind),
                    None => return,
                },
                () = pause => if stream.write_all(&frame(PING, 0, 0, b"pingpong")).await.is_err() {
                    return;
                }
            }
        }
    };
    patiently("the server to close", ends).await;
    // HEADERS and DATA of the response, and GOAWAY, so that the client loses no request.
    assert!([1, 0, 7].iter().all(|kind| kinds.contains(kind)), "{kinds:?}");
}

#[tokio::test]
async fn an_http2_stream_whose_window_stays_closed_is_reset_and_no_other() {
    let endless = || async {
        let pieces = stream::repeat(Bytes::from(vec![b'a'; 64 << 10]));
        Body::from_stream(pieces.map(Ok::<_, std::io::Error>))
    };
    let slow = || async {
        tokio::time::sleep(4 * SHORT).await;
        "hello"
    };
    let router = Router::new().route("/endless", routing::get(endless));
    let address = impatient(router.route("/slow", routing::get(slow))).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    // SETTINGS_INITIAL_WINDOW_SIZE is 0; stream 3 gets a window of its own.
    let settings = frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]);
    let window = frame(8, 0, 3, &[0, 0, 1, 0]);
    let opening = [PREFACE, &settings, &get(1, "/endless"), &get(3, "/slow"), &window].concat();
    stream.write_all(&opening).await.unwrap();
    let (mut reset, mut data) = (false, Vec::new());
    while !(reset && data == b"hello") {
        let (kind, id, payload) = next_frame(&mut stream).await.expect("the connection stays open");
        reset |= (kind, id) == (3, 1);
        if (kind, id) == (0, 3) {
            data.extend(payload);
        }
    }
}

#[tokio::test]
async fn one_address_cannot_take_all_connections() {
    let limits =
        ServeLimits { connections_per_address: Arc::new(1.into()), ..ServeLimits::default() };
    let address =
        serving(Router::new().route("/", routing::get(|| async { "hello" })), limits).await;
    let _held = TcpStream::connect(address).await.unwrap();
    let refused = async || {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let mut response = String::new();
        let _ = patiently("a refusal", stream.read_to_string(&mut response)).await;
        response.starts_with("HTTP/1.1 503") && response.contains("limits.connections_per_address")
    };
    assert!(refused().await);
}
