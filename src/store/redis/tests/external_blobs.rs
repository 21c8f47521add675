//! Large content beside Redis, in a directory and on a real S3-compatible
//! server: the contract; what lies where, and when it goes.

use std::path::Path;

use super::*;
use crate::{
    clock::ManualClock,
    store::{
        StoreError,
        object::tests::open,
        redis::{RedisBlobs, external_blobs::LOOK},
    },
    testing::{S3Server, store::noise},
};

/// More than that lies beside Redis.
const OVER: usize = 50;

/// A Redis of one's own, and a place beside it.
struct Beside {
    redis: OnRedis,
    url: String,
    at: At,
    over: usize,
    clock: ManualClock,
}

enum At {
    Folder(tempfile::TempDir),
    Bucket(Arc<S3Server>),
}

impl Beside {
    /// A little of the content in Redis, and the rest in a directory.
    async fn folder() -> Self {
        let folder = tempfile::tempdir().expect("there is room");
        let url = format!("file://{}", folder.path().display());
        Self::with(url, At::Folder(folder), OVER).await
    }

    /// All content in S3, whatever little there is of it.
    async fn bucket() -> Self {
        let server = S3Server::shared().await;
        Self::with(S3Server::url(&Random::system().id()), At::Bucket(server), 0).await
    }

    async fn with(url: String, at: At, over: usize) -> Self {
        Self { redis: OnRedis::new().await, url, at, over, clock: ManualClock::new() }
    }

    async fn each() -> [Self; 2] {
        [Self::folder().await, Self { over: OVER, ..Self::bucket().await }]
    }

    async fn instance(&self, prefix: &str, setup: &Setup, over: Option<usize>) -> Store {
        let settings = RedisSettings { prefix: prefix.to_owned(), ..settings(&self.redis.server) };
        let redis = Redis::open(&settings).await.expect("it is there");
        Layout::current().migrate(&redis, &Random::system()).await.expect("it migrates");
        let server = match &self.at {
            At::Folder(_) => None,
            At::Bucket(server) => Some(&**server),
        };
        let place = open(&self.url, server).await;
        let clock = Arc::new(self.clock.clone());
        let blobs = over.map(|over| RedisBlobs::new(&place, over, clock));
        let backend = RedisBackend::open_beside(redis, Random::system(), setup.quota, blobs).await;
        let backend = backend.expect("it opens");
        Store::new(Arc::new(backend), Arc::new(SystemClock), setup.limits.clone())
    }

    /// How many files lie there: content, and when to look.
    async fn files(&self) -> (usize, usize) {
        match &self.at {
            At::Folder(folder) => {
                let below = |name: &str| files(&folder.path().join(name));
                (below("=blobs"), below("=due-blobs"))
            }
            At::Bucket(server) => {
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
    // Folders go while they are looked at.
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let counts = entries.flatten().map(|entry| {
        let path = entry.path();
        if path.is_dir() { files(&path) } else { 1 }
    });
    counts.sum()
}

#[async_trait]
impl Harness for Beside {
    async fn store(&self, setup: Setup) -> Store {
        let installation = self.redis.installations.fetch_add(1, Ordering::Relaxed);
        self.instance(&format!("larder-{installation}"), &setup, Some(self.over)).await
    }

    async fn pass(&self, span: Duration) {
        self.redis.pass(span).await;
    }

    fn tick(&self) -> Duration {
        self.redis.tick()
    }
}

mod folder {
    crate::store_contract!(super::Beside::folder().await);
}

mod bucket {
    crate::store_contract!(super::Beside::bucket().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_large_lies_beside_and_goes_when_redis_lets_go_of_it() {
    for external_blobs in Beside::each().await {
        let store = external_blobs.instance("a", &Setup::default(), Some(OVER)).await;
        let (alice, noise) = (Owner::new("alice"), noise(3 << 20));
        let put = async |name: &str, content: &[u8], details: Details| {
            store.create(&alice, uri(name), content.to_vec().into(), details).await
        };
        put("x:small", b"small", Details::default()).await.expect("it fits");
        assert_eq!(external_blobs.files().await, (0, 0));
        put("x:large", &noise, Details::default()).await.expect("it fits");
        put("x:short", &noise, lasting(1000)).await.expect("it fits");
        put("x:deleted", &noise, Details::default()).await.expect("it fits");
        assert_eq!(external_blobs.files().await, (3, 3));
        for name in ["x:small", "x:large"] {
            let found = store.get(&alice, &uri(name)).await.expect("it is there");
            assert_eq!(found.bytes().await.expect("it can be read").len() as u64, found.entry.size);
        }
        let deleted = store.get(&alice, &uri("x:deleted")).await.expect("it is there");
        assert!(store.delete(&alice, &uri("x:deleted")).await.expect("it can be deleted"));
        // Whoever has begun to read it can end.
        assert!(deleted.bytes().await.expect("it is still there") == noise);

        let _maintained = maintained(&store);
        tokio::time::sleep(Duration::from_millis(1000)).await;
        let gone = store.get(&alice, &uri("x:short")).await.map(|found| found.entry);
        assert!(gone.as_ref().is_err_and(StoreError::is_not_found), "{gone:?}");
        external_blobs.clock.advance(LOOK);
        // What was deleted has a minute yet; all that is there is looked at again.
        external_blobs.until((2, 2)).await;
        assert!(read(&store, &alice, "x:large").await == noise);
        let mark = store.get(&alice, &uri("x:large")).await.expect("it is there");

        // A server that was not told where it lies says so, and reads the rest.
        let other = external_blobs.instance("a", &Setup::default(), None).await;
        assert_eq!(read(&other, &alice, "x:small").await, "small");
        let found = other.get(&alice, &uri("x:large")).await.expect("it is known");
        assert!(matches!(found.bytes().await, Err(StoreError::Unavailable { .. })));

        // Redis itself decides, with whatever it has lost.
        assert_eq!(mark.entry.size, noise.len() as u64);
        let redis =
            Redis::open(&settings(&external_blobs.redis.server)).await.expect("it is there");
        redis.query::<()>(&crate::redis::cmd("FLUSHALL")).await.expect("it is done");
        external_blobs.clock.advance(LOOK);
        external_blobs.until((0, 0)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_or_given_up_leaves_no_object() {
    for external_blobs in Beside::each().await {
        let setup = Setup::default().max_resources(1);
        let store = external_blobs.instance("a", &setup, Some(OVER)).await;
        let (alice, noise) = (Owner::new("alice"), noise(1 << 20));
        let put =
            |name: &str| store.create(&alice, uri(name), noise.clone().into(), Details::default());
        put("x:1").await.expect("it fits");
        let refused = put("x:2").await.map(|entry| entry.uri.clone());
        assert!(matches!(refused, Err(StoreError::Full(_))), "{refused:?}");
        external_blobs.until((1, 2)).await;
    }
}
