//! `view_window`

#[cfg(feature = "query")]
mod chart;
#[cfg(feature = "query")]
mod ranges;
#[cfg(feature = "query")]
mod sorted;

use std::sync::Arc;

use larder_records::Pointer;
use larder_store::store::StoredResource;
use rmcp::model::CallToolResult;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AppOptions, READING_TOOL, check_scopes, info, lines, result, table, tree};
use crate::{
    handler::{Context, ToolError},
    registry::Tool,
};

const DEFAULT_LIMIT: u64 = 200;

/// Reads a part of a resource for the page of view_resource: what is known about it, rows of
/// its table, children of a JSON value, lines, or lines that match a regular expression. A part
/// has at most 100 kB; it may have fewer items than requested.
#[cfg_attr(not(feature = "query"), allow(dead_code, reason = "for parts that are not built"))]
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ViewWindow {
    /// The URI of the resource.
    uri: String,
    /// The number of the revision; the latest by default.
    #[serde(default)]
    #[schemars(range(min = 1))]
    revision: Option<u64>,
    /// The part to read.
    r#as: Part,
    /// How many items to skip. 0 by default.
    #[serde(default)]
    offset: u64,
    /// The most items. 200 by default.
    #[serde(default)]
    #[schemars(range(min = 1, max = 10000))]
    limit: Option<u64>,
    /// For table: the order of the rows.
    #[serde(default)]
    sort: Option<Sort>,
    /// For table and chart: rows that fit all of these.
    #[serde(default)]
    #[schemars(length(max = 16))]
    filter: Vec<Filter>,
    /// For table and chart: rows with this text. For log: lines that match this regular expression.
    #[serde(default)]
    query: Option<String>,
    /// For log: ignore case.
    #[serde(default)]
    ignore_case: bool,
    /// For log: query is the text itself.
    #[serde(default)]
    literal: bool,
    /// For chart: what it shows. Without it, the columns of which one can be drawn.
    #[cfg(feature = "query")]
    #[serde(default)]
    chart: Option<chart::Chart>,
    /// For table and json: a JSON Pointer to the list or object.
    #[serde(default)]
    at: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Part {
    Info,
    Table,
    Json,
    Log,
    /// Figures of all rows, in at most `limit` buckets, groups or bins.
    Chart,
}

/// An order of rows.
#[cfg_attr(not(feature = "query"), allow(dead_code, reason = "for parts that are not built"))]
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Sort {
    column: String,
    #[serde(default)]
    descending: bool,
}

/// A condition on a column.
#[cfg_attr(not(feature = "query"), allow(dead_code, reason = "for parts that are not built"))]
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Filter {
    column: String,
    op: Op,
    #[serde(default)]
    value: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Op {
    Contains,
    Equals,
    Not,
    Less,
    Greater,
    Empty,
    Filled,
}

/// The content of a response, marked with its kind and revision.
#[derive(Debug, Serialize)]
struct Window<T> {
    r#as: Part,
    revision: u64,
    #[serde(flatten)]
    part: T,
}

pub(super) fn tool<S: Send + Sync + 'static>(options: &Arc<AppOptions>) -> Tool<S> {
    let options = Arc::clone(options);
    Tool::new(move |ctx: Context<S>, args: ViewWindow| {
        let options = Arc::clone(&options);
        async move { view(&ctx, &args, &options).await }
    })
}

async fn view<S>(
    ctx: &Context<S>,
    args: &ViewWindow,
    options: &AppOptions,
) -> Result<CallToolResult, ToolError> {
    check_scopes(ctx, args.same_tool())?;
    let found = ctx.read_any_revision(&args.uri, args.revision).await?;
    let caller = ctx.identity().owner();

    let limit = args.limit.unwrap_or(DEFAULT_LIMIT);
    let at = args.at.as_deref().map(str::parse::<Pointer>).transpose();
    let at = at.map_err(|error| ToolError::new(format!("at: {error}.")))?;

    match args.r#as {
        Part::Info => {
            let info = info::describe(ctx, &found, None, options).await?;
            sent(args, &found, info)
        }
        Part::Table if args.is_plain() => {
            let rows = table::window(caller, &found, at.as_ref(), args.offset, limit).await?;
            sent(args, &found, rows)
        }
        Part::Table | Part::Chart => sorted_part(ctx, args, &found, options).await,
        Part::Json => {
            let at = at.unwrap_or_default();
            let children = tree::window(caller, &found, &at, args.offset, limit).await?;
            sent(args, &found, children)
        }
        Part::Log => match &args.query {
            None => sent(args, &found, lines::window(&found, args.offset, limit).await?),
            Some(query) => matches(ctx, args, &found, query, limit).await,
        },
    }
}

impl ViewWindow {
    /// The tool by which a model reads such a part.
    fn same_tool(&self) -> &'static str {
        match self.r#as {
            Part::Chart => "query_resource",
            Part::Table if !self.is_plain() => "query_resource",
            Part::Log if self.query.is_some() => "search_resource",
            Part::Info | Part::Table | Part::Json | Part::Log => READING_TOOL,
        }
    }

    /// Whether rows are read in their order.
    fn is_plain(&self) -> bool {
        let has_text = self.query.as_ref().is_some_and(|text| !text.is_empty());
        self.sort.is_none() && self.filter.is_empty() && !has_text
    }
}

fn sent<T: Serialize>(
    args: &ViewWindow,
    found: &StoredResource,
    part: T,
) -> Result<CallToolResult, ToolError> {
    let text = format!("A part of {} for the viewer.", found.entry.uri);
    result(text, &Window { r#as: args.r#as, revision: found.entry.revision, part })
}

#[cfg(feature = "query")]
async fn sorted_part<S>(
    ctx: &Context<S>,
    args: &ViewWindow,
    found: &StoredResource,
    options: &AppOptions,
) -> Result<CallToolResult, ToolError> {
    let queries = options.queries.as_deref().ok_or_else(no_queries)?;
    let rows = sorted::Rows::new(ctx.identity().owner(), found, args, queries).await?;

    if args.r#as == Part::Chart {
        sent(args, found, chart::draw(&rows, args.chart.as_ref(), args.limit).await?)
    } else {
        sent(args, found, sorted::window(&rows, args).await?)
    }
}

#[cfg(not(feature = "query"))]
async fn sorted_part<S>(
    _: &Context<S>,
    _: &ViewWindow,
    _: &StoredResource,
    _: &AppOptions,
) -> Result<CallToolResult, ToolError> {
    Err(no_queries())
}

fn no_queries() -> ToolError {
    ToolError::new("This server does not sort, filter or chart tables (query.enabled).")
}

async fn matches<S>(
    ctx: &Context<S>,
    args: &ViewWindow,
    found: &StoredResource,
    query: &str,
    limit: u64,
) -> Result<CallToolResult, ToolError> {
    use crate::tools::LineSearch;

    let search = LineSearch {
        uri: args.uri.clone(),
        query: query.to_owned(),
        ignore_case: args.ignore_case,
        literal: args.literal,
        limit,
        offset: args.offset,
        revision: Some(found.entry.revision).filter(|_| args.revision.is_some()),
    };

    let lines = search.run(ctx, table::PART_BYTES / 2).await?;
    sent(args, found, lines)
}
