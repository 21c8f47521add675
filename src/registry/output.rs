//! What handlers may return.

use bytes::Bytes;
use rmcp::model::{CallToolResult, ContentBlock, GetPromptResult, PromptMessage, Role};
use serde::Serialize;
use serde_json::Value;

use super::{ResourceError, ToolError};
use crate::store::Content;

/// What a tool may return: text, content blocks, JSON, a whole result, or a
/// `Result` of those.
pub trait IntoToolResult {
    /// As the protocol has it.
    fn into_tool_result(self) -> CallToolResult;
}

/// JSON, sent as text.
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
    fn into_tool_result(self) -> CallToolResult {
        ContentBlock::text(self).into_tool_result()
    }
}

impl IntoToolResult for &str {
    fn into_tool_result(self) -> CallToolResult {
        self.to_owned().into_tool_result()
    }
}

impl IntoToolResult for () {
    fn into_tool_result(self) -> CallToolResult {
        CallToolResult::success(Vec::new())
    }
}

impl<T: Serialize> IntoToolResult for Json<T> {
    fn into_tool_result(self) -> CallToolResult {
        match serde_json::to_string(&self.0) {
            Ok(text) => text.into_tool_result(),
            Err(error) => {
                tracing::error!(%error, "a tool's result does not serialize");
                ToolError::new("The result could not be written as JSON.").into_tool_result()
            }
        }
    }
}

impl IntoToolResult for ToolError {
    fn into_tool_result(self) -> CallToolResult {
        CallToolResult::error(vec![ContentBlock::text(self.message())])
    }
}

impl<T: IntoToolResult, E: Into<ToolError>> IntoToolResult for Result<T, E> {
    fn into_tool_result(self) -> CallToolResult {
        match self {
            Ok(value) => value.into_tool_result(),
            Err(error) => error.into().into_tool_result(),
        }
    }
}

/// What a prompt may return: text (one message of the user's), messages, a
/// whole result, or a `Result` of those.
pub trait IntoPromptResult {
    /// As the protocol has it.
    fn into_prompt_result(self) -> Result<GetPromptResult, ToolError>;
}

impl IntoPromptResult for GetPromptResult {
    fn into_prompt_result(self) -> Result<GetPromptResult, ToolError> {
        Ok(self)
    }
}

impl IntoPromptResult for Vec<PromptMessage> {
    fn into_prompt_result(self) -> Result<GetPromptResult, ToolError> {
        Ok(GetPromptResult::new(self))
    }
}

impl IntoPromptResult for String {
    fn into_prompt_result(self) -> Result<GetPromptResult, ToolError> {
        vec![PromptMessage::new_text(Role::User, self)].into_prompt_result()
    }
}

impl IntoPromptResult for &str {
    fn into_prompt_result(self) -> Result<GetPromptResult, ToolError> {
        self.to_owned().into_prompt_result()
    }
}

impl<T: IntoPromptResult, E: Into<ToolError>> IntoPromptResult for Result<T, E> {
    fn into_prompt_result(self) -> Result<GetPromptResult, ToolError> {
        self.map_err(Into::into)?.into_prompt_result()
    }
}

/// What a resource handler may return: strings and JSON become `text`, bytes
/// become `blob`.
pub trait IntoContent {
    /// The content, or why there is none.
    fn into_content(self) -> Result<Content, ResourceError>;
}

macro_rules! into_content {
    ($($type:ty),*) => {$(
        impl IntoContent for $type {
            fn into_content(self) -> Result<Content, ResourceError> {
                Ok(self.into())
            }
        }
    )*};
}

into_content!(Content, String, &str, Value, Vec<u8>, Bytes);

impl<T: IntoContent, E: Into<ResourceError>> IntoContent for Result<T, E> {
    fn into_content(self) -> Result<Content, ResourceError> {
        self.map_err(Into::into)?.into_content()
    }
}
