//! Runs a workflow: step by step, until its end, a failure, or a handoff.

use std::{fmt::Write, time::Duration};

use rmcp::model::{CallToolResult, JsonObject};
use serde_json::Value;

use super::{
    DataSource, OnError, Pattern, ResourceHandle, SequentialWorkflow, SourceError, WorkflowStep,
    outcome::{Outcome, Status},
    source::{Bindings, Origin},
    transcript::{Transcript, all_text},
};
use crate::{
    handler::Context,
    uri_template::parse::{Piece, prose_pieces},
};

/// What became of a step.
enum Step {
    Done,
    Skipped(String),
    Failed { reason: String, retryable: bool },
}

impl Step {
    fn failed(reason: impl Into<String>) -> Self {
        Self::Failed { reason: reason.into(), retryable: false }
    }
}

/// A run under way.
struct Run<'a, S> {
    ctx: &'a Context<S>,
    bindings: Bindings,
    transcript: Transcript,
}

/// Runs it: what was said, and what came of it.
pub(super) async fn run<S>(
    workflow: &SequentialWorkflow,
    ctx: &Context<S>,
    arguments: JsonObject,
) -> (Transcript, Outcome) {
    let bindings = Bindings { arguments, ..Bindings::default() };
    let mut run = Run { ctx, bindings, transcript: Transcript::default() };
    run.begin(workflow);
    let mut outcome = Outcome::default();
    let total = u32::try_from(workflow.steps.len()).unwrap_or(u32::MAX);
    for ((done, step), next) in (0u32..).zip(&workflow.steps).zip(1..) {
        ctx.progress(f64::from(done), Some(f64::from(total)), Some(&step.name)).await;
        if step.handoff {
            run.hand_over(step, &workflow.steps[next..]);
            outcome.handed_over(&step.name);
            return (run.transcript, outcome);
        }
        match run.step(step).await {
            Step::Done => outcome.record(&step.name, Status::Done),
            Step::Skipped(reason) => {
                run.transcript.assistant(format!("I skip {:?}: {reason}.", step.name));
                outcome.record(&step.name, Status::Skipped);
            }
            Step::Failed { reason, retryable } => {
                run.fail(step, &reason, &workflow.steps[next..]);
                outcome.failed(&step.name, reason, retryable);
                return (run.transcript, outcome);
            }
        }
    }
    ctx.progress(f64::from(total), Some(f64::from(total)), None).await;
    (run.transcript, outcome)
}

