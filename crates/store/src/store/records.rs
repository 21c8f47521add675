//! Windows of records, one record on each line. The record index of the content tells in which
//! blocks they are; content without an index is scanned.

use std::{ops::Range, sync::Arc};

use bytes::Bytes;
use futures_util::StreamExt;
use larder_identity::Owner;
use larder_records::{
    Container, Fault, Indexer, Layout, Pointer, Record, RecordIndex, Scanner, compact_record,
    preview::HEAD_BYTES,
};
use larder_runtime::compute::{self, Compute};

use super::{BLOCK_BYTES, Kind, StoreError, StoredResource, indexing};

/// The maximum size of a record in the content, in bytes. A longer record does not fit into a
/// window, even if much of it is white space.
const MAX_RECORD_BYTES: usize = 1 << 20;

/// How many bytes are scanned between two checks of whether the window is full.
const SLICE_BYTES: usize = 16 << 10;

/// Some records of a content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordWindow {
    /// The header row of a table, if there is one and it fits.
    pub header: Option<Bytes>,
    /// The records, each with a line feed after it. JSON is on one line each; rows
    /// of a table are unchanged.
    pub text: Vec<u8>,
    /// The numbers of the records, from 0.
    pub records: Range<u64>,
    /// The offset of the first record, if it does not fit.
    pub too_long: Option<u64>,
}

/// The reason why the records of a content cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordsError {
    /// The content is text without structure, or binary.
    #[error("it has no records")]
    NoRecords,
    /// A pointer was given for content that is not JSON.
    #[error("at is for JSON")]
    NotJson,
    /// The JSON has no value at the pointer.
    #[error("it has no value there")]
    NothingAt,
    /// The content lacks the structure that its type promises.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// The content cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl StoredResource {
    /// The division of the content into records; `None` for lines of text, and for
    /// binary content.
    pub async fn layout(&self) -> Result<Option<Layout>, StoreError> {
        let entry = &self.entry;
        if let Some(index) = &entry.records {
            return Ok(Some(index.layout()));
        }
        match entry.kind {
            Kind::Text => self.layout_as(&entry.mime_type).await,
            Kind::Binary => Ok(None),
        }
    }

    /// The division into records that the content has if it is of this media type.
    pub async fn layout_as(&self, mime_type: &str) -> Result<Option<Layout>, StoreError> {
        let (head, _) = self.head_and_tail(HEAD_BYTES as u64, 0).await?;

        let is_whole = head.len() as u64 == self.entry.size;
        let mime_type = mime_type.to_owned();
        let owner = self.entry.owner.as_str();
        let detecting =
            Compute::run(owner, head.len(), move || indexing::detect(&mime_type, &head, is_whole));
        Ok(detecting.done().await?)
    }

    /// The index of the records at a pointer, in JSON; by default of the outermost
    /// list. Reads all content, as work of `caller`, if that index is not stored.
    pub async fn record_index(
        &self,
        caller: &Owner,
        at: Option<&Pointer>,
    ) -> Result<Arc<RecordIndex>, RecordsError> {
        let layout = self.layout().await?.ok_or(RecordsError::NoRecords)?;
        if at.is_some() && layout != Layout::Json {
            return Err(RecordsError::NotJson);
        }

        let is_requested =
            |index: &&Arc<RecordIndex>| at.is_none_or(|at| at.to_string() == index.at());
        if let Some(known) = self.entry.records.as_ref().filter(is_requested) {
            return Ok(Arc::clone(known));
        }

        let _slot = if self.entry.size > BLOCK_BYTES as u64 {
            Some(compute::search_slot(caller.as_str()).await.map_err(StoreError::from)?)
        } else {
            None
        };

        let mut indexer = match at {
            Some(at) => Indexer::at(layout, at.clone()),
            None => Indexer::new(layout),
        };

        let mut blocks = std::pin::pin!(self.stream());
        while let Some(block) = blocks.next().await {
            let block = block?;
            let scanning = Compute::run(caller.as_str(), block.len(), move || {
                let fed = indexer.feed(&block);
                fed.map(|()| indexer)
            });
            indexer = scanning.done().await.map_err(StoreError::from)??;
        }

        indexer.finish()?.map(Arc::new).ok_or(RecordsError::NothingAt)
    }

    /// At most `limit` records from record `first` (counted from 0), in at most
    /// `budget` bytes. `index` must belong to this content.
    pub async fn records(
        &self,
        caller: &Owner,
        index: &RecordIndex,
        first: u64,
        limit: u64,
        budget: usize,
    ) -> Result<RecordWindow, RecordsError> {
        let header = match index.header() {
            Some(header) if header.end - header.start <= budget as u64 / 2 => {
                let len = usize::try_from(header.end - header.start).unwrap_or(0);
                Some(Bytes::from(self.bytes_from(header.start, len).await?.bytes))
            }
            _ => None,
        };
        let budget = budget - header.as_ref().map_or(0, Bytes::len);

        let Some(mark) = index.nearest(first) else {
            let records = first..first;
            return Ok(RecordWindow { header, text: Vec::new(), records, too_long: None });
        };

        let mut gatherer = Gatherer {
            scanner: index.scanner(mark),
            layout: index.layout(),
            container: index.container(),
            offset: mark.offset,
            held: Vec::new(),
            wanted: first..first.saturating_add(limit.max(1)).min(index.total()),
            budget,
            next: mark.number,
            text: Vec::new(),
            taken: 0,
            too_long: None,
            is_full: false,
        };

        for block in self.blocks_from(mark.offset) {
            let piece = self.part(block, block.offset.max(mark.offset)..block.end()).await?;
            let gathering = Compute::run(caller.as_str(), piece.len(), move || {
                let fed = gatherer.feed(&piece);
                fed.map(|()| gatherer)
            });
            gatherer = gathering.done().await.map_err(StoreError::from)??;
            if gatherer.is_full {
                break;
            }
        }
        if !gatherer.is_full {
            gatherer.finish()?;
        }

        let records = first..first + gatherer.taken;
        let Gatherer { text, too_long, .. } = gatherer;
        Ok(RecordWindow { header, text, records, too_long })
    }
}

