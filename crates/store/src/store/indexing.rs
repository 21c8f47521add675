//! [`Indexing`]: makes the record index of text while its blocks are written.

use std::sync::Arc;

use bytes::Bytes;
use larder_records::{
    Indexer, Layout, RecordIndex,
    preview::{Format, HEAD_BYTES, Sample},
};
use larder_runtime::compute::{Busy, Compute};

use super::Kind;

/// Content of at most this size in bytes has no index, because scanning it takes no time.
const MIN_BYTES: usize = 16 << 10;

/// The record index of content that is being written. The blocks are scanned in order.
pub(super) struct Indexing(Compute<IndexingStep>);

enum IndexingStep {
    /// No index is made: the content has no records, or differs from what its first block seemed.
    Off,
    /// The media type of content whose first block has not arrived.
    Start(Box<str>),
    Scanning(Indexer),
}

impl Indexing {
    pub(super) fn off() -> Self {
        Self(Compute::Done(Ok(IndexingStep::Off)))
    }

    /// The index of content of this media type.
    pub(super) fn new(kind: Kind, mime_type: &str) -> Self {
        match kind {
            Kind::Text => Self(Compute::Done(Ok(IndexingStep::Start(mime_type.into())))),
            Kind::Binary => Self::off(),
        }
    }

    /// Adds the next block, as work of `owner`.
    ///
    /// # Errors
    /// [`Busy`]: too much work waits.
    pub(super) async fn add(
        &mut self,
        owner: &str,
        block: &Bytes,
        is_last: bool,
    ) -> Result<(), Busy> {
        let step = std::mem::replace(self, Self::off()).0.done().await?;
        self.0 = match step {
            IndexingStep::Off => Compute::Done(Ok(IndexingStep::Off)),
            IndexingStep::Start(_) if is_last && block.len() <= MIN_BYTES => {
                Compute::Done(Ok(IndexingStep::Off))
            }
            step => {
                let block = block.clone();
                Compute::run(owner, block.len(), move || step.add(&block, is_last))
            }
        };
        Ok(())
    }

    /// The index after the last block.
    ///
    /// # Errors
    /// [`Busy`]: too much work waits.
    pub(super) async fn finish(self) -> Result<Option<Arc<RecordIndex>>, Busy> {
        Ok(match self.0.done().await? {
            IndexingStep::Scanning(indexer) => indexer.finish().ok().flatten().map(Arc::new),
            IndexingStep::Off | IndexingStep::Start(_) => None,
        })
    }
}

impl IndexingStep {
    /// Scans the next block.
    fn add(self, block: &[u8], is_last: bool) -> Self {
        let mut indexer = match self {
            Self::Off => return Self::Off,
            Self::Scanning(indexer) => indexer,
            Self::Start(mime_type) => {
                let head = &block[..block.len().min(HEAD_BYTES)];
                match detect(&mime_type, head, is_last && head.len() == block.len()) {
                    Some(layout) => Indexer::new(layout),
                    None => return Self::Off,
                }
            }
        };

        // Malformed content is stored without an index.
        match indexer.feed(block) {
            Ok(()) => Self::Scanning(indexer),
            Err(_) => Self::Off,
        }
    }
}

/// The division of text of this media type into records, judging by its first bytes.
/// `None` for lines of text.
pub(super) fn detect(mime_type: &str, head: &[u8], is_whole: bool) -> Option<Layout> {
    let size = if is_whole { head.len() as u64 } else { u64::MAX };
    let sample = |mime_type| Sample {
        mime_type,
        is_text: true,
        size,
        lines: None,
        head,
        tail: head,
        value: None,
    };

    // The declared type may be wrong or unknown.
    let format = match Format::detect(&sample(Some(mime_type))) {
        Format::Text if mime_type != "text/plain" => Format::detect(&sample(None)),
        format => format,
    };

    match format {
        Format::Csv(dialect) => Some(Layout::Rows(dialect)),
        Format::Json => Some(Layout::Json),
        Format::JsonLines => Some(Layout::JsonLines),
        // Readers of malformed JSON get an error that tells the fault, instead of lines.
        Format::Text if mime_type.contains("json") => Some(Layout::Json),
        Format::LooseJson | Format::Text | Format::Image { .. } | Format::Binary => None,
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use serde_json::json;

    use larder_records::Dialect;

    use super::*;

    /// The index of a text that is cut into blocks of `block` bytes.
    fn index(mime_type: &str, text: &str, block: usize) -> Option<RecordIndex> {
        let mut indexing = Indexing::new(Kind::Text, mime_type);
        let blocks: Vec<_> = text.as_bytes().chunks(block).map(Bytes::copy_from_slice).collect();
        for (number, block) in blocks.iter().enumerate() {
            let added = indexing.add("local", block, number + 1 == blocks.len());
            added.now_or_never().expect("small blocks never wait").expect("no work waits");
        }

        let index = indexing.finish().now_or_never().expect("it never waits");
        index.expect("no work waits").map(Arc::unwrap_or_clone)
    }

    #[test]
    fn records_are_indexed_wherever_blocks_end() {
        let json = json!({ "n": 1, "rows": [{ "a": "x\"]" }, [], "é"] }).to_string();
        let ndjson = "{\"a\": 1}\n\n{\"a\": 2}\n[3]";
        let table = "a,b\n1,\"x\n\"\"y\"\n2,z\r\n";
        let rows = Layout::Rows(Dialect::delimited(b','));

        for (mime_type, text, layout, at, total) in [
            ("application/json", &*json, Layout::Json, "/rows", 3),
            ("application/x-ndjson", ndjson, Layout::JsonLines, "", 3),
            ("text/csv", table, rows, "", 2),
        ] {
            let whole = index(mime_type, text, 1).expect("it is indexed");
            assert_eq!((whole.layout(), whole.at(), whole.total()), (layout, at, total));
            // A text in a single block is too short for an index.
            for block in 2..text.len() {
                assert_eq!(index(mime_type, text, block).as_ref(), Some(&whole), "{block}");
            }
            assert_eq!(index(mime_type, text, text.len()), None);
        }
    }

    #[test]
    fn malformed_json_and_plain_text_have_no_index() {
        for text in ["{\"a\": [1}", "[1, 2", "[[[[", "plain text"] {
            assert_eq!(index("application/json", text, 3), None, "{text}");
        }
        assert_eq!(index("text/plain", "some\nlines\nof text\n", 8), None);
    }
}
