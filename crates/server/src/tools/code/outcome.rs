//! Values as a script gets them: a value that is too large is a handle.

use std::sync::Arc;

use larder_oauth::Owner;
use larder_protocol::Fault;
use larder_query::{ScriptHandle, ScriptOutcome};
use larder_records::words::number;
use larder_runtime::compute::Compute;
use larder_store::store::{Content, Details, Entry, Kind, StoreError};
use serde_json::{Value, value::RawValue};

use crate::handler::{Context, ToolError};

/// An error of a call, which the script can catch.
pub(super) struct CallError {
    message: String,
    value: Option<Box<RawValue>>,
}

impl CallError {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), value: None }
    }

    /// The error of a tool that was called, with its value as JSON.
    pub(super) fn of_tool(message: &str, json: &str) -> Self {
        Self { message: message.to_owned(), value: raw(json.to_owned()) }
    }
}

impl From<ToolError> for CallError {
    fn from(error: ToolError) -> Self {
        Self::new(error.to_string())
    }
}

impl From<Fault> for CallError {
    fn from(fault: Fault) -> Self {
        Self::new(fault.to_string())
    }
}

impl From<StoreError> for CallError {
    fn from(error: StoreError) -> Self {
        Self::new(error.to_string())
    }
}

/// The outcome for a script.
pub(super) fn outcome(result: Result<ScriptOutcome, CallError>) -> ScriptOutcome {
    result
        .unwrap_or_else(|error| ScriptOutcome::Error { message: error.message, value: error.value })
}

/// The JSON as it goes to a script.
///
/// # Errors
/// The text is not JSON.
pub(super) fn value(json: String) -> Result<ScriptOutcome, CallError> {
    let value = raw(json).ok_or_else(|| CallError::new("The value is not JSON."))?;
    Ok(ScriptOutcome::Value(value))
}

fn raw(json: String) -> Option<Box<RawValue>> {
    RawValue::from_string(json).ok()
}

/// A resource as a script sees it.
pub(super) fn handle(entry: &Entry) -> ScriptHandle {
    ScriptHandle {
        uri: entry.uri.as_str().to_owned(),
        mime_type: entry.mime_type.clone(),
        size: entry.size,
        line_count: (entry.kind == Kind::Text).then_some(entry.lines),
    }
}

/// The value itself if it has at most `budget` bytes, otherwise a handle of the stored value.
///
/// # Errors
/// The value cannot be stored.
pub(super) async fn value_or_handle(
    ctx: &Context<()>,
    name: &str,
    json: String,
    may_be_stored: bool,
) -> Result<ScriptOutcome, CallError> {
    let budget = ctx.output_bytes();
    if json.len() <= budget {
        return value(json);
    }
    if !may_be_stored {
        return Err(CallError::new(format!(
            "{name} was executed. Its result has {} bytes, more than the {} that a value may have here, and is never stored (tools.spill, upstreams.spill): ask it for less.",
            number(json.len() as u64),
            number(budget as u64)
        )));
    }

    let details = Details {
        name: Some(format!("Result of {name}")),
        session: ctx.scope().session.clone(),
        ..Details::default()
    };
    let entry = store(ctx, ctx.mint_uri(), &json, details).await.map_err(|error| {
        CallError::new(format!("{name} was executed, and its result cannot be stored: {error}"))
    })?;
    Ok(ScriptOutcome::Handle(handle(&entry)))
}

/// Stores a value: a text as it is, everything else as JSON.
///
/// # Errors
/// The store's error.
pub(super) async fn store(
    ctx: &Context<()>,
    uri: String,
    json: &str,
    details: Details,
) -> Result<Arc<Entry>, StoreError> {
    let content = content(ctx.identity().owner(), json.to_owned()).await?;
    ctx.create_resource(uri, content).details(details).await
}

async fn content(caller: &Owner, json: String) -> Result<Content, StoreError> {
    let bytes = json.len();
    let cutting =
        Compute::run(caller.as_str(), bytes, move || match serde_json::from_str::<Value>(&json) {
            Ok(Value::String(text)) => Content::from(text),
            _ => Content::json(json.as_bytes()),
        });
    Ok(cutting.done().await?)
}
