//! Structured results: a value with a schema (2025-06-18 and later, tools:
//! Structured Content).

use rmcp::model::{CallToolResult, ContentBlock, JsonObject};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::{IntoToolResult, Json};
use crate::schema;

/// The key under which a value stands that is no object by itself.
const WRAPPED: &str = "result";

/// A value that is sent as `structuredContent`, described by the tool's
/// `outputSchema`, and as the same JSON in text for clients that look only there.
///
/// What does not serialize to an object (a number, a text, a list, an option)
/// stands in one as `{"result": …}`: before 2026-07-28 structured content had to
/// be an object, and a tool's schema should not depend on who asks.
///
/// Some hosts show a model the structured content alone. So whatever the model
/// needs, such as a resource's URI, has to stand in the value as well.
///
/// ```
/// use larder::{Context, Registry, Structured, Tool};
///
/// /// Adds two numbers.
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Add {
///     a: f64,
///     b: f64,
/// }
///
/// #[derive(serde::Serialize, schemars::JsonSchema)]
/// struct Sum {
///     sum: f64,
/// }
///
/// let add = Tool::new(|_: Context, Add { a, b }: Add| async move { Structured(Sum { sum: a + b }) });
/// let registry = Registry::builder("calculator").tool(add).build()?;
/// let schema = registry.tools(None)?.items[0].output_schema.clone().unwrap();
/// assert_eq!(schema["required"], serde_json::json!(["sum"]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Structured<T>(pub T);

/// What a return type offers as structured content.
#[derive(Debug, Clone)]
pub struct Structure {
    /// What it looks like; nothing where the type does not say.
    pub(crate) schema: Option<JsonObject>,
    /// Whether it is sent when the tool does not say.
    pub(crate) by_default: bool,
    wrapped: bool,
}

impl Structure {
    fn of<T: JsonSchema>(by_default: bool) -> Self {
        let (schema, wrapped) = schema::describe_output::<T>(WRAPPED);
        Self { schema: Some(schema), by_default, wrapped }
    }

    /// A value that only a schema given by hand describes.
    pub(crate) fn unknown() -> Self {
        Self { schema: None, by_default: false, wrapped: false }
    }

    /// Text, structured only on request: it is all there is to say already.
    pub(crate) fn text() -> Self {
        Self::of::<String>(false)
    }

    /// Makes an object of the value, and text where there is nothing else to look at.
    pub(crate) fn finish(&self, mut result: CallToolResult) -> CallToolResult {
        if let Some(value) = result.structured_content.take() {
            let wrap = self.wrapped || !value.is_object();
            let value = if wrap { json!({ WRAPPED: value }) } else { value };
            if result.content.is_empty() {
                result.content.push(ContentBlock::text(value.to_string()));
            }
            result.structured_content = Some(value);
        }
        result
    }
}

impl<T: Serialize + JsonSchema> IntoToolResult for Structured<T> {
    fn structure() -> Option<Structure> {
        Some(Structure::of::<T>(true))
    }

    fn into_tool_result(self) -> CallToolResult {
        Json(self.0).into_tool_result()
    }

    fn into_structured_result(self) -> CallToolResult {
        structured(self.0, CallToolResult::success(Vec::new()))
    }
}

/// A value for programs, and something else to look at for people and models.
impl<T: Serialize + JsonSchema, C: IntoToolResult> IntoToolResult for (Structured<T>, C) {
    fn structure() -> Option<Structure> {
        Some(Structure::of::<T>(true))
    }

    fn into_tool_result(self) -> CallToolResult {
        self.1.into_tool_result()
    }

    fn into_structured_result(self) -> CallToolResult {
        structured(self.0.0, self.1.into_tool_result())
    }
}

/// The value as structured content of that result, unless that is a failure.
pub(crate) fn structured<T: Serialize>(value: T, mut result: CallToolResult) -> CallToolResult {
    match serde_json::to_value(value) {
        Ok(value) => {
            if result.is_error != Some(true) {
                result.structured_content = Some(value);
            }
            result
        }
        Err(error) => super::result::not_json(&error),
    }
}
