//! Windows: some lines or some bytes of content, never more than requested. A
//! window costs the blocks that it overlaps, wherever it is in the content.

use std::ops::Range;

use bytes::Bytes;

use super::{Block, Kind, StoreError, StoredResource};

/// A part of a resource's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// The content: whole lines where they fit; in text, always whole characters.
    pub bytes: Vec<u8>,
    /// The window's range in the content, in bytes.
    pub range: Range<u64>,
    /// The lines in the window, counted from 0; the last line may be cut. Empty for
    /// binary content and for windows by bytes.
    pub lines: Range<u64>,
    /// The reason why the window ends, and the position of the next window.
    pub end: WindowEnd,
}

/// The reason why a window ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowEnd {
    /// The content ends.
    Content,
    /// The limit or the budget is reached; the next window begins at this line.
    Line(u64),
    /// The budget ends inside a line, or the window is by bytes; the next window
    /// begins at this byte.
    Byte(u64),
}

/// The maximum number of bytes of a character after a cut inside it.
const MAX_CHAR_REST: usize = 3;

impl StoredResource {
    /// At most `limit` lines from line `first` (counted from 0), in at most
    /// `budget` bytes. If the first line alone exceeds the budget, it is cut
    /// between characters. The window is empty only at the end of the content: it
    /// has at least one line or one character, so that paging always advances.
    ///
    /// # Errors
    /// [`StoreError::NoLines`] for binary content.
    pub async fn lines(&self, first: u64, limit: u64, budget: usize) -> Result<Window, StoreError> {
        let entry = &self.entry;
        if entry.kind == Kind::Binary {
            return Err(StoreError::NoLines { uri: entry.uri.clone() });
        }
        if first >= entry.lines {
            return Ok(self.window(entry.size, Vec::new(), first..first, WindowEnd::Content));
        }

        let limit = limit.max(1);
        let budget = budget.max(1);
        let (mut piece, blocks) = self.seek_line(first).await?;
        let start = blocks.first().map_or(entry.size, |next| next.offset) - piece.len() as u64;
        let mut blocks = blocks.iter();

        let mut bytes = Vec::new();
        let mut fitting = FittingLines { count: 0, end: 0 };
        loop {
            for feed in memchr::memchr_iter(b'\n', &piece) {
                let line_end = bytes.len() + feed + 1;
                if fitting.count == limit || line_end > budget {
                    break;
                }
                fitting.add(line_end);
            }

            // A few bytes more show whether the budget ends inside a character.
            let is_full = fitting.count == limit;
            let needed = if is_full { fitting.end } else { budget.saturating_add(MAX_CHAR_REST) };
            piece.truncate(needed - bytes.len());
            bytes.extend_from_slice(&piece);
            if is_full || bytes.len() >= budget {
                break;
            }

            let Some(block) = blocks.next() else { break };
            piece = self.block(block).await?;
        }

        let at_end = start + bytes.len() as u64 == entry.size;
        if at_end && fitting.end < bytes.len() && bytes.len() <= budget {
            // The content ends with a line without a line feed.
            fitting.add(bytes.len());
        }

        let mut next = WindowEnd::Line(first + fitting.count);
        if fitting.count == 0 {
            fitting.add(cut(&bytes, budget));
            next = WindowEnd::Byte(start + fitting.end as u64);
        }
        bytes.truncate(fitting.end);
        Ok(self.window(start, bytes, first..first + fitting.count, next))
    }

    /// At most `limit` bytes from byte `first`. In text, the window begins at the
    /// character that contains `first` and ends between characters. It has at least
    /// one byte or character, except at the end of the content.
    ///
    /// # Errors
    /// The content cannot be read.
    pub async fn bytes_from(&self, first: u64, limit: usize) -> Result<Window, StoreError> {
        let first = first.min(self.entry.size);
        let limit = limit.max(1);

        // In text, a few more bytes on both sides show where characters begin and
        // end. They are in the same block, because no character spans two blocks.
        let margin = if self.entry.kind == Kind::Text { MAX_CHAR_REST as u64 } else { 0 };
        let from = first.saturating_sub(margin);
        let to = first.saturating_add(limit as u64);
        let blocks = self.blocks_from(first);
        let mut start = blocks.first().map_or(first, |block| block.offset.max(from));

        let mut bytes = Vec::new();
        for block in blocks.iter().take_while(|block| block.offset < to) {
            let end = block.end().min(to.saturating_add(margin));
            bytes.extend_from_slice(&self.part(block, block.offset.max(start)..end).await?);
        }

        if self.entry.kind == Kind::Text {
            let skipped = char_boundary(&bytes, usize::try_from(first - start).unwrap_or(0));
            bytes.drain(..skipped);
            bytes.truncate(cut(&bytes, limit));
            start += skipped as u64;
        }

        let next = WindowEnd::Byte(start + bytes.len() as u64);
        Ok(self.window(start, bytes, 0..0, next))
    }

