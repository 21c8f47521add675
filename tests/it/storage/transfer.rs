//! `larder export` and `larder import` between stores, and `larder admin`.

use std::{path::Path, process::Stdio};

use serde_json::json;
use tokio::io::AsyncWriteExt;

use super::{
    Location,
    external_blobs::{BLOB_BYTES, Installation},
};
use crate::support::{
    Modern, RedisServer, eventually, noise,
    process::{Finished, larder, run, serving_in},
};

/// How many resources the stores have.
const RESOURCES: usize = 42;

/// A store that commands work on.
struct Target<'t> {
    url: String,
    environment: Vec<(&'t str, &'t str)>,
}

impl<'t> Target<'t> {
    async fn redis(redis: &RedisServer) -> Self {
        let target = Self { url: redis.url(), environment: Vec::new() };
        target.ends(&["migrate"]).await;
        target
    }

    fn objects(location: &'t Location) -> Self {
        Self { url: location.url.clone(), environment: location.environment(&[]) }
    }

    async fn run(&self, arguments: &[&str]) -> Finished {
        let mut command = larder(&[arguments, &["--store", &self.url]].concat());
        command.envs(self.environment.iter().copied());
        run(command).await
    }

    /// Runs a command that succeeds.
    async fn ends(&self, arguments: &[&str]) -> Finished {
        let finished = self.run(arguments).await;
        assert_eq!(finished.code, Some(0), "{finished:?}");
        finished
    }

    /// Stores texts, bytes and revisions through a server.
    async fn fill(&self) {
        let (process, url) = serving_in(&["--store", &self.url], &self.environment).await;
        let client = Modern::at(&url);
        let text = |seed: usize| {
            let words = noise(seed as u64).take(2000).map(|word| format!("{word:x}\n"));
            words.collect::<String>()
        };
        for n in 0..RESOURCES - 2 {
            let resource = json!({ "uri": format!("x:{n:02}"), "text": text(n), "ttl": 5000 + n });
            client.create(resource).await;
        }
        client.create(json!({ "uri": "x:bytes", "blob": "AP8A", "name": "bytes" })).await;
        client.create(json!({ "uri": "x:revised", "text": "one", "description": "is it" })).await;
        for text in ["two", "three"] {
            let update = json!({ "uri": "x:revised", "text": text });
            client.call("update_resource", update).await.text();
        }
        process.stop("-TERM").await;
    }

    /// The export of the store without its header, which has the time.
    async fn exported(&self, file: &Path) -> Vec<u8> {
        self.ends(&["export", file.to_str().unwrap()]).await;
        let frames = zstd::decode_all(std::fs::File::open(file).unwrap()).unwrap();
        let header = u32::from_be_bytes(frames[1..5].try_into().unwrap()) as usize;
        frames[5 + header..].to_vec()
    }

    async fn resources(&self) -> usize {
        let usage = self.ends(&["admin", "usage", "local"]).await.stdout;
        let resources = usage.strip_prefix("local: ").and_then(|usage| usage.split_once(' '));
        resources.unwrap_or_else(|| panic!("{usage}")).0.parse().unwrap()
    }

    /// Imports a part of an export, is killed, and imports all of it.
    async fn imports_when_killed(&self, file: &Path) {
        let export = std::fs::read(file).unwrap();
        let mut command = larder(&["import", "-", "--store", &self.url]);
        command.envs(self.environment.iter().copied()).stdin(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(&export[..export.len() / 2]).await.unwrap();
        stdin.flush().await.unwrap();
        eventually("a part to be imported", async || self.resources().await > 0).await;
        child.kill().await.unwrap();
        drop(stdin);
        let there = self.resources().await;
        assert!(there < RESOURCES, "all of {there} were imported");
        let said = self.ends(&["import", file.to_str().unwrap()]).await.stderr;
        assert!(said.contains("0 were refused") && !said.contains(" 0 were there"), "{said}");
        assert_eq!(self.resources().await, RESOURCES);
    }
}

#[tokio::test]
async fn a_store_is_moved_from_redis_to_files_and_back_and_to_s3() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let (here, there) = (RedisServer::start().await, RedisServer::start().await);
    let [directory, bucket] = Location::each().await;
    let first = Target::redis(&here).await;
    first.fill().await;
    let expected = first.exported(&file("first")).await;
    let files = Target::objects(&directory);
    files.imports_when_killed(&file("first")).await;
    // The same frames: metadata, revisions, times, content.
    assert!(files.exported(&file("files")).await == expected, "files have something else");
    for target in [Target::redis(&there).await, Target::objects(&bucket)] {
        target.imports_when_killed(&file("files")).await;
        let exported = target.exported(&file("target")).await;
        assert!(exported == expected, "{} has something else", target.url);
    }
    assert!(!file("first.partial").exists());
}

