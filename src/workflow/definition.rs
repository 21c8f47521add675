//! A workflow as a whole.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::WorkflowStep;

/// Steps in their order, offered as a prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SequentialWorkflow {
    pub(super) name: String,
    pub(super) description: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) instructions: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) arguments: Vec<Argument>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) also: Option<Also>,
    pub(super) steps: Vec<WorkflowStep>,
}

/// What a workflow is besides a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Also {
    /// A tool.
    Tool,
    /// A tool whose calls become tasks where the client can follow one.
    Task,
}

/// An argument of the prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Argument {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Whether it must be given.
    #[serde(default)]
    pub required: bool,
    /// What its text must be.
    #[serde(default)]
    pub kind: ArgumentKind,
}

/// What the text of an argument must be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ArgumentKind {
    /// Anything.
    #[default]
    String,
    /// A number.
    Number,
    /// A whole number.
    Integer,
    /// `true` or `false`.
    Boolean,
}

impl SequentialWorkflow {
    /// A workflow without steps.
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            instructions: None,
            arguments: Vec::new(),
            also: None,
            steps: Vec::new(),
        }
    }

    /// What the model is told before anything else.
    #[must_use]
    pub fn with_instructions(mut self, text: impl Into<String>) -> Self {
        self.instructions = Some(text.into());
        self
    }

    /// An argument of the prompt, as text.
    #[must_use]
    pub fn argument(
        self,
        name: impl Into<String>,
        description: impl Into<String>,
        required: bool,
    ) -> Self {
        self.typed_argument(name, ArgumentKind::String, description, required)
    }

    /// An argument that is read as something else than text.
    #[must_use]
    pub fn typed_argument(
        mut self,
        name: impl Into<String>,
        kind: ArgumentKind,
        description: impl Into<String>,
        required: bool,
    ) -> Self {
        let (name, description) = (name.into(), description.into());
        self.arguments.push(Argument { name, description, required, kind });
        self
    }

    /// The next step.
    #[must_use]
    pub fn step(mut self, step: WorkflowStep) -> Self {
        self.steps.push(step);
        self
    }

    /// Offers it as a tool as well, for models in hosts that leave prompts to
    /// people: its arguments are the prompt's, its result is the transcript as
    /// text, with the outcome as structured content. A run that fails is a
    /// failure of the tool's.
    #[must_use]
    pub fn as_tool(mut self) -> Self {
        self.also = Some(Also::Tool);
        self
    }

    /// The same for a workflow that takes long: a call becomes a task where
    /// the client can follow one, and the task says which step it is at.
    #[must_use]
    pub fn as_task(mut self) -> Self {
        self.also = Some(Also::Task);
        self
    }

    /// Ends the definition. It is checked when the server is built.
    #[must_use]
    pub fn finish(self) -> Self {
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its arguments as JSON Schema.
    pub(super) fn schema(&self) -> Value {
        let properties: serde_json::Map<_, _> = self
            .arguments
            .iter()
            .map(|argument| {
                let kind = json!(argument.kind);
                let schema = json!({ "type": kind, "description": argument.description });
                (argument.name.clone(), schema)
            })
            .collect();
        let required: Vec<_> =
            self.arguments.iter().filter(|a| a.required).map(|a| &a.name).collect();
        json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        })
    }
}
