//! Signatures of tools in TypeScript, for code.

use larder_records::words::cut;
use rmcp::model::JsonObject;
use serde_json::Value;

use crate::registry::RESERVED;

/// The most levels of objects that a type shows.
const MAX_DEPTH: usize = 3;
/// The most values of an enumeration that a type shows.
const MAX_VALUES: usize = 12;
/// The longest signature, in bytes.
const MAX_BYTES: usize = 1_500;

/// The signature of a tool: `crm__get(args: { n: number; full?: boolean }): Promise<any>`. Without
/// the reserved argument, which code does not pass.
pub(in crate::tools) fn signature(
    name: &str,
    input: &JsonObject,
    output: Option<&JsonObject>,
) -> String {
    let arguments = object(input, MAX_DEPTH);
    let result = output.map_or_else(|| "any".to_owned(), |output| object(output, MAX_DEPTH));
    let text = format!("{name}(args: {arguments}): Promise<{result}>");
    if text.len() <= MAX_BYTES { text } else { format!("{}…", cut(&text, MAX_BYTES)) }
}

/// The type of values that a schema describes.
fn type_of(schema: &Value, depth: usize) -> String {
    let Some(schema) = schema.as_object() else { return "any".to_owned() };
    if let Some(values) = schema.get("enum").and_then(Value::as_array)
        && values.len() <= MAX_VALUES
    {
        return union(values.iter().map(ToString::to_string));
    }
    if let Some(value) = schema.get("const") {
        return value.to_string();
    }
    for keyword in ["anyOf", "oneOf"] {
        if let Some(schemas) = schema.get(keyword).and_then(Value::as_array) {
            return union(schemas.iter().map(|schema| type_of(schema, depth)));
        }
    }

    match schema.get("type") {
        Some(Value::Array(names)) => union(names.iter().map(|name| {
            let name = name.as_str().unwrap_or_default();
            named(name, schema, depth)
        })),
        Some(Value::String(name)) => named(name, schema, depth),
        _ if schema.contains_key("properties") => named("object", schema, depth),
        _ => "any".to_owned(),
    }
}

/// The type of the values of one JSON type.
fn named(name: &str, schema: &JsonObject, depth: usize) -> String {
    match name {
        "integer" | "number" => "number".to_owned(),
        "string" | "boolean" | "null" => name.to_owned(),
        "array" => {
            let items = schema.get("items").map_or("any".to_owned(), |items| type_of(items, depth));
            if items.contains(" | ") { format!("({items})[]") } else { format!("{items}[]") }
        }
        "object" => object(schema, depth),
        _ => "any".to_owned(),
    }
}

fn object(schema: &JsonObject, depth: usize) -> String {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return "object".to_owned();
    };
    if depth == 0 || properties.is_empty() {
        return if properties.is_empty() { "{}" } else { "object" }.to_owned();
    }

    let required = schema.get("required").and_then(Value::as_array);
    let is_required =
        |name: &str| required.is_some_and(|names| names.iter().any(|given| given == name));
    let properties = properties.iter().filter(|(name, _)| *name != RESERVED);
    let members = properties.map(|(name, schema)| {
        let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let shown = if is_plain { name.clone() } else { Value::from(name.as_str()).to_string() };
        let mark = if is_required(name) { "" } else { "?" };
        format!("{shown}{mark}: {}", type_of(schema, depth - 1))
    });
    format!("{{ {} }}", members.collect::<Vec<_>>().join("; "))
}

fn union(types: impl Iterator<Item = String>) -> String {
    let mut distinct = Vec::new();
    for name in types {
        if !distinct.contains(&name) {
            distinct.push(name);
        }
    }
    distinct.join(" | ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_is_a_type() {
        let schema = json!({
            "type": "object",
            "required": ["n", "kind"],
            "properties": {
                "n": { "type": "integer" },
                "_larder": { "type": "object" },
                "kind": { "enum": ["a", "b"] },
                "labels": { "type": "array", "items": { "type": ["string", "null"] } },
                "of": { "anyOf": [{ "type": "boolean" }, { "type": "object", "properties": { "x-y": true } }] },
                "deep": { "type": "object", "properties": { "a": { "properties": { "b": { "properties": { "c": {} } } } } } },
            },
        });
        let schema = schema.as_object().cloned().unwrap_or_default();
        assert_eq!(
            signature("crm__get", &schema, None),
            r#"crm__get(args: { n: number; kind: "a" | "b"; labels?: (string | null)[]; of?: boolean | { "x-y"?: any }; deep?: { a?: { b?: object } } }): Promise<any>"#
        );

        let long: JsonObject = (0..500).map(|n| (format!("parameter_{n}"), json!({}))).collect();
        let long = json!({ "properties": long }).as_object().cloned().unwrap_or_default();
        assert!(signature("x", &long, None).len() < MAX_BYTES + 10);
    }
}
