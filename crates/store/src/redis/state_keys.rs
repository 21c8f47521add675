//! [`StateKeys`]: the secret keys that all instances on one Redis share. They seal the state that
//! a client carries from one instance to another (`requestState`). The first instance creates the
//! first key. Each key is replaced after a day and opens for another day.

use std::{fmt, sync::Arc, time::Duration};

use larder_runtime::{
    key_ring::{KeyRing, SecretKey},
    random::Random,
};
use tokio_util::task::AbortOnDropHandle;

use super::{Redis, RedisError, Script, millis};

/// The time for which a key seals.
const PERIOD: Duration = Duration::from_secs(24 * 60 * 60);

/// The time between the creation of a key and its first use. Each instance reads the keys several
/// times within it, so that no instance receives a state that an unknown key has sealed.
const LEAD: Duration = Duration::from_secs(10 * 60);

/// The interval between two readings of the keys.
const REFRESH: Duration = Duration::from_secs(60);

/// The delay after a failed reading.
const RETRY: Duration = Duration::from_secs(1);

/// The shared keys, kept up to date until dropped. The hash `state-keys` holds them.
#[derive(Debug)]
pub struct StateKeys {
    ring: KeyRing,
    _refresh: AbortOnDropHandle<()>,
}

impl StateKeys {
    /// Reads the keys, and creates the first one if there is none. Needs a Tokio runtime.
    ///
    /// # Errors
    /// Redis cannot be used.
    pub async fn open(redis: Redis, random: Random) -> Result<Self, RedisError> {
        let keys = SharedKeys::new(redis, random);
        let (current, _) = keys.read().await?;

        let ring = KeyRing::new(current);

        let refreshed = ring.clone();
        let refresh = tokio::spawn(async move { keys.refresh(&refreshed).await });
        Ok(Self { ring, _refresh: AbortOnDropHandle::new(refresh) })
    }

    /// The keys. They change while this value exists.
    pub fn ring(&self) -> &KeyRing {
        &self.ring
    }
}

struct SharedKeys {
    redis: Redis,
    random: Random,
    script: Script,
}

impl SharedKeys {
    fn new(redis: Redis, random: Random) -> Self {
        let script = Script::with_time_functions(&[include_str!("state_keys.lua")]);
        Self { redis, random, script }
    }

    /// Reads the keys: the one that seals, and the others, which only open.
    async fn read(&self) -> Result<(SecretKey, Vec<SecretKey>), RedisError> {
        let fresh = self.random.secret();
        let call = self.script.on(&[self.redis.keys().single("state-keys")]).arg(&fresh);
        let call = call.arg(millis(PERIOD)).arg(millis(LEAD));
        let keys: Vec<String> = self.redis.call(&call).await?;

        let mut keys = keys.into_iter().map(|key| SecretKey::from(key.into_bytes()));
        // The script always returns a key.
        let current = keys.next().unwrap_or_else(|| Arc::from(fresh.into_bytes()));
        Ok((current, keys.collect()))
    }

    /// Reads the keys every [`REFRESH`] and puts them into the ring.
    async fn refresh(&self, ring: &KeyRing) {
        tokio::time::sleep(REFRESH).await;

        loop {
            match self.read().await {
                Ok((current, others)) => {
                    ring.rotate(current, others);
                    tokio::time::sleep(REFRESH).await;
                }
                Err(error) => {
                    tracing::debug!(%error, "the keys of requestState cannot be read yet");
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }
}

impl fmt::Debug for SharedKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SharedKeys").field(&self.redis).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        redis::cmd,
        testing::{Installations, RedisServer},
    };

    /// Makes the keys older by `span`.
    async fn age(redis: &Redis, span: Duration) {
        let name = redis.keys().single("state-keys");
        let keys: Vec<(String, u64)> =
            redis.query(cmd("HGETALL").arg(&name)).await.expect("it is a hash");

        for (key, from) in keys {
            let from = from - millis(span);
            let mut set = cmd("HSET");
            set.arg(&name).arg(key).arg(from);
            redis.query::<()>(&set).await.expect("it is written");
        }
    }

    #[tokio::test]
    async fn instances_agree_on_a_key_before_during_and_after_its_rotation() {
        let installations = Installations::on(RedisServer::start().await);
        let redis = installations.redis(0).await;
        let [one, two] = [(); 2].map(|()| SharedKeys::new(redis.clone(), Random::system()));
        let read = async |keys: &SharedKeys| keys.read().await.expect("there are keys");

        let (first, others) = read(&one).await;
        assert!(first.len() == 64 && others.is_empty());
        assert_eq!(read(&two).await, (first.clone(), vec![]));

        // Both instances know the next key before it seals.
        age(&redis, PERIOD.saturating_sub(LEAD / 2)).await;
        let (current, next) = read(&one).await;
        assert_eq!((&current, next.len()), (&first, 1));
        assert_eq!(read(&two).await, (first.clone(), next.clone()));

        // After the rotation, the first key still opens for one period.
        age(&redis, LEAD).await;
        assert_eq!(read(&two).await, (next[0].clone(), vec![first.clone()]));
        age(&redis, PERIOD).await;
        let (current, others) = read(&one).await;
        assert!(current == next[0] && !others.contains(&first), "{}", others.len());
        // After a long pause of all instances, the first instance seals with a new key.
        age(&redis, 10 * PERIOD).await;
        let (fresh, others) = read(&one).await;
        assert!(fresh != next[0] && others.is_empty());

        let name = redis.keys().single("state-keys");
        let ttl: i64 = redis.query(cmd("PTTL").arg(name)).await.expect("it says");
        assert!(ttl > 0, "the keys do not expire");
    }

    #[tokio::test]
    async fn a_ring_follows_the_keys_in_redis() {
        let installations = Installations::on(RedisServer::start().await);
        let redis = installations.redis(0).await;
        let keys = SharedKeys::new(redis.clone(), Random::system());
        let one = StateKeys::open(redis.clone(), Random::system()).await.expect("it opens");

        let current = keys.read().await.expect("there are keys").0;
        assert!(one.ring().current() == current, "the instances have different keys");
    }
}
