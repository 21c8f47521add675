//! Notifications and responses of the client, received here or elsewhere.

use std::sync::Arc;

use futures_util::StreamExt;
use serde_json::Value;

use super::Legacy;
use crate::{
    protocol::{Fault, Message, Params, RequestId},
    session::{Session, Signal},
};

impl Legacy {
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
}
