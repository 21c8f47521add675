//! Content as it is, at `/resources` beside the endpoint of a server: any size, and it continues
//! after a lost connection.

use std::{path::Path, time::Duration};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use indicatif::ProgressBar;
use reqwest::{
    Body, Method, RequestBuilder, Response, StatusCode, Url,
    header::{self, HeaderValue},
};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncSeekExt, SeekFrom};

use super::{ClientError, Content, McpClient, person};

/// The bytes read from a file at a time.
const PIECE_BYTES: usize = 256 * 1024;

/// Content up to this size is sent again as a whole after a lost connection.
const MAX_SINGLE_PUT: u64 = 4 << 20;

/// How often a request is repeated that moves no byte, and the pause before it, which doubles.
const RETRIES: u32 = 6;
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// The content of a server without MCP.
pub(super) struct Resources<'a> {
    client: &'a McpClient,
    url: Url,
}

/// A file to send.
pub(super) struct Source<'a> {
    pub(super) path: &'a Path,
    pub(super) size: u64,
}

/// The end of a body that is printed.
enum BodyEnd {
    Complete,
    /// The rest can be requested.
    Cut(Failure),
}

/// Why a request for content fails.
enum Failure {
    /// The connection was lost or the server is busy: the same request may succeed later.
    Lost(ClientError),
    Refused(ClientError),
}

impl From<Failure> for ClientError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Lost(error) | Failure::Refused(error) => error,
        }
    }
}

impl<'a> Resources<'a> {
    /// The content of that server; `None` if it receives none, as other MCP servers do.
    pub(super) async fn that_receive(client: &'a McpClient) -> Result<Option<Self>, ClientError> {
        let this = Self::of(client)?;
        let response =
            this.client.send_raw(this.client.with_token(Method::OPTIONS, this.url.clone()));
        let response = response.await?;

        let receives =
            response.status().is_success() && response.headers().contains_key("upload-limit");
        Ok(receives.then_some(this))
    }

    /// The content of that server, if it has any.
    pub(super) fn of(client: &'a McpClient) -> Result<Self, ClientError> {
        Ok(Self { client, url: client.beside("resources")? })
    }

    fn at(&self, query: &[(&str, String)]) -> Url {
        let mut url = self.url.clone();
        // The server does not decode `+` as a space.
        let encoded: Vec<_> = query
            .iter()
            .map(|(name, value)| {
                let value = percent_encoding::utf8_percent_encode(
                    value,
                    percent_encoding::NON_ALPHANUMERIC,
                );
                format!("{name}={value}")
            })
            .collect();

        url.set_query((!encoded.is_empty()).then(|| encoded.join("&")).as_deref());
        url
    }

    /// Sends content of unknown size. Returns the URI.
    pub(super) async fn put_stream(
        &self,
        query: &[(&str, String)],
        mime_type: Option<&str>,
        pieces: impl Stream<Item = Result<Bytes, ClientError>> + Send + 'static,
    ) -> Result<String, ClientError> {
        let request = self.client.with_token(Method::POST, self.at(query));
        let request = typed(request, mime_type).body(Body::wrap_stream(pieces));
        uri_of(self.send(request).await?).await
    }

    /// Sends a file. After a lost connection it continues where the server is. Returns the URI.
    pub(super) async fn put_file(
        &self,
        query: &[(&str, String)],
        mime_type: Option<&str>,
        source: Source<'_>,
        bar: &ProgressBar,
    ) -> Result<String, ClientError> {
        if source.size <= MAX_SINGLE_PUT {
            return self.put_small(query, mime_type, source, bar).await;
        }

        let request = self.client.with_token(Method::POST, self.at(query));
        let request = typed(request, mime_type)
            .header("upload-complete", "?0")
            .header("upload-length", source.size)
            .body("");

        let mut created = Retries::default();
        let upload = loop {
            match self.send(request.try_clone().ok_or_else(ClientError::unexpected_reply)?).await {
                Ok(response) => break self.location(&response)?,
                Err(failure) => created.pause(failure).await?,
            }
        };

        let mut retries = Retries::default();
        let mut offset = 0;
        loop {
            bar.set_position(offset);
            let failure = match self.append(&upload, &source, offset, bar).await {
                Ok(response) => return uri_of(response).await,
                Err(failure) => failure,
            };

            retries.pause(failure).await?;
            match self.offset(&upload).await {
                Ok(found) if found > offset => (offset, retries) = (found, Retries::default()),
                Ok(found) => offset = found,
                Err(failure) => retries.pause(failure).await?,
            }
        }
    }

