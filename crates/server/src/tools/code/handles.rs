//! The operations on stored resources, which bound what enters the sandbox.

use std::collections::BTreeMap;

use larder_query::{HandleOperation, PartRange, ScriptInput, ScriptOutcome};
use larder_records::{Layout, words::number};
use larder_store::store::{Kind, StoredResource, WindowEnd};
use serde_json::{Value, json, value::RawValue};

use super::{
    ValuePlace,
    outcome::{CallError, handle, value},
    run::Run,
};
use crate::{
    handler::{Context, ToolError},
    registry::{QUERYING_TOOL, READING_TOOL, Registry, SEARCHING_TOOL},
};

/// The most rows that one operation asks for.
const MAX_ROWS: u64 = 10_000;

/// The resources that a run is given, as the caller finds them.
///
/// # Errors
/// There is no such resource.
pub(super) async fn inputs(
    ctx: &Context<()>,
    uris: BTreeMap<String, String>,
) -> Result<Vec<ScriptInput>, ToolError> {
    let mut inputs = Vec::with_capacity(uris.len());
    for (name, uri) in uris {
        let handle = handle(&found(ctx, &uri).await?.entry);
        inputs.push(ScriptInput { name, handle });
    }
    Ok(inputs)
}

/// The resource under a URI, as a request of the caller finds it.
///
/// # Errors
/// The caller may not read it, or there is none.
pub(super) async fn found(ctx: &Context<()>, uri: &str) -> Result<StoredResource, ToolError> {
    let registry = Registry::from_scope(ctx.scope());
    registry
        .check_tool_scopes(ctx.identity(), READING_TOOL)
        .map_err(|fault| ToolError::permanent(fault.to_string()))?;

    let found = ctx.read_step(uri).await.map_err(|fault| ToolError::new(fault.to_string()))?;
    let first = found.into_iter().next();
    first.ok_or_else(|| ToolError::new(format!("{uri} is empty.")))
}

/// The whole text of a resource. `None` if it has more than `max_bytes`.
///
/// # Errors
/// The resource is not text, or cannot be read.
pub(super) async fn whole_text(
    ctx: &Context<()>,
    found: StoredResource,
    max_bytes: u64,
) -> Result<Option<String>, ToolError> {
    if found.entry.size > max_bytes {
        return Ok(None);
    }

    let (text, _slot) = found.into_text(ctx.identity().owner()).await?;
    if text.entry.kind == Kind::Binary {
        return Err(ToolError::new(format!("{} is not text.", text.entry.uri)));
    }
    let limit = usize::try_from(text.entry.size).unwrap_or(usize::MAX);
    let window = text.bytes_from(0, limit).await?;
    Ok(Some(String::from_utf8_lossy(&window.bytes).into_owned()))
}

