//! [`record_lines`]: JSON with a record on each line, so that lines and records agree.

use bytes::Bytes;

use super::{Container, Lists};

/// The size of a piece in bytes.
const PIECE_BYTES: usize = 256 << 10;

/// Formats a JSON value so that each record is on a line of its own; returns it in pieces. The
/// records are those of [`Lists::finish_with_index`]; other lists that are in no list have a line
/// for each item, too. Adds and removes line breaks between values, and nothing else.
///
/// An object with a single member that contains several lists is one record: it has a
/// line for each item of these lists.
pub fn record_lines(json: &[u8]) -> Vec<Bytes> {
    let by_member = has_records_as_members(json);
    let mut pieces = Pieces::new(json.len());
    let mut depth = 0u32;
    // The depth of the values that have lines of their own.
    let mut line_depth: Option<u32> = None;
    let mut start = 0;
    let mut index = 0;

    while let Some(&byte) = json.get(index) {
        let next = index + 1;
        match byte {
            b'"' => {
                index = string_end(json, next);
                continue;
            }
            b'\n' | b'\r' => {
                pieces.put(&json[start..index]);
                start = next;
            }
            b'{' | b'[' => {
                depth += 1;
                let has_lines = by_member || byte == b'[';
                if has_lines && line_depth.is_none() && !is_empty_container(&json[next..]) {
                    line_depth = Some(depth);
                    pieces.put_line(&json[start..next]);
                    start = next;
                }
            }
            b'}' | b']' => {
                if line_depth == Some(depth) {
                    line_depth = None;
                    pieces.put_line(&json[start..index]);
                    start = index;
                }
                depth = depth.saturating_sub(1);
            }
            b',' if line_depth.is_none_or(|line_depth| line_depth == depth) => {
                pieces.put_line(&json[start..next]);
                start = next;
            }
            _ => {}
        }
        index = next;
    }

    pieces.put(&json[start..]);
    pieces.finish()
}

/// Whether the members of the outermost object are the records, and not the items of a list.
fn has_records_as_members(json: &[u8]) -> bool {
    if json.trim_ascii_start().first() != Some(&b'{') {
        return false;
    }
    let mut lists = Lists::default();
    let Ok(()) = lists.feed(json) else { return false };
    lists.finish_with_index().is_ok_and(|(lists, index)| {
        index.container() == Container::Object && (lists.is_empty() || index.total() > 1)
    })
}

/// Whether the container that has just begun is empty.
fn is_empty_container(rest: &[u8]) -> bool {
    matches!(rest.trim_ascii_start().first(), Some(b'}' | b']'))
}

/// Text in pieces of about the same size.
struct Pieces {
    done: Vec<Bytes>,
    piece: Vec<u8>,
}

impl Pieces {
    fn new(bytes: usize) -> Self {
        let piece = Vec::with_capacity(PIECE_BYTES.min(bytes + bytes / 8));
        Self { done: Vec::with_capacity(bytes / PIECE_BYTES + 1), piece }
    }

    fn put(&mut self, bytes: &[u8]) {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE_BYTES {
            let next = Vec::with_capacity(PIECE_BYTES);
            self.done.push(std::mem::replace(&mut self.piece, next).into());
        }
    }

    fn put_line(&mut self, bytes: &[u8]) {
        self.put(bytes);
        self.put(b"\n");
    }

    fn finish(mut self) -> Vec<Bytes> {
        if !self.piece.is_empty() {
            self.done.push(self.piece.into());
        }
        self.done
    }
}

