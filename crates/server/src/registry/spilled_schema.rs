//! The output schema of a tool whose result can be stored: the tool's own schema,
//! or the schema of the preview (2025-06-18 and later, tools: Output Schema).

use larder_protocol::schema::move_references;
use rmcp::model::JsonObject;
use serde_json::{Value, json};

/// The members that stay at the root, where references to them are right as they are.
const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];

/// The reference to a part of the schema that is an alternative now.
fn moved(reference: &str) -> Option<String> {
    let pointer = reference.strip_prefix("#/")?;
    let first = pointer.split('/').next()?;
    (!DEFINITIONS.contains(&first)).then(|| format!("#/anyOf/0/{pointer}"))
}

/// A schema that allows a preview in addition to the tool's own values. The members of a preview are
/// named in the server's instructions, once for all tools.
pub(super) fn allow_spilled(own: &JsonObject) -> JsonObject {
    let mut own = own.clone();
    let mut schema = JsonObject::new();
    schema.insert("type".into(), "object".into());

    // A schema with an `$id` keeps its references, which are relative to the `$id`. In others they
    // move with what they refer to. One to the whole schema then allows a preview, too.
    if !own.contains_key("$id") {
        for name in DEFINITIONS {
            schema.extend(own.shift_remove_entry(name));
        }

        for part in [&mut own, &mut schema] {
            let mut value = Value::Object(std::mem::take(part));
            move_references(&mut value, &moved);
            if let Value::Object(members) = value {
                *part = members;
            }
        }
    }

    let preview =
        json!({ "properties": { "spilled": { "type": "object" } }, "required": ["spilled"] });
    schema.insert("anyOf".into(), json!([own, preview]));
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_grows_by_few_bytes() {
        let many = (0..40).map(|n| (format!("m{n}"), json!({ "$ref": "#/$defs/leaf" })));
        let many: JsonObject = many.collect();
        for schema in [
            json!({ "type": "object" }),
            json!({ "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"] }),
            json!({ "type": "object", "properties": many, "$defs": { "leaf": { "type": "integer" } } }),
            json!({ "type": "object", "properties": { "below": { "$ref": "#" } } }),
            json!({ "$id": "https://a.example/s", "type": "object" }),
        ] {
            let Value::Object(own) = schema else { panic!() };
            let before = Value::Object(own.clone()).to_string().len();
            let grown = Value::Object(allow_spilled(&own)).to_string().len() - before;
            assert!(grown <= 120, "{grown}: {own:?}");
        }
    }

    #[test]
    fn references_to_what_moves_move_with_it() {
        let own = json!({
            "type": "object",
            "properties": { "a": { "type": "integer" }, "b": { "$ref": "#/properties/a" } },
            "definitions": { "c": { "$ref": "#/properties/a" } },
            "additionalProperties": { "$ref": "#/definitions/c" },
        });
        let Value::Object(own) = own else { panic!() };
        let allowed = Value::Object(allow_spilled(&own));
        let validator = jsonschema::draft202012::new(&allowed).expect("a valid schema");
        assert!(validator.is_valid(&json!({ "a": 1, "b": 2, "d": 3 })));
        assert!(!validator.is_valid(&json!({ "b": "x" })));
        assert!(!validator.is_valid(&json!({ "d": "x" })));
    }

    #[test]
    fn references_to_the_root_still_work() {
        let tree = json!({
            "type": "object",
            "properties": {
                "leaf": { "$ref": "#/$defs/leaf" },
                "below": { "type": "array", "items": { "$ref": "#" } },
            },
            "required": ["leaf"],
            "$defs": { "leaf": { "type": "integer" } },
        });
        let Value::Object(tree) = tree else { panic!() };

        let admitted = Value::Object(allow_spilled(&tree));
        let validator = jsonschema::draft202012::new(&admitted).expect("a valid schema");
        assert!(validator.is_valid(&json!({ "leaf": 1, "below": [{ "leaf": 2 }] })));
        assert!(!validator.is_valid(&json!({ "leaf": 1, "below": [{ "leaf": "x" }] })));

        let resource =
            json!({ "uri": "a:b", "mime_type": "c/d", "size": 1, "expires": "e", "next": [] });
        let spilled =
            json!({ "spilled": { "note": "", "complete": false, "resources": [resource] } });
        assert!(validator.is_valid(&spilled));
        assert!(!validator.is_valid(&json!({ "spilled": 1 })));
    }
}
