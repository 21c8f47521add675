use serde_json::{Map, Value, json};

use super::{listed_arguments, listed_as_is};

fn members(schema: Value) -> Map<String, Value> {
    match schema {
        Value::Object(members) => members,
        other => panic!("an object: {other}"),
    }
}

fn own(schema: Value) -> Value {
    listed_arguments(&members(schema)).into()
}

fn upstream(schema: Value) -> Value {
    listed_as_is(&members(schema)).into()
}

/// The schema of an object with one member, `p`.
fn of(property: impl Into<Value>) -> Value {
    json!({ "type": "object", "properties": { "p": property.into() } })
}

#[test]
fn an_optional_member_of_own_tools_has_one_type() {
    for (schema, listed) in [
        (json!({ "type": ["string", "null"] }), json!({ "type": "string" })),
        (
            json!({ "type": ["null", "integer"], "minimum": 1 }),
            json!({ "type": "integer", "minimum": 1 }),
        ),
        (json!({ "type": ["integer", "number"] }), json!({ "type": "number" })),
        (
            json!({ "anyOf": [{ "type": "array", "items": { "type": "string" } }, { "type": "null" }], "default": null }),
            json!({ "type": "array", "items": { "type": "string" } }),
        ),
        (
            json!({ "type": ["string", "null"], "enum": ["a", null] }),
            json!({ "type": "string", "enum": ["a"] }),
        ),
        (json!({ "const": 5 }), json!({ "type": "integer", "enum": [5] })),
        (json!(true), json!({})),
    ] {
        assert_eq!(own(of(schema.clone()))["properties"]["p"], listed, "{schema}");
    }
}

#[test]
fn alternatives_of_one_type_become_one_type() {
    let documented = json!({ "oneOf": [
        { "type": "string", "enum": ["asc", "desc"] },
        { "type": "string", "const": "none", "description": "As they are." },
    ] });
    let one = json!({ "type": "string", "enum": ["asc", "desc", "none"], "description": "none: As they are." });
    assert_eq!(own(of(documented))["properties"]["p"], one);

    let tagged = json!({ "oneOf": [
        { "type": "object", "properties": { "kind": { "type": "string", "const": "a" }, "x": { "type": "integer" } }, "required": ["kind", "x"] },
        { "type": "object", "properties": { "kind": { "type": "string", "const": "b" } }, "required": ["kind"] },
    ] });
    let one = json!({
        "type": "object",
        "properties": { "kind": { "type": "string", "enum": ["a", "b"] }, "x": { "type": "integer" } },
        "required": ["kind"],
    });
    assert_eq!(own(of(tagged))["properties"]["p"], one);

    let mixed = json!({ "type": ["string", "integer"], "minLength": 1 });
    let two = json!({ "anyOf": [{ "type": "string", "minLength": 1 }, { "type": "integer" }] });
    assert_eq!(own(of(mixed))["properties"]["p"], two);
}

#[test]
fn references_are_written_out_and_recursion_ends() {
    let schema = json!({
        "type": "object",
        "properties": {
            "unit": { "$ref": "#/$defs/Unit", "description": "The unit." },
            "maybe": { "anyOf": [{ "$ref": "#/$defs/Unit" }, { "type": "null" }] },
            "tree": { "$ref": "#/$defs/Tree" },
        },
        "$defs": {
            "Unit": { "type": "string", "enum": ["a"], "description": "Any." },
            "Tree": { "type": "object", "properties": { "children": { "type": "array", "items": { "$ref": "#/$defs/Tree" } } } },
        },
    });
    let listed = own(schema.clone());

    assert_eq!(
        listed["properties"],
        json!({
            "unit": { "type": "string", "enum": ["a"], "description": "The unit." },
            "maybe": { "type": "string", "enum": ["a"], "description": "Any." },
            "tree": { "type": "object", "properties": { "children": { "type": "array", "items": { "type": "object" } } } },
        })
    );
    assert!(listed.get("$defs").is_none());

    // An upstream reads its arguments itself, and may need what the recursion allows.
    let kept = upstream(schema);
    assert_eq!(kept["properties"]["tree"], json!({ "$ref": "#/$defs/Tree" }));
}

