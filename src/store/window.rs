//! Windows onto content: some lines or some bytes, never more than asked for,
//! at the cost of the blocks they lie in, wherever that is.

use std::ops::Range;

use bytes::Bytes;

use super::{Block, Found, Kind, StoreError};

/// A part of a resource's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// The content: whole lines where they fit, whole characters in text always.
    pub bytes: Vec<u8>,
    /// Where it lies in the content, in bytes.
    pub range: Range<u64>,
    /// The lines it holds, counted from 0; the last may be cut. Empty for
    /// binary content and for windows by bytes.
    pub lines: Range<u64>,
    /// Why it ends where it does.
    pub end: WindowEnd,
}

/// Why a window ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowEnd {
    /// The content ends there.
    Content,
    /// What was asked for, or the budget, is used up; go on with this line.
    Line(u64),
    /// The budget ends inside a line, or the window is by bytes; go on with this byte.
    Byte(u64),
}

impl Found {
    /// At most `limit` lines from line `first` (counted from 0), in at most
    /// `budget` bytes. A line that is longer than the budget by itself is cut
    /// between characters.
    ///
    /// # Errors
    /// [`StoreError::NoLines`] for binary content.
    pub async fn lines(&self, first: u64, limit: u64, budget: usize) -> Result<Window, StoreError> {
        let entry = &self.entry;
        if entry.kind == Kind::Binary {
            return Err(StoreError::NoLines { uri: entry.uri.clone() });
        }
        if first >= entry.lines || limit == 0 {
            let end =
                if first >= entry.lines { WindowEnd::Content } else { WindowEnd::Line(first) };
            let (range, lines) = (entry.size..entry.size, first..first);
            return Ok(Window { bytes: Vec::new(), range, lines, end });
        }
        let start = self.start_of_line(first).await?;
        let mut bytes = Vec::new();
        let mut seen = 0u64;
        let mut at = start;
        let mut line_end = 0usize;
        'blocks: for block in self.blocks_from(start) {
            let piece = self.blob.range(at.max(block.offset)..block.end()).await?;
            for feed in memchr::memchr_iter(b'\n', &piece) {
                let length = bytes.len() + feed + 1;
                if length > budget {
                    break;
                }
                seen += 1;
                line_end = length;
                if seen == limit {
                    bytes.extend_from_slice(&piece[..=feed]);
                    break 'blocks;
                }
            }
            // Enough to tell whether the budget falls inside the next line.
            let room = (budget + 4).saturating_sub(bytes.len());
            bytes.extend_from_slice(&piece[..room.min(piece.len())]);
            at = block.end();
            if bytes.len() > budget {
                break;
            }
        }
        if bytes.len() > budget {
            if seen > 0 {
                bytes.truncate(line_end);
            } else {
                bytes.truncate(char_boundary(&bytes, budget));
                let end = start + bytes.len() as u64;
                let end = WindowEnd::Byte(end);
                return Ok(window(bytes, start, first..first + 1, end));
            }
        } else if bytes.len() > line_end {
            // The last line of the content, without a line feed.
            seen += 1;
        }
        let next = first + seen;
        let end = if next >= entry.lines { WindowEnd::Content } else { WindowEnd::Line(next) };
        Ok(window(bytes, start, first..next, end))
    }

    /// At most `limit` bytes from byte `first`; in text, cut between
    /// characters (and begun at the character that `first` points into).
    pub async fn bytes_from(&self, first: u64, limit: usize) -> Result<Window, StoreError> {
        let entry = &self.entry;
        if first >= entry.size {
            return Ok(window(Vec::new(), entry.size, 0..0, WindowEnd::Content));
        }
        let mut start = first;
        let mut bytes = Vec::new();
        for block in self.blocks_from(first) {
            // A few bytes more, to see where a character begins and ends.
            let from = start.saturating_sub(if bytes.is_empty() { 3 } else { 0 }).max(block.offset);
            let from = if bytes.is_empty() { from } else { block.offset };
            let skip = if bytes.is_empty() { start - from } else { 0 };
            let want = (limit + 4).saturating_sub(bytes.len()) as u64 + skip;
            let piece = self.blob.range(from..block.end().min(from + want)).await?;
            let mut skip = usize::try_from(skip).unwrap_or(0);
            if bytes.is_empty() && entry.kind == Kind::Text {
                while skip > 0 && is_continuation(piece[skip]) {
                    skip -= 1;
                    start -= 1;
                }
            }
            bytes.extend_from_slice(&piece[skip..]);
            if bytes.len() >= limit + 4 {
                break;
            }
        }
        if bytes.len() > limit {
            let cut = match entry.kind {
                // At least one character, or paging would stand still.
                Kind::Text => char_boundary(&bytes, limit).max(first_char(&bytes)),
                Kind::Binary => limit,
            };
            bytes.truncate(cut);
        }
        let end = start + bytes.len() as u64;
        let end = if end >= entry.size { WindowEnd::Content } else { WindowEnd::Byte(end) };
        Ok(window(bytes, start, 0..0, end))
    }

    /// The byte at which a line begins, by the block table and one block.
    async fn start_of_line(&self, line: u64) -> Result<u64, StoreError> {
        if line == 0 {
            return Ok(0);
        }
        // The last block with fewer than `line` line feeds before it holds the one that ends line - 1.
        let blocks = &self.entry.blocks;
        let block = blocks[blocks.partition_point(|b| b.first_line < line).saturating_sub(1)];
        let piece: Bytes = self.blob.range(block.offset..block.end()).await?;
        let nth = usize::try_from(line - block.first_line - 1).unwrap_or(usize::MAX);
        let feed = memchr::memchr_iter(b'\n', &piece).nth(nth);
        Ok(feed.map_or(block.end(), |at| block.offset + at as u64 + 1))
    }

    /// The block that holds this byte and those after it.
    fn blocks_from(&self, byte: u64) -> impl Iterator<Item = Block> + '_ {
        let blocks = &self.entry.blocks;
        blocks[blocks.partition_point(|b| b.end() <= byte)..].iter().copied()
    }
}

fn window(bytes: Vec<u8>, start: u64, lines: Range<u64>, end: WindowEnd) -> Window {
    let range = start..start + bytes.len() as u64;
    Window { bytes, range, lines, end }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

/// The greatest boundary between characters that is no greater than `at`.
fn char_boundary(bytes: &[u8], at: usize) -> usize {
    let mut at = at.min(bytes.len());
    while at > 0 && at < bytes.len() && is_continuation(bytes[at]) {
        at -= 1;
    }
    at
}

fn first_char(bytes: &[u8]) -> usize {
    1 + bytes.iter().skip(1).take_while(|b| is_continuation(**b)).count()
}
