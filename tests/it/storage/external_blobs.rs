//! Servers on Redis with large content outside of it, in a directory or in S3: where
//! content is stored, when it is collected, and what a kill or an outage leaves.

use std::{collections::BTreeMap, path::PathBuf};

use serde_json::json;

use super::{Location, ONE_MESSAGE, is_atomic_when_killed};
use crate::support::{
    Modern, RedisServer, S3Server, eventually, files_below, noise,
    process::{Process, serving_in},
};

/// Content of more bytes is stored outside of Redis.
pub(super) const BLOB_BYTES: usize = 10_000;

/// A Redis that keeps its data on disk, and a location for large content.
pub(super) struct Installation {
    pub(super) redis: RedisServer,
    pub(super) blobs: Location,
}

impl Installation {
    /// One with a directory, and one with S3.
    pub(super) async fn each() -> [Self; 2] {
        let [directory, s3] = Location::each().await;
        let on = async |blobs| Self { redis: RedisServer::durable().await, blobs };
        [on(directory).await, on(s3).await]
    }

    async fn serving(&self) -> (Process, Modern) {
        serving(&self.redis, &self.blobs.url, &self.blobs.environment(&[])).await
    }

    /// The sizes of the contents in Redis, by their ids.
    pub(super) async fn in_redis(&self) -> BTreeMap<String, usize> {
        let client = ::redis::Client::open(self.redis.url()).unwrap();
        let mut redis = client.get_multiplexed_async_connection().await.unwrap();
        let keys: Vec<String> =
            ::redis::cmd("KEYS").arg("larder:*:blob:*").query_async(&mut redis).await.unwrap();
        let mut sizes = BTreeMap::new();
        for key in keys {
            let size = ::redis::cmd("STRLEN").arg(&key).query_async(&mut redis).await.unwrap();
            sizes.insert(key.rsplit(':').next().unwrap().to_owned(), size);
        }
        sizes
    }

    /// The names of all objects outside of Redis, without the reserve on the disk.
    async fn objects(&self) -> Vec<String> {
        match &self.blobs.s3 {
            Some(s3) => s3.keys(self.prefix()).await,
            None => {
                let root = self.folder();
                let files = files_below(&root);
                let files = files.iter().map(|file| file.strip_prefix(&root).unwrap());
                let files = files.map(|file| file.to_str().unwrap().to_owned());
                files.filter(|file| !file.starts_with("=reserve/")).collect()
            }
        }
    }

    /// The ids of the contents outside of Redis.
    pub(super) async fn outside(&self) -> Vec<String> {
        let objects = self.objects().await;
        let contents = objects.iter().filter_map(|name| name.strip_prefix("=blobs/larder/"));
        // A file that is still written has another ending.
        contents.filter_map(|name| name.strip_suffix(".content")).map(str::to_owned).collect()
    }

    /// Makes the checks due that look for contents without a resource: an object names
    /// when each content is checked, and all these times move into the past.
    async fn hours_pass(&self) {
        for name in self.objects().await.iter().filter(|name| name.starts_with("=due-blobs/")) {
            let (at, id) = name.rsplit('/').next().unwrap().split_once('-').unwrap();
            let at = at.parse::<u64>().unwrap() - 2 * 3_600_000;
            let past = format!("=due-blobs/larder/{:010}/{at:016}-{id}", at / 3_600_000);
            if let Some(s3) = &self.blobs.s3 {
                let key = |name: &str| format!("{}/{name}", self.prefix());
                s3.rename(&key(name), &key(&past)).await;
            } else {
                let past = self.folder().join(past);
                std::fs::create_dir_all(past.parent().unwrap()).unwrap();
                std::fs::rename(self.folder().join(name), past).unwrap();
            }
        }
    }

    fn folder(&self) -> PathBuf {
        self.blobs.url.strip_prefix("file://").unwrap().into()
    }

    fn prefix(&self) -> &str {
        self.blobs.url.rsplit('/').next().unwrap()
    }
}

/// A server on a Redis, with large content at a URL.
async fn serving(
    redis: &RedisServer,
    blobs: &str,
    environment: &[(&str, &str)],
) -> (Process, Modern) {
    let blob_bytes = BLOB_BYTES.to_string();
    let settings = [
        ONE_MESSAGE,
        ("LARDER_REDIS__TIMEOUT", "1"),
        ("LARDER_STORE__BLOBS", blobs),
        ("LARDER_STORE__BLOB_BYTES", &blob_bytes),
    ];
    let environment = [environment, &settings].concat();
    let (process, url) = serving_in(&["--store", &redis.url(), "--migrate"], &environment).await;
    (process, Modern::at(&url))
}

/// Numbered lines that do not compress.
fn large(seed: u64) -> String {
    let lines = noise(seed).take(5_000).enumerate();
    lines.map(|(n, number)| format!("{n} {number:016x}\n")).collect::<Vec<_>>().concat()
}

