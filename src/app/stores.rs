//! Opens the store that the configuration names.

use std::{sync::Arc, time::Duration};

use super::{NEEDS_OPEN, OpenError};
use crate::{
    clock::Clock,
    config::{Config, ConfigError},
    random::Random,
    redis::{Redis, layout::Layout},
    store::{
        MemoryLimits, ObjectBackend, ObjectPlace, OwnerQuota, PlaceError, RedisBackend, RedisBlobs,
        Store, StoreLimits,
    },
};

fn store_limits(config: &Config) -> StoreLimits {
    StoreLimits {
        default_ttl: Duration::from_secs(config.store.default_ttl),
        max_ttl: Duration::from_secs(config.store.max_ttl),
        revisions: config.store.revisions.get().into(),
    }
}

pub(super) fn memory_store(config: &Config, clock: Arc<dyn Clock>) -> Result<Store, ConfigError> {
    let url = &config.store.url;
    if url.split(':').next() != Some("memory") {
        // A URL may contain a password, so only its scheme is shown.
        let scheme = url.split(':').next().unwrap_or_default();
        let problem = if config.redis().is_some() {
            NEEDS_OPEN.to_owned()
        } else if config.has_objects() {
            "the store must be checked first: use App::open".to_owned()
        } else {
            format!(
                "unknown scheme {scheme:?}; use \"memory:\", \"redis://…\", \"file:///…\" or \"s3://…\""
            )
        };
        return Err(ConfigError::new("store.url", problem));
    }
    let memory = MemoryLimits {
        bytes: config.memory.bytes,
        per_owner: OwnerQuota {
            bytes: config.memory.bytes_per_owner,
            resources: config.memory.resources_per_owner,
        },
    };
    Ok(Store::memory(clock, memory, store_limits(config)))
}

pub(super) async fn redis_store(
    redis: Redis,
    config: &Config,
    clock: Arc<dyn Clock>,
    random: &Random,
) -> Result<Store, OpenError> {
    if config.redis.migrate {
        for migration in Layout::current().migrate(&redis, random).await? {
            tracing::info!(%migration, "migrated");
        }
    }
    let quota = OwnerQuota {
        bytes: config.redis.bytes_per_owner,
        resources: config.redis.resources_per_owner,
    };
    let blobs = match &config.store.blobs {
        Some(url) => {
            let location = ObjectPlace::open(url, random).await.map_err(OpenError::Blobs)?;
            Some(RedisBlobs::new(&location, config.store.blob_bytes, Arc::clone(&clock)))
        }
        None => None,
    };
    let backend = RedisBackend::open_beside(redis, random.clone(), quota, blobs).await?;
    Ok(Store::new(Arc::new(backend), clock, store_limits(config)))
}

pub(super) async fn object_store(
    config: &Config,
    clock: Arc<dyn Clock>,
    random: &Random,
) -> Result<Store, PlaceError> {
    let location = ObjectPlace::open(&config.store.url, random).await?;
    let quota = OwnerQuota {
        bytes: config.objects.bytes_per_owner,
        resources: config.objects.resources_per_owner,
    };
    let backend = ObjectBackend::new(location, Arc::clone(&clock), random.clone(), quota);
    Ok(Store::new(Arc::new(backend), clock, store_limits(config)))
}
