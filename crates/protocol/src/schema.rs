//! JSON Schemas of argument structs, the forms in which they are listed, and the validation of
//! arguments.

mod fit;
mod plain;

use std::sync::Arc;

use jsonschema::error::ValidationErrorKind;
use rmcp::model::JsonObject;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Value, json};

pub use self::plain::{listed_arguments, listed_as_is, target_of};
use crate::quote::{quoted, shortened};

/// The schema of an argument struct: its name, doc comment and fields.
pub struct ArgumentSchema {
    /// The name of the struct, in snake case.
    pub name: String,
    /// The doc comment of the struct.
    pub description: Option<String>,
    /// The JSON Schema of the type.
    pub schema: JsonObject,
    /// Whether the struct has no fields, for a tool without arguments.
    pub is_unit: bool,
}

/// The schema of an argument struct. A name such as `SearchLogs` becomes
/// `search_logs`.
pub fn describe<A: JsonSchema>() -> ArgumentSchema {
    let mut schema = root_schema::<A>(SchemaSettings::draft2020_12());
    let mut take = |key: &str| schema.as_object_mut().and_then(|s| s.remove(key));
    let description = take("description").and_then(|d| d.as_str().map(unwrap_lines));
    simplify(&mut schema);

    let is_unit = schema.get("type") == Some(&json!("null"));
    if is_unit {
        schema = json!({ "type": "object", "additionalProperties": false });
    }

    let schema = match schema {
        Value::Object(schema) => schema,
        _ => JsonObject::new(),
    };
    ArgumentSchema { name: snake_case(&A::schema_name()), description, schema, is_unit }
}

/// The schema of a struct without references, as far as it is not recursive.
pub fn describe_inline<T: JsonSchema>() -> JsonObject {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    let mut schema = root_schema::<T>(settings);
    simplify(&mut schema);

    match schema {
        Value::Object(mut schema) => {
            schema.remove("description");
            schema
        }
        _ => JsonObject::new(),
    }
}

fn root_schema<T: JsonSchema>(settings: SchemaSettings) -> Value {
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Some(members) = schema.as_object_mut() {
        // 2020-12 is the default dialect, and the tool has the name.
        members.remove("$schema");
        members.remove("title");
    }
    schema
}

/// The schema of the values that a type serializes to, and whether they must be
/// wrapped in an object: `{KEY: value}`.
pub fn describe_output<T: JsonSchema>(key: &str) -> (JsonObject, bool) {
    let mut schema = root_schema::<T>(SchemaSettings::draft2020_12().for_serialize());
    simplify(&mut schema);
    match schema {
        Value::Object(schema) if schema.get("type") == Some(&json!("object")) => (schema, false),
        mut schema => {
            let definitions = schema.as_object_mut().and_then(|s| s.remove("$defs"));

            let mut members = JsonObject::new();
            members.insert("type".into(), json!("object"));
            members.insert("properties".into(), json!({ key: schema }));
            members.insert("required".into(), json!([key]));
            members.extend(definitions.map(|definitions| ("$defs".into(), definitions)));

            // References to the root now refer to the wrapped schema.
            let mut wrapper = Value::Object(members);
            move_references(&mut wrapper, &|reference| {
                (reference == "#").then(|| format!("#/properties/{key}"))
            });

            let Value::Object(members) = wrapper else { return (JsonObject::new(), true) };
            (members, true)
        }
    }
}

/// Changes the references in a schema, after a part of it has moved. `moved`
/// returns the new form of a reference, or `None` if it stays.
pub fn move_references(schema: &mut Value, moved: &impl Fn(&str) -> Option<String>) {
    match schema {
        Value::Object(members) => {
            for key in ["$ref", "$dynamicRef"] {
                if let Some(Value::String(reference)) = members.get_mut(key)
                    && let Some(new) = moved(reference)
                {
                    *reference = new;
                }
            }

            members.values_mut().for_each(|value| move_references(value, moved));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| move_references(item, moved)),
        _ => {}
    }
}

/// Removes what costs a model tokens without informing it: line breaks within a
/// comment's paragraphs, defaults of null, Rust's integer widths.
fn simplify(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            let is_property_list = members.values().all(Value::is_object);
            if !is_property_list {
                members.retain(|key, value| {
                    let is_redundant = (key == "default" && value.is_null())
                        || (key == "format" && value.as_str().is_some_and(is_rust_number));
                    !is_redundant
                });

                if let Some(Value::String(text)) = members.get_mut("description") {
                    *text = unwrap_lines(text);
                }
            }

            members.values_mut().for_each(simplify);
        }
        Value::Array(items) => items.iter_mut().for_each(simplify),
        _ => {}
    }
}

fn is_rust_number(format: &str) -> bool {
    let width = format.trim_start_matches("uint").trim_start_matches("int");
    width.is_empty()
        || width.bytes().all(|b| b.is_ascii_digit())
        || matches!(format, "float" | "double")
}

