//! An upstream over Streamable HTTP: each message is a POST, answered by one
//! JSON message or by a stream of events.

use std::{
    collections::HashMap,
    error::Error,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use larder_oauth::Identity;
use larder_protocol::{
    self, Member, Message, Meta, ProtocolVersion, RequestId,
    quote::{bounded, shortened},
};
use reqwest::{
    Client, Method as Verb, RequestBuilder, Response, StatusCode, Url,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER},
    redirect::Policy,
};
use tokio::{sync::mpsc, task::JoinSet};
use tokio_util::{io::StreamReader, sync::CancellationToken};

use super::{
    account::Account,
    error::{StatusError, UpstreamError},
    guarded::{PANICKED, guarded},
    link::{Link, Source},
    login::Refused,
    message::{Arrived, Assembly, Refusal, line::Incoming, sse::read_event},
    mirrored::header_text,
    received::{MESSAGE_CHARS, without_id},
    remote_session::{RemoteSession, Session},
    settings::Remote,
};

const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";

/// How long the end of a session may take.
const END_TIMEOUT: Duration = Duration::from_secs(3);
/// How long an attempt to connect may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest wait before the stream of notifications is opened again.
const MAX_BACKOFF: Duration = Duration::from_secs(60);
/// The most bytes of an error's body.
const ERROR_BYTES: usize = 64 << 10;

/// The requests to one upstream.
struct Http {
    client: Client,
    url: Url,
    headers: HeaderMap,
    max_message: usize,

    session: Arc<RemoteSession>,
    /// The callers' tokens, if the server asks for them.
    account: Option<Arc<Account>>,
}

/// What headers repeat of a message.
#[derive(Default)]
struct Outline {
    id: Option<i64>,
    method: String,
    /// The tool, prompt or resource.
    name: Option<String>,
    is_modern: bool,
    /// Arguments that are mirrored: names of headers and values.
    mirrored: Vec<(String, String)>,
    /// The request that a notification cancels.
    cancels: Option<i64>,
    /// Whose request it is; `None` for Larder's own.
    caller: Option<Identity>,
}

/// Sends the messages of a link until it is stopped.
///
/// # Errors
/// A setting that cannot be used.
pub(super) fn run(
    remote: &Remote,
    max_message: usize,
    session: Arc<RemoteSession>,
    account: Option<Arc<Account>>,
    link: Arc<Link>,
    outgoing: mpsc::Receiver<Bytes>,
    stop: CancellationToken,
) -> Result<impl Future<Output = ()> + use<>, String> {
    let client =
        Client::builder().redirect(Policy::none()).connect_timeout(CONNECT_TIMEOUT).build();
    let client = client.map_err(|error| describe(&error))?;

    let mut headers = HeaderMap::new();
    for (name, value) in &remote.headers {
        let invalid = || format!("the header {name} is not valid");
        let mut value = HeaderValue::try_from(value).map_err(|_| invalid())?;
        value.set_sensitive(true);
        headers.insert(HeaderName::try_from(name).map_err(|_| invalid())?, value);
    }

    let url = Url::parse(&remote.url).map_err(|error| format!("its URL is not valid: {error}"))?;
    let http = Arc::new(Http { client, url, headers, max_message, session, account });
    Ok(serve(http, link, outgoing, stop))
}

async fn serve(
    http: Arc<Http>,
    link: Arc<Link>,
    mut outgoing: mpsc::Receiver<Bytes>,
    stop: CancellationToken,
) {
    let mut requests = JoinSet::new();
    let mut running = HashMap::new();

    if http.session.now.lock().id.is_some() {
        // The session of an earlier link goes on, so its stream is opened at once.
        let (http, link) = (Arc::clone(&http), Arc::clone(&link));
        requests.spawn(async move {
            let _ = guarded(link.name(), http.listen(&link)).await;
            None
        });
    }

    loop {
        let message = tokio::select! {
            message = outgoing.recv() => message,
            Some(ended) = requests.join_next() => {
                if let Ok(Some(id)) = ended {
                    running.remove(&id);
                }
                continue;
            }
            () = stop.cancelled() => break,
            () = link.ended() => break,
        };
        let Some(message) = message else { break };
        let outline = Outline::of(&message, &link);
        let (http, link) = (Arc::clone(&http), Arc::clone(&link));

        match outline.id {
            Some(id) => {
                let request = requests.spawn(async move {
                    let sent = guarded(link.name(), http.send(&link, message, &outline)).await;
                    let sent = sent.unwrap_or_else(|_| Err(link.no_answer(PANICKED)));
                    if let Err(error) = sent {
                        link.fail(id, error);
                    }
                    Some(id)
                });
                running.insert(id, request);
            }
            None => {
                // Closing the stream cancels the request in the modern era.
                if let Some(request) = outline.cancels.and_then(|id| running.remove(&id)) {
                    request.abort();
                }

                let opens = outline.method == "notifications/initialized";
                // Sent in order: a server may refuse requests before it is initialized.
                let sent = http.send(&link, message, &outline);
                let _ = tokio::time::timeout(CONNECT_TIMEOUT, sent).await;

                if opens {
                    requests.spawn(async move {
                        let _ = guarded(link.name(), http.listen(&link)).await;
                        None
                    });
                }
            }
        }
    }

    requests.shutdown().await;
    link.end("stopped");
    http.end_session().await;
}