#[test]
fn a_schema_of_an_upstream_allows_the_same_values() {
    for (schema, listed) in [
        // Null is the default, so nothing is lost.
        (
            json!({ "anyOf": [{ "type": "integer" }, { "type": "null" }], "default": null, "title": "P" }),
            json!({ "type": "integer", "title": "P" }),
        ),
        (json!({ "type": ["string", "null"], "default": null }), json!({ "type": "string" })),
        // Null clears a value here.
        (
            json!({ "type": ["string", "null"], "description": "Null clears it." }),
            json!({ "description": "Null clears it.", "anyOf": [{ "type": "string" }, { "type": "null" }] }),
        ),
        (
            json!({ "type": ["integer", "null"], "default": 5, "minimum": 1 }),
            json!({ "default": 5, "anyOf": [{ "type": "integer", "minimum": 1 }, { "type": "null" }] }),
        ),
        (
            json!({ "allOf": [{ "$ref": "#/$defs/a" }], "title": "A" }),
            json!({ "title": "A", "type": "string" }),
        ),
        (json!({ "const": 5 }), json!({ "const": 5 })),
        (
            json!({ "oneOf": [{ "const": "a" }, { "const": "b" }] }),
            json!({ "oneOf": [{ "const": "a" }, { "const": "b" }] }),
        ),
        (
            json!({ "$ref": "#/$defs/a", "minLength": 2 }),
            json!({ "minLength": 2, "type": "string" }),
        ),
    ] {
        let mut whole = of(schema.clone());
        whole["$defs"] = json!({ "a": { "type": "string" } });
        assert_eq!(upstream(whole)["properties"]["p"], listed, "{schema}");
    }

    let required = json!({ "type": "object", "properties": { "p": { "type": ["string", "null"], "default": null } }, "required": ["p"] });
    let kept = json!({ "default": null, "anyOf": [{ "type": "string" }, { "type": "null" }] });
    assert_eq!(upstream(required)["properties"]["p"], kept);
}

#[test]
fn references_that_lead_nowhere_or_multiply_stay() {
    let remote = of(json!({ "$ref": "https://example.com/a.json", "type": "string" }));
    assert_eq!(upstream(remote)["properties"]["p"]["$ref"], "https://example.com/a.json");

    let mut definitions = Map::new();
    for n in 0..30 {
        let next = json!({ "$ref": format!("#/$defs/d{}", n + 1) });
        definitions.insert(
            format!("d{n}"),
            json!({ "type": "object", "properties": { "a": next, "b": next } }),
        );
    }
    definitions.insert("d30".into(), json!({ "type": "string" }));
    let bomb = json!({ "type": "object", "properties": { "p": { "$ref": "#/$defs/d0" } }, "$defs": definitions });
    assert!(upstream(bomb.clone()).to_string().len() < 4_000);
    assert!(own(bomb).to_string().len() < 4_000);
}

#[test]
fn a_schema_that_names_its_dialect_or_places_is_listed_as_it_is() {
    let mut schema = json!({
        "type": "object",
        "$defs": { "address": { "$anchor": "addressDef", "type": "object" } },
        "properties": { "address": { "$ref": "#/$defs/address" } },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
    });
    assert_eq!(upstream(schema.clone()), schema);

    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    assert_eq!(own(schema.clone()), schema);
    assert_eq!(upstream(schema.clone()), schema);
}

#[test]
fn a_member_may_be_called_like_a_keyword() {
    let schema = json!({ "type": "object", "properties": {
        "type": { "type": ["string", "null"] },
        "$ref": { "type": "string" },
        "properties": { "type": "object", "properties": { "anyOf": { "type": ["boolean", "null"] } } },
    } });

    assert_eq!(
        own(schema)["properties"],
        json!({
            "type": { "type": "string" },
            "$ref": { "type": "string" },
            "properties": { "type": "object", "properties": { "anyOf": { "type": "boolean" } } },
        })
    );
}

#[test]
fn a_type_may_say_how_it_is_listed() {
    let property = json!({ "x-larder-listed": { "type": "string" }, "description": "A URI.", "anyOf": [{}, {}] });
    let listed = json!({ "type": "string", "description": "A URI." });
    assert_eq!(own(of(property))["properties"]["p"], listed);
}
