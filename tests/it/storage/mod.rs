//! Where a server stores resources: a directory, S3, Redis, and Redis with external blobs.

mod admin_sessions;
mod directories;
mod external_blobs;
mod full_disk;
mod objects;
mod redis_access;
mod redis_migrations;
mod shared_redis;
mod transfer;

use std::sync::Arc;

use serde_json::json;

use crate::support::{Modern, S3Server, eventually, patiently, process::Process};

/// A server answers each request with one JSON message, however long it takes.
const ONE_MESSAGE: (&str, &str) = ("LARDER_SERVER__JSON_RESPONSE", "true");

/// A location for objects: a directory, or a prefix in S3.
struct Location {
    url: String,
    /// The environment variables that a server needs to use it.
    environment: Vec<(&'static str, String)>,
    s3: Option<Arc<S3Server>>,
    _folder: tempfile::TempDir,
}

impl Location {
    /// A directory, and a prefix in S3.
    async fn each() -> [Self; 2] {
        let folder = tempfile::tempdir().unwrap();
        let directory = format!("file://{}/not/yet", folder.path().display());
        let s3 = S3Server::shared().await;
        // The name of a temporary folder is a unique prefix.
        let unique = tempfile::tempdir().unwrap();
        let prefix = unique.path().file_name().unwrap().to_str().unwrap().trim_start_matches('.');
        [
            Self { url: directory, environment: Vec::new(), s3: None, _folder: folder },
            Self {
                url: S3Server::url(prefix),
                environment: s3.environment().into(),
                s3: Some(s3),
                _folder: unique,
            },
        ]
    }

    /// Its environment variables, and more of them.
    fn environment<'a>(&'a self, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
        let own = self.environment.iter().map(|(name, value)| (*name, value.as_str()));
        own.chain(more.iter().copied()).collect()
    }
}

/// After a server was killed while it wrote, the next one reads the old text or the new
/// one, whole, and can write.
async fn is_atomic_when_killed(
    text: impl Fn(usize) -> String,
    serving: impl AsyncFn() -> (Process, Modern),
) {
    for round in 0..5 {
        let (mut process, client) = serving().await;
        client.create(json!({ "uri": "x:1", "text": text(0) })).await;
        let written = std::cell::Cell::new(0);
        let writing = async {
            loop {
                let text = text(written.get() + 1);
                let arguments = json!({ "uri": "x:1", "text": text });
                let call = json!({ "name": "create_resource", "arguments": arguments });
                if client.request(1, "tools/call", call).send().await.is_err() {
                    return;
                }
                written.set(written.get() + 1);
            }
        };
        let killing = async {
            eventually("a write to be acknowledged", async || written.get() > 0).await;
            // At another moment of a later write in each round.
            tokio::time::sleep(std::time::Duration::from_millis(37 * round)).await;
            process.kill().await;
        };
        patiently("the end", async { tokio::join!(writing, killing) }).await;
        let written = written.get();
        let (_process, client) = serving().await;
        let read = client.read("x:1").await["text"].as_str().unwrap().to_owned();
        let n: usize = read.split(' ').next().unwrap().parse().unwrap();
        assert!(read == text(n), "a mixture of two writes");
        assert!(n == written || n == written + 1, "{n} after {written}");
        client.create(json!({ "uri": "x:2", "text": "more" })).await;
    }
}
