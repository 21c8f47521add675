//! The answer in one call: the part of a tool's result that the caller wants, computed from the
//! stored whole as `query_resource`, `search_resource` and `read_resource` compute.

use std::sync::Arc;

use async_trait::async_trait;
use larder_query::{Engine, Queries};
use larder_records::{Container, Layout, words::count};
use larder_store::store::{Entry, Kind};
use rmcp::model::{CallToolResult, ContentBlock, JsonObject};
use serde_json::{Value, json};

use super::{
    projection_each::{MAX_CALLS, call_each},
    projection_pages::call_pages,
    query, read, search,
};
use crate::{
    handler::{Context, IntoToolResult, Scope, ToolError},
    registry::{Form, Paging, Projection, Projector, READING_TOOL, Registry, not_called},
    spill::{
        Spiller, Whole,
        tool_calls::{call, jq_root, type_and_size},
    },
};

/// The tools whose scopes a projection needs.
const QUERYING_TOOL: &str = "query_resource";
const SEARCHING_TOOL: &str = "search_resource";
/// The filter that gives members of records, after the definitions of `$names` and `root`.
const FIELDS: &str = include_str!("fields.jq");

/// The items of the longest list in a value that has no index, or the value itself.
const LARGEST_LIST: &str = r"[., .[]? | objects | .[] | arrays] as $lists
    | if ($lists | length) > 0 then $lists | max_by(length) | .[] else . end";

/// Computes projections in the processes of queries.
pub(super) struct Projecting {
    pub(super) queries: Arc<Queries>,
    /// Whether answers can be stored.
    pub(super) may_store: bool,
}

#[async_trait]
impl Projector for Projecting {
    async fn check(&self, projection: &Projection, scope: &Arc<Scope>) -> Result<(), String> {
        let tool = match projection.form {
            Form::Whole => return Ok(()),
            Form::Search(_) => SEARCHING_TOOL,
            Form::Head(_) => READING_TOOL,
            Form::Jq(_) | Form::Sql(_) | Form::Fields(_) => QUERYING_TOOL,
        };
        let registry = Registry::from_scope(scope);
        if !registry.offers(scope.identity.grant(), tool) {
            return Err(format!(
                "_larder: it needs the scopes of {tool} (auth.scopes), which your token lacks: leave it out."
            ));
        }

        let ctx = context(scope);
        if projection.into.is_some() {
            query::check_may_store(&ctx, self.may_store).map_err(|error| error.to_string())?;
        }

        let owner = scope.identity.owner();
        let checked = match &projection.form {
            Form::Jq(filter) => {
                self.queries.check(owner, Engine::Jq { slurp: false }, filter).await
            }
            Form::Sql(statement) => self.queries.check(owner, Engine::Sql, statement).await,
            Form::Search(pattern) => return search::check_pattern(owner, pattern).await,
            Form::Whole | Form::Fields(_) | Form::Head(_) => Ok(()),
        };
        checked.map_err(|error| format!("_larder: {error}"))
    }

    async fn fan_out(
        &self,
        tool: &str,
        arguments: JsonObject,
        projection: &Projection,
        paging: Paging,
        scope: &Arc<Scope>,
    ) -> CallToolResult {
        let ctx = context(scope);
        let repeated = match projection.pages {
            Some(max) => repeated_pages(&ctx, tool, arguments, &paging, max).await,
            None => {
                let inputs = match self.inputs(projection, &ctx).await {
                    Ok(inputs) => inputs,
                    Err(problem) => return not_called(tool, &format!("_larder: {problem}")),
                };
                repeated_calls(&ctx, tool, &arguments, inputs).await
            }
        };
        let repeated = match repeated {
            Ok(repeated) => repeated,
            Err(error) => {
                return ToolError::new(format!(
                    "{tool} was executed, and its results could not be stored: {error}"
                ))
                .into_tool_result();
            }
        };

        let is_structured = Registry::from_scope(scope).has_output_schema(tool);
        if projection.form == Form::Whole {
            return repeated.alone(is_structured);
        }
        match self.answer(projection, &repeated.entry, &ctx).await {
            Ok(answer) => repeated.with(answer, is_structured),
            Err(error) => failed(tool, &error, &repeated.entry),
        }
    }

    async fn project(
        &self,
        tool: &str,
        projection: &Projection,
        result: CallToolResult,
        scope: &Arc<Scope>,
    ) -> CallToolResult {
        let spiller = Spiller::new(scope);
        if projection.form == Form::Whole || result.is_error == Some(true) {
            return spiller.bounded(tool, result).await;
        }

        let whole = match spiller.store_whole(tool, result).await {
            Ok(whole) => whole,
            Err(unstored) => return unstored,
        };
        let Some(main) = whole.main() else { return whole.into_preview() };

        let answer = self.answer(projection, main, &context(scope)).await;
        match answer {
            Ok(answer) => composed(tool, answer, whole),
            Err(error) if projection.is_default => without_default(&error, whole),
            Err(error) => failed(tool, &error, main),
        }
    }
}

