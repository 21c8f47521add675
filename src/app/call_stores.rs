//! Opens the stores of sessions and tasks.

use std::{sync::Arc, time::Duration};

#[cfg(feature = "cli")]
use super::OpenError;
use larder_runtime::{clock::Clock, random::Random};
use larder_store::{
    session::{MemorySessions, SessionLimits, Sessions, SharedParts},
    task::{MemoryTasks, TaskLimits, Tasks},
};

use crate::config::Config;
use larder_store::{
    redis::{Instance, Redis},
    session::{RedisClaims, RedisNotes, RedisSessions},
    task::RedisTasks,
};

/// The stores of sessions and tasks, which share a location.
pub(super) struct CallStores {
    pub(super) sessions: Arc<dyn Sessions>,
    pub(super) tasks: Arc<dyn Tasks>,
    /// How several instances share what belongs to sessions.
    pub(super) parts: Option<SharedParts>,
}

impl CallStores {
    pub(super) fn in_memory(config: &Config, clock: Arc<dyn Clock>, random: &Random) -> Self {
        let tasks = MemoryTasks::new(Arc::clone(&clock), random.clone(), task_limits(config));
        let sessions = MemorySessions::new(clock, random.clone(), session_limits(config));
        Self { sessions: Arc::new(sessions), tasks: Arc::new(tasks), parts: None }
    }

    pub(super) fn in_redis(redis: Redis, config: &Config, random: &Random) -> Self {
        let instance = Instance::join(redis.clone(), random);
        let tasks = RedisTasks::new(instance.clone(), random.clone(), task_limits(config));
        let limits = session_limits(config);
        let parts = SharedParts {
            claims: Arc::new(RedisClaims::new(instance.clone())),
            notes: Arc::new(RedisNotes::new(redis, limits.idle)),
        };

        let sessions = RedisSessions::new(instance, random.clone(), limits);
        Self { sessions: Arc::new(sessions), tasks: Arc::new(tasks), parts: Some(parts) }
    }
}

/// Opens the sessions of the configuration for a command that serves nothing. `None` if they are
/// in the memory of a server.
#[cfg(feature = "cli")]
pub(crate) async fn open_sessions_alone(
    config: &Config,
) -> Result<Option<RedisSessions>, OpenError> {
    let Some(settings) = config.sessions_redis() else { return Ok(None) };

    let random = Random::system();
    let instance = Instance::join(Redis::open(&settings).await?, &random);
    Ok(Some(RedisSessions::new(instance, random, session_limits(config))))
}

fn task_limits(config: &Config) -> TaskLimits {
    TaskLimits {
        ttl: Duration::from_secs(config.tasks.ttl),
        per_owner: config.tasks.per_principal,
        total: config.tasks.total,
        ..TaskLimits::default()
    }
}

fn session_limits(config: &Config) -> SessionLimits {
    SessionLimits {
        idle: Duration::from_secs(config.sessions.idle),
        replay: Duration::from_secs(config.sessions.replay),
        sessions_per_principal: config.sessions.per_principal,
        sessions_total: config.sessions.total,
        replay_bytes_per_principal: config.sessions.replay_bytes_per_principal,
        replay_bytes: config.sessions.replay_bytes,
        ..SessionLimits::default()
    }
}
