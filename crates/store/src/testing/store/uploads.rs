//! Uploads in parts.

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use larder_runtime::random::Random;

use super::{Caller, Harness, Setup, in_pieces, noise, patiently, refused, resource_uri};
use crate::store::{
    AppendError, BLOCK_BYTES, ContentStream, Details, Kind, PartialUpload, Reserves, StoreError,
    UploadTarget,
};

fn target(uri: &str) -> UploadTarget {
    UploadTarget {
        uri: resource_uri(uri),
        name: Some("report".into()),
        title: None,
        description: None,
        mime_type: None,
        ttl: None,
        may_be_text: true,
        sha256: None,
        reserves: Reserves::Announced,
    }
}

fn pieces(content: &[u8]) -> ContentStream {
    in_pieces(Bytes::copy_from_slice(content)).boxed()
}

async fn append(upload: &mut PartialUpload, content: &[u8]) -> u64 {
    upload.append(pieces(content), &Random::system()).await.expect("it is appended")
}

/// The parts of an upload become one resource, also if each part is appended by another request.
/// Until then nobody sees the resource.
pub async fn parts_become_one_resource(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    let mut content = "a line\n".repeat(BLOCK_BYTES / 2).into_bytes();
    content.extend(noise(100_000));

    let ttl = 200 * harness.tick();
    let size = Some(content.len() as u64);
    let begun = alice.store.begin_upload(&alice.owner, "7", target("temp://a"), size, ttl).await;
    assert_eq!(begun.expect("it begins").offset(), 0);

    for part in content.chunks(700_000) {
        let found = alice.store.upload_in_parts(&alice.owner, "7").await;
        let mut upload = found.expect("it is open");

        let before = upload.offset();
        assert_eq!(append(&mut upload, part).await, part.len() as u64);
        assert_eq!(upload.offset(), before + part.len() as u64);

        assert_eq!(append(&mut upload, b"").await, 0, "nothing is no part");
        assert!(alice.list("").await.is_empty());
    }

    let found = alice.store.upload_in_parts(&alice.owner, "7").await;
    let mut upload = found.expect("it is open");
    let stored = upload.store().await.expect("it is stored");
    assert_eq!((stored.kind, stored.name.as_str()), (Kind::Binary, "report"));
    assert_eq!(alice.read("temp://a").await, content);
    assert_eq!(alice.list("").await, ["temp://a"]);

    let found = alice.store.upload_in_parts(&alice.owner, "7").await.expect("it is known");
    assert!(found.is_stored());
    assert_eq!((found.offset(), found.size()), (content.len() as u64, size));

    let again = found.clone().store().await.expect("it is stored already");
    assert_eq!(again.revision, 1);

    found.cancel().await.expect("it is removed");
    let bob = Caller::new(&alice.store, "bob");
    assert!(refused(bob.store.upload_in_parts(&bob.owner, "7").await).is_not_found());

    assert_eq!(alice.store.usage().await.expect("it is counted").resources, 1);
}

/// Of two requests that append at one time, one wins, and the content of the other is dropped.
pub async fn one_of_two_appends_wins(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    let ttl = 200 * harness.tick();
    let begun = alice.store.begin_upload(&alice.owner, "7", target("temp://a"), None, ttl).await;
    let mut one = begun.expect("it begins");
    let mut other = one.clone();

    append(&mut one, b"one").await;
    let lost = other.append(pieces(b"other"), &Random::system()).await;
    assert!(matches!(lost, Err(AppendError::Changed)), "{lost:?}");
    assert!(matches!(other.store().await, Err(AppendError::Changed)));

    append(&mut one, b" two").await;
    assert_eq!(one.store().await.expect("it is stored").size, 7);
    assert_eq!(alice.read("temp://a").await, "one two");
}

/// An upload that nobody completes is removed with its parts, and so is an upload whose content
/// differs from its announcement, so that their room can be used again.
pub async fn an_upload_that_does_not_complete_is_removed(harness: &dyn Harness) {
    let block = BLOCK_BYTES as u64;
    let store = harness.store(Setup::default().max_bytes(8 * block)).await;
    let alice = Caller::new(&store, "alice");
    let three_blocks = noise(3 * BLOCK_BYTES);

    let ttl = 10 * harness.tick();
    let begun = store.begin_upload(&alice.owner, "7", target("temp://a"), None, ttl).await;
    append(&mut begun.expect("it begins"), &three_blocks).await;

    let wrong = UploadTarget { sha256: Some("00".into()), ..target("temp://b") };
    let ttl = 200 * harness.tick();
    let begun = store.begin_upload(&alice.owner, "8", wrong, None, ttl).await;
    let mut upload = begun.expect("it begins");
    append(&mut upload, &three_blocks).await;
    let error = upload.store().await;
    let Err(AppendError::Store(StoreError::NotAsAnnounced(_))) = error else { panic!("{error:?}") };

    harness.pass(10 * harness.tick()).await;
    for id in ["7", "8"] {
        assert!(refused(store.upload_in_parts(&alice.owner, id).await).is_not_found());
    }

    // The new upload fits only if both have given back their room, which may count for a while.
    let size = Some(6 * block);
    super::patiently(async || {
        harness.pass(10 * harness.tick()).await;
        store.begin_upload(&alice.owner, "9", target("temp://c"), size, ttl).await.ok().map(|_| ())
    })
    .await;
}

