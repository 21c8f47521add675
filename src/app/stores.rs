//! Opens the store that the configuration names.

use std::{sync::Arc, time::Duration};

use larder_runtime::{clock::Clock, random::Random};
use larder_store::store::TotalLimit;
use larder_store::store::{LocationError, ObjectBackend, ObjectLocation};
use larder_store::store::{MemoryLimits, OwnerQuota, Store, StoreLimits};
use larder_store::{
    redis::{Redis, layout::Layout},
    store::{ExternalBlobs, RedisBackend},
};

use super::NEEDS_OPEN;
use super::OpenError;
use crate::config::{Config, ConfigError};

/// The schemes of `store.url` that this build supports.
const SCHEMES: &str = "\"memory:\", \"redis://…\", \"file:///…\" and \"s3://…\"";

/// Opens the store of `store.url`, after connecting to it.
pub(super) async fn open(
    config: &Config,
    redis: Option<&Redis>,
    clock: Arc<dyn Clock>,
    random: &Random,
) -> Result<Store, OpenError> {
    if let Some(redis) = redis {
        return redis_store(redis.clone(), config, clock, random).await;
    }

    if config.has_objects() {
        return Ok(object_store(config, clock, random).await?);
    }

    Ok(memory_store(config, clock)?)
}

/// Opens the store of `store.url` for a command that serves nothing.
#[cfg(feature = "cli")]
pub(crate) async fn open_alone(config: &Config) -> Result<Store, OpenError> {
    let redis = match config.redis() {
        Some(settings) => Some(Redis::open(&settings).await?),
        None => None,
    };

    let clock = Arc::new(larder_runtime::clock::SystemClock);
    open(config, redis.as_ref(), clock, &Random::system()).await
}

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

        if config.redis().is_some() {
            return Err(ConfigError::new("store.url", NEEDS_OPEN));
        }

        if config.has_objects() {
            let problem = "the store must be checked first: use App::open";
            return Err(ConfigError::new("store.url", problem));
        }

        let problem = format!("unknown scheme {scheme:?}; this build supports {SCHEMES}");
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

async fn redis_store(
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
            let reserve = config.store.disk_reserve_bytes;
            let location = ObjectLocation::open_with_reserve(url, reserve, random).await;
            let location = location.map_err(OpenError::Blobs)?;
            Some(ExternalBlobs::new(&location, config.store.blob_bytes, Arc::clone(&clock)))
        }
        None => None,
    };

    let backend = RedisBackend::open_with_blobs(redis, random.clone(), quota, blobs).await?;
    let store = Store::new(Arc::new(backend), clock, store_limits(config));
    Ok(limited(store, "redis.bytes", config.redis.bytes))
}

/// The store with a limit on all owners together, 0 for none.
fn limited(store: Store, setting: &'static str, bytes: u64) -> Store {
    if bytes == 0 { store } else { store.limited_to(TotalLimit { bytes, setting }) }
}

async fn object_store(
    config: &Config,
    clock: Arc<dyn Clock>,
    random: &Random,
) -> Result<Store, LocationError> {
    let reserve = config.store.disk_reserve_bytes;
    let location = ObjectLocation::open_with_reserve(&config.store.url, reserve, random).await?;

    let quota = OwnerQuota {
        bytes: config.objects.bytes_per_owner,
        resources: config.objects.resources_per_owner,
    };

    let backend = ObjectBackend::new(location, Arc::clone(&clock), random.clone(), quota);
    let store = Store::new(Arc::new(backend), clock, store_limits(config));
    Ok(limited(store, "objects.bytes", config.objects.bytes))
}
