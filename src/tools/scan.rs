//! Ripgrep's engine over stored content: linear in it whatever the pattern,
//! streamed block by block, off the threads that serve connections.

use std::io;

use bytes::Bytes;
use futures_util::StreamExt;
use grep_regex::RegexMatcher;
use grep_searcher::{SearcherBuilder, Sink};
use tokio::sync::mpsc;

use crate::{preview::words::number, registry::ToolError, store::Found};

/// The longest line that is searched: it has to be in memory as a whole.
const LONGEST_LINE: usize = 64 << 20;

/// Streams the content to a thread that searches it. Ends soon when dropped.
pub(super) async fn scan<S>(
    found: &Found,
    matcher: RegexMatcher,
    context: usize,
    mut sink: S,
) -> Result<S, ToolError>
where
    S: Sink<Error = io::Error> + Send + 'static,
{
    // A few blocks ahead of the search, no more.
    let (sender, receiver) = mpsc::channel::<Bytes>(4);
    let searching = tokio::task::spawn_blocking(move || {
        let mut searcher = SearcherBuilder::new()
            .line_number(true)
            .before_context(context)
            .after_context(context)
            .heap_limit(Some(LONGEST_LINE))
            .build();
        let reader = Blocks { receiver, block: Bytes::new() };
        searcher.search_reader(&matcher, reader, &mut sink).map(|()| sink)
    });
    let mut blocks = std::pin::pin!(found.stream());
    let mut failed = None;
    while let Some(block) = blocks.next().await {
        match block {
            Ok(block) => {
                if sender.send(block).await.is_err() {
                    break;
                }
            }
            Err(error) => {
                failed = Some(error);
                break;
            }
        }
    }
    // The search ends when nothing more can come.
    drop(sender);
    let searched = searching.await;
    if let Some(error) = failed {
        return Err(error.into());
    }
    match searched {
        Ok(Ok(sink)) => Ok(sink),
        Ok(Err(error)) => {
            tracing::info!(%error, "a search ended early");
            Err(ToolError::new(format!(
                "A line is longer than {} bytes and cannot be searched. Read parts of it with read_resource and unit \"bytes\".",
                number(LONGEST_LINE as u64)
            )))
        }
        Err(error) => {
            tracing::error!(%error, "a search panicked");
            Err(ToolError::new("The search failed with an internal error."))
        }
    }
}

/// The content as the searching thread reads it.
struct Blocks {
    receiver: mpsc::Receiver<Bytes>,
    block: Bytes,
}

impl io::Read for Blocks {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.block.is_empty() {
            match self.receiver.blocking_recv() {
                Some(block) => self.block = block,
                None => return Ok(0),
            }
        }
        let length = buffer.len().min(self.block.len());
        buffer[..length].copy_from_slice(&self.block.split_to(length));
        Ok(length)
    }
}

/// A line as it is shown: all of it, or so many bytes around what was found,
/// with how much is left out.
pub(super) fn shown_of_line(line: &[u8], around: usize, most: usize) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let (start, end) = if line.len() <= most {
        (0, line.len())
    } else {
        let boundary = |mut at: usize| {
            while at > 0 && at < line.len() && line[at] & 0b1100_0000 == 0b1000_0000 {
                at -= 1;
            }
            at
        };
        let start = around.saturating_sub(most / 4).min(line.len() - most);
        (boundary(start), boundary(start + most))
    };
    let part = String::from_utf8_lossy(&line[start..end]);
    let left = |bytes: usize| format!("…[{} bytes]", number(bytes as u64));
    let before = if start > 0 { left(start) + " " } else { String::new() };
    let after =
        if end < line.len() { format!(" {}", left(line.len() - end)) } else { String::new() };
    format!("{before}{part}{after}")
}

/// A pattern that finds just that text.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() * 2);
    for c in text.chars() {
        if r"\.+*?()|[]{}^$#&-~".contains(c) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}
