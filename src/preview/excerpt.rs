//! How text begins and ends: lines, cut where they are long.

use super::{
    Sample, valid,
    words::{count, cut, number},
};

/// The most that is shown of one line, in bytes.
const LINE_BYTES: usize = 400;

/// Some lines of the content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// Which lines they are, and whether any is cut.
    pub label: String,
    /// The lines.
    pub text: String,
    /// Whether this is the whole content, uncut.
    pub is_whole: bool,
}

/// Both ends, in at most so many bytes; the head gets two thirds of them.
pub(super) fn of(sample: &Sample<'_>, budget: usize) -> (Option<Excerpt>, Option<Excerpt>) {
    let text = sample.text();
    if text.is_empty() {
        return (None, None);
    }
    if sample.is_whole() && text.len() <= budget {
        let label = "All of it".to_owned();
        return (Some(Excerpt { label, text: text.to_owned(), is_whole: true }), None);
    }
    let head = head(sample, text, budget / 3 * 2);
    let tail = tail(sample, budget / 3, head.1);
    (Some(head.0), tail)
}

/// The first lines, and how many of them are shown whole.
fn head(sample: &Sample<'_>, text: &str, budget: usize) -> (Excerpt, u64) {
    let mut shown = Shown::default();
    for line in text.split_inclusive('\n') {
        if !shown.push(line, budget) {
            break;
        }
    }
    let of = match sample.lines {
        Some(lines) => format!("of {}", count(lines, "line")),
        None => "(how many there are was not counted)".to_owned(),
    };
    let label = match shown.lines {
        1 => format!("Line 1 {of}"),
        lines => format!("Lines 1-{} {of}", number(lines)),
    };
    let excerpt = Excerpt { label: label + shown.note(), text: shown.text, is_whole: false };
    (excerpt, shown.lines)
}

/// The last lines that the head does not show; nothing where there are none.
fn tail(sample: &Sample<'_>, budget: usize, already: u64) -> Option<Excerpt> {
    let begins_inside = sample.tail.len() as u64 != sample.size;
    // The first characters may be cut, and so may the first line.
    let from = sample.tail.iter().take(4).take_while(|b| **b & 0b1100_0000 == 0b1000_0000).count();
    let text = valid(&sample.tail[from..]);
    let lines: Vec<_> = text.split_inclusive('\n').collect();
    let whole_from = usize::from(begins_inside && lines.len() > 1);
    let left = sample.lines.map_or(usize::MAX, |lines| {
        usize::try_from(lines.saturating_sub(already)).unwrap_or(usize::MAX)
    });
    let mut used = 0;
    let mut taken = 0;
    for line in lines[whole_from..].iter().rev().take(left) {
        used += line.len().min(LINE_BYTES + 24) + 1;
        if used > budget && taken > 0 {
            break;
        }
        taken += 1;
    }
    let only_line = already == 1 && sample.lines == Some(1);
    if taken == 0 && !only_line {
        return None;
    }
    if only_line || (begins_inside && lines.len() == 1) {
        // One line without an end: its last bytes are what there is to show.
        let bytes = budget.min(LINE_BYTES).min(text.len());
        let end = &text[text.ceil_char_boundary(text.len() - bytes)..];
        let label = format!("The last {}", count(end.len() as u64, "byte"));
        return Some(Excerpt { label, text: end.to_owned(), is_whole: false });
    }
    let mut shown = Shown::default();
    for line in &lines[lines.len() - taken..] {
        shown.push(line, usize::MAX);
    }
    let label = match shown.lines {
        1 => "The last line".to_owned(),
        lines => format!("The last {}", count(lines, "line")),
    };
    Some(Excerpt { label: label + shown.note(), text: shown.text, is_whole: false })
}

#[derive(Default)]
struct Shown {
    text: String,
    lines: u64,
    is_cut: bool,
}

impl Shown {
    /// Adds a line, or what fits of it; says whether another one may.
    fn push(&mut self, line: &str, budget: usize) -> bool {
        let line = line.strip_suffix('\n').unwrap_or(line);
        let line = line.strip_suffix('\r').unwrap_or(line);
        let room = budget.saturating_sub(self.text.len());
        // One line at least, however little of it.
        if self.lines > 0 && line.len().min(LINE_BYTES) + 1 > room {
            return false;
        }
        let part = cut(line, LINE_BYTES.min(room.max(80)));
        self.text.push_str(part);
        if part.len() < line.len() {
            self.text.push('…');
            self.is_cut = true;
        }
        self.text.push('\n');
        self.lines += 1;
        true
    }

    fn note(&self) -> &'static str {
        if self.is_cut { ", long lines cut (…)" } else { "" }
    }
}
