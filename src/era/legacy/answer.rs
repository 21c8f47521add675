//! Answers requests: with one message, or with a stream that can be resumed.

use std::{sync::Arc, time::Duration};

use super::Legacy;
use crate::{
    auth::Identity,
    dispatch::{Call, Reply, Running, Step},
    era::{
        Accepts, DetachableCall, Encoded, ResponseMode,
        encode::{encode_outcome, success},
    },
    handler::Asking,
    protocol::{ClientFacts, Fault, Meta, Method, Outgoing, ProtocolVersion, Request, RequestId},
    session::{Deliveries, EventId, Session, SessionError, StreamWriter},
};

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

/// A request in a session that has begun.
pub enum SessionRequest {
    /// The session answered it itself.
    Answered(Reply),
    /// A call runs.
    Started(DetachableCall),
}

impl Legacy {
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
            asking: Asking::No("The client cannot be asked: there is no session to ask it in."),
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
        let mut attended =
            match self.begin(session, &request, meta, identity, accepts.stream).await? {
                SessionRequest::Answered(reply) => {
                    let encoded = success(&request.id, reply, &self.encoder).await?;
                    return Ok(Answer::Message(encoded));
                }
                SessionRequest::Started(call) => call,
            };
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

    /// Begins a request in a session: the session answers it itself, or a call starts.
    /// `streams` says whether the transport carries more than the response.
    ///
    /// # Errors
    /// [`Fault::MethodNotFound`]; as [`Dispatcher::start`](crate::dispatch::Dispatcher::start);
    /// and those of the session's own methods.
    pub async fn begin(
        &self,
        session: &Arc<Session>,
        request: &Request,
        meta: Meta,
        identity: Identity,
        streams: bool,
    ) -> Result<SessionRequest, Fault> {
        let method = method_of(request)?;
        if let Some(reply) = self.in_session(session, method, &request.params, &identity).await? {
            return Ok(SessionRequest::Answered(reply));
        }
        let call = self.start(session, method, request, meta, identity, streams)?;
        Ok(SessionRequest::Started(call))
    }

    /// Begins a call of that session. Its client can be asked things where
    /// the transport carries more than the response. Who calls comes with the
    /// request: the session only shows that it is the same principal.
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
            Asking::Routed(self.calls.route(&session.id))
        } else {
            Asking::No(
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

fn method_of(request: &Request) -> Result<Method, Fault> {
    Method::parse(&request.method)
        .filter(|m| m.in_legacy())
        .ok_or_else(|| Fault::MethodNotFound(request.method.clone()))
}
