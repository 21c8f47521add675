//! Translates schemas of older drafts to JSON Schema 2020-12.

use serde_json::{Map, Value, json};

/// The schema in 2020-12. Within another schema its `$schema` would not count,
/// and a tuple of draft-07 makes validators of 2020-12 fail.
pub(super) fn to_2020_12(mut schema: Value) -> Value {
    let dialect = schema.get("$schema").and_then(Value::as_str).unwrap_or_default();
    let is_old = ["draft-04", "draft-05", "draft-06", "draft-07"]
        .iter()
        .any(|draft| dialect.contains(draft));

    if let Some(members) = schema.as_object_mut() {
        members.remove("$schema");
    }
    translate(&mut schema, is_old);
    schema
}

fn translate(schema: &mut Value, is_old: bool) {
    let Some(members) = schema.as_object_mut() else { return };
    if is_old && members.get("$ref").is_some_and(Value::is_string) {
        // Keywords beside a reference are ignored up to draft-07.
        members.retain(|key, _| {
            matches!(key.as_str(), "$ref" | "description" | "title" | "definitions" | "$defs")
        });
    }

    translate_tuple(members);
    translate_dependencies(members);

    if is_old {
        for (flag, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
            translate_exclusive(members, flag, bound);
        }
        if let Some(id) = members.remove("id").filter(Value::is_string) {
            members.entry("$id").or_insert(id);
        }
    }

    for (key, value) in members {
        match key.as_str() {
            "properties" | "patternProperties" | "definitions" | "$defs" | "dependentSchemas" => {
                let schemas = value.as_object_mut().into_iter().flat_map(Map::values_mut);
                schemas.for_each(|schema| translate(schema, is_old));
            }
            "allOf" | "anyOf" | "oneOf" | "prefixItems" => {
                let schemas = value.as_array_mut().into_iter().flatten();
                schemas.for_each(|schema| translate(schema, is_old));
            }
            "items"
            | "additionalProperties"
            | "additionalItems"
            | "not"
            | "if"
            | "then"
            | "else"
            | "contains"
            | "propertyNames" => translate(value, is_old),
            _ => {}
        }
    }
}

/// A list of schemas in `items` is `prefixItems` now. `additionalItems: false`
/// becomes `maxItems`, which all drafts read alike: some clients read every
/// schema as draft-07, where `items: false` would allow no item at all.
pub(super) fn translate_tuple(members: &mut Map<String, Value>) {
    if !members.get("items").is_some_and(Value::is_array) {
        members.remove("additionalItems");
        return;
    }

    let items = members.remove("items").unwrap_or_default();
    let length = items.as_array().map_or(0, Vec::len);
    match members.remove("additionalItems") {
        Some(Value::Bool(false)) => {
            let max = members.get("maxItems").and_then(Value::as_u64).unwrap_or(u64::MAX);
            members.insert("maxItems".into(), json!(max.min(length as u64)));
        }
        Some(rest) if rest.is_object() => {
            members.insert("items".into(), rest);
        }
        _ => {}
    }

    if length > 0 {
        members.insert("prefixItems".into(), items);
    }
}

fn translate_dependencies(members: &mut Map<String, Value>) {
    let Some(Value::Object(dependencies)) = members.remove("dependencies") else { return };
    for (property, needed) in dependencies {
        let key = if needed.is_array() { "dependentRequired" } else { "dependentSchemas" };
        let translated = members.entry(key).or_insert_with(|| json!({}));
        if let Some(translated) = translated.as_object_mut() {
            translated.insert(property, needed);
        }
    }
}

/// In draft-04 the flag said that the bound itself is excluded.
pub(super) fn translate_exclusive(members: &mut Map<String, Value>, flag: &str, bound: &str) {
    match members.get(flag) {
        Some(Value::Bool(true)) => {
            members.remove(flag);
            if let Some(limit) = members.remove(bound) {
                members.insert(flag.to_owned(), limit);
            }
        }
        Some(Value::Bool(false)) => {
            members.remove(flag);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_older_drafts_say_is_said_in_2020_12() {
        let draft_07 = "http://json-schema.org/draft-07/schema#";

        for (old, new) in [
            (
                json!({ "$schema": draft_07, "type": "array", "items": [{ "type": "string" }], "additionalItems": false }),
                json!({ "type": "array", "prefixItems": [{ "type": "string" }], "maxItems": 1 }),
            ),
            (
                json!({ "items": [{}, {}], "additionalItems": { "type": "null" } }),
                json!({ "prefixItems": [{}, {}], "items": { "type": "null" } }),
            ),
            (
                json!({ "items": { "items": [true] }, "additionalItems": false }),
                json!({ "items": { "prefixItems": [true] } }),
            ),
            (
                json!({ "$schema": draft_07, "properties": { "a": { "$ref": "#/definitions/x", "type": "null" } } }),
                json!({ "properties": { "a": { "$ref": "#/definitions/x" } } }),
            ),
            (
                json!({ "properties": { "a": { "$ref": "#/$defs/x", "minLength": 1 } } }),
                json!({ "properties": { "a": { "$ref": "#/$defs/x", "minLength": 1 } } }),
            ),
            (
                json!({ "dependencies": { "a": ["b"], "c": { "required": ["d"] } } }),
                json!({ "dependentRequired": { "a": ["b"] }, "dependentSchemas": { "c": { "required": ["d"] } } }),
            ),
            (
                json!({ "$schema": "http://json-schema.org/draft-04/schema#", "minimum": 1, "exclusiveMinimum": true }),
                json!({ "exclusiveMinimum": 1 }),
            ),
            // A property may be called like a keyword.
            (
                json!({ "properties": { "dependencies": { "type": "array" } } }),
                json!({ "properties": { "dependencies": { "type": "array" } } }),
            ),
        ] {
            assert_eq!(to_2020_12(old), new);
        }
    }
}
