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
use reqwest::{
    Client, Method as Verb, RequestBuilder, Response, StatusCode, Url,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
    redirect::Policy,
};
use serde_json::Value;
use tokio::{sync::mpsc, task::JoinSet};
use tokio_util::{io::StreamReader, sync::CancellationToken};

use super::{
    account::Account,
    error::UpstreamError,
    link::Link,
    login::Refused,
    message::{
        Arrived, Assembly, Refusal,
        line::{Incoming, answered_by},
        sse::read_event,
    },
    mirrored::header_text,
    remote_session::{RemoteSession, Session},
    settings::Remote,
};
use crate::{
    auth::Identity,
    protocol::{self, Member, Message, Meta, ProtocolVersion, RequestId},
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
        // It goes on with the session of another link.
        let (http, link) = (Arc::clone(&http), Arc::clone(&link));
        requests.spawn(async move {
            http.listen(&link).await;
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
                    if let Err(error) = http.send(&link, message, &outline).await {
                        link.fail(id, error);
                    }
                    Some(id)
                });
                running.insert(id, request);
            }
            None => {
                // In the modern era, closing the stream cancels.
                if let Some(request) = outline.cancels.and_then(|id| running.remove(&id)) {
                    request.abort();
                }
                let opens = outline.method == "notifications/initialized";
                // In order: a server may refuse requests before it is initialized.
                let sent = http.send(&link, message, &outline);
                let _ = tokio::time::timeout(CONNECT_TIMEOUT, sent).await;
                if opens {
                    requests.spawn(async move {
                        http.listen(&link).await;
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
            self.read_stream(link, response, outline.id, outline.method == "initialize").await;
            // Without effect if the response has come.
            return Err(link.invalid("it closed the stream without a response"));
        }
        let max = if status.is_success() { self.max_message } else { ERROR_BYTES };
        let body = read_body(response, Assembly::of(max, link, outline.id)).await;
        let body = body.map_err(|error| link.invalid(&error))?;
        let body = body.map_err(|why| link.refusal_error(why))?;
        // The ends of a long body nearly always tell which request it answers.
        let in_body = |body: &[u8]| serde_json::from_slice::<Envelope>(body).ok()?.id;
        let answers = |body: &[u8]| answered_by(body).or_else(|| in_body(body)) == outline.id;
        if outline.id.is_some() && answers(&body.bytes) {
            if outline.method == "initialize" {
                self.negotiated(&body.bytes);
            }
            link.receive(None, body).await;
        }
        match outline.id {
            // Errors are without effect if the response has come.
            Some(_) if status.is_success() => Err(link.invalid("there is no response in its body")),
            _ if !status.is_success() => Err(link.invalid(&format!("HTTP {}", status.as_u16()))),
            _ => Ok(()),
        }
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
            // Surely not processed.
            Err(error) if error.is_connect() => Err(self.gone(link, outline, &describe(&error))),
            Err(error) => Err(link.invalid(&describe(&error))),
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

    /// Remembers the version that `initialize` has negotiated.
    fn negotiated(&self, body: &[u8]) {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let version = body["result"]["protocolVersion"].as_str();
        self.session.now.lock().version =
            version.and_then(|version| HeaderValue::from_str(version).ok());
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

    /// `request`: the one that the stream answers, if any; `opens`: it is `initialize`.
    async fn read_stream(
        &self,
        link: &Link,
        response: Response,
        request: Option<i64>,
        opens: bool,
    ) {
        let bytes = response.bytes_stream().map_err(std::io::Error::other);
        let mut input = StreamReader::new(bytes);
        loop {
            match read_event(&mut input, self.max_message, link, request).await {
                Ok(Incoming::Message(message)) => {
                    if opens {
                        self.negotiated(&message.bytes);
                    }
                    link.receive(request, message).await;
                }
                Ok(Incoming::Refused { answers, why }) => {
                    link.refuse_message(answers.or(request), why);
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
                    self.read_stream(link, response, None, false).await;
                }
                // It offers no such stream, or the next request asks for a login.
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

#[derive(serde::Deserialize)]
struct Envelope {
    id: Option<i64>,
}

impl Outline {
    fn of(message: &Bytes, link: &Link) -> Self {
        match protocol::parse(message) {
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
