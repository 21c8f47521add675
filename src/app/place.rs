//! [`Places`]: where a server keeps things, opened once from the configuration. Only this module
//! asks which place a URL names.

use std::sync::Arc;

use larder_runtime::key_ring::KeyRing;
use larder_store::{
    redis::{Instance, Redis, RedisError, RedisSlots, StateKeys, layout::Layout},
    session::{MemorySessions, RedisClaims, RedisNotes, RedisSessions, Sessions, SharedParts},
    store::{
        Backend, ExternalBlobs, MemoryBackend, ObjectBackend, ObjectLocation, ObjectSlots,
        RedisBackend, Store,
    },
    task::{MemoryTasks, RedisTasks, Tasks},
    vault::{MemorySlots, Sealer, Slots, Vault},
};

use super::{OpenError, base::Base, keys::Keys};
use crate::config::{Config, ConfigError, StoreUrl};

/// The most used links, and the most sessions at the console, that are remembered in memory.
const MAX_SLOTS_IN_MEMORY: usize = 100_000;

/// The most secrets in memory. A principal has one for each upstream with a login, and a few for
/// each client.
const MAX_SECRETS_IN_MEMORY: usize = 10_000;

/// The places of a server.
pub(super) struct Places {
    pub(super) resources: Place,
    pub(super) calls: CallPlace,
    keys: Keys,
}

/// The place of resources, and of small values beside them.
pub(crate) enum Place {
    /// The memory of this process.
    Memory,
    /// Redis. The backend keeps large content in the directory or bucket of `store.blobs`, if
    /// there is one.
    Redis { redis: Redis, backend: Arc<RedisBackend> },
    /// A directory or a bucket.
    Objects(ObjectLocation),
    /// A backend that the code gives. Small values are in the memory of this process.
    Given(Arc<dyn Backend>),
}

/// The place of sessions and tasks.
pub(crate) enum CallPlace {
    /// The memory of this process.
    Memory,
    /// Redis, which this instance shares with others.
    Redis { redis: Redis, instance: Instance },
}

impl Places {
    /// Connects to the places of the configuration.
    ///
    /// # Errors
    /// A place is not available, or a setting is invalid.
    pub(super) async fn open(base: &Base) -> Result<Self, OpenError> {
        let own_keys = Keys::of_process(base)?;
        let resources = Place::open(base).await?;
        let calls = CallPlace::open(base, &resources).await?;

        let shared_keys = match (&calls, &resources) {
            _ if base.config.server.state_key_file.is_some() => None,
            (CallPlace::Redis { redis, .. }, _) => {
                let keys = StateKeys::open(redis.clone(), base.random()).await;
                Some(keys.map_err(|error| sessions_error(&base.config, error))?)
            }
            (CallPlace::Memory, Place::Redis { redis, .. }) => {
                Some(StateKeys::open(redis.clone(), base.random()).await?)
            }
            (CallPlace::Memory, Place::Memory | Place::Objects(_) | Place::Given(_)) => None,
        };

        let keys = match shared_keys {
            Some(keys) => own_keys.shared_by(keys),
            None => own_keys,
        };
        Ok(Self { resources, calls, keys })
    }

    /// Places in the memory of this process, whatever the configuration names.
    ///
    /// # Errors
    /// The file of the key cannot be used.
    pub(super) fn in_memory(base: &Base) -> Result<Self, ConfigError> {
        let keys = Keys::of_process(base)?;
        Ok(Self { resources: Place::Memory, calls: CallPlace::Memory, keys })
    }

    /// The keys that seal `requestState` and links. They change while the places exist.
    pub(super) fn state_keys(&self) -> KeyRing {
        self.keys.ring()
    }

    /// Small values that expire, such as the note that a link was used.
    pub(super) fn slots(&self, base: &Base) -> Arc<dyn Slots> {
        self.resources.slots(MAX_SLOTS_IN_MEMORY, base)
    }

    /// Sealed secrets of callers.
    pub(super) fn vault(&self, base: &Base) -> Vault {
        let slots = self.resources.slots(MAX_SECRETS_IN_MEMORY, base);
        Vault::new(slots, Sealer::new(&self.keys.lasting()))
    }
}

impl Place {
    /// Connects to the place of `store.url`, unless the code gives a backend.
    ///
    /// # Errors
    /// The place is not available, or a setting is invalid.
    pub(crate) async fn open(base: &Base) -> Result<Self, OpenError> {
        if let Some(backend) = &base.backend {
            return Ok(Self::Given(Arc::clone(backend)));
        }

        let config = &base.config;
        match config.store.place()? {
            StoreUrl::Memory => Ok(Self::Memory),
            StoreUrl::Redis(url) => {
                let redis = Redis::open(&config.redis.settings(url)).await?;
                let backend = redis_backend(&redis, base).await?;
                Ok(Self::Redis { redis, backend: Arc::new(backend) })
            }
            StoreUrl::Objects(url) => {
                let reserve = config.store.disk_reserve_bytes;
                let location =
                    ObjectLocation::open_with_reserve(url, reserve, &base.random).await?;
                Ok(Self::Objects(location))
            }
        }
    }

