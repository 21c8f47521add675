//! Where resources lie: a store by what the configuration says of it.

use std::{sync::Arc, time::Duration};

use super::{ASK_REDIS, OpenError};
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

pub(super) fn in_memory(config: &Config, clock: Arc<dyn Clock>) -> Result<Store, ConfigError> {
    let url = &config.store.url;
    if url.split(':').next() != Some("memory") {
        // A URL may hold a password, so only how it begins is repeated.
        let scheme = url.split(':').next().unwrap_or_default();
        let problem = if config.redis().is_some() {
            ASK_REDIS.to_owned()
        } else if config.has_objects() {
            "it has to be seen whether it works: use App::open".to_owned()
        } else {
            format!(
                "{scheme:?} is no store that this version has; use \"memory:\", \"redis://…\", \"file:///…\" or \"s3://…\""
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

pub(super) async fn on_redis(
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
            let place = ObjectPlace::open(url, random).await.map_err(OpenError::Blobs)?;
            Some(RedisBlobs::new(&place, config.store.blob_bytes, Arc::clone(&clock)))
        }
        None => None,
    };
    let backend = RedisBackend::open_beside(redis, random.clone(), quota, blobs).await?;
    Ok(Store::new(Arc::new(backend), clock, store_limits(config)))
}

pub(super) async fn as_objects(
    config: &Config,
    clock: Arc<dyn Clock>,
    random: &Random,
) -> Result<Store, PlaceError> {
    let place = ObjectPlace::open(&config.store.url, random).await?;
    let quota = OwnerQuota {
        bytes: config.objects.bytes_per_owner,
        resources: config.objects.resources_per_owner,
    };
    let backend = ObjectBackend::new(place, Arc::clone(&clock), random.clone(), quota);
    Ok(Store::new(Arc::new(backend), clock, store_limits(config)))
}
