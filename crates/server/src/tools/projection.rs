//! The answer in one call: the part of a tool's result that the caller wants, computed from the
//! stored whole as `query_resource`, `search_resource` and `read_resource` compute.

use std::sync::Arc;

use async_trait::async_trait;
use larder_query::{Engine, Queries};
use larder_records::{Container, Layout, essence, words::count};
use larder_store::store::Entry;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject};
use serde_json::{Value, json};

use super::{
    projection_each::{Target, call_each, check_inputs},
    projection_pages::call_pages,
    query, read, search,
};
use crate::{
    handler::{Context, IntoToolResult, Scope, ToolError},
    registry::{
        Form, InputReferences, Paging, Projection, Projector, QUERYING_TOOL, READING_TOOL,
        RESERVED, Registry, SEARCHING_TOOL, Spill, not_called,
    },
    spill::{
        Spiller, Whole, structured_resource,
        tool_calls::{call, jq_root, type_and_size},
    },
};

/// The filter that gives members of records, after the definitions of `$names` and `root`.
const FIELDS: &str = include_str!("fields.jq");

/// The items of the longest list in a value that has no index, or the value itself.
pub(super) const LARGEST_LIST: &str = r"[., .[]? | objects | .[] | arrays] as $lists
    | if ($lists | length) > 0 then $lists | max_by(length) | .[] else . end";

/// Computes projections in the processes of queries.
pub(super) struct Projecting {
    pub(super) queries: Arc<Queries>,
    /// Whether answers can be stored.
    pub(super) may_store: bool,
}

