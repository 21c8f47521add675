//! The page to which the browser comes back after a login: one request to this machine.

use std::{sync::Arc, time::Duration};

use reqwest::Url;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

/// The longest head of a request.
const MAX_HEAD: usize = 16 << 10;
/// How long a browser may take to send one.
const PATIENCE: Duration = Duration::from_secs(10);

/// The most connections at a time.
const MAX_VISITORS: usize = 64;

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

/// The page that waits for the browser.
pub(super) struct Callback {
    listener: TcpListener,
    path: Arc<str>,
    /// The connections whose requests are read.
    visitors: JoinSet<Option<Visit>>,
}

impl Callback {
    pub(super) fn new(listener: TcpListener, path: &str) -> Self {
        Self { listener, path: path.into(), visitors: JoinSet::new() }
    }

    /// Waits for a request for the path. All others are answered as not found, and a connection
    /// without a request keeps no other one waiting.
    pub(super) async fn wait(&mut self) -> Visit {
        loop {
            let may_accept = self.visitors.len() < MAX_VISITORS;
            tokio::select! {
                Some(read) = self.visitors.join_next() => {
                    if let Ok(Some(visit)) = read {
                        return visit;
                    }
                }
                accepted = self.listener.accept(), if may_accept => match accepted {
                    Ok((stream, _)) => {
                        self.visitors.spawn(read(stream, Arc::clone(&self.path)));
                    }
                    // Out of file descriptors, or the connection is gone already.
                    Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
                },
            }
        }
    }
}

/// Reads a request. One for another path is answered.
async fn read(mut stream: TcpStream, path: Arc<str>) -> Option<Visit> {
    let target = tokio::time::timeout(PATIENCE, target(&mut stream)).await.ok().flatten();

    // Only the path and the query matter, whatever host the request names.
    let url = target.and_then(|target| Url::parse(&format!("http://127.0.0.1{target}")).ok());
    match url.filter(|url| url.path() == &*path) {
        Some(url) => {
            let parameters = url.query_pairs().into_owned().collect();
            Some(Visit { stream, parameters })
        }
        None => {
            respond(&mut stream, "404 Not Found", "There is nothing here.").await;
            None
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
    // Plain text, so that no part of it is read as HTML.
    let response = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    );
    // The browser may be gone.
    let _ = stream.write_all(response.as_bytes()).await;
    let _ = stream.shutdown().await;
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[tokio::test]
    async fn a_silent_connection_keeps_no_browser_waiting() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut callback = Callback::new(listener, "/back");

        let _silent = TcpStream::connect(address).await.unwrap();
        let mut other = TcpStream::connect(address).await.unwrap();
        other.write_all(b"GET /other HTTP/1.1\r\n\r\n").await.unwrap();
        let mut browser = TcpStream::connect(address).await.unwrap();
        browser.write_all(b"GET /back?code=1 HTTP/1.1\r\n\r\n").await.unwrap();

        let waited = tokio::time::timeout(PATIENCE / 2, callback.wait()).await;
        let mut visit = waited.expect("the silent connection has not been waited for");
        assert_eq!(visit.take_parameters(), [("code".to_owned(), "1".to_owned())]);
    }
}
