//! JSON arguments that a tool stores: text that is not parsed into a tree.

use serde::{Deserialize, Deserializer};
use serde_json::{Value, json, value::RawValue};

/// The member that marks text in the place of its value.
const MARK: &str = "$json";

/// The stand-in for a JSON text among parsed arguments.
pub(crate) fn stored_json(text: &str) -> Value {
    json!({ MARK: text })
}

/// The JSON of an argument of [`Tool::stored_argument`](super::Tool::stored_argument),
/// as it arrived, or as a caller within the server gave it.
#[derive(Debug)]
pub(crate) struct StoredJson(pub(crate) String);

impl<'de> Deserialize<'de> for StoredJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            // Only text that is JSON can stand for JSON.
            Value::Object(object) if object.len() == 1 => match object.get(MARK) {
                Some(Value::String(text)) if serde_json::from_str::<&RawValue>(text).is_ok() => {
                    Ok(Self(text.clone()))
                }
                _ => Ok(Self(Value::Object(object).to_string())),
            },
            other => Ok(Self(other.to_string())),
        }
    }
}
