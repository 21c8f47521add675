//! Searches stored content with ripgrep's engine: in linear time for any pattern.
//!
//! Several blocks are searched at once, each right after it is decompressed, so
//! that it is read from memory once. Lines that cross blocks are joined, and
//! matches are reported in the order of the content.

mod block;
mod gather;
mod line_part;
mod matches;
mod partial_line;

use futures_util::StreamExt;

use self::gather::Gatherer;
pub(super) use self::{
    line_part::LinePart,
    partial_line::{PIECE_MATCH_BYTES, WHOLE_LINE_BYTES},
};
use super::regex::SharedMatcher;
use crate::{
    auth::Owner,
    compute::Compute,
    store::{StoreError, StoredResource},
};

/// What a scan reports.
#[derive(Clone)]
pub(super) struct Search {
    pub(super) matcher: SharedMatcher,
    /// The lines of context before and after each.
    pub(super) context: usize,
    /// The lines without a match.
    pub(super) invert: bool,
    /// Count the matches in each line.
    pub(super) counts: bool,
}

impl Search {
    /// A search for the lines that match.
    pub(super) fn lines(matcher: SharedMatcher) -> Self {
        Self { matcher, context: 0, invert: false, counts: false }
    }
}

/// Receives the lines that a search finds. Lines count from 1.
pub(super) trait LineSink: Send + 'static {
    /// A line that matches, or with `invert` does not; or a piece of a long line
    /// that has matches.
    fn matched(&mut self, part: &LinePart<'_>);

    /// A line of context; of a long line its beginning.
    fn context(&mut self, _line: u64, _text: &[u8]) {}

    /// A gap between the last line and the next. Called only if context was
    /// requested.
    fn gap(&mut self) {}

    /// A line is searched in pieces: matches over [`PIECE_MATCH_BYTES`] may be
    /// missed in it.
    fn in_pieces(&mut self) {}
}

/// Searches a resource's text, as work of `caller`. Dropping the future stops the
/// search soon.
///
/// # Errors
/// When the content cannot be read.
pub(super) async fn scan<K: LineSink>(
    caller: &Owner,
    found: &StoredResource,
    search: Search,
    sink: K,
) -> Result<K, StoreError> {
    let block_search = search.clone();
    let work = move |block, stop: &_| block::search(&block_search, block, stop);
    let searched = found.map_blocks(caller, work);
    let mut searched = std::pin::pin!(searched.enumerate());
    let mut gatherer = Gatherer::new(search, sink);
    while let Some((index, searched)) = searched.next().await {
        let (searched, block) = (searched?, found.entry.blocks[index]);
        let gathering = Compute::queue(caller.as_str(), move |stop| {
            gatherer.add(block.first_line, block.offset, searched, stop);
            gatherer
        });
        gatherer = gathering.done().await?;
    }
    let last_line = found.entry.lines.saturating_sub(1);
    let finishing = Compute::queue(caller.as_str(), move |stop| gatherer.finish(last_line, stop));
    Ok(finishing.done().await?)
}
