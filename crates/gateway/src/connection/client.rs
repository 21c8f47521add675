//! The client of a connection: its credentials, and how it is reached outside of calls.

use std::sync::Arc;

use larder_oauth::{Identity, Principal};
use larder_protocol::Outgoing;
use larder_server::registry::NoAnswer;
use serde_json::Value;

use super::Connection;
use crate::link::{AskedOutside, Elicitation, Link};

/// A session whose client can be asked.
#[derive(Clone)]
pub(super) struct ClientSession {
    id: Arc<str>,
    principal: Principal,
}

impl Connection {
    /// A caller of this connection, with its credentials of now.
    pub(crate) fn present(&self, identity: &Identity, session: Option<&Arc<str>>) {
        if let Some(id) = session {
            let principal = identity.principal().clone();
            *self.session.lock() = Some(ClientSession { id: Arc::clone(id), principal });
        }

        let is_new = self.account.as_ref().is_some_and(|account| account.present(identity));
        if is_new && self.life.borrow().lacks_access() {
            self.wake.notify_one();
        }
    }

    /// Wakes the calls that wait for room, because this connection may end for another one now.
    pub(crate) fn announce_free(&self) {
        self.shared.room.notify_waiters();
    }

    /// Whether this session has used it last.
    pub(crate) fn is_of(&self, session: &str) -> bool {
        self.session.lock().as_ref().is_some_and(|of| *of.id == *session)
    }

    /// The client's roots have changed: tells the upstream, if it runs.
    pub(crate) fn roots_changed(&self) {
        // An upstream that starts asks anyway.
        let Some(link) = self.life.borrow().link().cloned() else { return };
        if link.owe_roots() {
            self.shared.tasks.spawn(async move { link.roots_settled().await });
        }
    }

    /// Lets the upstream ask and notify the client while no call is running, if the client can be
    /// reached then.
    pub(super) async fn answer_outside(&self, link: &Arc<Link>) {
        let asking = link.ask_outside(|params| self.ask_outside(params));
        tokio::join!(asking, self.tell_of_visits(link));
    }

    /// Tells clients that what they were asked to do at a URL is complete.
    async fn tell_of_visits(&self, link: &Link) {
        loop {
            for Elicitation { id, session, principal, .. } in link.completed_elicitations().await {
                let Some(clients) = self.shared.clients() else { return };
                let notification = Outgoing::ElicitationComplete { id };
                if !clients.notify(&session, &principal, notification).await {
                    tracing::debug!("nobody could be told that a visit of a URL is complete");
                }
            }
        }
    }

    async fn ask_outside(&self, params: Value) -> AskedOutside {
        let session = self.session.lock().clone();
        let (Some(session), Some(clients)) = (session, self.shared.clients()) else {
            return AskedOutside::NotAsked;
        };

        let ClientSession { id, principal } = session;
        match clients.ask(&id, &principal, "roots/list", params).await {
            Ok(result) => AskedOutside::Answered(result),
            Err(NoAnswer::Refused(reason)) => AskedOutside::Refused(reason),
            Err(NoAnswer::NoConnection) => AskedOutside::NotAsked,
        }
    }

    /// Whether the session of a client still exists; `None` without a session.
    pub(super) async fn has_session(&self) -> Option<bool> {
        let ClientSession { id, principal } = self.session.lock().clone()?;
        Some(self.shared.clients()?.exists(&id, &principal).await)
    }
}
