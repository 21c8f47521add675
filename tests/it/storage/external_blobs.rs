//! Servers on Redis with large content beside it, in a directory and in S3:
//! what lies where, and what is left of it, whoever is killed.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use serde_json::json;
use tokio::{process::Child, time::sleep};

use crate::{
    process::serving_in,
    storage::{
        directories::walk,
        objects::{AT_ONCE, Place, killed_in_the_middle},
    },
    support::{Modern, RedisServer, S3Server, patiently},
};

/// More than that lies beside Redis.
const OVER: usize = 10_000;

/// A Redis that keeps what it was told, and a place beside it.
struct Beside {
    redis: RedisServer,
    place: Place,
}

impl Beside {
    async fn each() -> [Self; 2] {
        let [files, s3] = Place::each().await;
        let on = async |place| Self { redis: RedisServer::durable().await, place };
        [on(files).await, on(s3).await]
    }

    async fn serving(&self) -> (Child, Modern) {
        serving(&self.redis, &self.place.url, &self.place.environment).await
    }

    /// How many bytes lie in Redis under each name of content.
    async fn in_redis(&self) -> BTreeMap<String, usize> {
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

    /// The names of what lies beside it.
    async fn files(&self) -> Vec<String> {
        match &self.place.s3 {
            Some(s3) => s3.keys(self.prefix()).await,
            None => {
                let root = self.folder();
                let files = walk(&root);
                let files = files.iter().map(|file| file.strip_prefix(&root).unwrap());
                files.map(|file| file.to_str().unwrap().to_owned()).collect()
            }
        }
    }

    /// The ids of what lies beside it.
    async fn beside(&self) -> Vec<String> {
        let files = self.files().await;
        let contents = files.iter().filter_map(|file| file.strip_prefix("=blobs/larder/"));
        contents.map(|file| file.strip_suffix(".content").unwrap().to_owned()).collect()
    }

    /// Lets it be time to look whether anybody wants what lies there: so each
    /// file that says when moves into the past.
    async fn hours_pass(&self) {
        for file in self.files().await.iter().filter(|file| file.starts_with("=due-blobs/")) {
            let (at, id) = file.rsplit('/').next().unwrap().split_once('-').unwrap();
            let at = at.parse::<u64>().unwrap() - 2 * 3_600_000;
            let past = format!("=due-blobs/larder/{:010}/{at:016}-{id}", at / 3_600_000);
            if let Some(s3) = &self.place.s3 {
                let key = |file: &str| format!("{}/{file}", self.prefix());
                s3.rename(&key(file), &key(&past)).await;
            } else {
                let past = self.folder().join(past);
                std::fs::create_dir_all(past.parent().unwrap()).unwrap();
                std::fs::rename(self.folder().join(file), past).unwrap();
            }
        }
    }

    fn folder(&self) -> PathBuf {
        self.place.url.strip_prefix("file://").unwrap().into()
    }

    fn prefix(&self) -> &str {
        self.place.url.rsplit('/').next().unwrap()
    }
}

/// A process on that Redis, with large content at that place.
async fn serving(
    redis: &RedisServer,
    blobs: &str,
    environment: &[(&str, String)],
) -> (Child, Modern) {
    let over = OVER.to_string();
    let settings = [
        AT_ONCE,
        ("LARDER_REDIS__TIMEOUT", "1"),
        ("LARDER_STORE__BLOBS", blobs),
        ("LARDER_STORE__BLOB_BYTES", &over),
    ];
    let environment = environment.iter().map(|(name, value)| (*name, value.as_str()));
    let environment: Vec<_> = environment.chain(settings).collect();
    let (child, url) = serving_in(&["--store", &redis.url(), "--migrate"], &environment).await;
    (child, Modern::at(&url))
}

/// Numbered lines that no compression makes small.
fn large(seed: usize) -> String {
    let mut state = seed as u64 + 1;
    let mut line = |n: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        format!("{n} {state:016x}\n")
    };
    (0..5_000).map(&mut line).collect()
}

