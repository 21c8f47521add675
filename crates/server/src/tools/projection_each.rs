//! `each`: one call of a tool for each of several arguments, into one table.

use std::io;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use larder_protocol::exact;
use larder_records::words::{count, number};
use larder_store::store::{Content, Details, Entry, ResourceUri};
use rmcp::model::{CallToolResult, ContentBlock, JsonObject};
use serde_json::{Value, json};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use tokio::sync::mpsc;

use crate::handler::{Context, ToolError};

/// The most calls of one fan-out.
pub(super) const MAX_CALLS: usize = 1_000;
/// The most calls at once.
const AT_ONCE: usize = 8;
/// The longest error of a call that the answer shows.
const MAX_SHOWN: usize = 160;

/// The table of a fan-out.
pub(super) struct Table {
    pub(super) entry: Arc<Entry>,
    calls: u64,
    failed: u64,
    /// The number and the error of the first call that failed.
    first: Option<(u64, String)>,
}

impl Table {
    /// `271 calls of get_issue: 269 ok, 2 failed (first: …)`
    pub(super) fn summary(&self, tool: &str) -> String {
        let calls = count(self.calls, "call");
        let ok = number(self.calls - self.failed);
        let failed = match &self.first {
            None => "none failed".to_owned(),
            Some((index, error)) => {
                format!("{} failed (the first is record {index}: {error})", number(self.failed))
            }
        };
        format!("{calls} of {tool}: {ok} ok, {failed}")
    }
}

/// Calls the tool for each of the arguments, at most [`AT_ONCE`] at once, and stores a record for
/// each in their order: `{input, ok, value}`. What fails is a value.
///
/// # Errors
/// The table cannot be stored.
pub(super) async fn call_each(
    ctx: &Context<()>,
    tool: &str,
    common: &JsonObject,
    inputs: Vec<Value>,
) -> Result<Table, ToolError> {
    let total = inputs.len() as u64;
    let done = AtomicU64::new(0);
    let (sender, receiver) = mpsc::channel::<io::Result<Bytes>>(AT_ONCE);

    let calling = async {
        let mut failed = 0;
        let mut first = None;
        let calls = inputs.into_iter().map(|input| one(ctx, tool, common, input));
        let mut calls = stream::iter(calls).buffered(AT_ONCE);

        let mut index = 0;
        while let Some((record, error)) = calls.next().await {
            if let Some(error) = error {
                failed += 1;
                first.get_or_insert((index, error));
            }
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
        (failed, first)
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

    let ((failed, first), stored) = tokio::join!(calling, storing);
    Ok(Table { entry: stored?, calls: total, failed, first })
}

/// One call: its record, and its error if it failed.
async fn one(
    ctx: &Context<()>,
    tool: &str,
    common: &JsonObject,
    input: Value,
) -> (String, Option<String>) {
    let mut arguments = common.clone();
    if let Value::Object(own) = &input {
        arguments.extend(own.clone());
    }

    let (ok, value) = match ctx.call_tool(tool, Value::Object(arguments)).await {
        Ok(result) => (result.is_error != Some(true), value_of(result)),
        Err(fault) => (false, Value::from(fault.to_string())),
    };

    let error = (!ok).then(|| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        larder_records::words::cut(text.trim(), MAX_SHOWN).replace('\n', " ")
    });
    // Values stay objects where those of other calls are, so that a query reads all of them.
    let value = if ok { value } else { json!({ "error": value }) };
    let record = json!({ "input": input, "ok": ok, "value": value });
    (format!("{record}\n"), error)
}

/// The value of a result: its structured content, or its text, parsed if it is JSON.
pub(super) fn value_of(result: CallToolResult) -> Value {
    if let Some(value) = result.structured_content {
        return value;
    }

    let mut texts: Vec<Value> = result.content.into_iter().map(of_block).collect();
    match texts.len() {
        1 => texts.swap_remove(0),
        _ => Value::Array(texts),
    }
}

fn of_block(block: ContentBlock) -> Value {
    match block {
        // A value would not keep all numbers.
        ContentBlock::Text(text) if !exact::keeps_numbers(text.text.as_bytes()) => {
            Value::String(text.text)
        }
        ContentBlock::Text(text) => match serde_json::from_str::<Value>(&text.text) {
            Ok(value) if value.is_object() || value.is_array() => value,
            _ => Value::String(text.text),
        },
        other => serde_json::to_value(other).unwrap_or_default(),
    }
}
