//! Gives the upstreams what logins need: a vault where the store is, and this server's URL.

use std::sync::Arc;

use super::{OpenError, state_key::StateKey};
#[cfg(feature = "redis")]
use crate::redis::{Redis, RedisSlots};
#[cfg(feature = "object")]
use crate::store::{ObjectLocation, ObjectSlots};
use crate::{
    clock::Clock,
    config::{Config, ConfigError},
    random::Random,
    registry::{LoginSite, Registry},
    vault::{MemorySlots, Sealer, Slots, Vault},
};

/// The most slots in memory. A principal has one for each upstream with a login.
const MAX_SLOTS_IN_MEMORY: usize = 10_000;

/// Opens the vault in the place of `store.url`.
pub(super) async fn open(
    registry: &Registry,
    config: &Config,
    #[cfg(feature = "redis")] redis: Option<&Redis>,
    clock: Arc<dyn Clock>,
    random: &Random,
) -> Result<(), OpenError> {
    #[cfg(feature = "redis")]
    if let Some(redis) = redis {
        return Ok(open_with(
            registry,
            config,
            Arc::new(RedisSlots::new(redis.clone())),
            clock,
            random,
        )?);
    }
    #[cfg(feature = "object")]
    if config.has_objects() && registry.has_logins() {
        let location = ObjectLocation::open(&config.store.url, random).await?;
        return Ok(open_with(
            registry,
            config,
            Arc::new(ObjectSlots::new(&location, Arc::clone(&clock))),
            clock,
            random,
        )?);
    }
    Ok(open_in_memory(registry, config, clock, random)?)
}

/// Opens a vault that ends with the process.
pub(super) fn open_in_memory(
    registry: &Registry,
    config: &Config,
    clock: Arc<dyn Clock>,
    random: &Random,
) -> Result<(), ConfigError> {
    let slots = MemorySlots::new(Arc::clone(&clock), MAX_SLOTS_IN_MEMORY);
    open_with(registry, config, Arc::new(slots), clock, random)
}

fn open_with(
    registry: &Registry,
    config: &Config,
    slots: Arc<dyn Slots>,
    clock: Arc<dyn Clock>,
    random: &Random,
) -> Result<(), ConfigError> {
    let Some(base_url) = config.base_url()? else { return Ok(()) };
    if !registry.has_logins() {
        return Ok(());
    }
    // The keys of requestState in Redis are replaced every day; these tokens last longer.
    let key = StateKey::of_process(config, random)?.ring().current();
    let vault = Vault::new(slots, Sealer::new(&key));
    registry.open_logins(&LoginSite {
        vault,
        base_url: base_url.into(),
        clock,
        random: random.clone(),
    });
    Ok(())
}
