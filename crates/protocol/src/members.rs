//! The byte ranges of an object's members. The JSON is known to be valid, so
//! the scan skips values without parsing them.

use std::{borrow::Cow, ops::ControlFlow};

/// Start and end of the values of the named members, `None` for absent ones.
///
/// # Errors
/// The name of a member that occurs twice, because parsers disagree on which
/// of them counts.
pub(super) fn find<const N: usize>(
    object: &[u8],
    names: &[&'static str; N],
) -> Result<[Option<(usize, usize)>; N], &'static str> {
    let mut found = [None; N];
    for (name, value) in members(object) {
        let Some(n) = names.iter().position(|known| *name == *known.as_bytes()) else { continue };
        if found[n].replace(value).is_some() {
            return Err(names[n]);
        }
    }
    Ok(found)
}

/// Start and end of the value of a member; `None` if it is absent or occurs twice.
pub(super) fn find_one(object: &[u8], name: &str) -> Option<(usize, usize)> {
    let mut found = members(object).filter(|(other, _)| **other == *name.as_bytes());
    let (_, value) = found.next()?;
    found.next().is_none().then_some(value)
}

/// The name of each member, with start and end of its value.
fn members(object: &[u8]) -> impl Iterator<Item = (Cow<'_, [u8]>, (usize, usize))> {
    // Starts after the opening brace.
    let mut offset = end_of_space(object, 0) + 1;
    std::iter::from_fn(move || {
        offset = end_of_space(object, offset);
        if object.get(offset) == Some(&b',') {
            offset = end_of_space(object, offset + 1);
        }
        if object.get(offset) != Some(&b'"') {
            return None;
        }

        let end = end_of_string(object, offset);
        let name = unescaped(object.get(offset..end)?);
        // Skips the colon.
        let begin = end_of_space(object, end_of_space(object, end) + 1);
        offset = end_of_value(object, begin);
        Some((name, (begin, offset)))
    })
}

fn unescaped(quoted: &[u8]) -> Cow<'_, [u8]> {
    match quoted.get(1..quoted.len() - 1) {
        Some(plain) if !plain.contains(&b'\\') => plain.into(),
        _ => serde_json::from_slice::<String>(quoted).unwrap_or_default().into_bytes().into(),
    }
}

fn end_of_space(json: &[u8], mut offset: usize) -> usize {
    while json.get(offset).is_some_and(u8::is_ascii_whitespace) {
        offset += 1;
    }
    offset
}

/// The offset after the string that starts at `begin`.
pub(super) fn end_of_string(json: &[u8], begin: usize) -> usize {
    let mut from = begin + 1;
    while let Some(ahead) = json.get(from..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        if json[from + ahead] == b'"' {
            return from + ahead + 1;
        }
        // Skips the backslash and the escaped byte.
        from += ahead + 2;
    }
    json.len()
}

fn end_of_value(json: &[u8], begin: usize) -> usize {
    match json.get(begin) {
        Some(b'"') => end_of_string(json, begin),
        Some(b'{' | b'[') => end_of_nested(json, begin),
        _ => {
            let rest = json.iter().skip(begin);
            let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace();
            begin + rest.take_while(|byte| !ends(byte)).count()
        }
    }
}

fn end_of_nested(json: &[u8], begin: usize) -> usize {
    let mut offset = begin;
    let mut depth = 0_usize;

    loop {
        let step = json[offset..].iter().enumerate().try_for_each(|(ahead, byte)| {
            match byte {
                b'{' | b'[' => depth += 1,
                b'}' | b']' => {
                    depth -= 1;
                    if depth == 0 {
                        return ControlFlow::Break((ahead + 1, true));
                    }
                }
                b'"' => return ControlFlow::Break((ahead, false)),
                _ => {}
            }
            ControlFlow::Continue(())
        });

        match step {
            ControlFlow::Break((ahead, true)) => return offset + ahead,
            ControlFlow::Break((ahead, false)) => offset = end_of_string(json, offset + ahead),
            ControlFlow::Continue(()) => return json.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::{Value, value::RawValue};

    use super::*;

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "[ -~\"\\\\{}\\[\\]é\n]{0,8}".prop_map(Value::from),
        ];

        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-c\"\\\\é]{0,3}", inner, 0..4)
                    .prop_map(|members| members.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn members_are_found_as_serde_finds_them(
            object in prop::collection::btree_map("[a-c\"\\\\é]{0,3}", json(), 0..5),
            pretty in any::<bool>(),
        ) {
            let write = if pretty { serde_json::to_string_pretty } else { serde_json::to_string };
            let text = write(&object).expect("it is JSON");
            let expected: BTreeMap<String, &RawValue> =
                serde_json::from_str(&text).expect("it is JSON");

            let found: Vec<_> = members(text.as_bytes()).collect();
            prop_assert_eq!(found.len(), expected.len());
            for (name, (begin, end)) in found {
                prop_assert_eq!(&text[begin..end], expected[&*String::from_utf8_lossy(&name)].get());
            }
        }
    }

    #[test]
    fn only_objects_have_members() {
        for text in ["", "{}", " { } ", "7"] {
            assert_eq!(members(text.as_bytes()).count(), 0, "{text}");
        }
    }
}
