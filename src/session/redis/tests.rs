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

use super::RedisSessions;
use crate::{
    random::Random,
    redis::{Redis, RedisSettings, testing::RedisServer},
    session::{SessionLimits, Sessions, contract::Harness},
};

/// A server of its own, and on it as many installations as are asked for.
struct OnRedis {
    server: RedisServer,
    installations: AtomicU32,
}

impl OnRedis {
    async fn new() -> Self {
        Self { server: RedisServer::start().await, installations: AtomicU32::new(0) }
    }

    async fn replica(&self, installation: u32, limits: SessionLimits) -> RedisSessions {
        let prefix = format!("larder-{installation}");
        let settings = RedisSettings { prefix, ..RedisSettings::new(self.server.url()) };
        let redis = Redis::open(&settings).await.expect("it is there");
        RedisSessions::new(redis, Random::system(), limits)
    }
}

#[async_trait]
impl Harness for OnRedis {
    async fn processes(&self, limits: SessionLimits) -> [Arc<dyn Sessions>; 2] {
        let installation = self.installations.fetch_add(1, Ordering::Relaxed);
        [
            Arc::new(self.replica(installation, limits.clone()).await),
            Arc::new(self.replica(installation, limits).await),
        ]
    }

    async fn pass(&self, span: Duration) {
        tokio::time::sleep(span).await;
    }

    fn tick(&self) -> Duration {
        Duration::from_millis(300)
    }
}

crate::session_contract!(OnRedis::new().await);
