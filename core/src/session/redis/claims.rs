//! Claims in Redis. A claim that is not renewed expires, so that another instance can take over
//! what a dead one had.

use std::time::Duration;

use async_trait::async_trait;

use super::unavailable;
use crate::{
    redis::{Call, Instance, Script, millis},
    session::{Claims, SessionError},
};

/// How long a claim lasts without renewal.
const TTL: Duration = Duration::from_secs(30);

/// Claims of one instance.
pub struct RedisClaims {
    instance: Instance,
    claim: Script,
    release: Script,
}

impl RedisClaims {
    /// The claims of this instance.
    pub fn new(instance: Instance) -> Self {
        let script = |code| Script::with_time_functions(&[code]);
        let (claim, release) =
            (script(include_str!("claim.lua")), script(include_str!("release.lua")));
        Self { instance, claim, release }
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
