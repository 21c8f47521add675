//! [`Excerpt`]: the first or the last lines of a text. Long lines are cut.

use super::{Sample, valid_utf8};
use crate::words::{count, cut, number};

/// The maximum part of one line that is shown, in bytes.
const MAX_LINE_BYTES: usize = 400;

/// An excerpt of the content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// The lines that the excerpt shows, in words, and whether any is cut.
    pub label: String,
    /// The lines.
    pub text: String,
    /// Whether the excerpt is the complete content.
    pub is_whole: bool,
    /// The first lines of the content that it shows whole.
    pub lines: u64,
    /// The first bytes of the content that it shows, up to the first part that it leaves out.
    pub bytes: usize,
}

/// Head and tail, in at most `budget` bytes; the head gets two thirds.
pub(super) fn ends(sample: &Sample<'_>, budget: usize) -> (Option<Excerpt>, Option<Excerpt>) {
    let text = sample.text();
    if text.is_empty() {
        return (None, None);
    }

    if sample.is_whole() && text.len() <= budget {
        let label = "All of it".to_owned();
        let (lines, bytes) = (text.lines().count() as u64, text.len());
        return (
            Some(Excerpt { label, text: text.to_owned(), is_whole: true, lines, bytes }),
            None,
        );
    }

    let (excerpt, head_lines) = head(sample, text, budget / 3 * 2);
    let tail = tail(sample, budget / 3, head_lines);
    (Some(excerpt), tail)
}

/// The first lines, and their number.
fn head(sample: &Sample<'_>, text: &str, budget: usize) -> (Excerpt, u64) {
    let mut shown = ShownLines::default();
    for line in text.split_inclusive('\n') {
        if !shown.push(line, budget) {
            break;
        }
    }

    let total = match sample.lines {
        Some(lines) => format!("of {}", count(lines, "line")),
        None => "(the total was not counted)".to_owned(),
    };
    let label = match shown.count {
        1 => format!("Line 1 {total}"),
        lines => format!("Lines 1-{} {total}", number(lines)),
    };

    let count = shown.count;
    (shown.excerpt(label), count)
}

/// The last lines that are not among the first `head_lines`, if there are any.
fn tail(sample: &Sample<'_>, budget: usize, head_lines: u64) -> Option<Excerpt> {
    let is_partial = sample.tail.len() as u64 != sample.size;
    // A partial tail may start within a character and within a line.
    let start = sample.tail.iter().take(4).take_while(|b| **b & 0b1100_0000 == 0b1000_0000).count();
    let text = valid_utf8(&sample.tail[start..]);

    let lines: Vec<_> = text.split_inclusive('\n').collect();
    let first_complete = usize::from(is_partial && lines.len() > 1);
    let available = sample.lines.map_or(usize::MAX, |lines| {
        usize::try_from(lines.saturating_sub(head_lines)).unwrap_or(usize::MAX)
    });

    let mut used = 0;
    let mut taken = 0;
    for line in lines[first_complete..].iter().rev().take(available) {
        used += line.len().min(MAX_LINE_BYTES + 24) + 1;
        if used > budget && taken > 0 {
            break;
        }
        taken += 1;
    }

    let only_line = head_lines == 1 && sample.lines == Some(1);
    if taken == 0 && !only_line {
        return None;
    }

    if only_line || (is_partial && lines.len() == 1) {
        // A part of one long line: shows its last bytes.
        let bytes = budget.min(MAX_LINE_BYTES).min(text.len());
        let end = &text[text.ceil_char_boundary(text.len() - bytes)..];
        let label = format!("The last {}", count(end.len() as u64, "byte"));
        let text = end.to_owned();
        return Some(Excerpt { label, text, is_whole: false, lines: 0, bytes: 0 });
    }

    let mut shown = ShownLines::default();
    for line in &lines[lines.len() - taken..] {
        shown.push(line, usize::MAX);
    }
    let label = match shown.count {
        1 => "The last line".to_owned(),
        lines => format!("The last {}", count(lines, "line")),
    };
    Some(Excerpt { lines: 0, bytes: 0, ..shown.excerpt(label) })
}

/// The lines that an excerpt shows.
#[derive(Default)]
struct ShownLines {
    text: String,
    count: u64,
    is_cut: bool,
    /// The lines and bytes before the first part of a line that is cut.
    whole_lines: u64,
    whole_bytes: usize,
}

impl ShownLines {
    /// Adds a line, cut to the budget. Returns `false` if the budget is used up.
    fn push(&mut self, line: &str, budget: usize) -> bool {
        let with_newline = line;
        let without_newline = line.strip_suffix('\n').unwrap_or(line);
        let line = without_newline.strip_suffix('\r').unwrap_or(without_newline);
        let room = budget.saturating_sub(self.text.len());
        // Shows at least a part of the first line.
        if self.count > 0 && line.len().min(MAX_LINE_BYTES) + 1 > room {
            return false;
        }

        let part = cut(line, MAX_LINE_BYTES.min(room.max(80)));
        self.text.push_str(part);
        let is_cut = part.len() < line.len();

        if !self.is_cut {
            self.whole_lines += u64::from(!is_cut);
            self.whole_bytes += if is_cut { part.len() } else { with_newline.len() };
        }
        if is_cut {
            self.text.push('…');
            self.is_cut = true;
        }

        self.text.push('\n');
        self.count += 1;
        true
    }

    fn excerpt(self, label: String) -> Excerpt {
        let label = label + self.note();
        let Self { text, whole_lines: lines, whole_bytes: bytes, .. } = self;
        Excerpt { label, text, is_whole: false, lines, bytes }
    }

    fn note(&self) -> &'static str {
        if self.is_cut { ", long lines cut (…)" } else { "" }
    }
}
