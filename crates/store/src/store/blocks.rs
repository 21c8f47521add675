//! Cuts content into blocks while it streams in. Several blocks at once are
//! checked for UTF-8, searched for line feeds and compressed; the hash and the search
//! for records take the blocks in order. Only these few blocks are held in memory.

use std::{collections::VecDeque, str::Utf8Error, sync::Arc};

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use larder_identity::Owner;
use larder_records::RecordIndex;
use larder_runtime::compute::Compute;

use super::{
    Block, ContentStream, Entry, Kind, StoreError, Upload,
    block_cache::NewFilters,
    block_filter::BlockFilter,
    compression::{Compression, StoredBlock},
    hashing::Hashing,
    indexing::Indexing,
};

/// The maximum size of a block before compression. Small enough that a window
/// reads little more than it needs, large enough that the block table stays small.
pub const BLOCK_BYTES: usize = 256 * 1024;

/// How many blocks one upload processes at once, which bounds its share of the CPU.
const MAX_IN_FLIGHT: usize = 3;

/// The length of the longest incomplete UTF-8 sequence.
const MAX_PARTIAL_CHAR: usize = 3;

/// The facts about content that its writer collects.
pub(super) struct ContentStats {
    /// Text or binary; text may have turned out to be binary.
    pub(super) kind: Kind,
    pub(super) size: u64,
    pub(super) lines: u64,
    pub(super) sha256: String,
    pub(super) blocks: Arc<[Block]>,
    pub(super) records: Option<Arc<RecordIndex>>,
    /// The filters of the blocks, if they were made.
    pub(super) filters: Option<NewFilters>,
}

impl ContentStats {
    /// The facts about the content of a stored resource.
    pub(super) fn of(entry: &Entry) -> Self {
        Self {
            kind: entry.kind,
            size: entry.size,
            lines: entry.lines,
            sha256: entry.sha256.clone(),
            blocks: Arc::clone(&entry.blocks),
            records: entry.records.clone(),
            filters: None,
        }
    }
}

/// Takes pieces of any size and appends blocks to an upload.
pub(super) struct BlockWriter {
    /// The owner in whose turns of the compute pool the work runs.
    owner: Owner,
    kind: Kind,
    /// Whether text that is not UTF-8 becomes binary.
    or_binary: bool,
    block_bytes: usize,
    /// How many blocks are processed at once.
    max_in_flight: usize,
    compression: Compression,

    upload: Box<dyn Upload>,
    /// Content that does not fill a block.
    rest: BytesMut,
    /// The bytes that have been cut into blocks.
    offset: u64,

    hash: Hashing,
    records: Indexing,
    filters: Option<NewFilters>,

    /// Blocks that are being processed, in order.
    in_flight: VecDeque<Compute<ProcessedBlock>>,
    /// The table of the blocks that were appended to the upload.
    blocks: Vec<Block>,

    line_feeds: u64,
    ends_with_line_feed: bool,
}

/// A checked and compressed block.
struct ProcessedBlock {
    stored: StoredBlock,
    line_feeds: u64,
    ends_with_line_feed: bool,
    /// The error of content that should be text.
    not_text: Option<Utf8Error>,
    filter: Option<BlockFilter>,
}

impl ProcessedBlock {
    fn new(block: Bytes, kind: Kind, compression: Compression, filters: bool) -> Self {
        let is_text = kind == Kind::Text;
        let not_text = if is_text { std::str::from_utf8(&block).err() } else { None };
        let line_feeds =
            if is_text { memchr::memchr_iter(b'\n', &block).count() as u64 } else { 0 };
        let ends_with_line_feed = is_text && block.last() == Some(&b'\n');

        let filter = filters.then(|| BlockFilter::new(&block)).flatten();
        let stored = compression.apply(block);
        Self { stored, line_feeds, ends_with_line_feed, not_text, filter }
    }
}

impl BlockWriter {
    pub(super) fn new(owner: &Owner, kind: Kind, upload: Box<dyn Upload>) -> Self {
        Self::with_block_size(owner, kind, upload, Compression::WhenSmaller, BLOCK_BYTES)
    }

