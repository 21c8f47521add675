//! The return types of prompts.

use rmcp::model::{ContentBlock, GetPromptResult, PromptMessage, Role};
use serde_json::{Value, json};

use super::ToolError;

/// A return type of prompts: a message, a list of messages, a complete result,
/// or a `Result` of those. There is no system role (2026-07-28, prompts): put
/// system instructions into a user message.
///
/// ```
/// use larder_server::{IntoPromptResult, assistant, user};
/// use serde_json::json;
///
/// let turns = vec![user("Name a fruit."), assistant("A fruit is")];
/// assert_eq!(turns.into_prompt_result()?.messages.len(), 2);
/// let mixed = vec![json!("Hello."), json!({ "role": "assistant", "content": "Yes?" })];
/// assert_eq!(mixed.into_prompt_result()?.messages[1], assistant("Yes?"));
/// # Ok::<(), larder_server::ToolError>(())
/// ```
pub trait IntoPromptResult {
    /// Converts to the protocol's result.
    fn into_prompt_result(self) -> Result<GetPromptResult, ToolError>;
}

impl IntoPromptResult for GetPromptResult {
    fn into_prompt_result(self) -> Result<GetPromptResult, ToolError> {
        Ok(self)
    }
}

impl<T: IntoPromptMessage> IntoPromptResult for Vec<T> {
    fn into_prompt_result(self) -> Result<GetPromptResult, ToolError> {
        let messages = self.into_iter().map(T::into_prompt_message);
        Ok(GetPromptResult::new(messages.collect::<Result<_, _>>()?))
    }
}

impl<T: IntoPromptMessage, const N: usize> IntoPromptResult for [T; N] {
    fn into_prompt_result(self) -> Result<GetPromptResult, ToolError> {
        Vec::from(self).into_prompt_result()
    }
}

/// A message of a prompt. Text and content blocks become user messages. JSON
/// has a `role`, and a `content` that is text or a content block.
pub trait IntoPromptMessage {
    /// Converts to the protocol's message.
    fn into_prompt_message(self) -> Result<PromptMessage, ToolError>;
}

impl IntoPromptMessage for PromptMessage {
    fn into_prompt_message(self) -> Result<PromptMessage, ToolError> {
        Ok(self)
    }
}

impl IntoPromptMessage for String {
    fn into_prompt_message(self) -> Result<PromptMessage, ToolError> {
        Ok(user(self))
    }
}

impl IntoPromptMessage for &str {
    fn into_prompt_message(self) -> Result<PromptMessage, ToolError> {
        Ok(user(self))
    }
}

impl IntoPromptMessage for ContentBlock {
    fn into_prompt_message(self) -> Result<PromptMessage, ToolError> {
        Ok(PromptMessage::new(Role::User, self))
    }
}

impl IntoPromptMessage for Value {
    fn into_prompt_message(mut self) -> Result<PromptMessage, ToolError> {
        if self.is_string() {
            self = json!({ "role": "user", "content": self });
        }

        if self["content"].is_string() {
            self["content"] = json!({ "type": "text", "text": self["content"] });
        }

        serde_json::from_value(self).map_err(|error| {
            tracing::error!(%error, "a prompt returned an invalid message");
            ToolError::new("The prompt failed: it returned an invalid message.")
        })
    }
}

macro_rules! single_messages {
    ($($type:ty),*) => {$(
        impl IntoPromptResult for $type {
            fn into_prompt_result(self) -> Result<GetPromptResult, ToolError> {
                vec![self].into_prompt_result()
            }
        }
    )*};
}

single_messages!(PromptMessage, String, &str, ContentBlock, Value);

/// A user message.
pub fn user(text: impl Into<String>) -> PromptMessage {
    PromptMessage::new_text(Role::User, text)
}

/// An assistant message. As the last message, it is the start of the answer.
pub fn assistant(text: impl Into<String>) -> PromptMessage {
    PromptMessage::new_text(Role::Assistant, text)
}

impl<T: IntoPromptResult, E: Into<ToolError>> IntoPromptResult for Result<T, E> {
    fn into_prompt_result(self) -> Result<GetPromptResult, ToolError> {
        self.map_err(Into::into)?.into_prompt_result()
    }
}
