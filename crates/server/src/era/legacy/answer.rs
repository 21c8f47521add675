//! Answers requests with one message or with a resumable stream.

use std::{
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

use futures_util::StreamExt;
use larder_oauth::Identity;
use larder_protocol::{ClientFacts, Fault, Meta, Method, Outgoing, Request, RequestId};
use larder_runtime::held::Held;
use larder_store::session::{Deliveries, EventId, Retention, Session, SessionError, StreamWriter};

use super::{Legacy, has_priming_events};
use crate::{
    dispatch::{Call, Reader, Reply, Running, Step},
    era::{
        Accepts, DetachableCall, Encoded, ResponseMode,
        encode::{encode_outcome, encode_reply},
    },
    handler::AskMode,
};

/// The answer to a request in a session.
pub enum Answer {
    /// One message.
    Message(Encoded),
    /// A stream that can be resumed after any of its events.
    Stream {
        /// The event ID before the first event, for clients that support priming events.
        prime: Option<EventId>,
        /// The events.
        deliveries: Deliveries,
    },
    /// No answer: the request was cancelled.
    Cancelled,
}

/// The result of starting a request in a session.
pub enum SessionRequest {
    /// The session answered the request itself.
    Answered(Reply),
    /// A call runs.
    Started(DetachableCall),
}

/// The largest answer of `resources/read` that is kept for resumption, in bytes. The client can
/// read again what is larger.
const MAX_KEPT_READ: usize = 256 * 1024;

/// The memory of a stream's last message, held until the response with the stream is sent or
/// dropped: a store elsewhere brings the message back into memory.
type StreamMemory = OnceLock<Arc<Held>>;

/// How the stream of a call is written.
#[derive(Debug, Clone, Copy)]
struct StreamRules {
    /// Whether the client can resume the stream before its first message, so that it may be
    /// disconnected.
    primed: bool,
    /// Whether the call reads a resource.
    is_read: bool,
}

impl StreamRules {
    fn retention(self, bytes: usize) -> Retention {
        if self.is_read && bytes > MAX_KEPT_READ { Retention::NotKept } else { Retention::Kept }
    }
}

impl Legacy {
    /// Answers a request outside of a session with one message.
    ///
    /// # Errors
    /// Those of [`Self::start_single`], and the request's fault.
    pub async fn answer_single(
        &self,
        request: &Request,
        meta: Meta,
        identity: Identity,
    ) -> Result<Encoded, Fault> {
        let reply = self.start_single(request, meta, identity)?.outcome().await?;
        encode_reply(&request.id, reply, &self.encoder).await
    }

    /// Starts a request outside of a session. The call lives as long as the client waits.
    ///
    /// # Errors
    /// [`Fault::MethodNotFound`], [`Fault::InvalidRequest`] for a method that needs a session,
    /// and those of [`Dispatcher::start`](crate::dispatch::Dispatcher::start).
    pub fn start_single(
        &self,
        request: &Request,
        meta: Meta,
        identity: Identity,
    ) -> Result<Running, Fault> {
        let method = parse_method(request)?;

        if matches!(method, Method::Subscribe | Method::Unsubscribe | Method::SetLevel) {
            return Err(Fault::InvalidRequest(format!(
                "{} needs a session. Send initialize first, then the Mcp-Session-Id header from its response.",
                request.method
            )));
        }

        // Drops the declared capabilities: the client cannot be asked without a session.
        let info = meta.client.info.clone();
        let client = if meta.declares_capabilities {
            Arc::new(ClientFacts { info, ..ClientFacts::default() })
        } else {
            meta.client
        };

        let params = request.params.clone();
        let validity = identity.validity();
        let call = Call {
            method,
            params,
            progress_token: meta.progress_token,
            trace: meta.trace,
            identity,
            client,
            reader: Reader::Model,
            session: None,
            client_session: None,
            log_level: None,
            asking: AskMode::Unavailable("The client cannot be asked without a session."),
            validity,
        };

        self.dispatcher.start(call)
    }

    /// Answers a request in a session. The answer is one message if the outcome comes
    /// before `promote_after` and before any message of the call, or else a stream. The
    /// client gets only what it accepts.
    ///
    /// # Errors
    /// The request's fault, if it is known before a stream begins.
    pub async fn answer(
        self: &Arc<Self>,
        session: &Arc<Session>,
        request: Request,
        meta: Meta,
        identity: Identity,
        accepts: Accepts,
        promote_after: Duration,
    ) -> Result<Answer, Fault> {
        let mut call = match self.begin(session, &request, meta, identity, accepts.stream).await? {
            SessionRequest::Answered(reply) => {
                let encoded = encode_reply(&request.id, reply, &self.encoder).await?;
                return Ok(Answer::Message(encoded));
            }
            SessionRequest::Started(call) => call,
        };

        let first = match ResponseMode::decide(&mut call, accepts, promote_after).await {
            ResponseMode::Single(outcome) => {
                return Ok(Answer::Message(
                    encode_reply(&request.id, outcome?, &self.encoder).await?,
                ));
            }
            ResponseMode::Stream(first) => first,
            ResponseMode::Cancelled => return Ok(Answer::Cancelled),
        };

        let stream = async {
            let writer = self.sessions.open(session, &request.id).await?;
            let start = writer.start();
            let deliveries = self.sessions.follow(session, &start).await?;
            Ok::<_, SessionError>((writer, start, deliveries))
        };
        let (writer, start, deliveries) = match stream.await {
            Ok(stream) => stream,
            Err(error) => {
                call.cancel();
                return Err(error.into());
            }
        };

        let sent = Arc::new(StreamMemory::new());
        let last = Arc::downgrade(&sent);
        let deliveries = deliveries.inspect(move |_| _ = &sent).boxed();

        let legacy = Arc::clone(self);
        let id = request.id;
        let primed = has_priming_events(session);
        let is_read = request.method == Method::ReadResource.as_str();
        let rules = StreamRules { primed, is_read };
        self.tasks
            .spawn(async move { legacy.write_stream(call, first, writer, &id, rules, last).await });
        Ok(Answer::Stream { prime: primed.then_some(start), deliveries })
    }

    /// Starts a request in a session. The session answers it itself, or a call starts.
    /// `streams`: whether the transport can carry more than the response.
    ///
    /// # Errors
    /// [`Fault::MethodNotFound`], those of
    /// [`Dispatcher::start`](crate::dispatch::Dispatcher::start), and those of the
    /// session's own methods.
    pub async fn begin(
        &self,
        session: &Arc<Session>,
        request: &Request,
        meta: Meta,
        identity: Identity,
        streams: bool,
    ) -> Result<SessionRequest, Fault> {
        let method = parse_method(request)?;
        if let Some(reply) =
            self.answer_in_session(session, method, &request.params, &identity).await?
        {
            return Ok(SessionRequest::Answered(reply));
        }

        let call = self.start(session, method, request, meta, identity, streams)?;
        Ok(SessionRequest::Started(call))
    }

    /// Starts a call. The caller's identity comes with the request; the session only proves
    /// that it is the same principal.
    fn start(
        &self,
        session: &Arc<Session>,
        method: Method,
        request: &Request,
        meta: Meta,
        identity: Identity,
        streams: bool,
    ) -> Result<DetachableCall, Fault> {
        let asking = if streams {
            AskMode::OnStream(self.active_calls.route(&session.id))
        } else {
            AskMode::Unavailable(
                "The client cannot be asked: the response to this call is not a stream.",
            )
        };

        let call = Call {
            method,
            params: request.params.clone(),
            progress_token: meta.progress_token,
            trace: meta.trace,
            identity,
            client: Arc::clone(&session.client),
            reader: Reader::Model,
            session: self.delete_resources.then(|| Arc::clone(&session.id)),
            client_session: Some(Arc::clone(&session.id)),
            log_level: Some(session.log_level),
            asking,
            // A token's end closes the connection, and the call continues.
            validity: None,
        };

        let running = self.dispatcher.start(call)?;
        let guard = self.active_calls.register(&session.id, &request.id);
        Ok(DetachableCall::new(running, guard, self.tasks.clone()))
    }

    /// Writes a call's messages and its outcome to its stream.
    async fn write_stream(
        &self,
        mut call: DetachableCall,
        mut first: Option<Outgoing>,
        mut writer: Box<dyn StreamWriter>,
        id: &RequestId,
        rules: StreamRules,
        response: Weak<StreamMemory>,
    ) {
        loop {
            let step = match first.take() {
                Some(message) => Some(Step::Message(message)),
                None => call.next().await,
            };

            let is_last = !matches!(step, Some(Step::Message(_)));
            let written = match step {
                Some(Step::Message(Outgoing::Disconnect { retry })) if rules.primed => {
                    writer.disconnect(retry).await
                }
                Some(Step::Message(message)) => match message.encode() {
                    Some(message) => writer.append(message).await,
                    None => Ok(()),
                },
                Some(Step::Outcome(outcome)) => {
                    let answer = encode_outcome(id, outcome, &self.encoder).await;
                    let retention = rules.retention(answer.as_bytes().len());
                    if let Some(response) = response.upgrade() {
                        // Set once: a call has one outcome.
                        let _ = response.set(Arc::clone(answer.held()));
                    }
                    writer.finish(answer, retention).await
                }
                // The client has cancelled the call and expects no response.
                None => return,
            };

            if let Err(error) = written {
                tracing::warn!(%error, "the stream of a call cannot be written");
                return call.cancel();
            }

            if is_last {
                return;
            }
        }
    }
}

fn parse_method(request: &Request) -> Result<Method, Fault> {
    Method::parse(&request.method)
        .filter(|m| m.in_legacy())
        .ok_or_else(|| Fault::MethodNotFound(request.method.clone()))
}
