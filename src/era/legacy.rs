//! The legacy era: sessions, streams that can be resumed, and single requests
//! without a session.

use std::{sync::Arc, time::Duration};

use futures_util::StreamExt;
use rmcp::model::{ClientCapabilities, Implementation};
use serde::Deserialize;
use serde_json::Value;
use tokio_util::task::TaskTracker;

use super::{
    Encoded, Era, ResponseEncoder, ResponseMode,
    calls::{Calls, DetachableCall},
    encode::{failure, success},
    shared::audible,
};
use crate::{
    auth::{Identity, Principal},
    dispatch::{Call, Dispatcher, Reply, Running, Step},
    handler::Asking,
    protocol::{
        ClientFacts, Fault, LogLevel, Message, Meta, Method, Outgoing, Params, ProtocolVersion,
        Request, RequestId,
    },
    session::{Deliveries, EventId, Session, SessionError, Sessions, Signal, StreamWriter, Watch},
    store::{ResourceUri, Shared},
};

/// Serves legacy requests.
#[derive(Debug)]
pub struct Legacy {
    dispatcher: Arc<Dispatcher>,
    sessions: Arc<dyn Sessions>,
    calls: Calls,
    tasks: TaskTracker,
    max: ProtocolVersion,
    /// Whether what was created in a session goes when the client ends it.
    delete_resources: bool,
    /// What replies carry.
    pub encoder: ResponseEncoder,
}

/// The answer to a request in a session.
pub enum Answer {
    /// Ready: one message.
    Message(Encoded),
    /// A stream, to be resumed from any of its events.
    Stream {
        /// The id before its first event, for clients that know priming events.
        prime: Option<EventId>,
        /// What comes.
        deliveries: Deliveries,
    },
    /// The request was cancelled: there is no answer.
    Cancelled,
}

impl Legacy {
    /// Serves sessions of versions up to `max`; with `delete_resources`, what
    /// was created in a session goes when the client ends it.
    pub fn new(
        dispatcher: Arc<Dispatcher>,
        sessions: Arc<dyn Sessions>,
        max: ProtocolVersion,
        delete_resources: bool,
    ) -> Self {
        let encoder = ResponseEncoder::new(Era::Legacy, dispatcher.registry().info(), max);
        let (calls, tasks) = (Calls::default(), TaskTracker::new());
        Self { dispatcher, sessions, calls, tasks, max, delete_resources, encoder }
    }

    /// Waits until no call runs on without a client.
    pub async fn drain(&self) {
        self.tasks.close();
        self.tasks.wait().await;
        self.tasks.reopen();
    }

    /// Where sessions are kept.
    pub fn sessions(&self) -> &Arc<dyn Sessions> {
        &self.sessions
    }