    /// The store of resources.
    pub(crate) fn store(&self, base: &Base) -> Store {
        let config = &base.config;
        let total = match self {
            Self::Memory | Self::Given(_) => None,
            Self::Redis { .. } => config.redis.total(),
            Self::Objects(_) => config.objects.total(),
        };

        let backend: Arc<dyn Backend> = match self {
            Self::Memory => Arc::new(MemoryBackend::new(base.clock(), config.memory.limits())),
            Self::Redis { backend, .. } => Arc::clone(backend) as _,
            Self::Given(backend) => Arc::clone(backend),
            Self::Objects(location) => {
                let quota = config.objects.quota();
                let location = location.clone();
                Arc::new(ObjectBackend::new(location, base.clock(), base.random(), quota))
            }
        };

        let store = Store::new(backend, base.clock(), config.store.limits());
        match total {
            Some(total) => store.limited_to(total),
            None => store,
        }
    }

    /// Small values beside the resources: at most `max_in_memory`, where they are in memory.
    fn slots(&self, max_in_memory: usize, base: &Base) -> Arc<dyn Slots> {
        match self {
            Self::Memory | Self::Given(_) => {
                Arc::new(MemorySlots::new(base.clock(), max_in_memory))
            }
            Self::Redis { redis, .. } => Arc::new(RedisSlots::new(redis.clone())),
            Self::Objects(location) => Arc::new(ObjectSlots::new(location, base.clock())),
        }
    }
}

impl CallPlace {
    /// Connects to the place of `sessions.url`, or of `store.url` without it, over the connection
    /// of `resources` where both are the same Redis.
    ///
    /// # Errors
    /// Redis is not available, or a setting is invalid.
    pub(crate) async fn open(base: &Base, resources: &Place) -> Result<Self, OpenError> {
        let Some(settings) = base.config.sessions_redis()? else { return Ok(Self::Memory) };

        let redis = match resources {
            Place::Redis { redis, .. } if settings.url == base.config.store.url => redis.clone(),
            _ => {
                let opened = Redis::open(&settings).await;
                opened.map_err(|error| sessions_error(&base.config, error))?
            }
        };

        let instance = Instance::join(redis.clone(), &base.random);
        Ok(Self::Redis { redis, instance })
    }

    /// The sessions of legacy clients, and their streams.
    pub(super) fn sessions(&self, base: &Base) -> Arc<dyn Sessions> {
        let limits = base.config.sessions.limits();
        let random = base.random();
        match self {
            Self::Memory => Arc::new(MemorySessions::new(base.clock(), random, limits)),
            Self::Redis { instance, .. } => {
                Arc::new(RedisSessions::new(instance.clone(), random, limits))
            }
        }
    }

    /// The calls that continue after their response.
    pub(super) fn tasks(&self, base: &Base) -> Arc<dyn Tasks> {
        let limits = base.config.tasks.limits();
        let random = base.random();
        match self {
            Self::Memory => Arc::new(MemoryTasks::new(base.clock(), random, limits)),
            Self::Redis { instance, .. } => {
                Arc::new(RedisTasks::new(instance.clone(), random, limits))
            }
        }
    }

    /// The parts of sessions that instances share, if there may be several instances.
    pub(super) fn shared_parts(&self, base: &Base) -> Option<SharedParts> {
        match self {
            Self::Memory => None,
            Self::Redis { redis, instance } => Some(SharedParts {
                claims: Arc::new(RedisClaims::new(instance.clone())),
                notes: Arc::new(RedisNotes::new(redis.clone(), base.config.sessions.limits().idle)),
            }),
        }
    }
}

/// The backend in Redis, after the missing migrations if `redis.migrate` is set.
async fn redis_backend(redis: &Redis, base: &Base) -> Result<RedisBackend, OpenError> {
    let config = &base.config;
    if config.redis.migrate {
        for migration in Layout::current().migrate(redis, &base.random).await? {
            tracing::info!(%migration, "migrated");
        }
    }

    let blobs = match &config.store.blobs {
        Some(url) => {
            let reserve = config.store.disk_reserve_bytes;
            let location = ObjectLocation::open_with_reserve(url, reserve, &base.random).await;
            let location = location.map_err(OpenError::Blobs)?;
            Some(ExternalBlobs::new(&location, config.store.blob_bytes, base.clock()))
        }
        None => None,
    };

    let quota = config.redis.quota();
    let backend = RedisBackend::open_with_blobs(redis.clone(), base.random(), quota, blobs);
    Ok(backend.await?)
}

/// An error of the Redis of sessions, under the setting that names it.
fn sessions_error(config: &Config, error: RedisError) -> OpenError {
    match config.sessions.url {
        Some(_) => OpenError::Sessions(error),
        None => OpenError::Redis(error),
    }
}
