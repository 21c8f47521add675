//! Tasks in this process's memory.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

use super::{TaskState, TaskView, Tasks};
use crate::{
    auth::Owner,
    clock::{Clock, Timestamp},
    protocol::Fault,
    random::Random,
};

/// Bounds on tasks.
#[derive(Debug, Clone)]
pub struct TaskLimits {
    /// How long a task is kept, from its beginning. One that still runs then
    /// is cancelled.
    pub ttl: Duration,
    /// How often clients are told to ask.
    pub poll: Duration,
    /// Tasks of one owner, ended ones that are still kept included.
    pub per_owner: usize,
}

impl Default for TaskLimits {
    fn default() -> Self {
        Self { ttl: Duration::from_secs(60 * 60), poll: Duration::from_secs(1), per_owner: 1_000 }
    }
}

/// Keeps tasks in memory.
#[derive(Debug)]
pub struct MemoryTasks {
    clock: Arc<dyn Clock>,
    random: Random,
    limits: TaskLimits,
    // A plain mutex: held for a few map operations and never across an await.
    table: Mutex<Table>,
    added: Notify,
}

#[derive(Debug, Default)]
struct Table {
    tasks: HashMap<Arc<str>, Record>,
    per_owner: HashMap<Owner, usize>,
    by_expiry: BTreeSet<(Timestamp, Arc<str>)>,
}

#[derive(Debug)]
struct Record {
    owner: Owner,
    view: TaskView,
    waiting: HashMap<String, oneshot::Sender<Value>>,
    cancelled: CancellationToken,
}

impl Record {
    fn has_ended(&self) -> bool {
        !matches!(self.view.state, TaskState::Working | TaskState::InputRequired(_))
    }
}

