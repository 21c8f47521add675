//! The writing methods of [`Store`]: they create, update and delete resources.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt, TryStreamExt, stream};
use larder_identity::Owner;

use super::{
    Committed, Content, Details, Draft, Entry, Reserves, ResourceUri, Store, StoreError,
    StoredResource, Upload, Version, WriteMode,
    blocks::{BlockWriter, ContentStats},
    details::default_name,
    sharing,
};

/// The result of [`Store::delete_prefix`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deleted {
    /// The number of deleted resources.
    pub resources: u64,
    /// Whether resources beyond the limit are left.
    pub more: bool,
}

impl Store {
    /// Creates a resource, or replaces the resource of the same URI.
    ///
    /// # Errors
    /// [`StoreError::InvalidTtl`], [`StoreError::InvalidDetails`],
    /// [`StoreError::InvalidMetadata`], [`StoreError::NotText`], [`StoreError::Full`],
    /// [`StoreError::Input`]; nothing is then stored. [`StoreError::ReadOnly`] for
    /// the URI of a link, which only [`Store::share`] creates.
    pub async fn create(
        &self,
        owner: &Owner,
        uri: ResourceUri,
        content: Content,
        details: Details,
    ) -> Result<Arc<Entry>, StoreError> {
        self.check_target(&uri)?;
        self.create_any(owner, uri, content, details).await
    }

    /// Creates a resource under any URI, links included.
    pub(super) async fn create_any(
        &self,
        owner: &Owner,
        uri: ResourceUri,
        content: Content,
        details: Details,
    ) -> Result<Arc<Entry>, StoreError> {
        let mode = self.creation(&uri, details, content.mime_type())?;
        Ok(self.write(owner, uri, content, mode, None, None).await?.entry)
    }

    /// Creates a resource whose content a [reservation](super::Backend::reserve) counts.
    pub(super) async fn create_reserved(
        &self,
        owner: &Owner,
        uri: ResourceUri,
        content: Content,
        details: Details,
        reservation: &str,
    ) -> Result<Arc<Entry>, StoreError> {
        self.check_target(&uri)?;
        let mode = self.creation(&uri, details, content.mime_type())?;
        Ok(self.write(owner, uri, content, mode, None, Some(reservation)).await?.entry)
    }

    /// The mode that creates a resource with these details. `mime_type` is the type of its content.
    ///
    /// # Errors
    /// The errors of [`Store::check_details`].
    pub(super) fn creation(
        &self,
        uri: &ResourceUri,
        details: Details,
        mime_type: &str,
    ) -> Result<WriteMode, StoreError> {
        let details = details.checked()?;
        let ttl = self.check_ttl(details.ttl.unwrap_or(self.limits.default_ttl))?;

        Ok(WriteMode::Create {
            name: details.name.unwrap_or_else(|| default_name(uri)),
            title: details.title,
            description: details.description,
            mime_type: details.mime_type.unwrap_or_else(|| mime_type.to_owned()),
            ttl,
            session: details.session,
        })
    }

    /// Replaces the content of a resource, and the metadata that `details` sets. The rest stays,
    /// and so do the session and, without a new `ttl`, the expiry.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] or [`StoreError::Expired`], and the errors of
    /// [`Store::create`]; the old content then stays.
    pub async fn update(
        &self,
        owner: &Owner,
        uri: ResourceUri,
        content: Content,
        details: Details,
    ) -> Result<Arc<Entry>, StoreError> {
        self.check_target(&uri)?;
        self.update_version(owner, uri, content, details, None).await
    }

