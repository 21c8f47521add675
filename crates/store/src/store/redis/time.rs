//! [`RedisTime`]: the time of the Redis server, which decides when resources expire. The clock of
//! this process may differ.

use larder_runtime::clock::Timestamp;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::redis::{Redis, RedisError, cmd};

/// The last known time of Redis, and when this process received it.
#[derive(Debug)]
pub(super) struct RedisTime(Mutex<(Timestamp, Instant)>);

impl RedisTime {
    /// Asks Redis for its time.
    pub(super) async fn of(redis: &Redis) -> Result<Self, RedisError> {
        let (seconds, micros): (u64, u64) = redis.query(&cmd("TIME")).await?;
        let now = Timestamp::from_millis(seconds * 1000 + micros / 1000);
        Ok(Self(Mutex::new((now, Instant::now()))))
    }

    pub(super) fn now(&self) -> Timestamp {
        let (known, at) = *self.0.lock();
        known.saturating_add(at.elapsed())
    }

    /// Sets the time to `now`, which Redis has just returned.
    pub(super) fn set(&self, now: Timestamp) {
        *self.0.lock() = (now, Instant::now());
    }
}
