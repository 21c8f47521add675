//! The definition of a workflow.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::WorkflowStep;

/// Steps that run in order, offered as a prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SequentialWorkflow {
    /// Name of the prompt.
    pub(super) name: String,
    /// Description of the prompt.
    pub(super) description: String,
    /// Text that the model reads before anything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) instructions: Option<String>,
    /// An argument of the prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) arguments: Vec<Argument>,
    /// Additionally offer the workflow as a `"tool"`, or as a `"task"`: a tool whose calls become
    /// tasks where the client supports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) also: Option<Also>,
    /// A step. docs/workflows.md lists its keys.
    pub(super) steps: Vec<WorkflowStep>,
}

/// The further items that a workflow is beside a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Also {
    /// A tool.
    Tool,
    /// A tool whose calls become tasks if the client supports them.
    Task,
}

/// An argument of the prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Argument {
    /// Name of the argument.
    pub name: String,
    /// Description of the argument.
    pub description: String,
    /// Whether the argument must be given.
    #[serde(default)]
    pub required: bool,
    /// Type of the argument: `"string"`, `"number"`, `"integer"` or `"boolean"`.
    #[serde(default)]
    pub kind: ArgumentKind,
}

/// The type of an argument's value. Clients send all values as text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ArgumentKind {
    /// Any text.
    #[default]
    String,
    /// A number.
    Number,
    /// An integer.
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

    /// Instructions for the model, before the steps.
    #[must_use]
    pub fn with_instructions(mut self, text: impl Into<String>) -> Self {
        self.instructions = Some(text.into());
        self
    }

    /// Adds an argument of the prompt, a string.
    #[must_use]
    pub fn argument(
        self,
        name: impl Into<String>,
        description: impl Into<String>,
        required: bool,
    ) -> Self {
        self.typed_argument(name, ArgumentKind::String, description, required)
    }

    /// Adds an argument of another type.
    #[must_use]
    pub fn typed_argument(
        mut self,
        name: impl Into<String>,
        kind: ArgumentKind,
        description: impl Into<String>,
        required: bool,
    ) -> Self {
        let name = name.into();
        let description = description.into();
        self.arguments.push(Argument { name, description, required, kind });
        self
    }

    /// Adds a step.
    #[must_use]
    pub fn step(mut self, step: WorkflowStep) -> Self {
        self.steps.push(step);
        self
    }

    /// Also offers the workflow as a tool, because in most hosts only users can
    /// start prompts. The tool has the prompt's arguments; its result is the
    /// transcript as text, and the outcome as structured content. A failed run is
    /// a failure of the tool.
    #[must_use]
    pub fn as_tool(mut self) -> Self {
        self.also = Some(Also::Tool);
        self
    }

    /// Like [`Self::as_tool`], for long workflows: a call becomes a task if the
    /// client supports tasks, and the task's status names the current step.
    #[must_use]
    pub fn as_task(mut self) -> Self {
        self.also = Some(Also::Task);
        self
    }

    /// Ends the definition. The server checks it when it is built.
    #[must_use]
    pub fn finish(self) -> Self {
        self
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The arguments as JSON Schema.
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