    /// A writer with another block size and compression.
    pub(super) fn with_block_size(
        owner: &Owner,
        kind: Kind,
        upload: Box<dyn Upload>,
        compression: Compression,
        block_bytes: usize,
    ) -> Self {
        debug_assert!(block_bytes > MAX_PARTIAL_CHAR, "a block can hold any character");

        Self {
            owner: owner.clone(),
            kind,
            or_binary: false,
            block_bytes,
            max_in_flight: MAX_IN_FLIGHT,
            compression,
            upload,
            rest: BytesMut::new(),
            offset: 0,
            hash: Hashing::new(),
            records: Indexing::off(),
            filters: None,
            in_flight: VecDeque::new(),
            blocks: Vec::new(),
            line_feeds: 0,
            ends_with_line_feed: false,
        }
    }

    /// Also makes an index of the records of content of this media type.
    pub(super) fn indexing(self, mime_type: &str) -> Self {
        Self { records: Indexing::new(self.kind, mime_type), ..self }
    }

    /// Also makes filters of text for its first search.
    pub(super) fn filtering(self) -> Self {
        let is_text = self.kind == Kind::Text;
        let filters = is_text.then(|| NewFilters::new(&self.owner)).flatten();
        Self { filters, ..self }
    }

    /// Stores text as bytes if it turns out not to be UTF-8 and `or_binary` is set.
    pub(super) fn or_binary(self, or_binary: bool) -> Self {
        Self { or_binary, ..self }
    }

    /// Processes one block at a time, for content that arrives slowly.
    pub(super) fn one_by_one(self) -> Self {
        Self { max_in_flight: 1, ..self }
    }

    /// Writes the whole stream and its last block. Discards the upload after an error.
    pub(super) async fn write_to_end(
        mut self,
        pieces: ContentStream,
    ) -> Result<(Box<dyn Upload>, ContentStats), StoreError> {
        let written = match self.write_all(pieces).await {
            Ok(()) => self.write_rest().await,
            Err(error) => Err(error),
        };

        match written {
            Ok(stats) => Ok((self.upload, stats)),
            Err(error) => {
                self.upload.discard().await;
                Err(error)
            }
        }
    }

    /// Writes the whole stream. Appends finished blocks while it waits for the next piece.
    pub(super) async fn write_all(&mut self, mut pieces: ContentStream) -> Result<(), StoreError> {
        loop {
            tokio::select! {
                biased;
                () = self.oldest_is_done() => self.append_oldest().await?,
                piece = pieces.next() => match piece {
                    Some(piece) => self.write(piece.map_err(StoreError::Input)?).await?,
                    None => return Ok(()),
                },
            }
        }
    }

    /// Writes the next piece. A piece of a block or more is sliced, not copied.
    pub(super) async fn write(&mut self, mut piece: Bytes) -> Result<(), StoreError> {
        while !piece.is_empty() {
            if self.rest.is_empty() && piece.len() >= self.block_bytes {
                let cut = self.cut(&piece[..self.block_bytes]);
                self.emit(piece.split_to(cut), false).await?;
                continue;
            }

            let room = self.block_bytes - self.rest.len();
            self.rest.extend_from_slice(&piece.split_to(room.min(piece.len())));

            if self.rest.len() == self.block_bytes {
                let cut = self.cut(&self.rest);
                let block = self.rest.split_to(cut).freeze();
                self.emit(block, false).await?;
            }
        }

        Ok(())
    }

    /// Writes the last block and waits until all blocks are appended.
    pub(super) async fn finish(mut self) -> Result<(Box<dyn Upload>, ContentStats), StoreError> {
        let stats = self.write_rest().await?;
        Ok((self.upload, stats))
    }

    /// Writes the content that does not fill a block, and waits for all blocks.
    async fn write_rest(&mut self) -> Result<ContentStats, StoreError> {
        if !self.rest.is_empty() {
            let block = std::mem::take(&mut self.rest).freeze();
            self.emit(block, true).await?;
        }
        while !self.in_flight.is_empty() {
            self.append_oldest().await?;
        }

        let unfinished_line = self.offset > 0 && !self.ends_with_line_feed;
        let lines = match self.kind {
            Kind::Text => self.line_feeds + u64::from(unfinished_line),
            Kind::Binary => 0,
        };

        let hash = std::mem::replace(&mut self.hash, Hashing::new());
        let sha256 = hash.finish(self.owner.as_str()).await?;
        let records = std::mem::replace(&mut self.records, Indexing::off()).finish().await?;
        Ok(ContentStats {
            kind: self.kind,
            size: self.offset,
            lines,
            sha256,
            blocks: std::mem::take(&mut self.blocks).into(),
            records,
            filters: self.filters.take(),
        })
    }

