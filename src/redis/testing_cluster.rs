//! A real cluster of a test's own.

use std::time::Duration;

use super::{Redis, RedisSettings, cmd, testing::RedisServer};

/// Far more than it takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Three nodes that know each other and share the slots.
pub(crate) async fn cluster() -> Vec<RedisServer> {
    let mut nodes = Vec::new();
    let mut handles = Vec::new();
    for _ in 0..3 {
        let node = RedisServer::of_cluster().await;
        handles.push(Redis::open(&RedisSettings::new(node.url())).await.expect("it is there"));
        nodes.push(node);
    }
    let tell = async |handle: &Redis, words: &[&str]| {
        let mut command = cmd("CLUSTER");
        handle.query::<String>(command.arg(words)).await.expect("it does as it is told")
    };
    let slots = [["0", "5460"], ["5461", "10922"], ["10923", "16383"]];
    for ((handle, [first, last]), epoch) in handles.iter().zip(slots).zip(["1", "2", "3"]) {
        tell(handle, &["ADDSLOTSRANGE", first, last]).await;
        tell(handle, &["SET-CONFIG-EPOCH", epoch]).await;
    }
    for node in &nodes[1..] {
        let bus = node.option("--cluster-port").expect("it has one");
        tell(&handles[0], &["MEET", "127.0.0.1", &node.port().to_string(), bus]).await;
    }
    for handle in &handles {
        let agreed = async {
            loop {
                let info = tell(handle, &["INFO"]).await;
                if info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3") {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(PATIENCE, agreed).await.expect("they agree");
    }
    nodes
}
