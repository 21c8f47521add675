//! The return types of tools.

use rmcp::model::{CallToolResult, ContentBlock};
use serde::Serialize;

use super::{
    Structure, ToolError,
    structure::{not_json, with_structured},
};

/// The key in a failed result's `_meta` that says whether the same call may succeed.
const RETRYABLE: &str = "larder/retryable";

/// Whether a failed result says that the same call would fail again.
pub(crate) fn is_permanent(result: &CallToolResult) -> bool {
    result.meta.as_ref().is_some_and(|meta| meta.0.get(RETRYABLE) == Some(&false.into()))
}

/// A return type of tools: text, content blocks, JSON, a complete result, or a
/// `Result` of those.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the result of a tool",
    label = "neither text nor content nor a value with a schema",
    note = "write #[larder::output] above a type of your own",
    note = "an error is a ToolError: return larder::Result, and turn other errors into texts for the model by `.context(\"…\")?`"
)]
pub trait IntoToolResult {
    /// The structured content that the type can give, if any.
    fn structure() -> Option<Structure>
    where
        Self: Sized,
    {
        None
    }

    /// Converts to the protocol's result.
    fn into_tool_result(self) -> CallToolResult;

    /// Converts to a result with structured content.
    fn into_structured_result(self) -> CallToolResult
    where
        Self: Sized,
    {
        self.into_tool_result()
    }
}

/// JSON, sent as text. [`Structured`](super::Structured) is JSON with a schema.
#[derive(Debug, Clone)]
pub struct Json<T>(pub T);

impl IntoToolResult for CallToolResult {
    fn into_tool_result(self) -> CallToolResult {
        self
    }
}

impl IntoToolResult for Vec<ContentBlock> {
    fn into_tool_result(self) -> CallToolResult {
        CallToolResult::success(self)
    }
}

impl IntoToolResult for ContentBlock {
    fn into_tool_result(self) -> CallToolResult {
        vec![self].into_tool_result()
    }
}

impl IntoToolResult for String {
    fn structure() -> Option<Structure> {
        Some(Structure::text())
    }

    fn into_tool_result(self) -> CallToolResult {
        ContentBlock::text(self).into_tool_result()
    }

    fn into_structured_result(self) -> CallToolResult {
        with_structured(&self, self.as_str().into_tool_result())
    }
}

impl IntoToolResult for &str {
    fn structure() -> Option<Structure> {
        Some(Structure::text())
    }

    fn into_tool_result(self) -> CallToolResult {
        self.to_owned().into_tool_result()
    }

    fn into_structured_result(self) -> CallToolResult {
        with_structured(self, self.into_tool_result())
    }
}

impl IntoToolResult for () {
    fn into_tool_result(self) -> CallToolResult {
        CallToolResult::success(Vec::new())
    }
}

impl<T: Serialize> IntoToolResult for Json<T> {
    fn structure() -> Option<Structure> {
        Some(Structure::unknown())
    }

    fn into_tool_result(self) -> CallToolResult {
        match serde_json::to_string(&self.0) {
            Ok(text) => text.into_tool_result(),
            Err(error) => not_json(&error),
        }
    }

    fn into_structured_result(self) -> CallToolResult {
        with_structured(self.0, CallToolResult::success(Vec::new()))
    }
}

impl IntoToolResult for ToolError {
    fn into_tool_result(self) -> CallToolResult {
        self.log();
        let mut result = CallToolResult::error(vec![ContentBlock::text(self.message())]);
        if self.is_permanent() {
            let meta = result.meta.get_or_insert_default();
            meta.0.insert(RETRYABLE.to_owned(), false.into());
        }
        result
    }
}

#[diagnostic::do_not_recommend]
impl<T: IntoToolResult, E: Into<ToolError>> IntoToolResult for Result<T, E> {
    fn structure() -> Option<Structure> {
        T::structure()
    }

    fn into_tool_result(self) -> CallToolResult {
        match self {
            Ok(value) => value.into_tool_result(),
            Err(error) => error.into().into_tool_result(),
        }
    }

    fn into_structured_result(self) -> CallToolResult {
        match self {
            Ok(value) => value.into_structured_result(),
            Err(error) => error.into().into_tool_result(),
        }
    }
}
