//! Floods of frames and of headers on single connections: each is refused or ended, and the server
//! goes on serving all others.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use axum::{Router, routing};
use larder::http::{ServeLimits, serve};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream, tcp::OwnedReadHalf},
};

use crate::support::{eventually, http, patiently};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// The codes of errors (RFC 9113, section 7).
const CANCEL: u32 = 8;
const ENHANCE_YOUR_CALM: u32 = 11;

/// The most streams of one connection at the same time, as Hyper sets it.
const STREAMS: usize = 200;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A block of headers: GET, http, a path and an authority (RFC 7541, appendix A).
fn get(path: &str) -> Vec<u8> {
    let path = [&[0x04, u8::try_from(path.len()).unwrap()], path.as_bytes()].concat();
    [&[0x82, 0x86], &path[..], &[0x41, 1, b'a']].concat()
}

/// A literal header that is not indexed, with a value of this many bytes (below 16,384).
fn header(bytes: usize) -> Vec<u8> {
    // The length is an integer with a prefix of seven bits (RFC 7541, section 5.1).
    let rest = bytes - 127;
    let length = [127, u8::try_from(rest % 128).unwrap() | 128, u8::try_from(rest / 128).unwrap()];
    [&[0, 1, b'x'][..], &length, &vec![b'a'; bytes]].concat()
}

/// The kind, the stream and the payload of the next frame; none at the end of the connection.
async fn next_frame(stream: &mut OwnedReadHalf) -> Option<(u8, u32, Vec<u8>)> {
    let mut head = [0; 9];
    patiently("a frame", stream.read_exact(&mut head)).await.ok()?;

    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
    let mut payload = vec![0; length.try_into().unwrap()];
    patiently("a payload", stream.read_exact(&mut payload)).await.ok()?;
    Some((head[3], u32::from_be_bytes(head[5..].try_into().unwrap()), payload))
}

/// The code of the error that the server ends a connection with, if it says one.
async fn ended_with(stream: &mut OwnedReadHalf) -> Option<u32> {
    let mut code = None;
    while let Some((kind, _, payload)) = next_frame(stream).await {
        if kind == GOAWAY {
            code = Some(u32::from_be_bytes(payload[4..8].try_into().unwrap()));
        }
    }
    code
}

/// How many requests are in progress, and the most that were at once.
#[derive(Default)]
struct Running {
    now: AtomicUsize,
    peak: AtomicUsize,
}

/// One request in progress.
struct Request(Arc<Running>);

impl Request {
    fn begin(running: &Arc<Running>) -> Self {
        let now = running.now.fetch_add(1, Ordering::SeqCst) + 1;
        running.peak.fetch_max(now, Ordering::SeqCst);
        Self(Arc::clone(running))
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A server with a request that ends only when its client leaves, and one that ends at once.
async fn server() -> (SocketAddr, Arc<Running>) {
    let running = Arc::new(Running::default());
    let begun = Arc::clone(&running);
    let endless = move || {
        let request = Request::begin(&begun);
        async move {
            let _request = request;
            std::future::pending::<&str>().await
        }
    };
    let router = Router::new()
        .route("/endless", routing::get(endless))
        .route("/", routing::get(|| async { "hello" }));

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let served = async move {
        let limits = ServeLimits::default();
        serve(listener, None, router, &limits, std::future::pending()).await.unwrap();
    };
    tokio::spawn(served);
    (address, running)
}

/// Checks that another client is served.
async fn serves_others(address: SocketAddr) {
    let request = http().get(format!("http://{address}/")).send();
    let response = patiently("an answer", request).await.unwrap();
    assert_eq!(response.status(), 200);
}

#[tokio::test]
async fn a_burst_of_streams_that_are_reset_at_once_ends_its_connection_alone() {
    let (address, running) = server().await;
    let (mut read, mut write) = TcpStream::connect(address).await.unwrap().into_split();
    let mut burst = [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat();
    for number in 0..20_000 {
        let stream = 2 * number + 1;
        burst.extend(frame(HEADERS, END_STREAM | END_HEADERS, stream, &get("/endless")));
        burst.extend(frame(RST_STREAM, 0, stream, &CANCEL.to_be_bytes()));
    }

    // The server does not read all of it, so that writing fails.
    let writing = tokio::spawn(async move { write.write_all(&burst).await });
    assert_eq!(ended_with(&mut read).await, Some(ENHANCE_YOUR_CALM));
    let _ = patiently("the end of the burst", writing).await;

    assert!(running.peak.load(Ordering::SeqCst) <= STREAMS);
    eventually("no request to be in progress", async || running.now.load(Ordering::SeqCst) == 0)
        .await;
    serves_others(address).await;
}

#[tokio::test]
async fn streams_that_are_reset_one_after_the_other_leave_no_request_behind() {
    let (address, running) = server().await;
    let stream = TcpStream::connect(address).await.unwrap();
    // Small frames in a row would wait for acknowledgements.
    stream.set_nodelay(true).unwrap();
    let (mut read, mut write) = stream.into_split();
    write.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, &[])].concat()).await.unwrap();

