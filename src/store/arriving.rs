//! [`Arriving`] and [`Arrived`]: content that is uploaded while it arrives, and becomes a resource
//! when its URI and metadata are known to be needed.

#![cfg_attr(not(feature = "upstream"), allow(dead_code, reason = "only upstreams send such texts"))]

use std::{fmt, sync::Arc};

use bytes::Bytes;

use super::{
    Details, Entry, Kind, ResourceUri, Store, StoreError, Upload,
    blocks::{BlockWriter, ContentStats},
    sharing,
};
use crate::{auth::Owner, hex::hex};

/// An upload whose content is still arriving. Dropping it discards it.
pub(crate) struct Arriving {
    owner: Owner,
    uri: ResourceUri,
    writer: BlockWriter,
}

/// An upload whose content is complete, before its commit. Dropping it discards it.
pub(crate) struct Arrived {
    owner: Owner,
    uri: ResourceUri,
    upload: Box<dyn Upload>,
    stats: ContentStats,
}

impl Store {
    /// Begins the upload of content of this kind. Buffers one block, and another one while that is compressed.
    ///
    /// # Errors
    /// Those of [`Store::create`].
    pub(crate) async fn begin(
        &self,
        owner: &Owner,
        uri: ResourceUri,
        kind: Kind,
    ) -> Result<Arriving, StoreError> {
        if sharing::is_link(&uri) {
            return Err(StoreError::ReadOnly { uri });
        }
        let upload = self.backend.begin(owner, &uri, None).await?;
        let writer = BlockWriter::new(owner, kind, upload).one_by_one();
        let writer = writer.indexing(kind.default_mime_type());
        Ok(Arriving { owner: owner.clone(), uri, writer })
    }

    /// Commits the content as a resource. Its time to live begins now.
    ///
    /// # Errors
    /// Those of [`Store::create`]; nothing is stored then.
    pub(crate) async fn create_arrived(
        &self,
        arrived: Arrived,
        details: Details,
    ) -> Result<Arc<Entry>, StoreError> {
        let Arrived { owner, uri, upload, stats } = arrived;
        let mode = self.creation(&uri, details, stats.kind.default_mime_type())?;
        let committed = self.commit(&owner, uri, upload, stats, mode).await;
        Ok(self.counted(committed)?.entry)
    }
}

impl Arriving {
    /// Writes the next piece, which may end within a character.
    ///
    /// # Errors
    /// Those of [`Store::create`]. Nothing is stored then.
    pub(crate) async fn write(&mut self, piece: Bytes) -> Result<(), StoreError> {
        self.writer.write(piece).await
    }

    /// Writes the last block.
    ///
    /// # Errors
    /// Those of [`Store::create`]. Nothing is stored then.
    pub(crate) async fn finish(self) -> Result<Arrived, StoreError> {
        let Self { owner, uri, writer } = self;
        let (upload, stats) = writer.finish().await?;
        Ok(Arrived { owner, uri, upload, stats })
    }
}

impl Arrived {
    /// The number of lines.
    pub(crate) fn lines(&self) -> u64 {
        self.stats.lines
    }

    /// Whether this is the SHA-256 of the content.
    pub(crate) fn has_digest(&self, sha256: &[u8]) -> bool {
        self.stats.sha256 == hex(sha256)
    }
}

impl fmt::Debug for Arrived {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arrived").field("uri", &self.uri).finish_non_exhaustive()
    }
}