impl Http {
    /// Sends a message and hands what comes back to the link.
    async fn send(
        &self,
        link: &Link,
        message: Bytes,
        outline: &Outline,
    ) -> Result<(), UpstreamError> {
        let session = self.session.now.lock().clone();
        let response = self.post(link, &session, message, outline).await?;
        let status = response.status();

        if status == StatusCode::NOT_FOUND && session.id.is_some() {
            return Err(self.gone(link, outline, "its session ended"));
        }
        if outline.method == "initialize" {
            self.session.now.lock().id = response.headers().get(SESSION).cloned();
        }

        if is_stream(&response) {
            self.read_stream(link, response, outline.id).await;
            // The error has no effect if the response has come.
            return Err(link.no_answer("it closed the stream without a response"));
        }

        if !status.is_success() {
            return Err(refusal(link, response).await);
        }

        let body = read_body(response, Assembly::of(self.max_message, link, outline.id)).await;
        let body = body.map_err(|error| link.no_answer(&error))?;
        let body = body.map_err(|why| link.refusal_error(why))?;
        let Some(id) = outline.id else { return Ok(()) };
        link.receive(Source::Body(id), body).await;
        // The error has no effect if the response has come.
        Err(link.no_answer("there is no response in its body"))
    }

    /// The response to a message.
    async fn post(
        &self,
        link: &Link,
        session: &Session,
        message: Bytes,
        outline: &Outline,
    ) -> Result<Response, UpstreamError> {
        let response = self.send_with_token(outline.caller.as_ref(), |token| {
            let mut request = self.request(Verb::POST, session, token);
            request = request
                .header(ACCEPT, "application/json, text/event-stream")
                .header(CONTENT_TYPE, "application/json")
                .body(message.clone());
            if outline.is_modern {
                request = request.header(VERSION, ProtocolVersion::LATEST.as_str());
                request = request.header("mcp-method", &outline.method);
                if let Some(name) = &outline.name {
                    request = request.header("mcp-name", header_text(name));
                }
                for (header, value) in &outline.mirrored {
                    request = request.header(header, value);
                }
            }
            request
        });

        match response.await? {
            Ok(response) => Ok(response),
            // No connection was made, so the server has not processed the request.
            Err(error) if error.is_connect() => Err(self.gone(link, outline, &describe(&error))),
            Err(error) => Err(link.no_answer(&describe(&error))),
        }
    }

    /// Sends a request with the token of the caller; `None` for one of Larder's own. If the token
    /// is refused, it is refreshed once.
    ///
    /// # Errors
    /// The caller has no access. Without a token that it should have, nothing is sent.
    async fn send_with_token(
        &self,
        caller: Option<&Identity>,
        request: impl Fn(Option<&str>) -> RequestBuilder,
    ) -> Result<reqwest::Result<Response>, UpstreamError> {
        let Some(account) = &self.account else { return Ok(request(None).send().await) };

        let mut may_retry = true;
        loop {
            let token = account.token(caller).await?;
            let response = match request(token.as_deref()).send().await {
                Ok(response) if matches!(response.status().as_u16(), 401 | 403) => response,
                response => return Ok(response),
            };

            let (status, headers) = (response.status(), response.headers());
            let refused = account.refused(status, headers, token.as_deref(), caller, may_retry);
            match refused.await? {
                Refused::Retry => may_retry = false,
                Refused::Login(login) => return Err(UpstreamError::Login(login)),
                Refused::Other => return Ok(Ok(response)),
            }
        }
    }

    /// A request with the headers of the settings and of the session.
    fn request(&self, verb: Verb, session: &Session, token: Option<&str>) -> RequestBuilder {
        let mut request = self.client.request(verb, self.url.clone()).headers(self.headers.clone());
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }

        for (name, value) in [(SESSION, &session.id), (VERSION, &session.version)] {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }

