//! Where the members of an object lie: a walk over JSON that is known to be
//! whole, which therefore need not look at what it steps over.

use std::{borrow::Cow, ops::ControlFlow};

/// Begin and end of the values of those members, where they are there.
///
/// # Errors
/// The name of one that is there twice: who reads the first would be told
/// something else than who reads the last.
pub(super) fn find<const N: usize>(
    object: &[u8],
    names: &[&'static str; N],
) -> Result<[Option<(usize, usize)>; N], &'static str> {
    let mut found = [None; N];
    for (name, value) in of(object) {
        let Some(n) = names.iter().position(|wanted| *name == *wanted.as_bytes()) else { continue };
        if found[n].replace(value).is_some() {
            return Err(names[n]);
        }
    }
    Ok(found)
}

/// Name, and begin and end of the value, of each member.
fn of(object: &[u8]) -> impl Iterator<Item = (Cow<'_, [u8]>, (usize, usize))> {
    // Behind the opening brace.
    let mut at = end_of_space(object, 0) + 1;
    std::iter::from_fn(move || {
        at = end_of_space(object, at);
        if object.get(at) == Some(&b',') {
            at = end_of_space(object, at + 1);
        }
        if object.get(at) != Some(&b'"') {
            return None;
        }
        let end = end_of_string(object, at);
        let name = name(object.get(at..end)?);
        // Behind the colon.
        let begin = end_of_space(object, end_of_space(object, end) + 1);
        at = end_of_value(object, begin);
        Some((name, (begin, at)))
    })
}

fn name(quoted: &[u8]) -> Cow<'_, [u8]> {
    match quoted.get(1..quoted.len() - 1) {
        Some(plain) if !plain.contains(&b'\\') => plain.into(),
        _ => serde_json::from_slice::<String>(quoted).unwrap_or_default().into_bytes().into(),
    }
}

fn end_of_space(json: &[u8], mut at: usize) -> usize {
    while json.get(at).is_some_and(u8::is_ascii_whitespace) {
        at += 1;
    }
    at
}

/// Where what follows the string that begins there begins.
pub(super) fn end_of_string(json: &[u8], begin: usize) -> usize {
    let mut from = begin + 1;
    while let Some(at) = json.get(from..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        if json[from + at] == b'"' {
            return from + at + 1;
        }
        // Whatever is escaped.
        from += at + 2;
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
    let (mut at, mut depth) = (begin, 0_usize);
    loop {
        let step = json[at..].iter().enumerate().try_for_each(|(ahead, byte)| {
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
            ControlFlow::Break((ahead, true)) => return at + ahead,
            ControlFlow::Break((ahead, false)) => at = end_of_string(json, at + ahead),
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
            members in prop::collection::btree_map("[a-c\"\\\\é]{0,3}", json(), 0..5),
            pretty in any::<bool>(),
        ) {
            let write = if pretty { serde_json::to_string_pretty } else { serde_json::to_string };
            let text = write(&members).expect("it is JSON");
            let expected: BTreeMap<String, &RawValue> =
                serde_json::from_str(&text).expect("it is JSON");
            let found: Vec<_> = of(text.as_bytes()).collect();
            prop_assert_eq!(found.len(), expected.len());
            for (name, (begin, end)) in found {
                prop_assert_eq!(&text[begin..end], expected[&*String::from_utf8_lossy(&name)].get());
            }
        }
    }

    #[test]
    fn what_is_no_object_has_no_members() {
        for text in ["", "{}", " { } ", "7"] {
            assert_eq!(of(text.as_bytes()).count(), 0, "{text}");
        }
    }
}
