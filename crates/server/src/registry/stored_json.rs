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
            Value::Object(mut object) if object.len() == 1 => match object.get_mut(MARK) {
                Some(Value::String(text)) if serde_json::from_str::<&RawValue>(text).is_ok() => {
                    Ok(Self(std::mem::take(text)))
                }
                _ => Ok(Self(Value::Object(object).to_string())),
            },
            other => Ok(Self(other.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_an_argument_is_not_copied() {
        let text = " [1,\n2] ".to_owned();
        let address = text.as_ptr();
        let mut value = stored_json("");
        value[MARK] = text.into();
        let StoredJson(stored) = serde_json::from_value(value).expect("it is JSON");
        assert_eq!((stored.as_ptr(), &*stored), (address, " [1,\n2] "));

        for (value, expected) in [
            (json!({ MARK: "no JSON" }), r#"{"$json":"no JSON"}"#),
            (json!({ MARK: 1 }), r#"{"$json":1}"#),
            (json!([null]), "[null]"),
        ] {
            let StoredJson(stored) = serde_json::from_value(value).expect("it is JSON");
            assert_eq!(stored, expected);
        }
    }
}
