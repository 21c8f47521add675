//! The time by the clock of Redis, which expiries are measured by. The clock of this
//! process may differ.

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{
    clock::Timestamp,
    redis::{Redis, RedisError, cmd},
};

/// The time that Redis last told, and when.
#[derive(Debug)]
pub(super) struct RedisTime(Mutex<(Timestamp, Instant)>);

impl RedisTime {
    pub(super) async fn of(redis: &Redis) -> Result<Self, RedisError> {
        let (seconds, micros): (u64, u64) = redis.query(&cmd("TIME")).await?;
        let now = Timestamp::from_millis(seconds * 1000 + micros / 1000);
        Ok(Self(Mutex::new((now, Instant::now()))))
    }

    pub(super) fn now(&self) -> Timestamp {
        let (told, at) = *self.0.lock();
        told.saturating_add(at.elapsed())
    }

    /// Takes over a time that Redis has just told.
    pub(super) fn set(&self, now: Timestamp) {
        *self.0.lock() = (now, Instant::now());
    }
}
