//! The answer of `prompts/get`.

use rmcp::model::{ContentBlock, GetPromptResult, MetaObject, PromptMessage, Role};
use serde_json::Value;

use super::{
    block,
    definition::cut_description,
    members::{Excess, drop_long},
    object::Object,
    problem::Problem,
    result::{Answer, RawResult},
};

/// The messages of a prompt.
pub(crate) struct GotPrompt(pub(crate) GetPromptResult);

impl Answer for GotPrompt {
    fn read(result: RawResult) -> Result<Self, Problem> {
        let mut result = result.object()?;
        let messages = match result.take("messages") {
            Some(Value::Array(messages)) => messages,
            other => {
                return Err(Problem::of("messages must be a list", &other.unwrap_or_default()));
            }
        };

        let mut read = Vec::with_capacity(messages.len());
        for message in messages {
            read.extend(read_message(message)?);
        }

        let mut description = result.take_text("description");
        description.as_mut().map(cut_description);
        drop_long(&mut result);

        let mut prompt = GetPromptResult::new(read);
        prompt.description = description;
        prompt.meta = result.take_members("_meta").map(MetaObject);
        Ok(Self(prompt))
    }
}

/// A message with one block; of several blocks, as many messages.
fn read_message(message: Value) -> Result<Vec<PromptMessage>, Problem> {
    let mut message = Object::of(message, "a message")?;
    let role = match message.text("role") {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        _ => {
            return Err(Problem::of(
                "a message must have the role user or assistant",
                &message.into_value(),
            ));
        }
    };

    let blocks = match message.take("content") {
        Some(Value::String(text)) => vec![ContentBlock::text(text)],
        Some(Value::Array(values)) => block::read_all(Value::Array(values), Excess::IsNamed)?,
        Some(value) => block::read_all(vec![value].into(), Excess::IsNamed)?,
        None => return Err(Problem::of("a message must have a content", &message.into_value())),
    };

    Ok(blocks.into_iter().map(|block| PromptMessage::new(role.clone(), block)).collect())
}
