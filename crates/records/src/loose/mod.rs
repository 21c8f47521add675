//! JSON that a strict parser refuses, as JSON: what was repaired is told. Runs over whole
//! content, and only where the strict lexer has failed.

mod parser;
mod repairs;
mod strings;

#[cfg(test)]
mod tests;

use super::{Layout, notes::Note};
use parser::{ParseEnd, Parser};
pub(crate) use repairs::{Repair, Repairs};

/// The most bytes of text before and after JSON.
const MAX_PROSE: usize = 4 << 10;
/// The most places at which JSON below a text is looked for.
const MAX_STARTS: usize = 20;
/// How often JSON text within JSON is unwrapped.
const MAX_UNWRAPPED: usize = 3;

/// Content that was changed to be readable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Converted {
    /// The division of the changed content into records.
    pub layout: Layout,
    /// The changed content.
    pub bytes: Vec<u8>,
    /// Notes about the changes.
    pub notes: Vec<Note>,
    /// Whether the records are rows of JSON with columns and rows apart, which jq gets as it is.
    pub is_for_tables: bool,
}

/// Whether a text seems to be JSON that needs repair. `is_whole`: the text is all of the content.
pub(crate) fn seems_json(text: &[u8], is_whole: bool) -> bool {
    let Some(found) = Found::new(text, is_whole) else { return false };
    found.has_container && (found.values > 1 || !found.repairs.is_empty())
}

/// Makes JSON of content that is JSON but for some faults. `None` if it is none.
pub(crate) fn repair(text: &[u8]) -> Option<Converted> {
    let mut found = Found::new(text, true)?;

    for _ in 0..MAX_UNWRAPPED {
        let Some(inner) = (found.values == 1).then(|| wrapped(&found.out)).flatten() else { break };
        let Some(mut unwrapped) = Found::new(inner.as_bytes(), true).filter(|f| f.has_container)
        else {
            break;
        };
        unwrapped.repairs.merge(&found.repairs);
        unwrapped.repairs.add(Repair::Unwrapped, 0);
        found = unwrapped;
    }

    if !found.has_container {
        return None;
    }

    let layout = if found.values > 1 { Layout::JsonLines } else { Layout::Json };
    let notes = found.repairs.notes();
    Some(Converted { layout, bytes: found.out, notes, is_for_tables: false })
}

/// Makes JSON of a single value, such as a record that a strict parser refuses.
pub fn repair_value(text: &[u8]) -> Option<Vec<u8>> {
    let mut parser = Parser::new(text);
    parser.value().ok()?;
    parser.pass_between();
    parser.peek().is_none().then_some(parser.out)
}

/// Makes JSON of a member of an object: its name, a colon, and its value.
pub fn repair_member(text: &[u8]) -> Option<Vec<u8>> {
    let object = repair_value(&[b"{", text, b"}"].concat())?;
    object.get(1..object.len() - 1).map(<[u8]>::to_vec)
}

/// Whether an object seems to have nothing but JSON as text.
pub(crate) fn seems_wrapped(text: &[u8]) -> bool {
    let rest = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text).trim_ascii_start();
    let after_key = || {
        let rest = rest.strip_prefix(b"{")?.trim_ascii_start().strip_prefix(b"\"")?;
        let end = rest.iter().take(80).position(|byte| matches!(byte, b'"' | b'\\'))?;
        rest[end..].strip_prefix(b"\"")?.trim_ascii_start().strip_prefix(b":")
    };

    let value = after_key().unwrap_or(rest).trim_ascii_start();
    let inner = value.strip_prefix(b"\"").map(|inner| {
        let mut inner = inner.trim_ascii_start();
        while let Some(rest) = inner.strip_prefix(b"\\n") {
            inner = rest.trim_ascii_start();
        }
        inner
    });
    inner.is_some_and(|inner| inner.starts_with(b"{") || inner.starts_with(b"["))
}

/// The JSON text that is the only member of an object, or the whole value.
fn wrapped(json: &[u8]) -> Option<String> {
    if !seems_wrapped(json) {
        return None;
    }

    match serde_json::from_slice(json).ok()? {
        serde_json::Value::String(text) => Some(text),
        serde_json::Value::Object(members) if members.len() == 1 => {
            match members.into_iter().next()?.1 {
                serde_json::Value::String(text) => Some(text),
                _ => None,
            }
        }
        _ => None,
    }
}

