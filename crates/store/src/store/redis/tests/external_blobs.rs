//! Large content outside Redis, in a directory and on a real S3-compatible server:
//! the contract suite, where content is stored, and when it is removed.

use std::path::Path;

use larder_runtime::clock::ManualClock;

use super::*;
use crate::{
    store::StoreError, store::object::tests::open, store::redis::ExternalBlobs,
    store::redis::external_blobs::CHECK_INTERVAL, testing::S3Server, testing::store::noise,
};

/// The threshold in bytes: longer content is stored outside Redis.
const THRESHOLD: usize = 50;

/// A separate Redis server, and a location for large content.
struct WithExternalBlobs {
    redis: OnRedis,
    url: String,
    location: Location,
    threshold: usize,
    clock: ManualClock,
}

enum Location {
    Folder(tempfile::TempDir),
    Bucket(Arc<S3Server>),
}

impl WithExternalBlobs {
    /// Small content in Redis, the rest in a directory.
    async fn folder() -> Self {
        let folder = tempfile::tempdir().expect("there is room");
        let url = format!("file://{}", folder.path().display());
        Self::with(url, Location::Folder(folder), THRESHOLD).await
    }
    /// All content in S3, of any size.
    /// All content in S3, whatever its size.
    async fn bucket() -> Self {
        let server = S3Server::shared().await;
        Self::with(S3Server::url(&Random::system().id()), Location::Bucket(server), 0).await
    }

    async fn with(url: String, location: Location, threshold: usize) -> Self {
        Self { redis: OnRedis::new().await, url, location, threshold, clock: ManualClock::new() }
    }

    async fn each() -> [Self; 2] {
        [Self::folder().await, Self { threshold: THRESHOLD, ..Self::bucket().await }]
    }

    async fn instance(&self, prefix: &str, setup: &Setup, threshold: Option<usize>) -> Store {
        let settings = RedisSettings { prefix: prefix.to_owned(), ..settings(&self.redis.server) };
        let redis = Redis::open(&settings).await.expect("it is there");
        Layout::current().migrate(&redis, &Random::system()).await.expect("it migrates");

        let server = match &self.location {
            Location::Folder(_) => None,
            Location::Bucket(server) => Some(&**server),
        };

        let location = open(&self.url, server).await;
        let clock = Arc::new(self.clock.clone());
        let blobs = threshold.map(|threshold| ExternalBlobs::new(&location, threshold, clock));

        let backend = RedisBackend::open_with_blobs(redis, Random::system(), setup.quota, blobs);
        let backend = backend.await.expect("it opens");
        setup.limit(Store::new(Arc::new(backend), Arc::new(SystemClock), setup.limits.clone()))
    }

    /// The number of content objects and of due files.
    async fn files(&self) -> (usize, usize) {
        match &self.location {
            Location::Folder(folder) => {
                let below = |name: &str| files(&folder.path().join(name));
                (below("=blobs"), below("=due-blobs"))
            }
            Location::Bucket(server) => {
                let keys = server.keys(self.url.rsplit('/').next().expect("it has one")).await;
                let below = |name: &str| keys.iter().filter(|key| key.starts_with(name)).count();
                (below("=blobs/"), below("=due-blobs/"))
            }
        }
    }

    async fn until(&self, count: (usize, usize)) {
        let waiting = async {
            while self.files().await != count {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };

        let waited = tokio::time::timeout(Duration::from_secs(30), waiting).await;
        assert!(waited.is_ok(), "{:?} instead of {count:?}", self.files().await);
    }
}

fn files(folder: &Path) -> usize {
    // The store may remove folders meanwhile.
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let counts = entries.flatten().map(|entry| {
        let path = entry.path();
        if path.is_dir() { files(&path) } else { 1 }
    });
    counts.sum()
}

#[async_trait]
impl Harness for WithExternalBlobs {
    async fn store(&self, setup: Setup) -> Store {
        let installation = self.redis.installations.fetch_add(1, Ordering::Relaxed);
        self.instance(&format!("larder-{installation}"), &setup, Some(self.threshold)).await
    }

    async fn pass(&self, span: Duration) {
        self.redis.pass(span).await;
    }

