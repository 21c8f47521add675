//! What the contract does not say: what lies in Redis, and what happens when
//! it or a replica goes.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;

use super::{RedisBackend, RedisLimits};
use crate::{
    clock::SystemClock,
    random::Random,
    redis::{Redis, RedisSettings, layout::Layout, testing::RedisServer},
    store::{
        Store,
        contract::{Harness, Setup},
    },
};

/// A server of its own, and on it as many installations as it has stores.
struct OnRedis {
    server: RedisServer,
    installations: AtomicU32,
}

impl OnRedis {
    async fn new() -> Self {
        Self { server: RedisServer::start().await, installations: AtomicU32::new(0) }
    }
}

#[async_trait]
impl Harness for OnRedis {
    async fn store(&self, setup: Setup) -> Store {
        let installation = self.installations.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("larder-{installation}");
        let settings = RedisSettings { prefix, ..RedisSettings::new(self.server.url()) };
        let redis = Redis::open(&settings).await.expect("it is there");
        Layout::current().migrate(&redis, &Random::system()).await.expect("it migrates");
        let limits = RedisLimits {
            bytes_per_owner: setup.bytes_per_owner,
            resources_per_owner: setup.resources_per_owner,
        };
        let backend = RedisBackend::open(redis, Random::system(), limits).await;
        Store::new(Arc::new(backend.expect("it opens")), Arc::new(SystemClock), setup.limits)
    }

    async fn pass(&self, span: Duration) {
        tokio::time::sleep(span).await;
    }

    fn tick(&self) -> Duration {
        Duration::from_millis(500)
    }
}

crate::store_contract!(OnRedis::new().await);
