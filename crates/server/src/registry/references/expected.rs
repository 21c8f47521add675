//! The kinds of values that a tool's schema expects at a place of its arguments.

use larder_protocol::schema::target_of;
use serde_json::Value;

/// The depth to which references within a schema are followed.
const MAX_DEPTH: usize = 16;
/// The most subschemas that are read. Alternatives that refer to each other multiply.
const MAX_SUBSCHEMAS: usize = 1_000;

/// The kinds of values that are allowed; none if the schema does not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each type is allowed or not")]
pub(super) struct Expected {
    /// A string.
    pub(super) text: bool,
    /// An object, an array, a number, a boolean or null.
    pub(super) json: bool,
    /// The scalars among the JSON.
    pub(super) scalars: Scalars,
    /// The string is declared to be base64.
    pub(super) base64: bool,
}

/// The scalars that are allowed beside strings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Scalars {
    pub(super) number: bool,
    pub(super) boolean: bool,
    pub(super) null: bool,
}

impl Expected {
    /// Whether a selected value becomes a string: where only a string is expected, and where a string
    /// is one of the alternatives, unless the value is a scalar of another one.
    pub(super) fn takes_as_text(self, value: &Value) -> bool {
        let is_expected = match value {
            Value::Number(_) => self.scalars.number,
            Value::Bool(_) => self.scalars.boolean,
            Value::Null => self.scalars.null,
            Value::String(_) | Value::Array(_) | Value::Object(_) => false,
        };
        self.text && !is_expected
    }

    /// The kinds of values that the schema expects at the path.
    pub(super) fn at(schema: &Value, path: &[String]) -> Self {
        let mut expected = Self::default();
        let mut left = MAX_SUBSCHEMAS;
        expected.collect(schema, schema, path, 0, &mut left);
        expected
    }

    fn collect(
        &mut self,
        root: &Value,
        schema: &Value,
        path: &[String],
        depth: usize,
        left: &mut usize,
    ) {
        if depth > MAX_DEPTH || *left == 0 {
            return;
        }
        *left -= 1;

        if let Some(reference) = schema["$ref"].as_str()
            && let Some(target) = target_of(root, reference)
        {
            self.collect(root, target, path, depth + 1, left);
        }

        for key in ["allOf", "anyOf", "oneOf"] {
            for schema in schema[key].as_array().into_iter().flatten() {
                self.collect(root, schema, path, depth + 1, left);
            }
        }

        let Some((step, rest)) = path.split_first() else { return self.add(schema) };
        if let Some(property) = schema["properties"].get(step) {
            return self.collect(root, property, rest, depth + 1, left);
        }

        let index = step.parse::<usize>().ok();
        let tuple = schema["prefixItems"].as_array().or_else(|| schema["items"].as_array());
        let item = index
            .and_then(|index| tuple?.get(index))
            .or_else(|| index.and(schema.get("items")).filter(|items| items.is_object()));

        if let Some(inner) = item.or_else(|| schema.get("additionalProperties")) {
            self.collect(root, inner, rest, depth + 1, left);
        }
    }

    fn add(&mut self, schema: &Value) {
        let types = match &schema["type"] {
            Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
            Value::String(name) => vec![name.as_str()],
            _ => Vec::new(),
        };

        for name in types {
            match name {
                "string" => self.text = true,
                name => {
                    self.json = true;
                    self.scalars.number |= matches!(name, "number" | "integer");
                    self.scalars.boolean |= name == "boolean";
                    self.scalars.null |= name == "null";
                }
            }
        }

        self.base64 |= schema["contentEncoding"] == "base64" || schema["format"] == "byte";
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn types_are_found_through_the_schema() {
        let schema = json!({
            "properties": {
                "text": { "type": "string" },
                "rows": { "type": "array", "items": { "$ref": "#/$defs/row" } },
                "either": { "anyOf": [{ "type": "string" }, { "type": "object" }] },
                "file": { "type": "string", "contentEncoding": "base64" },
                "any": {},
                "pair": { "prefixItems": [{ "type": "number" }, { "type": "string" }] },
            },
            "additionalProperties": { "type": ["integer", "null"] },
            "$defs": { "row": { "properties": { "id": { "type": "string" } } }, "loop": { "$ref": "#/$defs/loop" } },
        });

        let kinds = |expected: Expected| (expected.text, expected.json, expected.base64);
        let expected = |text, json, base64| (text, json, base64);
        for (path, wanted) in [
            ("text", expected(true, false, false)),
            ("rows", expected(false, true, false)),
            ("rows.7.id", expected(true, false, false)),
            ("either", expected(true, true, false)),
            ("file", expected(true, false, true)),
            ("any", expected(false, false, false)),
            ("pair.0", expected(false, true, false)),
            ("pair.1", expected(true, false, false)),
            ("other", expected(false, true, false)),
        ] {
            let path: Vec<_> = path.split('.').map(str::to_owned).collect();
            assert_eq!(kinds(Expected::at(&schema, &path)), wanted, "{path:?}");
        }

        let endless = json!({ "properties": { "a": { "$ref": "#/properties/a" } } });
        assert_eq!(kinds(Expected::at(&endless, &["a".into()])), expected(false, false, false));

        let alternatives = vec![json!({ "$ref": "#" }); 1_000];
        let multiplying = json!({ "type": "string", "anyOf": alternatives });
        assert_eq!(kinds(Expected::at(&multiplying, &[])), expected(true, false, false));
    }
}
