//! Searches stored content with ripgrep's engine: in linear time for any pattern.
//!
//! Several blocks are searched at once, each right after it is decompressed, so
//! that it is read from memory once. Lines that cross blocks are joined, and
//! matches are reported in the order of the content.

mod block;
mod gather;

use std::sync::Arc;

use futures_util::StreamExt;

use self::gather::Gatherer;
use super::regex::SharedMatcher;
use crate::{
    auth::Owner,
    compute::Compute,
    handler::ToolError,
    preview::words::number,
    store::{StoreError, StoredResource},
};

/// The longest line that can be searched, in bytes: it must fit into memory.
const MAX_LINE_BYTES: usize = 64 << 20;

/// Receives the lines that a search finds. Lines count from 1 and include their
/// line feed.
pub(super) trait LineSink: Send + 'static {
    /// A line that matches.
    fn matched(&mut self, line: u64, text: &[u8]);

    /// A line of context, which does not match.
    fn context(&mut self, _line: u64, _text: &[u8]) {}

    /// A gap between the last line and the next. Called only if context was
    /// requested.
    fn gap(&mut self) {}
}

/// Searches a resource's text, as work of `caller`. Dropping the future stops the
/// search soon.
///
/// # Errors
/// When the content cannot be read, or has a line that is too long.
pub(super) async fn scan<K: LineSink>(
    caller: &Owner,
    found: &StoredResource,
    matcher: SharedMatcher,
    context: usize,
    sink: K,
) -> Result<K, ToolError> {
    let block_matcher = Arc::clone(&matcher);
    let search = move |block, stop: &_| block::search(&block_matcher, block, stop);
    let searched = found.map_blocks(caller, search);
    let mut searched = std::pin::pin!(searched.enumerate());
    let mut gatherer = Gatherer::new(matcher, context, sink);
    while let Some((index, block)) = searched.next().await {
        let (block, first_line) = (block?, found.entry.blocks[index].first_line);
        if gatherer.partial_line_len() + block.head_len() > MAX_LINE_BYTES {
            return Err(ToolError::new(format!(
                "A line is longer than {} bytes, the limit of a search. Read parts of it with read_resource and unit \"bytes\".",
                number(MAX_LINE_BYTES as u64)
            )));
        }
        let gathering = Compute::queue(caller.as_str(), move |stop| {
            gatherer.add(first_line, block, stop);
            gatherer
        });
        gatherer = gathering.done().await.map_err(StoreError::from)?;
    }
    let last_line = found.entry.lines.saturating_sub(1);
    let finishing = Compute::queue(caller.as_str(), move |stop| gatherer.finish(last_line, stop));
    Ok(finishing.done().await.map_err(StoreError::from)?)
}
