//! [`Locator`]: the records and the JSON Pointers of bytes in content.

use std::{collections::VecDeque, ops::Range};

use super::{
    Fault, Layout, Pointer, Record, Scanner,
    lexer::{Lexer, Token, TokenKind},
};

/// The location of a byte in structured content. A field is `None` if it is not known or
/// does not exist: a header row is no record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Location {
    /// The number of the record.
    pub record: Option<u64>,
    /// In JSON, the value that has the record: the value of [`Locator::with_records`] if it
    /// is around the byte, or else the outermost list, or else the outermost object.
    pub at: Pointer,
    /// In JSON, the innermost value around the byte.
    pub pointer: Option<Pointer>,
    /// The bytes of the record, with its key if it is a member of an object. In JSON they are known
    /// only of the first location, if [`Locator::with_extent`] allows their number.
    pub extent: Option<Range<u64>>,
}

/// Locates bytes of content that comes in blocks.
#[derive(Debug)]
pub struct Locator {
    content: LayoutLocator,
    /// The offsets that are not yet located, in ascending order.
    wanted: VecDeque<u64>,
    found: Vec<Location>,
}

#[derive(Debug)]
enum LayoutLocator {
    Json(JsonLocator),
    Other(Box<Scanner>),
}

impl Locator {
    /// A locator of the bytes at these offsets, which are in ascending order.
    pub fn new(layout: Layout, offsets: Vec<u64>) -> Self {
        let content = match layout {
            Layout::Json => LayoutLocator::Json(JsonLocator {
                lexer: Lexer::new(),
                open: Vec::new(),
                records: None,
                scanned: 0,
                longest: 0,
                first: None,
            }),
            _ => LayoutLocator::Other(Box::new(Scanner::new(layout, Pointer::default()))),
        };

        Self { content, found: Vec::with_capacity(offsets.len()), wanted: offsets.into() }
    }

    /// Sets the pointer to the value that has the records, in JSON.
    #[must_use]
    pub fn with_records(mut self, at: Pointer) -> Self {
        if let LayoutLocator::Json(json) = &mut self.content {
            json.records = Some(at);
        }
        self
    }

    /// Finds the extent of the first record, if it has at most so many bytes.
    #[must_use]
    pub fn with_extent(mut self, longest: u64) -> Self {
        if let LayoutLocator::Json(json) = &mut self.content {
            json.longest = longest;
        }
        self
    }

    /// Whether all bytes are located: further blocks are not needed.
    pub fn is_done(&self) -> bool {
        let is_open = matches!(&self.content, LayoutLocator::Json(json) if json.first.is_some());
        self.wanted.is_empty() && !is_open
    }

    /// Scans the next block.
    ///
    /// # Errors
    /// The content is not JSON, or is nested too deeply.
    pub fn feed(&mut self, block: &[u8]) -> Result<(), Fault> {
        let wanted = &mut self.wanted;
        let found = &mut self.found;

        match &mut self.content {
            LayoutLocator::Other(scanner) => {
                scanner.feed(block, |record| locate(record, wanted, found))?;
            }
            LayoutLocator::Json(json) => {
                let mut at = 0;
                while !wanted.is_empty() || json.first.is_some() {
                    let Some(token) = json.lexer.next(block, &mut at)? else { break };
                    while wanted.pop_front_if(|offset| *offset < token.offset).is_some() {
                        let (location, first) = json.location();
                        if found.is_empty() {
                            json.first = first.filter(|_| json.longest > 0);
                        }
                        found.push(location);
                    }

                    json.token(token);
                    if let Some(extent) = json.end_of_first(token)
                        && let Some(first) = found.first_mut()
                    {
                        first.extent = Some(extent);
                    }
                }
                json.end_block(block.len());
            }
        }
        Ok(())
    }

    /// Ends the content. The locations, in the order of the offsets. Locations after a
    /// fault are not known.
    pub fn finish(mut self) -> Vec<Location> {
        let total = self.found.len() + self.wanted.len();
        if let LayoutLocator::Other(scanner) = &mut self.content {
            // Only JSON has faults.
            let _ = scanner.finish(|record| locate(record, &mut self.wanted, &mut self.found));
        }

        self.found.resize(total, Location::default());
        self.found
    }
}