    async fn put_small(
        &self,
        query: &[(&str, String)],
        mime_type: Option<&str>,
        source: Source<'_>,
        bar: &ProgressBar,
    ) -> Result<String, ClientError> {
        let name = source.path.display().to_string();
        let content = tokio::fs::read(source.path).await;
        let content = Bytes::from(content.map_err(|error| ClientError::local(&name, &error))?);

        // The server chooses a new URI for each attempt if the request has none.
        let is_repeatable = query.iter().any(|(name, _)| *name == "uri");
        let method = if is_repeatable { Method::PUT } else { Method::POST };

        let mut retries = Retries::default();
        loop {
            let request = self.client.with_token(method.clone(), self.at(query));
            match self.send(typed(request, mime_type).body(content.clone())).await {
                Ok(response) => {
                    bar.set_position(source.size);
                    return uri_of(response).await;
                }
                Err(failure) if is_repeatable => retries.pause(failure).await?,
                Err(failure) => return Err(failure.into()),
            }
        }
    }

    /// Sends the rest of a file.
    async fn append(
        &self,
        upload: &Url,
        source: &Source<'_>,
        offset: u64,
        bar: &ProgressBar,
    ) -> Result<Response, Failure> {
        let rest = rest_of(source.path, offset, bar.clone()).await.map_err(Failure::Refused)?;

        let request = self.client.with_token(Method::PATCH, upload.clone());
        let request = request
            .header(header::CONTENT_TYPE, "application/partial-upload")
            .header(header::CONTENT_LENGTH, source.size - offset)
            .header("upload-complete", "?1")
            .header("upload-offset", offset)
            .body(Body::wrap_stream(rest));
        self.send(request).await
    }

    /// How much of an upload the server has.
    async fn offset(&self, upload: &Url) -> Result<u64, Failure> {
        let request = self.client.with_token(Method::HEAD, upload.clone());
        let response = self.send(request).await?;

        let offset =
            response.headers().get("upload-offset").and_then(|offset| offset.to_str().ok());
        let offset = offset.and_then(|offset| offset.parse().ok());
        offset.ok_or_else(|| Failure::Refused(ClientError::unexpected_reply()))
    }

    fn location(&self, response: &Response) -> Result<Url, ClientError> {
        let location = response.headers().get(header::LOCATION);
        let location = location.and_then(|location| location.to_str().ok());
        let url = location.and_then(|location| self.url.join(location).ok());
        // The token is sent to no other server.
        let url = url.filter(|url| url.origin() == self.url.origin());
        url.ok_or_else(ClientError::unexpected_reply)
    }

    /// Writes a resource to standard output. After a lost connection it continues where it was,
    /// unless the content has changed. Returns whether the server has it here: otherwise
    /// only its tools may find it.
    pub(super) async fn print(
        &self,
        uri: &str,
        bar: impl FnOnce(Option<u64>) -> ProgressBar,
    ) -> Result<bool, ClientError> {
        let url = self.at(&[("uri", uri.to_owned())]);
        let mut response =
            self.client.send_raw(self.client.with_token(Method::GET, url.clone())).await?;

        if response.status() != StatusCode::OK || !response.headers().contains_key("repr-digest") {
            return Ok(false);
        }

        let tag = response.headers().get(header::ETAG).cloned();
        let bar = bar(response.content_length());
        let mut printed = Content::new(uri, "larder cat");
        let mut received = 0;
        let mut before = 0;
        let mut retries = Retries::default();

        loop {
            let printing = self.print_body(response, &mut printed, &mut received, &bar);
            let failure = match printing.await? {
                BodyEnd::Complete => break,
                BodyEnd::Cut(failure) => failure,
            };

            if received > before {
                (before, retries) = (received, Retries::default());
            }
            retries.pause(failure).await?;

            response = loop {
                match self.rest(&url, received, tag.as_ref()).await {
                    Ok(rest) => break rest,
                    Err(failure) => retries.pause(failure).await?,
                }
            };
        }

        bar.finish_and_clear();
        printed.finish()?;
        Ok(true)
    }

