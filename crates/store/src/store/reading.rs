//! Reading content: fetches stored blocks and decompresses them.

use std::{io, ops::Range, sync::Arc};

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt, future::Either, stream};
use larder_identity::Owner;
use larder_runtime::compute::{Compute, Stop};

use super::{Block, Kind, StoreError, StoredResource, block_cache, fetched_block::FetchedBlock};

/// How many blocks of a stream are decompressed at once.
const MAX_DECOMPRESSING: usize = 4;

/// How many fetches of a stream are in flight at once, which hides the latency of
/// the backend.
pub(super) const MAX_FETCHES: usize = 4;

impl StoredResource {
    /// The content as a stream of blocks. Each block of text is valid UTF-8.
    pub fn stream(&self) -> impl Stream<Item = Result<Bytes, StoreError>> + Send + use<> {
        self.stream_blocks(0..self.entry.blocks.len(), false)
    }

    /// A range of bytes of the content as a stream of pieces. The range must be within the
    /// content. Reads only the blocks that overlap the range. Content that is read as a whole for
    /// the second time is kept in the block cache.
    pub fn stream_range(
        &self,
        range: Range<u64>,
    ) -> impl Stream<Item = Result<Bytes, StoreError>> + Send + use<> {
        let blocks = &self.entry.blocks;
        let first = blocks.partition_point(|block| block.end() <= range.start);
        let end = blocks.partition_point(|block| block.offset < range.end).max(first);

        let found = self.clone();
        let keeps = range == (0..self.entry.size) && block_cache::keeps_download(&self.entry);
        self.stream_blocks(first..end, keeps).enumerate().map(move |(index, content)| {
            let content = content?;
            let block = &found.entry.blocks[first + index];
            let from = found.index(range.start.saturating_sub(block.offset))?;
            let to = found.index(range.end.min(block.end()) - block.offset)?;
            Ok(content.slice(from..to))
        })
    }

    /// The content of the blocks, in order. Adds it to the block cache if `keeps`.
    fn stream_blocks(
        &self,
        blocks: Range<usize>,
        keeps: bool,
    ) -> impl Stream<Item = Result<Bytes, StoreError>> + Send + use<> {
        let owner = self.entry.owner.clone();
        self.stream_by(self.batches(blocks), move |block| {
            if !block.is_compressed {
                return Compute::Done(Ok(Ok(block.bytes)));
            }
            Compute::run(owner.as_str(), block.size, move || {
                if keeps { block.content_to_keep() } else { block.content() }
            })
        })
    }

    /// The results of `work` on these blocks, in order, each with the index of its block. Keeps
    /// the blocks in the block cache; with `keeps_filters` also the filters that
    /// [`blocks_to_search`](Self::blocks_to_search) needs, for text that is likely to be searched
    /// again.
    ///
    /// `work` may take long: it runs in the turns of `caller` on the thread that decompressed the
    /// block, for several blocks at once, and must return early, with any result, once `Stop` is
    /// set.
    pub fn map_blocks<T, W>(
        &self,
        caller: &Owner,
        blocks: Vec<Range<usize>>,
        keeps_filters: bool,
        work: W,
    ) -> impl Stream<Item = Result<(usize, T), StoreError>> + Send + use<T, W>
    where
        T: Send + 'static,
        W: Fn(Bytes, &Stop) -> T + Clone + Send + 'static,
    {
        let caller = caller.clone();
        let found = self.clone();
        let batches = blocks.clone().into_iter().flat_map(move |range| found.batches(range));

        let results = self.stream_by(batches, move |block| {
            let work = work.clone();
            Compute::queue(caller.as_str(), move |stop| {
                let content = block.content_to_keep()?;
                if keeps_filters && block.entry.kind == Kind::Text {
                    block_cache::insert_filter(&block.entry, block.offset, &content);
                }
                Ok(work(content, stop))
            })
        });

        let indexes = stream::iter(blocks.into_iter().flatten());
        indexes.zip(results).map(|(index, result)| result.map(|result| (index, result)))
    }

