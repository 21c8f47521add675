//! An HTTP/1.1 client with minimal cost: it writes prepared requests, and reads
//! responses to their end without copying them.

use std::{io, net::SocketAddr};

use bytes::{Buf, BytesMut};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// A serialized request that can be sent many times.
#[derive(Debug, Clone)]
pub struct Prepared(Vec<u8>);

impl Prepared {
    /// A POST with a body and additional headers.
    pub fn post(body: &str, headers: &[(&str, &str)]) -> Self {
        let mut request = String::from(
            "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n",
        );
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        request += &format!("content-length: {}\r\n\r\n{body}", body.len());
        Self(request.into_bytes())
    }

    /// A GET of any media type.
    pub fn get_path(path: &str) -> Self {
        Self(format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n").into_bytes())
    }

    /// The same from a client that accepts zstd.
    pub fn get_zstd(path: &str) -> Self {
        let accepting = "host: 127.0.0.1\r\naccept-encoding: zstd\r\n\r\n";
        Self(format!("GET {path} HTTP/1.1\r\n{accepting}").into_bytes())
    }

    /// A PUT of this content.
    pub fn put_path(path: &str, content: &[u8]) -> Self {
        let head = format!(
            "PUT {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: text/plain\r\n\
             content-length: {}\r\n\r\n",
            content.len()
        );
        Self([head.as_bytes(), content].concat())
    }

    /// A GET that accepts an event stream.
    pub fn get(headers: &[(&str, &str)]) -> Self {
        let mut request =
            String::from("GET /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: text/event-stream\r\n");
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        Self((request + "\r\n").into_bytes())
    }
}

/// The head of a response.
#[derive(Debug)]
pub struct Head {
    pub status: u16,
    pub session: Option<String>,
    length: Length,
}

#[derive(Debug, Clone, Copy)]
enum Length {
    Known(usize),
    Chunked,
    None,
}

/// A persistent connection.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    buffer: BytesMut,
}

impl Connection {
    /// # Errors
    /// When the connection is refused.
    pub async fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: BytesMut::with_capacity(256 << 10) })
    }

    /// Sends a request and reads the response's head.
    ///
    /// # Errors
    /// When the connection or the response is broken.
    pub async fn send(&mut self, request: &Prepared) -> io::Result<Head> {
        self.stream.write_all(&request.0).await?;
        loop {
            if let Some(head) = self.head()? {
                return Ok(head);
            }
            self.fill().await?;
        }
    }

    /// Sends a request and reads the response to its end; `see` gets each piece of
    /// the body. Returns the head and the length of the body.
    ///
    /// # Errors
    /// When the connection or the response is broken.
    pub async fn exchange(
        &mut self,
        request: &Prepared,
        mut see: impl FnMut(&[u8]),
    ) -> io::Result<(Head, usize)> {
        let head = self.send(request).await?;
        let mut read = 0;
        match head.length {
            Length::None => {}
            Length::Known(length) => {
                self.read(length, &mut see).await?;
                read = length;
            }
            Length::Chunked => {
                while let Some(piece) = self.chunk(&mut see).await? {
                    read += piece;
                }
            }
        }
        Ok((head, read))
    }

    /// Reads the next chunk of a chunked response, in pieces. Returns its length,
    /// or `None` at the end.
    ///
    /// # Errors
    /// When the connection or the response is broken.
    pub async fn chunk(&mut self, mut see: impl FnMut(&[u8])) -> io::Result<Option<usize>> {
        let size = loop {
            if let Some(end) = memchr::memmem::find(&self.buffer, b"\r\n") {
                let line = std::str::from_utf8(&self.buffer[..end]).map_err(broken)?;
                let size = line.split(';').next().unwrap_or_default().trim();
                let size = usize::from_str_radix(size, 16).map_err(broken)?;
                self.buffer.advance(end + 2);
                break size;
            }
            self.fill().await?;
        };
        self.read(size, &mut see).await?;
        while self.buffer.len() < 2 {
            self.fill().await?;
        }
        self.buffer.advance(2);
        Ok((size > 0).then_some(size))
    }

    /// Reads a number of bytes; `see` gets each piece.
    async fn read(&mut self, bytes: usize, see: &mut impl FnMut(&[u8])) -> io::Result<()> {
        let mut left = bytes;
        while left > 0 {
            if self.buffer.is_empty() {
                self.fill().await?;
            }
            let take = left.min(self.buffer.len());
            see(&self.buffer[..take]);
            self.buffer.advance(take);
            left -= take;
        }
        Ok(())
    }

    async fn fill(&mut self) -> io::Result<()> {
        self.buffer.reserve(64 << 10);
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    fn head(&mut self) -> io::Result<Option<Head>> {
        let mut headers = [httparse::EMPTY_HEADER; 32];
        let mut response = httparse::Response::new(&mut headers);
        let httparse::Status::Complete(end) = response.parse(&self.buffer).map_err(broken)? else {
            return Ok(None);
        };
        let mut head =
            Head { status: response.code.unwrap_or(0), session: None, length: Length::None };
        for header in response.headers.iter() {
            let value = std::str::from_utf8(header.value).map_err(broken)?;
            if header.name.eq_ignore_ascii_case("content-length") {
                head.length = Length::Known(value.parse().map_err(broken)?);
            } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
                head.length = Length::Chunked;
            } else if header.name.eq_ignore_ascii_case("mcp-session-id") {
                head.session = Some(value.to_owned());
            }
        }
        self.buffer.advance(end);
        Ok(Some(head))
    }
}

fn broken(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
