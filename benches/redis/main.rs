//! What resources, sessions and streams in Redis cost, as ratios to Redis
//! itself: `cargo bench --bench redis`, or with the names of some of
//! `throughput memory growth replay sessions`. Each starts a `redis-server` of
//! its own.
//!
//! What is compared runs in turns, and medians are shown, so that whatever
//! else the machine does meets both sides.
//!
//! What is aimed at, and what came of it on two virtual cores, which the server
//! and Redis share:
//!
//! - **`put` and `get` at 0.8 of `SET` and `GET` from 1 MB on,** for content
//!   that no compression makes less. `get`: 0.9 at 1 MB and 1.7 above, since
//!   blocks are asked for ahead. `put`: 0.8 at 100 MB, and misses it below: 0.4
//!   at 1 MB, 0.5 at 10 MB. Before it goes out, a `put` reads content for
//!   its SHA-256, its lines and UTF-8, and tries whether compression pays: the
//!   column `local` is that work alone, a `put` into memory, which at 1 MB
//!   takes longer than the whole `SET`. And Redis grows a string by a MiB at a
//!   time, and may copy it then, where a `SET` says at once how long it is:
//!   content in keys of a MiB each would spare that.
//! - **Above 1 where compression pays.** `get` 0.7 at 1 MB and 1.5 above; `put`
//!   1.0 at 100 MB and 0.3 to 0.6 below, as compressing costs more than a Redis
//!   on the same machine saves. Compression is the store's own doing, in its
//!   blocks, for every backend; over a network it is the network that it spares.
//! - **Ten of 100 MB at once in less than 64 MB of memory:** 42 MB.
//! - **1,000,000 resources at most 1.5 times as dear as 1,000:** creating 0.9,
//!   listing 1.1.
//! - **Replay of 10,000 events at half the speed of `XRANGE`:** 0.7.
//! - **10,000 idle sessions in less than 1 MB of the server's memory:** none to
//!   be seen, or half a MB.

#[path = "../measure/mod.rs"]
mod measure;

mod growth;
mod memory;
mod replay;
mod sessions;
mod throughput;

use std::{sync::Arc, time::Duration};

use larder::{
    clock::SystemClock,
    random::Random,
    redis::{Redis, RedisSettings, layout::Layout},
    store::{OwnerQuota, RedisBackend, ResourceUri, Store, StoreLimits},
    testing::{RedisServer, store::noise},
};
use measure::{median, seconds};

const MIB: usize = 1 << 20;

#[tokio::main]
async fn main() {
    let asked: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let wanted = |name: &str| asked.is_empty() || asked.iter().any(|asked| asked == name);
    if wanted("memory") {
        memory::measure().await;
    }
    if wanted("throughput") {
        throughput::measure().await;
    }
    if wanted("growth") {
        growth::measure().await;
    }
    if wanted("replay") {
        replay::measure().await;
    }
    if wanted("sessions") {
        sessions::measure().await;
    }
}

async fn redis_on(server: &RedisServer) -> Redis {
    let settings =
        RedisSettings { timeout: Duration::from_secs(30), ..RedisSettings::new(server.url()) };
    let redis = Redis::open(&settings).await.expect("Redis answers");
    Layout::current().migrate(&redis, &Random::system()).await.expect("it migrates");
    redis
}

async fn store_on(server: &RedisServer) -> Store {
    let quota = OwnerQuota { bytes: u64::MAX >> 12, resources: 10_000_000 };
    let redis = redis_on(server).await;
    let backend = RedisBackend::open(redis, Random::system(), quota).await.expect("it opens");
    Store::new(Arc::new(backend), Arc::new(SystemClock), StoreLimits::default())
}

/// The same server without anything of ours.
async fn raw(server: &RedisServer) -> ::redis::aio::MultiplexedConnection {
    let client = ::redis::Client::open(server.url()).expect("it is a URL");
    let config = ::redis::AsyncConnectionConfig::new();
    let config = config.set_response_timeout(Some(Duration::from_secs(30)));
    client.get_multiplexed_async_connection_with_config(&config).await.expect("Redis answers")
}

fn uri(n: usize) -> ResourceUri {
    ResourceUri::parse(&format!("bench://{n:08}")).expect("it is a URI")
}

/// A field of `/proc/PID/status`, in kB.
fn status(process: &str, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("it is Linux");
    let line = status.lines().find(|line| line.starts_with(field)).expect("it is there");
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number")
}
