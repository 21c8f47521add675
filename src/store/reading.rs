//! What is kept, turned back into content.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt, stream};

use super::{Block, Found, StoreError, packing};

/// How many blocks are fetched and unpacked at once where all are wanted: so
/// neither the way to the backend nor one core is what readers wait for.
const READ_AHEAD: usize = 4;

impl Found {
    /// The content as a stream of blocks; in text, each is UTF-8 by itself.
    pub fn stream(&self) -> impl Stream<Item = Result<Bytes, StoreError>> + Send + use<> {
        let found = self.clone();
        let block = move |at: usize| {
            let found = found.clone();
            async move { found.block(&found.entry.blocks[at]).await }
        };
        stream::iter(0..self.entry.blocks.len()).map(block).buffered(READ_AHEAD)
    }

    /// The whole content in one piece; without a copy where it is one block.
    pub async fn bytes(&self) -> Result<Bytes, StoreError> {
        if let [block] = &self.entry.blocks[..] {
            return self.block(block).await;
        }
        let mut whole = BytesMut::with_capacity(usize::try_from(self.entry.size).unwrap_or(0));
        let mut blocks = std::pin::pin!(self.stream());
        while let Some(block) = blocks.next().await {
            whole.extend_from_slice(&block?);
        }
        Ok(whole.freeze())
    }

    /// How it begins and how it ends, in at most so many bytes each and at the
    /// cost of a block each; both are all of it where it is no longer than `head`.
    ///
    /// # Errors
    /// When they cannot be read.
    pub async fn ends(&self, head: u64, tail: u64) -> Result<(Bytes, Bytes), StoreError> {
        let (entry, blocks) = (&self.entry, &self.entry.blocks);
        let (Some(first), Some(last)) = (blocks.first(), blocks.last()) else {
            return Ok((Bytes::new(), Bytes::new()));
        };
        let begin = self.part(first, 0..first.end().min(head)).await?;
        if begin.len() as u64 == entry.size {
            return Ok((begin.clone(), begin));
        }
        let from = last.offset.max(entry.size.saturating_sub(tail));
        Ok((begin, self.part(last, from..entry.size).await?))
    }

    /// A block's content.
    pub(super) async fn block(&self, block: &Block) -> Result<Bytes, StoreError> {
        self.part(block, block.offset..block.end()).await
    }

    /// The content in a range that lies within a block. Of one that is
    /// compressed all is read, of others just that.
    pub(super) async fn part(&self, block: &Block, range: Range<u64>) -> Result<Bytes, StoreError> {
        let (from, to) = (range.start - block.offset, range.end - block.offset);
        if !block.is_compressed() {
            return self.blob.range(block.stored + from..block.stored + to).await;
        }
        let packed = self.blob.range(block.stored..block.stored_end()).await?;
        let corrupt = |source: Box<dyn std::error::Error + Send + Sync>| StoreError::Corrupt {
            uri: self.entry.uri.clone(),
            source,
        };
        let index = |at: u64| usize::try_from(at).map_err(|error| corrupt(error.into()));
        let content = packing::unpack(packed, index(block.len)?).await;
        Ok(content.map_err(|error| corrupt(error.into()))?.slice(index(from)?..index(to)?))
    }
}
