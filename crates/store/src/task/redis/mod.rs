//! Tasks in Redis. One instance runs a task, any instance reads, answers and cancels it, and a task
//! fails when the instance that ran it is gone.
//!
//! The keys of a task are in its owner's shard (see [`crate::redis::Keys`]) and expire with it.
//!
//! ```text
//! task:<owner>:<id>  hash  created, updated, ttl (ms); message; runner: the instance;
//!                          question:<key>, answer:<key> (JSON); end (JSON), once it has ended;
//!                          doubted: when a check first missed the runner
//! tasks:<owner>      zset  tasks by expiry
//! living-tasks       zset  tasks of all owners in this shard by expiry, for counting
//! ```
//!
//! Each instance has a channel on which it receives the ids of its changed tasks, and then reads
//! these tasks. A lost message costs only time: after a reconnect the instance reads all its tasks.

mod keys;
mod record;
mod run;
mod scripts;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::future::try_join_all;
use serde_json::Value;
use tokio_util::task::AbortOnDropHandle;

use larder_identity::Owner;
use larder_protocol::Fault;
use larder_runtime::{clock::Timestamp, random::Random};

use self::{
    keys::TaskKeys,
    record::StoredTask,
    run::{LocalRuns, RedisRun},
    scripts::Scripts,
};
use super::{
    TaskEnd, TaskLimits, TaskRun, TaskState, TaskView, Tasks, too_many, too_many_in_total,
};
use crate::redis::{Call, ChannelEvent, Instance, Redis, RedisError, Total, cmd, millis};

/// How long an instance must be missing before its tasks fail. Longer than the interval of
/// heartbeats, which a Redis that has just restarted has yet to receive.
const MISSING_INTERVAL: Duration = Duration::from_millis(2500);

/// Stores tasks in Redis.
pub struct RedisTasks {
    inner: Arc<RedisTaskStore>,
    random: Random,
    limits: TaskLimits,
    _receiver: AbortOnDropHandle<()>,
}

/// The state that the storage shares with its runs and its receiver.
struct RedisTaskStore {
    instance: Instance,
    scripts: Scripts,
    runs: Arc<LocalRuns>,
    /// The number of tasks of all owners.
    total: Total,
}

impl RedisTasks {
    /// The tasks in the instance's Redis. Needs a Tokio runtime.
    pub fn new(instance: Instance, random: Random, limits: TaskLimits) -> Self {
        let inner = Arc::new(RedisTaskStore {
            instance,
            scripts: Scripts::new(),
            runs: Arc::default(),
            total: Total::default(),
        });

        let receiving = Arc::clone(&inner);
        let receiver = tokio::spawn(async move { receiving.receive().await });

        Self { inner, random, limits, _receiver: AbortOnDropHandle::new(receiver) }
    }
}

impl RedisTaskStore {
    fn redis(&self) -> &Redis {
        self.instance.redis()
    }

    fn keys(&self, owner: &Owner, id: &str) -> TaskKeys {
        TaskKeys::new(self.redis().keys(), owner, id)
    }

    /// The prefix of the instances' channels; an instance's name follows it.
    fn channel_prefix(&self) -> String {
        self.redis().keys().channel("tasks:")
    }

    /// Receives the ids of changed tasks of this instance, until dropped.
    async fn receive(&self) {
        let channel = format!("{}{}", self.channel_prefix(), self.instance.name());

        let mut subscription = self.redis().subscribe_with_retry(&channel).await;

        // Tasks may have started before the subscription.
        self.runs.wake_all();

        loop {
            match subscription.next().await {
                ChannelEvent::Message(id) => self.runs.wake(&String::from_utf8_lossy(&id)),
                ChannelEvent::Gap => self.runs.wake_all(),
            }
        }
    }

    /// Runs a script whose reply begins with a status.
    async fn call(&self, call: Call<'_>) -> Result<Vec<String>, Fault> {
        self.redis().call(&call).await.map_err(|error| unavailable(&error))
    }

    /// Runs a script. Returns whether its status is `ok`, which means that the task exists.
    async fn succeeds(&self, call: Call<'_>) -> Result<bool, Fault> {
        Ok(self.call(call).await?.first().is_some_and(|status| status == "ok"))
    }

    async fn count(&self) -> Result<u64, Fault> {
        let counts = self.redis().keys().shards().map(|shard| async move {
            let call = self.scripts.count.on(&[keys::living(&shard)]);
            self.redis().call::<u64>(&call).await
        });

        let counts = try_join_all(counts).await.map_err(|error| unavailable(&error))?;
        Ok(counts.into_iter().sum())
    }

