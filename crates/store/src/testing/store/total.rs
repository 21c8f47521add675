//! The limit of the bytes that all owners store together.

use futures_util::stream;
use tokio::sync::oneshot;

use super::{Caller, Harness, Setup, noise, patiently, refused, resource_uri};
use crate::store::{
    BLOCK_BYTES, Content, Details, Expected, PartialUpload, Reserves, Store, StoreError,
    UploadTarget,
};

const BLOCK: u64 = BLOCK_BYTES as u64;

#[track_caller]
fn is_full<T>(result: Result<T, StoreError>) {
    match refused(result) {
        StoreError::Full(text) => assert!(text.contains(" store is full"), "{text}"),
        other => panic!("another error: {other:?}"),
    }
}

/// Begins an upload in parts by a caller.
async fn begin(
    harness: &dyn Harness,
    store: &Store,
    owner: &str,
    size: Option<u64>,
) -> Result<PartialUpload, StoreError> {
    let target = UploadTarget {
        uri: resource_uri("temp://parts"),
        name: None,
        title: None,
        description: None,
        mime_type: None,
        ttl: None,
        may_be_text: true,
        sha256: None,
        reserves: Reserves::Announced,
    };

    let caller = Caller::new(store, owner);
    store.begin_upload(&caller.owner, "7", target, size, 2000 * harness.tick()).await
}

/// Announced content counts in the total of all owners from its beginning until it is stored or given
/// up, in one request or in several.
pub async fn uploads_of_all_owners_are_reserved_in_the_total(harness: &dyn Harness) {
    let store = harness.store(Setup::default().max_total(12 * BLOCK)).await;
    let alice = Caller::new(&store, "alice");
    let bob = Caller::new(&store, "bob");
    let expected = || Expected { size: Some(7 * BLOCK), sha256: None };
    let seven_of_bob = async || {
        let never = Content::byte_stream(stream::poll_fn(|_| panic!("the content is read")));
        bob.try_create("temp://a", never.expecting(expected()), Details::default()).await
    };

    let in_parts = begin(harness, &store, "alice", Some(7 * BLOCK)).await;
    let in_parts = in_parts.expect("it begins");

    is_full(begin(harness, &store, "bob", Some(7 * BLOCK)).await.map(drop));
    is_full(seven_of_bob().await);
    // Refused content counts nothing.
    Caller::new(&store, "carol").put("temp://a", noise(3 * BLOCK_BYTES)).await;
    in_parts.cancel().await.expect("it is removed");

    let (request, requested) = oneshot::channel();
    let pending = stream::once(async move {
        request.send(()).expect("the check waits for this");
        std::future::pending().await
    });
    let pending = Content::byte_stream(pending).expecting(expected());

    tokio::select! {
        _ = alice.try_create("temp://a", pending, Details::default()) => panic!("content is missing"),
        () = async {
            requested.await.expect("the content is requested");
            is_full(seven_of_bob().await);
            is_full(begin(harness, &store, "bob", Some(7 * BLOCK)).await.map(drop));
        } => {}
    }

    let seven = || Content::from(noise(7 * BLOCK_BYTES)).expecting(expected());
    patiently(async || bob.try_create("temp://a", seven(), Details::default()).await.ok()).await;
    // Stored content counts once.
    alice.put("temp://b", noise(BLOCK_BYTES)).await;
    is_full(alice.try_create("temp://c", noise(2 * BLOCK_BYTES), Details::default()).await);
}

/// An upload in parts that announces more than the total has room for keeps its earlier reservation,
/// and reserves nothing more.
pub async fn an_upload_in_parts_that_exceeds_the_total_reserves_nothing_more(
    harness: &dyn Harness,
) {
    let store = harness.store(Setup::default().max_total(12 * BLOCK)).await;
    let upload = begin(harness, &store, "alice", None).await.expect("it begins");
    upload.expect(4 * BLOCK).await.expect("there is room");

    is_full(upload.expect(20 * BLOCK).await);
    let bob = Caller::new(&store, "bob");

    is_full(bob.try_create("temp://a", noise(9 * BLOCK_BYTES), Details::default()).await);
    bob.put("temp://a", noise(7 * BLOCK_BYTES)).await;
}
