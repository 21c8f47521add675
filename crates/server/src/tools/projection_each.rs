//! `each`: one call of a tool for each of several arguments, into one table.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use larder_records::words::{count, cut, number};
use larder_store::store::{Content, Details, Entry, ResourceUri};
use rmcp::model::{CallToolResult, JsonObject};
use serde_json::{Value, json, value::RawValue};
use tokio::{
    sync::mpsc,
    time::{Instant, timeout_at},
};

use super::projection_value::ResultValue;
use crate::{
    handler::{Context, ToolError},
    registry::{InputReferences, RESERVED, Registry},
    spill::left_out::of_result,
};

/// The most calls of one fan-out.
pub(super) const MAX_CALLS: usize = 1_000;
/// The most calls at once.
const AT_ONCE: usize = 8;
/// The longest error of a call that the answer shows.
const MAX_SHOWN: usize = 160;

/// The table of a fan-out.
pub(super) struct Table {
    pub(super) entry: Arc<Entry>,
    counts: Counts,
}

/// The tool that is called for each of several arguments.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) tool: &'a str,
    /// The arguments that all calls have in common, without references.
    pub(super) common: &'a JsonObject,
    /// The meaning of references in the arguments of each call.
    pub(super) references: InputReferences,
}

/// How the calls of a fan-out have ended.
#[derive(Default)]
struct Counts {
    calls: u64,
    failed: u64,
    /// The calls that did not begin, and that did not end, in the time of the whole call.
    not_called: u64,
    unfinished: u64,
    /// The number and the error of the first call that failed.
    first: Option<(u64, String)>,
    /// The results of which the server says that they are not whole.
    left_out: u64,
    /// The number of the first one, and the reason.
    first_left_out: Option<(u64, String)>,
}

/// The result of a tool, and the JSON of its structured content where a value does not keep it.
type ToolAnswer = (CallToolResult, Option<Box<RawValue>>);

/// How a call of a fan-out has ended.
enum CallEnd {
    Done { left_out: Option<String> },
    Failed { error: String, time: Option<OutOfTime> },
}

/// Why a step has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutOfTime {
    /// The time was over before it began.
    NotCalled,
    /// The time was over before it ended.
    Unfinished,
}

/// Runs a step, if it can end in the time of the call.
///
/// # Errors
/// It cannot, or did not.
pub(super) async fn in_time<T>(
    ctx: &Context<()>,
    step: impl Future<Output = T>,
) -> Result<T, OutOfTime> {
    match ctx.scope().steps_end {
        None => Ok(step.await),
        Some(end) if Instant::now() >= end => Err(OutOfTime::NotCalled),
        Some(end) => timeout_at(end, step).await.map_err(|_| OutOfTime::Unfinished),
    }
}

/// Checks the arguments before the first call. Content that chooses a part of results would choose
/// what is called and written.
///
/// # Errors
/// The argument that no call may have.
pub(super) fn check_inputs(inputs: &[JsonObject]) -> Result<(), String> {
    match inputs.iter().position(|input| input.contains_key(RESERVED)) {
        Some(index) => Err(format!("each[{index}] has {RESERVED}: give it once, beside each")),
        None => Ok(()),
    }
}

impl Table {
    /// `271 calls of get_issue: 269 ok, 2 failed (first: …)`
    pub(super) fn summary(&self, tool: &str) -> String {
        self.counts.text(tool)
    }
}

impl Counts {
    fn add(&mut self, index: u64, end: CallEnd) {
        match end {
            CallEnd::Done { left_out: None } => {}
            CallEnd::Done { left_out: Some(reason) } => {
                self.left_out += 1;
                self.first_left_out.get_or_insert((index, reason));
            }
            CallEnd::Failed { error, time } => {
                self.failed += 1;
                self.not_called += u64::from(time == Some(OutOfTime::NotCalled));
                self.unfinished += u64::from(time == Some(OutOfTime::Unfinished));
                self.first.get_or_insert((index, error));
            }
        }
    }

    fn text(&self, tool: &str) -> String {
        let calls = count(self.calls, "call");
        let ok = number(self.calls - self.failed);
        let failed = match &self.first {
            None => "none failed".to_owned(),
            Some((index, error)) => {
                format!("{} failed (the first is record {index}: {error})", number(self.failed))
            }
        };

        let mut text = format!("{calls} of {tool}: {ok} ok, {failed}");
        if self.not_called + self.unfinished > 0 {
            text += &format!(
                "; the time of this call was over: {} of them were not called, {} did not end and may have been executed",
                number(self.not_called),
                number(self.unfinished)
            );
        }
        if let Some((index, reason)) = &self.first_left_out {
            text += &format!(
                "; of {} the server did not send all (the first is record {index}: {reason})",
                number(self.left_out)
            );
        }
        text
    }
}