/// Joins the lines of each paragraph.
fn unwrap_lines(text: &str) -> String {
    let paragraphs = text.split("\n\n").map(|p| p.split_whitespace().collect::<Vec<_>>().join(" "));
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    let mut previous: Option<char> = None;

    for (offset, c) in name.char_indices() {
        let next = name[offset + c.len_utf8()..].chars().next();
        let starts_word = c.is_uppercase()
            && previous.is_some_and(|p| {
                p.is_lowercase() || p.is_ascii_digit() || next.is_some_and(char::is_lowercase)
            });

        if starts_word && previous != Some('_') {
            snake.push('_');
        }
        snake.extend(c.to_lowercase());
        previous = Some(c);
    }

    snake
}

/// Validates values against a schema.
pub struct Validator {
    validator: jsonschema::Validator,
    /// The schema itself.
    pub schema: Arc<JsonObject>,
}

/// The maximum number of reported violations per call.
const MAX_VIOLATIONS: usize = 5;

impl Validator {
    /// A validator of arguments.
    ///
    /// # Errors
    /// The reason why the schema cannot be used for arguments.
    pub fn new(schema: JsonObject) -> Result<Self, String> {
        if schema.get("type") != Some(&json!("object")) {
            return Err("its arguments must be an object: use a struct with named fields".into());
        }
        Self::build(schema, "input")
    }

    /// A validator of structured content.
    ///
    /// # Errors
    /// The reason why the schema cannot be used for structured content.
    pub fn for_output(schema: JsonObject) -> Result<Self, String> {
        // 2026-07-28 allows any schema, earlier versions only that of an object.
        if schema.get("type") != Some(&json!("object")) {
            return Err("its output schema must have the type object".into());
        }
        Self::build(schema, "output")
    }

    fn build(schema: JsonObject, what: &str) -> Result<Self, String> {
        let value = Value::Object(schema);
        let validator = jsonschema::draft202012::options()
            .build(&value)
            .map_err(|e| format!("its {what} schema is not valid: {e}"))?;

        let Value::Object(schema) = value else { return Err("its schema is not an object".into()) };
        Ok(Self { validator, schema: Arc::new(schema) })
    }

    /// Changes arguments into what the schema expects, where that is clear: null in a member that
    /// may be left out is not given, `2.0` is an integer, and numbers, booleans and JSON may come
    /// as text. Values that do not fit stay, and fail validation.
    pub fn fit(&self, arguments: &mut Value) {
        fit::fit(&self.schema, arguments);
    }

    /// Validates arguments.
    ///
    /// # Errors
    /// The fault of each argument, without its value, which may be long or secret.
    pub fn check(&self, arguments: &Value) -> Result<(), String> {
        self.validate(arguments).map_err(|faults| format!("Invalid arguments: {faults}"))
    }

    /// Validates a value.
    ///
    /// # Errors
    /// The faults of the value, without the value itself.
    pub fn validate(&self, arguments: &Value) -> Result<(), String> {
        if self.validator.is_valid(arguments) {
            return Ok(());
        }

        let faults: Vec<_> = self
            .validator
            .iter_errors(arguments)
            .take(MAX_VIOLATIONS)
            .map(|fault| describe_fault(&fault, arguments))
            .collect();

        Err(faults.join("; "))
    }
}

/// Describes a violation of the schema without the value, which may be long or secret.
fn describe_fault(fault: &jsonschema::ValidationError<'_>, arguments: &Value) -> String {
    let path = fault.instance_path().to_string();
    let text = match fault.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            let names = names(unexpected.iter().map(String::as_str));
            format!("additional properties are not allowed: {names}")
        }
        // The inner error describes the name, not the value.
        ValidationErrorKind::PropertyNames { .. } => {
            "the name of a property is not allowed".to_owned()
        }
        _ => fault.masked_with("the value").to_string(),
    };

    match path.trim_start_matches('/') {
        // The library names no property for a tool without arguments.
        "" if matches!(fault.kind(), ValidationErrorKind::FalseSchema) => {
            let got = arguments.as_object().into_iter().flat_map(|a| a.keys());
            format!("none are accepted, got {}", names(got.map(String::as_str)))
        }
        "" => text,
        argument => format!("{}: {text}", shortened(&argument.replace('/', "."))),
    }
}

/// Quotes the first names, because the caller chose them.
fn names<'a>(mut names: impl Iterator<Item = &'a str>) -> String {
    let mut shown: Vec<_> = names.by_ref().take(MAX_VIOLATIONS).map(quoted).collect();
    if names.next().is_some() {
        shown.push("…".to_owned());
    }
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use super::snake_case;

    #[test]
    fn struct_names_become_tool_names() {
        for (name, snake) in [
            ("SearchLogs", "search_logs"),
            ("Echo", "echo"),
            ("HTTPGet", "http_get"),
            ("already_snake", "already_snake"),
            ("Page2Text", "page2_text"),
        ] {
            assert_eq!(snake_case(name), snake);
        }
    }
}
