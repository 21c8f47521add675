//! [`Rewrite`]: new content of a resource, made from its stored content.

use std::{io, sync::Arc};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use larder_identity::Owner;

use super::{
    Content, Details, Entry, Expected, Kind, ResourceUri, Store, StoreError, StoredResource,
    sharing,
};

/// How often a rewrite or a move starts again because another write came first.
pub(super) const MAX_ATTEMPTS: usize = 32;

/// New content of a resource: the content of one of its stored revisions, by default the current
/// revision, followed by further bytes.
#[derive(Debug, Clone, Default)]
pub struct Rewrite {
    /// The number of the revision whose content and media type are used; the current one
    /// if `None`.
    pub revision: Option<u64>,
    /// The bytes that follow the content; in text, UTF-8.
    pub appended: Bytes,
}

impl Rewrite {
    /// The new content, checked for the size and the digest that result from the source.
    pub(super) fn content(&self, source: &StoredResource) -> Content {
        let entry = &source.entry;
        let appended = self.appended.clone();
        let expected = Expected {
            size: Some(entry.size + appended.len() as u64),
            sha256: appended.is_empty().then(|| entry.sha256.clone()),
        };

        let pieces = source.stream().map_err(io::Error::other).chain(stream::iter([Ok(appended)]));
        let content = match entry.kind {
            Kind::Text => Content::text_stream(pieces),
            Kind::Binary => Content::byte_stream(pieces),
        };
        content.expecting(expected)
    }
}

impl Store {
    /// Writes a resource from its own content, in flat memory, as a new revision. Metadata in
    /// `details` replaces the metadata of the resource; the rest stays, and so do the session and,
    /// without a new `ttl`, the expiry. No concurrent write is lost.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::Expired`] or [`StoreError::NoRevision`];
    /// the errors of [`Store::create`]; and [`StoreError::Contended`].
    pub async fn rewrite(
        &self,
        owner: &Owner,
        uri: ResourceUri,
        rewrite: Rewrite,
        details: Details,
    ) -> Result<Arc<Entry>, StoreError> {
        if sharing::is_link(&uri) {
            return Err(StoreError::ReadOnly { uri });
        }

        // The new content has the origins of the stored content.
        let store = self.tracing(self.origins.clone().unwrap_or_default());

        for _ in 0..MAX_ATTEMPTS {
            let current = store.get(owner, &uri).await?;
            let mut details = details.clone();
            let source = if rewrite.revision.is_some() {
                let source = store.revision(owner, &uri, rewrite.revision).await?;
                details.mime_type.get_or_insert_with(|| source.entry.mime_type.clone());
                source
            } else {
                current.clone()
            };

            let content = rewrite.content(&source);
            if let Some(entry) = store.update_unchanged(&current.entry, content, details).await? {
                return Ok(entry);
            }
        }

        Err(StoreError::Contended { uri })
    }
}
