//! Where all instances note which links are used that work once.

use std::sync::Arc;

use larder_runtime::{clock::Clock, random::Random};
use larder_store::redis::{Redis, RedisSlots};
use larder_store::store::{ObjectLocation, ObjectSlots};
use larder_store::vault::{MemorySlots, Slots};

use super::OpenError;
use crate::config::Config;

/// The most used links that are remembered in memory.
const MAX_IN_MEMORY: usize = 100_000;

/// Slots in the place of `store.url`.
pub(super) async fn open(
    config: &Config,
    redis: Option<&Redis>,
    clock: Arc<dyn Clock>,
    random: &Random,
) -> Result<Arc<dyn Slots>, OpenError> {
    if let Some(redis) = redis {
        return Ok(Arc::new(RedisSlots::new(redis.clone())));
    }

    if config.has_objects() && (config.content.enabled || config.console.enabled) {
        let location = ObjectLocation::open(&config.store.url, random).await?;
        return Ok(Arc::new(ObjectSlots::new(&location, clock)));
    }

    Ok(in_memory(clock))
}

/// Slots that end with the process.
pub(super) fn in_memory(clock: Arc<dyn Clock>) -> Arc<dyn Slots> {
    Arc::new(MemorySlots::new(clock, MAX_IN_MEMORY))
}
