//! Restores a resource of another store.

use std::{sync::Arc, time::Duration};

use larder_runtime::clock::Timestamp;

use super::{Content, ContentStream, Details, Entry, Expected, Kind, Store, StoreError, WriteMode};

/// The longest name of an owner, of a session or of an origin, in bytes.
const MAX_NAME_BYTES: usize = 256;

/// The most origins of a resource.
const MAX_ORIGINS: usize = 64;

/// The last revision. A store counts on from the revision that it restores, in Redis with doubles.
const MAX_REVISION: u64 = 1 << 53;

/// By how much the clocks of two stores may differ.
const CLOCK_MARGIN: Duration = Duration::from_secs(300);

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
    /// the store has it, or a later write to its URI. The earlier revisions must have been written
    /// before. The content is checked against the size and the digest of the entry before it
    /// becomes visible. The URI may be that of a link. The rules of [`Store::create`] hold for the
    /// metadata and the expiry.
    ///
    /// # Errors
    /// [`StoreError::InvalidDetails`], [`StoreError::InvalidMetadata`],
    /// [`StoreError::InvalidTtl`], [`StoreError::NotAsAnnounced`], [`StoreError::NotText`],
    /// [`StoreError::Full`], [`StoreError::Input`]; nothing is stored then.
    pub async fn restore(
        &self,
        entry: &Entry,
        pieces: ContentStream,
    ) -> Result<Restored, StoreError> {
        let now = self.now();
        if entry.is_expired(now) {
            return Ok(Restored::Expired);
        }
        self.check_restored(entry, now)?;

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

    /// Checks an entry that comes from outside by the rules for what a caller gives, and by those
    /// that entries of a store satisfy by themselves.
    fn check_restored(&self, entry: &Entry, now: Timestamp) -> Result<(), StoreError> {
        self.check_details(Details {
            name: Some(entry.name.clone()),
            title: entry.title.clone(),
            description: entry.description.clone(),
            mime_type: Some(entry.mime_type.clone()),
            ttl: Some(entry.expires.since(now.saturating_add(CLOCK_MARGIN)))
                .filter(|ttl| !ttl.is_zero()),
            session: None,
        })?;

        let names = [
            ("owner", entry.owner.as_str()),
            ("session", entry.session.as_deref().unwrap_or_default()),
        ];
        let origins = entry.origins.iter().map(|origin| ("origin", &**origin));
        for (member, name) in names.into_iter().chain(origins) {
            if name.len() > MAX_NAME_BYTES {
                return Err(StoreError::InvalidDetails(format!(
                    "{member} has {} bytes; at most {MAX_NAME_BYTES} are allowed.",
                    name.len()
                )));
            }
        }
        if entry.origins.len() > MAX_ORIGINS {
            return Err(StoreError::InvalidDetails(format!(
                "It has {} origins; at most {MAX_ORIGINS} are allowed.",
                entry.origins.len()
            )));
        }
        if !(1..=MAX_REVISION).contains(&entry.revision) {
            let problem = format!("revision must be between 1 and {MAX_REVISION}.");
            return Err(StoreError::InvalidDetails(problem));
        }

        if entry.updated > now.saturating_add(CLOCK_MARGIN) {
            return Err(StoreError::InvalidDetails("updated is in the future.".into()));
        }
        if entry.created > entry.updated {
            return Err(StoreError::InvalidDetails("created is later than updated.".into()));
        }
        Ok(())
    }
}