    /// The content from the beginning of `line` to the end of its block, and the
    /// blocks after that block. Reads one block.
    async fn seek_line(&self, line: u64) -> Result<(Bytes, &[Block]), StoreError> {
        let blocks = &self.entry.blocks;
        // The line feed before the line is in the last block that begins before the line.
        let index = blocks.partition_point(|block| block.first_line < line).saturating_sub(1);
        let block = &blocks[index];
        let mut piece = self.block(block).await?;

        if let Some(nth) = (line - block.first_line).checked_sub(1) {
            let feed = nth_line_feed(&piece, usize::try_from(nth).unwrap_or(usize::MAX));
            piece = piece.split_off(feed.map_or(piece.len(), |feed| feed + 1));
        }

        Ok((piece, &blocks[index + 1..]))
    }

    /// The block that contains the byte, and the blocks after it.
    pub(super) fn blocks_from(&self, byte: u64) -> &[Block] {
        let blocks = &self.entry.blocks;
        &blocks[blocks.partition_point(|block| block.end() <= byte)..]
    }

    /// A window that ends with the content or continues at `next`.
    fn window(&self, start: u64, bytes: Vec<u8>, lines: Range<u64>, next: WindowEnd) -> Window {
        let range = start..start + bytes.len() as u64;
        let end = if range.end == self.entry.size { WindowEnd::Content } else { next };
        Window { bytes, range, lines, end }
    }
}

/// The lines that fit into a window.
struct FittingLines {
    count: u64,
    /// The end of the last line, in the bytes of the window.
    end: usize,
}

impl FittingLines {
    fn add(&mut self, end: usize) {
        self.count += 1;
        self.end = end;
    }
}

/// The position of line feed `nth`, counted from 0. Counting line feeds is many
/// times faster than finding each, so only the line feeds of one chunk are found.
fn nth_line_feed(bytes: &[u8], mut nth: usize) -> Option<usize> {
    const CHUNK: usize = 4096;

    for (index, chunk) in bytes.chunks(CHUNK).enumerate() {
        let mut feeds = memchr::memchr_iter(b'\n', chunk);
        let count = feeds.clone().count();
        if nth < count {
            return feeds.nth(nth).map(|feed| index * CHUNK + feed);
        }
        nth -= count;
    }

    None
}

/// The position at which to cut text for at most `limit` bytes and at least one character.
fn cut(bytes: &[u8], limit: usize) -> usize {
    let one = 1 + bytes.iter().skip(1).take_while(|byte| is_continuation(**byte)).count();
    char_boundary(bytes, limit).max(one)
}

