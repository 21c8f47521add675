//! The server's replies.

use rmcp::model::{CallToolResult, ContentBlock, GetPromptResult};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

/// A tool's result.
#[derive(Debug, Clone)]
pub struct ToolReply {
    result: CallToolResult,
    progress: Vec<ProgressNote>,
}

/// A progress notification.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ProgressNote {
    /// How much is done.
    pub progress: f64,
    /// How much there is in all.
    pub total: Option<f64>,
    /// The message that the call sent with this progress.
    pub message: Option<String>,
}

impl ToolReply {
    pub(super) fn new(result: Value, progress: Vec<ProgressNote>) -> Result<Self, TestError> {
        let reply = Self { result: parse(result)?, progress };
        match reply.result.is_error {
            Some(true) => Err(TestError { message: reply.text(), code: None }),
            _ => Ok(reply),
        }
    }

    /// All blocks of text, joined by line feeds.
    pub fn text(&self) -> String {
        let texts = self.result.content.iter().filter_map(ContentBlock::as_text);
        texts.map(|block| block.text.as_str()).collect::<Vec<_>>().join("\n")
    }

    /// The structured content.
    ///
    /// # Panics
    /// If there is none, or it is not of that type. What a type that is no object was
    /// wrapped in is taken away.
    pub fn structured<T: DeserializeOwned>(&self) -> T {
        let Some(content) = &self.result.structured_content else {
            panic!("there is no structured content: {:?}", self.result)
        };

        let whole = serde_json::from_value(content.clone());
        let unwrapped = || serde_json::from_value(content.get("result")?.clone()).ok();
        whole.unwrap_or_else(|error| {
            unwrapped().unwrap_or_else(|| panic!("the structured content {content}: {error}"))
        })
    }

    /// The progress notifications that came before the result.
    pub fn progress(&self) -> &[ProgressNote] {
        &self.progress
    }

    /// The result itself.
    pub fn result(&self) -> &CallToolResult {
        &self.result
    }
}

/// A prompt's messages.
#[derive(Debug, Clone)]
pub struct PromptReply {
    result: GetPromptResult,
}

impl PromptReply {
    pub(super) fn new(result: Value) -> Result<Self, TestError> {
        Ok(Self { result: parse(result)? })
    }

    /// The text of each message. Empty for one without text.
    pub fn texts(&self) -> Vec<&str> {
        let messages = self.result.messages.iter();
        messages.map(|m| m.content.as_text().map_or("", |block| block.text.as_str())).collect()
    }

    /// The result itself.
    pub fn result(&self) -> &GetPromptResult {
        &self.result
    }
}

/// A resource's content.
#[derive(Debug, Clone)]
pub struct ResourceReply {
    result: Value,
}

impl ResourceReply {
    pub(super) fn new(result: Value) -> Self {
        Self { result }
    }

    /// The text of all contents. Empty for binary content.
    pub fn text(&self) -> String {
        let contents = self.result["contents"].as_array().into_iter().flatten();
        contents.filter_map(|content| content["text"].as_str()).collect()
    }

    /// The content as JSON.
    ///
    /// # Panics
    /// If it is not JSON of that type.
    pub fn json<T: DeserializeOwned>(&self) -> T {
        let text = self.text();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("the content {text}: {error}"))
    }

    /// The media type of the first content.
    pub fn mime_type(&self) -> Option<&str> {
        self.result["contents"][0]["mimeType"].as_str()
    }

    /// The result itself, as it arrived.
    pub fn result(&self) -> &Value {
        &self.result
    }
}

/// The error of a request, or of a tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TestError {
    message: String,
    code: Option<i64>,
}

impl TestError {
    /// An error of the client.
    pub(super) fn local(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: None }
    }

    /// The `error` of a response.
    pub(super) fn of_protocol(error: &Value) -> Self {
        let message = error["message"].as_str().unwrap_or_default().to_owned();
        Self { message, code: error["code"].as_i64() }
    }

    /// The text of the error.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The JSON-RPC code. `None` for an error of a tool.
    pub fn code(&self) -> Option<i64> {
        self.code
    }
}

pub(super) fn parse<T: DeserializeOwned>(value: Value) -> Result<T, TestError> {
    serde_json::from_value(value).map_err(|error| TestError::local(error.to_string()))
}