/// An upload that cannot fit is refused before it begins. Arriving content is limited by a quota of
/// the size of the owner's.
pub async fn uploads_in_parts_are_limited(harness: &dyn Harness) {
    let bytes = 8 * BLOCK_BYTES as u64;
    let store = harness.store(Setup::default().max_bytes(bytes)).await;
    let alice = Caller::new(&store, "alice");
    let ttl = 200 * harness.tick();
    let begin = |size| store.begin_upload(&alice.owner, "7", target("temp://a"), size, ttl);

    assert!(matches!(begin(Some(bytes + 1)).await, Err(StoreError::Full(_))));

    let mut upload = begin(None).await.expect("it begins");
    let endless = stream::repeat_with(|| Ok(Bytes::from(vec![7; BLOCK_BYTES]))).boxed();
    let full = upload.append(endless, &Random::system()).await;
    assert!(matches!(full, Err(AppendError::Store(StoreError::Full(_)))), "{full:?}");
    assert_eq!(upload.offset(), 0);
}

/// The announced size counts from the beginning until the upload is cancelled or ends, and the
/// resource that it becomes counts once.
pub async fn an_upload_in_parts_counts_from_its_beginning_and_once(harness: &dyn Harness) {
    let size = Some(5 * BLOCK_BYTES as u64);
    let store = harness.store(Setup::default().max_bytes(8 * BLOCK_BYTES as u64)).await;
    let alice = Caller::new(&store, "alice");

    let begin = async |id: &str, ttl: u32| {
        let begun =
            store.begin_upload(&alice.owner, id, target("temp://a"), size, ttl * harness.tick());
        begun.await
    };
    let is_full = |result: Result<_, StoreError>| {
        assert!(matches!(refused(result), StoreError::Full(_)), "it is another error");
    };

    let mut upload = begin("7", 2000).await.expect("it begins");
    is_full(begin("8", 2000).await.map(drop));
    let other = || alice.try_create("temp://b", noise(3 * BLOCK_BYTES), Details::default());
    is_full(other().await.map(drop));

    upload.cancel().await.expect("it is removed");
    upload = begin("9", 2000).await.expect("there is room again");

    for part in noise(5 * BLOCK_BYTES).chunks(2 * BLOCK_BYTES) {
        append(&mut upload, part).await;
        is_full(other().await.map(drop));
    }

    upload.store().await.expect("it is stored");
    alice.put("temp://b", noise(2 * BLOCK_BYTES)).await;
    is_full(alice.try_create("temp://c", noise(BLOCK_BYTES), Details::default()).await.map(drop));

    for uri in ["temp://a", "temp://b"] {
        assert!(alice.delete(uri).await, "it existed");
    }

    begin("10", 4).await.expect("there is room again");
    is_full(begin("11", 2000).await.map(drop));

    harness.pass(5 * harness.tick()).await;
    patiently(async || begin("12", 2000).await.ok()).await;
}

/// An upload without an announced size counts its parts when they arrive, and an announced part
/// before it arrives.
pub async fn an_upload_in_parts_without_a_size_counts_as_it_grows(harness: &dyn Harness) {
    let store = harness.store(Setup::default().max_bytes(8 * BLOCK_BYTES as u64)).await;
    let alice = Caller::new(&store, "alice");
    let ttl = 2000 * harness.tick();
    let begin = store.begin_upload(&alice.owner, "7", target("temp://a"), None, ttl);
    let mut upload = begin.await.expect("it begins");

    alice.put("temp://b", noise(3 * BLOCK_BYTES)).await;
    append(&mut upload, &noise(2 * BLOCK_BYTES)).await;

    let announced = upload.expect(5 * BLOCK_BYTES as u64).await;
    assert!(matches!(announced, Err(StoreError::Full(_))), "{announced:?}");
    let full = upload.append(pieces(&noise(3 * BLOCK_BYTES)), &Random::system()).await;
    assert!(matches!(full, Err(AppendError::Store(StoreError::Full(_)))), "{full:?}");
    assert_eq!(upload.offset(), 2 * BLOCK_BYTES as u64, "what had arrived before stays");

    assert!(alice.delete("temp://b").await, "it existed");
    append(&mut upload, &noise(3 * BLOCK_BYTES)).await;
    assert_eq!(upload.store().await.expect("it is stored").size, 5 * BLOCK_BYTES as u64);
}