/// The stored table of several calls.
struct Repeated {
    entry: Arc<Entry>,
    /// How many calls there were, and how they ended.
    summary: String,
    /// The columns of the table.
    columns: &'static str,
    /// Whether a part is missing.
    is_broken: bool,
}

async fn repeated_calls(
    ctx: &Context<()>,
    tool: &str,
    arguments: &JsonObject,
    inputs: Vec<Value>,
) -> Result<Repeated, ToolError> {
    let table = call_each(ctx, tool, arguments, inputs).await?;
    let summary = table.summary(tool);
    let columns = "Their table t (input, ok, value; ";
    Ok(Repeated { entry: table.entry, summary, columns, is_broken: false })
}

async fn repeated_pages(
    ctx: &Context<()>,
    tool: &str,
    arguments: JsonObject,
    paging: &Paging,
    max: u64,
) -> Result<Repeated, ToolError> {
    let pages = call_pages(ctx, tool, arguments, paging, max).await?;
    let summary = pages.summary(tool);
    let is_broken = pages.is_broken();
    Ok(Repeated { entry: pages.entry, summary, columns: "Their records (", is_broken })
}

impl Repeated {
    /// Where the table is.
    fn stored(&self) -> String {
        format!(
            "{}{}) are stored until {}:\n{}",
            self.columns,
            type_and_size(&self.entry),
            self.entry.expires,
            self.entry.uri
        )
    }

    /// The answer without a projection.
    fn alone(&self, is_structured: bool) -> CallToolResult {
        let query = json!({ "from": self.entry.uri, "sql": "SELECT count(*) FROM t" });
        let next = call(QUERYING_TOOL, &query);
        let text = format!("{}.\n{}\nNext: {next}", self.summary, self.stored());
        self.result(vec![ContentBlock::text(text)], Value::Null, is_structured)
    }

    /// The answer that was computed from the table.
    fn with(&self, answer: CallToolResult, is_structured: bool) -> CallToolResult {
        let value = answer.structured_content.unwrap_or_default();
        let mut blocks = answer.content.into_iter();
        let text = blocks.next().and_then(|block| block.as_text().map(|text| text.text.clone()));
        let text = text.unwrap_or_default();
        let (head, body) = text.split_once("\n\n").unwrap_or((text.as_str(), ""));

        let text = format!("{}.\n{head}\n{}\n\n{body}", self.summary, self.stored());
        let content = [ContentBlock::text(text)].into_iter().chain(blocks).collect();
        self.result(content, value, is_structured)
    }

    fn result(
        &self,
        content: Vec<ContentBlock>,
        value: Value,
        is_structured: bool,
    ) -> CallToolResult {
        let mut result = CallToolResult::success(content);
        // The schema does not apply to errors.
        if self.is_broken {
            result.is_error = Some(true);
        } else if is_structured {
            result.structured_content = Some(spilled(&self.summary, &self.entry, value));
        }
        result
    }
}

/// The structured form of an answer from a stored resource.
fn spilled(note: &str, entry: &Entry, value: Value) -> Value {
    json!({ "spilled": {
        "note": note,
        "complete": false,
        "resources": [resource(entry)],
        "value": value,
    } })
}

impl Projecting {
    /// The arguments of several calls: those that are given, or the records of a resource.
    async fn inputs(
        &self,
        projection: &Projection,
        ctx: &Context<()>,
    ) -> Result<Vec<Value>, String> {
        let too_many = || format!("each has more than {MAX_CALLS} arguments");
        let uri = match &projection.each {
            Some(Value::Array(inputs)) if inputs.len() > MAX_CALLS => return Err(too_many()),
            Some(Value::Array(inputs)) => return Ok(inputs.clone()),
            Some(Value::String(uri)) => {
                uri.trim().trim_start_matches("{{").trim_end_matches("}}").trim()
            }
            _ => return Err("each is a list of arguments, or the URI of records".to_owned()),
        };

        let limit = MAX_CALLS + 1;
        let records = json!({ "from": uri, "sql": "SELECT * FROM t", "limit": limit });
        let found = query::of_result(ctx, records, &self.queries, false).await;
        let found = found.map_err(|error| format!("each: {error}"))?.structured_content;
        let found = found.unwrap_or_default();
        if found["total"].as_u64().is_some_and(|total| total > MAX_CALLS as u64) {
            return Err(too_many());
        }

        let rows = found["rows"].as_array().map(Vec::as_slice).unwrap_or_default();
        if found["complete"] != true || rows.is_empty() {
            return Err(format!(
                "each: the records of {uri} are none, or too large: store the columns that are arguments by query_resource and \"into\" first"
            ));
        }

        let names: Vec<_> = found["columns"].as_array().into_iter().flatten().collect();
        let object = |row: &Value| {
            let values = row.as_array().into_iter().flatten();
            let members = names.iter().zip(values).filter(|(_, value)| !value.is_null());
            let named = members.map(|(column, value)| {
                (column["name"].as_str().unwrap_or_default().to_owned(), value.clone())
            });
            Value::Object(named.collect())
        };
        Ok(rows.iter().map(object).collect())
    }