    /// Fetches the batches of blocks, and gives the results of `work` on each block in order.
    fn stream_by<T, B, W>(
        &self,
        batches: B,
        work: W,
    ) -> impl Stream<Item = Result<T, StoreError>> + Send + use<T, B, W>
    where
        T: Send + 'static,
        B: Iterator<Item = Range<usize>> + Send + 'static,
        W: Fn(FetchedBlock) -> Compute<io::Result<T>> + Send + 'static,
    {
        let found = self.clone();
        let fetched = stream::iter(batches).map(move |blocks| {
            let found = found.clone();
            async move { found.fetch(blocks).await }
        });

        let blocks = fetched.buffered(MAX_FETCHES).flat_map(|batch| match batch {
            Ok(batch) => Either::Left(stream::iter(batch.into_iter().map(Ok))),
            Err(error) => Either::Right(stream::iter([Err(error)])),
        });

        let found = self.clone();
        let results = blocks.map(move |block| {
            let found = found.clone();
            let running = block.map(&work);
            async move { running?.done().await?.map_err(|error| found.corrupt(error)) }
        });
        results.buffered(MAX_DECOMPRESSING)
    }

    /// Groups blocks into batches that are fetched together. The first block is fetched
    /// alone, for latency.
    pub(super) fn batches(
        &self,
        range: Range<usize>,
    ) -> impl Iterator<Item = Range<usize>> + Send + use<> {
        let entry = Arc::clone(&self.entry);
        let max = self.blob.read_ahead();

        let mut next = range.start;
        std::iter::from_fn(move || {
            let blocks = &entry.blocks[..range.end];
            let first = blocks.get(next)?;

            let fits =
                |block: &&Block| next > range.start && block.stored_end() - first.stored <= max;
            let more = blocks[next + 1..].iter().take_while(fits).count();

            let batch = next..next + 1 + more;
            next = batch.end;
            Some(batch)
        })
    }

    /// Fetches a batch of blocks, from the block cache if it has all of them.
    async fn fetch(&self, blocks: Range<usize>) -> Result<Vec<FetchedBlock>, StoreError> {
        let blocks = &self.entry.blocks[blocks];
        let (Some(first), Some(last)) = (blocks.first(), blocks.last()) else {
            return Ok(Vec::new());
        };

        let cached = |block: &Block| Some(self.fetched(block, self.cached(block)?, false));
        if let Some(cached) = blocks.iter().map(cached).collect() {
            return cached;
        }

        let bytes = self.blob.range(first.stored..last.stored_end()).await?;
        let fetched = blocks.iter().map(|block| {
            let from = block.stored - first.stored;
            let to = block.stored_end() - first.stored;
            let bytes = bytes.slice(self.index(from)?..self.index(to)?);
            self.fetched(block, bytes, block.is_compressed())
        });
        fetched.collect()
    }

    /// The content of a compressed block, if it is in the block cache.
    fn cached(&self, block: &Block) -> Option<Bytes> {
        block.is_compressed().then(|| block_cache::get(&self.entry, block)).flatten()
    }

    /// The whole content in one buffer; without a copy if it is one block.
    ///
    /// # Errors
    /// The content cannot be read.
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

    /// The first `head` and the last `tail` bytes of the content, at most, each
    /// from one block. Both are the whole content if it has at most `head` bytes.
    ///
    /// # Errors
    /// The content cannot be read.
    pub async fn head_and_tail(&self, head: u64, tail: u64) -> Result<(Bytes, Bytes), StoreError> {
        let entry = &self.entry;
        let blocks = &self.entry.blocks;
        let (Some(first), Some(last)) = (blocks.first(), blocks.last()) else {
            return Ok((Bytes::new(), Bytes::new()));
        };

        let start = self.part(first, 0..first.end().min(head)).await?;
        if start.len() as u64 == entry.size {
            return Ok((start.clone(), start));
        }

        let from = last.offset.max(entry.size.saturating_sub(tail));
        Ok((start, self.part(last, from..entry.size).await?))
    }

    /// The content of a block.
    pub(super) async fn block(&self, block: &Block) -> Result<Bytes, StoreError> {
        self.part(block, block.offset..block.end()).await
    }

    /// A range of the content that lies within one block. Reads the whole block if
    /// it is compressed, otherwise just the range.
    pub(super) async fn part(&self, block: &Block, range: Range<u64>) -> Result<Bytes, StoreError> {
        let from = range.start - block.offset;
        let to = range.end - block.offset;
        if !block.is_compressed() {
            return self.blob.range(block.stored + from..block.stored + to).await;
        }

        let content = match self.cached(block) {
            Some(content) => content,
            None => self.decompress(*block).await?,
        };
        Ok(content.slice(self.index(from)?..self.index(to)?))
    }

