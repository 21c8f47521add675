//! [`Instance`]: a Larder instance on a Redis that several instances share. Each instance sends
//! heartbeats, so that the others notice when it is gone.

use std::{fmt, sync::Arc, time::Duration};

use larder_runtime::random::Random;
use tokio_util::task::AbortOnDropHandle;

use super::{Redis, RedisError, Script, millis};

/// The interval between heartbeats.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// How long an instance counts as alive after a heartbeat.
const HEARTBEAT_TTL: Duration = Duration::from_secs(5);

/// This process, as the other instances on the same Redis see it. It sends heartbeats while a clone
/// of it exists. The zset `replicas` holds all instances, scored by the time until which they count
/// as alive.
#[derive(Clone)]
pub struct Instance(Arc<RunningInstance>);

struct RunningInstance {
    member: Arc<Member>,
    _heartbeat: AbortOnDropHandle<()>,
}

struct Member {
    redis: Redis,
    name: Arc<str>,
    script: Script,
}

impl Instance {
    /// Joins the other instances under a new random name. Needs a Tokio runtime.
    pub fn join(redis: Redis, random: &Random) -> Self {
        let script = Script::with_time_functions(&[include_str!("instances.lua")]);
        let member = Arc::new(Member { redis, name: random.id().into(), script });

        let beating = Arc::clone(&member);
        let heartbeat = AbortOnDropHandle::new(tokio::spawn(async move { beating.beat().await }));
        Self(Arc::new(RunningInstance { member, _heartbeat: heartbeat }))
    }

    /// The instance's name: 128 random bits in hexadecimal.
    pub fn name(&self) -> &Arc<str> {
        &self.0.member.name
    }

    /// The Redis that the instances share.
    pub(crate) fn redis(&self) -> &Redis {
        &self.0.member.redis
    }

    /// The names of the instances with a recent heartbeat. A Redis that has just restarted may lack
    /// heartbeats, so an instance is gone only if it is missing twice, more than one heartbeat apart.
    pub(crate) async fn alive(&self) -> Result<Vec<String>, RedisError> {
        self.0.member.instances(Duration::ZERO).await
    }
}

impl Member {
    /// The live instances, after a heartbeat of this instance unless `ttl` is zero.
    async fn instances(&self, ttl: Duration) -> Result<Vec<String>, RedisError> {
        let call = self.script.on(&[self.redis.keys().single("replicas")]);
        self.redis.call(&call.arg(&*self.name).arg(millis(ttl))).await
    }

    /// Sends heartbeats until dropped.
    async fn beat(&self) {
        loop {
            if let Err(error) = self.instances(HEARTBEAT_TTL).await {
                tracing::warn!(%error, "cannot send this instance's heartbeat");
            }
            tokio::time::sleep(HEARTBEAT).await;
        }
    }
}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Instance").field(self.name()).finish()
    }
}