/// JSON values that were found in a text.
struct Found {
    /// The values; several have a line each.
    out: Vec<u8>,
    values: usize,
    /// Whether each value is a list or an object.
    has_container: bool,
    repairs: Repairs,
}

impl Found {
    fn new(text: &[u8], is_whole: bool) -> Option<Self> {
        let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
        if let Some(found) = Self::sequence(text, is_whole) {
            return Some(found);
        }
        if let Some(found) = Self::fenced(text, is_whole) {
            return Some(found);
        }
        Self::below_prose(text, is_whole)
    }

    /// Values one after another, and nothing else.
    fn sequence(text: &[u8], is_whole: bool) -> Option<Self> {
        let begins_json =
            |byte: &u8| matches!(byte, b'{' | b'[' | b'(' | b'"' | b'/' | b'#' | 0x1E);
        text.trim_ascii_start().first().filter(|byte| begins_json(byte))?;

        let mut parser = Parser::new(text);
        let mut values = 0;
        let mut has_container = true;

        loop {
            parser.pass_between();
            let start = parser.out.len();
            let Some(first) = parser.peek() else { break };

            match parser.value() {
                Ok(()) => {}
                Err(ParseEnd::End) if matches!(first, b'{' | b'[') => {
                    if is_whole {
                        parser.repairs.add(Repair::Cut, values);
                        parser.close(start);
                    }
                    parser.at = text.len();
                }
                Err(_) => return None,
            }

            if parser.out.len() == start {
                break;
            }
            let is_container = matches!(parser.out[start], b'{' | b'[');
            has_container &= is_container;
            parser.out.push(b'\n');
            values += 1;
            parser.ends_value()?;
        }

        if values == 0 {
            return None;
        }
        if values > 1 {
            parser.repairs.add(Repair::Several(values), 0);
        }
        let Parser { out, repairs, .. } = parser;
        let values = usize::try_from(values).ok()?;
        Some(Self { out, values, has_container, repairs })
    }

    /// The first block of Markdown that is JSON.
    fn fenced(text: &[u8], is_whole: bool) -> Option<Self> {
        let mut rest = text;
        for _ in 0..MAX_STARTS {
            let fence = find(rest, b"```")?;
            let line_end = fence + memchr::memchr(b'\n', &rest[fence..])? + 1;
            let body = &rest[line_end..];
            let end = find(body, b"```");
            let block = &body[..end.unwrap_or(body.len())];

            // A block that is not closed may be cut, as the sample is.
            let is_closed = end.is_some() || is_whole;
            if let Some(mut found) = Self::sequence(block, is_closed).filter(|f| f.has_container) {
                found.repairs.add(Repair::Fence, 0);
                return Some(found);
            }
            rest = &body[end? + 3..];
        }
        None
    }

    /// A value that begins a line below a text, and is most of the content.
    fn below_prose(text: &[u8], is_whole: bool) -> Option<Self> {
        let head = &text[..text.len().min(MAX_PROSE)];
        let line_starts =
            std::iter::once(0).chain(memchr::memchr_iter(b'\n', head).map(|at| at + 1));
        let starts = line_starts.filter(|at| matches!(text.get(*at), Some(b'{' | b'[')));
        // `Result: {` has its value in the line of the text.
        let in_line = memchr::memchr2(b'{', b'[', head).filter(|at| head[..*at].ends_with(b": "));

        for start in starts.chain(in_line).take(MAX_STARTS) {
            let mut parser = Parser::new(&text[start..]);
            let result = parser.value();
            let is_cut = matches!(result, Err(ParseEnd::End)) && !is_whole;
            if result.is_err() && !is_cut {
                continue;
            }

            let left_out = text.len() - parser.position();
            let rest = &text[text.len() - (left_out - start)..];
            let is_tail = rest.len() <= MAX_PROSE && !rest.trim_ascii_start().starts_with(b"{");
            let is_main = parser.position() * 2 > text.len();
            if !is_cut && (!is_tail || !is_main) {
                continue;
            }

            parser.out.push(b'\n');
            let left_out = left_out as u64;
            parser.repairs.add(Repair::Prose(left_out), 0);
            let Parser { out, repairs, .. } = parser;
            return Some(Self { out, values: 1, has_container: true, repairs });
        }
        None
    }
}

fn find(text: &[u8], needle: &[u8]) -> Option<usize> {
    memchr::memmem::find(text, needle)
}
