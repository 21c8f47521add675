//! A stored tool result of 10 MB compared with one copy and its compression.

use std::{hint::black_box, sync::LazyLock};

use larder::store::{DEFAULT_CACHE_BYTES, set_cache_bytes};
use serde_json::json;
use zstd::bulk::Compressor;

use crate::{MB, Server, log, median, seconds};

/// Two results each, as many as the quota of an owner has room for.
const ROUNDS: usize = 11;

pub(crate) static TEXT: LazyLock<String> = LazyLock::new(|| log(10 * MB));

pub(crate) async fn measure() {
    println!("A stored result of 10 MB, as a multiple of one copy and its compression");
    println!("             all of the call   without the handler's own copy   nor filters");
    for server in Server::one_per_backend().await {
        let mut times: [Vec<f64>; 4] = Default::default();
        for round in 0..=ROUNDS {
            let copy = async { black_box(TEXT.clone()) };
            let compressed = tokio::task::spawn_blocking(|| {
                let mut zstd = Compressor::new(1).unwrap();
                for block in TEXT.as_bytes().chunks(256 << 10) {
                    black_box(zstd.compress(block).unwrap());
                }
            });
            let took = [
                seconds(copy).await,
                seconds(compressed).await,
                seconds(server.call("large", json!({}))).await,
                {
                    set_cache_bytes(0);
                    let took = seconds(server.call("large", json!({}))).await;
                    set_cache_bytes(DEFAULT_CACHE_BYTES);
                    took
                },
            ];
            if round > 0 {
                times.iter_mut().zip(took).for_each(|(times, took)| times.push(took));
            }
        }
        let [copy, compression, call, plain] = times.map(median);
        let limit = copy + compression;
        let (all, added, plain) = (call / limit, (call - copy) / limit, (plain - copy) / limit);
        println!("{:<10}{all:>18.2}{added:>33.2}{plain:>14.2}", server.backend);
    }
}