impl Run<'_> {
    /// Runs an operation of a handle.
    ///
    /// # Errors
    /// The reason why the operation has no answer.
    pub(super) async fn operate(
        &self,
        operation: HandleOperation,
    ) -> Result<ScriptOutcome, CallError> {
        match operation {
            HandleOperation::Open { uri } => {
                Ok(ScriptOutcome::Handle(handle(&found(self.ctx(), &uri).await?.entry)))
            }
            HandleOperation::Value { uri } => self.whole_value(&uri).await,
            HandleOperation::Text { uri, range } => self.text(&uri, range).await,
            HandleOperation::Lines { uri, range } => self.lines(&uri, range).await,
            HandleOperation::Records { uri, range } => self.records(&uri, range).await,
            HandleOperation::Jq { uri, filter } => {
                self.query(json!({ "from": uri, "jq": filter })).await
            }
            HandleOperation::Sql { from, statement } => {
                self.query(json!({ "from": from, "sql": statement })).await
            }
            HandleOperation::Search { uri, pattern } => self.search(&uri, &pattern).await,
            HandleOperation::Store { value, uri, name, ttl } => {
                let ctx = self.ctx();
                super::super::query::check_may_store(ctx, self.coding().may_store)?;
                let entry = ValuePlace { uri, name, ttl }.store(ctx, value.get()).await?;
                Ok(ScriptOutcome::Handle(handle(&entry)))
            }
        }
    }

    async fn whole_value(&self, uri: &str) -> Result<ScriptOutcome, CallError> {
        let ctx = self.ctx();
        let found = found(ctx, uri).await?;
        let size = found.entry.size;
        let is_json = found.entry.mime_type.contains("json");
        let text = whole_text(ctx, found, ctx.output_bytes() as u64).await?;
        let text = text.ok_or_else(|| self.too_large(uri, size))?;

        if is_json && let Ok(json) = serde_json::from_str::<Box<RawValue>>(&text) {
            return Ok(ScriptOutcome::Value(json));
        }
        value(Value::from(text).to_string())
    }

    async fn text(&self, uri: &str, range: PartRange) -> Result<ScriptOutcome, CallError> {
        let (text, _slot) =
            found(self.ctx(), uri).await?.into_text(self.ctx().identity().owner()).await?;
        if text.entry.kind == Kind::Binary {
            return Err(CallError::new(format!("{uri} is not text.")));
        }

        let left = text.entry.size.saturating_sub(range.offset);
        let wanted = range.limit.unwrap_or(left).min(left);
        if wanted > self.ctx().output_bytes() as u64 {
            return Err(self.too_large(uri, wanted));
        }
        let limit = usize::try_from(wanted).unwrap_or(usize::MAX);
        let window = text.bytes_from(range.offset, limit).await?;
        value(Value::from(String::from_utf8_lossy(&window.bytes)).to_string())
    }

    async fn lines(&self, uri: &str, range: PartRange) -> Result<ScriptOutcome, CallError> {
        let (text, _slot) =
            found(self.ctx(), uri).await?.into_text(self.ctx().identity().owner()).await?;
        let left = text.entry.lines.saturating_sub(range.offset);
        let wanted = range.limit.unwrap_or(left).min(left);
        if wanted == 0 {
            return value("[]".to_owned());
        }

        let window = text.lines(range.offset, wanted, self.ctx().output_bytes()).await?;
        let is_whole = !matches!(window.end, WindowEnd::Byte(_));
        if !is_whole || window.lines.end - window.lines.start < wanted {
            return Err(self.too_large(uri, text.entry.size));
        }
        let text = String::from_utf8_lossy(&window.bytes);
        value(json!(text.lines().collect::<Vec<_>>()).to_string())
    }

    async fn records(&self, uri: &str, range: PartRange) -> Result<ScriptOutcome, CallError> {
        let ctx = self.ctx();
        let owner = ctx.identity().owner();
        let found = found(ctx, uri).await?;
        let (text, _slot) = found.into_text(owner).await?;
        if matches!(text.layout().await?, Some(Layout::Rows { .. })) {
            let limit = range.limit.unwrap_or(MAX_ROWS);
            let statement = format!("SELECT * FROM t LIMIT {limit} OFFSET {}", range.offset);
            return self.query(json!({ "from": uri, "sql": statement })).await;
        }

        let size = text.entry.size;
        let view = text.record_view(owner).await?;
        let records = view.map_or(text, |view| view.records);
        let none =
            |error: larder_store::store::RecordsError| CallError::new(format!("{uri}: {error}."));
        let index = records.record_index(owner, None).await.map_err(none)?;

        let left = index.total().saturating_sub(range.offset);
        let wanted = range.limit.unwrap_or(left).min(left);
        let budget = ctx.output_bytes();
        let window = records.records(owner, &index, range.offset, wanted, budget).await;
        let window = window.map_err(none)?;
        if window.too_long.is_some() || window.records.end - window.records.start < wanted {
            return Err(self.too_large(uri, size));
        }

        let text = String::from_utf8_lossy(&window.text);
        let lines = text.lines().filter(|line| !line.trim().is_empty()).collect::<Vec<_>>();
        value(format!("[{}]", lines.join(",")))
    }

    /// The answer to a query: values of jq, or rows of SQL as objects. An answer that is too large
    /// is stored.
    async fn query(&self, mut arguments: Value) -> Result<ScriptOutcome, CallError> {
        let is_jq = arguments.get("jq").is_some();
        arguments["limit"] = json!(MAX_ROWS);
        let answer = self.structured(QUERYING_TOOL, arguments.clone()).await?;

        if answer["complete"] == true && answer["cut"] != true {
            let empty = Vec::new();
            let rows = answer["rows"].as_array().unwrap_or(&empty);
            let values: Vec<Value> = if is_jq {
                rows.iter().map(|row| row[0].clone()).collect()
            } else {
                rows.iter().map(|row| object(&answer["columns"], row)).collect()
            };
            return value(Value::from(values).to_string());
        }

        arguments["limit"] = json!(1);
        arguments["into"] = json!({ "format": "ndjson" });
        let answer = self.structured(QUERYING_TOOL, arguments).await?;
        let uri = answer["stored"].as_str().unwrap_or_default();
        Ok(ScriptOutcome::Handle(handle(&found(self.ctx(), uri).await?.entry)))
    }

    async fn search(&self, uri: &str, pattern: &str) -> Result<ScriptOutcome, CallError> {
        let arguments = json!({ "uri": uri, "query": pattern });
        let answer = self.structured(SEARCHING_TOOL, arguments).await?;
        value(answer.to_string())
    }

    /// The structured content of a tool over the store.
    async fn structured(&self, tool: &str, arguments: Value) -> Result<Value, CallError> {
        let result = self.ctx().call_tool(tool, arguments).await?;
        if result.is_error == Some(true) {
            let text = result.content.first().and_then(|block| block.as_text());
            return Err(CallError::new(text.map_or("", |text| text.text.as_str())));
        }
        Ok(result.structured_content.unwrap_or_default())
    }

    fn too_large(&self, uri: &str, bytes: u64) -> CallError {
        CallError::new(format!(
            "{uri}: {} bytes are more than the {} that a value may have here: give a range as {{offset, limit}}, or use .jq, .sql or .search.",
            number(bytes),
            number(self.ctx().output_bytes() as u64)
        ))
    }
}

/// A row as an object.
fn object(columns: &Value, row: &Value) -> Value {
    let columns = columns.as_array().into_iter().flatten();
    let values = row.as_array().into_iter().flatten();
    let name = |column: &Value| column["name"].as_str().unwrap_or_default().to_owned();
    columns.zip(values).map(|(column, value)| (name(column), value.clone())).collect()
}
