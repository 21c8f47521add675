//! Input schemas that are not quite what JSON Schema says, written as they are meant where that is
//! clear.

use std::collections::HashSet;

use larder_protocol::quote::shortened;
use serde_json::{Map, Value, json};

use super::{
    draft::{translate_exclusive, translate_tuple},
    object::Object,
};

/// The most schemas within each other that are mended.
const MAX_DEPTH: usize = 64;

/// Writes the input schema of a tool as the schema of an object.
///
/// # Errors
/// The reason why no arguments can fit it.
pub(super) fn input_schema(tool: &mut Object) -> Result<(), String> {
    let mut schema = match tool.take("inputSchema") {
        // A tool without a schema takes any arguments.
        None | Some(Value::Bool(true)) => json!({}),
        Some(Value::Array(items)) if items.is_empty() => json!({}),
        Some(Value::String(text)) => match serde_json::from_str(&text) {
            Ok(parsed @ Value::Object(_)) => parsed,
            _ => return Err(format!("its inputSchema is the text {}", shortened(&text))),
        },
        Some(schema) => schema,
    };

    if schema.is_object() {
        mend(&mut schema, 0);
    }
    let Value::Object(members) = &mut schema else {
        return Err("its inputSchema is no object".to_owned());
    };

    match members.get("type") {
        Some(Value::String(name)) if name == "object" => {}
        Some(Value::Array(names)) if names.iter().any(|name| name == "object") => {}
        Some(other) => {
            let other = other.to_string();
            return Err(format!(
                "its inputSchema is of the type {}, but arguments are an object",
                shortened(&other)
            ));
        }
        None if !may_be_object(members) => {
            return Err("no alternative of its inputSchema is an object".to_owned());
        }
        None => {}
    }

    // Clients look for the type first.
    let mut typed = Map::with_capacity(members.len() + 1);
    typed.insert("type".into(), "object".into());
    members.remove("type");
    typed.append(members);
    tool.set("inputSchema", typed);
    Ok(())
}

/// Whether an object can fit the alternatives of a schema without a type.
fn may_be_object(schema: &Map<String, Value>) -> bool {
    let can = |alternative: &Value| match alternative.get("type") {
        Some(Value::String(name)) => name == "object",
        Some(Value::Array(names)) => names.iter().any(|name| name == "object"),
        _ => true,
    };
    ["anyOf", "oneOf"].iter().all(|keyword| match schema.get(*keyword) {
        Some(Value::Array(alternatives)) => alternatives.iter().any(can),
        _ => true,
    })
}

/// Writes a schema with keywords as JSON Schema has them.
fn mend(schema: &mut Value, depth: usize) {
    if depth > MAX_DEPTH {
        return;
    }
    match schema {
        Value::Object(members) => mend_members(members, depth),
        // A type alone, or what people read.
        Value::String(text) => {
            *schema = match type_name(text) {
                Some(name) => json!({ "type": name }),
                None => json!({ "description": text }),
            };
        }
        Value::Bool(_) => {}
        Value::Null | Value::Array(_) | Value::Number(_) => *schema = json!({}),
    }
}

fn mend_members(members: &mut Map<String, Value>, depth: usize) {
    // Unlike `default`, `const` and members of one's own, keywords are never null.
    members.retain(|keyword, value| !(value.is_null() && is_keyword(keyword)));
    mend_type(members);

    for keyword in ["description", "title", "pattern", "format"] {
        if members.get(keyword).is_some_and(|value| !value.is_string()) {
            members.remove(keyword);
        }
    }
    for keyword in [
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "minProperties",
        "maxProperties",
    ] {
        mend_number(members, keyword);
    }
    for keyword in ["anyOf", "oneOf", "allOf", "enum"] {
        let is_list = |value: &Value| value.as_array().is_some_and(|items| !items.is_empty());
        if members.get(keyword).is_some_and(|value| !is_list(value)) {
            members.remove(keyword);
        }
    }

    for (flag, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        translate_exclusive(members, flag, bound);
    }
    // All drafts read them alike then. Some hosts refuse a list without a schema of its items.
    translate_tuple(members);
    if allows_lists(members) {
        members.entry("items").or_insert_with(|| json!({}));
    }

    mend_properties(members, depth);
    for (keyword, value) in members {
        match (keyword.as_str(), &mut *value) {
            ("anyOf" | "oneOf" | "allOf" | "prefixItems" | "items", Value::Array(schemas)) => {
                for schema in schemas {
                    mend(schema, depth + 1);
                }
            }
            ("$defs" | "definitions" | "patternProperties", Value::Object(schemas)) => {
                for schema in schemas.values_mut() {
                    mend(schema, depth + 1);
                }
            }
            ("$defs" | "definitions" | "patternProperties", other) => *other = json!({}),
            ("items" | "additionalProperties" | "not", schema) => mend(schema, depth + 1),
            _ => {}
        }
    }
}

