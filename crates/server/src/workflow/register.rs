//! Registers a workflow as a prompt and, if its author asks for it, as a tool.

use std::sync::Arc;

use rmcp::model::{CallToolResult, GetPromptResult, JsonObject};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::{
    Problem, SequentialWorkflow,
    check::{self, Findings},
    completing,
    definition::Also,
    outcome::RunOutcome,
    run,
};
use crate::{
    handler::{Context, Structured},
    registry::{Builder, Prompt, Tool},
};

/// Registers a workflow as a prompt: `builder.with(workflow::prompt(hint))`. The
/// server checks it when it is built. A workflow that is also a tool
/// ([`SequentialWorkflow::as_tool`]) is registered as both.
pub fn prompt<S: Send + Sync + 'static>(
    workflow: SequentialWorkflow,
) -> impl FnOnce(Builder<S>) -> Builder<S> {
    prompt_showing(workflow, Problem::to_string)
}

/// [`prompt`] with a custom message for each problem, such as one with its line
/// in a file.
pub fn prompt_showing<S: Send + Sync + 'static>(
    workflow: SequentialWorkflow,
    show: impl Fn(&Problem) -> String + Send + 'static,
) -> impl FnOnce(Builder<S>) -> Builder<S> {
    let workflow = Arc::new(workflow);
    move |mut builder| {
        if let Some(also) = workflow.also {
            let tools = workflow.steps.iter().filter_map(|step| step.tool.clone()).collect();
            builder = builder.workflow_calls(&workflow.name, tools);
            builder = builder.tool(as_tool(Arc::clone(&workflow), also));
        }

        let prompt = completing::completed(as_prompt(Arc::clone(&workflow)), &workflow);
        builder.prompt(prompt).check_known(move |known, findings| {
            let Findings { problems, warnings } = check::check(&workflow, known);
            findings.problems.extend(problems.iter().map(&show));
            findings.warnings.extend(warnings.iter().map(&show));
        })
    }
}

fn as_prompt<S: Send + Sync + 'static>(workflow: Arc<SequentialWorkflow>) -> Prompt<S> {
    let name = workflow.name.clone();
    let description = workflow.description.clone();
    let schema = schema(&workflow);

    Prompt::new(move |ctx: Context<S>, arguments: JsonObject| {
        let workflow = Arc::clone(&workflow);
        async move {
            let (transcript, outcome) = run::run(&workflow, &ctx, arguments).await;

            let mut result = GetPromptResult::new(transcript.messages);
            result.description = Some(workflow.description.clone());
            result.meta = Some(outcome.to_meta());
            result
        }
    })
    .name(name)
    .description(description)
    .input_schema(schema)
}

/// The structured content of a workflow's tool result.
#[derive(Serialize, JsonSchema)]
struct WorkflowOutput {
    #[serde(flatten)]
    outcome: RunOutcome,
    /// The transcript, because some hosts show a model only the structured content.
    transcript: String,
}

fn as_tool<S: Send + Sync + 'static>(workflow: Arc<SequentialWorkflow>, also: Also) -> Tool<S> {
    let name = workflow.name.clone();
    let description = workflow.description.clone();
    let schema = schema(&workflow);

    Tool::new(move |ctx: Context<S>, arguments: JsonObject| {
        let workflow = Arc::clone(&workflow);
        async move {
            if also == Also::Task {
                ctx.into_task().await;
            }

            let (transcript, outcome) = run::run(&workflow, &ctx, arguments).await;
            let (transcript, content) = transcript.into_content();

            let mut result = CallToolResult::success(content);
            result.is_error = Some(outcome.is_failure());
            result.meta = Some(outcome.to_meta());
            (Structured(WorkflowOutput { outcome, transcript }), result)
        }
    })
    .name(name)
    .description(description)
    .input_schema(schema)
}

fn schema(workflow: &SequentialWorkflow) -> JsonObject {
    match workflow.schema() {
        Value::Object(schema) => schema,
        _ => JsonObject::new(),
    }
}
