//! Runs a workflow: step by step, to its end, a failure or a handoff.

use std::{fmt::Write, time::Duration};

use larder_protocol::{
    Fault,
    quote::quoted,
    uri_template::{
        parse::{TemplatePiece, prose_pieces},
        percent,
    },
};
use larder_store::store::StoredResource;
use rmcp::model::{CallToolResult, JsonObject};
use serde_json::Value;

use super::{
    OnError, SequentialWorkflow, SourceError, WorkflowStep,
    each::{ReadValues, Readings, StepReading},
    outcome::{RunOutcome, Status},
    path::Bound,
    source::Bindings,
    step_result::{StepResult, missing_value},
    transcript::{Transcript, all_text, bound, value_of_resource, value_of_result},
};
use crate::handler::{Context, is_permanent};

/// A run in progress.
pub(super) struct WorkflowRun<'a, S> {
    ctx: &'a Context<S>,
    bindings: Bindings,
    transcript: Transcript,
}

/// Runs a workflow and returns the transcript and the outcome.
pub(super) async fn run<S>(
    workflow: &SequentialWorkflow,
    ctx: &Context<S>,
    arguments: JsonObject,
) -> (Transcript, RunOutcome) {
    let bindings = Bindings { arguments, ..Bindings::default() };
    let registry = ctx.registry();
    let transcript = Transcript::new(registry.prompt_bytes(), registry.media_bytes());
    let mut run = WorkflowRun { ctx, bindings, transcript };
    run.introduce(workflow);

    let mut outcome = RunOutcome::default();
    let total = u32::try_from(workflow.steps.len()).unwrap_or(u32::MAX);

    for ((done, step), next) in (0u32..).zip(&workflow.steps).zip(1..) {
        ctx.progress(done).of(total).message(&*step.name).await;
        if step.handoff {
            run.hand_over(step, &workflow.steps[next..]);
            outcome.handed_over(&step.name);
            return (run.transcript, outcome);
        }

        match run.step(step).await {
            StepResult::Done => outcome.record(&step.name, Status::Done),
            StepResult::Skipped(reason) => {
                run.transcript.assistant(format!("I skip {:?}: {reason}.", step.name));
                outcome.record(&step.name, Status::Skipped);
            }
            StepResult::Failed { reason, retryable } => {
                run.fail(step, &reason, &workflow.steps[next..]);
                outcome.failed(&step.name, reason, retryable);
                return (run.transcript, outcome);
            }
        }
    }

    ctx.progress(total).of(total).await;
    (run.transcript, outcome)
}

