//! Searches of 100 MB compared with `rg` on the same bytes in a file.

use std::{
    fs,
    process::{Command, Stdio},
};

use larder::store::{DEFAULT_CACHE_BYTES, set_cache_bytes};
use serde_json::json;

use crate::{MB, Server, log, median, seconds};

const ROUNDS: usize = 9;

pub(crate) async fn measure() {
    let log = log(100 * MB);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("log");
    fs::write(&file, &log).unwrap();
    let rg = || {
        let mut rg = Command::new("rg");
        rg.args(["--line-number", "--ignore-case", "timeout|disk"]).arg(&file);
        rg.stdout(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    if !rg() {
        println!("search: skipped, because rg is not installed");
        return;
    }
    println!("Search of 100 MB, as a multiple of rg's time over a file");
    println!("             one of 100 MB   a thousand of 100 kB   all of them, ranked");
    for backend in ["memory", "files", "Redis"] {
        let (one, many) = (Server::start(backend).await, Server::start(backend).await);
        one.put("log://all", log.clone()).await;
        let lines: Vec<_> = log.split_inclusive('\n').collect();
        for (index, part) in lines.chunks(lines.len().div_ceil(1_000)).enumerate() {
            many.put(&format!("log://{index:04}"), part.concat()).await;
        }
        let in_one = json!({ "uri": "log://all", "query": "(?i)timeout|disk" });
        let in_all = json!({ "query": "timeout disk" });
        let mut times: [Vec<f64>; 4] = Default::default();
        for round in 0..=ROUNDS {
            let took = [
                seconds(async { assert!(rg()) }).await,
                seconds(one.call("search_resource", in_one.clone())).await,
                seconds(many.call("search_resources", in_all.clone())).await,
                seconds(one.call("search_resources", in_all.clone())).await,
            ];
            if round > 0 {
                times.iter_mut().zip(took).for_each(|(times, took)| times.push(took));
            }
        }
        let result = many.call("search_resources", in_all).await;
        assert!(
            result.contains("a Timeout of the disk") && result.contains("Complete."),
            "{result}"
        );
        let [rg, one, many, all] = times.map(median);
        println!("{backend:<10}{:>15.2}{:>20.2}{:>20.2}", one / rg, many / rg, all / rg);
    }
    again(&log).await;
}

/// Searches of the same content for a rare text, which the content has once.
async fn again(log: &str) {
    println!("Searches of 100 MB for a rare text, one after the other, as multiples of rg's time");
    println!(
        "               first   second    third   another text   four bytes   first after a restart"
    );
    let folder = tempfile::tempdir().unwrap();
    for backend in ["memory", "files", "Redis"] {
        let server = Server::start(backend).await;
        let mut times: [Vec<f64>; 7] = Default::default();
        for round in 0..=ROUNDS {
            // Other content each time, or the first search would find it in the cache.
            let half = log.len() / 2;
            let half = half + log[half..].find('\n').unwrap() + 1;
            let (before, after) = log.split_at(half);
            let log =
                format!("{backend}, round {round}\n{before}a needle {round} of zinc\n{after}");
            let (file, uri) = (folder.path().join("log"), format!("log://{round}"));
            fs::write(&file, &log).unwrap();
            server.put(&uri, log).await;
            let rg = || {
                let mut rg = Command::new("rg");
                rg.args(["--count", "a needle"]).arg(&file);
                rg.stdout(Stdio::null()).status().is_ok_and(|status| status.success())
            };
            rg();
            let search = async |query: &str| {
                let found = server.call("search_resource", json!({ "uri": uri, "query": query }));
                let found = found.await;
                assert!(found.contains(&format!("a needle {round} of zinc")), "{found}");
            };
            let took = [
                seconds(async { assert!(rg()) }).await,
                seconds(search("a needle")).await,
                seconds(search("a needle")).await,
                seconds(search("a needle")).await,
                seconds(search("(?i)NEEDLE [0-9]+ of")).await,
                seconds(search("zinc")).await,
                // As another process would, this one knows nothing of the content.
                seconds({
                    set_cache_bytes(0);
                    set_cache_bytes(DEFAULT_CACHE_BYTES);
                    search("a needle")
                })
                .await,
            ];
            if round > 0 {
                times.iter_mut().zip(took).for_each(|(times, took)| times.push(took));
            }
            server.delete(&uri).await;
        }
        let [rg, first, second, third, other, short, restarted] = times.map(median);
        println!(
            "{backend:<10}{:>10.2}{:>9.2}{:>9.2}{:>15.2}{:>13.2}{:>24.2}",
            first / rg,
            second / rg,
            third / rg,
            other / rg,
            short / rg,
            restarted / rg
        );
    }
}
