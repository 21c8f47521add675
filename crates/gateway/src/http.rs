//! An upstream over Streamable HTTP: each message is a POST, answered by one
//! JSON message or by a stream of events.

mod outline;
mod redirect;
mod refused;
mod response;
mod session;
mod stream;

use std::{collections::HashMap, sync::Arc, time::Duration};

use bytes::Bytes;
use larder_network::is_loopback;
use larder_oauth::Identity;
use larder_protocol::ProtocolVersion;
use parking_lot::Mutex;
use reqwest::{
    Client, Method as Verb, RequestBuilder, Response, Url,
    header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
    redirect::Policy,
};
use tokio::{
    sync::mpsc,
    task::{AbortHandle, JoinSet},
};
use tokio_util::sync::CancellationToken;

use self::{
    outline::Outline,
    refused::{RefusedRequest, is_session_error},
    response::{Unreceived, describe, encoding, is_stream, read_body},
};
use super::{
    account::Account,
    error::UpstreamError,
    guarded::{PANICKED, guarded},
    link::{Link, MessageSource},
    login::Refused,
    message::{Assembly, sse::Position},
    mirrored::header_text,
    remote_session::{RemoteSession, Session},
    settings::Remote,
};

const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";

/// How long an attempt to connect may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The requests to one upstream.
struct Http {
    client: Client,
    /// The URL of requests, after the permanent redirects so far.
    url: Mutex<Url>,
    headers: HeaderMap,
    max_message: usize,

    session: Arc<RemoteSession>,
    /// The callers' tokens, if the server asks for them.
    account: Option<Arc<Account>>,
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
    let mut client = Client::builder().redirect(Policy::none()).connect_timeout(CONNECT_TIMEOUT);
    if let Some(tls) = &remote.tls {
        client = client.tls_backend_preconfigured(tls.config());
    }
    let url = Url::parse(&remote.url).map_err(|error| format!("its URL is not valid: {error}"))?;
    // No proxy can reach this machine's own addresses, and none may see what is sent to them.
    if is_loopback(&url) {
        client = client.no_proxy();
    }
    let client = client.build().map_err(|error| describe(&error))?;

    let headers = headers_of(remote)?;
    let http =
        Arc::new(Http { client, url: Mutex::new(url), headers, max_message, session, account });
    Ok(serve(http, link, outgoing, stop))
}

/// The headers of each request.
///
/// # Errors
/// A header that cannot be sent.
fn headers_of(remote: &Remote) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    // Without it, a server may choose any encoding (RFC 9110, section 12.5.3).
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    for (name, value) in &remote.headers {
        let invalid = || format!("the header {name} is not valid");
        let mut value = HeaderValue::try_from(value).map_err(|_| invalid())?;
        value.set_sensitive(true);
        headers.insert(HeaderName::try_from(name).map_err(|_| invalid())?, value);
    }

    Ok(headers)
}

async fn serve(
    http: Arc<Http>,
    link: Arc<Link>,
    mut outgoing: mpsc::Receiver<Bytes>,
    stop: CancellationToken,
) {
    let mut requests = Requests { http, link, tasks: JoinSet::new(), running: HashMap::new() };

    // The session of an earlier link goes on, so its stream is opened at once.
    if requests.http.session.now.lock().id.is_some() {
        requests.listen();
    }

    loop {
        let message = tokio::select! {
            message = outgoing.recv() => message,
            Some(ended) = requests.tasks.join_next() => {
                if let Ok(Some(id)) = ended {
                    requests.running.remove(&id);
                }
                continue;
            }
            () = stop.cancelled() => break,
            () = requests.link.ended() => break,
        };
        let Some(message) = message else { break };

        let outline = Outline::of(&message, &requests.link);
        match outline.id {
            Some(id) => requests.send(id, message, outline),
            None => requests.notify(message, outline).await,
        }
    }

    let Requests { http, link, mut tasks, .. } = requests;
    tasks.shutdown().await;
    link.end("stopped");
    http.end_session().await;
}

/// The HTTP requests of a link.
struct Requests {
    http: Arc<Http>,
    link: Arc<Link>,
    /// Tasks, which return the ID of their message if it is a request.
    tasks: JoinSet<Option<i64>>,
    /// The tasks of requests, by their IDs.
    running: HashMap<i64, AbortHandle>,
}

impl Requests {
    /// Opens the stream of the session.
    fn listen(&mut self) {
        let http = Arc::clone(&self.http);
        let link = Arc::clone(&self.link);
        self.tasks.spawn(async move {
            let _ = guarded(link.name(), http.listen(&link)).await;
            None
        });
    }

    /// Sends a request, beside others.
    fn send(&mut self, id: i64, message: Bytes, outline: Outline) {
        let http = Arc::clone(&self.http);
        let link = Arc::clone(&self.link);
        let request = self.tasks.spawn(async move {
            let sending = Box::pin(http.send(&link, message, &outline));
            let sent = guarded(link.name(), sending).await;
            let sent = sent.unwrap_or_else(|_| Err(link.no_answer(PANICKED)));
            if let Err(error) = sent {
                link.fail(id, error);
            }
            Some(id)
        });
        self.running.insert(id, request);
    }

