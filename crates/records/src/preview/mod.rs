//! Previews of large content: its format, shape and size, its first and last
//! lines.
//!
//! The work is bounded by the size of the [`Sample`], not of the content. A
//! preview says which part of the content each fact is based on.

mod columns;
mod csv;
mod excerpt;
mod format;
mod json;
mod shape;

use serde_json::Value;

pub use self::csv::{declared_table, possible_table};
pub(crate) use json::is_value as is_json_value;

pub use crate::words;
use crate::words::{count, number};
pub use columns::Columns;
pub use excerpt::Excerpt;
pub use format::Format;

/// The size of a sample's head in bytes.
pub const HEAD_BYTES: usize = 128 << 10;
/// The size of a sample's tail in bytes.
pub const TAIL_BYTES: usize = 16 << 10;

/// The bytes of previews that are short.
const SHORT_BYTES: usize = 1_000;

/// The parts of a content that a preview is made from.
#[derive(Debug, Clone, Copy)]
pub struct Sample<'a> {
    /// The declared media type, if any.
    pub mime_type: Option<&'a str>,
    /// Whether the content is text (UTF-8).
    pub is_text: bool,
    /// The size of the complete content in bytes.
    pub size: u64,
    /// The number of lines of the complete content, if known.
    pub lines: Option<u64>,
    /// The first bytes; all of them if the content is short.
    pub head: &'a [u8],
    /// The last bytes.
    pub tail: &'a [u8],
    /// The parsed content, if it is JSON that is already in memory.
    pub value: Option<&'a Value>,
}

impl<'a> Sample<'a> {
    /// A sample of text of no declared type.
    pub(crate) fn of_text(head: &'a [u8], is_whole: bool) -> Self {
        let size = if is_whole { head.len() as u64 } else { u64::MAX };
        Self { mime_type: None, is_text: true, size, lines: None, head, tail: head, value: None }
    }

    /// Whether the head is the complete content.
    fn is_whole(&self) -> bool {
        self.head.len() as u64 == self.size
    }

    /// The head as text, up to its last complete character.
    pub(crate) fn text(&self) -> &'a str {
        valid_utf8(self.head)
    }

    /// `the first 131,072 bytes`, for facts that are based on the head.
    fn description(&self) -> String {
        format!("the first {}", count(self.head.len() as u64, "byte"))
    }
}

/// The preview of a content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// The format of the content.
    pub format: Format,
    /// Facts about the content, one sentence each. A fact that is based on a
    /// part of the content says so.
    pub facts: Vec<String>,
    /// The first lines.
    pub head: Option<Excerpt>,
    /// The last lines, unless the head shows everything.
    pub tail: Option<Excerpt>,
}

impl Preview {
    /// Makes a preview of about `budget` bytes of text.
    pub fn new(sample: &Sample<'_>, budget: usize) -> Self {
        let format = Format::detect(sample);
        // A short preview shows a record rather than more of the shape.
        let of_facts = if budget < SHORT_BYTES { budget / 4 } else { budget / 2 };
        let facts = match format {
            Format::Json => json::facts(sample, of_facts),
            Format::JsonLines => json::facts_of_lines(sample, of_facts),
            Format::Csv(dialect) => csv::facts(sample, dialect, of_facts),
            Format::LooseJson => json::facts_of_loose(sample, of_facts),
            Format::Text => Vec::new(),
            Format::Image { .. } | Format::Binary => format::facts(sample),
        };

        let used: usize = facts.iter().map(String::len).sum();
        let (head, tail) = if sample.is_text {
            excerpt::ends(sample, budget.saturating_sub(used).max(budget / 3))
        } else {
            (None, None)
        };

        Self { format, facts, head, tail }
    }

    /// Appends facts, head and tail to a text.
    pub fn write_to(&self, text: &mut String) {
        for fact in &self.facts {
            text.push('\n');
            text.push_str(fact);
        }
        self.write_excerpts_to(text, usize::MAX);
    }

    /// Appends the head to a text, and the tail if both take at most `room` bytes.
    pub fn write_excerpts_to(&self, text: &mut String, room: usize) {
        let bytes = |excerpt: &Excerpt| excerpt.label.len() + excerpt.text.len() + 4;
        let used: usize = self.head.iter().chain(&self.tail).map(bytes).sum();
        let tail = self.tail.as_ref().filter(|_| used <= room || self.head.is_none());

        for Excerpt { label, text: lines, .. } in self.head.iter().chain(tail) {
            text.push_str("\n\n");
            text.push_str(label);
            text.push_str(":\n");
            text.push_str(lines.trim_end_matches('\n'));
        }
    }

    /// Whether the head is the complete content.
    pub fn is_whole(&self) -> bool {
        self.head.as_ref().is_some_and(|head| head.is_whole)
    }

    /// The media type to use if none is declared.
    pub fn mime_type(&self) -> &'static str {
        self.format.mime_type()
    }
}

/// The longest prefix that is valid UTF-8. A character that is cut at the end is
/// left out.
fn valid_utf8(bytes: &[u8]) -> &str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    }
}

/// `about 12,000`: the total in `size` bytes, extrapolated from `counted` in the
/// first `bytes`.
fn estimate(counted: usize, bytes: usize, size: u64) -> String {
    let total = counted as u64 * size / (bytes.max(1) as u64);

    // An estimate is not more precise than two digits.
    let mut unit = 1;
    while total / unit >= 100 {
        unit *= 10;
    }
    format!("about {}", number(total / unit * unit))
}

#[cfg(test)]
mod tests;
