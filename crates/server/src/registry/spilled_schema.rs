//! The output schema of a tool whose result can be stored: the tool's own schema,
//! or the schema of the preview (2025-06-18 and later, tools: Output Schema).

use larder_protocol::schema::move_references;
use rmcp::model::JsonObject;
use serde_json::{Value, json};

/// A schema that allows a preview in addition to the tool's own values.
pub(super) fn allow_spilled(own: &JsonObject) -> JsonObject {
    let mut own = Value::Object(own.clone());

    // References to the schema's root change, because it is nested now. A schema with an
    // `$id` keeps its references, which are relative to the `$id`.
    if own.get("$id").is_none() {
        move_references(&mut own, &|reference| {
            let pointer = reference.strip_prefix('#')?;
            let is_pointer = pointer.is_empty() || pointer.starts_with('/');
            is_pointer.then(|| format!("#/anyOf/0{pointer}"))
        });
    }

    let schema = json!({ "type": "object", "anyOf": [own, preview_schema()] });
    let Value::Object(schema) = schema else { return JsonObject::new() };
    schema
}

/// The structured content that replaces a stored result.
fn preview_schema() -> Value {
    json!({
        "type": "object",
        "description": "A preview of a result that is too large, and the resources that store all of it.",
        "properties": {
            "spilled": {
                "type": "object",
                "properties": {
                    "note": { "type": "string" },
                    "complete": { "type": "boolean", "description": "Whether the whole result is included here." },
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
        assert!(!validator.is_valid(&json!({ "spilled": {} })));
    }
}
