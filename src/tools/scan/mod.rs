//! Ripgrep's engine over stored content: linear in it whatever the pattern.
//!
//! Several blocks are searched at once, each where and when it is unpacked, so
//! that it is read from memory once. What was found is told in the order of
//! the content, with the lines that cross blocks put together.

mod block;
mod gather;

use futures_util::StreamExt;
use grep_regex::RegexMatcher;

use self::gather::Gather;
use crate::{compute::Compute, handler::ToolError, preview::words::number, store::Found};

/// The longest line that is searched: it has to be in memory as a whole.
const LONGEST_LINE: usize = 64 << 20;

/// Is told what a search finds. Lines are counted from 1 and come with their
/// line feed.
pub(super) trait Report: Send + 'static {
    /// A line that matches.
    fn matched(&mut self, line: u64, text: &[u8]);

    /// One beside it that does not.
    fn context(&mut self, _line: u64, _text: &[u8]) {}

    /// Lines are left out between the last one and the next. Only where context is asked for.
    fn gap(&mut self) {}
}

/// Searches text. Ends soon when dropped.
///
/// # Errors
/// When it cannot be read, or has a line that cannot be searched.
pub(super) async fn scan<R: Report>(
    found: &Found,
    matcher: RegexMatcher,
    context: usize,
    report: R,
) -> Result<R, ToolError> {
    let of_blocks = matcher.clone();
    let searched = found.stream_through(move |block| block::search(&of_blocks, block));
    let mut searched = std::pin::pin!(searched.enumerate());
    let mut gather = Gather::new(matcher, context, report);
    while let Some((at, block)) = searched.next().await {
        let (block, first_line) = (block?, found.entry.blocks[at].first_line);
        if gather.open_line() + block.head() > LONGEST_LINE {
            return Err(ToolError::new(format!(
                "A line is longer than {} bytes and cannot be searched. Read parts of it with read_resource and unit \"bytes\".",
                number(LONGEST_LINE as u64)
            )));
        }
        let work = gather.work(&block);
        let gathering = Compute::run(work, move || {
            gather.take(first_line, block);
            gather
        });
        gather = gathering.done().await;
    }
    let last_line = found.entry.lines.saturating_sub(1);
    let finishing = Compute::run(gather.open_line(), move || gather.finish(last_line));
    Ok(finishing.done().await)
}
