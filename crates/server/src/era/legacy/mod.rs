//! The legacy era: sessions, resumable streams, and single requests without a session.

mod answer;
mod client_messages;
mod session_methods;

use std::sync::Arc;

use larder_oauth::{Identity, Principal};
use larder_protocol::{ClientFacts, Fault, Method, ProtocolVersion, Request};
use larder_store::session::{Deliveries, EventId, Session, SessionError, Sessions};
use serde::Deserialize;
use serde_json::Value;
use tokio_util::task::TaskTracker;

pub use self::answer::{Answer, SessionRequest};
use super::{
    Encoded, Era, ResponseEncoder, calls::ActiveCalls, encode::frame, shared::readable_updates,
};
use crate::{dispatch::Dispatcher, registry::SessionClient};

/// The maximum size of what a client says about itself in `initialize`, in bytes.
const MAX_CLIENT_BYTES: usize = 16 * 1024;

/// Serves legacy requests.
#[derive(Debug)]
pub struct Legacy {
    dispatcher: Arc<Dispatcher>,
    sessions: Arc<dyn Sessions>,
    active_calls: ActiveCalls,
    tasks: TaskTracker,

    max: ProtocolVersion,
    /// Whether the resources that a session created are deleted when the client ends it.
    delete_resources: bool,
    /// The encoder of replies.
    pub encoder: ResponseEncoder,
}

impl Legacy {
    /// Serves sessions of protocol versions up to `max`. `delete_resources`: whether the
    /// resources that a session created are deleted when the client ends it.
    pub fn new(
        dispatcher: Arc<Dispatcher>,
        sessions: Arc<dyn Sessions>,
        max: ProtocolVersion,
        delete_resources: bool,
    ) -> Self {
        let info = dispatcher.registry().info();
        let traffic = Arc::clone(dispatcher.traffic());
        let encoder = ResponseEncoder::new(Era::Legacy, info, max, traffic);
        let active_calls = ActiveCalls::default();
        let tasks = TaskTracker::new();
        Self { dispatcher, sessions, active_calls, tasks, max, delete_resources, encoder }
    }

    /// Waits until all calls that run without a client have ended.
    pub async fn drain(&self) {
        self.tasks.close();
        self.tasks.wait().await;
        self.tasks.reopen();
    }

    /// The session store.
    pub fn sessions(&self) -> &Arc<dyn Sessions> {
        &self.sessions
    }

    /// Begins a session. Its version is the requested one if it is supported, or else the
    /// latest legacy version (2025-11-25, lifecycle: Version Negotiation).
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
            capabilities: Option<Value>,
            client_info: Option<Value>,
        }

        self.dispatcher.authorize(Method::Initialize, &request.params, identity)?;

        // The session keeps the client's description of itself, so its size is limited.
        let bytes = request.params.as_bytes().len();
        if bytes > MAX_CLIENT_BYTES {
            return Err(Fault::invalid_params(format!(
                "initialize: the params have {bytes} bytes; at most {MAX_CLIENT_BYTES} are allowed. Send shorter clientInfo and capabilities."
            )));
        }

        let params: InitializeParams = request.params.parse()?;
        let latest = self.max.min(ProtocolVersion::LATEST_LEGACY);
        let requested = ProtocolVersion::parse(&params.protocol_version).filter(|v| *v <= latest);
        let version = requested.unwrap_or(latest);

        let client = ClientFacts::of_initialize(params.client_info, params.capabilities);
        let session = self.sessions.create(identity.principal().clone(), version, client).await?;
        metrics::counter!("larder_sessions_started_total").increment(1);

        let client =
            SessionClient { identity, client: &session.client, session: Some(&session.id) };
        let result = self.dispatcher.initialize(version, &client).await;
        Ok((session, Encoded::Complete(frame(&request.id, result)?)))
    }

    /// The caller's session with that ID.
    ///
    /// # Errors
    /// [`Fault::SessionNotFound`].
    pub async fn session(&self, id: &str, principal: &Principal) -> Result<Arc<Session>, Fault> {
        Ok(self.sessions.get(id, principal).await?)
    }

    /// Ends a session and cancels its calls.
    ///
    /// # Errors
    /// [`Fault::SessionNotFound`].
    pub async fn end(&self, id: &str, principal: &Principal) -> Result<(), Fault> {
        if !self.sessions.delete(id, principal).await? {
            return Err(Fault::SessionNotFound);
        }

        metrics::counter!("larder_sessions_ended_total").increment(1);
        self.active_calls.cancel_all(id);
        self.dispatcher.registry().end_session(id);

        if self.delete_resources {
            self.dispatcher.store().delete_session_resources(&principal.owner(), id).await?;
        }
        Ok(())
    }

    /// Opens the session's own stream, or resumes any of its streams after `last_event_id`.
    /// Also returns the position of the priming event, for clients that support those: a
    /// connection may be lost before its first message, and clients resume only after an event
    /// of that connection.
    pub async fn open_stream(
        &self,
        session: &Session,
        last_event_id: Option<&str>,
        identity: &Identity,
    ) -> Result<(Option<EventId>, Deliveries), Fault> {
        let store = self.dispatcher.store();
        let (after, deliveries) = match last_event_id {
            None => self.sessions.standalone(session).await?,
            Some(text) => {
                let unknown =
                    || Fault::from(SessionError::NoStream(text.chars().take(80).collect()));
                let after = EventId::parse(text).ok_or_else(unknown)?;
                let deliveries = self.sessions.follow(session, &after).await?;
                (after, deliveries)
            }
        };

        let prime = has_priming_events(session).then_some(after);
        Ok((prime, readable_updates(deliveries, identity, store)))
    }
}

/// Whether the client supports priming events, and so can resume a stream that has no message
/// yet. Older clients report the empty data of such an event as an invalid message.
fn has_priming_events(session: &Session) -> bool {
    session.version >= ProtocolVersion::V2025_11_25
}
