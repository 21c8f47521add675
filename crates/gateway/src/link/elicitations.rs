//! [`Elicitations`]: the visits of URLs that clients were asked for, until the upstream announces
//! that they are complete.

use std::{collections::VecDeque, sync::Arc};

use larder_oauth::Principal;
use larder_protocol::ErrorResponse;
use larder_server::handler::{Scope, can_be_asked};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{CallEvent, Link};
use crate::received::{visit_of_question, visits_of_error};

/// The most visits of one upstream that are remembered; the oldest one is forgotten first. As many
/// may wait until their client is told.
const MAX_OPEN: usize = 256;
/// The longest ID of a visit that is remembered, in bytes.
const MAX_ID_BYTES: usize = 1 << 10;

/// The visits that clients were asked for.
#[derive(Default)]
pub(super) struct Elicitations {
    open: Mutex<VecDeque<Elicitation>>,
    /// The visits that are complete, and whose call has ended.
    completed: Mutex<Vec<Elicitation>>,
    /// Wakes the task that tells the clients of these.
    wake: Notify,
}

/// A visit that the client of a session was asked for.
pub(crate) struct Elicitation {
    /// The upstream's ID for it.
    pub(crate) id: String,
    /// The session of the client.
    pub(crate) session: Arc<str>,
    /// The principal of the session.
    pub(crate) principal: Principal,
    /// The request to the upstream during which the client was asked.
    request: i64,
}

impl Elicitations {
    fn remember(&self, id: &str, request: i64, scope: &Scope) {
        let url_question = json!({ "mode": "url" });
        let has_urls =
            can_be_asked(&scope.client.capabilities, "elicitation/create", &url_question);
        let session = scope.client_session.as_ref().filter(|_| has_urls);
        let Some(session) = session.filter(|_| id.len() <= MAX_ID_BYTES) else { return };

        let mut open = self.open.lock();
        open.retain(|known| known.id != id);
        if open.len() >= MAX_OPEN {
            open.pop_front();
        }
        open.push_back(Elicitation {
            id: id.to_owned(),
            session: Arc::clone(session),
            principal: scope.identity.principal().clone(),
            request,
        });
    }

    fn take(&self, id: &str) -> Option<Elicitation> {
        let mut open = self.open.lock();
        let index = open.iter().position(|known| known.id == id)?;
        open.remove(index)
    }
}

impl Link {
    /// A client is asked a question during a request, which may be to visit a URL.
    pub(crate) fn note_question(&self, params: &Value, request: i64, scope: &Scope) {
        if let Some(id) = visit_of_question(params) {
            self.elicitations.remember(id, request, scope);
        }
    }

    /// A request has ended with an error, which may name URLs to visit.
    pub(crate) fn note_error(&self, error: &ErrorResponse, request: i64, scope: &Scope) {
        for id in visits_of_error(error).take(MAX_OPEN) {
            self.elicitations.remember(id, request, scope);
        }
    }

    /// The upstream has announced that a visit is complete: tells the client that was asked for it,
    /// on the stream of the call if that still runs.
    pub(super) fn elicitation_completed(&self, id: &str) {
        let Some(completed) = self.elicitations.take(id) else { return };

        let running = self.state.lock();
        if let Some(call) = running.running.get(&completed.request)
            && call.events.try_send(CallEvent::ElicitationCompleted(completed.id.clone())).is_ok()
        {
            return;
        }
        drop(running);

        let mut waiting = self.elicitations.completed.lock();
        if waiting.len() < MAX_OPEN {
            waiting.push(completed);
        }
        drop(waiting);
        self.elicitations.wake.notify_one();
    }

    /// Waits for visits that are complete, and whose calls have ended.
    pub(crate) async fn completed_elicitations(&self) -> Vec<Elicitation> {
        loop {
            let completed = std::mem::take(&mut *self.elicitations.completed.lock());
            if !completed.is_empty() {
                return completed;
            }
            self.elicitations.wake.notified().await;
        }
    }
}