#[tokio::test]
async fn large_content_is_stored_outside_of_redis_and_small_content_inside() {
    for installation in Installation::each().await {
        let ((_a, a), (_b, b)) = (installation.serving().await, installation.serving().await);
        a.create(json!({ "uri": "x:small", "text": "small" })).await;
        assert_eq!(installation.outside().await, [""; 0]);
        a.create(json!({ "uri": "x:large", "text": large(0) })).await;
        let ids = installation.outside().await;
        let [large_one] = &ids[..] else { panic!("{ids:?}") };
        let sizes = installation.in_redis().await;
        assert_eq!(sizes.len(), 2, "{sizes:?}");
        assert_eq!(sizes[large_one], 1, "a mark of one byte");
        assert!(sizes.values().all(|size| *size < 20), "{sizes:?}");

        assert_eq!(b.read("x:small").await["text"], "small");
        assert!(b.read("x:large").await["text"] == large(0));
        let line = large(0).lines().nth(4321).unwrap().to_owned();
        let window = json!({ "uri": "x:large", "offset": 4321, "limit": 1 });
        assert!(b.call("read_resource", window).await.text().contains(&line));
        let query = json!({ "uri": "x:large", "query": line });
        assert!(b.call("search_resource", query).await.text().contains("4322: 4321 "));

        // A small revision is stored in Redis, and the large one before it stays outside.
        b.call("update_resource", json!({ "uri": "x:large", "text": "less" })).await.text();
        assert_eq!(a.read("x:large").await["text"], "less");
        assert!(a.read("x:large?revision=1").await["text"] == large(0));
        assert_eq!(installation.outside().await, ids);
        assert_eq!(installation.in_redis().await.len(), 3);
    }
}

#[tokio::test]
async fn expired_content_is_deleted_by_redis_and_collected_by_a_later_check() {
    for installation in Installation::each().await {
        let (mut larder, client) = installation.serving().await;
        client.create(json!({ "uri": "x:short", "text": large(0), "ttl": 1 })).await;
        client.create(json!({ "uri": "x:long", "text": large(1) })).await;
        assert_eq!(installation.outside().await.len(), 2);
        larder.kill().await;
        let has_expired = async || installation.in_redis().await.len() == 1;
        eventually("the key to expire with no server running", has_expired).await;
        assert_eq!(installation.outside().await.len(), 2, "it was collected without a check");
        installation.hours_pass().await;
        let (_next, client) = installation.serving().await;
        let marks = installation.in_redis().await;
        let is_collected = async || installation.outside().await.iter().eq(marks.keys());
        eventually("the expired content to be collected", is_collected).await;
        assert!(client.read("x:long").await["text"] == large(1));
        let gone = client.send("resources/read", json!({ "uri": "x:short" })).await.error();
        assert_eq!(gone["code"], -32602, "{gone}");
        // The other content is checked again in an hour.
        let are_left = async || installation.objects().await.len() == 2;
        eventually("one content, and the object for its next check", are_left).await;
    }
}

#[tokio::test]
async fn no_content_is_lost_by_a_kill_or_an_outage_of_redis() {
    for mut installation in Installation::each().await {
        let (mut larder, client) = installation.serving().await;
        client.create(json!({ "uri": "x:large", "text": large(0) })).await;
        larder.kill().await;
        let (_next, client) = installation.serving().await;
        assert!(client.read("x:large").await["text"] == large(0));

        installation.redis.kill();
        let error = client.send("resources/read", json!({ "uri": "x:large" })).await.error();
        assert_eq!(error["code"], -32603, "{error}");
        let created = json!({ "uri": "x:more", "text": large(1) });
        let failure = client.call("create_resource", created.clone()).await.failure();
        assert!(failure.contains("redis") && failure.contains("try again"), "{failure}");
        installation.redis.restart().await;
        let is_created = async || {
            client.call("create_resource", created.clone()).await.result()["isError"] != true
        };
        eventually("the server to reach Redis again", is_created).await;
        for (uri, text) in [("x:large", large(0)), ("x:more", large(1))] {
            assert!(client.read(uri).await["text"] == text, "{uri}");
        }
    }
}

#[tokio::test]
async fn a_kill_during_a_write_leaves_the_old_or_the_new_content() {
    for installation in Installation::each().await {
        let text = |n: usize| format!("{n} {}", large(n as u64));
        is_atomic_when_killed(text, || installation.serving()).await;
    }
}

#[tokio::test]
async fn small_content_is_served_while_s3_is_away_and_large_content_fails() {
    let (redis, mut s3) = (RedisServer::start().await, S3Server::start().await);
    let environment = s3.environment();
    let environment = environment.each_ref().map(|(name, value)| (*name, value.as_str()));
    let (_larder, client) = serving(&redis, &S3Server::url("blobs"), &environment).await;
    client.create(json!({ "uri": "x:small", "text": "small" })).await;
    client.create(json!({ "uri": "x:large", "text": large(0) })).await;
    s3.kill();
    assert_eq!(client.read("x:small").await["text"], "small");
    client.create(json!({ "uri": "x:small", "text": "smaller" })).await;
    let create = json!({ "uri": "x:more", "text": large(1) });
    let failure = client.call("create_resource", create.clone()).await.failure();
    assert!(failure.contains("The s3 store") && failure.contains("try again"), "{failure}");
    let window = json!({ "uri": "x:large", "offset": 0, "limit": 1 });
    let failure = client.call("read_resource", window).await.failure();
    assert!(failure.contains("The s3 store") && !failure.contains("127.0.0.1"), "{failure}");
    // The restarted S3 server is empty, and stores new objects at once.
    s3.restart().await;
    client.call("create_resource", create).await.text();
    assert!(client.read("x:more").await["text"] == large(1));
    assert_eq!(client.read("x:small").await["text"], "smaller");
}
