//! [`Store`]: the interface of the store for the rest of the server.

use std::{sync::Arc, time::Duration};

use larder_identity::{Owner, Principal};
use larder_runtime::clock::{Clock, Timestamp};

use super::{
    Backend, ChangeFeed, DiskSpace, Entry, Lookup, MemoryBackend, MemoryLimits, Origins,
    OwnerQuota, ResourceUri, StoreError, StoredBytes, StoredResource, TotalLimit, Usage,
    limited::LimitedBackend,
};

/// Limits on times to live and revisions.
#[derive(Debug, Clone)]
pub struct StoreLimits {
    /// The time to live of resources that are created without one.
    pub default_ttl: Duration,
    /// The maximum time to live.
    pub max_ttl: Duration,
    /// How many revisions of a resource are stored, the current one included.
    pub revisions: usize,
}

impl Default for StoreLimits {
    /// A time to live of one day by default and of thirty days at most; three revisions.
    fn default() -> Self {
        let day = Duration::from_hours(24);
        Self { default_ttl: day, max_ttl: 30 * day, revisions: 3 }
    }
}

/// A page of a listing.
#[derive(Debug, Clone)]
pub struct Page {
    /// The entries, in byte order of their URIs.
    pub entries: Vec<Arc<Entry>>,
    /// Whether there are more entries after this page.
    pub more: bool,
}

/// The store. Cheap to clone; all clones are one store.
#[derive(Debug, Clone)]
pub struct Store {
    pub(super) backend: Arc<dyn Backend>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) limits: StoreLimits,
    pub(super) stored_bytes: StoredBytes,
    pub(super) origins: Option<Origins>,
}

impl Store {
    /// A store over a backend.
    pub fn new(backend: Arc<dyn Backend>, clock: Arc<dyn Clock>, limits: StoreLimits) -> Self {
        Self { backend, clock, limits, stored_bytes: StoredBytes::default(), origins: None }
    }

    /// A store in this process's memory. Its resources are lost when the process
    /// ends.
    pub fn memory(clock: Arc<dyn Clock>, memory: MemoryLimits, limits: StoreLimits) -> Self {
        Self::new(Arc::new(MemoryBackend::new(Arc::clone(&clock), memory)), clock, limits)
    }

    /// Limits what all owners store together, uploads in progress included. Several processes
    /// that share a location may exceed the limit by what the other processes store within a
    /// second without an announced size, and in files and buckets within ten minutes.
    #[must_use]
    pub fn limited_to(self, total: TotalLimit) -> Self {
        self.wrapped(|backend| LimitedBackend::new(backend, total))
    }

    /// A store over a backend that `wrap` makes of the backend of this store.
    #[must_use]
    pub fn wrapped<B: Backend>(self, wrap: impl FnOnce(Arc<dyn Backend>) -> B) -> Self {
        Self { backend: Arc::new(wrap(self.backend)), ..self }
    }

    /// A clone that adds the bytes of content written through it to `stored_bytes`.
    #[must_use]
    pub fn counting(&self, stored_bytes: StoredBytes) -> Self {
        Self { stored_bytes, ..self.clone() }
    }

