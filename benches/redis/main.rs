//! The costs of resources, sessions and streams in Redis, as ratios to plain
//! Redis commands: `cargo bench --bench redis`, or with some of the names
//! `throughput memory growth replay sessions`. Each part starts its own
//! `redis-server`.
//!
//! The compared operations alternate, and the results are medians, so that other
//! load on the machine affects both sides.
//!
//! Goals, and results on two virtual cores that the server and Redis share:
//!
//! - **`put` and `get` at 0.8 of the speed of `SET` and `GET`, from 1 MB on,** for
//!   content that does not compress. `get`: 0.9 at 1 MB and 1.5 above, because it
//!   requests blocks ahead. `put`: 1.1 at 10 MB and 1.7 at 100 MB, because Redis takes
//!   several keys of 1 MiB in less time than a long one; 0.4 at 1 MB. A `put` first
//!   reads the content for its SHA-256 and tries to compress it: the column `local`
//!   is this work alone, a `put` into memory, which at 1 MB takes as long as a
//!   complete `SET`. SHA-256 alone takes 0.6 ms for 1 MB here, and `SET` 0.2 ms in
//!   quiet, so 0.8 would need a digest that is computed later, after the reply.
//! - **Above 1 for content that compresses.** `get`: 0.9 at 1 MB and 1.5 above.
//!   `put`: 1.3 at 100 MB and 0.4 to 0.8 below, because compression costs more
//!   than it saves with Redis on the same machine. Over a network it saves
//!   bandwidth.
//! - **Ten writes of 100 MB at once in less than 64 MB of memory:** 54 MB.
//! - **1,000,000 resources cost at most 1.5 times as much per operation as 1,000:**
//!   creating 0.9, listing 1.1.
//! - **Replay of 10,000 events at half the speed of `XRANGE`:** 0.7.
//! - **10,000 idle sessions in less than 1 MB of the server's memory:** between
//!   nothing measurable and 0.5 MB.

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
    let parts: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let selected = |name: &str| parts.is_empty() || parts.iter().any(|part| part == name);
    if selected("memory") {
        memory::measure().await;
    }
    if selected("throughput") {
        throughput::measure().await;
    }
    if selected("growth") {
        growth::measure().await;
    }
    if selected("replay") {
        replay::measure().await;
    }
    if selected("sessions") {
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

/// A plain connection to the same server.
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
    let line = status.lines().find(|line| line.starts_with(field)).expect("it exists");
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number")
}
