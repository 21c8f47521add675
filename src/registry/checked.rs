//! Whether a tool sends structured content, and that it is as its schema says
//! (2025-06-18 and later, tools: Output Schema).

use rmcp::model::{CallToolResult, JsonObject};
use serde_json::Value;

use crate::{
    handler::{IntoToolResult, Structure, ToolError},
    schema::Validator,
};

/// What a tool and its return type say of structured content.
#[derive(Default)]
pub(super) struct Output {
    /// Of the return type's own accord.
    pub(super) structure: Option<Structure>,
    /// Always or never; by the return type if neither.
    pub(super) wanted: Option<bool>,
    /// Given by hand.
    pub(super) schema: Option<JsonObject>,
}

impl Output {
    /// Nothing for a tool without structured content.
    ///
    /// # Errors
    /// What in it cannot be.
    pub(super) fn register(self) -> Result<Option<RegisteredOutput>, String> {
        let by_default = self.structure.as_ref().is_some_and(|s| s.by_default);
        match (self.wanted, self.schema) {
            (Some(false), Some(_)) => {
                Err("it has an output schema, but no structured output".into())
            }
            (_, Some(schema)) => {
                let validator = Validator::of_output(schema)?;
                Ok(Some(RegisteredOutput { structure: self.structure, validator }))
            }
            (Some(false), None) => Ok(None),
            (None, None) if !by_default => Ok(None),
            (_, None) => {
                let schema = self.structure.as_ref().and_then(|s| s.schema.clone());
                let schema = schema.ok_or(
                    "its return type says nothing of its structure: return Structured, or give an output schema",
                )?;
                let validator = Validator::of_output(schema)?;
                Ok(Some(RegisteredOutput { structure: self.structure, validator }))
            }
        }
    }
}

/// Structured content as it will be held against its schema.
pub(super) struct RegisteredOutput {
    pub(super) structure: Option<Structure>,
    pub(super) validator: Validator,
}

impl RegisteredOutput {
    /// The result as it may be sent: what does not fit the schema becomes a
    /// failure, so that a client never sees what the list does not promise.
    pub(super) fn checked(&self, tool: &str, result: CallToolResult) -> CallToolResult {
        let result = match &self.structure {
            Some(structure) => structure.finish(result),
            None => result,
        };
        check(&self.validator, tool, result)
    }
}

/// Holds a result against a schema; a failure needs no structured content.
pub(super) fn check(validator: &Validator, tool: &str, result: CallToolResult) -> CallToolResult {
    if result.is_error == Some(true) {
        return result;
    }
    let checked = match &result.structured_content {
        Some(value) => validator.validate(value),
        None => Err(missing(validator)),
    };
    match checked {
        Ok(()) => result,
        Err(faults) => {
            tracing::error!(tool, %faults, "the tool's result is not as its output schema says");
            let message = format!(
                "The tool {tool} gave a result that is not as its output schema says: {faults}. This is a fault of the server's; other arguments may help."
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