impl MemoryTasks {
    /// None yet.
    pub fn new(clock: Arc<dyn Clock>, random: Random, limits: TaskLimits) -> Self {
        Self { clock, random, limits, table: Mutex::default(), added: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something to a task that has not ended.
    fn change(&self, id: &str, change: impl FnOnce(&mut Record)) {
        let now = self.clock.now();
        let mut table = self.lock();
        if let Some(record) = table.tasks.get_mut(id).filter(|record| !record.has_ended()) {
            change(record);
            record.view.updated = now;
        }
    }

    fn end(record: &mut Record, state: TaskState) {
        record.view.state = state;
        record.waiting.clear();
    }

    /// Removes what has expired; the time of the next.
    fn sweep(&self) -> Option<Timestamp> {
        let now = self.clock.now();
        let mut table = self.lock();
        while table.by_expiry.first().is_some_and(|(at, _)| *at <= now) {
            let Some((_, id)) = table.by_expiry.pop_first() else { break };
            let Some(record) = table.tasks.remove(&id) else { continue };
            record.cancelled.cancel();
            if let Some(count) = table.per_owner.get_mut(&record.owner) {
                *count -= 1;
                if *count == 0 {
                    table.per_owner.remove(&record.owner);
                }
            }
        }
        table.by_expiry.first().map(|(at, _)| *at)
    }
}

#[async_trait]
impl Tasks for MemoryTasks {
    async fn create(&self, owner: &Owner) -> Result<(TaskView, CancellationToken), Fault> {
        self.sweep();
        let (now, limits) = (self.clock.now(), &self.limits);
        let view = TaskView {
            id: self.random.id().into(),
            state: TaskState::Working,
            message: None,
            created: now,
            updated: now,
            ttl: limits.ttl,
            poll: limits.poll,
        };
        let cancelled = CancellationToken::new();
        let mut table = self.lock();
        let count = table.per_owner.entry(owner.clone()).or_default();
        if *count >= limits.per_owner {
            return Err(Fault::TooMany(format!(
                "You have {count} tasks, the most there may be. Wait until some expire."
            )));
        }
        *count += 1;
        table.by_expiry.insert((now.saturating_add(limits.ttl), Arc::clone(&view.id)));
        let record = Record {
            owner: owner.clone(),
            view: view.clone(),
            waiting: HashMap::new(),
            cancelled: cancelled.clone(),
        };
        table.tasks.insert(Arc::clone(&view.id), record);
        drop(table);
        self.added.notify_one();
        Ok((view, cancelled))
    }

    async fn get(&self, owner: &Owner, id: &str) -> Option<TaskView> {
        self.sweep();
        let table = self.lock();
        table.tasks.get(id).filter(|r| r.owner == *owner).map(|r| r.view.clone())
    }

    async fn ask(&self, id: &str, key: &str, question: Value) -> oneshot::Receiver<Value> {
        let (answer, answered) = oneshot::channel();
        self.change(id, |record| {
            record.waiting.insert(key.to_owned(), answer);
            match &mut record.view.state {
                TaskState::InputRequired(questions) => {
                    questions.insert(key.to_owned(), question);
                }
                state => {
                    *state = TaskState::InputRequired(BTreeMap::from([(key.to_owned(), question)]));
                }
            }
        });
        answered
    }

    async fn answer(&self, owner: &Owner, id: &str, answers: BTreeMap<String, Value>) -> bool {
        if self.get(owner, id).await.is_none() {
            return false;
        }
        self.change(id, |record| {
            for (key, answer) in answers {
                let Some(asked) = record.waiting.remove(&key) else { continue };
                if let TaskState::InputRequired(questions) = &mut record.view.state {
                    questions.remove(&key);
                    if questions.is_empty() {
                        record.view.state = TaskState::Working;
                    }
                }
                // Whoever asked may have given up meanwhile.
                let _ = asked.send(answer);
            }
        });
        true
    }

    async fn note(&self, id: &str, message: &str) {
        self.change(id, |record| record.view.message = Some(message.to_owned()));
    }

    async fn finish(&self, id: &str, state: TaskState) {
        self.change(id, |record| Self::end(record, state));
    }

    async fn cancel(&self, owner: &Owner, id: &str) -> bool {
        if self.get(owner, id).await.is_none() {
            return false;
        }
        self.change(id, |record| {
            Self::end(record, TaskState::Cancelled);
            record.cancelled.cancel();
        });
        true
    }

    async fn maintain(&self) {
        loop {
            let added = self.added.notified();
            let hour = self.clock.now().saturating_add(Duration::from_secs(60 * 60));
            let next = self.sweep().unwrap_or(hour);
            tokio::select! {
                () = self.clock.sleep_until(next) => {}
                () = added => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;
    use crate::{auth::Principal, clock::ManualClock};

    fn tasks(limits: TaskLimits) -> (MemoryTasks, ManualClock, Owner) {
        let clock = ManualClock::new();
        let tasks = MemoryTasks::new(Arc::new(clock.clone()), Random::counting(), limits);
        (tasks, clock, Principal::Local.owner())
    }

    #[tokio::test]
    async fn a_task_is_found_by_its_owner_alone() {
        let (tasks, _, owner) = tasks(TaskLimits::default());
        let (task, _) = tasks.create(&owner).await.unwrap();
        let eve = Owner::new("eve");
        assert!(tasks.get(&owner, &task.id).await.is_some());
        assert!(tasks.get(&eve, &task.id).await.is_none());
        assert!(!tasks.cancel(&eve, &task.id).await);
        assert!(!tasks.answer(&eve, &task.id, BTreeMap::new()).await);
    }

    #[tokio::test]
    async fn questions_are_answered_one_by_one_and_once() {
        let (tasks, _, owner) = tasks(TaskLimits::default());
        let (task, _) = tasks.create(&owner).await.unwrap();
        let one = tasks.ask(&task.id, "one", json!(1)).await;
        let _two = tasks.ask(&task.id, "two", json!(2)).await;
        let answers = BTreeMap::from([("one".into(), json!("1")), ("none".into(), json!(0))]);
        assert!(tasks.answer(&owner, &task.id, answers).await);
        assert_eq!(one.await.unwrap(), json!("1"));
        let TaskState::InputRequired(left) = tasks.get(&owner, &task.id).await.unwrap().state
        else {
            panic!("one question is left")
        };
        assert_eq!(left, BTreeMap::from([("two".into(), json!(2))]));
        tasks.answer(&owner, &task.id, BTreeMap::from([("two".into(), json!("2"))])).await;
        let state = tasks.get(&owner, &task.id).await.unwrap().state;
        assert!(matches!(state, TaskState::Working));
    }

    #[tokio::test]
    async fn what_has_ended_stays_as_it_ended() {
        let (tasks, _, owner) = tasks(TaskLimits::default());
        let (task, cancelled) = tasks.create(&owner).await.unwrap();
        tasks.finish(&task.id, TaskState::Completed(json!({}))).await;
        assert!(tasks.cancel(&owner, &task.id).await);
        assert!(!cancelled.is_cancelled());
        let state = tasks.get(&owner, &task.id).await.unwrap().state;
        assert!(matches!(state, TaskState::Completed(_)));
    }

    #[tokio::test]
    async fn an_expired_task_is_gone_and_stopped() {
        let limits = TaskLimits { per_owner: 1, ..TaskLimits::default() };
        let (tasks, clock, owner) = tasks(limits);
        let (task, cancelled) = tasks.create(&owner).await.unwrap();
        assert!(matches!(tasks.create(&owner).await, Err(Fault::TooMany(_))));
        clock.advance(Duration::from_secs(60 * 60));
        assert!(tasks.get(&owner, &task.id).await.is_none());
        assert!(cancelled.is_cancelled());
        tasks.create(&owner).await.unwrap();
    }
}
