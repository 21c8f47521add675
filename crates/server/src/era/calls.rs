//! Running calls of legacy sessions. They can be cancelled by ID, and they continue without
//! their client.

use std::{
    collections::{BTreeMap, HashMap, btree_map::Entry},
    sync::Arc,
};

use larder_protocol::RequestId;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    dispatch::{Running, Step},
    handler::ResponseRouter,
};

/// The running calls and open questions of each session. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct ActiveCalls(Arc<Mutex<CallTable>>);

#[derive(Debug, Default)]
struct CallTable {
    next: u64,
    /// In a tree, because hashing a session's ID takes longer than comparing a few.
    sessions: BTreeMap<Arc<str>, Vec<(u64, RequestId, CancellationToken)>>,
    questions: HashMap<Arc<str>, HashMap<RequestId, AnswerSender>>,
}

impl CallTable {
    /// Removes the questions of a session that no handler waits for. A session has few
    /// questions.
    fn drop_closed_questions(&mut self, session: &str) {
        let Some(questions) = self.questions.get_mut(session) else { return };
        questions.retain(|_, sender| !sender.is_closed());
        if questions.is_empty() {
            self.questions.remove(session);
        }
    }
}

/// Sends the client's answer to the handler that asked.
type AnswerSender = oneshot::Sender<Result<Value, String>>;

impl ActiveCalls {
    /// Registers a call until the guard is dropped.
    pub(super) fn register(&self, session: &Arc<str>, id: &RequestId) -> CallGuard {
        let cancelled = CancellationToken::new();
        let mut table = self.0.lock();
        table.next += 1;
        let key = table.next;
        let calls = table.sessions.entry(Arc::clone(session)).or_default();
        calls.push((key, id.clone(), cancelled.clone()));

        CallGuard { calls: self.clone(), session: Arc::clone(session), key, cancelled }
    }

    /// Cancels the calls with that ID and returns whether there is one on this instance. A
    /// well-behaved client has at most one.
    pub(super) fn cancel(&self, session: &str, id: &RequestId) -> bool {
        let mut found = false;
        let table = self.0.lock();
        for (_, running, cancelled) in table.sessions.get(session).into_iter().flatten() {
            if running == id {
                cancelled.cancel();
                found = true;
            }
        }
        found
    }

    /// The route by which calls of the session ask their client.
    pub(super) fn route(&self, session: &Arc<str>) -> Arc<dyn ResponseRouter> {
        Arc::new(SessionRoute { calls: self.clone(), session: Arc::clone(session) })
    }

    /// Passes an answer to the handler that asked. Returns the answer if no handler on this
    /// instance asked.
    pub(super) fn answer(
        &self,
        session: &str,
        question: &RequestId,
        outcome: Result<Value, String>,
    ) -> Option<Result<Value, String>> {
        let mut table = self.0.lock();
        let sender = table.questions.get_mut(session).and_then(|q| q.remove(question));
        table.drop_closed_questions(session);

        let Some(sender) = sender else { return Some(outcome) };
        // The handler may have ended.
        let _ = sender.send(outcome);
        None
    }

    /// Cancels all calls of a session and drops its open questions.
    pub(super) fn cancel_all(&self, session: &str) {
        let mut table = self.0.lock();
        table.questions.remove(session);

        for (_, _, cancelled) in table.sessions.get(session).into_iter().flatten() {
            cancelled.cancel();
        }
    }
}

/// Routes answers within one session.
struct SessionRoute {
    calls: ActiveCalls,
    session: Arc<str>,
}

impl ResponseRouter for SessionRoute {
    fn expect(&self, question: &RequestId) -> oneshot::Receiver<Result<Value, String>> {
        let (sender, receiver) = oneshot::channel();

        let mut table = self.calls.0.lock();
        table.drop_closed_questions(&self.session);
        let questions = table.questions.entry(Arc::clone(&self.session)).or_default();
        questions.insert(question.clone(), sender);
        receiver
    }
}

/// The registration of a running call.
#[derive(Debug)]
pub(super) struct CallGuard {
    calls: ActiveCalls,
    session: Arc<str>,
    key: u64,
    cancelled: CancellationToken,
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        let mut table = self.calls.0.lock();
        if let Entry::Occupied(mut calls) = table.sessions.entry(Arc::clone(&self.session)) {
            calls.get_mut().retain(|(key, _, _)| *key != self.key);
            if calls.get().is_empty() {
                calls.remove();
            }
        }

        table.drop_closed_questions(&self.session);
    }
}

/// A call that continues without its client when it is dropped: a lost connection is no
/// cancellation (2025-11-25, transports: Sending Messages).
pub struct DetachableCall {
    call: Option<(Running, CallGuard)>,
    tasks: TaskTracker,
}

impl DetachableCall {
    pub(super) fn new(running: Running, guard: CallGuard, tasks: TaskTracker) -> Self {
        Self { call: Some((running, guard)), tasks }
    }

    /// The next step. None once the call is cancelled or has ended.
    pub async fn next(&mut self) -> Option<Step> {
        let (running, guard) = self.call.as_mut()?;
        let step = step(running, guard).await;

        match &step {
            Some(Step::Message(_)) => {}
            Some(Step::Outcome(_)) => self.call = None,
            None => self.cancel_now(),
        }
        step
    }

    /// Stops the call.
    pub(super) fn cancel(mut self) {
        self.cancel_now();
    }

    fn cancel_now(&mut self) {
        if let Some((running, _guard)) = self.call.take() {
            running.cancel();
        }
    }
}

async fn step(running: &mut Running, guard: &CallGuard) -> Option<Step> {
    tokio::select! {
        biased;
        () = guard.cancelled.cancelled() => None,
        step = running.next() => step,
    }
}

impl Drop for DetachableCall {
    fn drop(&mut self) {
        let Some((mut running, guard)) = self.call.take() else { return };

        // A process without a runtime is ending, and the call ends with it. A runtime
        // that is shutting down drops the call at once; the call must not be spawned again.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let detached = async move {
                loop {
                    match step(&mut running, &guard).await {
                        Some(Step::Message(_)) => {}
                        Some(Step::Outcome(_)) => return,
                        None => return running.cancel(),
                    }
                }
            };

            self.tasks.spawn_on(detached, &runtime);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_session_whose_calls_have_ended_leaves_no_question() {
        let (calls, session): (_, Arc<str>) = (ActiveCalls::default(), "s".into());
        let [call, question] = [1, 2].map(RequestId::Number);
        let is_empty = || calls.0.lock().questions.is_empty();

        let guard = calls.register(&session, &call);
        let unanswered = calls.route(&session).expect(&question);
        drop(unanswered);
        assert!(!is_empty());
        drop(guard);
        assert!(is_empty());

        let _guard = calls.register(&session, &call);
        let _answered = calls.route(&session).expect(&question);
        assert!(calls.answer("s", &question, Ok(json!({}))).is_none());
        assert!(is_empty());
    }
}
