//! Restores a resource of another store.

use std::sync::Arc;

use super::{Content, ContentStream, Entry, Expected, Kind, Store, StoreError, WriteMode};

/// The outcome of restoring a revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restored {
    /// The revision was written.
    Written,
    /// The store already has it.
    Present,
    /// The store has a later write to the URI, which it keeps.
    Later,
    /// The revision has expired.
    Expired,
}

impl Store {
    /// Writes a revision with the number, the times, the metadata and the owner of `entry`, unless
    /// the store has this revision, or a later write to its URI. Restore earlier revisions first.
    /// The content is checked against the size and the digest of the entry before it becomes
    /// visible. The URI may be the URI of a link.
    ///
    /// # Errors
    /// [`StoreError::NotAsAnnounced`], [`StoreError::NotText`], [`StoreError::Full`],
    /// [`StoreError::Input`]; nothing is then stored.
    pub async fn restore(
        &self,
        entry: &Entry,
        pieces: ContentStream,
    ) -> Result<Restored, StoreError> {
        if entry.is_expired(self.now()) {
            return Ok(Restored::Expired);
        }

        let stored = self.backend.revisions(&entry.owner, &entry.uri).await?;
        let is_restored = |stored: &Entry| {
            (stored.revision, stored.updated, &stored.sha256)
                == (entry.revision, entry.updated, &entry.sha256)
        };
        if stored.iter().any(|stored| is_restored(&stored.entry)) {
            return Ok(Restored::Present);
        }

        if let Some(current) = stored.last().map(|current| &current.entry) {
            if (current.updated, current.revision) > (entry.updated, entry.revision) {
                return Ok(Restored::Later);
            }
            if current.revision >= entry.revision {
                // The resource was deleted and created again where `entry` comes from.
                self.delete_unchanged(current).await?;
            }
        }

        let content = match entry.kind {
            Kind::Text => Content::text_stream(pieces),
            Kind::Binary => Content::byte_stream(pieces),
        };
        let content = content
            .expecting(Expected { size: Some(entry.size), sha256: Some(entry.sha256.clone()) });
        let mode = WriteMode::Restore(Arc::new(entry.clone()));

        match self.write(&entry.owner, entry.uri.clone(), content, mode, None, None).await {
            Ok(_) => Ok(Restored::Written),
            // Another write came first.
            Err(StoreError::NotFound { .. }) => Ok(Restored::Later),
            Err(error) => Err(error),
        }
    }
}
