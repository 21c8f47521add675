//! [`FetchedBlock`]: a stored block in memory, before it is decompressed.

use std::{io, sync::Arc};

use bytes::Bytes;

use super::{Entry, block_cache, compression};

/// A block whose bytes are in memory.
pub(super) struct FetchedBlock {
    pub(super) bytes: Bytes,
    pub(super) is_compressed: bool,
    /// The size of the block's content.
    pub(super) size: usize,
    /// The offset of the block's content.
    pub(super) offset: u64,
    pub(super) entry: Arc<Entry>,
}

impl FetchedBlock {
    /// The content, decompressed.
    pub(super) fn content(&self) -> io::Result<Bytes> {
        if !self.is_compressed {
            return Ok(self.bytes.clone());
        }
        compression::decompress(&self.bytes, self.size)
    }

    /// The content, which is added to the block cache if it was compressed.
    pub(super) fn content_to_keep(&self) -> io::Result<Bytes> {
        let content = self.content()?;

        if self.is_compressed {
            block_cache::insert(&self.entry, self.offset, &content);
        }
        Ok(content)
    }
}
