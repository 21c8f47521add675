//! Copies a stored resource under another URI, and moves it there.

use std::{sync::Arc, time::Duration};

use super::{
    Details, Entry, ResourceUri, Rewrite, Store, StoreError, StoredResource, details::default_name,
    rewrite::MAX_ATTEMPTS, sharing,
};
use crate::auth::Owner;

/// Stores count in milliseconds.
const MIN_TTL: Duration = Duration::from_millis(1);

impl Store {
    /// Stores the content and the metadata of a resource under a URI of `owner`, in flat memory:
    /// with the metadata that `details` has in place of its own. Without a `ttl`, the copy lives as
    /// long as any new resource. A URI that is in use gets a new revision.
    ///
    /// # Errors
    /// Those of [`Store::create`], and those of reading the content; nothing is stored then.
    pub async fn copy(
        &self,
        source: &StoredResource,
        owner: &Owner,
        uri: ResourceUri,
        details: Details,
    ) -> Result<Arc<Entry>, StoreError> {
        // What is written comes from where the copied content comes from.
        let store = self.tracing(self.origins.clone().unwrap_or_default());
        store.add_origins(source.entry.origins.iter().cloned());
        let content = Rewrite::default().content(source);
        store.create(owner, uri, content, copied_details(&source.entry, details)).await
    }

    /// Moves the current revision of a resource to another URI of its owner. It keeps its expiry,
    /// without a new `ttl`, and its metadata, as a [copy](Self::copy). The earlier revisions are
    /// deleted with the old URI, once the new one is visible, so nothing is lost if this is
    /// dropped between both.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] or [`StoreError::Expired`] for the old URI,
    /// [`StoreError::ReadOnly`] for that of a link, those of [`Store::copy`], and
    /// [`StoreError::Contended`]. The resource is under the old URI then, unless another call has
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
        for _ in 0..MAX_ATTEMPTS {
            let source = self.get(owner, uri).await?;
            if uri == to {
                return Ok(source.entry);
            }
            let rest = source.entry.expires.since(self.now());
            let rest = rest.clamp(MIN_TTL, self.limits.max_ttl.max(MIN_TTL));
            let session = details.session.clone().or_else(|| source.entry.session.clone());
            let details = Details { ttl: details.ttl.or(Some(rest)), session, ..details.clone() };
            let moved = self.copy(&source, owner, to.clone(), details).await?;
            if self.delete_unchanged(&source.entry).await? {
                return Ok(moved);
            }
            // It was written or deleted meanwhile: the copy is not its current content. What the
            // copy replaced stays an earlier revision.
            if moved.revision == 1 {
                self.delete_unchanged(&moved).await?;
            }
        }
        Err(StoreError::Contended { uri: uri.clone() })
    }
}

fn copied_details(source: &Entry, details: Details) -> Details {
    // A default name is that of the URI; what the server defines has all of its URI.
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
