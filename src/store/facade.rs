//! [`Store`]: what the rest of the server sees.

use std::{sync::Arc, time::Duration};

use super::{
    Backend, ChangeFeed, Committed, Content, Draft, Entry, Found, Lookup, MemoryBackend,
    MemoryLimits, Placement, ResourceUri, StoreError, StoredBytes, Usage, blocks::BlockWriter,
    sharing,
};
use crate::{
    auth::{Owner, Principal},
    clock::{Clock, Timestamp},
};

/// Bounds on what may be asked of the store.
#[derive(Debug, Clone)]
pub struct StoreLimits {
    /// The time to live of resources created without one.
    pub default_ttl: Duration,
    /// The longest time to live that may be asked for.
    pub max_ttl: Duration,
    /// How many revisions of a resource are kept, the present one included.
    pub revisions: usize,
}

impl Default for StoreLimits {
    /// One day by default, thirty days at most; three revisions.
    fn default() -> Self {
        let day = Duration::from_hours(24);
        Self { default_ttl: day, max_ttl: 30 * day, revisions: 3 }
    }
}

/// What a creator may say of a resource besides its content.
#[derive(Debug, Clone, Default)]
pub struct Details {
    /// Short name; the last part of the URI by default.
    pub name: Option<String>,
    /// For people.
    pub title: Option<String>,
    /// What is in it.
    pub description: Option<String>,
    /// The media type; by the content's kind by default.
    pub mime_type: Option<String>,
    /// How long it lives; [`StoreLimits::default_ttl`] by default.
    pub ttl: Option<Duration>,
    /// The session that it is to end with, if with any.
    pub session: Option<Arc<str>>,
}

/// A part of a listing.
#[derive(Debug, Clone)]
pub struct Page {
    /// In byte order of their URIs.
    pub entries: Vec<Arc<Entry>>,
    /// Whether there is more after the last of them.
    pub more: bool,
}

/// The store. Cheap to clone; all clones are one store.
#[derive(Debug, Clone)]
pub struct Store {
    backend: Arc<dyn Backend>,
    clock: Arc<dyn Clock>,
    limits: StoreLimits,
    tally: StoredBytes,
}

impl Store {
    /// A store over a backend.
    pub fn new(backend: Arc<dyn Backend>, clock: Arc<dyn Clock>, limits: StoreLimits) -> Self {
        Self { backend, clock, limits, tally: StoredBytes::default() }
    }

    /// A store in this process's memory, gone when it ends.
    pub fn memory(clock: Arc<dyn Clock>, memory: MemoryLimits, limits: StoreLimits) -> Self {
        Self::new(Arc::new(MemoryBackend::new(Arc::clone(&clock), memory)), clock, limits)
    }

    /// The same store, counting on its own what is stored through it.
    #[must_use]
    pub fn counting(&self, tally: StoredBytes) -> Self {
        Self { tally, ..self.clone() }
    }

