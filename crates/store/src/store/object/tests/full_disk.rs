//! Resources on a disk that is full.

use std::path::Path;

use larder_identity::Owner;

use super::*;
use crate::{
    store::{Details, ResourceUri, StoreError},
    testing::SmallDisk,
    testing::store::noise,
};

const DISK: u64 = 4 << 20;

fn uri(uri: &str) -> ResourceUri {
    ResourceUri::parse(uri).expect("it is a URI")
}

async fn create(store: &Store, name: &str, bytes: usize, seconds: u64) -> Result<(), StoreError> {
    let details = Details { ttl: Some(Duration::from_secs(seconds)), ..Details::default() };
    let content = noise(bytes).into();
    store.create(&Owner::new("alice"), uri(name), content, details).await.map(drop)
}

/// The text of a refusal for lack of space.
fn refusal<T>(result: Result<T, StoreError>) -> String {
    match result {
        Err(StoreError::Full(text)) => text,
        Err(error) => panic!("another error: {error:?}"),
        Ok(_) => panic!("it is not refused"),
    }
}

async fn patiently<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), work).await.expect("it does not end")
}

/// The bytes of all files of content below a folder.
fn content_bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).expect("it can be read").flatten();

    let bytes = entries.map(|entry| {
        let path = entry.path();
        let is_content = path.extension().is_some_and(|end| end == "content");
        match entry.metadata().expect("it has") {
            metadata if metadata.is_dir() => content_bytes(&path),
            metadata if is_content => metadata.len(),
            _ => 0,
        }
    });

    bytes.sum()
}

fn has_reserve(disk: &SmallDisk) -> bool {
    disk.path().join("store/=reserve/63.space").exists()
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_full_disk_resources_are_deleted_and_expire() {
    let Some(disk) = SmallDisk::mount(DISK) else { return };
    let clock = ManualClock::new();
    let alice = Owner::new("alice");
    let store = on(&disk.url(), None, &clock, &Setup::default()).await;
    assert!(has_reserve(&disk));

    create(&store, "x:short", 100_000, 60).await.expect("it fits");
    for name in ["x:1", "x:2"] {
        create(&store, name, 100_000, 3600).await.expect("it fits");
    }

    disk.fill();
    let text = refusal(create(&store, "x:4", 100_000, 60).await);
    assert!(text.contains("disk of the store is full"), "{text}");

    // The rest of the reserve is not for content.
    let text = refusal(create(&store, "x:4", 1000, 60).await);
    assert!(text.contains("store.disk_reserve_bytes"), "{text}");
    assert!(!has_reserve(&disk));

    // Content is removed at once, without the grace period.
    let before = content_bytes(disk.path());
    assert!(store.delete(&alice, &uri("x:1")).await.expect("it can be deleted"));
    assert_eq!(content_bytes(disk.path()), before - 100_000);

    clock.advance(Duration::from_secs(61));
    let _maintained = maintained(&store);
    patiently(async {
        while content_bytes(disk.path()) > before - 200_000 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;

    for (name, is_expired) in [("x:1", false), ("x:short", true)] {
        match store.get(&alice, &uri(name)).await.map(drop) {
            Err(StoreError::NotFound { .. }) => assert!(!is_expired, "{name}"),
            Err(StoreError::Expired { .. }) => assert!(is_expired, "{name}"),
            other => panic!("{name}: {other:?}"),
        }
    }

    disk.free();
    patiently(async {
        while create(&store, "x:4", 100_000, 60).await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    assert!(has_reserve(&disk));
}

#[tokio::test(flavor = "multi_thread")]
async fn content_leaves_the_reserve_free() {
    let Some(disk) = SmallDisk::mount(DISK) else { return };
    let store = on(&disk.url(), None, &ManualClock::new(), &Setup::default()).await;

    let mut created = 0;
    let text = patiently(async {
        loop {
            match create(&store, &format!("x:{created}"), 50_000, 3600).await {
                Ok(()) => created += 1,
                refused => break refusal(refused),
            }
        }
    })
    .await;

    assert!(text.contains("disk of the store"), "{text}");
    assert!(created > 40, "{created} resources use most of the disk");

    assert!(created > 40, "{created}");
    for number in 0..created {
        let name = format!("x:{number}");
        let deleted = store.delete(&Owner::new("alice"), &uri(&name)).await;
        assert!(deleted.expect("it can be deleted"), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_opens_on_a_full_disk() {
    let Some(disk) = SmallDisk::mount(DISK) else { return };
    let clock = ManualClock::new();
    let store = on(&disk.url(), None, &clock, &Setup::default()).await;
    create(&store, "x:1", 1000, 60).await.expect("it fits");
    // No reserve is left to give up.
    std::fs::remove_dir_all(disk.path().join("store/=reserve")).expect("it is there");
    disk.fill();

    let store = on(&disk.url(), None, &clock, &Setup::default()).await;
    let found = store.get(&Owner::new("alice"), &uri("x:1")).await.expect("it is there");
    assert_eq!(found.bytes().await.expect("it can be read"), noise(1000));

    let space = store.disk().await.expect("it can be measured");
    assert!(space.is_low && space.free_bytes < 4096, "{space:?}");

    let text = refusal(store.ping().await);
    assert!(text.contains("store.disk_reserve_bytes"), "{text}");
}

/// Runs the store's background work until dropped.
fn maintained(store: &Store) -> tokio_util::task::AbortOnDropHandle<()> {
    let store = store.clone();
    tokio_util::task::AbortOnDropHandle::new(tokio::spawn(async move { store.maintain().await }))
}