    /// Updates a resource, unless it was written since `entry` was read. `None` if it was
    /// written, deleted, or has expired.
    ///
    /// # Errors
    /// The errors of [`Store::create`].
    pub async fn update_unchanged(
        &self,
        entry: &Entry,
        content: Content,
        details: Details,
    ) -> Result<Option<Arc<Entry>>, StoreError> {
        let uri = entry.uri.clone();

        let updated = self.update_version(&entry.owner, uri, content, details, Some(entry.into()));
        match updated.await {
            Ok(entry) => Ok(Some(entry)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Updates a resource, with `replaced` only if it has that version.
    ///
    /// # Errors
    /// The errors of [`Store::update`].
    pub(super) async fn update_version(
        &self,
        owner: &Owner,
        uri: ResourceUri,
        content: Content,
        details: Details,
        replaced: Option<Version>,
    ) -> Result<Arc<Entry>, StoreError> {
        let details = details.checked()?;
        let ttl = details.ttl.map(|ttl| self.check_ttl(ttl)).transpose()?;

        // Fails before the upload if the resource is missing; the commit checks again.
        let known = self.get(owner, &uri).await?.entry.mime_type.clone();

        let Details { name, title, description, mime_type, .. } = details;
        let mode = WriteMode::Update { name, title, description, mime_type, ttl, replaced };
        Ok(self.write(owner, uri, content, mode, Some(known), None).await?.entry)
    }

    /// Uploads and commits content. `known` is the media type of the resource that is updated.
    pub(super) async fn write(
        &self,
        owner: &Owner,
        uri: ResourceUri,
        content: Content,
        mode: WriteMode,
        known: Option<String>,
        reservation: Option<&str>,
    ) -> Result<Committed, StoreError> {
        let written = self.upload(owner, uri, content, mode, known, reservation).await;
        self.counted(written)
    }

    /// Counts a write that was committed or refused, for the metrics.
    pub(super) fn counted(
        &self,
        written: Result<Committed, StoreError>,
    ) -> Result<Committed, StoreError> {
        match &written {
            Ok(committed) => {
                let bytes = committed.entry.size;
                self.stored_bytes.add(bytes);
                metrics::counter!("larder_resources_written_total").increment(1);
                metrics::counter!("larder_stored_bytes_total").increment(bytes);
            }
            Err(_) => metrics::counter!("larder_resources_refused_total").increment(1),
        }

        written
    }

    /// Uploads content and commits it as a draft of `mode`.
    async fn upload(
        &self,
        owner: &Owner,
        uri: ResourceUri,
        content: Content,
        mut mode: WriteMode,
        known: Option<String>,
        reservation: Option<&str>,
    ) -> Result<Committed, StoreError> {
        let given = match &mode {
            WriteMode::Create { mime_type, .. } => Some(mime_type),
            WriteMode::Update { mime_type, .. } => mime_type.as_ref(),
            WriteMode::Restore(entry) => Some(&entry.mime_type),
        };
        let mime_type = given.cloned().or(known).unwrap_or_default();

        let expected = content.expected().clone();
        let or_binary = content.may_turn_binary();
        let reserves = content.reserves();
        let source = content.source(&mime_type);
        let (kind, pieces) = content.into_parts();
        let mut upload = self.backend.begin(owner, &uri, reservation).await?;
        match (expected.size, reserves) {
            (Some(size), Reserves::Announced) => upload.reserve(size).await?,
            (Some(size), Reserves::Arrived) => self.backend.quota().check_upload(size)?,
            (None, _) => {}
        }

        if let Some(source) = source {
            let is_copied;
            (upload, is_copied) = copied(upload, &source).await?;
            if is_copied {
                let stats = ContentStats::of(&source.entry);
                return self.commit(owner, uri, upload, stats, mode).await;
            }
        }

        let mut writer = BlockWriter::new(owner, kind, upload).or_binary(or_binary);
        writer = writer.indexing(&mime_type);
        // Imports build no search filters: they are rarely searched soon.
        if !matches!(mode, WriteMode::Restore(_)) {
            writer = writer.filtering();
        }

        let (upload, stats) = writer.write_to_end(pieces).await?;
        if let Err(error) = expected.check(stats.size, &stats.sha256) {
            upload.discard().await;
            return Err(error);
        }

        if let WriteMode::Create { mime_type, .. } = &mut mode
            && stats.kind != kind
            && mime_type == kind.default_mime_type()
        {
            stats.kind.default_mime_type().clone_into(mime_type);
        }

        self.commit(owner, uri, upload, stats, mode).await
    }

    /// Commits an upload, which makes the resource visible.
    pub(super) async fn commit(
        &self,
        owner: &Owner,
        uri: ResourceUri,
        upload: Box<dyn Upload>,
        stats: ContentStats,
        mode: WriteMode,
    ) -> Result<Committed, StoreError> {
        let draft = Draft {
            uri,
            owner: owner.clone(),
            kind: stats.kind,
            size: stats.size,
            lines: stats.lines,
            sha256: stats.sha256,
            blocks: stats.blocks,
            records: stats.records,
            origins: self.origins_of_writes(),
            // The time to live begins after the upload, because a slow upload would otherwise
            // expire at once.
            now: self.clock.now(),
            revisions: self.limits.revisions.max(1),
            mode,
        };

        let Committed { entry, change } = upload.commit(draft).await?;

        if let Some(filters) = stats.filters {
            filters.keep(&entry.sha256);
        }

        Ok(Committed { entry: entry.made_visible(), change })
    }

    /// Deletes a resource. Returns whether it existed; deleting twice is no error.
    ///
    /// # Errors
    /// [`StoreError`], if the backend cannot be reached.
    pub async fn delete(&self, owner: &Owner, uri: &ResourceUri) -> Result<bool, StoreError> {
        self.delete_version(owner, uri, None).await
    }

    /// Deletes the owner's resources whose URIs begin with `prefix`, at most `limit` of them, and
    /// several at a time. Resources that are written meanwhile may stay.
    ///
    /// # Errors
    /// [`StoreError`], if the backend cannot be reached; some resources may then be deleted.
    pub async fn delete_prefix(
        &self,
        owner: &Owner,
        prefix: &str,
        limit: usize,
    ) -> Result<Deleted, StoreError> {
        self.delete_page(owner, prefix, None, limit).await.map(|(deleted, _)| deleted)
    }

    /// Deletes as [`delete_prefix`](Self::delete_prefix) does, continuing after `after`. Also
    /// returns the last URI.
    pub(super) async fn delete_page(
        &self,
        owner: &Owner,
        prefix: &str,
        after: Option<&ResourceUri>,
        limit: usize,
    ) -> Result<(Deleted, Option<ResourceUri>), StoreError> {
        const AT_ONCE: usize = 8;

        let page = self.list(owner, prefix, after.map(ResourceUri::as_str), limit).await?;
        let last = page.entries.last().map(|entry| entry.uri.clone());

        let deletions = stream::iter(page.entries).map(|entry| {
            let store = self.clone();
            let owner = owner.clone();
            async move { store.delete(&owner, &entry.uri).await }
        });
        let deleted = deletions
            .buffer_unordered(AT_ONCE)
            .try_fold(0, async |sum, deleted| Ok(sum + u64::from(deleted)));

        Ok((Deleted { resources: deleted.await?, more: page.more }, last))
    }

    /// Deletes a resource unless it was written since `entry` was read. Returns whether
    /// it was deleted.
    ///
    /// # Errors
    /// [`StoreError`], if the backend cannot be reached.
    pub async fn delete_unchanged(&self, entry: &Entry) -> Result<bool, StoreError> {
        self.delete_version(&entry.owner, &entry.uri, Some(entry.into())).await
    }

    async fn delete_version(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
        version: Option<Version>,
    ) -> Result<bool, StoreError> {
        let deleted = self.backend.delete(owner, uri, version).await?;
        metrics::counter!("larder_resources_deleted_total").increment(deleted.into());
        Ok(deleted)
    }

    /// Deletes the resources of a session that ends. Lists all resources of the
    /// owner, so it is called only where the server is configured to.
    ///
    /// # Errors
    /// [`StoreError`], if the backend cannot be reached.
    pub async fn delete_session_resources(
        &self,
        owner: &Owner,
        session: &str,
    ) -> Result<(), StoreError> {
        const PAGE: usize = 256;

        let mut after: Option<ResourceUri> = None;
        loop {
            let page = self.list(owner, "", after.as_ref().map(ResourceUri::as_str), PAGE).await?;
            for entry in &page.entries {
                if entry.session.as_deref() == Some(session) {
                    // A resource that was written since the listing may belong to another session.
                    self.delete_unchanged(entry).await?;
                }
            }

            after = page.entries.last().map(|entry| entry.uri.clone());
            if !page.more {
                return Ok(());
            }
        }
    }

    /// Checks that callers may store under a URI, before there is content.
    ///
    /// # Errors
    /// [`StoreError::ReadOnly`] for the URI of a link, which only [`Store::share`] creates.
    pub fn check_target(&self, uri: &ResourceUri) -> Result<(), StoreError> {
        if sharing::is_link(uri) { Err(StoreError::ReadOnly { uri: uri.clone() }) } else { Ok(()) }
    }

    /// Checks what a caller gives to a resource, before there is content.
    ///
    /// # Errors
    /// [`StoreError::InvalidDetails`], [`StoreError::InvalidMetadata`] or
    /// [`StoreError::InvalidTtl`].
    pub fn check_details(&self, details: Details) -> Result<Details, StoreError> {
        let details = details.checked()?;
        details.ttl.map(|ttl| self.check_ttl(ttl)).transpose()?;
        Ok(details)
    }

    fn check_ttl(&self, ttl: Duration) -> Result<Duration, StoreError> {
        // Timestamps have a resolution of one millisecond.
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

/// The upload, and whether it has taken the content of a stored resource. Discards the upload after an
/// error.
async fn copied(
    mut upload: Box<dyn Upload>,
    source: &StoredResource,
) -> Result<(Box<dyn Upload>, bool), StoreError> {
    match upload.copy(source).await {
        Ok(is_copied) => Ok((upload, is_copied)),
        Err(error) => {
            upload.discard().await;
            Err(error)
        }
    }
}