/// Whether a schema names lists among its types.
fn allows_lists(members: &Map<String, Value>) -> bool {
    match members.get("type") {
        Some(Value::String(name)) => name == "array",
        Some(Value::Array(names)) => names.iter().any(|name| name == "array"),
        _ => members.contains_key("prefixItems"),
    }
}

/// Writes properties as an object of schemas, and what is required as a list of their names.
fn mend_properties(members: &mut Map<String, Value>, depth: usize) {
    let mut required: Vec<Value> = match members.remove("required") {
        Some(Value::Array(names)) => names.into_iter().filter(Value::is_string).collect(),
        Some(Value::String(name)) => vec![name.into()],
        _ => Vec::new(),
    };

    match members.get_mut("properties") {
        Some(Value::Object(properties)) => {
            for (name, property) in properties {
                // Before draft-04, a property said itself that it is required.
                if let Value::Object(property) = property
                    && property.get("required").is_some_and(Value::is_boolean)
                    && property.remove("required") == Some(json!(true))
                    && !required.iter().any(|known| known == name)
                {
                    required.push(name.as_str().into());
                }
                mend(property, depth + 1);
            }
        }
        // PHP writes an object without members so.
        Some(other) => *other = json!({}),
        None => {}
    }

    let mut seen = HashSet::new();
    required.retain(|name| seen.insert(name.to_string()));
    if !required.is_empty() {
        members.insert("required".into(), required.into());
    }
}

/// Writes a type by its name in JSON Schema. One without such a name allows any value.
fn mend_type(members: &mut Map<String, Value>) {
    let mended = match members.get("type") {
        Some(Value::String(name)) => type_name(name).map(Value::from),
        Some(Value::Array(names)) => {
            let known: Vec<_> = names
                .iter()
                .filter_map(|name| type_name(name.as_str().unwrap_or("null")))
                .map(Value::from)
                .collect();
            (!known.is_empty() && known.len() == names.len()).then(|| known.into())
        }
        None => return,
        Some(_) => None,
    };

    match mended {
        Some(name) => {
            members.insert("type".into(), name);
        }
        None => {
            members.remove("type");
        }
    }
}

fn type_name(name: &str) -> Option<&'static str> {
    Some(match name.trim().to_ascii_lowercase().as_str() {
        "string" | "str" => "string",
        "integer" | "int" => "integer",
        "number" | "float" | "double" => "number",
        "boolean" | "bool" => "boolean",
        "array" | "list" => "array",
        "object" | "dict" | "map" => "object",
        "null" | "none" => "null",
        _ => return None,
    })
}

fn mend_number(members: &mut Map<String, Value>, keyword: &str) {
    let parsed = match members.get(keyword) {
        Some(Value::String(text)) => serde_json::from_str::<serde_json::Number>(text.trim()).ok(),
        // The flags of draft-04 are translated later.
        _ => return,
    };
    match parsed {
        Some(number) => members.insert(keyword.to_owned(), number.into()),
        None => members.remove(keyword),
    };
}

