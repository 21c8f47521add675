//! What an earlier version stored, and instances of it beside this version. Each
//! `layout_<number>.aof` has the commands that write it, from a server of that version, and
//! `layout_<number>/` the scripts of that server. No dump is made anew: only new ones are added.

use std::sync::Arc;

use super::{keys::keys, on, read, settings, uri};
use crate::{
    auth::{Owner, Principal},
    clock::SystemClock,
    random::Random,
    redis::{Redis, cmd},
    store::{
        Details, OwnerQuota, Rewrite, Store, StoreError, StoreLimits, Usage,
        redis::{RedisBackend, scripts::Code},
    },
    testing::{RedisServer, store::noise},
};

/// By a version with layout 3: two revisions of a text, a link to it, JSON and bytes. They
/// expire in 2121 and later.
const LAYOUT_3: &[u8] = include_bytes!("layout_3.aof");

/// By a version with layout 4: the same, and noise in two parts, whose content a test adds.
const LAYOUT_4: &[u8] = include_bytes!("layout_4.aof");

/// The ID of that noise without the number of its parts.
const NOISE_4: &str = "efbd84e4c1b29c4c737d5400fb0a0e44";

/// The scripts of that version.
const SCRIPTS_4: Code = Code {
    index: include_str!("layout_4/index.lua"),
    commit: include_str!("layout_4/commit.lua"),
    delete: include_str!("layout_4/delete.lua"),
    reserve: include_str!("layout_4/reserve.lua"),
    discard: include_str!("layout_4/discard.lua"),
    sweep: include_str!("layout_4/sweep.lua"),
};

/// What each owner may store in the test of both versions.
const QUOTA: OwnerQuota = OwnerQuota { bytes: 4 << 20, resources: 3 };

/// An instance whose scripts are these.
async fn with_scripts(code: &Code, server: &RedisServer) -> Store {
    let redis = Redis::open(&settings(server)).await.expect("it is there");
    let backend = RedisBackend::open_with_code(code, redis, Random::system(), QUOTA, None).await;
    let backend = Arc::new(backend.expect("the layout is the same"));
    Store::new(backend, Arc::new(SystemClock), StoreLimits::default())
}

async fn append(store: &Store, owner: &Owner, name: &str, text: &'static str) -> u64 {
    let appended = Rewrite { appended: text.into(), ..Rewrite::default() };
    let written = store.rewrite(owner, uri(name), appended, Details::default()).await;
    written.expect("it is written").revision
}

/// A rolling upgrade within a layout: all that the scripts of one version write, those of the
/// other one read, change, count and delete.
#[tokio::test]
async fn instances_of_an_earlier_version_work_beside_this_one() {
    let server = RedisServer::start().await;
    // Migrates.
    drop(on(&server).await);
    let now = with_scripts(&Code::CURRENT, &server).await;
    let before = with_scripts(&SCRIPTS_4, &server).await;
    let owner = Owner::new("alice");
    for (one, other) in [(&now, &before), (&before, &now)] {
        one.create(&owner, uri("x:1"), "1\n".into(), Details::default()).await.expect("it fits");
        assert_eq!(append(other, &owner, "x:1", "2\n").await, 2);
        assert_eq!(append(one, &owner, "x:1", "3\n").await, 3);
        for store in [one, other] {
            assert_eq!(read(store, &owner, "x:1").await, "1\n2\n3\n");
            let first = store.revision(&owner, &uri("x:1"), Some(1)).await.expect("it is kept");
            assert_eq!(first.bytes().await.expect("it can be read"), "1\n");
        }
        // An upload that reserves its room while the other one writes.
        let large = noise(2 << 20);
        let stored = now.create(&owner, uri("x:2"), large.clone().into(), Details::default());
        let beside = before.create(&owner, uri("x:3"), "beside".into(), Details::default());
        let (stored, beside) = tokio::join!(stored, beside);
        stored.and(beside).expect("both fit");
        assert!(read(&before, &owner, "x:2").await == large);
        for store in [one, other] {
            let full = store.create(&owner, uri("x:4"), "4".into(), Details::default()).await;
            assert!(matches!(full, Err(StoreError::Full(_))), "{full:?}");
        }
        let used = one.usage_of(&owner).await.expect("it is counted");
        assert_eq!(other.usage_of(&owner).await.expect("it is counted"), used);
        assert!(used.resources == 3 && used.bytes > 2 << 20, "{used:?}");
        for (store, name) in [(other, "x:1"), (one, "x:2"), (other, "x:3")] {
            assert!(store.delete(&owner, &uri(name)).await.expect("it can be deleted"), "{name}");
        }
        for store in [one, other] {
            let gone = store.get(&owner, &uri("x:1")).await;
            assert!(matches!(gone, Err(StoreError::NotFound { .. })));
            let Usage { resources, bytes, .. } = store.usage().await.expect("it is counted");
            assert_eq!((resources, bytes), (0, 0));
        }
    }
    // What either version has left expires.
    let redis = Redis::open(&settings(&server)).await.expect("it is there");
    let endless: Vec<_> = keys(&redis).await.into_iter().filter(|(_, life)| *life < 0).collect();
    assert!(endless.is_empty(), "{endless:?}");
}

