//! [`RedisRun`]: a task, for the instance that runs it.

use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use larder_protocol::Fault;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{Notify, oneshot};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{RedisTaskStore, keys::TaskKeys, record};
use crate::task::{TaskEnd, TaskRun};

/// The delay between two attempts while Redis is unreachable.
const RETRY: Duration = Duration::from_millis(200);

/// The tasks that this instance runs, by id.
#[derive(Debug, Default)]
pub(super) struct LocalRuns(Mutex<HashMap<Arc<str>, Arc<Notify>>>);

impl LocalRuns {
    /// Makes the task's run read the task again.
    pub(super) fn wake(&self, id: &str) {
        if let Some(changed) = self.0.lock().get(id) {
            changed.notify_one();
        }
    }

    pub(super) fn wake_all(&self) {
        for changed in self.0.lock().values() {
            changed.notify_one();
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.lock().len()
    }
}

/// A task for the instance that runs it.
pub(super) struct RedisRun {
    state: Arc<RunState>,
    id: Arc<str>,
    _watcher: AbortOnDropHandle<()>,
}

/// The state that the run shares with the watcher of its task.
struct RunState {
    inner: Arc<RedisTaskStore>,
    keys: TaskKeys,
    /// The questions that wait for an answer.
    unanswered: Mutex<HashMap<String, oneshot::Sender<Value>>>,
    cancelled: CancellationToken,
}

impl RedisRun {
    pub(super) fn new(
        inner: Arc<RedisTaskStore>,
        keys: TaskKeys,
        id: Arc<str>,
        ttl: Duration,
    ) -> Self {
        let changed = Arc::new(Notify::new());
        inner.runs.0.lock().insert(Arc::clone(&id), Arc::clone(&changed));
        let state = Arc::new(RunState {
            inner,
            keys,
            unanswered: Mutex::default(),
            cancelled: CancellationToken::new(),
        });

        let watching = Arc::clone(&state);
        let watcher = tokio::spawn(async move {
            // After the time to live, the task has expired.
            let _ = tokio::time::timeout(ttl, watching.watch(&changed)).await;
            watching.stop();
        });

        Self { state, id, _watcher: AbortOnDropHandle::new(watcher) }
    }
}

impl RunState {
    /// Reads the task after each change, until it has ended.
    async fn watch(&self, changed: &Notify) {
        loop {
            changed.notified().await;
            loop {
                match self.deliver_answers().await {
                    Ok(true) => break,
                    Ok(false) => return,
                    Err(_) => tokio::time::sleep(RETRY).await,
                }
            }
        }
    }

    /// Reads the task and delivers its answers. Returns whether the task still runs.
    async fn deliver_answers(&self) -> Result<bool, Fault> {
        let record = self.inner.read(&self.keys).await?;
        let Some(record) = record.filter(record::StoredTask::is_running) else {
            return Ok(false);
        };

        let mut unanswered = self.unanswered.lock();
        for (key, answer) in record.answers {
            if let Some(sender) = unanswered.remove(&key) {
                // Fails if the asking handler has given up.
                let _ = sender.send(answer);
            }
        }

        Ok(true)
    }

    /// Cancels the run, and drops its open questions.
    fn stop(&self) {
        self.unanswered.lock().clear();
        self.cancelled.cancel();
    }
}

#[async_trait]
impl TaskRun for RedisRun {
    fn cancelled(&self) -> &CancellationToken {
        &self.state.cancelled
    }

    async fn ask(&self, key: &str, question: &Value) -> Result<oneshot::Receiver<Value>, Fault> {
        let RunState { inner, keys, unanswered, .. } = &*self.state;
        let (sender, answer) = oneshot::channel();
        unanswered.lock().insert(key.to_owned(), sender);

        let call = keys.task(&inner.scripts.ask).arg(key).arg(question.to_string());
        if !inner.succeeds(call).await? {
            // The task has ended, so no answer will come.
            unanswered.lock().remove(key);
        }
        Ok(answer)
    }

    async fn set_message(&self, message: &str) {
        let RunState { inner, keys, .. } = &*self.state;
        // A failure has been logged, and the message is only informative.
        let _ = inner.call(keys.task(&inner.scripts.set_message).arg(message)).await;
    }

    async fn finish(&self, end: TaskEnd) {
        let RunState { inner, keys, cancelled, unanswered } = &*self.state;
        let end = record::encode_end(&end);

        while inner.succeeds(keys.task(&inner.scripts.end).arg(&*end)).await.is_err() {
            tokio::select! {
                () = cancelled.cancelled() => return,
                () = tokio::time::sleep(RETRY) => {}
            }
        }

        unanswered.lock().clear();
    }
}

impl Drop for RedisRun {
    fn drop(&mut self) {
        self.state.inner.runs.0.lock().remove(&self.id);
    }
}

impl fmt::Debug for RedisRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RedisRun").field(&self.id).finish()
    }
}