    fn tick(&self) -> Duration {
        self.redis.tick()
    }
}

mod folder {
    crate::store_contract!(super::WithExternalBlobs::folder().await);
}

mod bucket {
    crate::store_contract!(super::WithExternalBlobs::bucket().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn large_content_is_stored_outside_and_removed_when_redis_removes_its_mark() {
    for setting in WithExternalBlobs::each().await {
        let store = setting.instance("a", &Setup::default(), Some(THRESHOLD)).await;

        let alice = Owner::new("alice");
        let noise = noise(3 << 20);
        let put = async |name: &str, content: &[u8], details: Details| {
            store.create(&alice, uri(name), content.to_vec().into(), details).await
        };

        put("x:small", b"small", Details::default()).await.expect("it fits");
        assert_eq!(setting.files().await, (0, 0));

        put("x:large", &noise, Details::default()).await.expect("it fits");
        put("x:short", &noise, lasting(1000)).await.expect("it fits");
        put("x:deleted", &noise, Details::default()).await.expect("it fits");
        assert_eq!(setting.files().await, (3, 3));

        for name in ["x:small", "x:large"] {
            let found = store.get(&alice, &uri(name)).await.expect("it is there");
            assert_eq!(found.bytes().await.expect("it can be read").len() as u64, found.entry.size);
        }

        let deleted = store.get(&alice, &uri("x:deleted")).await.expect("it is there");
        assert!(store.delete(&alice, &uri("x:deleted")).await.expect("it can be deleted"));
        // A read that has begun can finish.
        assert!(deleted.bytes().await.expect("it is still there") == noise);

        let _maintained = maintained(&store);
        expired(&store, &alice, "x:short").await;
        let gone = store.get(&alice, &uri("x:short")).await.map(|found| found.entry);
        assert!(gone.as_ref().is_err_and(StoreError::is_not_found), "{gone:?}");

        setting.clock.advance(CHECK_INTERVAL);
        // Deleted content still has its grace period; all other objects are checked again.
        setting.until((2, 2)).await;
        assert!(read(&store, &alice, "x:large").await == noise);
        let large = store.get(&alice, &uri("x:large")).await.expect("it is there");

        // An instance without the location reads small content, and fails for large content.
        let other = setting.instance("a", &Setup::default(), None).await;
        assert_eq!(read(&other, &alice, "x:small").await, "small");
        let found = other.get(&alice, &uri("x:large")).await.expect("it is known");
        assert!(matches!(found.bytes().await, Err(StoreError::Unavailable { .. })));

        // Marks that Redis has lost count as expired.
        assert_eq!(large.entry.size, noise.len() as u64);
        let redis = Redis::open(&settings(&setting.redis.server)).await.expect("it is there");
        redis.query::<()>(&crate::redis::cmd("FLUSHALL")).await.expect("it is done");
        setting.clock.advance(CHECK_INTERVAL);
        setting.until((0, 0)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_content_is_removed_with_its_mark() {
    for setting in WithExternalBlobs::each().await {
        let store = setting.instance("a", &Setup::default(), Some(THRESHOLD)).await;
        let alice = Owner::new("alice");
        let noise = noise(1 << 20);

        let put = async |text: &[u8]| {
            let content = [&noise, text].concat().into();
            store.create(&alice, uri("x:1"), content, lasting(86_400_000)).await.expect("it fits")
        };

        put(b"1").await;
        put(b"2").await;
        assert!(store.delete(&alice, &uri("x:1")).await.expect("it can be deleted"));
        // Redis loses the marks, which saves waiting for the grace period.
        let redis = Redis::open(&settings(&setting.redis.server)).await.expect("it is there");
        redis.query::<()>(&crate::redis::cmd("FLUSHALL")).await.expect("it is done");
        assert_eq!(setting.files().await.0, 2);

        let _maintained = maintained(&store);
        setting.clock.advance(Duration::from_secs(120));
        // The hourly checks are still to come.
        setting.until((0, 2)).await;
    }
}

/// The request that finds that the mark has expired removes the object, so that the object is not
/// on disk when it no longer counts.
#[tokio::test(flavor = "multi_thread")]
async fn kept_content_is_removed_once_it_no_longer_counts() {
    for setting in WithExternalBlobs::each().await {
        let store = setting.instance("a", &Setup::default(), Some(THRESHOLD)).await;
        let alice = Owner::new("alice");

        let put = async |content: Vec<u8>, millis| {
            store
                .create(&alice, uri("x:1"), content.into(), lasting(millis))
                .await
                .expect("it fits")
        };

        put(noise(1 << 20), 1500).await;
        assert!(store.delete(&alice, &uri("x:1")).await.expect("it can be deleted"));
        assert_eq!(setting.files().await.0, 1);

        patiently(async {
            while setting.files().await.0 != 0 {
                put(b"small".to_vec(), 60_000).await;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_content_leaves_no_object() {
    for setting in WithExternalBlobs::each().await {
        let setup = Setup::default().max_resources(1);
        let store = setting.instance("a", &setup, Some(THRESHOLD)).await;
        let alice = Owner::new("alice");
        let noise = noise(1 << 20);

        let put =
            |name: &str| store.create(&alice, uri(name), noise.clone().into(), Details::default());

        put("x:1").await.expect("it fits");
        let refused = put("x:2").await.map(|entry| entry.uri.clone());
        assert!(matches!(refused, Err(StoreError::Full(_))), "{refused:?}");
        setting.until((1, 2)).await;
    }
}