    /// Sends a notification. They are sent in order: a server may refuse requests before it is
    /// initialized.
    async fn notify(&mut self, message: Bytes, outline: Outline) {
        // Closing the stream cancels the request in the modern era.
        if let Some(request) = outline.cancels.and_then(|id| self.running.remove(&id)) {
            request.abort();
        }

        let sent = self.http.send(&self.link, message, &outline);
        let _ = tokio::time::timeout(CONNECT_TIMEOUT, sent).await;

        if outline.method == "notifications/initialized" {
            self.listen();
        }
    }
}

/// Why a request has no response.
enum Unsent {
    /// The caller has no access.
    NoAccess(UpstreamError),
    /// The connection has failed.
    Failed(reqwest::Error),
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

        if !response.status().is_success() {
            let refused = RefusedRequest::read(response).await;
            if self.has_lost(&session, &refused, outline).await {
                let reason = format!("its session ended ({})", refused.summary());
                return Err(self.gone(link, outline, &reason));
            }
            return Err(refused.into_error(link));
        }
        if let Some(encoding) = encoding(&response) {
            let problem = format!("its response has the Content-Encoding {encoding}");
            return Err(link.no_answer(&problem));
        }

        if outline.method == "initialize" {
            self.session.now.lock().id = response.headers().get(SESSION).cloned();
        }

        if is_stream(&response) {
            let mut position = Position::default();
            self.read_stream(link, response, outline.id, &mut position).await;
            if let Some(id) = outline.id {
                let session = self.session.now.lock().clone();
                self.resume(link, id, outline.caller.as_ref(), &session, &mut position).await;
            }
            // The error has no effect if the response has come.
            return Err(link.unanswered(outline.id, "it closed the stream without a response"));
        }

        let body = read_body(response, Assembly::of(self.max_message, link, outline.id)).await;
        let body = body.map_err(|unreceived| match unreceived {
            Unreceived::Refused(why) => link.refusal_error(why),
            Unreceived::Lost(reason) => link.no_answer(&reason),
        })?;
        let Some(id) = outline.id else { return Ok(()) };
        if session.id.is_some()
            && is_session_error(&body.bytes)
            && !self.knows(&session, outline).await
        {
            return Err(self.gone(link, outline, "its session ended"));
        }

        link.receive(MessageSource::Body(id), body).await;
        // The error has no effect if the response has come.
        Err(link.unanswered(outline.id, "there is no response in its body"))
    }

    /// The response to a message.
    async fn post(
        &self,
        link: &Link,
        session: &Session,
        message: Bytes,
        outline: &Outline,
    ) -> Result<Response, UpstreamError> {
        let response = self.send_with_token(outline.caller.as_ref(), |url, token| {
            let mut request = self.request(Verb::POST, url, session, token);
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

        response.await.map_err(|unsent| match unsent {
            Unsent::NoAccess(error) => error,
            // No connection was made, so the server has not processed the request.
            Unsent::Failed(error) if error.is_connect() => {
                self.gone(link, outline, &describe(&error))
            }
            Unsent::Failed(error) => link.no_answer(&describe(&error)),
        })
    }

    /// Sends a request with the token of the caller; `None` for one of Larder's own. If the token
    /// is refused, it is refreshed once.
    ///
    /// # Errors
    /// The caller has no access, or the connection fails. Without a token that the caller should
    /// have, nothing is sent.
    async fn send_with_token(
        &self,
        caller: Option<&Identity>,
        request: impl Fn(&Url, Option<&str>) -> RequestBuilder,
    ) -> Result<Response, Unsent> {
        let Some(account) = &self.account else {
            return self.send_within_origin(|url| request(url, None)).await.map_err(Unsent::Failed);
        };

        let mut may_retry = true;
        loop {
            let token = account.token(caller).await.map_err(Unsent::NoAccess)?;
            let sent = self.send_within_origin(|url| request(url, token.as_deref())).await;
            let response = sent.map_err(Unsent::Failed)?;
            let status = response.status();
            if !matches!(status.as_u16(), 401 | 403) {
                return Ok(response);
            }

            let headers = response.headers();
            let refused = account.refused(status, headers, token.as_deref(), caller, may_retry);
            match refused.await.map_err(Unsent::NoAccess)? {
                Refused::Retry => may_retry = false,
                Refused::Login(login) => {
                    return Err(Unsent::NoAccess(UpstreamError::Login(login)));
                }
                Refused::Other => return Ok(response),
            }
        }
    }

    /// A request with the headers of the settings and of the session.
    fn request(
        &self,
        verb: Verb,
        url: &Url,
        session: &Session,
        token: Option<&str>,
    ) -> RequestBuilder {
        let mut request = self.client.request(verb, url.clone()).headers(self.headers.clone());
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
}

#[cfg(test)]
mod tests;
