//! [`Locator`]: the records and the JSON Pointers of bytes in content.

use std::collections::VecDeque;

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

    /// Whether all bytes are located: further blocks are not needed.
    pub fn is_done(&self) -> bool {
        self.wanted.is_empty()
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
                while !wanted.is_empty() {
                    let Some(token) = json.lexer.next(block, &mut at)? else { break };
                    while wanted.pop_front_if(|offset| *offset < token.offset).is_some() {
                        found.push(json.location());
                    }
                    json.token(token);
                }
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
        let record = (offset >= record.start).then_some(record.number);
        found.push(Location { record, ..Location::default() });
    }
}

/// The open containers at a position in JSON.
#[derive(Debug)]
struct JsonLocator {
    lexer: Lexer,
    open: Vec<OpenContainer>,
    /// The value that has the records.
    records: Option<Pointer>,
}

#[derive(Debug)]
struct OpenContainer {
    is_object: bool,
    /// The number of its items or members that have begun.
    begun: u64,
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
                    object.begun += 1;
                    object.key = None;
                }
            }
            TokenKind::List | TokenKind::Object => {
                match innermost {
                    Some(object) if object.is_object => object.key = self.lexer.key(),
                    Some(list) => list.begun += 1,
                    None => {}
                }

                let is_object = token.kind == TokenKind::Object;
                self.open.push(OpenContainer { is_object, begun: 0, key: None });
            }
            TokenKind::Scalar => {
                if let Some(list) = innermost.filter(|open| !open.is_object) {
                    list.begun += 1;
                }
            }
            TokenKind::End => self.open.truncate(self.lexer.depth()),
        }
    }

    fn location(&self) -> Location {
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
            }

            if !open.is_object {
                pointer.push(last.to_string());
                continue;
            }

            match open.key.clone().or_else(|| self.lexer.key()) {
                Some(key) => pointer.push(key),
                None => return location,
            }
        }

        location.pointer = Some(pointer);
        location
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
