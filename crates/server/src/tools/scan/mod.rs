//! Searches stored content with ripgrep's engine: in linear time for any pattern.
//!
//! Several blocks are searched at once, each right after it is decompressed, so
//! that it is read from memory once. Blocks that certainly have no match are left out. Lines
//! that cross blocks are joined, and matches are reported in the order of the content.

mod block;
mod gather;
#[cfg(test)]
mod left_out;
mod line_part;
mod matches;
mod partial_line;

use std::sync::{Arc, atomic::AtomicBool};

use futures_util::StreamExt;
use larder_oauth::Owner;
use larder_runtime::compute::Compute;
use larder_store::store::{RequiredText, StoreError, StoredResource};

use self::gather::Gatherer;
pub(super) use self::{
    line_part::LinePart,
    partial_line::{PIECE_MATCH_BYTES, WHOLE_LINE_BYTES},
};
use super::regex::SharedMatcher;

/// How many searched blocks are joined at once, if they are ready.
const MAX_JOINED: usize = 8;

/// The results of a scan.
#[derive(Clone)]
pub(super) struct Search {
    pub(super) matcher: SharedMatcher,
    /// The text that each match contains, if that is known.
    pub(super) required: Option<RequiredText>,
    /// The lines of context before and after each.
    pub(super) context: usize,
    /// The lines without a match.
    pub(super) invert: bool,
    /// Count the matches in each line.
    pub(super) counts: bool,
    /// The content is likely to be searched again.
    pub(super) keeps_filters: bool,
    /// Set where a searched block has terminal escapes.
    pub(super) escapes: Arc<AtomicBool>,
}

impl Search {
    /// A search for the lines that match, of content that is searched among others.
    pub(super) fn lines(matcher: SharedMatcher, required: Option<RequiredText>) -> Self {
        Self {
            matcher,
            required,
            context: 0,
            invert: false,
            counts: false,
            keeps_filters: false,
            escapes: Arc::default(),
        }
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
    let count = found.entry.blocks.len();
    let blocks = match &search.required {
        Some(required) if !search.invert => {
            found.blocks_to_search(caller, required, search.context).await?
        }
        _ => std::iter::once(0..count).collect(),
    };

    let block_search = search.clone();
    let work = move |block, stop: &_| block::search(&block_search, block, stop);
    let searched =
        found.map_blocks(caller, blocks, search.keeps_filters, work).ready_chunks(MAX_JOINED);
    let mut searched = std::pin::pin!(searched);

    let mut gatherer = Gatherer::new(search, sink);
    let mut next = 0;
    while let Some(joined) = searched.next().await {
        let joined = joined.into_iter().collect::<Result<Vec<_>, _>>()?;
        let entry = Arc::clone(&found.entry);
        let gathering = Compute::queue(caller.as_str(), move |stop| {
            for (index, searched) in joined {
                if index > next {
                    gatherer.leave_out();
                }

                let block = entry.blocks[index];
                gatherer.add(block.first_line, block.offset, searched, stop);
                next = index + 1;
            }
            (gatherer, next)
        });

        (gatherer, next) = gathering.done().await?;
    }

    if next < count {
        gatherer.leave_out();
    }

    let last_line = found.entry.lines.saturating_sub(1);
    let finishing = Compute::queue(caller.as_str(), move |stop| gatherer.finish(last_line, stop));
    Ok(finishing.done().await?)
}