    /// The position at which to cut a full buffer; in text, between characters. Does not find
    /// invalid UTF-8: [`ProcessedBlock::new`] does.
    fn cut(&self, full: &[u8]) -> usize {
        if self.kind == Kind::Binary {
            return full.len();
        }

        let length = |lead: u8| match lead {
            0xC0..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF7 => 4,
            _ => 1,
        };

        let last = (1..=MAX_PARTIAL_CHAR).find(|back| full[full.len() - back] & 0xC0 != 0x80);

        match last {
            Some(back) if length(full[full.len() - back]) > back => full.len() - back,
            _ => full.len(),
        }
    }

    /// Starts to process a block. Appends the oldest block first where too many are
    /// in flight.
    async fn emit(&mut self, block: Bytes, is_last: bool) -> Result<(), StoreError> {
        if self.in_flight.len() == self.max_in_flight {
            self.append_oldest().await?;
        }

        self.offset += block.len() as u64;
        let owner = self.owner.as_str();
        self.hash.add(owner, block.clone()).await?;
        self.records.add(owner, &block, is_last).await?;

        let length = block.len();
        let kind = self.kind;
        let compression = self.compression;
        let filters = self.filters.is_some();
        self.in_flight.push_back(Compute::run(owner, length, move || {
            ProcessedBlock::new(block, kind, compression, filters)
        }));

        Ok(())
    }

    /// Waits until the oldest block in flight is processed; forever if there is none.
    async fn oldest_is_done(&mut self) {
        match self.in_flight.front_mut() {
            Some(oldest) => oldest.wait().await,
            None => std::future::pending().await,
        }
    }

    /// Appends the oldest block in flight to the upload, once it is processed.
    async fn append_oldest(&mut self) -> Result<(), StoreError> {
        let Some(oldest) = self.in_flight.pop_front() else { return Ok(()) };
        let (offset, stored) = self.blocks.last().map_or((0, 0), |b| (b.end(), b.stored_end()));
        let processed = oldest.done().await?;

        if let Some(error) = processed.not_text.filter(|_| self.kind == Kind::Text) {
            if !self.or_binary {
                return Err(StoreError::NotText { offset: offset + error.valid_up_to() as u64 });
            }
            self.turn_binary();
        }

        if let Some((filters, filter)) = self.filters.as_mut().zip(processed.filter) {
            filters.insert(offset, filter);
        }

        let block = processed.stored;
        let stored_len = block.bytes.len() as u64;
        let first_line = self.line_feeds;
        self.blocks.push(Block { offset, len: block.size, first_line, stored, stored_len });

        if self.kind == Kind::Text {
            self.line_feeds += processed.line_feeds;
            self.ends_with_line_feed = processed.ends_with_line_feed;
        }

        self.upload.append(block).await
    }