/// The index after the closing quote of a string.
fn string_end(json: &[u8], mut index: usize) -> usize {
    while let Some(next) = memchr::memchr2(b'"', b'\\', &json[index..]) {
        match json[index + next] {
            b'"' => return index + next + 1,
            _ => index = (index + next + 2).min(json.len()),
        }
    }
    json.len()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::{Indexer, Layout, RecordIndex, Scanner};

    fn split_text(value: &Value) -> String {
        let pieces = record_lines(value.to_string().as_bytes());
        String::from_utf8(pieces.concat()).unwrap()
    }

    #[test]
    fn each_record_has_its_line() {
        assert_eq!(
            split_text(&json!([{ "a": 1, "b": [1, 2] }, [3, 4], "x,\n\"]"])),
            "[\n{\"a\":1,\"b\":[1,2]},\n[3,4],\n\"x,\\n\\\"]\"\n]"
        );
        assert_eq!(
            split_text(&json!({ "next": null, "rows": [{ "id": 1 }, { "id": 2 }], "n": 2 })),
            "{\"next\":null,\n\"rows\":[\n{\"id\":1},\n{\"id\":2}\n],\n\"n\":2}"
        );
        assert_eq!(
            split_text(&json!({ "b": { "n": 1, "of": [1, 2] }, "a": { "of": [] } })),
            "{\n\"b\":{\"n\":1,\"of\":[1,2]},\n\"a\":{\"of\":[]}\n}"
        );
        assert_eq!(
            split_text(&json!({ "data": { "users": [1, 2], "orders": [3] } })),
            "{\"data\":{\"users\":[\n1,\n2\n],\n\"orders\":[\n3\n]}}"
        );

        for value in [json!([]), json!({}), json!([[]]), json!(7), json!("a,[")] {
            assert_eq!(split_text(&value).replace('\n', ""), value.to_string());
        }
        assert_eq!(split_text(&json!({ "none": [] })), "{\"none\":[]}");
    }

    #[test]
    fn line_breaks_between_other_values_are_removed() {
        let text = b"{\r\n \"rows\": [\n  {\n  \"a\": \"b\\n\" },\n {}\n ]\n}\n";
        let lines = String::from_utf8(record_lines(text).concat()).unwrap();
        assert_eq!(lines, "{ \"rows\": [\n  {  \"a\": \"b\\n\" },\n {} \n]}");
    }

    #[test]
    fn text_that_is_not_json_loses_nothing() {
        for text in ["[\"open", "]]]}}}", "[1,", "{\"a\\", "\\", ""] {
            let pieces = record_lines(text.as_bytes());
            let text_bytes: Vec<u8> = pieces.concat().into_iter().filter(|b| *b != b'\n').collect();
            assert_eq!(text_bytes, text.as_bytes(), "{text}");
        }
    }

    fn index_of(text: &str) -> RecordIndex {
        let mut indexer = Indexer::new(Layout::Json);
        indexer.feed(text.as_bytes()).unwrap();
        indexer.finish().unwrap().unwrap()
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i32>().prop_map(Value::from),
            "[a\"\\\\,\\[\\]{}\n]{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec(("[a-c\",]{1,3}", inner), 0..5)
                    .prop_map(|members| members.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn record_lines_keep_the_value(value in any_json()) {
            let read: Value = serde_json::from_str(&split_text(&value)).unwrap();
            prop_assert_eq!(read, value);
        }

        #[test]
        fn each_record_is_a_line(value in any_json()) {
            let text = split_text(&value);
            let mut records = Vec::new();
            let index = index_of(&text);
            let at = index.at().parse().unwrap();

            let mut scanner = Scanner::new(Layout::Json, at);
            scanner.feed(text.as_bytes(), |record| records.push(record)).unwrap();
            scanner.finish(|record| records.push(record)).unwrap();

            // The exceptions: an object with a single member, and a scalar.
            if index.container() == Container::List || records.len() > 1 {
                let lines = records.iter().map(|r| {
                    let [start, end] = [r.start, r.end].map(|at| usize::try_from(at).unwrap());
                    (start == 0 || text.as_bytes()[start - 1] == b'\n') && !text[start..end].contains('\n')
                });
                prop_assert!(lines.into_iter().all(|is_line| is_line), "{}", text);
            }
        }
    }
}
