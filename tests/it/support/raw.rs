//! A client that sends exactly the bytes that a test gives it.

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{Server, patiently};

pub(crate) struct Raw {
    stream: TcpStream,
}

/// A form of a client behind a trusted proxy, which announces a length and never arrives.
pub(crate) struct UnfinishedForm {
    /// Held so that the form stays unfinished.
    _stream: TcpStream,
    /// The head of the first response: `100 Continue` when the server reads the form.
    pub(crate) answer: String,
}

impl UnfinishedForm {
    /// Begins to send a form of `length` bytes from a client's address, and waits for the first
    /// response.
    pub(crate) async fn begin(server: &Server, path: &str, client: &str, length: usize) -> Self {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {host}\r\norigin: http://{host}\r\n\
             x-forwarded-for: {client}\r\nexpect: 100-continue\r\ncontent-length: {length}\r\n\
             content-type: application/x-www-form-urlencoded\r\n\r\n",
            host = server.address
        );
        stream.write_all(head.as_bytes()).await.unwrap();

        let mut answer = vec![0; 4096];
        let read = patiently("an answer", stream.read(&mut answer)).await.unwrap();
        let answer = String::from_utf8_lossy(&answer[..read]).into_owned();
        Self { _stream: stream, answer }
    }

    pub(crate) fn is_read(&self) -> bool {
        self.answer.starts_with("HTTP/1.1 100")
    }
}

/// The response, up to where the server closed the connection.
#[derive(Debug)]
pub(crate) struct RawAnswer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Raw {
    pub(crate) async fn connect(server: &Server) -> Self {
        Self { stream: TcpStream::connect(server.address).await.unwrap() }
    }

    pub(crate) async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.unwrap();
    }

    /// A POST with these headers. The server closes the connection after its response.
    pub(crate) async fn post(server: &Server, headers: &str, body: impl AsRef<[u8]>) -> RawAnswer {
        Self::request(server, "POST /mcp HTTP/1.1", headers, body).await
    }

    pub(crate) async fn request(
        server: &Server,
        line: &str,
        headers: &str,
        body: impl AsRef<[u8]>,
    ) -> RawAnswer {
        let body = body.as_ref();
        let headers = headers.lines().map(str::trim).collect::<Vec<_>>().join("\r\n");
        let length = body.len();
        let head =
            format!("{line}\r\n{headers}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
        let mut raw = Self::connect(server).await;
        raw.write([head.as_bytes(), body].concat()).await;
        raw.answer().await
    }

    /// Reads until a response has come whose body ends like this. The connection stays open.
    pub(crate) async fn reads(&mut self, end: &str) {
        let (mut bytes, mut buffer) = (Vec::new(), [0; 8192]);
        while !bytes.ends_with(end.as_bytes()) {
            let read = patiently("an answer", self.stream.read(&mut buffer)).await.unwrap();
            assert!(read > 0, "the connection ended after {}", String::from_utf8_lossy(&bytes));
            bytes.extend_from_slice(&buffer[..read]);
        }
    }

    /// Reads the response until the connection ends.
    pub(crate) async fn answer(mut self) -> RawAnswer {
        let mut bytes = Vec::new();
        let mut buffer = [0; 8192];
        // A reset after the response ends it, too.
        while let Ok(read) = patiently("an answer", self.stream.read(&mut buffer)).await {
            if read == 0 {
                break;
            }
            bytes.extend_from_slice(&buffer[..read]);
        }
        let end = bytes.windows(4).position(|w| w == b"\r\n\r\n").expect("a head");
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        RawAnswer { status, head, body: bytes[end + 4..].to_vec() }
    }
}

impl RawAnswer {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// The HTTP status, the error code, and the id of an error response.
    #[track_caller]
    pub(crate) fn refusal(&self) -> (u16, i64, Option<Value>) {
        let message = self.json();
        (self.status, message["error"]["code"].as_i64().unwrap(), message.get("id").cloned())
    }
}
