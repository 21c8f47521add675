//! Resources that an earlier version stored, and instances of it beside this version.
//!
//! Each `layout_<number>.aof` has the commands that write such resources, from a server of that
//! version, and `layout_<number>/` the scripts of that server. These files are frozen: a new layout
//! adds files, and no change of this version may change them.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use larder_identity::{Owner, Principal};
use larder_runtime::{clock::SystemClock, random::Random};
use sha2::{Digest, Sha256};

use super::{keys::keys, on, read, settings, uri};
use crate::{
    redis::{Redis, cmd},
    store::redis::RedisBackend,
    store::redis::scripts::ScriptCode,
    store::{Details, OwnerQuota, Rewrite, Store, StoreError, StoreLimits, Usage},
    testing::RedisServer,
    testing::store::noise,
};

/// Resources of a version with layout 3: two revisions of a text, a link to it, JSON and bytes.
/// They expire in 2121 and later.
const LAYOUT_3: &[u8] = include_bytes!("layout_3.aof");

/// Resources of a version with layout 4: the resources of [`LAYOUT_3`], and noise in two parts, whose
/// content a test adds.
const LAYOUT_4: &[u8] = include_bytes!("layout_4.aof");

/// The ID of the noise in [`LAYOUT_4`] without the number of its parts.
const NOISE_4: &str = "efbd84e4c1b29c4c737d5400fb0a0e44";

/// The scripts of the version that wrote [`LAYOUT_4`].
const SCRIPTS_4: ScriptCode = ScriptCode {
    index: include_str!("layout_4/index.lua"),
    commit: include_str!("layout_4/commit.lua"),
    delete: include_str!("layout_4/delete.lua"),
    reserve: include_str!("layout_4/reserve.lua"),
    discard: include_str!("layout_4/discard.lua"),
    sweep: include_str!("layout_4/sweep.lua"),
};

/// The SHA-256 of all frozen files, by their path in the folder of these tests.
const FROZEN: [(&str, &str); 8] = [
    ("layout_3.aof", "3cf52f9918366bde83af3166b309219be62896101bc06882238d162a94ed8a0f"),
    ("layout_4.aof", "a934b8a059afa218ecbe8ba3c8ad96c8f2636566100f01cd5ba890103332641e"),
    ("layout_4/commit.lua", "c5f5ae6c83bbc4565a85ca842280fb9c429541ebabfc272741185cfcd1672209"),
    ("layout_4/delete.lua", "47a8c8c64c2e343818b49f7dcdb65c7f85428b15ca32bb1f200fe89676363637"),
    ("layout_4/discard.lua", "39e3ac070dcf50d7cfc0ed16adbcba1c81c523fc4e2c10a3b6d9e635e92d74c1"),
    ("layout_4/index.lua", "725c895f2c50de2d18fe9c7159b0c1cb64d101624e79c6530725b60d55848165"),
    ("layout_4/reserve.lua", "d2a46879b2d7d1d0a6f45c364aca6926419f1a12520021f6033213682d8a8845"),
    ("layout_4/sweep.lua", "286995467f694ff29e52d5bc1b502d83520bc233a8920ac6620f7c4ec88bcb56"),
];

/// The quota of each owner in the test of both versions.
const QUOTA: OwnerQuota = OwnerQuota { bytes: 4 << 20, resources: 3 };

/// An instance that runs these scripts.
async fn with_scripts(code: &ScriptCode, server: &RedisServer) -> Store {
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

/// The SHA-256 of the files below `folder` whose names begin with `layout_`, by their path.
fn digests(folder: &Path, prefix: &str, found: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(folder).expect("the folder is readable") {
        let path = entry.expect("the entry is readable").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("the name is UTF-8");
        let name = format!("{prefix}{name}");

        if path.is_dir() {
            digests(&path, &format!("{name}/"), found);
        } else if name.starts_with("layout_") {
            let content = std::fs::read(&path).expect("the file is readable");
            let digest: Vec<_> =
                Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect();
            found.insert(name, digest.concat());
        }
    }
}

/// Frozen files stand for versions that others may run. A change of one of them would only hide
/// that this version no longer works beside them.
#[test]
fn frozen_files_of_earlier_layouts_are_unchanged() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store/redis/tests");
    let mut found = BTreeMap::new();
    digests(&folder, "", &mut found);

    let frozen = FROZEN.map(|(name, digest)| (name.to_owned(), digest.to_owned()));
    assert_eq!(found, BTreeMap::from(frozen), "a frozen file was changed, added or removed");
}

/// Checks a rolling upgrade within a layout: each version reads, changes, counts and deletes what
/// the other one writes.
#[tokio::test]
async fn instances_of_an_earlier_version_work_beside_this_one() {
    let server = RedisServer::start().await;
    // Opening a store migrates the layout.
    drop(on(&server).await);
    let now = with_scripts(&ScriptCode::CURRENT, &server).await;
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

    // Everything that either version left expires.
    let redis = Redis::open(&settings(&server)).await.expect("it is there");
    let endless: Vec<_> = keys(&redis).await.into_iter().filter(|(_, life)| *life < 0).collect();
    assert!(endless.is_empty(), "{endless:?}");
}

#[tokio::test]
async fn resources_of_layout_3_are_read_changed_and_counted() {
    let server = RedisServer::start().await;
    server.load(LAYOUT_3).await;
    let store = on(&server).await;
    let owner = Principal::Local.owner();

    let usage = store.usage_of(&owner).await.expect("it is counted");
    assert_eq!(usage, Usage { resources: 4, bytes: 8882, reserved: 0 });

    let names = [LINK, "notes://text", "results://bytes", "results://rows"];
    is_read_changed_and_deleted(&store, &owner, &names, "2126-11-24T05:39:36Z").await;
}

#[tokio::test]
async fn resources_of_layout_4_are_read_changed_and_counted() {
    let server = RedisServer::start().await;
    server.load(LAYOUT_4).await;
    let store = on(&server).await;
    let owner = Principal::Local.owner();
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

    // This version appends to a resource of the earlier one.
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
