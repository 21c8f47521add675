//! The output schema of a tool whose result may be put by: its own, or the
//! form that stands for what was put by (2025-06-18 and later, tools: Output
//! Schema).

use rmcp::model::JsonObject;
use serde_json::{Value, json};

/// A schema that admits the spilled form beside what the tool's own does.
pub(super) fn admit(own: &JsonObject) -> JsonObject {
    let mut own = Value::Object(own.clone());
    // What refers to its own root has moved; with an `$id`, the root is named.
    if own.get("$id").is_none() {
        redirect(&mut own);
    }
    let schema = json!({ "type": "object", "anyOf": [own, form()] });
    let Value::Object(schema) = schema else { return JsonObject::new() };
    schema
}

fn redirect(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            for key in ["$ref", "$dynamicRef"] {
                if let Some(Value::String(reference)) = members.get_mut(key)
                    && let Some(rest) = reference.strip_prefix('#')
                    && (rest.is_empty() || rest.starts_with('/'))
                {
                    *reference = format!("#/anyOf/0{rest}");
                }
            }
            members.values_mut().for_each(redirect);
        }
        Value::Array(items) => items.iter_mut().for_each(redirect),
        _ => {}
    }
}

/// What stands for a result that was put by.
fn form() -> Value {
    json!({
        "type": "object",
        "description": "Instead of a result too large for an answer: a preview, and where all of it is stored.",
        "properties": {
            "spilled": {
                "type": "object",
                "properties": {
                    "note": { "type": "string" },
                    "complete": { "type": "boolean", "description": "Whether all of the result stands here." },
                    "resources": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {
                                "uri": { "type": "string" },
                                "mime_type": { "type": "string" },
                                "size": { "type": "integer", "description": "In bytes." },
                                "lines": { "type": "integer" },
                                "expires": { "type": "string" },
                                "next": { "type": "array", "items": { "type": "string" } },
                            },
                            "required": ["uri", "mime_type", "size", "expires", "next"],
                        },
                    },
                },
                "required": ["note", "complete", "resources"],
            },
        },
        "required": ["spilled"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_that_refers_to_itself_still_does() {
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
        let admitted = Value::Object(admit(&tree));
        let validator = jsonschema::draft202012::new(&admitted).expect("a valid schema");
        assert!(validator.is_valid(&json!({ "leaf": 1, "below": [{ "leaf": 2 }] })));
        assert!(!validator.is_valid(&json!({ "leaf": 1, "below": [{ "leaf": "x" }] })));
        let resource =
            json!({ "uri": "a:b", "mime_type": "c/d", "size": 1, "expires": "e", "next": [] });
        let spilled =
            json!({ "spilled": { "note": "", "complete": false, "resources": [resource] } });
        assert!(validator.is_valid(&spilled));
        assert!(!validator.is_valid(&json!({ "spilled": {} })));
    }
}