    /// The answer from the stored result.
    async fn answer(
        &self,
        projection: &Projection,
        entry: &Entry,
        ctx: &Context<()>,
    ) -> Result<CallToolResult, ToolError> {
        let uri = entry.uri.as_str();
        let is_document =
            entry.records.as_ref().is_none_or(|records| records.layout() == Layout::Json);

        let mut asked = match &projection.form {
            Form::Whole => json!({}),
            Form::Jq(filter) => json!({ "from": uri, "jq": filter }),
            Form::Sql(statement) => json!({ "from": uri, "sql": statement }),
            Form::Fields(names) => {
                let root = match &entry.records {
                    Some(index) if is_document => jq_root(index),
                    Some(_) => ".".to_owned(),
                    None => LARGEST_LIST.to_owned(),
                };
                let filter = fields(names, &root);
                json!({ "from": uri, "jq": filter, "slurp": !is_document })
            }
            Form::Search(pattern) => return search::of_result(ctx, uri, pattern).await,
            Form::Head(records) => {
                return read::head_of(ctx, uri, has_records(entry), *records).await;
            }
        };

        if let Some(into) = &projection.into {
            asked["into"] = into.clone();
        }
        query::of_result(ctx, asked, &self.queries, self.may_store).await
    }
}

fn context(scope: &Arc<Scope>) -> Context<()> {
    Context::new(Arc::clone(scope), Arc::new(()))
}

/// Whether the content is a list, of which `head` gives the first records.
fn has_records(entry: &Entry) -> bool {
    let essence = entry.mime_type.split(';').next().unwrap_or_default().trim();
    match &entry.records {
        // Short content has no index.
        None => essence.ends_with("json") || essence == "text/csv",
        Some(index) => {
            index.layout() != Layout::Log
                && (index.layout() != Layout::Json || index.container() == Container::List)
        }
    }
}

/// The filter for members of the records, or of the value itself if it has them.
fn fields(names: &[String], root: &str) -> String {
    let names = json!(names);
    format!("{names} as $names | def root: {root};\n{FIELDS}")
}

/// The answer, the size of the whole and its URI, which ends its line.
fn composed(tool: &str, answer: CallToolResult, whole: Whole) -> CallToolResult {
    let Some(main) = whole.main() else { return whole.into_preview() };
    let value = answer.structured_content;
    let mut blocks = answer.content.into_iter();
    let text = blocks.next().and_then(|block| block.as_text().map(|text| text.text.clone()));
    let text = text.unwrap_or_default();
    let (head, body) = text.split_once("\n\n").unwrap_or((text.as_str(), ""));

    let others = match whole.others() {
        0 => String::new(),
        others => {
            format!("; without {}, which list_resources names", count(others as u64, "other part"))
        }
    };
    let stored = format!(
        "The whole result of {tool} ({}{others}) is stored until {}:\n{}",
        type_and_size(main),
        main.expires,
        main.uri
    );

    let warning = whole.warning().map_or_else(String::new, |warning| format!("\n{warning}"));
    let note = format!("{head}{warning}\n{stored}");
    let mut content = vec![ContentBlock::text(format!("{note}\n\n{body}"))];
    content.extend(blocks);

    let structured = whole.is_structured().then(|| spilled(&note, main, value.unwrap_or_default()));

    let (unstored, meta) = whole.into_unstored();
    content.extend(unstored);
    let mut result = CallToolResult::success(content);
    result.structured_content = structured;
    result.meta = meta;
    result
}

/// The resource in structured content.
fn resource(entry: &Entry) -> Value {
    let mut resource = json!({
        "uri": entry.uri,
        "mime_type": entry.mime_type,
        "size": entry.size,
        "expires": entry.expires.to_string(),
        "next": [],
    });
    if entry.kind == Kind::Text {
        resource["lines"] = json!(entry.lines);
    }
    resource
}

/// The error of a projection after the tool has run.
fn failed(tool: &str, error: &ToolError, main: &Entry) -> CallToolResult {
    let next = match (&main.kind, main.records.is_some()) {
        (Kind::Text, true) => call("describe_resource", &json!({ "uri": main.uri })),
        _ => call(READING_TOOL, &json!({ "uri": main.uri })),
    };
    let text = format!(
        "{tool} was executed; only _larder failed: {error}\nDo not call it again for that. Its whole result ({}) is stored until {}:\n{}\nNext: {next}, or query_resource, search_resource.",
        type_and_size(main),
        main.expires,
        main.uri
    );
    ToolError::new(text).into_tool_result()
}

/// The result without the operator's projection, which did not fit it.
fn without_default(error: &ToolError, whole: Whole) -> CallToolResult {
    tracing::warn!(%error, "a configured projection does not fit a result (upstreams.project)");
    let mut result = whole.into_preview();
    let note = format!("(The server's projection of this result failed: {error})");
    result.content.push(ContentBlock::text(note));
    result
}
