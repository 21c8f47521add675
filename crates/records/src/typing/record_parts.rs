//! The fields of a JSON record.

use std::{borrow::Cow, fmt};

use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};
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
///
/// # Errors
/// The text is not JSON. `each` may have been called with fields before the fault.
pub fn record_parts(
    json: &str,
    each: &mut impl FnMut(RecordPart<'_>, Field<'_>),
) -> serde_json::Result<()> {
    if json.starts_with('{') {
        return Members(each).deserialize(&mut serde_json::Deserializer::from_str(json));
    }

    let value: &RawValue = serde_json::from_str(json)?;
    each(RecordPart::Value, Field::Json(value.get()));
    Ok(())
}

/// Calls `each` with the fields of a record that is a member of an object: `"name": value`.
///
/// # Errors
/// Divides a member of an object as [`record_parts`] divides a record.
pub fn member_parts(
    member: &str,
    each: &mut impl FnMut(RecordPart<'_>, Field<'_>),
) -> serde_json::Result<()> {
    let mut keys = serde_json::Deserializer::from_str(member).into_iter::<String>();
    let key = match keys.next() {
        Some(key) => key?,
        None => return Err(serde::de::Error::custom("it has no key")),
    };

    let after = &member[keys.byte_offset()..];
    let value = after.trim_start().strip_prefix(':').unwrap_or_default();
    each(RecordPart::Key, Field::Text(&key));
    record_parts(value.trim_start(), each)
}

/// Whether a text is one JSON value.
pub fn is_json(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok()
}

/// Gives the members of an object to a function.
struct Members<'a, F>(&'a mut F);

#[derive(serde::Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

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
        while let Some(Key(key)) = members.next_key()? {
            let value: &RawValue = members.next_value()?;
            (self.0)(RecordPart::Member(&key), Field::Json(value.get()));
        }
        Ok(())
    }
}
