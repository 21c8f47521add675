//! The structured content that a return type gives, and its way into a result.

use larder_protocol::schema;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

/// The key under which a value that is not an object is wrapped in one.
const WRAPPER_KEY: &str = "result";

/// The structured content that a return type can give.
#[derive(Debug, Clone)]
pub struct Structure {
    /// The type's schema. `None` if the type does not have one.
    pub(crate) schema: Option<JsonObject>,
    /// Whether a tool sends the structured content unless the tool says otherwise.
    pub(crate) by_default: bool,
    is_wrapped: bool,
}

impl Structure {
    pub(super) fn new<T: JsonSchema>(by_default: bool) -> Self {
        let (schema, is_wrapped) = schema::describe_output::<T>(WRAPPER_KEY);
        Self { schema: Some(schema), by_default, is_wrapped }
    }

    /// A value whose type has no schema.
    pub(super) fn unknown() -> Self {
        Self { schema: None, by_default: false, is_wrapped: false }
    }

    /// Text. Not sent by default, because the text content has it already.
    pub(super) fn text() -> Self {
        Self::new::<String>(false)
    }

    /// Wraps the structured content if it is not an object. Adds it as text if
    /// the result has no other content.
    pub(crate) fn finish(&self, mut result: CallToolResult) -> CallToolResult {
        let Some(content) = result.structured_content.take() else { return result };
        let wrap = self.is_wrapped || !content.is_object();
        let value = if wrap { json!({ WRAPPER_KEY: content }) } else { content };

        if result.content.is_empty() {
            result.content.push(ContentBlock::text(value.to_string()));
        }
        result.structured_content = Some(value);
        result
    }
}

/// Adds a value as structured content, unless the result is an error.
pub(super) fn with_structured<T: Serialize>(
    value: T,
    mut result: CallToolResult,
) -> CallToolResult {
    match serde_json::to_value(value) {
        Ok(value) => {
            if result.is_error != Some(true) {
                result.structured_content = Some(value);
            }
            result
        }
        Err(error) => not_json(&error),
    }
}

/// The result of a tool whose value does not serialize.
pub(super) fn not_json(error: &serde_json::Error) -> CallToolResult {
    tracing::error!(%error, "a tool's result does not serialize");
    let message = "The result could not be written as JSON.";
    CallToolResult::error(vec![ContentBlock::text(message)])
}