/// An announced size reserves nothing where the sender is not trusted with the quota.
pub async fn an_upload_can_count_what_has_arrived_only(harness: &dyn Harness) {
    let block = BLOCK_BYTES as u64;
    let store = harness.store(Setup::default().max_bytes(8 * block)).await;
    let alice = Caller::new(&store, "alice");
    let target = UploadTarget { reserves: Reserves::Arrived, ..target("temp://a") };
    let size = Some(5 * block);
    let ttl = 2000 * harness.tick();
    let begun = store.begin_upload(&alice.owner, "7", target, size, ttl).await;
    let mut upload = begun.expect("it begins");
    upload.expect(5 * block).await.expect("nothing is reserved");
    alice.put("temp://b", noise(5 * BLOCK_BYTES)).await;
    append(&mut upload, &noise(2 * BLOCK_BYTES)).await;
    let full = upload.append(pieces(&noise(2 * BLOCK_BYTES)), &Random::system()).await;
    assert!(matches!(full, Err(AppendError::Store(StoreError::Full(_)))), "{full:?}");
    assert!(alice.delete("temp://b").await, "it existed");
    append(&mut upload, &noise(3 * BLOCK_BYTES)).await;
    assert_eq!(upload.store().await.expect("it is stored").size, 5 * block);
}

/// Of the uploads that have begun alike, all but the latest are removed. A request that still
/// appends to one of them reserves nothing.
pub async fn uploads_that_begin_alike_end_together(harness: &dyn Harness) {
    let block = BLOCK_BYTES as u64;
    let store = harness.store(Setup::default().max_bytes(8 * block)).await;
    let alice = Caller::new(&store, "alice");
    let ttl = 2000 * harness.tick();
    let mut uploads = Vec::new();
    for id in ["a1", "a2", "a3", "b1"] {
        let begun = store.begin_upload(&alice.owner, id, target("temp://a"), None, ttl).await;
        let mut upload = begun.expect("it begins");
        append(&mut upload, &noise(BLOCK_BYTES)).await;
        append(&mut upload, b"another part").await;
        uploads.push(upload);
        harness.pass(harness.tick()).await;
    }
    let open = async |id: &str| {
        let open = store.open_uploads(&alice.owner, id).await.expect("they are listed");
        open.iter().map(|upload| upload.id().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(open("a").await, ["a1", "a2", "a3"]);
    store.end_uploads(&alice.owner, "a", 1, Some("a1")).await.expect("they end");
    assert_eq!(open("a").await, ["a1", "a3"]);
    store.end_uploads(&alice.owner, "a", 0, None).await.expect("they end");
    assert_eq!((open("a").await.len(), open("b").await), (0, vec!["b1".to_owned()]));
    for upload in &mut uploads[..3] {
        let changed = upload.append(pieces(&noise(3 * BLOCK_BYTES)), &Random::system()).await;
        assert!(matches!(changed, Err(AppendError::Changed)), "{changed:?}");
    }
    // Backends may count for a while what was removed.
    let large = || alice.try_create("temp://b", noise(6 * BLOCK_BYTES), Details::default());
    patiently(async || large().await.ok()).await;
}

/// Content in transit is read whole. Nobody lists it, and it is removed as soon as it is not needed
/// any more.
pub async fn content_in_transit_is_listed_nowhere_and_removed(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    let content = Bytes::from(noise(2 * BLOCK_BYTES + 7));
    for reads_all in [true, false] {
        let uri = resource_uri("transit:1");
        let begun = alice.store.begin_transit(&alice.owner, uri, Kind::Binary).await;
        let mut arriving = begun.expect("it begins");

        for piece in content.chunks(100_000) {
            arriving.write(content.slice_ref(piece)).await.expect("it is written");
        }

        let arrived = arriving.finish().await.expect("it is complete");
        let passed = alice.store.in_transit(arrived).await.expect("it is stored");

        assert_eq!(alice.store.usage().await.expect("it is counted").resources, 1);
        assert!(alice.list("").await.is_empty());
        assert!(refused(alice.try_get("transit:1").await).is_not_found());

        let (kind, mut pieces) = passed.into_parts();
        assert_eq!(kind, Kind::Binary);
        let mut read = Vec::new();
        while let Some(piece) = pieces.next().await {
            read.extend(piece.expect("it is readable"));
            if !reads_all {
                break;
            }
        }

        assert_eq!(read.len() == content.len(), reads_all);
        assert!(content.starts_with(&read));

        drop(pieces);
        let usage = async || alice.store.usage().await.expect("it is counted");
        patiently(async || (usage().await.resources == 0).then_some(())).await;
    }
}