#[async_trait]
impl Projector for Projecting {
    async fn check(
        &self,
        tool: &str,
        projection: &Projection,
        scope: &Arc<Scope>,
    ) -> Result<(), String> {
        let registry = Registry::from_scope(scope);
        let repeats = projection.each.is_some() || projection.pages.is_some();
        let stores = repeats || projection.form != Form::Whole;
        if stores && registry.spill_of(tool) == Some(Spill::Never) {
            return Err(format!(
                "_larder: results of {tool} are never stored (tools.spill, upstreams.spill): leave it out"
            ));
        }

        let needed = match projection.form {
            Form::Whole => return Ok(()),
            Form::Search(_) => SEARCHING_TOOL,
            Form::Head(_) => READING_TOOL,
            Form::Jq(_) | Form::Sql(_) | Form::Fields(_) => QUERYING_TOOL,
        };
        if !registry.offers(scope.identity.grant(), needed) {
            return Err(format!(
                "_larder: it needs the scopes of {needed} (auth.scopes), which your token lacks: leave it out."
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
        references: InputReferences,
        scope: &Arc<Scope>,
    ) -> CallToolResult {
        // A reference in place of all arguments gives what content says.
        if arguments.contains_key(RESERVED) {
            let problem = format!("the content of a reference has {RESERVED}.");
            return not_called(tool, &problem);
        }

        let ctx = context(scope);
        let repeated = match projection.pages {
            Some(max) => repeated_pages(&ctx, tool, arguments, &paging, max).await,
            None => {
                let inputs = match self.inputs(projection, &ctx).await {
                    Ok(inputs) => inputs,
                    Err(problem) => return not_called(tool, &format!("_larder: {problem}")),
                };
                if let Err(problem) = check_inputs(&inputs) {
                    return not_called(tool, &format!("_larder: {problem}."));
                }
                // In the records of a resource, a reference is content.
                let are_given = projection.each.as_ref().is_some_and(Value::is_array);
                let references = if are_given { references } else { InputReferences::Content };
                repeated_calls(&ctx, Target { tool, common: &arguments, references }, inputs).await
            }
        };
        let repeated = match repeated {
            Ok(repeated) => repeated,
            Err(error) => {
                return ToolError::new(format!(
                    "{tool} was executed, and its results could not be stored: {error}. Do not call it again for results that you have had."
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
            Err(error) => failed(tool, &error, &repeated.entry, scope),
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

        // If the operator's projection does not fit it, a short result is sent as it is.
        let registry = Registry::from_scope(scope);
        let output_bytes = registry.output_bytes(&scope.client);
        let is_short = projection.is_default && is_within(&result, output_bytes);
        let original = is_short.then(|| result.clone());

        let whole = match spiller.store_whole(tool, result).await {
            Ok(whole) => whole,
            Err(unstored) if projection.is_default => return unstored,
            Err(unstored) => return not_applied(unstored, "the result could not be stored"),
        };
        let Some(main) = whole.main() else {
            return not_applied(whole.into_preview(), "the result has no text");
        };

        let answer = self.answer(projection, main, &context(scope)).await;
        match answer {
            Ok(answer) => composed(tool, answer, whole),
            Err(error) if projection.is_default => {
                // A long text that was stored while it arrived has a placeholder there.
                let is_sent = main.size <= output_bytes as u64
                    && registry.spill_of(tool) != Some(Spill::Always);
                without_default(&error, original.filter(|_| is_sent), whole)
            }
            Err(error) => failed(tool, &error, main, scope),
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
    target: Target<'_>,
    inputs: Vec<JsonObject>,
) -> Result<Repeated, ToolError> {
    let table = call_each(ctx, target, inputs).await?;
    let summary = table.summary(target.tool);
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
    /// A sentence about the place of the table.
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
        self.result(vec![ContentBlock::text(text)], &Value::Null, is_structured)
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
        self.result(content, &value, is_structured)
    }

    fn result(
        &self,
        content: Vec<ContentBlock>,
        value: &Value,
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
fn spilled(note: &str, entry: &Entry, value: &Value) -> Value {
    json!({ "spilled": {
        "note": note,
        "complete": false,
        "resources": [structured_resource(entry)],
        "value": value,
    } })
}

impl Projecting {
    /// The answer from the stored result.
    async fn answer(
        &self,
        projection: &Projection,
        entry: &Entry,
        ctx: &Context<()>,
    ) -> Result<CallToolResult, ToolError> {
        let uri = entry.uri.as_str();
        let is_document = is_document(entry);

        let mut asked = match &projection.form {
            Form::Whole => json!({}),
            Form::Jq(filter) => json!({ "from": uri, "jq": filter }),
            Form::Sql(statement) => json!({ "from": uri, "sql": statement }),
            Form::Fields(names) => {
                let filter = fields(names, &records_filter(entry));
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

/// Whether the content is one value.
fn is_document(entry: &Entry) -> bool {
    entry.records.as_ref().is_none_or(|records| records.layout() == Layout::Json)
}

/// The filter that gives the records one by one.
fn records_filter(entry: &Entry) -> String {
    match &entry.records {
        Some(index) => jq_root(index),
        None => LARGEST_LIST.to_owned(),
    }
}

/// Whether the content is a list, of which `head` gives the first records.
fn has_records(entry: &Entry) -> bool {
    let essence = essence(&entry.mime_type);
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
            let parts = count(others as u64, "other part");
            format!("; without {parts}: {}", whole.other_uris().join(", "))
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

    let structured =
        whole.is_structured().then(|| spilled(&note, main, &value.unwrap_or_default()));

    let (unstored, meta) = whole.into_unstored();
    content.extend(unstored);
    let mut result = CallToolResult::success(content);
    result.structured_content = structured;
    result.meta = meta;
    result
}

/// The error of a projection after the tool has run.
fn failed(tool: &str, error: &ToolError, main: &Entry, scope: &Scope) -> CallToolResult {
    let reach = Registry::from_scope(scope).reach(scope, READING_TOOL);
    let arguments = json!({ "uri": main.uri });
    let next = reach.call(READING_TOOL, &arguments);
    let next = next.unwrap_or_else(|| call("resources/read", &arguments));
    let text = format!(
        "{tool} was executed; only _larder failed: {error}\nDo not call it again for that. Its whole result ({}) is stored until {}:\n{}\nNext: {next}, or {QUERYING_TOOL}, {SEARCHING_TOOL}.",
        type_and_size(main),
        main.expires,
        main.uri
    );
    ToolError::new(text).into_tool_result()
}

/// The result without the operator's projection, which did not fit it.
fn without_default(
    error: &ToolError,
    original: Option<CallToolResult>,
    whole: Whole,
) -> CallToolResult {
    tracing::warn!(%error, "a configured projection does not fit a result (upstreams.project)");
    let mut result = original.unwrap_or_else(|| whole.into_preview());
    let note = format!("(The server's projection of this result failed: {error})");
    result.content.push(ContentBlock::text(note));
    result
}

/// A result of which the part that the caller wanted could not be computed.
fn not_applied(mut result: CallToolResult, reason: &str) -> CallToolResult {
    let note = format!("_larder was not applied: {reason}.");
    result.content.push(ContentBlock::text(note));
    result
}

/// Whether a result takes at most this number of bytes.
fn is_within(result: &CallToolResult, max: usize) -> bool {
    let texts = result.content.iter().map(|block| match block {
        ContentBlock::Text(text) => text.text.len(),
        other => serde_json::to_vec(other).map_or(usize::MAX, |json| json.len()),
    });
    let structured = result.structured_content.as_ref();
    let value = structured.map_or(0, |value| value.to_string().len());
    texts.fold(value, usize::saturating_add) <= max
}
