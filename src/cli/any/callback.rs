//! The page to which the browser comes back after a login: one request to this machine.

use std::time::Duration;

use reqwest::Url;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// The longest head of a request.
const MAX_HEAD: usize = 16 << 10;
/// How long a browser may take to send one.
const PATIENCE: Duration = Duration::from_secs(10);

/// A browser that has come back.
pub(super) struct Visit {
    stream: TcpStream,
    parameters: Vec<(String, String)>,
}

impl Visit {
    /// The parameters with which the browser has come.
    pub(super) fn take_parameters(&mut self) -> Vec<(String, String)> {
        std::mem::take(&mut self.parameters)
    }

    /// Shows a text in the browser.
    pub(super) async fn answer(mut self, text: &str) {
        respond(&mut self.stream, "200 OK", text).await;
    }
}

/// Waits for a request for the path. All others are answered as not found.
pub(super) async fn wait(listener: &TcpListener, path: &str) -> Visit {
    loop {
        let Ok((mut stream, _)) = listener.accept().await else {
            // Out of file descriptors, or the connection is gone already.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let target = tokio::time::timeout(PATIENCE, target(&mut stream)).await.ok().flatten();

        // Only the path and the query matter, whatever host the request names.
        let url = target.and_then(|target| Url::parse(&format!("http://127.0.0.1{target}")).ok());
        match url.filter(|url| url.path() == path) {
            Some(url) => {
                let parameters = url.query_pairs().into_owned().collect();
                return Visit { stream, parameters };
            }
            None => respond(&mut stream, "404 Not Found", "There is nothing here.").await,
        }
    }
}

/// The target of a GET request.
async fn target(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut piece = [0; 1024];
    while !head.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
        let read = stream.read(&mut piece).await.ok()?;
        head.extend_from_slice(&piece[..read]);
        if read == 0 || head.len() > MAX_HEAD {
            return None;
        }
    }

    let line = String::from_utf8(head).ok()?;
    let target = line.strip_prefix("GET ")?.split(' ').next()?;
    target.starts_with('/').then(|| target.to_owned())
}

async fn respond(stream: &mut TcpStream, status: &str, text: &str) {
    // As plain text, so that nothing in it is a page of its own.
    let response = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    );
    // The browser may be gone.
    let _ = stream.write_all(response.as_bytes()).await;
    let _ = stream.shutdown().await;
}
