//! [`MemoryTasks`]: tasks in the memory of this process.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use larder_identity::Owner;
use larder_protocol::Fault;
use larder_runtime::{
    clock::{Clock, Timestamp},
    random::Random,
};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

use super::{
    TaskEnd, TaskLimits, TaskRun, TaskState, TaskView, Tasks, too_many, too_many_in_total,
};
use crate::expiring::ExpiringMap;

/// Stores tasks in memory.
#[derive(Debug)]
pub struct MemoryTasks {
    inner: Arc<MemoryTaskStore>,
    random: Random,
    limits: TaskLimits,
    added: Notify,
}

/// The state that the storage shares with the runs of its tasks.
#[derive(Debug)]
struct MemoryTaskStore {
    clock: Arc<dyn Clock>,
    /// The lock is held for a few map operations and never across an await.
    table: Mutex<TaskTable>,
}

/// The tasks of all owners.
#[derive(Debug, Default)]
struct TaskTable {
    tasks: ExpiringMap<Arc<str>, TaskRecord>,
    /// The number of tasks of each owner with tasks.
    per_owner: HashMap<Owner, usize>,
}

/// A task, and its connection to the run.
#[derive(Debug)]
struct TaskRecord {
    owner: Owner,
    view: TaskView,
    /// The questions that wait for an answer.
    unanswered: HashMap<String, oneshot::Sender<Value>>,
    cancelled: CancellationToken,
}

/// A task for the process that runs it.
#[derive(Debug)]
struct MemoryRun {
    inner: Arc<MemoryTaskStore>,
    id: Arc<str>,
    cancelled: CancellationToken,
}

impl TaskRecord {
    fn end(&mut self, end: TaskEnd) {
        self.view.state = TaskState::Ended(end);
        self.unanswered.clear();
    }
}

impl MemoryTasks {
    /// Creates an empty storage.
    pub fn new(clock: Arc<dyn Clock>, random: Random, limits: TaskLimits) -> Self {
        let inner = Arc::new(MemoryTaskStore { clock, table: Mutex::default() });
        Self { inner, random, limits, added: Notify::new() }
    }
}

impl MemoryTaskStore {
    fn get(&self, owner: &Owner, id: &str) -> Option<TaskView> {
        self.remove_expired();
        let table = self.table.lock();
        table.tasks.get(id).filter(|r| r.owner == *owner).map(|r| r.view.clone())
    }

    /// Updates a task unless it has ended.
    fn update(&self, id: &str, update: impl FnOnce(&mut TaskRecord)) {
        let now = self.clock.now();
        let mut table = self.table.lock();

        let is_running =
            |record: &&mut TaskRecord| !matches!(record.view.state, TaskState::Ended(_));
        if let Some(record) = table.tasks.get_mut(id).filter(is_running) {
            update(record);
            record.view.updated = now;
        }
    }

    /// Removes expired tasks. Returns the next expiry of a task.
    fn remove_expired(&self) -> Option<Timestamp> {
        let now = self.clock.now();
        let mut table = self.table.lock();

        while let Some((_, record)) = table.tasks.pop_expired(now) {
            record.cancelled.cancel();

            if let Some(count) = table.per_owner.get_mut(&record.owner) {
                *count -= 1;
                if *count == 0 {
                    table.per_owner.remove(&record.owner);
                }
            }
        }

        table.tasks.next_expiry()
    }
}

#[async_trait]
impl Tasks for MemoryTasks {
    async fn create(&self, owner: &Owner) -> Result<(TaskView, Arc<dyn TaskRun>), Fault> {
        let inner = &self.inner;
        let limits = &self.limits;
        inner.remove_expired();

        let now = inner.clock.now();
        let view = TaskView {
            id: self.random.id().into(),
            state: TaskState::Working,
            message: None,
            created: now,
            updated: now,
            ttl: limits.ttl,
            poll_interval: limits.poll_interval,
        };

        let id = Arc::clone(&view.id);
        let cancelled = CancellationToken::new();

        let mut table = inner.table.lock();
        if table.per_owner.get(owner).is_some_and(|count| *count >= limits.per_owner) {
            return Err(too_many(limits.per_owner));
        }
        if limits.total != 0 && table.tasks.len() >= limits.total {
            return Err(too_many_in_total(limits.total));
        }

        *table.per_owner.entry(owner.clone()).or_default() += 1;
        let record = TaskRecord {
            owner: owner.clone(),
            view: view.clone(),
            unanswered: HashMap::new(),
            cancelled: cancelled.clone(),
        };
        table.tasks.insert(Arc::clone(&id), record, now.saturating_add(limits.ttl));
        drop(table);

        self.added.notify_one();
        Ok((view, Arc::new(MemoryRun { inner: Arc::clone(inner), id, cancelled })))
    }

