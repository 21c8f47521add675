//! Redis servers of one test, shared by several installations.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use larder_runtime::random::Random;

use super::RedisServer;
use crate::redis::{Instance, Redis, RedisSettings};

/// The servers, and a connection to them for each installation. Installations differ by their
/// prefix.
pub(crate) struct Installations {
    url: String,
    pub(crate) servers: Vec<RedisServer>,
    next: AtomicU32,
}

impl Installations {
    pub(crate) fn on(server: RedisServer) -> Self {
        Self { url: server.url(), servers: vec![server], next: AtomicU32::new(0) }
    }

    pub(crate) async fn in_a_cluster() -> Self {
        let servers = RedisServer::cluster(Vec::new).await;
        let hosts: Vec<_> = servers.iter().map(|n| format!("127.0.0.1:{}", n.port())).collect();
        let url = format!("redis+cluster://{}", hosts.join(","));
        Self { url, servers, next: AtomicU32::new(0) }
    }

    /// The number of a new installation.
    pub(crate) fn unused(&self) -> u32 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) async fn redis(&self, installation: u32) -> Redis {
        let settings = RedisSettings {
            timeout: Duration::from_secs(1),
            prefix: format!("larder-{installation}"),
            ..RedisSettings::new(&self.url)
        };
        Redis::open(&settings).await.expect("Redis is reachable")
    }

    pub(crate) async fn instance(&self, installation: u32) -> Instance {
        Instance::join(self.redis(installation).await, &Random::system())
    }
}
