use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::{future::try_join_all, stream};
use larder_identity::Owner;
use larder_runtime::clock::ManualClock;

use super::{MemoryLimits, OTHERS_PER_REQUEST, SWEEP_BATCH};
use crate::{
    store::{BLOCK_BYTES, Content, Details, Expected, ResourceUri, Store, StoreError, StoreLimits},
    testing::store::{Harness, Setup, noise},
};

#[derive(Default)]
struct Memory(ManualClock);

#[async_trait]
impl Harness for Memory {
    async fn store(&self, setup: Setup) -> Store {
        let bytes = setup.total.unwrap_or(u64::MAX);
        let limits = MemoryLimits { bytes, per_owner: setup.quota };
        Store::memory(Arc::new(self.0.clone()), limits, setup.limits)
    }

    async fn pass(&self, span: Duration) {
        self.0.advance(span);
    }

    fn tick(&self) -> Duration {
        Duration::from_millis(1)
    }
}

crate::store_contract!(Memory::default());

fn uri(uri: &str) -> ResourceUri {
    ResourceUri::parse(uri).expect("it is a URI")
}

fn with_ttl(ttl: Duration) -> Details {
    Details { ttl: Some(ttl), ..Details::default() }
}

#[tokio::test]
async fn the_total_of_all_owners_is_capped() {
    let memory = Memory::default().store(Setup::default()).await;
    let empty = Content::from(Vec::new());
    let empty = memory.create(&Owner::new("a"), uri("temp://a"), empty, Details::default()).await;
    let each = empty.expect("it fits").counted_bytes();

    let limits = MemoryLimits { bytes: 100 + 2 * each, ..MemoryLimits::default() };
    let store = Store::memory(Arc::new(ManualClock::new()), limits, StoreLimits::default());
    let bytes = |len| Content::from(vec![0; len]);

    let alice = Owner::new("alice");
    let bob = Owner::new("bob");

    store.create(&alice, uri("temp://a"), bytes(60), Details::default()).await.expect("it fits");

    let refused = store.create(&bob, uri("temp://b"), bytes(41), Details::default()).await;
    match refused {
        Err(StoreError::Full(message)) => assert!(message.contains("memory.bytes"), "{message}"),
        other => panic!("{other:?}"),
    }

    store.create(&bob, uri("temp://b"), bytes(40), Details::default()).await.expect("it fits");
}

#[tokio::test]
async fn many_resources_that_expire_at_once_are_removed_at_once() {
    let memory = Memory::default();
    let store = memory.store(Setup::default()).await;

    let owner = Owner::new("alice");
    for n in 0..=2 * SWEEP_BATCH {
        let uri = uri(&format!("temp://{n}"));
        let details = with_ttl(Duration::from_secs(1));
        store.create(&owner, uri, "text".into(), details).await.expect("it fits");
    }

    memory.pass(Duration::from_secs(1)).await;
    let page = store.list(&owner, "", None, 1).await.expect("it can be listed");
    assert!(page.entries.is_empty() && !page.more);
}

#[tokio::test]
async fn an_expired_resource_is_reported_as_expired_until_its_uri_is_used_again() {
    let memory = Memory::default();
    let store = memory.store(Setup::default()).await;
    let owner = Owner::new("alice");
    let uri = uri("temp://a");

    // More rounds than expiries that are remembered.
    for _ in 0..5000 {
        let details = with_ttl(Duration::from_secs(1));
        let entry = store.create(&owner, uri.clone(), "text".into(), details).await;
        let expires = entry.expect("it fits").expires;
        memory.pass(Duration::from_secs(1)).await;
        for _ in 0..2 {
            match store.get(&owner, &uri).await {
                Err(StoreError::Expired { at, .. }) => assert_eq!(at, expires),
                other => panic!("{:?}", other.map(|found| found.entry)),
            }
        }
    }

    store.create(&owner, uri.clone(), "text".into(), Details::default()).await.expect("it fits");
    store.delete(&owner, &uri).await.expect("it can be deleted");
    let missing = store.get(&owner, &uri).await.map(|found| found.entry);
    assert!(matches!(missing, Err(StoreError::NotFound { .. })), "{missing:?}");
}

#[tokio::test]
async fn stored_content_takes_no_more_memory_than_it_counts() {
    let memory = Memory::default().store(Setup::default()).await;
    let owner = Owner::new("alice");

    let pieces = |count: usize, len: usize| {
        let noise = noise(count * len);
        let pieces: Vec<_> = noise.chunks(len).map(|piece| Ok(piece.to_vec().into())).collect();
        Content::byte_stream(stream::iter(pieces))
    };

    // Pieces that are longer than a block, and pieces of which several make up a block.
    for (count, len) in [(4, BLOCK_BYTES * 3 / 2), (500, 3000)] {
        let uri = uri("temp://a");
        let content = pieces(count, len);
        memory.create(&owner, uri.clone(), content, Details::default()).await.expect("it fits");

        let found = memory.get(&owner, &uri).await.expect("it is stored");
        let blocks = found.entry.blocks.iter().map(|block| block.stored..block.stored_end());
        let blocks: Vec<_> = blocks.collect();
        let blocks = try_join_all(blocks.into_iter().map(|block| found.blob.range(block)));
        let blocks = blocks.await.expect("it can be read");

        assert!(memory.delete(&owner, &uri).await.expect("it can be deleted"));
        drop(found);

        // Nobody else has the blocks now, so their allocations can be measured.
        let allocated = blocks.into_iter().map(|block| {
            block.try_into_mut().expect("nothing else is in its allocation").capacity()
        });
        assert_eq!(allocated.sum::<usize>(), count * len);
    }
}

