//! [`Splitter`]: the bytes of each record.

use super::{Fault, Layout, Pointer, Record, Scanner};

/// Gives the bytes of each record of content that comes in blocks. Copies only
/// blocks that a record spans.
#[derive(Debug, Clone)]
pub struct Splitter {
    scanner: Scanner,
    max_record: usize,
    /// The offset of the next block.
    offset: u64,
    /// The bytes of a record that began in an earlier block.
    held: Vec<u8>,
}

impl Splitter {
    /// A splitter for records of at most `max_record` bytes.
    pub fn new(layout: Layout, at: Pointer, max_record: usize) -> Self {
        Self { scanner: Scanner::new(layout, at), max_record, offset: 0, held: Vec::new() }
    }

    /// The scanner.
    pub fn scanner(&self) -> &Scanner {
        &self.scanner
    }

    /// Splits the next block. Calls `sink` with each record that ends in it and
    /// its bytes.
    ///
    /// # Errors
    /// The errors of [`Scanner::feed`], and a record that is too long.
    pub fn feed(&mut self, block: &[u8], mut sink: impl FnMut(Record, &[u8])) -> Result<(), Fault> {
        let base = self.offset - self.held.len() as u64;
        let bytes = if self.held.is_empty() {
            block
        } else {
            self.held.extend_from_slice(block);
            &self.held
        };

        let slice = |record: Record| &bytes[index(record.start, base)..index(record.end, base)];
        self.scanner.feed(block, |record| sink(record, slice(record)))?;
        self.offset += block.len() as u64;

        match self.scanner.open_record().map(|start| (start, index(start, base))) {
            None => self.held.clear(),
            Some((offset, from)) if bytes.len() - from > self.max_record => {
                return Err(Fault::TooLong { offset, limit: self.max_record });
            }
            Some((_, from)) if self.held.is_empty() => self.held.extend_from_slice(&block[from..]),
            Some((_, from)) => drop(self.held.drain(..from)),
        }

        Ok(())
    }

    /// Ends the content. Calls `sink` with a last record.
    ///
    /// # Errors
    /// The errors of [`Scanner::finish`].
    pub fn finish(&mut self, mut sink: impl FnMut(Record, &[u8])) -> Result<(), Fault> {
        let base = self.offset - self.held.len() as u64;
        let bytes = &self.held;
        let slice = |record: Record| &bytes[index(record.start, base)..index(record.end, base)];
        self.scanner.finish(|record| sink(record, slice(record)))
    }
}

/// The index of an offset in bytes that begin at `base`.
fn index(offset: u64, base: u64) -> usize {
    // The offset fits, because the bytes are in memory.
    usize::try_from(offset.saturating_sub(base)).unwrap_or(usize::MAX)
}
