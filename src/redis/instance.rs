//! The servers on one Redis: each says again and again that it lives, so that
//! the others find out when one does not.

use std::{fmt, sync::Arc, time::Duration};

use tokio_util::task::AbortOnDropHandle;

use super::{Redis, RedisError, Script, millis};
use crate::random::Random;

/// How often a replica says that it lives, and how long that holds.
const HEARTBEAT: Duration = Duration::from_secs(1);
const HOLDS: Duration = Duration::from_secs(5);

/// This server, as the others on the same Redis know it, for as long as there
/// is a clone of it. They stand in the zset `replicas`, by the time at which it
/// is no longer sure that they live.
#[derive(Clone)]
pub struct Instance(Arc<Shared>);

struct Shared {
    member: Arc<Member>,
    _beating: AbortOnDropHandle<()>,
}

struct Member {
    redis: Redis,
    name: Arc<str>,
    script: Script,
}

impl Instance {
    /// Joins the others under a name of its own. Needs a Tokio runtime.
    pub fn join(redis: Redis, random: &Random) -> Self {
        let (name, script) = (random.id().into(), Script::timed(&[include_str!("instances.lua")]));
        let member = Arc::new(Member { redis, name, script });
        let beating = Arc::clone(&member);
        let beating = AbortOnDropHandle::new(tokio::spawn(async move { beating.beat().await }));
        Self(Arc::new(Shared { member, _beating: beating }))
    }

    /// What it is called: 128 random bits in hexadecimal.
    pub fn name(&self) -> &Arc<str> {
        &self.0.member.name
    }

    /// Where they all are.
    pub(crate) fn redis(&self) -> &Redis {
        &self.0.member.redis
    }

    /// The names of those that have said of late that they live. A Redis that
    /// was away and has just come back may not know yet: ask twice, with more
    /// than a heartbeat between, before one is taken for dead.
    pub(crate) async fn alive(&self) -> Result<Vec<String>, RedisError> {
        self.0.member.instances(Duration::ZERO).await
    }
}

impl Member {
    async fn instances(&self, holds: Duration) -> Result<Vec<String>, RedisError> {
        let call = self.script.on(&[self.redis.keys().single("replicas")]);
        self.redis.call(&call.arg(&*self.name).arg(millis(holds))).await
    }

    async fn beat(&self) {
        loop {
            if let Err(error) = self.instances(HOLDS).await {
                tracing::warn!(%error, "this replica cannot say that it lives");
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