    /// Fetches and decompresses a block, and adds its content to the block cache.
    async fn decompress(&self, block: Block) -> Result<Bytes, StoreError> {
        let bytes = self.blob.range(block.stored..block.stored_end()).await?;
        let fetched = self.fetched(&block, bytes, true)?;

        let owner = self.entry.owner.as_str();
        let work = Compute::run(owner, fetched.size, move || fetched.content_to_keep());
        work.done().await?.map_err(|error| self.corrupt(error))
    }

    /// A block with its fetched or cached bytes.
    fn fetched(
        &self,
        block: &Block,
        bytes: Bytes,
        is_compressed: bool,
    ) -> Result<FetchedBlock, StoreError> {
        Ok(FetchedBlock {
            bytes,
            is_compressed,
            size: self.index(block.len)?,
            offset: block.offset,
            entry: Arc::clone(&self.entry),
        })
    }

    /// An offset as an index into memory.
    pub(super) fn index(&self, offset: u64) -> Result<usize, StoreError> {
        usize::try_from(offset).map_err(|error| self.corrupt(error))
    }

    fn corrupt(&self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> StoreError {
        StoreError::Corrupt { uri: self.entry.uri.clone(), source: source.into() }
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use async_trait::async_trait;
    use futures_util::{FutureExt, TryStreamExt};
    use proptest::{prelude::*, sample::Index};

    use super::*;
    use crate::{
        store::blocks::tests::{any_text, stored},
        store::compression::Compression,
        store::{Blob, Entry},
    };

    /// A blob that records the requested ranges.
    struct RemoteBlob {
        content: Bytes,
        read_ahead: u64,
        requested: Mutex<Vec<Range<u64>>>,
    }

    #[async_trait]
    impl Blob for RemoteBlob {
        async fn range(&self, range: Range<u64>) -> Result<Bytes, StoreError> {
            self.requested.lock().push(range.clone());
            let index = |offset| usize::try_from(offset).expect("it is small");
            Ok(self.content.slice(index(range.start)..index(range.end)))
        }

        fn read_ahead(&self) -> u64 {
            self.read_ahead
        }
    }

    proptest! {
        #[test]
        fn reading_ahead_fetches_several_blocks_at_once_and_gives_the_same_blocks(
            text in any_text(),
            block_bytes in 4_usize..40,
            read_ahead in 0_u64..100,
        ) {
            let local = stored(Kind::Text, &[text.as_bytes()], block_bytes).expect("it is text");
            let blob = Arc::new(RemoteBlob {
                content: text.clone().into(),
                read_ahead,
                requested: Mutex::default(),
            });
            let remote = StoredResource { blob: Arc::<RemoteBlob>::clone(&blob), ..local.clone() };

            let all = |found: &StoredResource| {
                let blocks = found.stream().try_collect::<Vec<_>>();
                blocks.now_or_never().expect("memory never waits").expect("it can be read")
            };
            prop_assert_eq!(all(&remote), all(&local));

            let requested = blob.requested.lock();
            let blocks = &remote.entry.blocks;
            let mut end = 0;

            for (index, range) in requested.iter().enumerate() {
                prop_assert_eq!(range.start, end, "each byte once, in order");
                end = range.end;
                let within = |b: &&Block| range.start <= b.offset && b.end() <= range.end;
                let count = blocks.iter().filter(within).count();
                prop_assert!(count == 1 || index > 0 && range.end - range.start <= read_ahead);

                // The next block would have exceeded the limit.
                let next = blocks.iter().find(|block| block.offset == end);
                prop_assert!(index == 0 || next.is_none_or(|b| b.end() - range.start > read_ahead));
            }

            prop_assert_eq!(end, remote.entry.size);
        }
    }

    proptest! {
        #[test]
        fn a_range_fetches_the_blocks_that_it_touches_and_no_others(
            text in any_text(),
            block_bytes in 4_usize..40,
            (from, to) in any::<(Index, Index)>(),
        ) {
            let local = stored(Kind::Text, &[text.as_bytes()], block_bytes).expect("it is text");
            let blob = Arc::new(RemoteBlob {
                content: text.clone().into(),
                read_ahead: 0,
                requested: Mutex::default(),
            });
            let remote = StoredResource { blob: Arc::<RemoteBlob>::clone(&blob), ..local };
            prop_assume!(!text.is_empty());
            let from = from.index(text.len());
            let to = to.index(text.len());
            let range = from.min(to)..from.max(to) + 1;
            let bytes = range.start as u64..range.end as u64;

            let pieces = remote.stream_range(bytes.clone()).try_collect::<Vec<_>>();
            let pieces = pieces.now_or_never().expect("it never waits").expect("it can be read");
            prop_assert_eq!(&pieces.concat()[..], &text.as_bytes()[range.clone()]);

            let touched: Vec<_> = remote
                .entry
                .blocks
                .iter()
                .filter(|block| block.offset < bytes.end && bytes.start < block.end())
                .map(|block| block.offset..block.end())
                .collect();
            prop_assert_eq!(&*blob.requested.lock(), &touched);
        }
    }

    /// A resource with the content of `local` in compressed blocks.
    fn compressed(local: &StoredResource, content: &Bytes) -> (StoredResource, Arc<RemoteBlob>) {
        let mut stored = Vec::new();
        let blocks = local.entry.blocks.iter().map(|block| {
            let index = |offset| usize::try_from(offset).expect("it is small");
            let plain = content.slice(index(block.offset)..index(block.end()));
            let bytes = Compression::WhenSmaller.apply(plain).bytes;
            let at = stored.len() as u64;
            stored.extend_from_slice(&bytes);
            Block { stored: at, stored_len: bytes.len() as u64, ..*block }
        });

        let entry = Entry { blocks: blocks.collect(), ..Entry::clone(&local.entry) };
        let blob = Arc::new(RemoteBlob {
            content: stored.into(),
            read_ahead: 0,
            requested: Mutex::default(),
        });

        let remote = StoredResource { entry: entry.into(), blob: Arc::<RemoteBlob>::clone(&blob) };
        (remote, blob)
    }

    #[test]
    fn blocks_that_were_searched_or_read_in_part_are_not_fetched_again() {
        let text = Bytes::from("a line of a log which is searched again\n".repeat(400));
        let local = stored(Kind::Text, &[&text], 4_000).expect("it is text");
        let (found, blob) = compressed(&local, &text);
        let blocks = found.entry.blocks.len();

        let read = async || {
            let blocks = found.stream().map_ok(|block| block.len()).try_collect::<Vec<_>>();
            blocks.await.expect("it can be read").len()
        };
        let search = async || {
            let lens = found.map_blocks(
                &found.entry.owner,
                std::iter::once(0..blocks).collect(),
                false,
                |block, _| block.len(),
            );
            let lens =
                lens.map_ok(|(_, len)| len).try_collect::<Vec<_>>().await.expect("it can be read");
            assert_eq!(lens.iter().sum::<usize>(), text.len());
        };

        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.expect("it starts").block_on(async {
            assert_eq!((read().await, read().await), (blocks, blocks));
            assert_eq!(blob.requested.lock().len(), 2 * blocks, "a download is not kept");

            let part = found.part(&found.entry.blocks[1], 4_000..4_010).await;
            assert_eq!(part.expect("it can be read"), text.slice(4_000..4_010));

            search().await;
            assert_eq!(blob.requested.lock().len(), 3 * blocks);

            search().await;
            read().await;

            let other = Entry { owner: Owner::new("other"), ..Entry::clone(&found.entry) };
            assert_eq!(blob.requested.lock().len(), 3 * blocks);
            assert!(block_cache::get(&other, &other.blocks[0]).is_none());
        });
    }

    #[test]
    fn content_that_was_downloaded_twice_is_not_fetched_again() {
        let text = Bytes::from("a line of a log which many download\n".repeat(400));
        let local = stored(Kind::Text, &[&text], 4_000).expect("it is text");
        let (found, blob) = compressed(&local, &text);
        let blocks = found.entry.blocks.len();

        let download = async |range: Range<u64>| {
            let pieces = found.stream_range(range).try_collect::<Vec<_>>();
            pieces.await.expect("it can be read").concat()
        };

        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.expect("it starts").block_on(async {
            for fetches in [1, 2, 2] {
                assert_eq!(download(0..found.entry.size).await, text);
                assert_eq!(blob.requested.lock().len(), fetches * blocks);
            }

            assert_eq!(download(3_999..4_001).await, text[3_999..4_001]);
            assert_eq!(blob.requested.lock().len(), 2 * blocks);
        });
    }
}
