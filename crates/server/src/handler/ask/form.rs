//! Forms: the flat schemas that clients can show (2025-11-25 and later, elicitation: Requested
//! Schema).

use larder_protocol::schema;
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde_json::{Map, Value, json};

/// The schema of a form with the fields of a struct.
///
/// # Errors
/// The field that a client could not show.
pub(crate) fn describe<T: JsonSchema>() -> Result<JsonObject, String> {
    let mut schema = schema::describe_inline::<T>();
    if let Some(Value::Object(fields)) = schema.get_mut("properties") {
        fields.values_mut().filter_map(Value::as_object_mut).for_each(simplify);
    }
    check(&schema)?;
    Ok(schema)
}

/// The reason why clients cannot show a struct as a form, for the problems of a definition.
pub(crate) fn problem_of<T: JsonSchema>() -> Option<String> {
    let problem = describe::<T>().err()?;
    Some(format!("Form {:?}: {problem}", T::schema_name()))
}

/// Checks that a schema is one of a form.
///
/// # Errors
/// The field that a client could not show.
pub(crate) fn check(schema: &JsonObject) -> Result<(), String> {
    let fields = schema.get("properties").and_then(Value::as_object);
    let (Some(fields), true) = (fields, schema.get("type") == Some(&json!("object"))) else {
        return Err("a form must be a struct with fields".into());
    };

    match fields.iter().find(|(_, field)| !is_field(field)) {
        None => Ok(()),
        Some((name, _)) => Err(format!(
            "clients cannot show the form's field {name:?}: a field is a string, a number, a boolean, a choice of strings or a list of such choices, without nesting and $ref"
        )),
    }
}

fn is_field(field: &Value) -> bool {
    if field.get("$ref").is_some() {
        return false;
    }

    match field.get("type").and_then(Value::as_str) {
        Some("string" | "number" | "integer" | "boolean") => true,
        Some("array") => field.get("items").is_some_and(|items| {
            let choices = items.get("enum").or_else(|| items.get("anyOf"));
            choices.is_some_and(Value::is_array) && items.get("$ref").is_none()
        }),
        _ => false,
    }
}

/// Writes optional fields and enums as clients expect them: a field that may be left out has
/// the type of its value, and the values of an enum are a list.
fn simplify(field: &mut JsonObject) {
    let is_null = |schema: &Value| schema.get("type") == Some(&json!("null"));

    if let Some(Value::Array(types)) = field.get("type") {
        let mut others = types.iter().filter(|name| **name != json!("null"));
        if let (Some(only), None) = (others.next(), others.next()) {
            let only = only.clone();
            field.insert("type".into(), only);
        }
    }

    if let Some(Value::Array(options)) = field.get("anyOf") {
        let mut others = options.iter().filter(|option| !is_null(option));
        if let (Some(Value::Object(only)), None) = (others.next(), others.next()) {
            let only = only.clone();
            field.remove("anyOf");
            // The field's own description wins.
            for (key, value) in only {
                field.entry(key).or_insert(value);
            }
        }
    }

    for values in [constants(field), without_null(field)].into_iter().flatten() {
        field.remove("oneOf");
        field.insert("type".into(), json!("string"));
        field.insert("enum".into(), values);
    }

    if let Some(Value::Object(items)) = field.get_mut("items") {
        simplify(items);
    }
}

/// The values of an enum whose variants have descriptions.
fn constants(field: &Map<String, Value>) -> Option<Value> {
    let variants = field.get("oneOf")?.as_array()?;
    let lists: Option<Vec<_>> = variants
        .iter()
        .map(|variant| match variant.get("enum") {
            Some(Value::Array(values)) => Some(values.clone()),
            _ => variant.get("const").map(|value| vec![value.clone()]),
        })
        .collect();

    let values = lists?.concat();
    values.iter().all(Value::is_string).then(|| values.into())
}

/// The values of an optional enum.
fn without_null(field: &Map<String, Value>) -> Option<Value> {
    let values = field.get("enum")?.as_array()?;
    let strings: Vec<_> = values.iter().filter(|value| value.is_string()).cloned().collect();
    let is_optional = strings.len() + 1 == values.len() && values.contains(&Value::Null);
    is_optional.then(|| strings.into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, dead_code)]

    use super::*;

    #[derive(JsonSchema)]
    enum Colour {
        Red,
        /// Like the sky.
        Blue,
    }

    #[derive(JsonSchema)]
    struct Flat {
        /// The name.
        name: String,
        count: Option<u32>,
        /// The favourite.
        colour: Colour,
        other: Option<Colour>,
        many: Vec<Colour>,
    }

    #[derive(JsonSchema)]
    struct Inner {
        name: String,
    }

    #[derive(JsonSchema)]
    struct Nested {
        inner: Inner,
    }

    #[derive(JsonSchema)]
    struct Recursive {
        name: String,
        next: Option<Box<Recursive>>,
    }

    #[test]
    fn flat_structs_are_forms() {
        let schema = describe::<Flat>().unwrap();
        let fields = &schema["properties"];

        assert_eq!(fields["name"], json!({ "type": "string", "description": "The name." }));
        assert_eq!(fields["count"]["type"], "integer");
        for field in [&fields["colour"], &fields["other"], &fields["many"]["items"]] {
            assert_eq!(
                (&field["type"], &field["enum"]),
                (&json!("string"), &json!(["Red", "Blue"]))
            );
        }

        assert_eq!(fields["colour"]["description"], "The favourite.");
        assert!(!Value::Object(schema.clone()).to_string().contains("$ref"), "{schema:?}");
        assert_eq!(schema["required"], json!(["name", "colour", "many"]));
    }

    #[test]
    fn structs_that_no_client_could_show_are_refused() {
        assert!(describe::<Nested>().unwrap_err().contains("\"inner\""));
        assert!(describe::<Recursive>().unwrap_err().contains("\"next\""));
        assert!(describe::<String>().unwrap_err().contains("struct"));
    }
}
