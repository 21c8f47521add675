//! Lines of text.

use larder_protocol::json_size;
use larder_records::words::cut;
use larder_store::store::{StoredResource, WindowEnd};
use serde::Serialize;

use super::table::PART_BYTES;
use crate::handler::ToolError;

/// The longest line that is sent, in bytes.
const MAX_LINE_BYTES: usize = 4_000;
/// The most bytes that are read for one part.
const READ_BYTES: usize = 128 << 10;

/// Consecutive lines.
#[derive(Debug, Serialize)]
pub(super) struct LineWindow {
    lines: Vec<ShownLine>,
    /// The number of the first line, from 0.
    offset: u64,
    total: u64,
}

/// A line as it is, or the beginning of a long one.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum ShownLine {
    Whole(String),
    Long {
        text: String,
        /// The bytes of the line, as far as they were read.
        bytes: usize,
    },
}

/// Lines from `offset` on.
pub(super) async fn window(
    found: &StoredResource,
    offset: u64,
    limit: u64,
) -> Result<LineWindow, ToolError> {
    let window = found.lines(offset, limit, READ_BYTES).await?;
    let text = String::from_utf8_lossy(&window.bytes);
    let mut lines: Vec<&str> = text.split('\n').collect();
    // An empty text after the last line feed is no line, unless the window ends within a line.
    if lines.last() == Some(&"") && !matches!(window.end, WindowEnd::Byte(_)) {
        lines.pop();
    }

    let mut bytes = 0;
    let mut sent: Vec<ShownLine> = Vec::new();
    for text in lines {
        let text = text.strip_suffix('\r').unwrap_or(text);
        let line = if text.len() <= MAX_LINE_BYTES {
            ShownLine::Whole(text.to_owned())
        } else {
            ShownLine::Long { text: cut(text, MAX_LINE_BYTES).to_owned(), bytes: text.len() }
        };

        bytes += json_size(&line) + 1;
        if bytes > PART_BYTES && !sent.is_empty() {
            break;
        }
        sent.push(line);
    }

    Ok(LineWindow { lines: sent, offset, total: found.entry.lines })
}
