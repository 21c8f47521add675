//! Structured results: values with a schema (2025-06-18 and later, tools:
//! Structured Content).

use rmcp::model::CallToolResult;
use schemars::JsonSchema;
use serde::Serialize;

use super::{IntoToolResult, Json, Structure, structure::with_structured};

/// A value that is sent as `structuredContent`, described by the tool's
/// `outputSchema`, and as JSON text for clients that read only text.
///
/// A value that does not serialize to an object (a number, a string, a list, an
/// option) is wrapped as `{"result": …}`: before 2026-07-28 structured content
/// had to be an object, and a tool's schema should not depend on the client.
///
/// Some hosts show a model only the structured content. So put everything that
/// the model needs, such as a resource's URI, into the value.
///
/// ```
/// use larder_server::{Context, Registry, Structured, Tool};
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
/// let add = Tool::new(|_: Context, Add { a, b }: Add| async move {
///     Structured(Sum { sum: a + b })
/// });
/// let registry = Registry::builder("calculator").tool(add).build()?;
/// let schema = registry.tools(None)?.items[0].output_schema.clone().unwrap();
/// assert_eq!(schema["required"], serde_json::json!(["sum"]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Structured<T>(pub T);

impl<T: Serialize + JsonSchema> IntoToolResult for Structured<T> {
    fn structure() -> Option<Structure> {
        Some(Structure::new::<T>(true))
    }

    fn into_tool_result(self) -> CallToolResult {
        Json(self.0).into_tool_result()
    }

    fn into_structured_result(self) -> CallToolResult {
        with_structured(self.0, CallToolResult::success(Vec::new()))
    }
}

/// Structured content for programs, with other content for people and models.
impl<T: Serialize + JsonSchema, C: IntoToolResult> IntoToolResult for (Structured<T>, C) {
    fn structure() -> Option<Structure> {
        Some(Structure::new::<T>(true))
    }

    fn into_tool_result(self) -> CallToolResult {
        self.1.into_tool_result()
    }

    fn into_structured_result(self) -> CallToolResult {
        with_structured(self.0.0, self.1.into_tool_result())
    }
}
