//! The legacy era: sessions, streams that can be resumed, and single requests
//! without a session.

mod answer;
mod client_messages;
mod session_methods;

use std::sync::Arc;

use rmcp::model::{ClientCapabilities, Implementation};
use serde::Deserialize;
use tokio_util::task::TaskTracker;

pub use self::answer::{Answer, SessionRequest};
use super::{Encoded, Era, ResponseEncoder, calls::Calls, encode::frame, shared::audible};
use crate::{
    auth::{Identity, Principal},
    dispatch::Dispatcher,
    protocol::{ClientFacts, Fault, Method, ProtocolVersion, Request},
    session::{Deliveries, EventId, Session, SessionError, Sessions},
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
        Ok((session, Encoded::Whole(frame(&request.id, result)?)))
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
