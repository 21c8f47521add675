//! The answer of `prompts/get`.

use larder_protocol::OtherMembers;
use rmcp::model::{ContentBlock, GetPromptResult, MetaObject, PromptMessage, Role};
use serde_json::Value;

use super::{
    block,
    definition::{DEFINITION_BYTES, cut_description},
    members::{Excess, LongMembers, drop_long},
    object::Object,
    problem::Problem,
    result::{Answer, RawResult},
    shapes,
};

/// The messages of a prompt.
pub(crate) struct GotPrompt(pub(crate) GetPromptResult);

impl Answer for GotPrompt {
    fn read(result: RawResult) -> Result<Self, Problem> {
        let mut result = result.object()?;
        let messages = match result.take("messages") {
            Some(Value::Array(messages)) => messages,
            Some(one @ Value::Object(_)) => vec![one],
            other => {
                return Err(Problem::of("messages must be a list", &other.unwrap_or_default()));
            }
        };

        let Messages { messages, others: of_messages } = Messages::read(messages)?;

        let mut description = result.take_text("description");
        description.as_mut().map(cut_description);
        drop_long(&mut result);
        let mut others = result.take_others(&shapes::PROMPT_RESULT);
        if others.exceed(DEFINITION_BYTES) {
            tracing::debug!("the other members of an upstream's prompt are too long");
            others = OtherMembers::default();
        }
        // Each of these has been measured.
        others.add_list("messages", of_messages);
        result.carry(others);

        let mut prompt = GetPromptResult::new(messages);
        prompt.description = description;
        prompt.meta = result.take_members("_meta").map(MetaObject);
        Ok(Self(prompt))
    }
}

/// The messages of a prompt, with the members of each that its type does not have.
#[derive(Default)]
struct Messages {
    messages: Vec<PromptMessage>,
    others: Vec<OtherMembers>,
}

impl Messages {
    /// Reads the messages. One that cannot be read is left out, which a message in its place says.
    ///
    /// # Errors
    /// None of them can be read.
    fn read(values: Vec<Value>) -> Result<Self, Problem> {
        let mut read = Self::default();
        let mut first_problem = None;
        let mut has_any = values.is_empty();
        for (index, value) in values.into_iter().enumerate() {
            match read.add(value, index + 1) {
                Ok(()) => has_any = true,
                Err(problem) => {
                    let note = format!("(Message {} is left out: {problem}.)", index + 1);
                    read.push(&Role::User, ContentBlock::text(note));
                    first_problem.get_or_insert(problem);
                }
            }
        }

        match first_problem {
            Some(problem) if !has_any => Err(problem),
            _ => Ok(read),
        }
    }

    /// Adds a message with one block; of several blocks, as many messages, of which the first has
    /// the other members. `number` counts the messages from 1.
    fn add(&mut self, value: Value, number: usize) -> Result<(), Problem> {
        let mut message = Object::of(value, "a message")?;
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
            None => {
                return Err(Problem::of("a message must have a content", &message.into_value()));
            }
        };

        let first = self.messages.len();
        for block in blocks {
            self.push(&role, block);
        }

        let others = message.take_others(&shapes::PROMPT_MESSAGE);
        if others.exceed(DEFINITION_BYTES) {
            let mut long = LongMembers::default();
            long.add("other members".to_owned(), others.into_value());
            if let Some(note) = long.note(&format!("message {number}"), Excess::IsNamed) {
                self.push(&role, note);
            }
        } else if let Some(of_first) = self.others.get_mut(first) {
            *of_first = others;
        }
        Ok(())
    }

    fn push(&mut self, role: &Role, block: ContentBlock) {
        self.messages.push(PromptMessage::new(role.clone(), block));
        self.others.push(OtherMembers::default());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::repair::Repaired, *};

    fn read(messages: &Value) -> Result<Value, Problem> {
        let result = json!({ "messages": messages }).to_string();
        let result = RawResult::of_json(&result, Repaired::default()).expect("it is JSON");
        GotPrompt::read(result).map(|GotPrompt(prompt)| json!(prompt.messages))
    }

    #[test]
    fn a_bad_message_costs_no_other_one_and_is_told() {
        let good = json!({ "role": "assistant", "content": { "type": "text", "text": "a" } });
        let system = json!({ "role": "system", "content": "b" });
        let prompt = read(&json!([null, good, system])).expect("one is clear");

        let note = |index: usize| prompt[index]["content"]["text"].as_str().unwrap_or_default();
        assert!(note(0).starts_with("(Message 1 is left out: "), "{prompt}");
        assert_eq!(prompt[1], good);
        assert!(note(2).contains("\"system\""), "{prompt}");

        assert_eq!(read(&good), Ok(json!([good])));
        assert_eq!(read(&json!([])), Ok(json!([])));
        for none in [json!([null]), json!(null), json!("x"), json!([{ "role": "user" }])] {
            assert!(read(&none).is_err(), "{none}");
        }
    }
}