    async fn read(&self, keys: &TaskKeys) -> Result<Option<StoredTask>, Fault> {
        let fields = self.redis().query(cmd("HGETALL").arg(&keys.task)).await;
        StoredTask::decode(fields.map_err(|error| unavailable(&error))?)
    }

    /// Ends the task if its runner is gone.
    async fn check_liveness(
        &self,
        keys: &TaskKeys,
        record: StoredTask,
    ) -> Result<Option<StoredTask>, Fault> {
        let alive = self.instance.alive().await.map_err(|error| unavailable(&error))?;
        if alive.contains(&record.runner) {
            if record.suspect {
                let mut clear = cmd("HDEL");
                clear.arg(&keys.task).arg("doubted");
                self.redis().query::<()>(&clear).await.map_err(|error| unavailable(&error))?;
            }
            return Ok(Some(record));
        }

        let message = "The server process that ran this task is gone, so its result is lost. Call the tool again.";
        let end = record::encode_end(&TaskEnd::Failed(Fault::Unavailable(message.into())));
        let call = keys.task(&self.scripts.mark_suspect).arg(&record.runner);

        self.call(call.arg(millis(MISSING_INTERVAL)).arg(end)).await?;

        self.read(keys).await
    }
}

#[async_trait]
impl Tasks for RedisTasks {
    async fn create(&self, owner: &Owner) -> Result<(TaskView, Arc<dyn TaskRun>), Fault> {
        let inner = &self.inner;
        let limits = &self.limits;
        let Some(added) = inner.total.admit(limits.total, inner.count()).await? else {
            return Err(too_many_in_total(limits.total));
        };

        let id: Arc<str> = self.random.id().into();
        let keys = inner.keys(owner, &id);

        let call = keys.task_and_indexes(&inner.scripts.create).arg(&*id);
        let call = call.arg(millis(limits.ttl)).arg(limits.per_owner);
        let reply = inner.call(call.arg(&**inner.instance.name())).await?;

        let created = match &reply[..] {
            [status, now] if status == "ok" => now.parse().map(Timestamp::from_millis).ok(),
            _ => return Err(too_many(limits.per_owner)),
        };
        let created = created.ok_or_else(record::damaged)?;

        added.keep();

        // The run begins after the task exists, because a run that finds no task takes it for ended.
        let run = RedisRun::new(Arc::clone(inner), keys, Arc::clone(&id), limits.ttl);

        let view = TaskView {
            id,
            state: TaskState::Working,
            message: None,
            created,
            updated: created,
            ttl: limits.ttl,
            poll_interval: limits.poll_interval,
        };

        Ok((view, Arc::new(run)))
    }

    async fn get(&self, owner: &Owner, id: &str) -> Result<Option<TaskView>, Fault> {
        let inner = &self.inner;
        let keys = inner.keys(owner, id);

        let record = match inner.read(&keys).await? {
            Some(record) if record.is_running() && *record.runner != **inner.instance.name() => {
                inner.check_liveness(&keys, record).await?
            }
            record => record,
        };

        Ok(record.map(|record| record.view(id, self.limits.poll_interval)))
    }

    async fn answer(
        &self,
        owner: &Owner,
        id: &str,
        answers: BTreeMap<String, Value>,
    ) -> Result<bool, Fault> {
        let inner = &self.inner;
        let call = inner.keys(owner, id).task(&inner.scripts.answer);
        let call = call.arg(inner.channel_prefix()).arg(id);
        let call = answers
            .iter()
            .fold(call, |call, (key, answer)| call.arg(&**key).arg(answer.to_string()));

        inner.succeeds(call).await
    }

    async fn cancel(&self, owner: &Owner, id: &str) -> Result<bool, Fault> {
        let inner = &self.inner;
        let call = inner.keys(owner, id).task(&inner.scripts.end);
        let call = call.arg(record::encode_end(&TaskEnd::Cancelled));
        inner.succeeds(call.arg(inner.channel_prefix()).arg(id)).await
    }

    async fn maintain(&self) {
        // Redis removes expired keys itself.
        std::future::pending::<()>().await;
    }
}

fn unavailable(error: &RedisError) -> Fault {
    tracing::warn!(%error, "the task storage cannot be reached");
    Fault::Unavailable("The task storage cannot be reached. Try again shortly.".into())
}

impl fmt::Debug for RedisTasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RedisTasks").field(&self.inner.instance).finish()
    }
}