impl<S> Run<'_, S> {
    /// What is wanted, and how it will be done.
    fn begin(&mut self, workflow: &SequentialWorkflow) {
        let mut wanted = workflow.description.clone();
        for (name, value) in &self.bindings.arguments {
            // Writing to a string cannot fail.
            let _ = write!(wanted, "\n{name}: {}", shown(value));
        }
        if let Some(instructions) = &workflow.instructions {
            let _ = write!(wanted, "\n\n{instructions}");
        }
        self.transcript.user(wanted);
        let mut plan = "I will do this:".to_owned();
        for (at, step) in workflow.steps.iter().enumerate() {
            let _ = write!(plan, "\n{}. {}", at + 1, step.name);
        }
        self.transcript.assistant(plan);
    }

    async fn step(&mut self, step: &WorkflowStep) -> Step {
        if let Some(when) = &step.when {
            let value = when.source.value(&self.bindings).ok();
            if !when.is.holds(value.as_ref()) {
                return Step::Skipped("its condition does not hold".into());
            }
        }
        // What cannot be done is said before anything of the step is.
        let uris = match self.uris(step) {
            Ok(uris) => uris,
            Err(end) => return end,
        };
        let arguments = match self.arguments(step) {
            Ok(arguments) => arguments,
            Err(end) => return end,
        };
        if let Some(guidance) = &step.guidance {
            let guidance = self.guidance(guidance);
            self.transcript.assistant(guidance);
        }
        let mut read = Vec::new();
        for uri in uris {
            match self.read(&uri).await {
                Ok(value) => read.push(value),
                Err(reason)
                    if step.for_each.as_ref().is_some_and(|e| e.on_error == OnError::Skip) =>
                {
                    self.transcript.user(format!("{reason} It is left out."));
                }
                Err(reason) => return Step::failed(reason),
            }
        }
        let mut value = match read.len() {
            1 if step.for_each.is_none() => read.remove(0),
            _ => Value::Array(read),
        };
        if let Some(tool) = &step.tool {
            value = match self.call(step, tool, arguments).await {
                Ok(value) => value,
                Err(end) => return end,
            };
        }
        if let Some(binding) = &step.binding {
            self.bindings.steps.insert(binding.clone(), value);
        }
        Step::Done
    }

    /// The URIs that the step reads.
    fn uris(&mut self, step: &WorkflowStep) -> Result<Vec<String>, Step> {
        let mut uris = Vec::new();
        for resource in &step.resources {
            match resource {
                ResourceHandle::From { uri } => {
                    uris.push(uri.text(&self.bindings).map_err(|e| ended("the resource", &e))?);
                }
                ResourceHandle::Uri(uri) => {
                    // Checked when the server was built.
                    let pattern =
                        uri.pattern().map_err(|e| Step::failed(format!("{}: {e}", uri.text())))?;
                    if let Some(literal) = pattern.literal() {
                        uris.push(literal.to_owned());
                    } else if step.for_each.is_some() {
                        self.uris_for_each(step, pattern, &mut uris)?;
                    } else {
                        uris.push(self.uri(step, pattern, None)?);
                    }
                }
            }
        }
        Ok(uris)
    }

    fn uri(
        &self,
        step: &WorkflowStep,
        pattern: &Pattern,
        item: Option<&DataSource>,
    ) -> Result<String, Step> {
        let expanded = pattern.expand(|variable| {
            let source = item.or_else(|| step.template_bindings.get(variable));
            let source =
                source.ok_or_else(|| Step::failed(format!("{{{variable}}} is not bound")))?;
            source
                .text(&self.bindings)
                .map_err(|e| ended(&format!("{{{variable}}} in {pattern}"), &e))
        })?;
        expanded.map_err(|error| Step::failed(format!("{pattern} cannot be read: {error}")))
    }

    fn uris_for_each(
        &mut self,
        step: &WorkflowStep,
        pattern: &Pattern,
        uris: &mut Vec<String>,
    ) -> Result<(), Step> {
        let (Some(each), Some((variable, source))) =
            (&step.for_each, step.template_bindings.iter().next())
        else {
            return Ok(());
        };
        // Each item is transformed, not the list.
        let whole = DataSource { transforms: Vec::new(), ..source.clone() };
        let value = whole.value(&self.bindings);
        let value = value.map_err(|e| ended(&format!("{{{variable}}} in {pattern}"), &e))?;
        let Value::Array(items) = value else {
            return Err(Step::failed(format!("what {variable:?} is bound to is no list")));
        };
        if items.len() > each.limit {
            self.transcript.user(format!(
                "Only the first {} of {} are read in {:?}.",
                each.limit,
                items.len(),
                step.name
            ));
        }
        for item in items.into_iter().take(each.limit) {
            let item = DataSource {
                transforms: source.transforms.clone(),
                ..DataSource::from(Origin::Constant(item))
            };
            match self.uri(step, pattern, Some(&item)) {
                Ok(uri) => uris.push(uri),
                Err(Step::Failed { reason, .. } | Step::Skipped(reason))
                    if each.on_error == OnError::Skip =>
                {
                    self.transcript.user(format!("{reason}. It is left out."));
                }
                Err(end) => return Err(end),
            }
        }
        Ok(())
    }

    /// The tool's arguments; an optional one of the prompt's that was not
    /// given is left out.
    fn arguments(&self, step: &WorkflowStep) -> Result<JsonObject, Step> {
        let mut arguments = JsonObject::new();
        for (name, source) in &step.arguments {
            match source.value(&self.bindings) {
                Ok(value) => {
                    arguments.insert(name.clone(), value);
                }
                Err(SourceError::NoArgument(_)) => {}
                Err(error) => return Err(ended(&format!("the argument {name:?}"), &error)),
            }
        }
        Ok(arguments)
    }

    async fn read(&mut self, uri: &str) -> Result<Value, String> {
        let found = self.ctx.read_any(uri).await;
        let found = found.map_err(|e| format!("Reading {uri} failed: {}.", e.message()))?;
        let shown = self.transcript.resource(&found, self.ctx.output_bytes()).await;
        shown.map_err(|e| format!("Reading {uri} failed: {e}"))
    }

    async fn call(
        &mut self,
        step: &WorkflowStep,
        tool: &str,
        arguments: JsonObject,
    ) -> Result<Value, Step> {
        let arguments = Value::Object(arguments);
        self.transcript.assistant(format!("I call {tool} with {arguments}."));
        let attempts = step.retry.as_ref().map_or(1, |retry| retry.attempts.max(1));
        let mut delay = Duration::from_millis(step.retry.as_ref().map_or(0, |r| r.delay_ms));
        for attempt in 1..=attempts {
            let reason = match self.ctx.call_tool(tool, arguments.clone()).await {
                Ok(result) if result.is_error == Some(true) => failure(&result),
                Ok(result) => {
                    let shown = self.transcript.result(self.ctx, tool, result).await;
                    return shown.map_err(Step::failed);
                }
                Err(fault) => fault.to_string(),
            };
            if attempt == attempts {
                let retryable = step.retry.is_some();
                return Err(Step::Failed { reason: format!("{tool} failed: {reason}"), retryable });
            }
            tokio::time::sleep(delay).await;
            delay = delay.saturating_mul(2);
        }
        Err(Step::failed(format!("{tool} was never called")))
    }

    fn guidance(&self, text: &str) -> String {
        let mut filled = String::new();
        for piece in prose_pieces(text) {
            match piece {
                Piece::Text(text) => filled.push_str(text),
                Piece::Expression(name) => match self.bindings.arguments.get(name) {
                    Some(value) => filled.push_str(&shown(value)),
                    None => filled.push_str(&format!("{{{name}}}")),
                },
            }
        }
        filled
    }

    fn fail(&mut self, step: &WorkflowStep, reason: &str, rest: &[WorkflowStep]) {
        let mut text = format!("The step {:?} failed: {reason}", step.name);
        if !rest.is_empty() {
            let names: Vec<_> = rest.iter().map(|step| step.name.as_str()).collect();
            let _ = write!(text, "\nNot done: {}.", names.join(", "));
        }
        self.transcript.user(text);
    }

    /// Leaves the rest to the model, with all that is known of it.
    fn hand_over(&mut self, step: &WorkflowStep, rest: &[WorkflowStep]) {
        if let Some(guidance) = &step.guidance {
            let guidance = self.guidance(guidance);
            self.transcript.assistant(guidance);
        }
        let mut text = "What is left to do:".to_owned();
        for (at, step) in rest.iter().enumerate() {
            let _ = write!(text, "\n{}. {}", at + 1, step.name);
            if let Some(tool) = &step.tool {
                let known: JsonObject = step
                    .arguments
                    .iter()
                    .map(|(name, source)| {
                        let value = source.value(&self.bindings);
                        (name.clone(), value.unwrap_or_else(|e| format!("<{e}>").into()))
                    })
                    .collect();
                let _ = write!(text, ": call {tool} with {}", Value::Object(known));
            }
            if let Ok(uris) = self.uris(step) {
                for uri in uris {
                    let _ = write!(text, ": read {uri}");
                }
            }
        }
        self.transcript.user(text);
    }
}

/// Why a step cannot begin: left out when something optional is missing,
/// failed otherwise.
fn ended(place: &str, error: &SourceError) -> Step {
    match error {
        SourceError::NoArgument(_) | SourceError::NotBound(_) => {
            Step::Skipped(format!("{place} has no value: {error}"))
        }
        _ => Step::failed(format!("{place} has no value: {error}")),
    }
}

fn failure(result: &CallToolResult) -> String {
    let text = all_text(result);
    if text.is_empty() { "without a word".into() } else { text }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
