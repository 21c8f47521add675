//! A shared resource that is created again during a read through its link.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use larder_identity::{Identity, Owner, Principal};
use larder_runtime::clock::ManualClock;

use super::{
    Audience, Backend, ChangeFeed, Details, Lookup, MemoryLimits, OwnerPage, OwnerQuota,
    ResourceUri, Share, Store, StoreError, StoreLimits, StoredResource, Upload, Usage, Version,
};

const URI: &str = "x:1";

fn uri() -> ResourceUri {
    ResourceUri::parse(URI).expect("it is a URI")
}

fn owner() -> Owner {
    Principal::Local.owner()
}

/// A store that creates a resource again after the n-th lookup of it.
struct Recreating {
    store: Store,
    clock: ManualClock,
    /// How many lookups are left until the resource is created again.
    left: AtomicUsize,
}

impl Recreating {
    /// Counts a lookup, and creates the resource again after the last of them.
    async fn looked_up(&self, looked_up: &ResourceUri) {
        if *looked_up != uri() || self.left.fetch_sub(1, Ordering::Relaxed) != 1 {
            return;
        }

        self.clock.advance(Duration::from_millis(1));
        assert!(self.store.delete(&owner(), &uri()).await.expect("it is deleted"));
        create(&self.store, "another").await;
    }
}

impl fmt::Debug for Recreating {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Recreating")
    }
}

#[async_trait]
impl Backend for Recreating {
    fn name(&self) -> &'static str {
        self.store.backend.name()
    }

    fn shared_location(&self) -> Option<String> {
        None
    }

    fn feed(&self) -> &ChangeFeed {
        self.store.backend.feed()
    }

    async fn begin(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
        reservation: Option<&str>,
    ) -> Result<Box<dyn Upload>, StoreError> {
        self.store.backend.begin(owner, uri, reservation).await
    }

    async fn reserve(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
        id: &str,
        bytes: u64,
        ttl: Duration,
    ) -> Result<u64, StoreError> {
        self.store.backend.reserve(owner, uri, id, bytes, ttl).await
    }

    async fn release(&self, owner: &Owner, id: &str, keep: u64) -> Result<(), StoreError> {
        self.store.backend.release(owner, id, keep).await
    }

    async fn get(&self, owner: &Owner, uri: &ResourceUri) -> Result<Lookup, StoreError> {
        let found = self.store.backend.get(owner, uri).await;
        self.looked_up(uri).await;
        found
    }

    async fn revisions(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
    ) -> Result<Vec<StoredResource>, StoreError> {
        let found = self.store.backend.revisions(owner, uri).await;
        self.looked_up(uri).await;
        found
    }

    async fn delete(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
        version: Option<Version>,
    ) -> Result<bool, StoreError> {
        self.store.backend.delete(owner, uri, version).await
    }

    async fn page(
        &self,
        owner: &Owner,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<StoredResource>, StoreError> {
        self.store.backend.page(owner, prefix, after, limit).await
    }

    async fn usage(&self) -> Result<Usage, StoreError> {
        self.store.backend.usage().await
    }

    async fn owners(&self, after: Option<&str>, limit: usize) -> Result<OwnerPage, StoreError> {
        self.store.backend.owners(after, limit).await
    }

    async fn usage_of(&self, owner: &Owner) -> Result<Usage, StoreError> {
        self.store.backend.usage_of(owner).await
    }

    fn quota(&self) -> OwnerQuota {
        self.store.backend.quota()
    }

    async fn maintain(&self) {}
}

async fn create(store: &Store, text: &str) {
    let created = store.create(&owner(), uri(), text.into(), Details::default()).await;
    created.expect("it fits");
}

#[derive(Debug, Clone, Copy)]
enum Read {
    Current,
    Revision,
    Revisions,
}

/// The texts that a reader gets through the link.
async fn texts(store: &Store, link: &ResourceUri, read: Read) -> Result<Vec<String>, StoreError> {
    let reader = Identity::local();
    let found = match read {
        Read::Current => vec![store.read(&reader, link).await?],
        Read::Revision => vec![store.read_revision(&reader, link, Some(1)).await?],
        Read::Revisions => store.read_revisions(&reader, link).await?,
    };

    let mut texts = Vec::new();
    for found in found {
        texts.push(String::from_utf8(found.bytes().await?.to_vec()).expect("it is text"));
    }
    Ok(texts)
}

#[tokio::test]
async fn a_resource_that_is_created_again_is_not_read_through_the_link() {
    for read in [Read::Current, Read::Revision, Read::Revisions] {
        let mut lookup = 1;
        loop {
            let clock = ManualClock::new();
            let store = Store::memory(
                Arc::new(clock.clone()),
                MemoryLimits::default(),
                StoreLimits::default(),
            );

            create(&store, "shared").await;
            let share = Share::from(Audience::Everyone);
            let link = store.share(&Identity::local(), &uri(), share, "1").await;
            let link = link.expect("it is shared").uri.clone();

            let left = AtomicUsize::new(lookup);
            let backend = Arc::new(Recreating { store, clock: clock.clone(), left });
            let backend_dyn: Arc<dyn Backend> = Arc::<Recreating>::clone(&backend);
            let store = Store::new(backend_dyn, Arc::new(clock), StoreLimits::default());

            match texts(&store, &link, read).await {
                Ok(texts) => assert_eq!(texts, ["shared"], "{read:?}, lookup {lookup}"),
                Err(error) => assert!(error.is_not_found(), "{read:?}, {lookup}: {error:?}"),
            }

            let left = backend.left.load(Ordering::Relaxed);
            // The test ends when a read makes fewer lookups than are left.
            if (1..=lookup).contains(&left) {
                assert!(lookup > 1, "nothing is looked up");
                break;
            }

            let gone = texts(&store, &link, read).await;
            assert!(gone.as_ref().is_err_and(StoreError::is_not_found), "{read:?}: {gone:?}");
            lookup += 1;
        }
    }
}
