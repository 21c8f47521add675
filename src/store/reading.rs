//! What is kept, turned back into content.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt, stream};

use super::{Block, Found, StoreError, packing};
use crate::aside::Aside;

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

    /// The content block by block, in its order, after some work on each that
    /// takes its time: where a block is unpacked, while it is at hand there.
    /// Several blocks are at work at once.
    pub(crate) fn stream_through<T, W>(
        &self,
        work: W,
    ) -> impl Stream<Item = Result<T, StoreError>> + Send + use<T, W>
    where
        T: Send + 'static,
        W: Fn(Bytes) -> T + Clone + Send + 'static,
    {
        let found = self.clone();
        let block = move |at: usize| {
            let (found, work) = (found.clone(), work.clone());
            async move { found.block_through(&found.entry.blocks[at], work).await }
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
        let content = self.block_through(block, |content| content).await?;
        Ok(content.slice(self.index(from)?..self.index(to)?))
    }

    async fn block_through<T: Send + 'static>(
        &self,
        block: &Block,
        work: impl FnOnce(Bytes) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let kept = self.blob.range(block.stored..block.stored_end()).await?;
        let (size, compressed) = (self.index(block.len)?, block.is_compressed());
        let worked = Aside::run(size, move || {
            let content = if compressed { packing::unpack(&kept, size)? } else { kept };
            Ok::<_, std::io::Error>(work(content))
        });
        worked.done().await.map_err(|error| self.corrupt(error))
    }

    fn index(&self, at: u64) -> Result<usize, StoreError> {
        usize::try_from(at).map_err(|error| self.corrupt(error))
    }

    fn corrupt(&self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> StoreError {
        StoreError::Corrupt { uri: self.entry.uri.clone(), source: source.into() }
    }
}