    /// Begins a session: the one asked for where it is spoken here, the
    /// newest spoken otherwise (2025-11-25, lifecycle: Version Negotiation).
    ///
    /// # Errors
    /// [`Fault::InvalidParams`], [`Fault::TooMany`].
    pub async fn initialize(
        &self,
        request: &Request,
        identity: &Identity,
    ) -> Result<(Arc<Session>, Encoded), Fault> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct InitializeParams {
            protocol_version: String,
            capabilities: ClientCapabilities,
            client_info: Implementation,
        }
        self.dispatcher.authorize(Method::Initialize, &request.params, identity)?;
        let params: InitializeParams = request.params.parse()?;
        let newest = self.max.min(ProtocolVersion::LATEST_LEGACY);
        let asked = ProtocolVersion::parse(&params.protocol_version).filter(|v| *v <= newest);
        let version = asked.unwrap_or(newest);
        let client =
            ClientFacts { info: Some(params.client_info), capabilities: params.capabilities };
        let session = self.sessions.create(identity.principal().clone(), version, client).await?;
        metrics::counter!("larder_sessions_started_total").increment(1);
        let result = self.dispatcher.initialize(version);
        Ok((session, Encoded::Whole(super::encode::frame(&request.id, result)?)))
    }

    /// The caller's session of that id.
    ///
    /// # Errors
    /// [`Fault::SessionNotFound`].
    pub async fn session(&self, id: &str, principal: &Principal) -> Result<Arc<Session>, Fault> {
        Ok(self.sessions.get(id, principal).await?)
    }

    /// Ends a session and everything that runs in it.
    ///
    /// # Errors
    /// [`Fault::SessionNotFound`].
    pub async fn end(&self, id: &str, principal: &Principal) -> Result<(), Fault> {
        if !self.sessions.delete(id, principal).await? {
            return Err(Fault::SessionNotFound);
        }
        metrics::counter!("larder_sessions_ended_total").increment(1);
        self.calls.cancel_all(id);
        if self.delete_resources {
            let deleted = self.dispatcher.store().delete_of_session(&principal.owner(), id).await;
            deleted?;
        }
        Ok(())
    }

    /// Answers a request that belongs to no session, by itself.
    pub async fn answer_once(
        &self,
        request: &Request,
        meta: Meta,
        identity: Identity,
    ) -> Result<Encoded, Fault> {
        let method = method_of(request)?;
        if matches!(method, Method::Subscribe | Method::Unsubscribe | Method::SetLevel) {
            return Err(Fault::InvalidRequest(format!(
                "{} needs a session: send initialize first, then the Mcp-Session-Id that it answers with.",
                request.method
            )));
        }
        // It cannot be asked, whatever it says it can do.
        let info = meta.client.info.clone();
        let client = if meta.declares_capabilities {
            Arc::new(ClientFacts { info, ..ClientFacts::default() })
        } else {
            meta.client
        };
        let params = request.params.clone();
        let call = Call {
            method,
            params,
            progress_token: meta.progress_token,
            trace: meta.trace,
            identity,
            client,
            session: None,
            log_level: None,
            asking: Asking::Unavailable(
                "The client cannot be asked: there is no session to ask it in.",
            ),
        };
        let reply = self.dispatcher.start(call)?.outcome().await?;
        success(&request.id, reply, &self.encoder).await
    }

    /// Answers a request in a session: with one message when it is ready at
    /// once (and the client takes one), as a stream as soon as the handler has
    /// something to say or takes longer than `promote` (and the client takes a
    /// stream).
    ///
    /// # Errors
    /// The fault that the request ends in, when that is known at once.
    pub async fn answer(
        self: &Arc<Self>,
        session: &Arc<Session>,
        request: Request,
        meta: Meta,
        identity: Identity,
        accepts: Accepts,
        promote: Duration,
    ) -> Result<Answer, Fault> {
        let method = method_of(&request)?;
        if let Some(reply) = self.in_session(session, method, &request.params, &identity).await? {
            return Ok(Answer::Message(success(&request.id, reply, &self.encoder).await?));
        }
        let mut attended = self.start(session, method, &request, meta, identity, accepts.stream)?;
        let first = match ResponseMode::of(&mut attended, accepts, promote).await {
            ResponseMode::Ready(outcome) => {
                return Ok(Answer::Message(success(&request.id, outcome?, &self.encoder).await?));
            }
            ResponseMode::Stream(first) => first,
            ResponseMode::Cancelled => return Ok(Answer::Cancelled),
        };
        let opened = async {
            let writer = self.sessions.open(session, &request.id).await?;
            let start = writer.start();
            let deliveries = self.sessions.follow(session, &start).await?;
            Ok::<_, SessionError>((writer, start, deliveries))
        };
        let (writer, start, deliveries) = match opened.await {
            Ok(opened) => opened,
            Err(error) => {
                attended.give_up();
                return Err(error.into());
            }
        };
        let this = Arc::clone(self);
        let id = request.id;
        self.tasks.spawn(async move { this.write_out(attended, first, writer, &id).await });
        // Older clients read the empty data of a priming event as a broken message.
        let primes = session.version >= ProtocolVersion::V2025_11_25;
        Ok(Answer::Stream { prime: primes.then_some(start), deliveries })
    }

    /// Begins a call of that session. Its client can be asked things where
    /// the transport carries more than the response. Who calls comes with the
    /// request: the session only shows that it is the same principal.
    ///
    /// # Errors
    /// As [`Dispatcher::start`].
    pub fn start(
        &self,
        session: &Arc<Session>,
        method: Method,
        request: &Request,
        meta: Meta,
        identity: Identity,
        streams: bool,
    ) -> Result<DetachableCall, Fault> {
        let asking = if streams {
            Asking::Routed(self.calls.route(&session.id))
        } else {
            Asking::Unavailable(
                "The client cannot be asked: the call is answered without a stream to ask it on.",
            )
        };
        let call = Call {
            method,
            params: request.params.clone(),
            progress_token: meta.progress_token,
            trace: meta.trace,
            identity,
            client: Arc::clone(&session.client),
            session: self.delete_resources.then(|| Arc::clone(&session.id)),
            log_level: Some(session.log_level),
            asking,
        };
        let running: Running = self.dispatcher.start(call)?;
        let guard = self.calls.register(&session.id, &request.id);
        Ok(DetachableCall::new(running, guard, self.tasks.clone()))
    }

    /// Answers what concerns the session itself.
    pub async fn in_session(
        &self,
        session: &Session,
        method: Method,
        params: &Params,
        identity: &Identity,
    ) -> Result<Option<Reply>, Fault> {
        #[derive(Deserialize)]
        struct Subscribed {
            uri: String,
        }
        let mine = [Method::Subscribe, Method::Unsubscribe, Method::SetLevel, Method::Initialize];
        if !mine.contains(&method) {
            return Ok(None);
        }
        self.dispatcher.authorize(method, params, identity)?;
        match method {
            Method::Subscribe => {
                let Subscribed { uri } = params.parse()?;
                let name = ResourceUri::parse(&uri);
                let name = name.map_err(|e| Fault::invalid_params(e.to_string()))?;
                // A link that is not there will never be.
                let shared = self.dispatcher.store().leads_to(identity, &name).await?;
                self.sessions.subscribe(session, &uri).await?;
                if let Some(Shared { owner, uri: resource, until }) = shared {
                    let watch = Watch { reader: identity.owner().clone(), link: uri };
                    let lasting = until.since(self.dispatcher.store().now());
                    self.sessions.watch(&owner, resource.as_str(), watch, lasting).await?;
                }
            }
            Method::Unsubscribe => {
                let Subscribed { uri } = params.parse()?;
                self.sessions.unsubscribe(session, &uri).await?;
            }
            Method::SetLevel => {
                #[derive(Deserialize)]
                struct Level {
                    level: LogLevel,
                }
                let Level { level } = params.parse()?;
                self.sessions.set_log_level(session, level).await?;
            }
            Method::Initialize => {
                return Err(Fault::InvalidRequest(
                    "This session is initialized already; send initialize without Mcp-Session-Id to begin another.".into(),
                ));
            }
            _ => return Ok(None),
        }
        Ok(Some(Reply::Empty))
    }

    /// Accepts a notification of the client's.
    ///
    /// # Errors
    /// [`Fault::SessionsUnavailable`] when it cannot be handed on to where the call runs.
    pub async fn notified(
        &self,
        session: &Session,
        method: &str,
        params: &Params,
    ) -> Result<(), Fault> {
        if let Some(request) = Message::cancelled(method, params)
            && !self.calls.cancel(&session.id, &request)
        {
            self.sessions.signal(session, Signal::Cancelled(request)).await?;
        }
        Ok(())
    }

    /// Accepts the client's answer to a question of a call's.
    ///
    /// # Errors
    /// [`Fault::SessionsUnavailable`] when it cannot be handed on to where the call runs.
    pub async fn answered(
        &self,
        session: &Session,
        question: RequestId,
        outcome: Result<Value, String>,
    ) -> Result<(), Fault> {
        if let Some(outcome) = self.calls.answer(&session.id, &question, outcome) {
            self.sessions.signal(session, Signal::Answered { question, outcome }).await?;
        }
        Ok(())
    }

    /// Does here what other processes are told by the clients of the sessions
    /// that this one serves, too.
    pub async fn attend(self: Arc<Self>) {
        let mut signals = self.sessions.signals();
        while let Some((session, signal)) = signals.next().await {
            match signal {
                Signal::Cancelled(request) => {
                    self.calls.cancel(&session, &request);
                }
                Signal::Answered { question, outcome } => {
                    self.calls.answer(&session, &question, outcome);
                }
                Signal::Ended => self.calls.cancel_all(&session),
            }
        }
    }

    /// Connects to the session's own stream, or again to any of its streams.
    pub async fn connect(
        &self,
        session: &Session,
        last_event_id: Option<&str>,
        identity: &Identity,
    ) -> Result<(Option<EventId>, Deliveries), Fault> {
        let store = self.dispatcher.store();
        let Some(text) = last_event_id else {
            let (start, deliveries) = self.sessions.standalone(session).await?;
            let primes = session.version >= ProtocolVersion::V2025_11_25;
            return Ok((primes.then_some(start), audible(deliveries, identity, store)));
        };
        let unknown = || Fault::from(SessionError::NoStream(text.chars().take(80).collect()));
        let after = EventId::parse(text).ok_or_else(unknown)?;
        let deliveries = self.sessions.follow(session, &after).await?;
        Ok((None, audible(deliveries, identity, store)))
    }

    /// Writes a call's messages and its outcome to its stream.
    async fn write_out(
        &self,
        mut call: DetachableCall,
        mut first: Option<Outgoing>,
        mut writer: Box<dyn StreamWriter>,
        id: &RequestId,
    ) {
        loop {
            let step = match first.take() {
                Some(message) => Some(Step::Message(message)),
                None => call.next().await,
            };
            let is_last = !matches!(step, Some(Step::Message(_)));
            let written = match step {
                Some(Step::Message(Outgoing::Disconnect { retry })) => {
                    writer.disconnect(retry).await
                }
                Some(Step::Message(message)) => match message.encode() {
                    Some(message) => writer.append(message).await,
                    None => Ok(()),
                },
                Some(Step::Outcome(outcome)) => {
                    writer.finish(encode_outcome(id, outcome, &self.encoder).await).await
                }
                // Nothing is said of what the client has cancelled.
                None => return,
            };
            if let Err(error) = written {
                tracing::warn!(%error, "a call's stream cannot be written");
                return call.give_up();
            }
            if is_last {
                return;
            }
        }
    }
}

