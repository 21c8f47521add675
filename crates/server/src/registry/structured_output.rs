//! Structured content of a tool, validated against its output schema
//! (2025-06-18 and later, tools: Output Schema).

use larder_protocol::schema::Validator;
use rmcp::model::{CallToolResult, JsonObject};
use serde_json::Value;

use crate::handler::{IntoToolResult, Structure, ToolError};

/// The structured content that a tool and its return type define.
#[derive(Default)]
pub(super) struct OutputDefinition {
    /// The structured content that the return type gives.
    pub(super) structure: Option<Structure>,
    /// Whether the tool sends structured content. `None`: the return type
    /// decides.
    pub(super) is_enabled: Option<bool>,
    /// The schema that the tool sets instead of the return type's.
    pub(super) schema: Option<JsonObject>,
}

impl OutputDefinition {
    /// Checks the definition; `None` for a tool without structured content.
    ///
    /// # Errors
    /// The fault of the definition.
    pub(super) fn register(self) -> Result<Option<RegisteredOutput>, String> {
        let by_default = self.structure.as_ref().is_some_and(|s| s.by_default);

        let schema = match (self.is_enabled, self.schema) {
            (Some(false), Some(_)) => {
                return Err("it has an output schema, but structured_output(false)".into());
            }
            (_, Some(schema)) => schema,
            (Some(false), None) => return Ok(None),
            (None, None) if !by_default => return Ok(None),
            (_, None) => {
                let schema = self.structure.as_ref().and_then(|s| s.schema.clone());
                schema.ok_or(
                    "its return type has no schema: return Structured, or set an output schema",
                )?
            }
        };

        let validator = Validator::for_output(schema)?;
        Ok(Some(RegisteredOutput { structure: self.structure, validator }))
    }
}

/// A registered tool's structured content.
pub(super) struct RegisteredOutput {
    structure: Option<Structure>,
    pub(super) validator: Validator,
}

impl RegisteredOutput {
    /// Completes and validates a result. A result that does not match the schema
    /// becomes an error, because clients rely on the listed schema.
    pub(super) fn finish(&self, tool: &str, result: CallToolResult) -> CallToolResult {
        let result = match &self.structure {
            Some(structure) => structure.finish(result),
            None => result,
        };
        validate(&self.validator, tool, result)
    }
}

/// Validates a result against a schema. Error results need no structured content.
pub(super) fn validate(
    validator: &Validator,
    tool: &str,
    result: CallToolResult,
) -> CallToolResult {
    if result.is_error == Some(true) {
        return result;
    }

    let validated = match &result.structured_content {
        Some(value) => validator.validate(value),
        None => Err(missing(validator)),
    };

    match validated {
        Ok(()) => result,
        Err(problems) => {
            tracing::error!(tool, %problems, "a tool's result does not match its output schema");
            let message = format!(
                "The tool {tool} returned a result that does not match its output schema: {problems}. This is an error of the server; other arguments may help."
            );
            ToolError::new(message).into_tool_result()
        }
    }
}

fn missing(validator: &Validator) -> String {
    let required = validator.schema.get("required").and_then(Value::as_array);
    let names: Vec<_> = required.into_iter().flatten().filter_map(Value::as_str).collect();
    match names.as_slice() {
        [] => "there is no structured content".to_owned(),
        names => format!("there is no structured content with {}", names.join(", ")),
    }
}
