//! Calls under way in legacy sessions: found again to be cancelled, and run
//! to their end when the client has gone.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    dispatch::{Running, Step},
    handler::Route,
    protocol::RequestId,
};

/// Which calls run in which session. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Calls(Arc<Mutex<Table>>);

#[derive(Debug, Default)]
struct Table {
    next: u64,
    sessions: HashMap<Arc<str>, Vec<(u64, RequestId, CancellationToken)>>,
    questions: HashMap<Arc<str>, HashMap<RequestId, Asked>>,
}

/// Somebody who waits for an answer.
type Asked = oneshot::Sender<Result<Value, String>>;

impl Calls {
    /// Notes a call until the guard is dropped.
    pub(super) fn register(&self, session: &Arc<str>, id: &RequestId) -> CallGuard {
        let cancelled = CancellationToken::new();
        let mut table = self.0.lock();
        table.next += 1;
        let key = table.next;
        let calls = table.sessions.entry(Arc::clone(session)).or_default();
        calls.push((key, id.clone(), cancelled.clone()));
        CallGuard { calls: self.clone(), session: Arc::clone(session), key, cancelled }
    }

    /// Cancels the calls of that id, of which an honest client has one; says
    /// whether there is one here.
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

    /// How calls of that session ask their client.
    pub(super) fn route(&self, session: &Arc<str>) -> Arc<dyn Route> {
        Arc::new(SessionRoute { calls: self.clone(), session: Arc::clone(session) })
    }

    /// Hands an answer to whoever asked; gives it back where nobody here did.
    pub(super) fn answer(
        &self,
        session: &str,
        question: &RequestId,
        outcome: Result<Value, String>,
    ) -> Option<Result<Value, String>> {
        let mut table = self.0.lock();
        let asked = table.questions.get_mut(session).and_then(|q| q.remove(question));
        let Some(asked) = asked else { return Some(outcome) };
        // They may have given up meanwhile.
        let _ = asked.send(outcome);
        None
    }

    /// Cancels all calls of a session, and gives its questions up.
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
    calls: Calls,
    session: Arc<str>,
}

impl Route for SessionRoute {
    fn expect(&self, question: &RequestId) -> oneshot::Receiver<Result<Value, String>> {
        let (answer, expected) = oneshot::channel();
        let mut table = self.calls.0.lock();
        let questions = table.questions.entry(Arc::clone(&self.session)).or_default();
        // A session has few questions; those given up are forgotten here.
        questions.retain(|_, asked| !asked.is_closed());
        questions.insert(question.clone(), answer);
        expected
    }
}

/// A call's place among those under way.
#[derive(Debug)]
pub(super) struct CallGuard {
    calls: Calls,
    session: Arc<str>,
    key: u64,
    cancelled: CancellationToken,
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        let mut table = self.calls.0.lock();
        if let Some(calls) = table.sessions.get_mut(&self.session) {
            calls.retain(|(key, _, _)| *key != self.key);
            if calls.is_empty() {
                table.sessions.remove(&self.session);
            }
        }
    }
}

/// A call that somebody waits for. When they go, it runs on by itself:
/// a lost connection is no cancellation (2025-11-25, transports: Sending
/// Messages).
pub struct DetachableCall {
    call: Option<(Running, CallGuard)>,
    tasks: TaskTracker,
}

impl DetachableCall {
    pub(super) fn new(running: Running, guard: CallGuard, tasks: TaskTracker) -> Self {
        Self { call: Some((running, guard)), tasks }
    }

    /// The next step; nothing once it is cancelled or over.
    pub async fn next(&mut self) -> Option<Step> {
        let (running, guard) = self.call.as_mut()?;
        let step = step(running, guard).await;
        if !matches!(step, Some(Step::Message(_))) {
            self.call = None;
        }
        step
    }

    /// Stops it: nobody will hear of it.
    pub(super) fn give_up(mut self) {
        self.call = None;
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
        // Without a runtime, the process is ending, and so does the call. One
        // that is shutting down drops the call at once; it must not come back here.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let alone = async move {
                while let Some(Step::Message(_)) = step(&mut running, &guard).await {}
            };
            self.tasks.spawn_on(alone, &runtime);
        }
    }
}