/// Calls the tool for each of the arguments, at most [`AT_ONCE`] at once, and stores a record for
/// each in their order: `{input, ok, value}`. What fails is a value.
///
/// # Errors
/// The table cannot be stored.
pub(super) async fn call_each(
    ctx: &Context<()>,
    target: Target<'_>,
    inputs: Vec<JsonObject>,
) -> Result<Table, ToolError> {
    let tool = target.tool;
    let total = inputs.len() as u64;
    let done = AtomicU64::new(0);
    let (sender, receiver) = mpsc::channel::<io::Result<Bytes>>(AT_ONCE);

    let calling = async {
        let mut counts = Counts { calls: total, ..Counts::default() };
        let calls = inputs.into_iter().map(|input| one(ctx, target, input));
        let mut calls = stream::iter(calls).buffered(AT_ONCE);

        let mut index = 0;
        while let Some((record, end)) = calls.next().await {
            counts.add(index, end);
            index += 1;

            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            ctx.progress(done).of(total).await;
            // The store has failed if nobody receives, which it says itself.
            if sender.send(Ok(record.into())).await.is_err() {
                break;
            }
        }
        drop(calls);
        drop(sender);
        counts
    };

    let lines = stream::unfold(receiver, |mut receiver| async {
        receiver.recv().await.map(|line| (line, receiver))
    });
    let uri = ResourceUri::for_result(tool, &ctx.scope().random.id())
        .map_err(|error| ToolError::new(error.to_string()))?;
    let details = Details {
        name: Some(format!("Calls of {tool}")),
        mime_type: Some("application/x-ndjson".to_owned()),
        session: ctx.scope().session.clone(),
        ..Details::default()
    };
    let scope = ctx.scope();
    let storing =
        scope.store.create(scope.identity.owner(), uri, Content::text_stream(lines), details);

    let (counts, stored) = tokio::join!(calling, storing);
    match stored {
        Ok(entry) => Ok(Table { entry, counts }),
        Err(error) => Err(ToolError::new(format!("{error} ({})", counts.text(tool)))),
    }
}

impl Target<'_> {
    /// Calls the tool for these arguments.
    ///
    /// # Errors
    /// The reason why the tool has no result, for the model.
    async fn call(self, ctx: &Context<()>, input: &JsonObject) -> Result<ToolAnswer, String> {
        let arguments = match self.references {
            InputReferences::Content => {
                let mut arguments = self.common.clone();
                arguments.extend(input.clone());
                Value::Object(arguments)
            }
            InputReferences::Resolved { max_bytes } => {
                let scope = ctx.scope();
                let registry = Registry::from_scope(scope);
                let resolving =
                    registry.resolve_input(self.tool, self.common, input.clone(), scope, max_bytes);
                Box::pin(resolving).await?
            }
        };

        let called = ctx.call_exactly(self.tool, arguments).await;
        called.map_err(|fault| fault.to_string())
    }
}

/// One call: its record, and how it has ended.
async fn one(ctx: &Context<()>, target: Target<'_>, input: JsonObject) -> (String, CallEnd) {
    let called = in_time(ctx, target.call(ctx, &input)).await;
    let input = Value::Object(input);
    let (error, time) = match called {
        Ok(Ok((result, exact))) => {
            let is_error = result.is_error == Some(true);
            let left_out = of_result(&result);
            let value = ResultValue::of(result, exact);
            if !is_error {
                let record =
                    format!("{{\"input\":{input},\"ok\":true,\"value\":{}}}\n", value.json());
                return (record, CallEnd::Done { left_out });
            }
            (value.value, None)
        }
        Ok(Err(problem)) => (Value::from(problem), None),
        Err(OutOfTime::NotCalled) => {
            (Value::from("not called: there was no time"), Some(OutOfTime::NotCalled))
        }
        Err(OutOfTime::Unfinished) => (
            Value::from("not ended in time: it may have been executed"),
            Some(OutOfTime::Unfinished),
        ),
    };

    let text = error.as_str().map_or_else(|| error.to_string(), str::to_owned);
    let shown = cut(text.trim(), MAX_SHOWN).replace('\n', " ");
    // Values stay objects where those of other calls are, so that a query reads all of them.
    let record = json!({ "input": input, "ok": false, "value": { "error": error } });
    (format!("{record}\n"), CallEnd::Failed { error: shown, time })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn inputs_do_not_have_the_reserved_argument() {
        let inputs = |text: &str| serde_json::from_str::<Vec<JsonObject>>(text).unwrap();
        let nested = inputs(r#"[{"a": 1}, {"_larder": {"each": [{}]}}]"#);
        assert!(check_inputs(&nested).unwrap_err().starts_with("each[1] has _larder"));
        check_inputs(&inputs(r#"[{"a": "{{x:1}}"}, {"a": {"_larder": 1}}]"#)).unwrap();
    }

    #[test]
    fn calls_without_time_and_results_that_are_cut_are_told() {
        let mut counts = Counts { calls: 4, ..Counts::default() };
        let late = |time| CallEnd::Failed { error: "late".to_owned(), time: Some(time) };
        counts.add(0, CallEnd::Done { left_out: None });
        counts.add(1, CallEnd::Done { left_out: Some("\"has_more\" is true".to_owned()) });
        counts.add(2, late(OutOfTime::Unfinished));
        counts.add(3, late(OutOfTime::NotCalled));
        assert_eq!(
            counts.text("x"),
            "4 calls of x: 2 ok, 2 failed (the first is record 2: late); the time of this call was over: 1 of them were not called, 1 did not end and may have been executed; of 1 the server did not send all (the first is record 1: \"has_more\" is true)"
        );
    }
}