    /// The backend's name.
    pub fn backend_name(&self) -> &'static str {
        self.backend.name()
    }

    /// The location of the data, if other processes may share it; see
    /// [`Backend::shared_location`].
    pub fn shared_location(&self) -> Option<String> {
        self.backend.shared_location()
    }

    /// The usage of all owners together. The cost does not depend on the amount.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn usage(&self) -> Result<Usage, StoreError> {
        self.backend.usage().await
    }

    /// The usage of this owner. Resources that have just expired, and uploads, may be
    /// counted.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn usage_of(&self, owner: &Owner) -> Result<Usage, StoreError> {
        self.backend.usage_of(owner).await
    }

    /// The quota of each owner.
    pub fn quota(&self) -> OwnerQuota {
        self.backend.quota()
    }

    /// The feed of changes.
    pub fn feed(&self) -> &ChangeFeed {
        self.backend.feed()
    }

    /// The space on the disk where content is stored, where this process can measure
    /// it.
    pub async fn disk(&self) -> Option<DiskSpace> {
        self.backend.disk().await
    }

    /// Checks that the backend is reachable and its disk has space for content.
    ///
    /// # Errors
    /// [`StoreError::Full`] while the disk has too little space; any other error if
    /// the backend is not reachable.
    pub async fn ping(&self) -> Result<(), StoreError> {
        // The prefix matches no resource, but the request takes the path of any listing.
        let nobody = Principal::Local.owner();
        self.backend.page(&nobody, "larder-probe:", None, 1).await?;
        self.disk().await.map_or(Ok(()), |space| space.check())
    }

    /// The current time of the clock that expiries are measured by.
    pub fn now(&self) -> Timestamp {
        self.backend.now().unwrap_or_else(|| self.clock.now())
    }

    /// Removes expired resources and runs the backend's other background work,
    /// until the future is dropped.
    pub async fn maintain(&self) {
        self.backend.maintain().await;
    }

    /// Looks up a live resource.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], or [`StoreError::Expired`] as long as the backend
    /// remembers the expiry.
    pub async fn get(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
    ) -> Result<StoredResource, StoreError> {
        match self.backend.get(owner, uri).await? {
            Lookup::Live(found) => Ok(self.shown(found)),
            Lookup::Expired(at) => Err(StoreError::Expired { uri: uri.clone(), at }),
            Lookup::Missing => Err(StoreError::NotFound { uri: uri.clone() }),
        }
    }

    /// Looks up a revision of a live resource; the current one if `revision` is
    /// `None`.
    ///
    /// # Errors
    /// The errors of [`Store::get`], and [`StoreError::NoRevision`].
    pub async fn revision(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
        revision: Option<u64>,
    ) -> Result<StoredResource, StoreError> {
        let Some(revision) = revision else { return self.get(owner, uri).await };
        select_revision(self.revisions(owner, uri).await?, uri, revision)
    }

    /// The stored revisions of a live resource, oldest first and the current revision
    /// last.
    ///
    /// # Errors
    /// The errors of [`Store::get`].
    pub async fn revisions(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
    ) -> Result<Vec<StoredResource>, StoreError> {
        let revisions = self.backend.revisions(owner, uri).await?;
        if revisions.is_empty() {
            // The error of `get` tells missing and expired apart.
            return Ok(vec![self.get(owner, uri).await?]);
        }

        Ok(revisions.into_iter().map(|found| self.shown(found)).collect())
    }

    /// Up to `limit` of the owner's resources whose URI starts with `prefix` and
    /// sorts after `after`, in byte order of the URI.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn list(
        &self,
        owner: &Owner,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        let (found, more) = self.list_with_content(owner, prefix, after, limit).await?;
        Ok(Page { entries: found.into_iter().map(|found| found.entry).collect(), more })
    }

    /// Lists as [`list`](Self::list) does, with handles to the content. Also returns whether there
    /// are more resources. Saves readers of many resources a lookup for each.
    ///
    /// # Errors
    /// The errors of [`Store::list`].
    pub async fn list_with_content(
        &self,
        owner: &Owner,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<(Vec<StoredResource>, bool), StoreError> {
        let mut found = self.backend.page(owner, prefix, after, limit.saturating_add(1)).await?;
        let more = found.len() > limit;
        found.truncate(limit);
        Ok((found.into_iter().map(|found| self.shown(found)).collect(), more))
    }
}

/// The revision with this number among the stored revisions of a resource.
///
/// # Errors
/// [`StoreError::NoRevision`].
pub(super) fn select_revision(
    mut revisions: Vec<StoredResource>,
    uri: &ResourceUri,
    revision: u64,
) -> Result<StoredResource, StoreError> {
    let available: Vec<u64> = revisions.iter().map(|found| found.entry.revision).collect();

    match available.iter().position(|available| *available == revision) {
        Some(index) => Ok(revisions.swap_remove(index)),
        None => Err(StoreError::NoRevision { uri: uri.clone(), revision, available }),
    }
}
