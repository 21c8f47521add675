//! `query_resource`

mod answer;
mod form;
mod from;
mod sources;
mod store;

use std::sync::Arc;

use larder_query::{Engine, Queries, QueryError, Question};
use rmcp::model::CallToolResult;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::{answer::Stored, from::From};
use super::ToolOptions;
use crate::{
    handler::{Context, Structured, ToolError},
    registry::{Registry, Tool},
};

const DEFAULT_LIMIT: u64 = 100;
/// The tool whose scopes `into` needs.
const CREATING_TOOL: &str = "create_resource";
/// Reserved for the text before the rows.
const HEAD_BYTES: usize = 1_600;

/// Computes from stored JSON, NDJSON, CSV, logs, HTML and workbooks by jq, or by sql: one SELECT of
/// SQLite over table t. Nested JSON is text there: col ->> '$.a'; a log has line_no and line. Also
/// median(x), percentile(x, 95), stddev(x), x REGEXP 'a+', number('$1,234'), strptime(x,
/// '%d/%m/%Y').
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct QueryResource {
    /// URI; for sql also {"orders": URI, "users": {"uri": URI, "format": "csv"}}.
    #[schemars(extend("x-larder-listed" = { "type": "string" }))]
    from: From,
    /// SELECT level, count(*) FROM t GROUP BY level
    #[serde(default)]
    sql: Option<String>,
    /// .items[] | .name
    #[serde(default)]
    jq: Option<String>,
    /// Detected.
    #[serde(default)]
    format: Format,
    /// JSON Pointer to rows.
    #[serde(default)]
    rows: Option<String>,
    /// For a log: (?P<level>ERROR|WARN) (?P<text>.*)
    #[serde(default)]
    pattern: Option<String>,
    /// For jq: one list.
    #[serde(default)]
    slurp: bool,
    /// Default: 100.
    #[serde(default)]
    #[schemars(range(min = 1, max = 10000))]
    limit: Option<u64>,
    /// To skip.
    #[serde(default)]
    offset: u64,
    /// Stores it: {uri?, name?, ttl?, format?}.
    #[serde(default)]
    #[schemars(extend("x-larder-listed" = { "type": "object" }))]
    into: Option<store::Into>,
    /// An earlier one.
    #[serde(default)]
    #[schemars(range(min = 1))]
    revision: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Format {
    #[default]
    Auto,
    Json,
    Ndjson,
    Csv,
    Tsv,
    Log,
}

pub(super) fn tool<S: Send + Sync + 'static>(queries: Arc<Queries>, may_store: bool) -> Tool<S> {
    Tool::new(move |ctx: Context<S>, args: QueryResource| {
        let queries = Arc::clone(&queries);
        async move { query(&ctx, args, &queries, may_store).await }
    })
}

async fn query<S>(
    ctx: &Context<S>,
    args: QueryResource,
    queries: &Queries,
    may_store: bool,
) -> Result<(Structured<answer::QueryResult>, CallToolResult), ToolError> {
    let (engine, text) = match (&args.sql, &args.jq) {
        (Some(sql), None) => (Engine::Sql, sql),
        (None, Some(jq)) => (Engine::Jq { slurp: args.slurp }, jq),
        _ => return Err(ToolError::new("Give exactly one of sql and jq.")),
    };

    if args.into.is_some() && !may_store {
        return Err(stores_nothing());
    }
    if args.into.is_some() {
        check_may_create(ctx)?;
    }

    let sources = sources::find(ctx, &args).await?;
    let (tables, contents): (Vec<_>, Vec<_>) = sources.into_iter().unzip();

    let limits = queries.limits();
    let question = Question {
        engine,
        text: text.clone(),
        tables,
        offset: args.offset,
        limit: args.limit.unwrap_or(DEFAULT_LIMIT),
        text_bytes: ToolOptions::default().budget(ctx, HEAD_BYTES),
        store: args.into.as_ref().map(|into| into.format(engine)),
        result_bytes: limits.result_bytes,
        seconds: limits.time.as_secs(),
        memory_bytes: limits.memory_bytes,
        input_bytes: limits.input_bytes,
    };

    let (answer, stored) = match &args.into {
        None => {
            let owner = ctx.identity().owner();
            let answer = queries.ask(owner, &question, &contents, None).await;
            (answer.map_err(|error| tool_error(&error))?, None)
        }
        Some(into) => {
            let (answer, entry) = store::ask(ctx, queries, &question, &contents, into).await?;
            (answer, Some(entry))
        }
    };

    let stored = match (stored.as_deref(), may_store) {
        (Some(entry), _) => Stored::At(entry),
        (None, true) if check_may_create(ctx).is_ok() => Stored::No,
        (None, _) => Stored::Refused,
    };

    Ok(answer::result(answer, &args, &question, stored))
}

/// The answer to a query over a result, with its arguments as a value.
pub(super) async fn of_result<S>(
    ctx: &Context<S>,
    arguments: Value,
    queries: &Queries,
    may_store: bool,
) -> Result<CallToolResult, ToolError> {
    let args: QueryResource = serde_json::from_value(arguments)
        .map_err(|error| ToolError::permanent(format!("into: {error}")))?;
    let (Structured(result), mut shown) = query(ctx, args, queries, may_store).await?;
    shown.structured_content = serde_json::to_value(result).ok();
    Ok(shown)
}

/// Whether the caller may store answers.
///
/// # Errors
/// The reason why not.
pub(super) fn check_may_store<S>(ctx: &Context<S>, may_store: bool) -> Result<(), ToolError> {
    if may_store { check_may_create(ctx) } else { Err(stores_nothing()) }
}

fn stores_nothing() -> ToolError {
    ToolError::new("This server stores no results of queries (tools.write): leave out into.")
}

/// `into` writes as `create_resource` does, so it needs the same scopes.
fn check_may_create<S>(ctx: &Context<S>) -> Result<(), ToolError> {
    let registry = Registry::from_scope(ctx.scope());
    registry.check_tool_scopes(ctx.identity(), CREATING_TOOL).map_err(|_| {
        ToolError::permanent(
            "into needs the scopes of create_resource (auth.scopes), which your token lacks: leave out into.",
        )
    })
}

fn tool_error(error: &QueryError) -> ToolError {
    ToolError::new(error.to_string())
}