/// Gathers the wanted records from consecutive pieces of content.
struct Gatherer {
    scanner: Scanner,
    layout: Layout,
    container: Container,
    /// The offset of the next piece.
    offset: u64,
    /// The bytes before `offset` that belong to a wanted record.
    held: Vec<u8>,

    /// The numbers of the wanted records.
    wanted: Range<u64>,
    /// The maximum length of the text, in bytes.
    budget: usize,
    /// The number of the next record.
    next: u64,

    text: Vec<u8>,
    /// The number of records in the text.
    taken: u64,
    /// The offset of the first wanted record, if it does not fit.
    too_long: Option<u64>,
    /// Whether the text has all wanted records, or no more fit.
    is_full: bool,
}

impl Gatherer {
    /// Scans the next piece of content.
    fn feed(&mut self, piece: &[u8]) -> Result<(), Fault> {
        for slice in piece.chunks(SLICE_BYTES) {
            if self.is_full {
                break;
            }

            let base = self.offset - self.held.len() as u64;
            self.held.extend_from_slice(slice);
            self.offset += slice.len() as u64;

            let mut found = Vec::new();
            self.scanner.feed(slice, |record| found.push(record))?;
            self.take(&found, base);
            self.release(base);
        }
        Ok(())
    }

    /// Scans the end of the content.
    fn finish(&mut self) -> Result<(), Fault> {
        let base = self.offset - self.held.len() as u64;
        let mut found = Vec::new();
        self.scanner.finish(|record| found.push(record))?;
        self.take(&found, base);
        Ok(())
    }

    /// Takes the records that are wanted and fit; `base` is the offset of
    /// the first held byte.
    fn take(&mut self, found: &[Record], base: u64) {
        for record in found {
            self.next = record.number + 1;
            if self.is_full || record.number < self.wanted.start {
                continue;
            }

            let start = self.text.len();
            self.append(&record_range(record, base));
            if self.text.len() > self.budget {
                self.text.truncate(start);
                self.refuse(record.start);
                return;
            }

            self.taken += 1;
            self.is_full = self.next >= self.wanted.end;
        }
    }

