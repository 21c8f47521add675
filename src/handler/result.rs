//! What handlers may return.

use bytes::Bytes;
use rmcp::model::{CallToolResult, ContentBlock};
use serde::Serialize;
use serde_json::Value;

use super::{ResourceError, Structure, ToolError, structured::structured};
use crate::store::Content;

/// What a tool may return: text, content blocks, JSON, a whole result, or a
/// `Result` of those.
pub trait IntoToolResult {
    /// What the type offers as structured content, if anything.
    fn structure() -> Option<Structure>
    where
        Self: Sized,
    {
        None
    }

    /// As the protocol has it.
    fn into_tool_result(self) -> CallToolResult;

    /// With structured content, for a tool that sends it.
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
        structured(&self, self.as_str().into_tool_result())
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
        structured(self, self.into_tool_result())
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
        structured(self.0, CallToolResult::success(Vec::new()))
    }
}

pub(crate) fn not_json(error: &serde_json::Error) -> CallToolResult {
    tracing::error!(%error, "a tool's result does not serialize");
    ToolError::new("The result could not be written as JSON.").into_tool_result()
}

impl IntoToolResult for ToolError {
    fn into_tool_result(self) -> CallToolResult {
        CallToolResult::error(vec![ContentBlock::text(self.message())])
    }
}

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

/// What a resource handler may return: strings and JSON become `text`, bytes
/// become `blob`, and a [`FileResource`](super::FileResource) or an
/// [`HttpResource`](super::HttpResource) what stands there.
pub trait IntoContent {
    /// The content, or why there is none.
    fn into_content(self) -> impl Future<Output = Result<Content, ResourceError>> + Send;
}

macro_rules! into_content {
    ($($type:ty),*) => {$(
        impl IntoContent for $type {
            fn into_content(self) -> impl Future<Output = Result<Content, ResourceError>> + Send {
                std::future::ready(Ok(self.into()))
            }
        }
    )*};
}

into_content!(Content, String, &str, Value, Vec<u8>, Bytes);

impl<T: Serialize> IntoContent for Json<T> {
    fn into_content(self) -> impl Future<Output = Result<Content, ResourceError>> + Send {
        let content = serde_json::to_value(self.0).map(Content::from).map_err(|error| {
            tracing::error!(%error, "a resource does not serialize");
            ResourceError::Failed("The resource could not be written as JSON.".into())
        });
        std::future::ready(content)
    }
}

impl<T: IntoContent + Send, E: Into<ResourceError> + Send> IntoContent for Result<T, E> {
    async fn into_content(self) -> Result<Content, ResourceError> {
        self.map_err(Into::into)?.into_content().await
    }
}
