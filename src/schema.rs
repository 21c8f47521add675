//! Argument structs as JSON Schema, and arguments checked against it.

use std::sync::Arc;

#[cfg(feature = "validation")]
use jsonschema::error::ValidationErrorKind;
use rmcp::model::JsonObject;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Value, json};

/// What a struct says of itself: its name, its doc comment, its fields.
pub(crate) struct Described {
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) schema: JsonObject,
    /// A struct without fields, for a tool without arguments.
    pub(crate) is_unit: bool,
}

/// Reads a type's schema. Names turn from `SearchLogs` into `search_logs`.
pub(crate) fn describe<A: JsonSchema>() -> Described {
    let mut schema = root_schema::<A>(SchemaSettings::draft2020_12());
    let mut take = |key: &str| schema.as_object_mut().and_then(|s| s.remove(key));
    let description = take("description").and_then(|d| d.as_str().map(unwrap_lines));
    tidy(&mut schema);
    let is_unit = schema.get("type") == Some(&json!("null"));
    if is_unit {
        schema = json!({ "type": "object", "additionalProperties": false });
    }
    let schema = match schema {
        Value::Object(schema) => schema,
        _ => JsonObject::new(),
    };
    Described { name: snake_case(&A::schema_name()), description, schema, is_unit }
}

fn root_schema<T: JsonSchema>(settings: SchemaSettings) -> Value {
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Some(members) = schema.as_object_mut() {
        // 2020-12 is the default dialect, and the name stands on the tool.
        members.remove("$schema");
        members.remove("title");
    }
    schema
}

/// Reads the schema of what a type serializes to, and says whether values have
/// to be wrapped to be objects: `{KEY: value}`.
pub(crate) fn describe_output<T: JsonSchema>(key: &str) -> (JsonObject, bool) {
    let mut schema = root_schema::<T>(SchemaSettings::draft2020_12().for_serialize());
    tidy(&mut schema);
    match schema {
        Value::Object(schema) if schema.get("type") == Some(&json!("object")) => (schema, false),
        mut schema => {
            let definitions = schema.as_object_mut().and_then(|s| s.remove("$defs"));
            let mut wrapper = JsonObject::new();
            wrapper.insert("type".into(), json!("object"));
            wrapper.insert("properties".into(), json!({ key: schema }));
            wrapper.insert("required".into(), json!([key]));
            wrapper.extend(definitions.map(|definitions| ("$defs".into(), definitions)));
            // What referred to itself has moved.
            let mut wrapper = Value::Object(wrapper);
            redirect(&mut wrapper, "#", &format!("#/properties/{key}"));
            let Value::Object(wrapper) = wrapper else { return (JsonObject::new(), true) };
            (wrapper, true)
        }
    }
}

fn redirect(schema: &mut Value, from: &str, to: &str) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get_mut("$ref")
                && reference == from
            {
                to.clone_into(reference);
            }
            members.values_mut().for_each(|value| redirect(value, from, to));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| redirect(item, from, to)),
        _ => {}
    }
}

/// Leaves out what costs a model tokens and tells it nothing: line breaks
/// inside a comment's paragraphs, null as a default, Rust's integer widths.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            let is_property_list = members.values().all(Value::is_object);
            if !is_property_list {
                members.retain(|key, value| {
                    let says_nothing = (key == "default" && value.is_null())
                        || (key == "format" && value.as_str().is_some_and(is_rust_number));
                    !says_nothing
                });
                if let Some(Value::String(text)) = members.get_mut("description") {
                    *text = unwrap_lines(text);
                }
            }
            members.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
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
    for (at, c) in name.char_indices() {
        let next = name[at + c.len_utf8()..].chars().next();
        let word_begins = c.is_uppercase()
            && previous.is_some_and(|p| {
                p.is_lowercase() || p.is_ascii_digit() || next.is_some_and(char::is_lowercase)
            });
        if word_begins && previous != Some('_') {
            snake.push('_');
        }
        snake.extend(c.to_lowercase());
        previous = Some(c);
    }
    snake
}

/// Checks arguments against a schema.
pub(crate) struct Validator {
    #[cfg(feature = "validation")]
    validator: jsonschema::Validator,
    pub(crate) schema: Arc<JsonObject>,
}

