#![allow(clippy::unwrap_used)]

use std::{sync::Arc, time::Duration};

use larder_identity::Owner;
use larder_runtime::clock::{Clock, ManualClock};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::{
    Exported, Imported, Progress, TransferError, export,
    frames::{FrameKind, FrameWriter},
    import,
};
use crate::store::{Details, MemoryLimits, OwnerQuota, ResourceUri, Store, StoreLimits};

/// The time at which a manual clock begins.
const NOW: u64 = 1_767_225_600_000;

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

type Change = Box<dyn FnOnce(&mut serde_json::Value)>;

/// An export of one resource, whose metadata are changed.
async fn forged(change: impl FnOnce(&mut serde_json::Value)) -> Vec<u8> {
    let mut metadata = json!({
        "owner": "alice", "uri": "x:1", "revision": 1, "name": "a", "mime_type": "text/plain",
        "kind": "text", "size": 4, "sha256": larder_runtime::hex::hex(&Sha256::digest("text")),
        "created": NOW, "updated": NOW, "expires": NOW + 60_000,
    });
    change(&mut metadata);
    let mut frames = FrameWriter::new(Vec::new()).unwrap();
    let header = json!({ "format": "larder-export", "version": 1 }).to_string();
    frames.write(FrameKind::Header, header.as_bytes()).await.unwrap();
    frames.write(FrameKind::Revision, metadata.to_string().as_bytes()).await.unwrap();
    frames.write(FrameKind::Content, b"text").await.unwrap();
    frames.write(FrameKind::End, b"{}").await.unwrap();
    frames.finish().await.unwrap()
}

#[tokio::test]
async fn the_rules_of_create_hold_for_an_import() {
    let clock = ManualClock::new();
    assert_eq!(clock.now().as_millis(), NOW);
    let day = u64::try_from(StoreLimits::default().max_ttl.as_millis()).unwrap();
    let set = |member: &'static str, value: serde_json::Value| -> Change {
        Box::new(move |metadata| metadata[member] = value)
    };
    for (change, says) in [
        (set("name", json!("n".repeat(200_000))), "name has 200000 bytes"),
        (set("title", json!("t".repeat(257))), "title has 257 bytes"),
        (set("description", json!("d".repeat(5_000))), "description has 5000 bytes"),
        (set("mime_type", json!("m".repeat(256))), "mime_type has 256 bytes"),
        (set("name", json!("a\u{202e}b")), "name"),
        (set("owner", json!("o".repeat(200_000))), "owner"),
        (set("session", json!("s".repeat(200_000))), "session"),
        (set("origins", json!(["o".repeat(200_000)])), "origin"),
        (set("revision", json!(0)), "revision"),
        (set("revision", json!(u64::MAX)), "revision"),
        (set("expires", json!(1_u64 << 63)), "ttl must be at most"),
        (set("expires", json!(NOW + day + 3_600_000)), "ttl must be at most"),
        (set("updated", json!(1_u64 << 63)), "updated"),
        (set("created", json!(NOW + 1)), "created"),
    ] {
        let store = store(&clock);
        let mut reasons = Vec::new();
        let export = forged(change).await;
        let done = import(&store, &export[..], |progress| {
            if let Progress::LeftOut { why, .. } = progress {
                reasons.push(why.to_string());
            }
        });
        let done = done.await.unwrap();
        assert_eq!(done, Imported { refused: 1, ..Imported::default() }, "{says}");
        assert!(reasons.len() == 1 && reasons[0].contains(says), "{says}: {reasons:?}");
        assert_eq!(store.usage().await.unwrap().resources, 0, "{says}");
    }
    let whole = forged(|_| {}).await;
    let longest = forged(move |metadata| metadata["expires"] = json!(NOW + day)).await;
    for export in [whole, longest] {
        let store = store(&clock);
        assert_eq!(import(&store, &export[..], |_| {}).await.unwrap().written, 1);
    }
}
