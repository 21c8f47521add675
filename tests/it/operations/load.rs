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
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let limits =
        ServeLimits { head_timeout: SHORT, write_timeout: SHORT, ..ServeLimits::default() };
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
        setup.http = Box::new(|http| http.body_timeout = SHORT);
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