#[cfg(feature = "validation")]
/// How many faults of one call's arguments are told.
const FAULTS_TOLD: usize = 5;

impl Validator {
    /// # Errors
    /// Why the schema cannot be used for arguments.
    pub(crate) fn new(schema: JsonObject) -> Result<Self, String> {
        if schema.get("type") != Some(&json!("object")) {
            return Err("its arguments must be an object: take a struct with named fields".into());
        }
        Self::build(schema, "input")
    }

    /// # Errors
    /// Why the schema cannot be used for structured content.
    pub(crate) fn of_output(schema: JsonObject) -> Result<Self, String> {
        // 2026-07-28 takes any schema, the versions before it an object's only.
        if schema.get("type") != Some(&json!("object")) {
            return Err("its output schema must have the type object".into());
        }
        Self::build(schema, "output")
    }

    #[cfg(not(feature = "validation"))]
    #[allow(clippy::unnecessary_wraps, reason = "with validation a schema can be refused")]
    fn build(schema: JsonObject, _: &str) -> Result<Self, String> {
        Ok(Self { schema: Arc::new(schema) })
    }

    #[cfg(feature = "validation")]
    fn build(schema: JsonObject, what: &str) -> Result<Self, String> {
        let value = Value::Object(schema);
        let validator = jsonschema::draft202012::options()
            .build(&value)
            .map_err(|e| format!("its {what} schema is not valid: {e}"))?;
        let Value::Object(schema) = value else { return Err("its schema is no object".into()) };
        Ok(Self { validator, schema: Arc::new(schema) })
    }

    /// Turns arguments that came as strings into what the schema wants:
    /// numbers and booleans. What cannot be turned stays, to be complained of.
    pub(crate) fn read_strings(&self, arguments: &mut Value) {
        let properties = self.schema.get("properties").and_then(Value::as_object);
        let (Some(properties), Some(arguments)) = (properties, arguments.as_object_mut()) else {
            return;
        };
        for (argument, value) in arguments {
            let types = properties.get(argument).and_then(|schema| schema.get("type"));
            let takes_text = match types {
                None => true,
                Some(Value::Array(types)) => types.iter().any(|t| t == "string"),
                Some(one) => one == "string",
            };
            if !takes_text
                && let Value::String(text) = &*value
                && let Ok(read) = serde_json::from_str::<Value>(text)
            {
                *value = read;
            }
        }
    }

    /// # Errors
    /// Names each argument that is wrong and says how, never with its value,
    /// which may be long or secret.
    pub(crate) fn check(&self, arguments: &Value) -> Result<(), String> {
        self.faults(arguments).map_err(|faults| format!("Invalid arguments: {faults}"))
    }

    /// Without the feature `validation`, only the deserialization of a value
    /// checks it.
    #[cfg(not(feature = "validation"))]
    #[allow(clippy::unnecessary_wraps, clippy::unused_self, reason = "as with validation")]
    pub(crate) fn faults(&self, _: &Value) -> Result<(), String> {
        Ok(())
    }

    /// # Errors
    /// What is wrong with a value, without the value.
    #[cfg(feature = "validation")]
    pub(crate) fn faults(&self, arguments: &Value) -> Result<(), String> {
        if self.validator.is_valid(arguments) {
            return Ok(());
        }
        let faults: Vec<_> = self
            .validator
            .iter_errors(arguments)
            .take(FAULTS_TOLD)
            .map(|fault| {
                let path = fault.instance_path().to_string();
                let text = fault.masked_with("the value").to_string();
                match path.trim_start_matches('/') {
                    // Where a tool takes no arguments, the library names none.
                    "" if matches!(fault.kind(), ValidationErrorKind::FalseSchema) => {
                        let names = arguments.as_object().into_iter().flat_map(|a| a.keys());
                        let names: Vec<_> = names.map(|name| format!("{name:?}")).collect();
                        format!("it takes none, {} given", names.join(", "))
                    }
                    "" => text,
                    argument => format!("{}: {text}", argument.replace('/', ".")),
                }
            })
            .collect();
        Err(faults.join("; "))
    }
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
