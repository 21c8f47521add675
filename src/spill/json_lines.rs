//! Splits JSON into lines, one for each item of its outermost list, so that
//! records can be read, searched and counted by line. Adds only whitespace
//! between values.

use bytes::Bytes;

/// The size of a piece in bytes.
const PIECE_BYTES: usize = 256 << 10;

/// The same value with line breaks, in pieces. Text that already has line breaks
/// is not changed.
pub(super) fn split_lines(json: &Bytes) -> Vec<Bytes> {
    if memchr::memchr(b'\n', json).is_some() {
        return vec![json.clone()];
    }
    let mut pieces = Vec::with_capacity(json.len() / PIECE_BYTES + 1);
    let mut piece = Vec::with_capacity(PIECE_BYTES.min(json.len() + json.len() / 8));
    let mut put = |bytes: &[u8], piece: &mut Vec<u8>| {
        piece.extend_from_slice(bytes);
        if piece.len() >= PIECE_BYTES {
            pieces.push(std::mem::replace(piece, Vec::with_capacity(PIECE_BYTES)).into());
        }
    };
    let mut depth = 0u32;
    // The depth of the outermost list's items, which are not split themselves.
    let mut record_depth: Option<u32> = None;
    let mut start = 0;
    let mut index = 0;
    while let Some(&byte) = json.get(index) {
        let ends_line = record_depth.is_none_or(|record_depth| record_depth == depth);
        match byte {
            b'"' => {
                index = string_end(json, index + 1);
                continue;
            }
            b'{' | b'[' => {
                depth += 1;
                if byte == b'[' && record_depth.is_none() {
                    record_depth = Some(depth);
                    put(&json[start..=index], &mut piece);
                    put(b"\n", &mut piece);
                    start = index + 1;
                }
            }
            b'}' | b']' => {
                if record_depth == Some(depth) {
                    record_depth = None;
                    put(&json[start..index], &mut piece);
                    put(b"\n", &mut piece);
                    start = index;
                }
                depth = depth.saturating_sub(1);
            }
            b',' if ends_line => {
                put(&json[start..=index], &mut piece);
                put(b"\n", &mut piece);
                start = index + 1;
            }
            _ => {}
        }
        index += 1;
    }
    put(&json[start..], &mut piece);
    if !piece.is_empty() {
        pieces.push(piece.into());
    }
    pieces
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

    fn split_text(value: &Value) -> String {
        let pieces = split_lines(&value.to_string().into());
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
    }

    #[test]
    fn text_that_is_not_json_loses_nothing() {
        for text in ["[\"open", "]]]}}}", "[1,", "{\"a\\", "\\", ""] {
            let pieces = split_lines(&Bytes::from_static(text.as_bytes()));
            let text_bytes: Vec<u8> = pieces.concat().into_iter().filter(|b| *b != b'\n').collect();
            assert_eq!(text_bytes, text.as_bytes(), "{text}");
        }
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
        fn the_value_is_the_same(value in any_json()) {
            let read: Value = serde_json::from_str(&split_text(&value)).unwrap();
            prop_assert_eq!(read, value);
        }
    }
}
