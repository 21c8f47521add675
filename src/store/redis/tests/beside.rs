//! Large content beside Redis: the contract, with a little of it in Redis and
//! the rest beside; what lies where, and when it goes.

use std::path::Path;

use super::*;
use crate::{
    clock::ManualClock,
    store::{
        ObjectPlace, StoreError,
        contract::noise,
        redis::{RedisBlobs, beside::LOOK},
    },
};

/// More than that lies beside Redis.
const OVER: usize = 50;

/// A server and a directory of one's own.
struct Beside {
    redis: OnRedis,
    folder: tempfile::TempDir,
    clock: ManualClock,
}

impl Beside {
    async fn new() -> Self {
        let folder = tempfile::tempdir().expect("there is room");
        Self { redis: OnRedis::new().await, folder, clock: ManualClock::new() }
    }

    async fn replica(&self, prefix: &str, setup: &Setup, over: Option<usize>) -> Store {
        let settings = RedisSettings { prefix: prefix.to_owned(), ..settings(&self.redis.server) };
        let redis = Redis::open(&settings).await.expect("it is there");
        Layout::current().migrate(&redis, &Random::system()).await.expect("it migrates");
        let limits = RedisLimits {
            bytes_per_owner: setup.bytes_per_owner,
            resources_per_owner: setup.resources_per_owner,
        };
        let url = format!("file://{}", self.folder.path().display());
        let place = ObjectPlace::open(&url, &Random::system()).await.expect("it can be used");
        let clock = Arc::new(self.clock.clone());
        let blobs = over.map(|over| RedisBlobs::new(&place, over, clock));
        let backend = RedisBackend::open_beside(redis, Random::system(), limits, blobs).await;
        let backend = backend.expect("it opens");
        Store::new(Arc::new(backend), Arc::new(SystemClock), setup.limits.clone())
    }

    /// How many files lie in the directory: content, and when to look.
    fn files(&self) -> (usize, usize) {
        let below = |name: &str| files(&self.folder.path().join(name));
        (below("=blobs"), below("=due-blobs"))
    }

    async fn until(&self, count: (usize, usize)) {
        let waiting = async {
            while self.files() != count {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(30), waiting).await;
        assert!(waited.is_ok(), "{:?} instead of {count:?}", self.files());
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
        self.replica(&format!("larder-{installation}"), &setup, Some(OVER)).await
    }

    async fn pass(&self, span: Duration) {
        self.redis.pass(span).await;
    }

    fn tick(&self) -> Duration {
        self.redis.tick()
    }
}

crate::store_contract!(Beside::new().await);

#[tokio::test(flavor = "multi_thread")]
async fn what_is_large_lies_beside_and_goes_when_redis_lets_go_of_it() {
    let beside = Beside::new().await;
    let store = beside.replica("a", &Setup::default(), Some(OVER)).await;
    let (alice, noise) = (Owner::new("alice"), noise(3 << 20));
    let put = async |name: &str, content: &[u8], details: Details| {
        store.create(&alice, uri(name), content.to_vec().into(), details).await.expect("it fits")
    };
    put("x:small", b"small", Details::default()).await;
    assert_eq!(beside.files(), (0, 0));
    put("x:large", &noise, Details::default()).await;
    put("x:short", &noise, lasting(1000)).await;
    put("x:deleted", &noise, Details::default()).await;
    assert_eq!(beside.files(), (3, 3));
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
    beside.clock.advance(LOOK);
    // What was deleted has a minute yet; all that is there is looked at again.
    beside.until((2, 2)).await;
    assert!(read(&store, &alice, "x:large").await == noise);
    let mark = store.get(&alice, &uri("x:large")).await.expect("it is there");

    // A server that was not told where it lies says so, and reads the rest.
    let other = beside.replica("a", &Setup::default(), None).await;
    assert_eq!(read(&other, &alice, "x:small").await, "small");
    let found = other.get(&alice, &uri("x:large")).await.expect("it is known");
    assert!(matches!(found.bytes().await, Err(StoreError::Unavailable { .. })));

    // Redis itself decides, with whatever it has lost.
    assert_eq!(mark.entry.size, noise.len() as u64);
    let redis = Redis::open(&settings(&beside.redis.server)).await.expect("it is there");
    redis.query::<()>(&crate::redis::cmd("FLUSHALL")).await.expect("it is done");
    beside.clock.advance(LOOK);
    beside.until((0, 0)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_or_given_up_leaves_no_object() {
    let beside = Beside::new().await;
    let setup = Setup { resources_per_owner: 1, ..Setup::default() };
    let store = beside.replica("a", &setup, Some(OVER)).await;
    let (alice, noise) = (Owner::new("alice"), noise(1 << 20));
    let put =
        |name: &str| store.create(&alice, uri(name), noise.clone().into(), Details::default());
    put("x:1").await.expect("it fits");
    let refused = put("x:2").await.map(|entry| entry.uri.clone());
    assert!(matches!(refused, Err(StoreError::Full(_))), "{refused:?}");
    beside.until((1, 2)).await;
}
