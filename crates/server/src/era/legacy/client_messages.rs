//! Notifications and responses of the client, received by this or another instance.

use std::sync::Arc;

use futures_util::StreamExt;
use larder_protocol::{Fault, Message, Params, RequestId};
use larder_store::session::{Session, Signal};
use serde_json::Value;

use super::Legacy;

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
                Signal::Ended => {
                    self.active_calls.cancel_all(&session);
                    self.dispatcher.registry().end_session(&session);
                }
            }
        }
    }
}