/// Whether null in place of the keyword's value says nothing.
fn is_keyword(name: &str) -> bool {
    matches!(
        name,
        "$schema"
            | "$id"
            | "$ref"
            | "$defs"
            | "definitions"
            | "type"
            | "title"
            | "description"
            | "properties"
            | "patternProperties"
            | "additionalProperties"
            | "required"
            | "enum"
            | "items"
            | "prefixItems"
            | "additionalItems"
            | "anyOf"
            | "oneOf"
            | "allOf"
            | "not"
            | "format"
            | "pattern"
            | "minimum"
            | "maximum"
            | "exclusiveMinimum"
            | "exclusiveMaximum"
            | "multipleOf"
            | "minLength"
            | "maxLength"
            | "minItems"
            | "maxItems"
            | "uniqueItems"
            | "minProperties"
            | "maxProperties"
            | "examples"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mended(schema: Value) -> Result<Value, String> {
        let mut tool = Object::from(Map::from_iter([("inputSchema".to_owned(), schema)]));
        input_schema(&mut tool)?;
        Ok(tool.take("inputSchema").unwrap_or_default())
    }

    #[test]
    fn a_schema_whose_meaning_is_clear_is_that_of_an_object() {
        let object = json!({ "type": "object" });
        let either = json!([{ "required": ["a"] }, { "type": "object", "required": ["b"] }]);

        for (sent, meant) in [
            (json!({}), object.clone()),
            (json!(null), object.clone()),
            (json!(true), object.clone()),
            (json!([]), object.clone()),
            (json!("{\"type\":\"object\"}"), object.clone()),
            (json!({ "type": ["object", "null"] }), object.clone()),
            (json!({ "type": "OBJECT" }), object.clone()),
            (json!({ "anyOf": either }), json!({ "type": "object", "anyOf": either })),
            (json!({ "$ref": "#/$defs/a" }), json!({ "type": "object", "$ref": "#/$defs/a" })),
            (
                json!({ "properties": [], "required": null }),
                json!({ "type": "object", "properties": {} }),
            ),
            (
                json!({ "type": "object", "properties": { "a": null, "b": "string", "c": "The third.", "d": 5, "e": true } }),
                json!({ "type": "object", "properties": {
                    "a": {}, "b": { "type": "string" }, "c": { "description": "The third." }, "d": {}, "e": true,
                } }),
            ),
            (
                json!({ "properties": { "a": { "type": "int", "required": true, "minimum": "1" }, "b": { "type": "file", "enum": null, "default": null } }, "required": "b" }),
                json!({ "type": "object", "properties": {
                    "a": { "type": "integer", "minimum": 1 }, "b": { "default": null },
                }, "required": ["b", "a"] }),
            ),
            (
                json!({ "properties": { "type": { "type": "array", "items": null }, "required": { "type": ["STRING", null] } } }),
                json!({ "type": "object", "properties": {
                    "type": { "type": "array", "items": {} }, "required": { "type": ["string", "null"] },
                } }),
            ),
        ] {
            assert_eq!(mended(sent.clone()), Ok(meant), "{sent}");
        }
    }

    #[test]
    fn what_hosts_refuse_is_written_in_2020_12() {
        let integer = || json!({ "type": "integer" });
        for (sent, meant) in [
            (json!({ "type": "array" }), json!({ "type": "array", "items": {} })),
            (
                json!({ "type": ["array", "null"] }),
                json!({ "type": ["array", "null"], "items": {} }),
            ),
            (
                json!({ "type": "array", "items": { "type": "list" } }),
                json!({ "type": "array", "items": { "type": "array", "items": {} } }),
            ),
            (
                json!({ "anyOf": [{ "type": "array" }, { "type": "int" }] }),
                json!({ "anyOf": [{ "type": "array", "items": {} }, integer()] }),
            ),
            (
                json!({ "type": "array", "items": [integer(), "str"], "additionalItems": false }),
                json!({ "type": "array", "prefixItems": [integer(), { "type": "string" }], "items": {}, "maxItems": 2 }),
            ),
            (
                json!({ "items": [integer()], "additionalItems": integer() }),
                json!({ "prefixItems": [integer()], "items": integer() }),
            ),
            (
                json!({ "minimum": 0, "exclusiveMinimum": true, "maximum": 9, "exclusiveMaximum": false }),
                json!({ "exclusiveMinimum": 0, "maximum": 9 }),
            ),
            (json!({ "exclusiveMaximum": true }), json!({})),
            (json!({ "exclusiveMaximum": 5 }), json!({ "exclusiveMaximum": 5 })),
            (
                json!({ "properties": { "a": {} }, "required": ["a", 5, "a", "b", "a"] }),
                json!({ "properties": { "a": {} }, "required": ["a", "b"] }),
            ),
        ] {
            let schema =
                |property: Value| json!({ "type": "object", "properties": { "p": property } });
            assert_eq!(mended(schema(sent.clone())), Ok(schema(meant)), "{sent}");
        }

        let own = json!({ "type": "object", "required": ["a", "a"] });
        assert_eq!(mended(own), Ok(json!({ "type": "object", "required": ["a"] })));
    }

    #[test]
    fn a_schema_that_no_object_fits_is_refused_with_the_reason() {
        for (sent, said) in [
            (json!({ "type": "string" }), "\"string\""),
            (json!({ "type": ["array", "null"] }), "[\"array\",\"null\"]"),
            (json!({ "anyOf": [{ "type": "string" }, { "type": "integer" }] }), "no alternative"),
            (json!("see the manual"), "see the manual"),
            (json!(false), "no object"),
            (json!([5]), "no object"),
        ] {
            let why = mended(sent.clone()).expect_err("it is refused");
            assert!(why.contains(said), "{sent}: {why}");
        }
    }
}