impl<S> WorkflowRun<'_, S> {
    /// Adds the user's request and the assistant's plan.
    fn introduce(&mut self, workflow: &SequentialWorkflow) {
        let mut request = workflow.description.clone();
        for (name, value) in &self.bindings.arguments {
            // Writing to a string cannot fail.
            let _ = write!(request, "\n{name}: {}", display_text(value));
        }
        if let Some(instructions) = &workflow.instructions {
            let _ = write!(request, "\n\n{instructions}");
        }
        self.transcript.user(request);

        let mut plan = "I will do this:".to_owned();
        for (index, step) in workflow.steps.iter().enumerate() {
            let _ = write!(plan, "\n{}. {}", index + 1, step.name);
        }
        self.transcript.assistant(plan);
    }

    async fn step(&mut self, step: &WorkflowStep) -> StepResult {
        if let Some(when) = &step.when {
            let value = when.source.value(&self.bindings).ok();
            if !when.is.holds(value.as_ref()) {
                return StepResult::Skipped("its condition does not hold".into());
            }
        }

        // A step that lacks a value adds nothing to the transcript.
        let readings = match self.bindings.readings(step) {
            Ok(readings) => readings,
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

        let mut value = match self.read_all(step, readings).await {
            Ok(value) => match bound(self.ctx, value).await {
                Ok(value) => value,
                Err(busy) => return StepResult::failed(busy),
            },
            Err(reason) => return StepResult::failed(reason),
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

        StepResult::Done
    }

    /// Reads the resources of the step. Returns what the step binds.
    ///
    /// # Errors
    /// A resource cannot be read and may not be left out, or none is left.
    async fn read_all(&mut self, step: &WorkflowStep, readings: Readings) -> Result<Value, String> {
        let Readings { all, note, is_object } = readings;
        if let Some(note) = note {
            self.transcript.user(note);
        }

        // Only values that a later step can use are read as a whole and parsed.
        let is_bound = step.binding.is_some() && step.tool.is_none();
        let may_skip = step.for_each.as_ref().is_some_and(|each| each.on_error == OnError::Skip);

        let mut read = ReadValues::default();
        for StepReading { uri, key } in all {
            let found = match uri {
                Ok(uri) => {
                    if let Some(key) = &key {
                        self.transcript.user(format!("{}: {uri}", quoted(key)));
                    }
                    self.read(&uri, is_bound).await
                }
                Err(reason) => Err(sentence(&reason)),
            };

            match found {
                Ok(value) => read.values.push((key, value)),
                Err(reason) => {
                    let item = key.map_or_else(String::new, |key| format!("{}: ", quoted(&key)));
                    let reason = format!("{item}{reason}");
                    if !may_skip {
                        return Err(reason);
                    }
                    self.transcript.user(format!("{reason} It is left out."));
                    read.lose(reason);
                }
            }
        }

        match read.failure() {
            Some(failure) => Err(failure),
            None => Ok(read.into_value(step.for_each.is_some(), is_object)),
        }
    }

    /// The tool's arguments, without those whose prompt argument was not given.
    fn arguments(&self, step: &WorkflowStep) -> Result<JsonObject, StepResult> {
        let mut arguments = JsonObject::new();
        for (name, source) in &step.arguments {
            match source.value(&self.bindings) {
                Ok(value) => {
                    arguments.insert(name.clone(), value);
                }
                Err(SourceError::NoArgument(_)) => {}
                Err(error) => return Err(missing_value(&format!("the argument {name:?}"), &error)),
            }
        }
        Ok(arguments)
    }

    /// Adds a resource to the transcript, with all its contents. Returns its value if it is
    /// bound: a list if it has several contents.
    async fn read(&mut self, uri: &str, is_bound: bool) -> Result<Value, String> {
        let failed = |error: &dyn std::fmt::Display| {
            format!("Reading {uri} failed: {}.", error.to_string().trim_end_matches('.'))
        };

        let found = match self.find(uri).await {
            Ok(found) => found,
            Err(error) => {
                let near = self.near_resources(uri, &error).await;
                return Err(format!("{}{near}", failed(&error)));
            }
        };
        let mut values = Vec::new();
        for content in &found {
            values.push(if is_bound {
                value_of_resource(self.ctx, content).await.map_err(|e| failed(&e))?
            } else {
                Value::Null
            });

            let added = self.transcript.resource(content, self.ctx.output_bytes()).await;
            added.map_err(|e| failed(&e))?;
        }

        Ok(if values.len() == 1 { values.remove(0) } else { Value::Array(values) })
    }

    /// Finds a resource by its URI, or without needless percent-encoding if there is none: a
    /// variable's value makes `a%40x`, and the resource may be stored as `a@x`.
    async fn find(&self, uri: &str) -> Result<Vec<StoredResource>, Fault> {
        let found = self.ctx.read_step(uri).await;
        let plain = percent::decode_plain(uri);
        match found {
            Err(Fault::ResourceNotFound { .. }) if plain != uri => {
                // The error names the requested URI.
                self.ctx.find_all(&plain).await.or(found)
            }
            found => found,
        }
    }

    /// Names that are near to the URI of a resource that does not exist, as a sentence. An upstream
    /// says that by the code of its era.
    async fn near_resources(&self, uri: &str, error: &Fault) -> String {
        match error {
            Fault::ResourceNotFound { .. } | Fault::Relayed { code: -32_002 | -32_602, .. } => {
                self.ctx.registry().near_resources(uri, self.ctx.scope()).await
            }
            _ => String::new(),
        }
    }

    async fn call(
        &mut self,
        step: &WorkflowStep,
        tool: &str,
        arguments: JsonObject,
    ) -> Result<Bound, StepResult> {
        let arguments = Value::Object(arguments);
        self.transcript.assistant(format!("I call {tool} with {arguments}."));

        let registry = self.ctx.registry();
        let checked = registry.fitted_arguments(tool, arguments, self.ctx.scope()).await;
        let arguments = checked.map_err(StepResult::failed)?;

        let attempts = step.retry.as_ref().map_or(1, |retry| retry.attempts.max(1));
        let mut delay = Duration::from_millis(step.retry.as_ref().map_or(0, |r| r.delay_ms));

        for attempt in 1..=attempts {
            let (reason, is_permanent) = match self.ctx.call_tool(tool, arguments.clone()).await {
                Ok(result) if result.is_error == Some(true) => {
                    (failure(&result), is_permanent(&result))
                }
                Ok(result) => {
                    let value = match step.binding {
                        Some(_) => value_of_result(self.ctx, &result).await,
                        None => Ok(Bound::from(Value::Null)),
                    };
                    let value = value.map_err(StepResult::failed)?;
                    let added = self.transcript.result(self.ctx, tool, result).await;
                    return added.map(|()| value).map_err(StepResult::failed);
                }
                Err(fault) => (fault.to_string(), !fault.is_transient()),
            };

            if is_permanent || attempt == attempts {
                let retryable = step.retry.is_some() && !is_permanent;
                return Err(StepResult::Failed {
                    reason: format!("{tool} failed: {reason}"),
                    retryable,
                });
            }

            tokio::time::sleep(delay).await;
            delay = delay.saturating_mul(2);
        }

        Err(StepResult::failed(format!("{tool} was never called")))
    }

    fn guidance(&self, text: &str) -> String {
        let mut filled = String::new();
        for piece in prose_pieces(text) {
            match piece {
                TemplatePiece::Text(text) => filled.push_str(text),
                TemplatePiece::Expression(name) => match self.bindings.arguments.get(name) {
                    Some(value) => filled.push_str(&display_text(value)),
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

    /// Lists the remaining steps for the model, with the values known so far.
    fn hand_over(&mut self, step: &WorkflowStep, rest: &[WorkflowStep]) {
        if let Some(guidance) = &step.guidance {
            let guidance = self.guidance(guidance);
            self.transcript.assistant(guidance);
        }

        let mut text = "What is left to do:".to_owned();
        for (index, step) in rest.iter().enumerate() {
            let _ = write!(text, "\n{}. {}", index + 1, step.name);
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

            match self.bindings.readings(step) {
                Ok(readings) => {
                    for uri in readings.all.iter().filter_map(|reading| reading.uri.as_ref().ok()) {
                        let _ = write!(text, ": read {uri}");
                    }
                }
                Err(StepResult::Skipped(reason) | StepResult::Failed { reason, .. }) => {
                    let _ = write!(text, ": its resources are not known yet: {reason}");
                }
                Err(StepResult::Done) => {}
            }
        }

        self.transcript.user(text);
    }
}

/// A reason as a sentence.
fn sentence(reason: &str) -> String {
    format!("{}.", reason.trim_end_matches('.'))
}

fn failure(result: &CallToolResult) -> String {
    let text = all_text(result);
    if text.is_empty() { "no message".into() } else { text }
}

fn display_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