        request
    }

    /// The server does not know the session any more, or cannot be reached: the
    /// link ends, and the request may be sent again on another one.
    fn gone(&self, link: &Link, outline: &Outline, reason: &str) -> UpstreamError {
        self.session.now.lock().id = None;
        let error = link.not_processed(reason);
        if let Some(id) = outline.id {
            link.fail(id, error.clone());
        }
        link.end(reason);
        error
    }

    /// `request` is the one that the stream answers, if it answers one.
    async fn read_stream(&self, link: &Link, response: Response, request: Option<i64>) {
        let bytes = response.bytes_stream().map_err(std::io::Error::other);
        let mut input = StreamReader::new(bytes);
        loop {
            match read_event(&mut input, self.max_message, link, request).await {
                Ok(Incoming::Message(message)) => {
                    link.receive(Source::Stream(request), message).await;
                }
                Ok(Incoming::Refused { what, why }) => {
                    link.refuse_message(Source::Stream(request), what, why);
                }
                Ok(Incoming::End) | Err(_) => return,
            }
        }
    }

    /// Reads the notifications that a legacy server sends on a stream of its own,
    /// if it has one.
    async fn listen(&self, link: &Link) {
        let mut wait = Duration::from_secs(1);
        loop {
            let session = self.session.now.lock().clone();
            let opened = self.send_with_token(None, |token| {
                self.request(Verb::GET, &session, token).header(ACCEPT, "text/event-stream")
            });
            match opened.await {
                Ok(Ok(response)) if is_stream(&response) => {
                    wait = Duration::from_secs(1);
                    self.read_stream(link, response, None).await;
                }
                // The server offers no such stream, or the next request asks for a login.
                Ok(Ok(_)) | Err(UpstreamError::Login(_)) => return,
                Ok(Err(_)) | Err(_) => {}
            }

            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(MAX_BACKOFF);
        }
    }

    async fn end_session(&self) {
        let session = self.session.now.lock().clone();
        if session.id.is_some() && !self.session.outlives.load(Ordering::Relaxed) {
            let ended =
                self.send_with_token(None, |token| self.request(Verb::DELETE, &session, token));
            let _ = tokio::time::timeout(END_TIMEOUT, ended).await;
        }
    }
}

impl Outline {
    fn of(message: &Bytes, link: &Link) -> Self {
        match larder_protocol::parse(message) {
            Ok(Message::Request(request)) => {
                let RequestId::Number(id) = request.id else { return Self::default() };
                let member = match request.method.as_str() {
                    "resources/read" => Member::Uri,
                    _ => Member::Name,
                };
                let name: Option<String> =
                    request.params.text(member).ok().flatten().map(Into::into);
                let meta = Meta::read(&request.params).unwrap_or_default();
                let is_modern = meta.protocol_version.is_some();

                let mirrored = match &name {
                    Some(tool) if is_modern && request.method == "tools/call" => {
                        link.mirrored.headers(tool, &request.params)
                    }
                    _ => Vec::new(),
                };

                let (method, caller) = (request.method, link.caller(id));
                Self { id: Some(id), method, name, is_modern, mirrored, cancels: None, caller }
            }
            Ok(Message::Notification { method, params }) => {
                let cancels = match Message::cancelled(&method, &params) {
                    Some(RequestId::Number(id)) => Some(id),
                    _ => None,
                };
                Self { method, cancels, ..Self::default() }
            }
            _ => Self::default(),
        }
    }
}

fn is_stream(response: &Response) -> bool {
    let media_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    response.status().is_success()
        && media_type.is_some_and(|media_type| media_type.starts_with("text/event-stream"))
}

/// Reads the body into the message.
async fn read_body(
    response: Response,
    mut message: Assembly<'_>,
) -> Result<Result<Arrived, Refusal>, String> {
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| describe(&error))?;
        if let Err(why) = message.push(&chunk).await {
            return Ok(Err(why));
        }
    }
    Ok(Ok(message.finish()))
}

/// The error of a response with a status that is no success. An error of JSON-RPC in its body keeps
/// its meaning, also without an id, as of a request that the server has not read.
async fn refusal(link: &Link, response: Response) -> UpstreamError {
    let status = response.status().as_u16();
    let retry_after = response.headers().get(RETRY_AFTER);
    let retry_after =
        retry_after.map(|value| shortened(&String::from_utf8_lossy(value.as_bytes())).into_owned());

    let body = beginning(response).await;
    if let Some(mut error) = without_id(&body) {
        let retry = retry_after.map(|after| format!(", Retry-After: {after}"));
        error.message.push_str(&format!(" (HTTP {status}{})", retry.unwrap_or_default()));
        return UpstreamError::Refused(error);
    }

    let body = bounded(String::from_utf8_lossy(&body).trim(), MESSAGE_CHARS).into_owned();
    UpstreamError::Status(Box::new(StatusError {
        name: link.name().into(),
        status,
        retry_after,
        body,
    }))
}

/// The first bytes of a body.
async fn beginning(response: Response) -> Vec<u8> {
    let mut chunks = response.bytes_stream();
    let mut body = Vec::new();
    while let Some(Ok(chunk)) = chunks.next().await {
        let room = ERROR_BYTES - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if body.len() == ERROR_BYTES {
            break;
        }
    }
    body
}

/// The innermost cause, without the URL, which may have secrets.
fn describe(error: &reqwest::Error) -> String {
    let mut described = "the request failed".to_owned();
    let mut cause = error.source();
    while let Some(inner) = cause {
        described = inner.to_string();
        cause = inner.source();
    }
    described
}
