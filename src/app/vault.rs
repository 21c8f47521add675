//! Opens the vault in the place of `store.url`.

use std::sync::Arc;

use larder_runtime::{clock::Clock, random::Random};
use larder_store::redis::{Redis, RedisSlots};
use larder_store::store::{ObjectLocation, ObjectSlots};
use larder_store::vault::{MemorySlots, Sealer, Slots, Vault};

use super::{OpenError, state_key::StateKey};
use crate::config::{Config, ConfigError};

/// The most slots in memory. A principal has one for each upstream with a login, and a few for
/// each client.
const MAX_SLOTS_IN_MEMORY: usize = 10_000;

/// The vault of all instances on the store.
pub(super) async fn open(
    config: &Config,
    redis: Option<&Redis>,
    clock: &Arc<dyn Clock>,
    random: &Random,
) -> Result<Vault, OpenError> {
    if let Some(redis) = redis {
        return Ok(sealed(Arc::new(RedisSlots::new(redis.clone())), config, random)?);
    }

    if config.has_objects() {
        let location = ObjectLocation::open(&config.store.url, random).await?;
        let slots = ObjectSlots::new(&location, Arc::clone(clock));
        return Ok(sealed(Arc::new(slots), config, random)?);
    }

    Ok(in_memory(config, clock, random)?)
}

/// A vault that ends with the process.
pub(super) fn in_memory(
    config: &Config,
    clock: &Arc<dyn Clock>,
    random: &Random,
) -> Result<Vault, ConfigError> {
    let slots = MemorySlots::new(Arc::clone(clock), MAX_SLOTS_IN_MEMORY);
    sealed(Arc::new(slots), config, random)
}

fn sealed(slots: Arc<dyn Slots>, config: &Config, random: &Random) -> Result<Vault, ConfigError> {
    // The vault outlives the requestState keys in Redis, which are replaced every day.
    let key = StateKey::of_process(config, random)?.ring().current();
    Ok(Vault::new(slots, Sealer::new(&key)))
}