    /// The backend's name.
    pub fn backend_name(&self) -> &'static str {
        self.backend.name()
    }

    /// Where it is, if other processes may keep things there, too: see
    /// [`Backend::shared`].
    pub fn shared(&self) -> Option<String> {
        self.backend.shared()
    }

    /// What all owners have there together, at little cost.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn usage(&self) -> Result<Usage, StoreError> {
        self.backend.usage().await
    }

    /// Where it says what changed.
    pub fn feed(&self) -> &ChangeFeed {
        self.backend.feed()
    }

    /// Sees whether it answers.
    ///
    /// # Errors
    /// Why it does not.
    pub async fn ping(&self) -> Result<(), StoreError> {
        // Looking for what is not there takes the way of every look.
        let nobody = Principal::Local.owner();
        self.backend.page(&nobody, "larder-probe:", None, 1).await.map(drop)
    }

    /// The time by which things expire here.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Removes what has expired, and whatever else the backend must do
    /// without being asked, until dropped.
    pub async fn maintain(&self) {
        self.backend.maintain().await;
    }

    /// Stores content under a name, in place of whatever had it.
    ///
    /// # Errors
    /// [`StoreError::InvalidTtl`], [`StoreError::NotText`],
    /// [`StoreError::Full`], [`StoreError::Input`]; nothing is stored then.
    /// [`StoreError::ReadOnly`] where links lie, which [`Store::share`] makes.
    pub async fn create(
        &self,
        owner: &Owner,
        uri: ResourceUri,
        content: Content,
        details: Details,
    ) -> Result<Arc<Entry>, StoreError> {
        if sharing::is_link(&uri) {
            return Err(StoreError::ReadOnly { uri });
        }
        self.put_new(owner, uri, content, details).await
    }

    pub(super) async fn put_new(
        &self,
        owner: &Owner,
        uri: ResourceUri,
        content: Content,
        details: Details,
    ) -> Result<Arc<Entry>, StoreError> {
        let ttl = self.checked(details.ttl.unwrap_or(self.limits.default_ttl))?;
        let name = details.name.unwrap_or_else(|| default_name(&uri));
        let mime_type = details.mime_type.unwrap_or_else(|| content.mime_type().to_owned());
        let placement = Placement::Create {
            name,
            title: details.title,
            description: details.description,
            mime_type,
            ttl,
            session: details.session,
        };
        Ok(self.put(owner, uri, content, placement).await?.entry)
    }

    /// Gives a resource new content; its name, description, media type and,
    /// without a new `ttl`, its expiry stay.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] or [`StoreError::Expired`], and those of
    /// [`Store::create`]; the old content stays then.
    pub async fn update(
        &self,
        owner: &Owner,
        uri: ResourceUri,
        content: Content,
        ttl: Option<Duration>,
    ) -> Result<Arc<Entry>, StoreError> {
        if sharing::is_link(&uri) {
            return Err(StoreError::ReadOnly { uri });
        }
        let ttl = ttl.map(|ttl| self.checked(ttl)).transpose()?;
        // Fail before the content is taken in; the commit checks again.
        self.get(owner, &uri).await?;
        Ok(self.put(owner, uri, content, Placement::Update { ttl }).await?.entry)
    }

    async fn put(
        &self,
        owner: &Owner,
        uri: ResourceUri,
        content: Content,
        placement: Placement,
    ) -> Result<Committed, StoreError> {
        let stored = self.take_in(owner, uri, content, placement).await;
        match &stored {
            Ok(committed) => {
                let bytes = committed.entry.size;
                self.tally.add(bytes);
                metrics::counter!("larder_resources_written_total").increment(1);
                metrics::counter!("larder_stored_bytes_total").increment(bytes);
            }
            Err(_) => metrics::counter!("larder_resources_refused_total").increment(1),
        }
        stored
    }

    async fn take_in(
        &self,
        owner: &Owner,
        uri: ResourceUri,
        content: Content,
        placement: Placement,
    ) -> Result<Committed, StoreError> {
        let (kind, pieces) = content.into_parts();
        let mut writer = BlockWriter::new(kind, self.backend.begin(owner, &uri).await?);
        writer.write_all(pieces).await?;
        let (upload, measured) = writer.finish().await?;
        let draft = Draft {
            uri,
            owner: owner.clone(),
            kind,
            size: measured.size,
            lines: measured.lines,
            sha256: measured.sha256,
            blocks: measured.blocks.into(),
            // From now on it lives, or a slow upload would be born expired.
            now: self.clock.now(),
            revisions: self.limits.revisions.max(1),
            placement,
        };
        upload.commit(draft).await
    }

    /// Removes a resource; says whether there was one. Removing twice is no error.
    pub async fn delete(&self, owner: &Owner, uri: &ResourceUri) -> Result<bool, StoreError> {
        let deleted = self.backend.delete(owner, uri).await?;
        metrics::counter!("larder_resources_deleted_total").increment(deleted.into());
        Ok(deleted)
    }

    /// A living resource and its bytes.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], or [`StoreError::Expired`] for as long as
    /// that is known.
    pub async fn get(&self, owner: &Owner, uri: &ResourceUri) -> Result<Found, StoreError> {
        match self.backend.get(owner, uri).await? {
            Lookup::Found(found) => Ok(found),
            Lookup::Expired(at) => Err(StoreError::Expired { uri: uri.clone(), at }),
            Lookup::Missing => Err(StoreError::NotFound { uri: uri.clone() }),
        }
    }

    /// A revision of a living resource, if it is kept; the present one where
    /// none is named.
    ///
    /// # Errors
    /// Those of [`Store::get`], and [`StoreError::NoRevision`].
    pub async fn revision(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
        revision: Option<u64>,
    ) -> Result<Found, StoreError> {
        let Some(revision) = revision else { return self.get(owner, uri).await };
        let mut kept = self.revisions(owner, uri).await?;
        match kept.iter().position(|found| found.entry.revision == revision) {
            Some(at) => Ok(kept.swap_remove(at)),
            None => Err(StoreError::NoRevision {
                uri: uri.clone(),
                revision,
                kept: kept.iter().map(|found| found.entry.revision).collect(),
            }),
        }
    }

    /// The revisions that are kept of a living resource, oldest first and the
    /// present one last.
    ///
    /// # Errors
    /// Those of [`Store::get`].
    pub async fn revisions(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
    ) -> Result<Vec<Found>, StoreError> {
        let kept = self.backend.revisions(owner, uri).await?;
        if kept.is_empty() {
            // Which says why.
            return Ok(vec![self.get(owner, uri).await?]);
        }
        Ok(kept)
    }

    /// Up to `limit` of the owner's resources whose URI starts with `prefix`,
    /// after `after`, in byte order of the URI.
    pub async fn list(
        &self,
        owner: &Owner,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        let (found, more) = self.list_found(owner, prefix, after, limit).await?;
        Ok(Page { entries: found.into_iter().map(|found| found.entry).collect(), more })
    }

    /// The same with what their content is read by, and whether there is more:
    /// for who reads many, and would look up each once more.
    pub async fn list_found(
        &self,
        owner: &Owner,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<(Vec<Found>, bool), StoreError> {
        let mut found = self.backend.page(owner, prefix, after, limit.saturating_add(1)).await?;
        let more = found.len() > limit;
        found.truncate(limit);
        Ok((found, more))
    }

    /// Removes what was to end with that session. Looks at all that the owner
    /// has, which is why sessions take their resources along only where that
    /// is asked for.
    pub async fn delete_of_session(&self, owner: &Owner, session: &str) -> Result<(), StoreError> {
        let mut after: Option<ResourceUri> = None;
        loop {
            let page = self.list(owner, "", after.as_ref().map(ResourceUri::as_str), 256).await?;
            for entry in &page.entries {
                if entry.session.as_deref() == Some(session) {
                    self.delete(owner, &entry.uri).await?;
                }
            }
            after = page.entries.last().map(|entry| entry.uri.clone());
            if !page.more {
                return Ok(());
            }
        }
    }

    fn checked(&self, ttl: Duration) -> Result<Duration, StoreError> {
        // Time is counted in milliseconds: less is nothing.
        if ttl.as_millis() == 0 {
            return Err(StoreError::InvalidTtl("ttl must be positive".into()));
        }
        let max = self.limits.max_ttl;
        if ttl > max {
            let message = format!("ttl must be at most {} seconds", max.as_secs());
            return Err(StoreError::InvalidTtl(message));
        }
        Ok(ttl)
    }
}

/// The last part of the path, or the whole URI where there is none.
fn default_name(uri: &ResourceUri) -> String {
    let path = uri.as_str().split(['?', '#']).next().unwrap_or_default();
    let last = path.rsplit(['/', ':']).find(|part| !part.is_empty());
    last.unwrap_or(uri.as_str()).to_owned()
}
