//! A workflow as a prompt of a server.

use std::sync::Arc;

use rmcp::model::JsonObject;
use serde_json::Value;

use super::{Problem, SequentialWorkflow, check, run};
use crate::registry::{Builder, Context, Prompt};

/// Offers a workflow as a prompt, and has it checked against everything that
/// the server offers in the end: `builder.with(workflow::prompt(hint))`.
pub fn prompt<S: Send + Sync + 'static>(
    workflow: SequentialWorkflow,
) -> impl FnOnce(Builder<S>) -> Builder<S> {
    prompt_showing(workflow, Problem::to_string)
}

/// The same, with words of one's own for what is wrong with it, such as where
/// it stands.
pub fn prompt_showing<S: Send + Sync + 'static>(
    workflow: SequentialWorkflow,
    show: impl Fn(&Problem) -> String + Send + 'static,
) -> impl FnOnce(Builder<S>) -> Builder<S> {
    let workflow = Arc::new(workflow);
    move |builder| {
        let schema = match workflow.schema() {
            Value::Object(schema) => schema,
            _ => JsonObject::new(),
        };
        let (checked, running) = (Arc::clone(&workflow), Arc::clone(&workflow));
        let prompt = Prompt::new(move |ctx: Context<S>, arguments: JsonObject| {
            let workflow = Arc::clone(&running);
            async move { run::run(&workflow, &ctx, arguments).await }
        })
        .name(workflow.name.clone())
        .description(workflow.description.clone())
        .input_schema(schema);
        builder.prompt(prompt).check(move |catalog, faults| {
            let problems = check::problems(&checked, catalog);
            faults.extend(problems.iter().map(show));
        })
    }
}
