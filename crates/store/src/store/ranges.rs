//! [`Ranges`]: windows of content outside the store whose ranges can be read, such as a file.
//! One pass over each version of the content makes its block table, with a few blocks in memory;
//! a window then reads its range.

use std::{
    fmt,
    sync::{Arc, LazyLock},
};

use async_trait::async_trait;
use larder_identity::Owner;
use quick_cache::{Weighter, sync::Cache};

use super::{
    Blob, Block, Committed, Content, Draft, StoreError, StoredBlock, Upload,
    blocks::{BLOCK_BYTES, BlockWriter, ContentStats},
    compression::Compression,
};

/// The maximum number of blocks in all remembered tables: 25 GB of content in 4 MB.
const MAX_BLOCKS: u64 = 100_000;

/// The expected number of remembered tables.
const ABOUT_TABLES: usize = 1_000;

static TABLES: LazyLock<Cache<Arc<str>, Arc<ContentStats>, ByBlocks>> =
    LazyLock::new(|| Cache::with_weighter(ABOUT_TABLES, MAX_BLOCKS, ByBlocks));

/// Access to ranges of content.
#[derive(Clone)]
pub struct Ranges {
    /// Identifies the content and its version: contents with equal values are equal.
    pub version: String,
    /// Reads the content itself, not compressed.
    pub blob: Arc<dyn Blob>,
}

impl fmt::Debug for Ranges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ranges").field("version", &self.version).finish_non_exhaustive()
    }
}

/// Weighs a table by its blocks, and by its record index in units of a block.
#[derive(Clone)]
struct ByBlocks;

impl Weighter<Arc<str>, Arc<ContentStats>> for ByBlocks {
    fn weight(&self, _: &Arc<str>, table: &Arc<ContentStats>) -> u64 {
        let records = table.records.as_ref().map_or(0, |index| index.memory_bytes());
        table.blocks.len() as u64 + records / size_of::<Block>() as u64 + 1
    }
}

impl Ranges {
    /// The block table of the content. Calls at the same time share one pass.
    pub(super) async fn table(
        &self,
        owner: &Owner,
        content: Content,
        mime_type: &str,
    ) -> Result<Arc<ContentStats>, StoreError> {
        let (kind, pieces) = content.into_parts();
        // The key has the media type, because the records depend on it.
        let key: Arc<str> = format!("{kind:?} {mime_type} {}", self.version).into();

        let index = async {
            let mut writer = BlockWriter::with_block_size(
                owner,
                kind,
                Box::new(DiscardingUpload),
                Compression::Never,
                BLOCK_BYTES,
            )
            .indexing(mime_type);

            writer.write_all(pieces).await?;
            let (_, stats) = writer.finish().await?;
            Ok(Arc::new(stats))
        };

        TABLES.get_or_insert_async(&key, index).await
    }
}

/// An upload that drops the blocks, because the content stays where it is.
struct DiscardingUpload;

#[async_trait]
impl Upload for DiscardingUpload {
    async fn append(&mut self, _: StoredBlock) -> Result<(), StoreError> {
        Ok(())
    }

    async fn commit(self: Box<Self>, draft: Draft) -> Result<Committed, StoreError> {
        Err(StoreError::NotFound { uri: draft.uri })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::{
        ops::Range,
        sync::atomic::{AtomicU64, Ordering},
    };

    use bytes::Bytes;
    use futures_util::stream;

    use super::*;
    use crate::store::{Details, ResourceUri, StoredResource};
    use larder_runtime::clock::Timestamp;

    /// Content that counts the bytes that are read from it.
    #[derive(Clone)]
    struct Counted(Bytes, Arc<AtomicU64>);

    #[async_trait]
    impl Blob for Counted {
        async fn range(&self, range: Range<u64>) -> Result<Bytes, StoreError> {
            self.1.fetch_add(range.end - range.start, Ordering::Relaxed);
            let offset = |offset| usize::try_from(offset).unwrap();
            Ok(self.0.slice(offset(range.start)..offset(range.end)))
        }
    }

    impl Counted {
        /// The number of bytes read since the last call.
        fn read(&self) -> u64 {
            self.1.swap(0, Ordering::Relaxed)
        }

        async fn find(&self, version: &str) -> StoredResource {
            let counted = self.clone();
            let chunks: Vec<_> = self.0.chunks(64 << 10).map(Bytes::copy_from_slice).collect();
            let pieces = stream::iter(chunks.into_iter().map(move |piece| {
                counted.1.fetch_add(piece.len() as u64, Ordering::Relaxed);
                Ok(piece)
            }));

            let ranges = Ranges { version: version.into(), blob: Arc::new(self.clone()) };
            let content = Content::text_stream(pieces).with_ranges(ranges);
            let uri = ResourceUri::parse("a:b").unwrap();
            let owner = Owner::new("local");
            let now = Timestamp::from_millis(0);
            StoredResource::detached(uri, owner, content, Details::default(), now).await.unwrap()
        }
    }

    #[tokio::test]
    async fn a_window_reads_its_range_and_not_the_whole() {
        let lines: Vec<_> = (0..200_000).map(|n| format!("line {n:06}\n")).collect();
        let text = lines.concat();
        let size = text.len() as u64;
        let counted = Counted(text.into(), Arc::default());

        let found = counted.find("a file, first version").await;
        assert_eq!((found.entry.size, found.entry.lines), (size, 200_000));
        assert!(counted.read() >= size, "one pass makes the table");

        for _ in 0..3 {
            let found = counted.find("a file, first version").await;
            assert_eq!(counted.read(), 0, "the table is known");

            let window = found.lines(150_000, 2, 10_000).await.unwrap();
            assert_eq!(window.bytes, b"line 150000\nline 150001\n");
            assert!(counted.read() <= 2 * BLOCK_BYTES as u64);

            let window = found.bytes_from(12 * 100_000, 24).await.unwrap();
            assert_eq!(window.bytes, b"line 100000\nline 100001\n");
            assert!(counted.read() < 100);
        }

        let changed = Counted(Bytes::from("other\n"), Arc::default());
        let found = changed.find("a file, second version").await;
        assert_eq!(found.lines(0, 9, 100).await.unwrap().bytes, b"other\n");
    }
}