/// Which kinds of answer a client takes. One of them at least.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepts {
    /// A single message.
    pub message: bool,
    /// A stream of them.
    pub stream: bool,
}

/// An outcome as one message, whatever becomes of it.
pub async fn encode_outcome(
    id: &RequestId,
    outcome: Result<Reply, Fault>,
    encoder: &ResponseEncoder,
) -> bytes::Bytes {
    let encoded = match outcome {
        Ok(reply) => success(id, reply, encoder).await,
        Err(fault) => Err(fault),
    };
    let whole = match encoded {
        Ok(encoded) => encoded.whole().await.map_err(|error| {
            tracing::error!(%error, "a reply could not be read to its end");
            Fault::Unavailable(
                "The content could not be read to its end; try again shortly.".into(),
            )
        }),
        Err(fault) => Err(fault),
    };
    whole.unwrap_or_else(|fault| failure(Some(id), &fault, encoder.era()))
}

fn method_of(request: &Request) -> Result<Method, Fault> {
    Method::parse(&request.method)
        .filter(|m| m.in_legacy())
        .ok_or_else(|| Fault::MethodNotFound(request.method.clone()))
}

impl From<SessionError> for Fault {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::NotFound => Self::SessionNotFound,
            SessionError::NoStream(_) | SessionError::Trimmed(_) => {
                Self::StreamNotFound(error.to_string())
            }
            SessionError::TooMany(message) => Self::TooMany(message),
            SessionError::Unavailable => Self::SessionsUnavailable(error.to_string()),
        }
    }
}
