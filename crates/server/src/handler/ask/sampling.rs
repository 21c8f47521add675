//! Sampling: running the client's model.

use larder_protocol::describe;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{capability::Capability, request::AskError};
use crate::handler::Context;

/// A sampling request.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sampling {
    messages: Vec<Value>,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_prompt: Option<String>,
}

impl Sampling {
    /// A single user message, to be answered in at most `max_tokens` tokens.
    pub fn new(text: impl Into<String>, max_tokens: u32) -> Self {
        let message = json!({ "role": "user", "content": { "type": "text", "text": text.into() } });
        Self { messages: vec![message], max_tokens, system_prompt: None }
    }

    /// The system prompt.
    #[must_use]
    pub fn system_prompt(mut self, text: impl Into<String>) -> Self {
        self.system_prompt = Some(text.into());
        self
    }
}

/// The message that the client's model generated.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sampled {
    /// A content block, or an array of content blocks.
    pub content: Value,
    /// The model's name.
    pub model: String,
    /// The reason why the model stopped.
    #[serde(default)]
    pub stop_reason: Option<String>,
}

impl Sampled {
    /// The text of all content blocks.
    pub fn text(&self) -> String {
        let blocks = match &self.content {
            Value::Array(blocks) => blocks.as_slice(),
            block => std::slice::from_ref(block),
        };
        blocks.iter().filter_map(|b| b.get("text").and_then(Value::as_str)).collect()
    }
}

impl<S> Context<S> {
    /// Runs the client's model.
    ///
    /// # Errors
    /// The errors of [`Context::elicit`].
    pub async fn sample(&self, key: &str, sampling: &Sampling) -> Result<Sampled, AskError> {
        let params = serde_json::to_value(sampling).unwrap_or_default();
        let parse = |result| serde_json::from_value(result).map_err(|error| describe(&error));
        self.ask(key, Capability::Sampling, "sampling/createMessage", params, parse).await
    }
}