/// A store with expired resources of more owners than one request sweeps, and the bytes that these
/// resources count.
async fn expired_of_many(memory: &Memory, setup: Setup) -> (Store, u64) {
    let store = memory.store(setup).await;

    let mut counted = 0;
    for n in 0..2 * SWEEP_BATCH {
        let owner = Owner::new(format!("owner-{n:04}"));
        let details = with_ttl(Duration::from_secs(1));
        let entry = store.create(&owner, uri("temp://a"), "text".into(), details).await;
        counted += entry.expect("it fits").counted_bytes();
    }

    memory.pass(Duration::from_secs(1)).await;
    (store, counted)
}

#[tokio::test]
async fn a_request_removes_a_few_expired_resources_of_others() {
    let memory = Memory::default();
    let (store, _) = expired_of_many(&memory, Setup::default()).await;

    let mut changes = store.feed().subscribe_all();
    let nobody = Owner::new("nobody");
    assert!(store.get(&nobody, &uri("temp://a")).await.is_err());

    for _ in 0..OTHERS_PER_REQUEST {
        assert!(changes.next().await.expect("none is missed").is_some());
    }
    let more = futures_util::FutureExt::now_or_never(changes.next());
    assert!(more.is_none(), "{more:?}");

    // No owner finds an expired resource, whether it has been removed or not.
    let last = Owner::new(format!("owner-{:04}", 2 * SWEEP_BATCH - 1));
    let found = store.get(&last, &uri("temp://a")).await.map(|found| found.entry);
    assert!(matches!(found, Err(StoreError::Expired { .. })), "{found:?}");
}

#[tokio::test]
async fn the_bytes_of_expired_resources_of_other_owners_are_free() {
    let memory = Memory::default();
    let (_, counted) = expired_of_many(&memory, Setup::default()).await;
    for announced in [true, false] {
        let (store, _) = expired_of_many(&memory, Setup::default().max_total(counted)).await;

        let size = counted - 2048;
        let mut content = Content::from(noise(usize::try_from(size).expect("it is short")));
        if announced {
            content = content.expecting(Expected { size: Some(size), sha256: None });
        }

        let owner = Owner::new("nobody");
        store.create(&owner, uri("temp://a"), content, Details::default()).await.expect("it fits");
    }
}

#[tokio::test]
async fn a_page_of_owners_ends_where_it_is_full_and_leaves_out_uploads() {
    let store = Memory::default().store(Setup::default()).await;
    let pending =
        Content::byte_stream(stream::pending()).expecting(Expected { size: Some(1), sha256: None });
    let uploads = Owner::new("a");
    let upload = store.create(&uploads, uri("temp://a"), pending, Details::default());
    let mut upload = std::pin::pin!(upload);
    assert!(futures_util::poll!(&mut upload).is_pending());

    for owner in ["b", "c"] {
        let owner = Owner::new(owner);
        store
            .create(&owner, uri("temp://a"), "text".into(), Details::default())
            .await
            .expect("fits");
    }

    let first = store.owners(None, 1).await.expect("it is listed");
    assert_eq!((first.owners, first.next.as_deref()), (vec![], Some("a")));
    let next = store.owners(Some("a"), 1).await.expect("it is listed");
    assert_eq!((next.owners, next.next.as_deref()), (vec![Owner::new("b")], Some("b")));
    let last = store.owners(Some("b"), 2).await.expect("it is listed");
    assert_eq!((last.owners, last.next), (vec![Owner::new("c")], None));
}

#[tokio::test]
async fn the_bytes_of_an_ended_reservation_are_free() {
    let memory = Memory::default();
    let ttl = Duration::from_secs(1);
    let store = memory.store(Setup::default().max_bytes(10_000)).await;

    // The reservation of this owner ends after more reservations than one request ends.
    let owner = Owner::new("z");
    let others = (0..2 * OTHERS_PER_REQUEST).map(|n| Owner::new(format!("owner-{n:04}")));
    for owner in others.chain([owner.clone()]) {
        let reserved = store.backend.reserve(&owner, &uri("temp://a"), "id", 9000, ttl).await;
        assert_eq!(reserved.expect("it fits"), 0);
    }

    memory.pass(ttl).await;
    let content = Content::from(vec![0; 8000]);
    store.create(&owner, uri("temp://a"), content, Details::default()).await.expect("it fits");
}
