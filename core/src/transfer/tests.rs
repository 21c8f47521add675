#![allow(clippy::unwrap_used)]

use std::{sync::Arc, time::Duration};

use super::{Exported, Imported, TransferError, export, import};
use crate::{
    auth::Owner,
    clock::ManualClock,
    store::{Details, MemoryLimits, OwnerQuota, ResourceUri, Store, StoreLimits},
};

fn store(clock: &ManualClock) -> Store {
    Store::memory(Arc::new(clock.clone()), MemoryLimits::default(), StoreLimits::default())
}

async fn put(store: &Store, owner: &str, uri: &str, content: Vec<u8>) {
    let uri = ResourceUri::parse(uri).unwrap();
    store.create(&Owner::new(owner), uri, content.into(), Details::default()).await.unwrap();
}

async fn text(store: &Store, owner: &str, uri: &str) -> Option<bytes::Bytes> {
    let found = store.get(&Owner::new(owner), &ResourceUri::parse(uri).unwrap()).await.ok()?;
    Some(found.bytes().await.unwrap())
}

/// A store with resources of several owners, and its export.
async fn exported(clock: &ManualClock) -> (Store, Vec<u8>) {
    let from = store(clock);
    for owner in ["alice", "bob"] {
        for n in 0..100 {
            put(&from, owner, &format!("x:{n}"), format!("{n} of {owner}").into_bytes()).await;
        }
        put(&from, owner, "x:large", vec![7; 3_000_000]).await;
        clock.advance(Duration::from_millis(1));
        put(&from, owner, "x:large", crate::testing::store::noise(700_000)).await;
        put(&from, owner, "x:empty", Vec::new()).await;
    }

    let (done, out) = export(&from, Vec::new(), |_| {}).await.unwrap();
    assert_eq!((done.revisions, done.gone, done.damaged), (206, 0, 0));
    (from, out)
}

#[tokio::test]
async fn a_store_is_exported_and_imported_once() {
    let clock = ManualClock::new();

    let (from, out) = exported(&clock).await;
    let to = store(&clock);
    let done = import(&to, &out[..], |_| {}).await.unwrap();
    assert_eq!((done.written, done.present), (206, 0));

    for owner in ["alice", "bob"] {
        for uri in ["x:7", "x:large", "x:empty"] {
            assert_eq!(text(&from, owner, uri).await, text(&to, owner, uri).await);
        }
    }
    assert_eq!(from.usage().await.unwrap(), to.usage().await.unwrap());

    let again = import(&to, &out[..], |_| {}).await.unwrap();
    assert_eq!(again, Imported { present: 206, ..Imported::default() });
    // An export of the imported resources is equal.
    let (second, _) = export(&to, Vec::new(), |_| {}).await.unwrap();
    assert_eq!(second, Exported { revisions: 206, bytes: done.bytes, ..Exported::default() });
}

#[tokio::test]
async fn an_export_that_is_cut_off_is_continued() {
    let clock = ManualClock::new();
    let (from, out) = exported(&clock).await;
    let to = store(&clock);

    for cut in [out.len() / 3, out.len() * 2 / 3, out.len() - 10] {
        let ended = import(&to, &out[..cut], |_| {}).await;
        assert!(matches!(ended, Err(TransferError::Incomplete)), "{ended:?}");
    }

    let done = import(&to, &out[..], |_| {}).await.unwrap();
    assert!(
        done.present > 0 && done.refused == 0 && done.written + done.present == 206,
        "{done:?}"
    );
    assert_eq!(from.usage().await.unwrap(), to.usage().await.unwrap());
}

#[tokio::test]
async fn what_is_no_export_or_damaged_is_refused() {
    let clock = ManualClock::new();
    let to = store(&clock);
    for other in [&b""[..], b"hello", &zstd::encode_all(&b"hello hello"[..], 1).unwrap()] {
        let ended = import(&to, other, |_| {}).await;
        assert!(matches!(ended, Err(TransferError::NotAnExport)), "{ended:?}");
    }

    let (_, mut out) = exported(&clock).await;
    let middle = out.len() / 2;
    for byte in &mut out[middle..middle + 1000] {
        *byte ^= 0x55;
    }

    let done = import(&to, &out[..], |_| {}).await;
    // Content that was changed has another digest.
    assert!(done.as_ref().map_or(true, |done| done.refused > 0), "{done:?}");
}

#[tokio::test]
async fn what_has_expired_or_does_not_fit_is_counted() {
    let clock = ManualClock::new();
    let (_, out) = exported(&clock).await;
    let per_owner = OwnerQuota { bytes: 500_000, ..OwnerQuota::default() };
    let limits = MemoryLimits { per_owner, ..MemoryLimits::default() };
    let small = Store::memory(Arc::new(clock.clone()), limits, StoreLimits::default());

    let done = import(&small, &out[..], |_| {}).await.unwrap();
    assert_eq!((done.written, done.refused), (202, 4));

    clock.advance(Duration::from_hours(25));
    let late = store(&clock);
    let done = import(&late, &out[..], |_| {}).await.unwrap();
    assert_eq!(done, Imported { expired: 206, ..Imported::default() });
}