/// Locates the offsets up to the end of a record.
fn locate(record: Record, wanted: &mut VecDeque<u64>, found: &mut Vec<Location>) {
    while let Some(offset) = wanted.pop_front_if(|offset| *offset <= record.end) {
        let record = Some(&record).filter(|record| offset >= record.start);
        let extent = record.map(|record| record.start..record.end);
        let record = record.map(|record| record.number);
        found.push(Location { record, extent, ..Location::default() });
    }
}

/// The open containers at a position in JSON.
#[derive(Debug)]
struct JsonLocator {
    lexer: Lexer,
    open: Vec<OpenContainer>,
    /// The value that has the records.
    records: Option<Pointer>,
    /// The bytes of the blocks so far.
    scanned: u64,
    /// The longest extent to find.
    longest: u64,
    /// The record of the first location, until it ends.
    first: Option<OpenRecord>,
}

/// A record that has begun.
#[derive(Debug, Clone, Copy)]
struct OpenRecord {
    start: u64,
    /// The number of open containers around it.
    depth: usize,
}

#[derive(Debug)]
struct OpenContainer {
    is_object: bool,
    /// The number of its items or members that have begun.
    begun: u64,
    /// The offset of the last of them.
    start: u64,
    /// The key of the last member, if its value is a container.
    key: Option<String>,
}

impl JsonLocator {
    fn token(&mut self, token: Token) {
        let innermost = self.open.last_mut();
        match token.kind {
            TokenKind::Key => {
                self.lexer.capture_key();
                if let Some(object) = innermost {
                    object.begin(token.offset);
                    object.key = None;
                }
            }
            TokenKind::List | TokenKind::Object => {
                match innermost {
                    Some(object) if object.is_object => object.key = self.lexer.key(),
                    Some(list) => list.begin(token.offset),
                    None => {}
                }

                let is_object = token.kind == TokenKind::Object;
                self.open.push(OpenContainer { is_object, begun: 0, start: 0, key: None });
            }
            TokenKind::Scalar => {
                if let Some(list) = innermost.filter(|open| !open.is_object) {
                    list.begin(token.offset);
                }
            }
            TokenKind::End => self.open.truncate(self.lexer.depth()),
        }
    }

    /// The extent of the first record, if this token ends it.
    fn end_of_first(&mut self, token: Token) -> Option<Range<u64>> {
        let first = self.first?;
        if token.kind != TokenKind::End || self.lexer.depth() > first.depth {
            return None;
        }

        self.first = None;
        let is_short = token.offset - first.start <= self.longest;
        is_short.then_some(first.start..token.offset)
    }

    /// Gives up a first record that is too long.
    fn end_block(&mut self, len: usize) {
        self.scanned += len as u64;
        let Self { scanned, longest, .. } = *self;
        self.first.take_if(|first| scanned - first.start > longest);
    }

    /// The location of the next byte, and its record.
    fn location(&self) -> (Location, Option<OpenRecord>) {
        let mut record = None;
        let mut location = Location::default();
        let mut pointer = Pointer::default();
        let mut is_known = false;

        for (depth, open) in self.open.iter().enumerate() {
            let Some(last) = open.begun.checked_sub(1) else { break };
            let has_records = self.records.as_ref() == Some(&pointer);
            if has_records || (!is_known && (!open.is_object || depth == 0)) {
                is_known = has_records || !open.is_object;
                location.record = Some(last);
                location.at = pointer.clone();
                record = Some(OpenRecord { start: open.start, depth: depth + 1 });
            }

            if !open.is_object {
                pointer.push(last.to_string());
                continue;
            }

            match open.key.clone().or_else(|| self.lexer.key()) {
                Some(key) => pointer.push(key),
                None => return (location, record),
            }
        }

        location.pointer = Some(pointer);
        (location, record)
    }
}

