//! Tasks in Redis: begun on one replica, followed, answered and cancelled on
//! any, and told to have failed when the one that ran them is gone.
//!
//! Both keys of a task lie in its owner's shard (see [`crate::redis::Keys`])
//! and expire with it.
//!
//! ```text
//! task:<owner>:<id>  hash  created, updated, ttl (ms); message; runner: the replica;
//!                          question:<key>, answer:<key> (JSON); end (JSON), once there is one;
//!                          doubted: when the runner was missing for the first time
//! tasks:<owner>      zset  tasks by the time at which they expire
//! ```
//!
//! A replica is told on a channel of its own that there is something to look
//! at; what, stands in the task. So a message that is lost with a connection
//! costs nothing but the time until the next.

mod record;
mod run;
mod scripts;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use serde_json::Value;
use tokio_util::task::AbortOnDropHandle;

use self::{
    record::Record,
    run::{Held, RedisRun},
    scripts::{Place, Scripts},
};
use super::{TaskEnd, TaskLimits, TaskRun, TaskState, TaskView, Tasks, too_many};
use crate::{
    auth::Owner,
    clock::Timestamp,
    protocol::Fault,
    random::Random,
    redis::{Call, Heard, Instance, Redis, RedisError, cmd, millis},
};

/// For how long a replica has to be missing before its tasks have failed: more
/// than it takes one to say that it lives, to a Redis that has just come back.
const MISSING: Duration = Duration::from_millis(2500);

/// Keeps tasks in Redis.
pub struct RedisTasks {
    inner: Arc<Inner>,
    random: Random,
    limits: TaskLimits,
    _hearing: AbortOnDropHandle<()>,
}

struct Inner {
    instance: Instance,
    scripts: Scripts,
    held: Arc<Held>,
}

impl RedisTasks {
    /// Those that lie in the replica's Redis. Needs a Tokio runtime.
    pub fn new(instance: Instance, random: Random, limits: TaskLimits) -> Self {
        let (scripts, held) = (Scripts::new(), Arc::default());
        let inner = Arc::new(Inner { instance, scripts, held });
        let hearing = Arc::clone(&inner);
        let hearing = AbortOnDropHandle::new(tokio::spawn(async move { hearing.hear().await }));
        Self { inner, random, limits, _hearing: hearing }
    }
}

impl Inner {
    fn redis(&self) -> &Redis {
        self.instance.redis()
    }

    fn place(&self, owner: &Owner, id: &str) -> Place {
        Place::new(self.redis().keys(), owner, id)
    }

    /// What the channel of a replica begins with; its name follows.
    fn channels(&self) -> String {
        self.redis().keys().channel("tasks:")
    }

    /// Hears which tasks of this replica to look at, until dropped.
    async fn hear(&self) {
        let channel = format!("{}{}", self.channels(), self.instance.name());
        let mut listener = self.redis().listen_patiently(&channel).await;
        // Some may have begun before.
        self.held.tell_all();
        loop {
            match listener.next().await {
                Heard::Message(id) => self.held.tell(&String::from_utf8_lossy(&id)),
                Heard::Gap => self.held.tell_all(),
            }
        }
    }

    /// The first word of an answer says how it went.
    async fn call(&self, call: Call<'_>) -> Result<Vec<String>, Fault> {
        self.redis().call(&call).await.map_err(|error| unavailable(&error))
    }

    /// Whether there is such a task.
    async fn found(&self, call: Call<'_>) -> Result<bool, Fault> {
        Ok(self.call(call).await?.first().is_some_and(|word| word == "ok"))
    }

    async fn read(&self, place: &Place) -> Result<Option<Record>, Fault> {
        let fields = self.redis().query(cmd("HGETALL").arg(&place.task)).await;
        Record::read(fields.map_err(|error| unavailable(&error))?)
    }

    /// Ends a task whose runner is gone.
    async fn judge(&self, place: &Place, record: Record) -> Result<Option<Record>, Fault> {
        let alive = self.instance.alive().await.map_err(|error| unavailable(&error))?;
        if alive.contains(&record.runner) {
            if record.doubted {
                let mut forget = cmd("HDEL");
                forget.arg(&place.task).arg("doubted");
                self.redis().query::<()>(&forget).await.map_err(|error| unavailable(&error))?;
            }
            return Ok(Some(record));
        }
        let gone =
            "The server that ran this task is gone, and its work with it. Call the tool again.";
        let end = record::end(&TaskEnd::Failed(Fault::Unavailable(gone.into())));
        let call = place.on(&self.scripts.doubt).arg(&record.runner);
        self.call(call.arg(millis(MISSING)).arg(end)).await?;
        self.read(place).await
    }
}

#[async_trait]
impl Tasks for RedisTasks {
    async fn create(&self, owner: &Owner) -> Result<(TaskView, Arc<dyn TaskRun>), Fault> {
        let (inner, limits) = (&self.inner, &self.limits);
        let id: Arc<str> = self.random.id().into();
        let place = inner.place(owner, &id);
        let call = place.among_all(&inner.scripts.create).arg(&*id);
        let call = call.arg(millis(limits.ttl)).arg(limits.per_owner);
        let answer = inner.call(call.arg(&**inner.instance.name())).await?;
        let created = match &answer[..] {
            [ok, now] if ok == "ok" => now.parse().map(Timestamp::from_millis).ok(),
            _ => return Err(too_many(limits.per_owner)),
        };
        let created = created.ok_or_else(record::damaged)?;
        // Only now: one that is looked for and not there has ended. Nobody knows of it yet.
        let run = RedisRun::new(Arc::clone(inner), place, Arc::clone(&id), limits.ttl);
        let view = TaskView {
            id,
            state: TaskState::Working,
            message: None,
            created,
            updated: created,
            ttl: limits.ttl,
            poll: limits.poll,
        };
        Ok((view, Arc::new(run)))
    }

    async fn get(&self, owner: &Owner, id: &str) -> Result<Option<TaskView>, Fault> {
        let inner = &self.inner;
        let place = inner.place(owner, id);
        let record = match inner.read(&place).await? {
            Some(record) if record.runs() && *record.runner != **inner.instance.name() => {
                inner.judge(&place, record).await?
            }
            record => record,
        };
        Ok(record.map(|record| record.view(id, self.limits.poll)))
    }

    async fn answer(
        &self,
        owner: &Owner,
        id: &str,
        answers: BTreeMap<String, Value>,
    ) -> Result<bool, Fault> {
        let inner = &self.inner;
        let call = inner.place(owner, id).on(&inner.scripts.answer);
        let call = call.arg(inner.channels()).arg(id);
        let call = answers
            .iter()
            .fold(call, |call, (key, answer)| call.arg(&**key).arg(answer.to_string()));
        inner.found(call).await
    }

    async fn cancel(&self, owner: &Owner, id: &str) -> Result<bool, Fault> {
        let inner = &self.inner;
        let call = inner.place(owner, id).on(&inner.scripts.end);
        let call = call.arg(record::end(&TaskEnd::Cancelled));
        inner.found(call.arg(inner.channels()).arg(id)).await
    }

    async fn maintain(&self) {
        // Redis removes what has expired.
        std::future::pending::<()>().await;
    }
}

fn unavailable(error: &RedisError) -> Fault {
    tracing::warn!(%error, "tasks cannot be reached");
    Fault::Unavailable("Tasks cannot be reached just now. Try again shortly.".into())
}

impl fmt::Debug for RedisTasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RedisTasks").field(&self.inner.instance).finish()
    }
}