    /// Appends a record to the text.
    fn append(&mut self, range: &Range<usize>) {
        let bytes = &self.held[range.clone()];
        match self.layout {
            Layout::Json => compact_record(bytes, self.container, &mut self.text),
            _ => self.text.extend_from_slice(bytes),
        }
        self.text.push(b'\n');
    }

    /// Ends the window before the record that begins at `start`.
    fn refuse(&mut self, start: u64) {
        self.is_full = true;
        self.too_long = (self.taken == 0).then_some(start);
    }

    /// Releases the held bytes that belong to no wanted record.
    fn release(&mut self, base: u64) {
        let open = self.scanner.open_record().filter(|_| self.next >= self.wanted.start);
        match open {
            None => self.held.clear(),
            Some(start) => {
                self.held.drain(..index(start, base));
                if self.held.len() > MAX_RECORD_BYTES {
                    self.refuse(start);
                }
            }
        }
    }
}

/// The position of a record in bytes that begin at `base`.
fn record_range(record: &Record, base: u64) -> Range<usize> {
    index(record.start, base)..index(record.end, base)
}

/// The index of an offset in bytes that begin at `base`.
fn index(offset: u64, base: u64) -> usize {
    // The offset lies within bytes that are in memory.
    usize::try_from(offset.saturating_sub(base)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use proptest::prelude::*;

    use larder_records::Dialect;

    use super::*;
    use crate::store::blocks::tests::stored;

    fn now<T, E: std::fmt::Debug>(reading: impl Future<Output = Result<T, E>>) -> T {
        reading.now_or_never().expect("memory never waits").expect("it can be read")
    }

    proptest! {
        #[test]
        fn pages_of_records_are_the_records(
            texts in prop::collection::vec("[a-z \",\n\u{e4}]{0,40}", 1..30),
            block_bytes in 4_usize..60,
            limit in 1_u64..8,
            budget in 60_usize..200,
        ) {
            let json = serde_json::to_string_pretty(&texts).expect("it is JSON");
            let wrapped = format!("{{\"n\": 1, \"rows\": {json}}}");
            let ndjson = texts.iter().map(|t| format!("{}\n", serde_json::json!([t]))).collect::<Vec<_>>().concat();
            let quoted: Vec<_> = texts.iter().map(|t| format!("1,\"{}\"", t.replace('"', "\"\""))).collect();
            let table = format!("a,b\n{}", quoted.join("\r\n"));
            let json_records: Vec<_> = texts.iter().map(|t| serde_json::json!(t).to_string()).collect();
            let lines: Vec<_> = ndjson.lines().map(str::to_owned).collect();
            let rows = Layout::Rows(Dialect::delimited(b','));

            for (text, layout, expected) in [
                (json, Layout::Json, &json_records),
                (wrapped, Layout::Json, &json_records),
                (ndjson, Layout::JsonLines, &lines),
                (table, rows, &quoted),
            ] {
                let found = stored(Kind::Text, &[text.as_bytes()], block_bytes).expect("it is text");
                let mut indexer = Indexer::new(layout);
                indexer.feed(text.as_bytes()).expect("it has records");
                let index = indexer.finish().expect("it has records").expect("it has a value");

                let caller = Owner::new("local");
                let mut next = 0;
                let mut all = String::new();
                while next < index.total() {
                    let window = now(found.records(&caller, &index, next, limit, budget));
                    prop_assert_eq!(window.header.as_deref(), (layout == rows).then_some(&b"a,b"[..]));
                    prop_assert_eq!(window.records.start, next);
                    prop_assert!(window.text.len() <= budget);

                    if window.too_long.is_some() {
                        let record = &expected[usize::try_from(next).expect("small")];
                        prop_assert!(record.len() + 1 > budget - 3, "{}", record);
                        all += &format!("{record}\n");
                        next += 1;
                        continue;
                    }

                    let taken = window.records.end - next;
                    prop_assert!(taken > 0 && taken <= limit);
                    all += std::str::from_utf8(&window.text).expect("it is text");
                    next = window.records.end;
                }

                let expected = expected.iter().map(|record| format!("{record}\n")).collect::<Vec<_>>().concat();
                prop_assert_eq!(all, expected);

                let past = now(found.records(&caller, &index, index.total(), 1, budget));
                prop_assert!(past.text.is_empty() && past.records.is_empty());
            }
        }
    }
}