    // The answer to the ping behind a request says that the server has read it.
    for number in 0..2_000_u32 {
        let stream = 2 * number + 1;
        let begun = frame(HEADERS, END_STREAM | END_HEADERS, stream, &get("/endless"));
        let ping = frame(PING, 0, 0, &u64::from(number).to_be_bytes());
        write.write_all(&[begun, ping].concat()).await.unwrap();

        loop {
            let (kind, _, _) = next_frame(&mut read).await.expect("the connection stays open");
            if kind == PING {
                break;
            }
        }
        let reset = frame(RST_STREAM, 0, stream, &CANCEL.to_be_bytes());
        write.write_all(&reset).await.unwrap();
    }

    assert!((1..=STREAMS).contains(&running.peak.load(Ordering::SeqCst)));
    eventually("no request to be in progress", async || running.now.load(Ordering::SeqCst) == 0)
        .await;

    // The connection itself is still good, too.
    let last = frame(HEADERS, END_STREAM | END_HEADERS, 4_001, &get("/"));
    write.write_all(&last).await.unwrap();
    loop {
        let (kind, stream, _) = next_frame(&mut read).await.expect("the connection stays open");
        if (kind, stream) == (HEADERS, 4_001) {
            break;
        }
    }
    serves_others(address).await;
}

#[tokio::test]
async fn endless_headers_of_http2_end_their_connection_alone() {
    let (address, _) = server().await;
    let (mut read, mut write) = TcpStream::connect(address).await.unwrap().into_split();
    let opening = [PREFACE, &frame(SETTINGS, 0, 0, &[]), &frame(HEADERS, END_STREAM, 1, &get("/"))];
    write.write_all(&opening.concat()).await.unwrap();

    // The number of bytes that the server takes before it ends the connection.
    let writing = tokio::spawn(async move {
        let part = frame(CONTINUATION, 0, 1, &header(16_000));
        let mut sent = 0;
        while write.write_all(&part).await.is_ok() {
            sent += part.len();
        }
        sent
    });

    ended_with(&mut read).await;
    let sent = patiently("the end of the flood", writing).await.unwrap();
    // The buffers of both sockets are in it.
    assert!(sent < 32 << 20, "{sent}");
    serves_others(address).await;
}

#[tokio::test]
async fn headers_over_the_limit_are_refused_and_the_connection_goes_on() {
    let (address, _) = server().await;
    let (mut read, mut write) = TcpStream::connect(address).await.unwrap().into_split();
    let large = [get("/endless"), header(10_000)].concat();
    let requests = [
        PREFACE,
        &frame(SETTINGS, 0, 0, &[]),
        &frame(HEADERS, END_STREAM, 1, &large),
        &frame(CONTINUATION, END_HEADERS, 1, &header(10_000)),
        &frame(HEADERS, END_STREAM | END_HEADERS, 3, &get("/")),
    ];
    write.write_all(&requests.concat()).await.unwrap();

    let mut answered = Vec::new();
    while !(answered.contains(&1) && answered.contains(&3)) {
        let (kind, stream, _) = next_frame(&mut read).await.expect("the connection stays open");
        if matches!(kind, HEADERS | RST_STREAM) {
            answered.push(stream);
        }
    }
    serves_others(address).await;
}

#[tokio::test]
async fn endless_headers_of_http1_are_refused_before_they_fill_memory() {
    let (address, _) = server().await;
    for line in ["x: y\r\n".to_owned(), format!("x: {}\r\n", "y".repeat(4_000))] {
        let (mut read, mut write) = TcpStream::connect(address).await.unwrap().into_split();
        let writing = tokio::spawn(async move {
            let _ = write.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n").await;
            let mut sent = 0;
            while sent < 64 << 20 && write.write_all(line.as_bytes()).await.is_ok() {
                sent += line.len();
            }
            sent
        });

        let mut answer = Vec::new();
        let _ = patiently("a refusal", read.read_to_end(&mut answer)).await;
        assert!(answer.starts_with(b"HTTP/1.1 431"), "{}", String::from_utf8_lossy(&answer));

        let sent = patiently("the end of the flood", writing).await.unwrap();
        assert!(sent < 32 << 20, "{sent}");
    }
    serves_others(address).await;
}
