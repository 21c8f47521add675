//! Copies a stored resource under another URI, and moves it there.

use std::{sync::Arc, time::Duration};

use larder_identity::Owner;

use super::{
    Details, Entry, ResourceUri, Rewrite, Store, StoreError, StoredResource, Version,
    details::default_name,
    rewrite::{Failures, MAX_ATTEMPTS, read_error},
    sharing,
};

/// Stores count in milliseconds.
const MIN_TTL: Duration = Duration::from_millis(1);

impl Store {
    /// Stores the content and the metadata of a resource under a URI of `owner`, in flat memory.
    /// Metadata in `details` replaces the metadata of the resource. Without a `ttl`, the copy
    /// lives as long as any new resource. A URI that is in use gets a new revision.
    ///
    /// # Errors
    /// The errors of [`Store::create`], and of reading the content; nothing is then stored.
    pub async fn copy(
        &self,
        source: &StoredResource,
        owner: &Owner,
        uri: ResourceUri,
        details: Details,
    ) -> Result<Arc<Entry>, StoreError> {
        // The copy has the origins of the copied content.
        let store = self.tracing(self.origins.clone().unwrap_or_default());
        store.add_origins(source.entry.origins.iter().cloned());

        let details = copied_details(&source.entry, details);
        let content = Rewrite::default().content(source).await?;
        let copied = store.create(owner, uri.clone(), content, details.clone()).await;

        // The backend can no longer take over the content, but may still be able to read it.
        let missing = |error: &StoreError| error.is_not_found();
        if !copied.as_ref().is_err_and(missing) {
            return copied.map_err(read_error);
        }
        let content = Rewrite::default().content(source).await?.into_read();
        store.create(owner, uri, content, details).await.map_err(read_error)
    }

    /// Moves the current revision of a resource to another URI of its owner. The resource keeps
    /// its expiry, without a new `ttl`, and its metadata, as a [copy](Self::copy) does. The earlier
    /// revisions are deleted with the old URI once the new URI is visible, so nothing is lost if
    /// this call is dropped in between.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] or [`StoreError::Expired`] for the old URI,
    /// [`StoreError::ReadOnly`] for the URI of a link, the errors of [`Store::copy`], and
    /// [`StoreError::Contended`]. The resource is then under the old URI, unless another call has
    /// moved or deleted it meanwhile.
    pub async fn rename(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
        to: &ResourceUri,
        details: Details,
    ) -> Result<Arc<Entry>, StoreError> {
        if sharing::is_link(uri) {
            return Err(StoreError::ReadOnly { uri: uri.clone() });
        }

        let mut failures = Failures::default();
        for _ in 0..MAX_ATTEMPTS {
            let source = self.get(owner, uri).await?;
            if uri == to {
                return Ok(source.entry);
            }

            let remaining = source
                .entry
                .expires
                .since(self.now())
                .clamp(MIN_TTL, self.limits.max_ttl.max(MIN_TTL));
            let session = details.session.clone().or_else(|| source.entry.session.clone());
            let ttl = details.ttl.or(Some(remaining));
            let details = Details { ttl, session, ..details.clone() };

            let moved = match self.copy(&source, owner, to.clone(), details).await {
                // Another call has written or deleted the source, unless its content is lost.
                Err(error) if error.is_not_found() => {
                    failures.add(Version::from(&*source.entry), error)?;
                    continue;
                }
                moved => moved?,
            };
            if self.delete_unchanged(&source.entry).await? {
                return Ok(moved);
            }

            // The source was written or deleted meanwhile, so the copy is outdated. A resource
            // that the copy replaced stays as an earlier revision.
            if moved.revision == 1 {
                self.delete_unchanged(&moved).await?;
            }
        }

        Err(StoreError::Contended { uri: uri.clone() })
    }
}

/// The metadata of a copy: `details`, completed with the metadata of the source.
fn copied_details(source: &Entry, details: Details) -> Details {
    // A default name comes from the URI; a resource that the server defines is named by all of
    // its URI.
    let defaults = [&*default_name(&source.uri), source.uri.as_str()];
    let has_own_name = !defaults.contains(&&*source.name);

    Details {
        name: details.name.or_else(|| has_own_name.then(|| source.name.clone())),
        title: details.title.or_else(|| source.title.clone()),
        description: details.description.or_else(|| source.description.clone()),
        mime_type: details.mime_type.or_else(|| Some(source.mime_type.clone())),
        ..details
    }
}