#[tokio::test]
async fn what_layout_3_stored_is_read_changed_and_counted() {
    let server = RedisServer::start().await;
    server.load(LAYOUT_3).await;
    let (store, owner) = (on(&server).await, Principal::Local.owner());
    let usage = store.usage_of(&owner).await.expect("it is counted");
    assert_eq!(usage, Usage { resources: 4, bytes: 8882, reserved: 0 });
    let names = [LINK, "notes://text", "results://bytes", "results://rows"];
    is_read_changed_and_deleted(&store, &owner, &names, "2126-11-24T05:39:36Z").await;
}

#[tokio::test]
async fn what_layout_4_stored_is_read_changed_and_counted() {
    let server = RedisServer::start().await;
    server.load(LAYOUT_4).await;
    let (store, owner) = (on(&server).await, Principal::Local.owner());
    let redis = Redis::open(&settings(&server)).await.expect("it is there");
    let shard = redis.keys().shard_of(owner.as_str());
    let content = noise((1 << 20) + 5);
    for (key, part) in
        [NOISE_4.to_owned(), format!("{NOISE_4}.1")].iter().zip(content.chunks(1 << 20))
    {
        let mut set = cmd("SET");
        set.arg(shard.key("blob", key)).arg(part).arg("EX").arg(3600);
        redis.query::<()>(&set).await.expect("it is set");
    }
    let usage = store.usage_of(&owner).await.expect("it is counted");
    assert_eq!(usage, Usage { resources: 5, bytes: 1_058_186, reserved: 0 });
    assert!(read(&store, &owner, "results://noise").await == content);
    let names = [LINK, "notes://text", "results://bytes", "results://noise", "results://rows"];
    is_read_changed_and_deleted(&store, &owner, &names, "2126-11-01T21:24:13Z").await;
    let redis = Redis::open(&settings(&server)).await.expect("it is there");
    for (key, life) in keys(&redis).await.iter().filter(|(key, _)| key.contains(":blob:")) {
        assert!((0..=60_000).contains(life), "{key} lives {life}");
    }
}

/// The link in both dumps.
const LINK: &str = "larder://shared/local/6b94f99db683e562e51751fb977416fa";

/// Checks what both dumps have. `names` are all resources, `expires` is the expiry of the text.
async fn is_read_changed_and_deleted(store: &Store, owner: &Owner, names: &[&str], expires: &str) {
    let page = store.list(owner, "", None, 10).await.expect("it can be listed");
    let listed: Vec<_> = page.entries.iter().map(|entry| entry.uri.as_str()).collect();
    assert_eq!(listed, names);
    let notes = store.get(owner, &uri("notes://text")).await.expect("it is there").entry;
    assert_eq!((&*notes.name, notes.description.as_deref()), ("Notes", Some("A description")));
    assert_eq!((notes.revision, notes.lines), (2, 1));
    assert_eq!(notes.expires.to_string(), expires);
    assert_eq!(read(store, owner, "notes://text").await, "second\n");
    let first = store.revision(owner, &uri("notes://text"), Some(1)).await.expect("it is kept");
    assert_eq!(first.bytes().await.expect("it can be read"), "first\n");
    assert_eq!(read(store, owner, "results://bytes").await, [0, 255, 1][..]);
    let rows = store.get(owner, &uri("results://rows")).await.expect("it is there");
    let rows = rows.bytes().await.expect("it can be read");
    let rows: Vec<serde_json::Value> = serde_json::from_slice(&rows).expect("it is JSON");
    assert_eq!((rows.len(), &rows[99]["name"]), (100, &serde_json::json!("row 99")));

    // This version writes over it.
    let appended = Rewrite { appended: "third\n".into(), ..Rewrite::default() };
    let details = Details::default();
    let written = store.rewrite(owner, uri("notes://text"), appended, details).await;
    assert_eq!(written.expect("it is written").revision, 3);
    assert_eq!(read(store, owner, "notes://text").await, "second\nthird\n");
    for name in names {
        assert!(store.delete(owner, &uri(name)).await.expect("it can be deleted"), "{name}");
        let gone = store.get(owner, &uri(name)).await;
        assert!(matches!(gone, Err(StoreError::NotFound { .. })), "{name}");
    }
    let page = store.list(owner, "", None, 10).await.expect("it can be listed");
    assert!(page.entries.is_empty(), "{page:?}");
    assert_eq!(store.usage().await.expect("it is counted").resources, 0);
}
