//! Claims in Redis. A claim that is not renewed expires, so that another instance can take over the
//! parts of a dead one.

use std::time::Duration;

use async_trait::async_trait;

use super::unavailable;
use crate::{
    redis::{Call, Instance, Script, millis},
    session::{Claims, SessionError},
};

/// The life of a claim without renewal.
const TTL: Duration = Duration::from_secs(30);

/// The claims of one instance.
pub struct RedisClaims {
    instance: Instance,
    claim: Script,
    release: Script,
}

impl RedisClaims {
    /// Claims that `instance` makes.
    pub fn new(instance: Instance) -> Self {
        let script = |code| Script::with_time_functions(&[code]);
        Self {
            instance,
            claim: script(include_str!("claim.lua")),
            release: script(include_str!("release.lua")),
        }
    }

    async fn run(&self, script: &Script, session: &str, part: &str) -> Result<bool, SessionError> {
        let redis = self.instance.redis();
        let key = redis.keys().shard_of(session).key_with("claim", session, part);

        let call: Call<'_> = script.on(&[key]).arg(&**self.instance.name()).arg(millis(TTL));
        redis.call::<bool>(&call).await.map_err(|error| unavailable(&error))
    }
}

#[async_trait]
impl Claims for RedisClaims {
    async fn claim(&self, session: &str, part: &str) -> Result<bool, SessionError> {
        self.run(&self.claim, session, part).await
    }

    async fn release(&self, session: &str, part: &str) -> Result<(), SessionError> {
        self.run(&self.release, session, part).await.map(|_| ())
    }

    fn renewal(&self) -> Duration {
        TTL / 3
    }
}
