//! Reading fifty lines anywhere in 100 MB compared with the first fifty, without the block cache,
//! which would have the first ones.

use larder::store::{DEFAULT_CACHE_BYTES, set_cache_bytes};
use serde_json::json;

use crate::{MB, Server, log, median, seconds};

const ROUNDS: usize = 201;

pub(crate) async fn measure() {
    let log = log(100 * MB);
    let lines = log.lines().count();
    println!("Fifty lines of 100 MB by read_resource, as a multiple of the first fifty");
    println!("             anywhere, median   the last ones");
    let servers = Server::one_per_backend().await;
    // A server sets it when it starts.
    set_cache_bytes(0);
    for server in servers {
        server.put("log://all", log.clone()).await;
        let read = async |offset: usize| {
            let arguments = json!({ "uri": "log://all", "offset": offset, "limit": 50 });
            let result = server.call("read_resource", arguments).await;
            assert!(result.contains(&format!("request={offset} ")), "{result}");
        };
        let mut times: [Vec<f64>; 3] = Default::default();
        for round in 0..=ROUNDS {
            // Another position each time.
            let anywhere = round * 7_919_333 % (lines - 50);
            let took = [
                seconds(read(0)).await,
                seconds(read(anywhere)).await,
                seconds(read(lines - 50)).await,
            ];
            if round > 0 {
                times.iter_mut().zip(took).for_each(|(times, took)| times.push(took));
            }
        }
        let [first, anywhere, last] = times.map(median);
        println!("{:<10}{:>19.2}{:>16.2}", server.backend, anywhere / first, last / first);
    }
    set_cache_bytes(DEFAULT_CACHE_BYTES);
}
