//! `put` and `get` compared with `SET` and `GET` of the same bytes on the same server.

use std::sync::Arc;

use crate::{MIB, RedisServer, median, noise, raw, seconds, store_on, uri};
use bytes::Bytes;
use larder::{
    auth::Owner,
    clock::SystemClock,
    store::{Content, Details, MemoryLimits, Store, StoreLimits},
};

pub(crate) async fn measure() {
    println!("                     SET MB/s  put MB/s  ratio  local  GET MB/s  get MB/s  ratio");
    for (name, len, rounds) in [
        ("1 KB", 1024, 2001),
        ("1 MB", MIB, 301),
        ("10 MB", 10 * MIB, 41),
        ("100 MB", 100 * MIB, 7),
    ] {
        for (kind, bytes) in [("noise", noise(len).into()), ("log", log(len))] {
            let [set, put, local, get, read] = compare(&bytes, rounds).await;
            #[allow(clippy::cast_precision_loss, reason = "a few digits are shown")]
            let rate = |seconds: f64| len as f64 / seconds / 1e6;
            println!(
                "{name:<10}{kind:<8}{:>11.1}{:>10.1}{:>7.2}{:>7.2}{:>10.1}{:>10.1}{:>7.2}",
                rate(set),
                rate(put),
                set / put,
                set / local,
                rate(get),
                rate(read),
                get / read
            );
        }
    }
}

/// Typical log lines.
fn log(len: usize) -> Bytes {
    let mut log = String::with_capacity(len + 128);
    for n in 0_usize.. {
        if log.len() >= len {
            break;
        }
        let (took, user) = (n * 7919 % 977, n * 104_729 % 4999);
        log.push_str(&format!(
            "2026-01-01T00:{:02}:{:02}Z INFO request id={n} user={user} path=/items/{} took={took}ms\n",
            n / 60 % 60,
            n % 60,
            n * 31 % 1009
        ));
    }
    log.truncate(len);
    log.into()
}

/// Median seconds of one SET, put, put into memory, GET and get. Each round runs
/// all five.
async fn compare(bytes: &Bytes, rounds: usize) -> [f64; 5] {
    let server = RedisServer::start().await;
    let (store, owner) = (store_on(&server).await, Owner::new("bench"));
    let mut raw = raw(&server).await;
    let limits = MemoryLimits { bytes: u64::MAX >> 12, ..MemoryLimits::default() };
    let memory = Store::memory(Arc::new(SystemClock), limits, StoreLimits::default());
    let put = async |store: &Store| {
        let content = Content::from(bytes.clone());
        store.create(&owner, uri(0), content, Details::default()).await.expect("it fits");
    };
    let mut times: [Vec<f64>; 5] = Default::default();
    for round in 0..=rounds {
        let set = seconds(async {
            let mut set = ::redis::cmd("SET");
            set.arg("raw").arg(&bytes[..]).arg("PX").arg(86_400_000);
            set.exec_async(&mut raw).await.expect("it is set");
        })
        .await;
        let stored = seconds(put(&store)).await;
        let hashed = seconds(put(&memory)).await;
        let got = seconds(async {
            let mut get = ::redis::cmd("GET");
            let got: Vec<u8> = get.arg("raw").query_async(&mut raw).await.expect("it exists");
            assert_eq!(got.len(), bytes.len());
        })
        .await;
        let read = seconds(async {
            let found = store.get(&owner, &uri(0)).await.expect("it exists");
            assert_eq!(found.bytes().await.expect("it is read").len(), bytes.len());
        })
        .await;
        // Round 0 warms up.
        if round > 0 {
            for (times, time) in times.iter_mut().zip([set, stored, hashed, got, read]) {
                times.push(time);
            }
        }
        // Replaced content stays for a while, for its readers.
        if round % 8 == 0 {
            delete_replaced(&mut raw).await;
        }
    }
    times.map(median)
}

/// Deletes replaced content, which would fill up the server.
async fn delete_replaced(raw: &mut ::redis::aio::MultiplexedConnection) {
    let mut keys = ::redis::cmd("KEYS");
    let keys: Vec<String> = keys.arg("*:blob:*").query_async(raw).await.expect("it lists");
    for key in keys {
        let ttl: i64 = ::redis::cmd("PTTL").arg(&key).query_async(raw).await.expect("it answers");
        if ttl <= 60_000 {
            ::redis::cmd("DEL").arg(&key).exec_async(raw).await.expect("it goes");
        }
    }
}