    /// Continues as binary content, which has neither lines, records nor filters.
    fn turn_binary(&mut self) {
        self.kind = Kind::Binary;
        self.line_feeds = 0;
        self.records = Indexing::off();
        self.filters = None;
        self.blocks.iter_mut().for_each(|block| block.first_line = 0);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use futures_util::{FutureExt, stream};
    use proptest::prelude::*;
    use sha2::{Digest, Sha256};

    use super::*;
    use crate::store::{Content, Details, ResourceUri, StoredResource};
    use larder_identity::Owner;
    use larder_runtime::{clock::Timestamp, hex::hex};

    /// Stores content that is written in `pieces`, in blocks of `block_bytes`.
    pub(in crate::store) fn stored(
        kind: Kind,
        pieces: &[&[u8]],
        block_bytes: usize,
    ) -> Result<StoredResource, StoreError> {
        let pieces: Vec<_> = pieces.iter().map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
        let content = match kind {
            Kind::Text => Content::text_stream(stream::iter(pieces)),
            Kind::Binary => Content::byte_stream(stream::iter(pieces)),
        };

        let uri = ResourceUri::parse("test://blocks")?;
        let owner = Owner::new("local");
        let now = Timestamp::from_millis(0);
        StoredResource::detached_with_block_size(
            uri,
            owner,
            content,
            Details::default(),
            now,
            block_bytes,
        )
        .now_or_never()
        .expect("memory never waits")
    }

    /// Text with characters of every width, and lines of many lengths.
    pub(in crate::store) fn any_text() -> impl Strategy<Value = String> {
        let part =
            prop::sample::select(vec!["a", "bcd", "\n", "\n\n", "\r\n", "é", "€", "🦀", "\0"]);
        prop::collection::vec(part, 0..80).prop_map(|parts| parts.concat())
    }

    /// Cuts bytes into pieces at arbitrary positions.
    fn cut_at(bytes: &[u8], cuts: &[prop::sample::Index]) -> Vec<Vec<u8>> {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        cuts.windows(2).map(|ends| bytes[ends[0]..ends[1]].to_vec()).collect()
    }

    fn digest(bytes: &[u8]) -> String {
        hex(&Sha256::digest(bytes))
    }

    proptest! {
        #[test]
        fn text_in_any_pieces_becomes_whole_blocks(
            text in any_text(),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
            block_bytes in 4usize..40,
        ) {
            let pieces = cut_at(text.as_bytes(), &cuts);
            let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
            let found = stored(Kind::Text, &pieces, block_bytes).expect("it is text");

            let entry = &found.entry;
            prop_assert_eq!(entry.size, text.len() as u64);
            prop_assert_eq!(entry.lines, text.split_inclusive('\n').count() as u64);
            prop_assert_eq!(&entry.sha256, &digest(text.as_bytes()));

            let mut end = 0;
            for block in entry.blocks.iter() {
                prop_assert_eq!(block.offset, end);
                prop_assert!(block.len > 0 && block.len <= block_bytes as u64);
                end = block.end();
                let before = text.get(..usize::try_from(block.offset).expect("small"));
                let feeds = before.map(|before| before.matches('\n').count() as u64);
                prop_assert_eq!(feeds, Some(block.first_line), "blocks begin between characters");
            }

            prop_assert_eq!(end, entry.size);
            let whole = found.bytes().now_or_never().expect("memory never waits");
            prop_assert_eq!(whole.expect("it can be read"), text.into_bytes());
        }

        #[test]
        fn bytes_in_any_pieces_fill_every_block_but_the_last(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
            block_bytes in 4usize..40,
        ) {
            let pieces = cut_at(&bytes, &cuts);
            let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
            let found = stored(Kind::Binary, &pieces, block_bytes).expect("bytes are bytes");

            let lens: Vec<usize> = found.entry.blocks.iter().map(|b| usize::try_from(b.len).expect("small")).collect();
            let expected: Vec<usize> = bytes.chunks(block_bytes).map(<[u8]>::len).collect();
            prop_assert_eq!(lens, expected);

            prop_assert_eq!(found.entry.lines, 0);
            prop_assert_eq!(&found.entry.sha256, &digest(&bytes));
            let whole = found.bytes().now_or_never().expect("memory never waits");
            prop_assert_eq!(whole.expect("it can be read"), bytes);
        }

        #[test]
        fn text_that_is_not_utf8_is_refused_where_it_stops_being_utf8(
            bytes in prop::collection::vec(prop::sample::select(&b"a\n\xc3\xa9\xe2\x82\xac\xf0\x9f\xff"[..]), 0..60),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
            block_bytes in 4usize..40,
        ) {
            let pieces = cut_at(&bytes, &cuts);
            let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
            let refused = match stored(Kind::Text, &pieces, block_bytes) {
                Ok(_) => None,
                Err(StoreError::NotText { offset }) => Some(offset),
                Err(other) => panic!("another error: {other}"),
            };

            let expected = std::str::from_utf8(&bytes).err().map(|e| e.valid_up_to() as u64);
            prop_assert_eq!(refused, expected);
        }
    }
}