    async fn get(&self, owner: &Owner, id: &str) -> Result<Option<TaskView>, Fault> {
        Ok(self.inner.get(owner, id))
    }

    async fn answer(
        &self,
        owner: &Owner,
        id: &str,
        answers: BTreeMap<String, Value>,
    ) -> Result<bool, Fault> {
        if self.inner.get(owner, id).is_none() {
            return Ok(false);
        }

        self.inner.update(id, |record| {
            for (key, answer) in answers {
                let Some(sender) = record.unanswered.remove(&key) else { continue };
                if let TaskState::InputRequired(questions) = &mut record.view.state {
                    questions.remove(&key);
                    if questions.is_empty() {
                        record.view.state = TaskState::Working;
                    }
                }
                // Fails if the asking handler has given up.
                let _ = sender.send(answer);
            }
        });
        Ok(true)
    }

    async fn cancel(&self, owner: &Owner, id: &str) -> Result<bool, Fault> {
        if self.inner.get(owner, id).is_none() {
            return Ok(false);
        }

        self.inner.update(id, |record| {
            record.end(TaskEnd::Cancelled);
            record.cancelled.cancel();
        });
        Ok(true)
    }

    async fn maintain(&self) {
        let clock = &self.inner.clock;

        loop {
            let added = self.added.notified();
            let hour = clock.now().saturating_add(Duration::from_secs(60 * 60));
            let next = self.inner.remove_expired().unwrap_or(hour);

            tokio::select! {
                () = clock.sleep_until(next) => {}
                () = added => {}
            }
        }
    }
}

#[async_trait]
impl TaskRun for MemoryRun {
    fn cancelled(&self) -> &CancellationToken {
        &self.cancelled
    }

    async fn ask(&self, key: &str, question: &Value) -> Result<oneshot::Receiver<Value>, Fault> {
        let (sender, answer) = oneshot::channel();

        self.inner.update(&self.id, |record| {
            record.unanswered.insert(key.to_owned(), sender);
            let key = key.to_owned();
            let question = question.clone();
            match &mut record.view.state {
                TaskState::InputRequired(questions) => {
                    questions.insert(key, question);
                }
                state => *state = TaskState::InputRequired(BTreeMap::from([(key, question)])),
            }
        });
        Ok(answer)
    }

    async fn set_message(&self, message: &str) {
        self.inner.update(&self.id, |record| record.view.message = Some(message.to_owned()));
    }

    async fn finish(&self, end: TaskEnd) {
        self.inner.update(&self.id, |record| record.end(end));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::task::Harness;
    use larder_runtime::clock::ManualClock;

    #[derive(Default)]
    struct Memory(ManualClock);

    #[async_trait]
    impl Harness for Memory {
        async fn processes(&self, limits: TaskLimits) -> [Arc<dyn Tasks>; 2] {
            let clock = Arc::new(self.0.clone());
            let tasks = Arc::new(MemoryTasks::new(clock, Random::counting(), limits));
            let maintained = Arc::clone(&tasks);
            tokio::spawn(async move { maintained.maintain().await });
            // Memory is not shared between processes, so both handles are of one storage.
            [tasks.clone(), tasks]
        }

        async fn pass(&self, span: Duration) {
            self.0.advance(span);
        }

        fn tick(&self) -> Duration {
            Duration::from_millis(1)
        }
    }

    crate::task_contract!(Memory::default());
}
