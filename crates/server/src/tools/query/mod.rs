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

/// Computes answers from stored JSON, NDJSON, CSV, TSV and logs: with sql, one
/// SELECT in SQLite's dialect; with jq, a filter. Give exactly one of the two.
/// Returns rows as CSV (sql) or a value a line (jq), with the total.
///
/// In sql one URI is the table t. Its columns are the CSV header, the members of
/// the JSON records, or for a log line_no, line and the groups of pattern. Nested
/// JSON is text: col ->> '$.a', json_each(col). A column has one type over all
/// its values: true is 1, empty cells and NA among numbers are NULL, and codes
/// such as 00501 or 1.10.1 make it text. Text compares with text (hour > '08'), or
/// as number(hour) > 8. Besides SQLite's functions there are
/// median, percentile(x, 95), stddev, regexp (x REGEXP 'a+'), regexp_extract,
/// number('$1,234'), number('2,5', 'de') and strptime('31/12/2025', '%d/%m/%Y').
/// In jq the input is the whole JSON value, or each line of NDJSON, or each row
/// as an object.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct QueryResource {
    /// The URI of the resource; or, for sql, names and URIs of up to 8 tables, with the options of
    /// each: {"orders": "results://1", "users": {"uri": "results://2", "format": "csv"}}.
    #[schemars(extend("x-larder-listed" = { "type": "string" }))]
    from: From,
    /// One SELECT, such as SELECT level, count(*) FROM t GROUP BY level.
    #[serde(default)]
    sql: Option<String>,
    /// A jq filter, such as .items[] | select(.price > 10) | .name.
    #[serde(default)]
    jq: Option<String>,
    /// The format of the content. Detected by default. For one URI, as rows, pattern and
    /// revision are.
    #[serde(default)]
    format: Format,
    /// A JSON Pointer to the list or object that has the rows, such as
    /// /data/items. By default the outermost list for sql, the whole value for
    /// jq.
    #[serde(default)]
    rows: Option<String>,
    /// For a log: a regular expression whose named groups are the columns, such
    /// as (?P<level>ERROR|WARN) (?P<message>.*).
    #[serde(default)]
    pattern: Option<String>,
    /// For jq: whether to read all inputs into one list first.
    #[serde(default)]
    slurp: bool,
    /// The most rows to return. 100 by default.
    #[serde(default)]
    #[schemars(range(min = 1, max = 10000))]
    limit: Option<u64>,
    /// How many rows of the result to skip. 0 by default.
    #[serde(default)]
    offset: u64,
    /// Stores the whole result as a resource, which can be queried again.
    #[serde(default)]
    into: Option<store::Into>,
    /// The number of the revision; the latest by default. For one URI.
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
        return Err(ToolError::new(
            "This server stores no results of queries (tools.write): leave out into.",
        ));
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
