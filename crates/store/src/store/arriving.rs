//! [`Arriving`] and [`Arrived`]: content that is uploaded while it arrives. It becomes a resource
//! once its URI and metadata are known to be needed.

use std::{fmt, io, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::StreamExt;
use larder_identity::Owner;
use larder_runtime::hex::hex;
use tokio::runtime::Handle;

use super::{
    Content, Details, Entry, Kind, ResourceUri, Store, StoreError, Upload,
    blocks::{BlockWriter, ContentStats},
    partial::hidden,
    sharing,
};

/// How long content in transit lives if this process ends before it is read.
const TRANSIT_TTL: Duration = Duration::from_hours(1);

/// An upload whose content is still arriving. Dropping it discards it.
pub struct Arriving {
    owner: Owner,
    uri: ResourceUri,
    writer: BlockWriter,
}

/// An upload whose content is complete, before its commit. Dropping it discards it.
pub struct Arrived {
    owner: Owner,
    uri: ResourceUri,
    upload: Box<dyn Upload>,
    stats: ContentStats,
}

impl Store {
    /// Begins the upload of content of this kind. Buffers one block, and another block while the
    /// first is compressed.
    ///
    /// # Errors
    /// The errors of [`Store::create`].
    pub async fn begin(
        &self,
        owner: &Owner,
        uri: ResourceUri,
        kind: Kind,
    ) -> Result<Arriving, StoreError> {
        if sharing::is_link(&uri) {
            return Err(StoreError::ReadOnly { uri });
        }

        let upload = self.backend.begin(owner, &uri, None).await?;

        let writer = BlockWriter::new(owner, kind, upload)
            .one_by_one()
            .indexing(kind.default_mime_type())
            .filtering();
        Ok(Arriving { owner: owner.clone(), uri, writer })
    }

    /// Commits the content as a resource. Its time to live begins now.
    ///
    /// # Errors
    /// The errors of [`Store::create`]; nothing is then stored.
    pub async fn create_arrived(
        &self,
        arrived: Arrived,
        details: Details,
    ) -> Result<Arc<Entry>, StoreError> {
        let Arrived { owner, uri, upload, stats } = arrived;
        let mode = self.creation(&uri, details, stats.kind.default_mime_type())?;
        let committed = self.commit(&owner, uri, upload, stats, mode).await;
        Ok(self.counted(committed)?.entry)
    }

    /// Begins the upload of content in transit: it is stored only until it has been read once.
    /// The hidden owner of parts of uploads owns it, so nobody lists it.
    ///
    /// # Errors
    /// The errors of [`Store::create`].
    pub async fn begin_transit(
        &self,
        owner: &Owner,
        uri: ResourceUri,
        kind: Kind,
    ) -> Result<Arriving, StoreError> {
        self.begin(&hidden(owner), uri, kind).await
    }

    /// The content in transit, which is removed when the returned value is dropped.
    ///
    /// # Errors
    /// The errors of [`Store::create`]; nothing is then stored.
    pub async fn in_transit(&self, arrived: Arrived) -> Result<Content, StoreError> {
        let Arrived { owner, uri, upload, stats } = arrived;

        let ttl = Some(TRANSIT_TTL.min(self.limits.max_ttl));
        let details = Details { ttl, ..Details::default() };
        let mode = self.creation(&uri, details, stats.kind.default_mime_type())?;

        let entry = self.commit(&owner, uri.clone(), upload, stats, mode).await?.entry;

        let kind = entry.kind;
        let removal = TransitRemoval { store: self.clone(), entry };
        let pieces = self.get(&owner, &uri).await?.stream().map(move |piece| {
            // The closure owns the removal, so the content lives as long as the stream.
            let _ = &removal;
            piece.map_err(io::Error::other)
        });

        Ok(match kind {
            Kind::Text => Content::text_stream(pieces),
            Kind::Binary => Content::byte_stream(pieces),
        })
    }
}

/// Removes content in transit when it is dropped.
struct TransitRemoval {
    store: Store,
    entry: Arc<Entry>,
}

impl Drop for TransitRemoval {
    fn drop(&mut self) {
        // Without a runtime, the content expires later.
        let Ok(runtime) = Handle::try_current() else { return };

        let store = self.store.clone();
        let entry = Arc::clone(&self.entry);
        runtime.spawn(async move {
            if let Err(error) = store.delete_unchanged(&entry).await {
                tracing::debug!(%error, "cannot remove content in transit; it will expire");
            }
        });
    }
}

impl Arriving {
    /// Writes the next piece, which may end within a character.
    ///
    /// # Errors
    /// The errors of [`Store::create`]. Nothing is then stored.
    pub async fn write(&mut self, piece: Bytes) -> Result<(), StoreError> {
        self.writer.write(piece).await
    }

    /// Writes the last block.
    ///
    /// # Errors
    /// The errors of [`Store::create`]. Nothing is then stored.
    pub async fn finish(self) -> Result<Arrived, StoreError> {
        let Self { owner, uri, writer } = self;
        let (upload, stats) = writer.finish().await?;
        Ok(Arrived { owner, uri, upload, stats })
    }
}

impl Arrived {
    /// The number of lines.
    pub fn lines(&self) -> u64 {
        self.stats.lines
    }

    /// Whether `sha256` is the SHA-256 of the content.
    pub fn has_digest(&self, sha256: &[u8]) -> bool {
        self.stats.sha256 == hex(sha256)
    }
}

impl fmt::Debug for Arrived {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arrived").field("uri", &self.uri).finish_non_exhaustive()
    }
}