#[tokio::test]
async fn an_import_into_redis_stores_large_content_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let here = RedisServer::start().await;
    let source = Target::redis(&here).await;
    source.fill().await;
    let expected = source.exported(&file("source")).await;
    let blob_bytes = BLOB_BYTES.to_string();
    for installation in Installation::each().await {
        let settings = [
            ("LARDER_STORE__BLOBS", installation.blobs.url.as_str()),
            ("LARDER_STORE__BLOB_BYTES", &blob_bytes),
        ];
        let environment = installation.blobs.environment(&settings);
        let target = Target { url: installation.redis.url(), environment };
        target.ends(&["migrate"]).await;
        target.imports_when_killed(&file("source")).await;
        let exported = target.exported(&file("target")).await;
        assert!(exported == expected, "{} has something else", installation.blobs.url);
        // All texts but the revised one are large; bytes and revisions are not.
        let in_redis = installation.in_redis().await;
        let marks = in_redis.values().filter(|size| **size == 1).count();
        assert_eq!(marks, RESOURCES - 2, "{in_redis:?}");
        assert!(in_redis.values().all(|size| *size < BLOB_BYTES), "{in_redis:?}");
        let outside = installation.outside().await;
        let missing: Vec<_> =
            in_redis.iter().filter(|(id, size)| **size == 1 && !outside.contains(id)).collect();
        assert!(missing.is_empty(), "{missing:?}");
        // Without it, what is there cannot be read, and nothing claims that it is all.
        let without = Target { url: target.url.clone(), environment: Vec::new() };
        let failed = without.run(&["export", file("without").to_str().unwrap()]).await;
        assert_ne!(failed.code, Some(0), "{failed:?}");
        assert!(failed.stderr.contains("store.blobs"), "{failed:?}");
    }
}

#[tokio::test]
async fn what_cannot_be_moved_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    let path = file.to_str().unwrap();
    let finished = run(larder(&["export", path])).await;
    assert_eq!(finished.code, Some(2), "{finished:?}");
    assert!(finished.stderr.contains("store.url is memory"), "{finished:?}");
    let target = Target { url: format!("file://{}", folder.path().display()), environment: vec![] };
    std::fs::write(&file, "something else").unwrap();
    let finished = target.run(&["import", path]).await;
    assert_eq!(finished.code, Some(2), "{finished:?}");
    assert!(finished.stderr.contains("not an export"), "{finished:?}");
    let empty = target.ends(&["export", path]).await;
    assert!(empty.stderr.contains("exported 0 revisions"), "{empty:?}");
}

#[tokio::test]
async fn an_operator_sees_owners_and_purges_one() {
    let redis = RedisServer::start().await;
    let target = Target::redis(&redis).await;
    target.fill().await;
    let owners = target.ends(&["admin", "owners"]).await.stdout;
    assert!(owners.starts_with(&format!("local\t{RESOURCES}\t")), "{owners}");
    let all = target.ends(&["admin", "usage"]).await.stdout;
    assert!(all.starts_with(&format!("all owners: {RESOURCES} resources, ")), "{all}");
    let (_process, url) = serving_in(&["--store", &target.url], &[]).await;
    let client = Modern::at(&url);
    assert_eq!(client.read("x:revised").await["text"], "three");
    // Nobody answers.
    let asked = target.run(&["admin", "purge", "local"]).await;
    assert_eq!(asked.code, Some(1), "{asked:?}");
    assert!(asked.stderr.contains("Nothing was deleted") && asked.stderr.contains("[y/N]"));
    let nobody = target.ends(&["admin", "purge", "--static", "nobody", "--yes"]).await;
    assert!(nobody.stdout.starts_with("Deleted 0 resources of static-"), "{nobody:?}");
    let purged = target.ends(&["admin", "purge", "local", "--yes"]).await;
    assert_eq!(purged.stdout, format!("Deleted {RESOURCES} resources of local.\n"));
    assert!(purged.stderr.contains("audit") && purged.stderr.contains("operator"), "{purged:?}");
    assert_eq!(target.resources().await, 0);
    let gone = client.send("resources/read", json!({ "uri": "x:revised" })).await;
    assert_eq!(gone.json()["error"]["code"], -32602);
}
