//! The memory that idle sessions add to a server.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    time::Duration,
};

use futures_util::{StreamExt, stream};
use serde_json::json;

use crate::{RedisServer, status};

const SESSIONS: usize = 10_000;

/// The bursts of [`SESSIONS`] before the first measurement, and again before the
/// second. Connections, tables and the allocator also take memory for a while;
/// the minimum over the bursts has the least of it.
const BURSTS: usize = 4;

/// The time until a server is idle: it caches a session for one second.
const QUIET: Duration = Duration::from_secs(4);

struct Server {
    process: Child,
    url: String,
}

impl Server {
    fn start(redis: &RedisServer) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
        command.args(["serve", "--migrate", "--listen", "127.0.0.1:0", "--store", &redis.url()]);
        let mut process = command.stderr(Stdio::piped()).spawn().expect("it is built");
        let mut log = BufReader::new(process.stderr.take().expect("it is piped")).lines();
        let listening = log.next().expect("a line").expect("it is text");
        let url = listening.strip_prefix("larder listening on ").expect("it listens").to_owned();
        std::thread::spawn(move || log.for_each(drop));
        Self { process, url }
    }

    fn resident(&self) -> u64 {
        status(&self.process.id().to_string(), "VmRSS")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

async fn begin(client: &reqwest::Client, url: &str) {
    let initialize = json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "bench", "version": "1" },
        },
    });
    let request = client.post(url).header("content-type", "application/json");
    let request = request.header("accept", "application/json, text/event-stream");
    let response = request.body(initialize.to_string()).send().await.expect("it answers");
    let session = response.headers().get("mcp-session-id").cloned().expect("a session");
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let request = client.post(url).header("content-type", "application/json");
    let request = request.header("accept", "application/json, text/event-stream");
    let request = request.header("mcp-session-id", session).body(initialized.to_string());
    assert_eq!(request.send().await.expect("it answers").status(), 202);
}

pub(crate) async fn measure() {
    let redis = RedisServer::start().await;
    let server = Server::start(&redis);
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let resident_after_bursts = async || {
        let mut min = u64::MAX;
        for _ in 0..BURSTS {
            let sessions = (0..SESSIONS).map(|_| begin(&client, &server.url));
            stream::iter(sessions).buffer_unordered(32).collect::<()>().await;
            tokio::time::sleep(QUIET).await;
            min = min.min(server.resident());
        }
        min
    };
    let (before, after) = (resident_after_bursts().await, resident_after_bursts().await);
    println!("{} more idle sessions: from {before} to {after} kB resident", BURSTS * SESSIONS);
}
