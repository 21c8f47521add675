//! The contract suite on Redis, and tests of what is specific to Redis: keys,
//! several instances, outages.

mod clocks;
mod cluster;
mod earlier;
mod external_blobs;
mod instances;
mod keys;
mod outage;
mod parts;
mod usage;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use larder_identity::Owner;
use larder_runtime::{clock::SystemClock, random::Random};
use tokio_util::task::AbortOnDropHandle;

use super::RedisBackend;
use crate::{
    redis::layout::Layout,
    redis::{Redis, RedisSettings},
    store::{ChangeKind, Changes, Details, ResourceUri, Store},
    testing::RedisServer,
    testing::store::{Harness, Setup},
};

/// A separate Redis server, with one installation for each store.
struct OnRedis {
    server: RedisServer,
    installations: AtomicU32,
}

impl OnRedis {
    async fn new() -> Self {
        Self { server: RedisServer::start().await, installations: AtomicU32::new(0) }
    }
}

fn settings(server: &RedisServer) -> RedisSettings {
    RedisSettings { timeout: Duration::from_secs(10), ..RedisSettings::new(server.url()) }
}

/// Another instance of the installation with these settings.
async fn instance(settings: &RedisSettings, setup: &Setup) -> Store {
    let redis = Redis::open(settings).await.expect("it is there");
    Layout::current().migrate(&redis, &Random::system()).await.expect("it migrates");
    let backend = RedisBackend::open(redis, Random::system(), setup.quota).await.expect("it opens");
    setup.limit(Store::new(Arc::new(backend), Arc::new(SystemClock), setup.limits.clone()))
}

/// An instance with the default setup.
async fn on(server: &RedisServer) -> Store {
    instance(&settings(server), &Setup::default()).await
}

fn uri(uri: &str) -> ResourceUri {
    ResourceUri::parse(uri).expect("it is a URI")
}

fn lasting(millis: u64) -> Details {
    Details { ttl: Some(Duration::from_millis(millis)), ..Details::default() }
}

async fn read(store: &Store, owner: &Owner, name: &str) -> Bytes {
    let found = store.get(owner, &uri(name)).await.expect("it is there");
    found.bytes().await.expect("it can be read")
}

/// Runs the store's background work until dropped.
fn maintained(store: &Store) -> AbortOnDropHandle<()> {
    let store = store.clone();
    AbortOnDropHandle::new(tokio::spawn(async move { store.maintain().await }))
}

/// Fails if the work takes longer than 30 seconds.
async fn patiently<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), work).await.expect("it comes to an end")
}

/// Waits until a resource has expired, by the clock of Redis.
async fn expired(store: &Store, owner: &Owner, name: &str) {
    patiently(async {
        while store.get(owner, &uri(name)).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

async fn heard(changes: &mut Changes) -> (ChangeKind, String) {
    let change = patiently(changes.next()).await.expect("none is missed").expect("it goes on");
    (change.kind, change.uri.to_string())
}

#[async_trait]
impl Harness for OnRedis {
    async fn store(&self, setup: Setup) -> Store {
        let installation = self.installations.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("larder-{installation}");
        instance(&RedisSettings { prefix, ..settings(&self.server) }, &setup).await
    }

    async fn pass(&self, span: Duration) {
        tokio::time::sleep(span).await;
    }

    fn tick(&self) -> Duration {
        Duration::from_millis(500)
    }
}

crate::store_contract!(OnRedis::new().await);
