//! Notifications and responses of the client, received by this or another instance.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::StreamExt;
use larder_oauth::Principal;
use larder_protocol::{Fault, Message, Outgoing, Params, RequestId};
use larder_store::session::{Session, Signal};
use serde_json::Value;

use super::Legacy;
use crate::registry::{NoAnswer, SessionClients};

const ROOTS_CHANGED: &str = "notifications/roots/list_changed";

impl Legacy {
    /// Handles a notification of the client.
    ///
    /// # Errors
    /// [`Fault::SessionsUnavailable`]: the notification cannot be passed to the instance
    /// that runs the call.
    pub async fn handle_notification(
        &self,
        session: &Session,
        method: &str,
        params: &Params,
    ) -> Result<(), Fault> {
        if let Some(request) = Message::cancelled(method, params)
            && !self.active_calls.cancel(&session.id, &request)
        {
            self.sessions.signal(session, Signal::Cancelled(request)).await?;
        }

        if method == ROOTS_CHANGED && !self.dispatcher.registry().roots_changed(&session.id) {
            self.sessions.signal(session, Signal::RootsChanged).await?;
        }
        Ok(())
    }

    /// Handles the client's answer to a question of a call.
    ///
    /// # Errors
    /// [`Fault::SessionsUnavailable`]: the answer cannot be passed to the instance that
    /// runs the call.
    pub async fn handle_response(
        &self,
        session: &Session,
        question: RequestId,
        outcome: Result<Value, String>,
    ) -> Result<(), Fault> {
        if let Some(outcome) = self.active_calls.answer(&session.id, &question, outcome) {
            self.sessions.signal(session, Signal::Answered { question, outcome }).await?;
        }
        Ok(())
    }

    /// Handles what clients send to other instances about calls that run on this one.
    pub async fn handle_signals(self: Arc<Self>) {
        let mut signals = self.sessions.signals();
        while let Some((session, signal)) = signals.next().await {
            match signal {
                Signal::Cancelled(request) => {
                    self.active_calls.cancel(&session, &request);
                }
                Signal::Answered { question, outcome } => {
                    self.active_calls.answer(&session, &question, outcome);
                }
                Signal::RootsChanged => {
                    self.dispatcher.registry().roots_changed(&session);
                }
                Signal::Ended => {
                    self.active_calls.cancel_all(&session);
                    self.dispatcher.registry().end_session(&session);
                }
            }
        }
    }
}

#[async_trait]
impl SessionClients for Legacy {
    async fn ask(
        &self,
        session: &str,
        principal: &Principal,
        method: &'static str,
        params: Value,
    ) -> Result<Value, NoAnswer> {
        let ended = || NoAnswer::Refused("The session has ended.".into());
        let session = self.sessions.get(session, principal).await.map_err(|_| ended())?;

        let id = RequestId::String(format!("larder-{}", self.dispatcher.new_id()).into());
        let answer = self.active_calls.route(&session.id).expect(&id);
        let Some(message) = (Outgoing::Ask { id, method, params }).encode() else {
            return Err(NoAnswer::NoConnection);
        };

        match self.sessions.send_now(&session, message).await {
            Ok(true) => {}
            Ok(false) => return Err(NoAnswer::NoConnection),
            Err(_) => return Err(ended()),
        }
        match answer.await {
            Ok(answer) => answer.map_err(NoAnswer::Refused),
            Err(_) => Err(ended()),
        }
    }

    async fn notify(&self, session: &str, principal: &Principal, notification: Outgoing) -> bool {
        let Ok(session) = self.sessions.get(session, principal).await else { return false };
        let Some(message) = notification.encode() else { return false };
        self.sessions.send_now(&session, message).await.unwrap_or(false)
    }

    async fn exists(&self, session: &str, principal: &Principal) -> bool {
        self.sessions.exists(session, principal).await.unwrap_or(true)
    }
}
