//! A task on the replica that runs it.

use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tokio::sync::{Notify, oneshot};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{Inner, record, scripts::Place};
use crate::{
    protocol::Fault,
    task::{TaskEnd, TaskRun},
};

/// How long to wait before a Redis that does not answer is asked again.
const RETRY: Duration = Duration::from_millis(200);

/// The tasks that this replica runs.
#[derive(Debug, Default)]
pub(super) struct Held(Mutex<HashMap<Arc<str>, Arc<Notify>>>);

impl Held {
    /// There is something to look at in the task.
    pub(super) fn tell(&self, id: &str) {
        if let Some(told) = lock(&self.0).get(id) {
            told.notify_one();
        }
    }

    /// There may be, in any.
    pub(super) fn tell_all(&self) {
        for told in lock(&self.0).values() {
            told.notify_one();
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        lock(&self.0).len()
    }
}

pub(super) struct RedisRun {
    state: Arc<State>,
    id: Arc<str>,
    _attending: AbortOnDropHandle<()>,
}

struct State {
    inner: Arc<Inner>,
    place: Place,
    waiting: Mutex<HashMap<String, oneshot::Sender<Value>>>,
    cancelled: CancellationToken,
}

impl RedisRun {
    pub(super) fn new(inner: Arc<Inner>, place: Place, id: Arc<str>, ttl: Duration) -> Self {
        let told = Arc::new(Notify::new());
        lock(&inner.held.0).insert(Arc::clone(&id), Arc::clone(&told));
        let (waiting, cancelled) = (Mutex::default(), CancellationToken::new());
        let state = Arc::new(State { inner, place, waiting, cancelled });
        let attending = Arc::clone(&state);
        let attending = tokio::spawn(async move {
            // When it expires, and nobody can see it any more, it is over as well.
            let _ = tokio::time::timeout(ttl, attending.attend(&told)).await;
            attending.stop();
        });
        Self { state, id, _attending: AbortOnDropHandle::new(attending) }
    }
}

impl State {
    /// Looks whenever it is told to, until the task is over.
    async fn attend(&self, told: &Notify) {
        loop {
            told.notified().await;
            loop {
                match self.look().await {
                    Ok(true) => break,
                    Ok(false) => return,
                    Err(_) => tokio::time::sleep(RETRY).await,
                }
            }
        }
    }

    /// Hands out the answers that have come. Says whether the task goes on.
    async fn look(&self) -> Result<bool, Fault> {
        let Some(record) = self.inner.read(&self.place).await?.filter(record::Record::runs) else {
            return Ok(false);
        };
        let mut waiting = lock(&self.waiting);
        for (key, answer) in record.answers {
            if let Some(asked) = waiting.remove(&key) {
                // Whoever asked may have given up meanwhile.
                let _ = asked.send(answer);
            }
        }
        Ok(true)
    }

    fn stop(&self) {
        lock(&self.waiting).clear();
        self.cancelled.cancel();
    }
}

#[async_trait]
impl TaskRun for RedisRun {
    fn cancelled(&self) -> &CancellationToken {
        &self.state.cancelled
    }

    async fn ask(&self, key: &str, question: &Value) -> Result<oneshot::Receiver<Value>, Fault> {
        let State { inner, place, waiting, .. } = &*self.state;
        let (answer, answered) = oneshot::channel();
        lock(waiting).insert(key.to_owned(), answer);
        let call = place.on(&inner.scripts.ask).arg(key).arg(question.to_string());
        if !inner.found(call).await? {
            // It has ended: nobody will answer.
            lock(waiting).remove(key);
        }
        Ok(answered)
    }

    async fn note(&self, message: &str) {
        let State { inner, place, .. } = &*self.state;
        // It has been logged, and is news for people only.
        let _ = inner.call(place.on(&inner.scripts.note).arg(message)).await;
    }

    async fn finish(&self, end: TaskEnd) {
        let State { inner, place, cancelled, waiting } = &*self.state;
        let end = record::end(&end);
        while inner.found(place.on(&inner.scripts.end).arg(&*end)).await.is_err() {
            tokio::select! {
                () = cancelled.cancelled() => return,
                () = tokio::time::sleep(RETRY) => {}
            }
        }
        lock(waiting).clear();
    }
}

impl Drop for RedisRun {
    fn drop(&mut self) {
        lock(&self.state.inner.held.0).remove(&self.id);
    }
}

impl fmt::Debug for RedisRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RedisRun").field(&self.id).finish()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}