impl OpenContainer {
    /// Counts an item or a member.
    fn begin(&mut self, offset: u64) {
        self.begun += 1;
        self.start = offset;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::Dialect;

    fn locate_all(layout: Layout, text: &str, block: usize) -> Vec<Location> {
        let offsets = text.match_indices('?').map(|(index, _)| index as u64).collect();
        let mut locator = Locator::new(layout, offsets);
        for block in text.as_bytes().chunks(block) {
            locator.feed(block).unwrap();
        }
        locator.finish()
    }

    #[test]
    fn bytes_of_json_have_a_pointer_and_the_record_of_the_outermost_list() {
        for (text, expected) in [
            (
                r#"[{"a": 1}, {"b": {"c/d": "?"}, "e": "?"}]"#,
                vec![(1, "", "/1/b/c~1d"), (1, "", "/1/e")],
            ),
            (
                r#"{"x": 0, "data": [[], ["?", "?"]]}"#,
                vec![(1, "/data", "/data/1/0"), (1, "/data", "/data/1/1")],
            ),
            (r#"{"x": {"?y": 0}, "z": "?"}"#, vec![(0, "", "/x/?y"), (1, "", "/z")]),
            (r#"[{"a": [0, {"b": 1}], "c": "?"}]"#, vec![(0, "", "/0/c")]),
        ] {
            for block in [1, 3, 1_000] {
                let found = locate_all(Layout::Json, text, block);
                let found: Vec<_> = found
                    .iter()
                    .map(|l| {
                        let pointer = l.pointer.clone().unwrap();
                        (l.record.unwrap(), l.at.to_string(), pointer.to_string())
                    })
                    .collect();

                let expected: Vec<_> =
                    expected.iter().map(|(n, at, p)| (*n, at.to_string(), p.to_string())).collect();
                assert_eq!(found, expected, "{text}");
            }
        }
    }

    #[test]
    fn records_that_are_known_take_precedence_where_they_contain_the_byte() {
        let text = br#"{"a": {"b": [1, "?"]}, "c": {"b": [{"d": ["?"]}]}}"#;
        let offsets: Vec<_> =
            (0..).zip(text).filter(|(_, b)| **b == b'?').map(|(at, _)| at).collect();

        for (records, expected) in [("", [(0, ""), (1, "")]), ("/c/b", [(1, "/a/b"), (0, "/c/b")])]
        {
            let mut locator = Locator::new(Layout::Json, offsets.clone());
            locator = locator.with_records(records.parse().unwrap());
            locator.feed(text).unwrap();

            let found = locator.finish();
            let found: Vec<_> =
                found.iter().map(|l| (l.record.unwrap(), l.at.to_string())).collect();
            let expected: Vec<_> = expected.iter().map(|(n, at)| (*n, at.to_string())).collect();
            assert_eq!(found, expected, "{records}");
        }
    }

    #[test]
    fn the_first_record_has_an_extent_unless_it_is_too_long() {
        for (text, records, expected) in [
            (r#"{"items": [{"x": 1}, {"x": "?"}], "n": 2}"#, "/items", r#"{"x": "?"}"#),
            (
                r#"{"items": [1], "meta": {"note": "?"}, "n": 2}"#,
                "/items",
                r#""meta": {"note": "?"}"#,
            ),
            (r#"{"items": [1], "?": 7}"#, "/items", r#""?": 7"#),
            (r#"[[0], "?" , 1]"#, "", r#""?""#),
            (r#"[1, [2, ["?", 3]]]"#, "", r#"[2, ["?", 3]]"#),
        ] {
            let offset = text.find('?').unwrap() as u64;
            for (block, longest) in [(1, 100), (3, 100), (1_000, 100), (1, 2)] {
                let locator = Locator::new(Layout::Json, vec![offset]).with_extent(longest);
                let mut locator = locator.with_records(records.parse().unwrap());
                for block in text.as_bytes().chunks(block) {
                    locator.feed(block).unwrap();
                }
                assert!(locator.is_done());

                let extent = locator.finish()[0].extent.clone();
                let found = extent.map(|extent| {
                    let [start, end] =
                        [extent.start, extent.end].map(|at| usize::try_from(at).unwrap());
                    &text[start..end]
                });
                assert_eq!(found, (longest > 2).then_some(expected), "{text}");
            }
        }
    }

    #[test]
    fn bytes_of_lines_and_rows_have_a_record() {
        let rows = "a,b?\n1,2\n\"x\ny?\",3\n4,?";
        for (layout, text, expected) in [
            (Layout::JsonLines, "{}\n\n{\"a\": \"?\"}\n[\"?\"]", vec![Some(1), Some(2)]),
            (Layout::Rows(Dialect::delimited(b',')), rows, vec![None, Some(1), Some(2)]),
        ] {
            for block in [1, 4, 1_000] {
                let found = locate_all(layout, text, block);
                let records: Vec<_> = found.iter().map(|location| location.record).collect();
                assert_eq!(records, expected, "{text}");
            }
        }
    }

    #[test]
    fn only_locations_after_a_fault_are_unknown() {
        let mut locator = Locator::new(Layout::Json, vec![1, 9]);
        assert!(locator.feed(b"[1, 2] garbage").is_err());
        let found = locator.finish();
        assert_eq!((found[0].record, found[1].record), (Some(0), None));
    }
}
