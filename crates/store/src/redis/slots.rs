//! [`RedisSlots`]: slots of the vault in Redis. Each slot is a hash of version and content.

use std::{fmt, time::Duration};

use async_trait::async_trait;

use super::{Redis, RedisError, Script, cmd, millis};
use crate::vault::{Slot, Slots, VaultError};

/// The life of a slot that is written without a time to live. A token in use is refreshed, and its
/// slot written again, much sooner.
const TTL: Duration = Duration::from_secs(90 * 24 * 3600);

/// Slots that all instances on one Redis share.
pub struct RedisSlots {
    redis: Redis,
    replace: Script,
}

impl RedisSlots {
    /// Slots in `redis`.
    pub fn new(redis: Redis) -> Self {
        Self { redis, replace: Script::new(include_str!("slots.lua")) }
    }

    fn key(&self, name: &str) -> String {
        self.redis.keys().shard_of(name).key("vault", name)
    }
}

#[async_trait]
impl Slots for RedisSlots {
    async fn read(&self, name: &str) -> Result<Slot, VaultError> {
        let mut read = cmd("HMGET");
        read.arg(self.key(name)).arg("version").arg("content");
        let (version, content): (Option<u64>, Option<Vec<u8>>) = self.redis.query(&read).await?;

        Ok(Slot { version: version.unwrap_or_default(), content: content.unwrap_or_default() })
    }

    async fn replace(
        &self,
        name: &str,
        version: u64,
        content: Vec<u8>,
        ttl: Option<Duration>,
    ) -> Result<bool, VaultError> {
        let call = self.replace.on(&[self.key(name)]).arg(version);
        let call = call.arg(content.as_slice()).arg(millis(ttl.unwrap_or(TTL)));

        Ok(self.redis.call(&call).await?)
    }
}

impl fmt::Debug for RedisSlots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RedisSlots").field(&self.redis).finish()
    }
}

impl From<RedisError> for VaultError {
    fn from(error: RedisError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        testing::vault::Harness,
        testing::{Installations, RedisServer},
        vault_contract,
    };

    struct InRedis(Installations);

    #[async_trait]
    impl Harness for InRedis {
        async fn instances(&self) -> [Arc<dyn Slots>; 2] {
            let redis = self.0.redis(0).await;
            [(); 2].map(|()| Arc::new(RedisSlots::new(redis.clone())) as Arc<dyn Slots>)
        }

        /// The clock is Redis' own.
        async fn pass(&self, _: Duration) {}
    }

    vault_contract!(async { InRedis(Installations::on(RedisServer::start().await)) });
}
