//! What the store over Redis costs, as ratios to Redis itself:
//! `cargo bench --bench redis`, or with the names of some of
//! `throughput memory growth`. Starts a `redis-server` of its own.

#[path = "../src/redis/testing.rs"]
mod redis_server;

use std::{fs, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use larder::{
    auth::Owner,
    clock::SystemClock,
    random::Random,
    redis::{Redis, RedisSettings, layout::Layout},
    store::{Content, Details, RedisBackend, RedisLimits, ResourceUri, Store, StoreLimits},
};
use redis_server::RedisServer;
use tokio::time::Instant;

const MIB: usize = 1 << 20;

#[tokio::main]
async fn main() {
    let asked: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let wanted = |name: &str| asked.is_empty() || asked.iter().any(|asked| asked == name);
    if wanted("memory") {
        memory().await;
    }
    if wanted("throughput") {
        throughput().await;
    }
    if wanted("growth") {
        growth().await;
    }
}

async fn store_on(server: &RedisServer) -> Store {
    let settings =
        RedisSettings { timeout: Duration::from_secs(30), ..RedisSettings::new(server.url()) };
    let redis = Redis::open(&settings).await.expect("Redis answers");
    Layout::current().migrate(&redis, &Random::system()).await.expect("it migrates");
    let limits = RedisLimits { bytes_per_owner: u64::MAX >> 12, resources_per_owner: 10_000_000 };
    let backend = RedisBackend::open(redis, Random::system(), limits).await.expect("it opens");
    Store::new(Arc::new(backend), Arc::new(SystemClock), StoreLimits::default())
}

fn uri(n: usize) -> ResourceUri {
    ResourceUri::parse(&format!("bench://{n:08}")).expect("it is a URI")
}

/// Bytes that no compression makes less.
fn noise(len: usize) -> Bytes {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let words = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.flatten().take(len).collect()
}

/// Seconds that one of `rounds` takes.
async fn seconds(rounds: usize, mut work: impl AsyncFnMut(usize)) -> f64 {
    work(0).await;
    let begin = Instant::now();
    for round in 0..rounds {
        work(round).await;
    }
    begin.elapsed().as_secs_f64() / f64::from(u32::try_from(rounds).expect("few"))
}

/// Put and get against SET and GET of the same bytes on the same server.
async fn throughput() {
    let server = RedisServer::start().await;
    let (store, owner) = (store_on(&server).await, Owner::new("bench"));
    let client = ::redis::Client::open(server.url()).expect("it is a URL");
    let raw = client.get_multiplexed_async_connection().await.expect("Redis answers");
    let raw = || {
        let mut raw = raw.clone();
        raw.set_response_timeout(Duration::from_secs(30));
        raw
    };
    println!("size        SET MB/s  put MB/s  ratio   GET MB/s  get MB/s  ratio");
    for (name, len, rounds) in [
        ("1 KB", 1024, 2000),
        ("1 MB", MIB, 200),
        ("10 MB", 10 * MIB, 20),
        ("100 MB", 100 * MIB, 3),
    ] {
        let bytes = noise(len);
        let set = seconds(rounds, async |_| {
            let mut set = ::redis::cmd("SET");
            set.arg("raw").arg(&bytes[..]).arg("PX").arg(86_400_000);
            set.exec_async(&mut raw()).await.expect("it is set");
        })
        .await;
        let put = seconds(rounds, async |_| {
            let content = Content::from(bytes.clone());
            store.create(&owner, uri(0), content, Details::default()).await.expect("it fits");
        })
        .await;
        let get = seconds(rounds, async |_| {
            let mut get = ::redis::cmd("GET");
            let got: Vec<u8> = get.arg("raw").query_async(&mut raw()).await.expect("it is there");
            assert_eq!(got.len(), len);
        })
        .await;
        let read = seconds(rounds, async |_| {
            let found = store.get(&owner, &uri(0)).await.expect("it is there");
            assert_eq!(found.bytes().await.expect("it is read").len(), len);
        })
        .await;
        #[allow(clippy::cast_precision_loss, reason = "a few digits are shown")]
        let rate = |seconds: f64| len as f64 / seconds / 1e6;
        println!(
            "{name:<10}{:>10.1}{:>10.1}{:>7.2}{:>11.1}{:>10.1}{:>7.2}",
            rate(set),
            rate(put),
            set / put,
            rate(get),
            rate(read),
            get / read
        );
    }
}

/// The most that the process held while ten large resources were written.
async fn memory() {
    const WRITERS: usize = 10;
    const BYTES: usize = 100 * MIB;
    let server = RedisServer::start().await;
    let (store, owner) = (store_on(&server).await, Owner::new("bench"));
    let piece = noise(64 * 1024);
    fs::write("/proc/self/clear_refs", "5").expect("the peak can be reset");
    let before = status("VmRSS");
    let begin = Instant::now();
    let writing = (0..WRITERS).map(|n| {
        let pieces = stream::repeat(piece.clone()).take(BYTES / piece.len()).map(Ok);
        let (store, owner) = (store.clone(), owner.clone());
        tokio::spawn(async move {
            let content = Content::byte_stream(pieces);
            store.create(&owner, uri(n), content, Details::default()).await.expect("it fits");
        })
    });
    for written in writing.collect::<Vec<_>>() {
        written.await.expect("nobody panics");
    }
    println!(
        "ten of 100 MB at once: {:.1} s; resident before {} kB, at most {} kB",
        begin.elapsed().as_secs_f64(),
        before,
        status("VmHWM")
    );
}

fn status(field: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("it is Linux");
    let line = status.lines().find(|line| line.starts_with(field)).expect("it is there");
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number")
}

/// What creating and listing cost where there is little, and where there is much.
async fn growth() {
    const MANY: usize = 1_000_000;
    const SAMPLE: usize = 2000;
    let server = RedisServer::start().await;
    let (store, owner) = (store_on(&server).await, Owner::new("bench"));
    let fill = async |from: usize, to: usize| {
        stream::iter((from..to).map(|n| create(&store, &owner, n)))
            .buffer_unordered(64)
            .try_collect::<()>()
            .await
            .expect("it fits");
    };
    let mut costs = Vec::new();
    println!("resources     create µs   list of 50 µs");
    let mut there = 0;
    for count in [1000, MANY] {
        fill(there, count).await;
        there = count + SAMPLE + 1;
        // Names between those that are there, and new ones at the end.
        let create = seconds(SAMPLE, async |n| {
            create(&store, &owner, count + n).await.expect("it fits");
        })
        .await;
        let list = seconds(SAMPLE, async |n| {
            let after = uri(count / SAMPLE * n);
            let page = store.list(&owner, "bench://", Some(after.as_str()), 50).await;
            assert!(!page.expect("it lists").entries.is_empty());
        })
        .await;
        println!("{count:<12}{:>11.0}{:>16.0}", create * 1e6, list * 1e6);
        costs.push((create, list));
    }
    let ((create, list), (create_many, list_many)) = (costs[0], costs[1]);
    println!("ratio       {:>11.2}{:>16.2}", create_many / create, list_many / list);
}

async fn create(store: &Store, owner: &Owner, n: usize) -> Result<(), larder::store::StoreError> {
    store.create(owner, uri(n), "a small text".into(), Details::default()).await.map(|_| ())
}