/// The greatest boundary between characters that is at most `index`.
fn char_boundary(bytes: &[u8], index: usize) -> usize {
    let mut index = index.min(bytes.len());
    while index > 0 && index < bytes.len() && is_continuation(bytes[index]) {
        index -= 1;
    }

    index
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

#[cfg(test)]
mod tests {
    use std::{
        future::Future,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
    };

    use async_trait::async_trait;
    use futures_util::FutureExt;
    use proptest::prelude::*;

    use super::*;
    use crate::{
        store::Blob,
        store::blocks::tests::{any_text, stored},
    };

    fn text(text: &str, block_bytes: usize) -> StoredResource {
        stored(Kind::Text, &[text.as_bytes()], block_bytes).expect("it is text")
    }

    fn now<T>(window: impl Future<Output = Result<T, StoreError>>) -> T {
        window.now_or_never().expect("memory never waits").expect("it can be read")
    }

    /// The windows from the beginning to the end, each where the previous window
    /// continues.
    fn pages(found: &StoredResource, limit: u64, budget: usize) -> Vec<Window> {
        let mut next = WindowEnd::Line(0);
        let mut pages = Vec::new();

        while next != WindowEnd::Content {
            let page = match next {
                WindowEnd::Byte(byte) => now(found.bytes_from(byte, budget)),
                WindowEnd::Line(line) => now(found.lines(line, limit, budget)),
                WindowEnd::Content => unreachable!("the loop ends there"),
            };

            assert_ne!(page.end, next, "paging does not advance");
            next = page.end;
            pages.push(page);
        }

        pages
    }

    fn as_text(window: &Window) -> &str {
        std::str::from_utf8(&window.bytes).expect("no character is split")
    }

    /// Whether a page keeps the budget. Only a single character may exceed it.
    fn within(budget: usize, page: &str) -> bool {
        page.len() <= budget || page.chars().count() == 1
    }

    proptest! {
        #[test]
        fn pages_by_lines_make_up_the_content(
            content in any_text(),
            block_bytes in 4usize..40,
            limit in 0u64..10,
            budget in 0usize..100,
        ) {
            let found = text(&content, block_bytes);

            let mut offset = 0;
            for page in pages(&found, limit, budget) {
                prop_assert!(within(budget, as_text(&page)), "{page:?}");
                prop_assert_eq!(page.range, offset..offset + page.bytes.len() as u64);

                let index = usize::try_from(offset).expect("it is small");
                prop_assert!(content.as_bytes()[index..].starts_with(&page.bytes));
                offset += page.bytes.len() as u64;
            }

            prop_assert_eq!(offset, found.entry.size);
        }

        #[test]
        fn pages_by_bytes_make_up_the_content(
            content in any_text(),
            block_bytes in 4usize..40,
            limit in 0usize..100,
        ) {
            let found = text(&content, block_bytes);
            let mut next = WindowEnd::Byte(0);
            let mut whole = String::new();
            while let WindowEnd::Byte(first) = next {
                let page = now(found.bytes_from(first, limit));
                prop_assert_ne!(page.end, next, "paging does not advance");
                prop_assert!(within(limit, as_text(&page)), "{page:?}");
                prop_assert_eq!(page.range.start, first);
                whole += as_text(&page);
                next = page.end;
            }

            prop_assert_eq!(next, WindowEnd::Content);
            prop_assert_eq!(whole, content);
        }

        #[test]
        fn pages_of_binary_content_have_exactly_the_requested_length(
            content in prop::collection::vec(any::<u8>(), 0..300),
            block_bytes in 4usize..40,
            limit in 1usize..100,
        ) {
            let found = stored(Kind::Binary, &[&content], block_bytes).expect("bytes are bytes");
            for (index, expected) in content.chunks(limit).enumerate() {
                let first = (index * limit) as u64;
                let page = now(found.bytes_from(first, limit));
                prop_assert_eq!(&page.bytes, expected);

                let end = first + expected.len() as u64;
                let is_last = end == found.entry.size;
                let end = if is_last { WindowEnd::Content } else { WindowEnd::Byte(end) };
                prop_assert_eq!(page.end, end);
            }
        }

        #[test]
        fn a_window_by_lines_is_what_a_naive_reader_sees(
            content in any_text(),
            block_bytes in 4usize..40,
            first in 0usize..40,
            limit in 1usize..40,
        ) {
            let found = text(&content, block_bytes);
            let page = now(found.lines(first as u64, limit as u64, usize::MAX));

            let all: Vec<&str> = content.split_inclusive('\n').collect();
            let seen: Vec<&str> = all.iter().copied().skip(first).take(limit).collect();
            prop_assert_eq!(as_text(&page), seen.concat());

            let next = first + seen.len();
            prop_assert_eq!(page.lines, first as u64..next as u64);
            let end = if next >= all.len() { WindowEnd::Content } else { WindowEnd::Line(next as u64) };
            prop_assert_eq!(page.end, end);
        }

        #[test]
        fn a_window_by_lines_holds_as_many_whole_lines_as_the_budget_allows(
            content in any_text(),
            block_bytes in 4usize..40,
            first in 0usize..20,
            budget in 0usize..60,
        ) {
            let found = text(&content, block_bytes);
            let page = now(found.lines(first as u64, u64::MAX, budget));

            let mut fits = String::new();
            let mut left = content.split_inclusive('\n').skip(first).peekable();
            while let Some(line) = left.next_if(|line| fits.len() + line.len() <= budget) {
                fits += line;
            }

            match left.peek() {
                Some(long) if fits.is_empty() => prop_assert!(long.starts_with(as_text(&page))),
                _ => prop_assert_eq!(as_text(&page), fits),
            }
        }

        #[test]
        fn a_window_by_bytes_begins_with_the_character_at_the_offset(
            content in any_text(),
            block_bytes in 4usize..40,
            first in any::<prop::sample::Index>(),
            limit in 0usize..100,
        ) {
            let first = first.index(content.len() + 10);
            let page = now(text(&content, block_bytes).bytes_from(first as u64, limit));

            let start = content.floor_char_boundary(first);
            let end = content.floor_char_boundary(start + limit);
            let one = content[start..].chars().next().map_or(0, char::len_utf8);

            prop_assert_eq!(as_text(&page), &content[start..end.max(start + one)]);
            prop_assert_eq!(page.range.start, start as u64);
        }
    }

    /// Counts the reads, and checks that none spans two blocks.
    struct Counting {
        found: StoredResource,
        reads: Arc<AtomicUsize>,
    }

    #[async_trait]
    impl Blob for Counting {
        async fn range(&self, range: Range<u64>) -> Result<Bytes, StoreError> {
            self.reads.fetch_add(1, Ordering::Relaxed);
            let inside = |b: &Block| b.stored <= range.start && range.end <= b.stored_end();
            assert!(self.found.entry.blocks.iter().any(inside), "{range:?} spans two blocks");
            self.found.blob.range(range).await
        }
    }

    #[test]
    fn a_window_costs_one_read_for_each_block_it_overlaps() {
        let content = "0123456789\n".repeat(100);
        let found = text(&content, 100);
        let reads = Arc::new(AtomicUsize::new(0));
        let counting = Counting { found: found.clone(), reads: Arc::clone(&reads) };
        let found = StoredResource { blob: Arc::new(counting), ..found };

        let cost = |window: &Window| {
            let touched = |b: &&Block| b.offset < window.range.end && window.range.start < b.end();
            let blocks = found.entry.blocks.iter().filter(touched).count();
            (reads.swap(0, Ordering::Relaxed), blocks)
        };

        for first in 0..100 {
            let window = now(found.lines(first, 2, 1000));
            let (reads, blocks) = cost(&window);
            // The line feed before the window may be the last byte of the block before.
            let borders = window.range.start.is_multiple_of(100) && first > 0;
            assert_eq!(reads, blocks + usize::from(borders), "line {first}");

            let window = now(found.bytes_from(first * 11, 50));
            let (reads, blocks) = cost(&window);
            assert_eq!(reads, blocks, "byte {}", first * 11);
        }
    }

    #[test]
    fn a_window_by_lines_moves_on_when_no_character_fits_the_budget() {
        let window = now(text("🦀🦀\n", 8).lines(0, 1, 1));
        assert_eq!((as_text(&window), window.end), ("🦀", WindowEnd::Byte(4)));
    }

    #[test]
    fn an_unlimited_budget_does_not_overflow() {
        let found = text("a\nb\n", 4);
        assert_eq!(now(found.lines(0, u64::MAX, usize::MAX)).bytes, b"a\nb\n");
        assert_eq!(now(found.bytes_from(0, usize::MAX)).bytes, b"a\nb\n");
        assert_eq!(now(found.bytes_from(u64::MAX, usize::MAX)).end, WindowEnd::Content);
    }

    #[test]
    fn a_window_of_no_lines_still_holds_one_line() {
        let window = now(text("a\nb\n", 4).lines(1, 0, 10));
        assert_eq!((as_text(&window), &window.range, &window.lines), ("b\n", &(2..4), &(1..2)));
    }

    #[test]
    fn line_feeds_are_found_in_any_chunk() {
        let text = "0123456\n".repeat(2_000);
        for nth in [0, 1, 511, 512, 513, 1_999] {
            assert_eq!(nth_line_feed(text.as_bytes(), nth), Some(nth * 8 + 7));
        }
        assert_eq!(nth_line_feed(text.as_bytes(), 2_000), None);
        assert_eq!(nth_line_feed(b"", 0), None);
    }

    #[test]
    fn binary_content_has_no_lines() {
        let found = stored(Kind::Binary, &[b"a\nb"], 4).expect("bytes are bytes");
        let refused = found.lines(0, 1, 10).now_or_never().expect("memory never waits");
        assert!(matches!(refused, Err(StoreError::NoLines { .. })));
    }
}
