//! JSON broken into lines: a record of its outermost list on each, so that it
//! can be read, searched and counted by lines. Only what stands between values
//! changes.

use bytes::Bytes;

/// How long a piece becomes.
const PIECE: usize = 256 << 10;

/// The same value, in pieces. What has lines already, and what is no JSON,
/// stays as it is.
pub(super) fn broken(json: &Bytes) -> Vec<Bytes> {
    if memchr::memchr(b'\n', json).is_some() {
        return vec![json.clone()];
    }
    let mut pieces = Vec::with_capacity(json.len() / PIECE + 1);
    let mut piece = Vec::with_capacity(PIECE.min(json.len() + json.len() / 8));
    let mut put = |bytes: &[u8], piece: &mut Vec<u8>| {
        piece.extend_from_slice(bytes);
        if piece.len() >= PIECE {
            pieces.push(std::mem::replace(piece, Vec::with_capacity(PIECE)).into());
        }
    };
    let mut depth = 0u32;
    // The depth of the outermost list's items; what is in them stays together.
    let mut records: Option<u32> = None;
    let mut from = 0;
    let mut at = 0;
    while let Some(&byte) = json.get(at) {
        let breaks = records.is_none_or(|records| records == depth);
        match byte {
            b'"' => {
                at = string_end(json, at + 1);
                continue;
            }
            b'{' | b'[' => {
                depth += 1;
                if byte == b'[' && records.is_none() {
                    records = Some(depth);
                    put(&json[from..=at], &mut piece);
                    put(b"\n", &mut piece);
                    from = at + 1;
                }
            }
            b'}' | b']' => {
                if records == Some(depth) {
                    records = None;
                    put(&json[from..at], &mut piece);
                    put(b"\n", &mut piece);
                    from = at;
                }
                depth = depth.saturating_sub(1);
            }
            b',' if breaks => {
                put(&json[from..=at], &mut piece);
                put(b"\n", &mut piece);
                from = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    put(&json[from..], &mut piece);
    if !piece.is_empty() {
        pieces.push(piece.into());
    }
    pieces
}

/// Behind the quote that ends a string.
fn string_end(json: &[u8], mut at: usize) -> usize {
    while let Some(next) = memchr::memchr2(b'"', b'\\', &json[at..]) {
        match json[at + next] {
            b'"' => return at + next + 1,
            _ => at = (at + next + 2).min(json.len()),
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

    fn broken_text(value: &Value) -> String {
        let pieces = broken(&value.to_string().into());
        String::from_utf8(pieces.concat()).unwrap()
    }

    #[test]
    fn each_record_has_its_line() {
        assert_eq!(
            broken_text(&json!([{ "a": 1, "b": [1, 2] }, [3, 4], "x,\n\"]"])),
            "[\n{\"a\":1,\"b\":[1,2]},\n[3,4],\n\"x,\\n\\\"]\"\n]"
        );
        assert_eq!(
            broken_text(&json!({ "next": null, "rows": [{ "id": 1 }, { "id": 2 }], "n": 2 })),
            "{\"next\":null,\n\"rows\":[\n{\"id\":1},\n{\"id\":2}\n],\n\"n\":2}"
        );
    }

    #[test]
    fn what_is_no_json_is_all_there() {
        for text in ["[\"open", "]]]}}}", "[1,", "{\"a\\", "\\", ""] {
            let pieces = broken(&Bytes::from_static(text.as_bytes()));
            let kept: Vec<u8> = pieces.concat().into_iter().filter(|b| *b != b'\n').collect();
            assert_eq!(kept, text.as_bytes(), "{text}");
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
            let read: Value = serde_json::from_str(&broken_text(&value)).unwrap();
            prop_assert_eq!(read, value);
        }
    }
}
