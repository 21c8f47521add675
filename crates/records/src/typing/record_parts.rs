//! The fields of a JSON record.

use std::{borrow::Cow, fmt};

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::Field;

/// The place of a field in a JSON record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordPart<'a> {
    /// The name of the record, which is a member of an object.
    Key,
    /// The member with this name, of a record that is an object.
    Member(&'a str),
    /// The record, which is no object.
    Value,
}

/// Calls `each` with the fields of a JSON record: the members of an object, or the value itself.
/// `is_member`: the record is a member of an object, `"name": value`, whose name is a field.
///
/// # Errors
/// The text is not JSON as a whole. `each` was not called then, so no field of a broken record
/// counts.
pub fn record_parts(
    record: &str,
    is_member: bool,
    each: &mut impl FnMut(RecordPart<'_>, Field<'_>),
) -> serde_json::Result<()> {
    let (key, value) = if is_member { member(record)? } else { (None, record) };
    let value = value.trim_start();
    let is_object = value.starts_with('{');

    if is_object {
        members(value, &mut |_, _| {})?;
    } else {
        serde_json::from_str::<&RawValue>(value)?;
    }

    if let Some(key) = key {
        each(RecordPart::Key, Field::Text(&key));
    }
    if is_object {
        return members(value, each);
    }
    each(RecordPart::Value, Field::Json(value.trim_end()));
    Ok(())
}

/// The name of a member of an object, and the text of its value.
fn member(member: &str) -> serde_json::Result<(Option<String>, &str)> {
    let mut keys = serde_json::Deserializer::from_str(member).into_iter::<String>();
    let key = keys.next().ok_or_else(|| serde_json::Error::custom("it has no key"))??;

    let after = &member[keys.byte_offset()..];
    let value = after.trim_start().strip_prefix(':');
    let value = value.ok_or_else(|| serde_json::Error::custom("its key has no value"))?;
    Ok((Some(key), value))
}

/// Gives the members of an object, which is all of the text, to a function.
fn members(
    object: &str,
    each: &mut impl FnMut(RecordPart<'_>, Field<'_>),
) -> serde_json::Result<()> {
    let mut deserializer = serde_json::Deserializer::from_str(object);
    Members(each).deserialize(&mut deserializer)?;
    deserializer.end()
}

/// Gives the members of an object to a function.
struct Members<'a, F>(&'a mut F);

#[derive(serde::Deserialize)]
struct MemberKey<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de, F: FnMut(RecordPart<'_>, Field<'_>)> DeserializeSeed<'de> for Members<'_, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, F: FnMut(RecordPart<'_>, Field<'_>)> Visitor<'de> for Members<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(MemberKey(key)) = members.next_key()? {
            let value: &RawValue = members.next_value()?;
            (self.0)(RecordPart::Member(&key), Field::Json(value.get()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(record: &str, is_member: bool) -> (bool, Vec<String>) {
        let mut parts = Vec::new();
        let read = record_parts(record, is_member, &mut |part, field| {
            parts.push(format!("{part:?} {field:?}"));
        });
        (read.is_ok(), parts)
    }

    #[test]
    fn a_record_gives_its_fields() {
        for (record, is_member, expected) in [
            (
                r#"{"a":1,"b":[2]}"#,
                false,
                &[r#"Member("a") Json("1")"#, r#"Member("b") Json("[2]")"#][..],
            ),
            (" {} ", false, &[]),
            (" [1] ", false, &[r#"Value Json("[1]")"#]),
            (r#""k" : {"a":1} "#, true, &[r#"Key Text("k")"#, r#"Member("a") Json("1")"#]),
            (r#""k":7"#, true, &[r#"Key Text("k")"#, r#"Value Json("7")"#]),
        ] {
            let (is_read, fields) = parts(record, is_member);
            assert!(is_read, "{record}");
            assert_eq!(fields, expected, "{record}");
        }
    }

    #[test]
    fn a_broken_record_gives_no_field() {
        for record in [
            r#"{"a":1,"b":2"#,
            r#"{"a":1,"b""#,
            r#"{"a":1,"b":}"#,
            r#"{"a":1} {"b":2}"#,
            r#"{"a":1} x"#,
            r#"{"a":1,"\ud83d":2}"#,
            r#"{"a":1,}"#,
            "[1,2",
            "1 2",
            "nul",
            "",
        ] {
            assert_eq!(parts(record, false), (false, Vec::new()), "{record}");
            let member = format!(r#""k":{record}"#);
            assert_eq!(parts(&member, true), (false, Vec::new()), "{member}");
        }

        for member in [r#""k""#, r#""k" 1"#, "k:1", ":1", ""] {
            assert_eq!(parts(member, true), (false, Vec::new()), "{member}");
        }
    }
}
