//! What large content is, seen from its two ends: its format and shape, how
//! much there is of it, and how it begins and ends.
//!
//! The work is bounded by the size of the [`Sample`], whatever the size of the
//! content, and what was not looked at is never spoken of as if it had been.

mod csv;
mod excerpt;
mod format;
mod json;
mod shape;
pub mod words;

use serde_json::Value;

pub use excerpt::Excerpt;
pub use format::Format;
use words::{count, number};

/// How much of the beginning is looked at, in bytes.
pub const HEAD_BYTES: usize = 128 << 10;
/// How much of the end is looked at, in bytes.
pub const TAIL_BYTES: usize = 16 << 10;

/// What there is to look at.
#[derive(Debug, Clone, Copy)]
pub struct Sample<'a> {
    /// The media type, if anybody said it.
    pub mime_type: Option<&'a str>,
    /// Whether it is text rather than bytes.
    pub is_text: bool,
    /// The whole content's size in bytes.
    pub size: u64,
    /// How many lines the whole content has, where that is known.
    pub lines: Option<u64>,
    /// The first bytes: all of them where the content is no longer than that.
    pub head: &'a [u8],
    /// The last bytes.
    pub tail: &'a [u8],
    /// The whole value, where the content is JSON that is in memory anyway.
    pub value: Option<&'a Value>,
}

impl Sample<'_> {
    /// Whether all of it is looked at.
    fn is_whole(&self) -> bool {
        self.head.len() as u64 == self.size
    }

    /// The head as text, up to its last whole character.
    fn text(&self) -> &str {
        valid(self.head)
    }

    /// `the first 128 KiB`, for what was found out from there.
    fn looked_at(&self) -> String {
        format!("the first {}", count(self.head.len() as u64, "byte"))
    }
}

/// What content is and how it looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// What it is.
    pub format: Format,
    /// What can be said of it, a sentence each; with what was looked at where
    /// that was not all of it.
    pub facts: Vec<String>,
    /// How it begins.
    pub head: Option<Excerpt>,
    /// How it ends, where the head is not all.
    pub tail: Option<Excerpt>,
}

impl Preview {
    /// A preview in about so many bytes of text.
    pub fn of(sample: &Sample<'_>, budget: usize) -> Self {
        let format = Format::of(sample);
        let facts = match format {
            Format::Json => json::facts(sample, budget / 2),
            Format::JsonLines => json::facts_of_lines(sample, budget / 2),
            Format::Csv { delimiter } => csv::facts(sample, delimiter, budget / 2),
            Format::Text => Vec::new(),
            Format::Image { .. } | Format::Binary => format::facts(sample),
        };
        let used: usize = facts.iter().map(String::len).sum();
        let (head, tail) = if sample.is_text {
            excerpt::of(sample, budget.saturating_sub(used))
        } else {
            (None, None)
        };
        Self { format, facts, head, tail }
    }

    /// Adds what it has to say to a text: facts, then the two ends.
    pub fn write_to(&self, text: &mut String) {
        for fact in &self.facts {
            text.push('\n');
            text.push_str(fact);
        }
        self.write_ends_to(text);
    }

    /// The two ends alone.
    pub fn write_ends_to(&self, text: &mut String) {
        for Excerpt { label, text: lines, .. } in self.head.iter().chain(&self.tail) {
            text.push_str("\n\n");
            text.push_str(label);
            text.push_str(":\n");
            text.push_str(lines.trim_end_matches('\n'));
        }
    }

    /// Whether the excerpts are all there is.
    pub fn is_whole(&self) -> bool {
        self.head.as_ref().is_some_and(|head| head.is_whole)
    }

    /// The media type to go by where nobody said one.
    pub fn mime_type(&self) -> &'static str {
        self.format.mime_type()
    }
}

/// The beginning of these bytes that is text; a character that is cut at their
/// end is left out.
fn valid(bytes: &[u8]) -> &str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    }
}

/// `about 12,000`, from what part of it had so many.
fn estimate(seen: usize, in_bytes: usize, of: u64) -> String {
    let all = seen as u64 * of / (in_bytes.max(1) as u64);
    // Two digits are as much as such a guess is worth.
    let mut unit = 1;
    while all / unit >= 100 {
        unit *= 10;
    }
    format!("about {}", number(all / unit * unit))
}

#[cfg(test)]
mod tests;