#[tokio::test]
async fn large_content_lies_beside_redis_and_small_content_in_it() {
    for beside in Beside::each().await {
        let ((_a, a), (_b, b)) = (beside.serving().await, beside.serving().await);
        a.create(json!({ "uri": "x:small", "text": "small" })).await;
        assert_eq!(beside.beside().await, [""; 0]);
        a.create(json!({ "uri": "x:large", "text": large(0) })).await;
        let ids = beside.beside().await;
        let [large_one] = &ids[..] else { panic!("{ids:?}") };
        let sizes = beside.in_redis().await;
        assert_eq!(sizes.len(), 2, "{sizes:?}");
        assert_eq!(sizes[large_one], 1, "a mark stands for it");
        assert!(sizes.values().all(|size| *size < 20), "{sizes:?}");

        assert_eq!(b.read("x:small").await["text"], "small");
        assert!(b.read("x:large").await["text"] == large(0));
        let line = large(0).lines().nth(4321).unwrap().to_owned();
        let window = json!({ "uri": "x:large", "offset": 4321, "limit": 1 });
        assert!(b.call("read_resource", window).await.text().contains(&line));
        let query = json!({ "uri": "x:large", "query": line });
        assert!(b.call("search_resource", query).await.text().contains("4322: 4321 "));

        // What has become small lies in Redis, and its past stays where it was.
        b.call("update_resource", json!({ "uri": "x:large", "text": "less" })).await.text();
        assert_eq!(a.read("x:large").await["text"], "less");
        assert!(a.read("x:large?revision=1").await["text"] == large(0));
        assert_eq!(beside.beside().await, ids);
        assert_eq!(beside.in_redis().await.len(), 3);
    }
}

#[tokio::test]
async fn what_has_expired_goes_from_redis_by_itself_and_is_collected_by_whoever_looks() {
    for beside in Beside::each().await {
        let (mut child, client) = beside.serving().await;
        client.create(json!({ "uri": "x:short", "text": large(0), "ttl": 5 })).await;
        client.create(json!({ "uri": "x:long", "text": large(1) })).await;
        assert_eq!(beside.beside().await.len(), 2);
        child.kill().await.unwrap();
        let expired = async {
            while beside.in_redis().await.len() > 1 {
                sleep(Duration::from_millis(50)).await;
            }
        };
        patiently("Redis to let go of it, with no server running", expired).await;
        assert_eq!(beside.beside().await.len(), 2, "it is there until somebody looks");
        beside.hours_pass().await;
        let (_next, client) = beside.serving().await;
        let marks = beside.in_redis().await;
        let collected = async {
            while !beside.beside().await.iter().eq(marks.keys()) {
                sleep(Duration::from_millis(50)).await;
            }
        };
        patiently("what nobody wants to go", collected).await;
        assert!(client.read("x:long").await["text"] == large(1));
        let gone = client.send("resources/read", json!({ "uri": "x:short" })).await.error();
        assert_eq!(gone["code"], -32602, "{gone}");
        // It is looked at again, in an hour.
        let noted = async {
            while beside.files().await.len() != 2 {
                sleep(Duration::from_millis(50)).await;
            }
        };
        patiently("one file of content, and one that says when to look", noted).await;
    }
}

#[tokio::test]
async fn servers_are_killed_and_redis_goes_and_nothing_is_lost() {
    for mut beside in Beside::each().await {
        let (mut child, client) = beside.serving().await;
        client.create(json!({ "uri": "x:large", "text": large(0) })).await;
        child.kill().await.unwrap();
        let (_next, client) = beside.serving().await;
        assert!(client.read("x:large").await["text"] == large(0));

        beside.redis.kill();
        let error = client.send("resources/read", json!({ "uri": "x:large" })).await.error();
        assert_eq!(error["code"], -32603, "{error}");
        let created = json!({ "uri": "x:more", "text": large(1) });
        let failure = client.call("create_resource", created.clone()).await.failure();
        assert!(failure.contains("redis") && failure.contains("try again"), "{failure}");
        beside.redis.restart().await;
        let back = async {
            while client.call("create_resource", created.clone()).await.result()["isError"] == true
            {
                sleep(Duration::from_millis(50)).await;
            }
        };
        patiently("Redis to be found again", back).await;
        for (uri, text) in [("x:large", large(0)), ("x:more", large(1))] {
            assert!(client.read(uri).await["text"] == text, "{uri}");
        }
    }
}

#[tokio::test]
async fn killed_in_the_middle_of_writing_beside_it_leaves_the_old_or_the_new() {
    for beside in Beside::each().await {
        killed_in_the_middle(|n| format!("{n} {}", large(n)), || beside.serving()).await;
    }
}

#[tokio::test]
async fn without_its_place_small_content_is_served_and_large_content_comes_back_with_it() {
    let (redis, mut s3) = (RedisServer::start().await, S3Server::start().await);
    let (_child, client) = serving(&redis, &S3Server::url("blobs"), &s3.environment()).await;
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
    // It has lost what it held, and takes new things at once.
    s3.restart().await;
    client.call("create_resource", create).await.text();
    assert!(client.read("x:more").await["text"] == large(1));
    assert_eq!(client.read("x:small").await["text"], "smaller");
}
