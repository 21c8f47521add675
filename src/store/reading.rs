//! What is kept, turned back into content.

use std::{io, ops::Range, sync::Arc};

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt, future::Either, stream};

use super::{Block, Found, StoreError, packing};
use crate::compute::Compute;

/// How many blocks are unpacked at once where all are wanted.
const UNPACKED_AHEAD: usize = 4;

/// How many times something is fetched at once: so the way to the backend is
/// not what readers wait for.
const FETCHED_AHEAD: usize = 4;

impl Found {
    /// The content as a stream of blocks; in text, each is UTF-8 by itself.
    pub fn stream(&self) -> impl Stream<Item = Result<Bytes, StoreError>> + Send + use<> {
        self.stream_by(|kept| match kept {
            plain @ Kept { compressed: false, .. } => Compute::Done(Ok(plain.bytes)),
            packed => Compute::run(packed.size, move || packed.content()),
        })
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
        self.stream_by(move |kept| {
            let work = work.clone();
            Compute::run(kept.size, move || kept.content().map(work))
        })
    }

    fn stream_by<T, W>(
        &self,
        work: W,
    ) -> impl Stream<Item = Result<T, StoreError>> + Send + use<T, W>
    where
        T: Send + 'static,
        W: Fn(Kept) -> Compute<io::Result<T>> + Send + 'static,
    {
        let found = self.clone();
        let fetched = stream::iter(self.batches()).map(move |blocks| {
            let found = found.clone();
            async move { found.fetch(blocks).await }
        });
        let blocks = fetched.buffered(FETCHED_AHEAD).flat_map(|batch| match batch {
            Ok(batch) => Either::Left(stream::iter(batch.into_iter().map(Ok))),
            Err(error) => Either::Right(stream::iter([Err(error)])),
        });
        let found = self.clone();
        let worked = blocks.map(move |kept| {
            let (found, working) = (found.clone(), kept.map(&work));
            async move { working?.done().await.map_err(|error| found.corrupt(error)) }
        });
        worked.buffered(UNPACKED_AHEAD)
    }

    /// Which blocks are fetched together. The first one comes by itself, or
    /// whoever waits for it would wait for the next ones, too.
    fn batches(&self) -> impl Iterator<Item = Range<usize>> + Send + use<> {
        let (entry, most) = (Arc::clone(&self.entry), self.blob.read_ahead());
        let mut next = 0;
        std::iter::from_fn(move || {
            let blocks = &entry.blocks;
            let first = blocks.get(next)?;
            let fits = |block: &&Block| next > 0 && block.stored_end() - first.stored <= most;
            let more = blocks[next + 1..].iter().take_while(fits).count();
            let batch = next..next + 1 + more;
            next = batch.end;
            Some(batch)
        })
    }

    async fn fetch(&self, blocks: Range<usize>) -> Result<Vec<Kept>, StoreError> {
        let blocks = &self.entry.blocks[blocks];
        let (Some(first), Some(last)) = (blocks.first(), blocks.last()) else {
            return Ok(Vec::new());
        };
        let bytes = self.blob.range(first.stored..last.stored_end()).await?;
        let kept = blocks.iter().map(|block| {
            let (from, to) = (block.stored - first.stored, block.stored_end() - first.stored);
            Ok(Kept {
                bytes: bytes.slice(self.index(from)?..self.index(to)?),
                size: self.index(block.len)?,
                compressed: block.is_compressed(),
            })
        });
        kept.collect()
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
        let kept = Kept {
            bytes: self.blob.range(block.stored..block.stored_end()).await?,
            size: self.index(block.len)?,
            compressed: true,
        };
        let unpacked = Compute::run(kept.size, move || kept.content()).done().await;
        let content = unpacked.map_err(|error| self.corrupt(error))?;
        Ok(content.slice(self.index(from)?..self.index(to)?))
    }

    fn index(&self, at: u64) -> Result<usize, StoreError> {
        usize::try_from(at).map_err(|error| self.corrupt(error))
    }

    fn corrupt(&self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> StoreError {
        StoreError::Corrupt { uri: self.entry.uri.clone(), source: source.into() }
    }
}

/// A block as it is kept.
struct Kept {
    bytes: Bytes,
    /// Of its content.
    size: usize,
    compressed: bool,
}

impl Kept {
    fn content(self) -> io::Result<Bytes> {
        if self.compressed { packing::unpack(&self.bytes, self.size) } else { Ok(self.bytes) }
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use async_trait::async_trait;
    use futures_util::{FutureExt, TryStreamExt};
    use proptest::prelude::*;

    use super::*;
    use crate::store::{
        Blob, Kind,
        blocks::tests::{any_text, stored},
    };

    /// Content in one piece, as far away as it says, and what was asked of it.
    struct Away {
        whole: Bytes,
        read_ahead: u64,
        asked: Mutex<Vec<Range<u64>>>,
    }

    #[async_trait]
    impl Blob for Away {
        async fn range(&self, range: Range<u64>) -> Result<Bytes, StoreError> {
            self.asked.lock().push(range.clone());
            let at = |at| usize::try_from(at).expect("small");
            Ok(self.whole.slice(at(range.start)..at(range.end)))
        }

        fn read_ahead(&self) -> u64 {
            self.read_ahead
        }
    }

    proptest! {
        #[test]
        fn what_is_far_is_fetched_in_few_steps_and_gives_the_same_blocks(
            text in any_text(),
            block_bytes in 4_usize..40,
            read_ahead in 0_u64..100,
        ) {
            let near = stored(Kind::Text, &[text.as_bytes()], block_bytes).expect("it is text");
            let away = Arc::new(Away {
                whole: text.clone().into(),
                read_ahead,
                asked: Mutex::default(),
            });
            let far = Found { blob: Arc::<Away>::clone(&away), ..near.clone() };
            let all = |found: &Found| {
                let blocks = found.stream().try_collect::<Vec<_>>();
                blocks.now_or_never().expect("nobody waits").expect("it is there")
            };
            prop_assert_eq!(all(&far), all(&near));
            let asked = away.asked.lock();
            let blocks = &far.entry.blocks;
            let mut end = 0;
            for (at, range) in asked.iter().enumerate() {
                prop_assert_eq!(range.start, end, "each byte once, in their order");
                end = range.end;
                let within = |b: &&Block| range.start <= b.offset && b.end() <= range.end;
                let many = blocks.iter().filter(within).count();
                prop_assert!(many == 1 || at > 0 && range.end - range.start <= read_ahead);
                // Another block would have been too much.
                let next = blocks.iter().find(|block| block.offset == end);
                prop_assert!(at == 0 || next.is_none_or(|b| b.end() - range.start > read_ahead));
            }
            prop_assert_eq!(end, far.entry.size);
        }
    }
}
