//! Calls of the tools of providers.

use std::sync::Arc;

use larder_protocol::{Fault, schema::Validator};
use rmcp::model::{CallToolResult, JsonObject};
use serde_json::Value;

use super::{
    provided_tool::{ProvidedTool, as_object},
    provider::Provider,
    structured_output,
};
use crate::handler::{IntoToolResult, Scope, ToolError};

/// Calls a tool that the provider has listed. Checks arguments and results by the schemas of a tool
/// that does not check them itself.
///
/// # Errors
/// The provider's error, or a schema cannot be read.
pub(super) async fn call_provided(
    provider: &dyn Provider,
    tool: &ProvidedTool,
    arguments: Option<Value>,
    scope: Arc<Scope>,
) -> Result<CallToolResult, Fault> {
    let mut arguments = arguments.unwrap_or_else(|| Value::Object(JsonObject::new()));
    if !tool.validates {
        return provider.call_tool(tool, as_object(arguments)?, scope).await;
    }

    // Validators are not cached, because the list may differ from call to call.
    let listed = &tool.listed;
    let input = Validator::new(JsonObject::clone(&listed.input_schema))
        .map_err(|problem| invalid_schema(&problem))?;
    let output = listed
        .output_schema
        .as_deref()
        .cloned()
        .map(Validator::for_output)
        .transpose()
        .map_err(|problem| invalid_schema(&problem))?;

    input.fit(&mut arguments);
    if let Err(problem) = input.check(&arguments) {
        return Ok(ToolError::new(problem).into_tool_result());
    }

    let mut result = provider.call_tool(tool, as_object(arguments)?, scope).await?;
    match &output {
        Some(output) => result = structured_output::validate(output, &listed.name, result),
        // Structured content without a schema only repeats the text.
        None => result.structured_content = None,
    }

    Ok(result)
}

fn invalid_schema(problem: &str) -> Fault {
    tracing::error!(%problem, "the tools/list handler returned an invalid schema");
    Fault::Internal("The tool is listed with an invalid schema.".into())
}