    /// Writes a body to standard output, and counts it.
    async fn print_body(
        &self,
        response: Response,
        printed: &mut Content,
        received: &mut u64,
        bar: &ProgressBar,
    ) -> Result<BodyEnd, ClientError> {
        let mut pieces = response.bytes_stream();
        while let Some(piece) = pieces.next().await {
            let piece = match piece {
                Ok(piece) => piece,
                Err(error) => {
                    let lost = Failure::Lost(self.client.unreachable(&error));
                    return Ok(BodyEnd::Cut(lost));
                }
            };

            printed.print(&piece)?;
            *received += piece.len() as u64;
            bar.set_position(*received);
        }

        Ok(BodyEnd::Complete)
    }

    /// The content from that offset on, if it is still the same.
    async fn rest(
        &self,
        url: &Url,
        offset: u64,
        tag: Option<&HeaderValue>,
    ) -> Result<Response, Failure> {
        let mut request = self.client.with_token(Method::GET, url.clone());
        request = request.header(header::RANGE, format!("bytes={offset}-"));
        if let Some(tag) = tag {
            request = request.header(header::IF_MATCH, tag);
        }

        let response = self.send(request).await?;
        if response.status() == StatusCode::PARTIAL_CONTENT {
            Ok(response)
        } else {
            Err(Failure::Refused(ClientError::unexpected_reply()))
        }
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, Failure> {
        let response = match self.client.send_raw(request).await {
            Ok(response) => response,
            Err(error @ ClientError::Usage(_)) => return Err(Failure::Refused(error)),
            Err(error) => return Err(Failure::Lost(error)),
        };

        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }

        let body = response.bytes().await.unwrap_or_default();
        let problem: Value = serde_json::from_slice(&body).unwrap_or_default();
        let detail = problem["detail"].as_str().map(str::to_owned);
        let detail = detail.unwrap_or_else(|| format!("The server answers with {status}."));

        let detail = person::told(&detail);

        Err(match status {
            StatusCode::UNAUTHORIZED => {
                Failure::Refused(ClientError::Denied(self.client.without_access(&problem)))
            }
            StatusCode::FORBIDDEN => Failure::Refused(ClientError::Denied(detail)),
            // Another request of this upload is still served, or the server restarts.
            StatusCode::CONFLICT
            | StatusCode::REQUEST_TIMEOUT
            | StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => Failure::Lost(ClientError::Failed(detail)),
            _ => Failure::Refused(ClientError::Failed(detail)),
        })
    }
}

/// Counts the attempts that moved nothing.
struct Retries {
    left: u32,
    pause: Duration,
}

impl Default for Retries {
    fn default() -> Self {
        Self { left: RETRIES, pause: FIRST_PAUSE }
    }
}

impl Retries {
    /// Waits before the next attempt.
    ///
    /// # Errors
    /// There is none.
    async fn pause(&mut self, failure: Failure) -> Result<(), ClientError> {
        match failure {
            Failure::Lost(_) if self.left > 0 => {
                tokio::time::sleep(self.pause).await;
                (self.left, self.pause) = (self.left - 1, self.pause * 2);
                Ok(())
            }
            failure => Err(failure.into()),
        }
    }
}

fn typed(request: RequestBuilder, mime_type: Option<&str>) -> RequestBuilder {
    match mime_type {
        Some(mime_type) => request.header(header::CONTENT_TYPE, mime_type),
        None => request,
    }
}

/// The URI of a stored resource.
async fn uri_of(response: Response) -> Result<String, ClientError> {
    let body = response.bytes().await.unwrap_or_default();
    let stored: Value = serde_json::from_slice(&body).unwrap_or_default();
    stored["uri"].as_str().map(str::to_owned).ok_or_else(ClientError::unexpected_reply)
}

/// A file from that offset on.
async fn rest_of(
    path: &Path,
    offset: u64,
    bar: ProgressBar,
) -> Result<impl Stream<Item = Result<Bytes, ClientError>> + Send + use<>, ClientError> {
    let name = path.display().to_string();
    let local = |error: &std::io::Error| ClientError::local(&name, error);
    let mut file = tokio::fs::File::open(path).await.map_err(|error| local(&error))?;
    file.seek(SeekFrom::Start(offset)).await.map_err(|error| local(&error))?;

    Ok(stream::try_unfold(file, move |mut file| {
        let bar = bar.clone();
        let name = name.clone();
        async move {
            let mut piece = Vec::with_capacity(PIECE_BYTES);
            let read = (&mut file).take(PIECE_BYTES as u64).read_to_end(&mut piece).await;
            let read = read.map_err(|error| ClientError::local(&name, &error))?;
            bar.inc(read as u64);
            Ok((read > 0).then(|| (Bytes::from(piece), file)))
        }
    })
    .into_stream())
}
