//! `search_resource`

mod answer;
mod places;
mod rows;
mod see;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use larder_oauth::Owner;
use larder_protocol::quote::shortened;
use larder_runtime::compute::{self, Compute};
use larder_store::store::{Kind, StoreError, StoredResource};
use rmcp::model::{CallToolResult, ContentBlock};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use self::{
    answer::SearchResult,
    places::Places,
    rows::{Rows, Wanted},
    see::See,
};
use super::{
    ToolOptions,
    regex::{Syntax, check_length, escape, matcher, reason},
    required_text::required_text,
    scan::{Search, scan},
    wording::call_at_revision,
};
use crate::{
    handler::{Context, Structured, ToolError},
    registry::Tool,
};

const DEFAULT_LIMIT: u64 = 50;
/// Reserved for the text before the lines.
const HEAD_BYTES: usize = 800;
/// The most bytes of one line in a result, around its first match, if its matches
/// are not farther apart.
const LINE_BYTES: usize = 400;

/// Finds what matches a regular expression in a stored resource.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools, reason = "each is an argument of the tool")]
struct SearchResource {
    /// The URI.
    uri: String,
    /// In Rust's syntax.
    query: String,
    /// Ignore case.
    #[serde(default)]
    ignore_case: bool,
    /// Plain text.
    #[serde(default)]
    literal: bool,
    /// Whole words.
    #[serde(default)]
    whole_word: bool,
    /// Without a match.
    #[serde(default)]
    invert: bool,
    /// Totals only.
    #[serde(default)]
    count_only: bool,
    /// Per long line.
    #[serde(default)]
    #[schemars(range(min = 1))]
    max_per_line: Option<u64>,
    /// Lines around.
    #[serde(default)]
    #[schemars(range(max = 50))]
    context: usize,
    /// Default: 50.
    #[serde(default)]
    #[schemars(range(min = 1, max = 10000))]
    limit: Option<u64>,
    /// To skip.
    #[serde(default)]
    offset: u64,
    /// An earlier one.
    #[serde(default)]
    #[schemars(range(min = 1))]
    revision: Option<u64>,
}

impl SearchResource {
    fn syntax(&self) -> Syntax {
        let Self { ignore_case, literal, whole_word, .. } = *self;
        Syntax { ignore_case, literal, whole_word }
    }
}

pub(super) fn tool<S: Send + Sync + 'static>(options: ToolOptions) -> Tool<S> {
    Tool::new(move |ctx: Context<S>, args: SearchResource| {
        // The next call repeats the query.
        let budget = options.budget(&ctx, HEAD_BYTES).saturating_sub(args.query.len());
        let budget = budget.max(LINE_BYTES);
        async move { search(&ctx, args, budget).await }
    })
}

/// A search by another tool.
#[derive(Debug)]
pub(crate) struct LineSearch {
    pub(crate) uri: String,
    pub(crate) query: String,
    pub(crate) ignore_case: bool,
    /// Whether `query` is the text itself.
    pub(crate) literal: bool,
    /// The most matches.
    pub(crate) limit: u64,
    /// How many matches to skip.
    pub(crate) offset: u64,
    pub(crate) revision: Option<u64>,
}

impl LineSearch {
    /// The lines in about `budget` bytes, with the total of matches.
    pub(crate) async fn run<S>(
        self,
        ctx: &Context<S>,
        budget: usize,
    ) -> Result<SearchResult, ToolError> {
        let args = SearchResource {
            ignore_case: self.ignore_case,
            literal: self.literal,
            limit: Some(self.limit),
            offset: self.offset,
            revision: self.revision,
            ..of_pattern(self.uri, self.query)
        };

        let (Structured(found), _) = search(ctx, args, budget).await?;
        Ok(found)
    }
}

/// Checks a pattern before there is a content.
///
/// # Errors
/// The fault of the pattern.
pub(super) async fn check_pattern(caller: &Owner, pattern: &str) -> Result<(), String> {
    let args = of_pattern(String::new(), pattern.to_owned());
    check_length(pattern).map_err(|error| error.to_string())?;

    let query = args.query.clone();
    let syntax = args.syntax();
    let compiling = Compute::queue(caller.as_str(), move |_| matcher(&query, syntax).map(drop));
    let compiled = compiling.done().await.map_err(|busy| busy.to_string())?;
    compiled.map_err(|error| invalid_query(&args, &error).to_string())
}

/// The matches of a pattern in a result.
pub(super) async fn of_result<S>(
    ctx: &Context<S>,
    uri: &str,
    pattern: &str,
) -> Result<CallToolResult, ToolError> {
    let budget = ToolOptions::default().budget(ctx, HEAD_BYTES).saturating_sub(pattern.len());
    let args = of_pattern(uri.to_owned(), pattern.to_owned());
    let (Structured(found), mut shown) = search(ctx, args, budget.max(LINE_BYTES)).await?;
    shown.structured_content = serde_json::to_value(found).ok();
    Ok(shown)
}

/// The arguments of a search by a pattern alone.
fn of_pattern(uri: String, query: String) -> SearchResource {
    SearchResource {
        uri,
        query,
        ignore_case: false,
        literal: false,
        whole_word: false,
        invert: false,
        count_only: false,
        max_per_line: None,
        context: 0,
        limit: None,
        offset: 0,
        revision: None,
    }
}

async fn search<S>(
    ctx: &Context<S>,
    args: SearchResource,
    budget: usize,
) -> Result<(Structured<SearchResult>, CallToolResult), ToolError> {
    check_length(&args.query)?;

    let found = ctx.read_any_revision(&args.uri, args.revision).await?;
    let (found, slot) = found.into_text(ctx.identity().owner()).await?;
    let is_decoded = slot.is_some();
    if found.entry.kind == Kind::Binary {
        return Err(ToolError::new(format!(
            "{} is binary ({}) and has no lines to search. Read it with {}.",
            shortened(&args.uri),
            found.entry.mime_type,
            call_at_revision(
                "read_resource",
                json!({ "uri": args.uri, "unit": "bytes" }),
                args.revision
            )
        )));
    }

    let time = compute::search_time();
    let caller = ctx.identity().owner();
    match tokio::time::timeout(time, search_text(caller, &found, is_decoded, &args, budget)).await {
        Ok(result) => result,
        Err(_) => Err(too_slow(&args, time)),
    }
}

/// Searches text without its colours, unless the query is about them.
async fn search_text(
    caller: &Owner,
    found: &StoredResource,
    is_decoded: bool,
    args: &SearchResource,
    budget: usize,
) -> Result<(Structured<SearchResult>, CallToolResult), ToolError> {
    let _slot = compute::search_slot(caller.as_str()).await.map_err(StoreError::from)?;

    let wants_plain = !names_escapes(&args.query);
    let mut searched = found.clone();
    let mut is_plain = false;
    if wants_plain
        && found.seems_coloured().await?
        && let Some(view) = found.plain_view(caller).await?
    {
        searched = view;
        is_plain = true;
    }

    let (mut rows, mut is_coloured) = find_matches(caller, &searched, args, budget).await?;
    if wants_plain
        && is_coloured
        && !is_plain
        && let Some(view) = found.plain_view(caller).await?
    {
        // Colours begin only in the middle of the content.
        searched = view;
        is_plain = true;
        (rows, is_coloured) = find_matches(caller, &searched, args, budget).await?;
    }

    let places = Places::find(caller, &searched, rows.offsets(), budget).await?;
    // Offsets in bytes are those of the stored content only where that was searched.
    let is_stored = !is_decoded && !is_plain;
    let see = See::first(caller, &searched, is_stored, args, &rows, &places, budget).await?;
    let mut result = answer::result(&searched, args, &rows, &places, see, budget);
    if wants_plain && is_coloured {
        let (Structured(found), shown) = &mut result;
        found.complete = false;
        tell_colours(shown);
    }
    Ok(result)
}

/// Whether a query is about terminal escapes themselves.
fn names_escapes(query: &str) -> bool {
    let lower = query.to_ascii_lowercase();
    query.contains('\u{1b}')
        || [r"\x1b", r"\x{1b}", r"\u001b", r"\u{1b}", r"\033"]
            .iter()
            .any(|name| lower.contains(name))
}

/// Says that colours may hide matches in long content.
fn tell_colours(result: &mut CallToolResult) {
    let note = "Note: the content has terminal escapes (colours) and is too long to search without them: a match with an escape within it is missed.";
    result.content.push(ContentBlock::text(note));
}

/// The matches, and whether the searched blocks have terminal escapes.
async fn find_matches(
    caller: &Owner,
    found: &StoredResource,
    args: &SearchResource,
    budget: usize,
) -> Result<(Rows, bool), ToolError> {
    let query = args.query.clone();
    let syntax = args.syntax();
    let compiling = Compute::queue(caller.as_str(), move |_| {
        (matcher(&query, syntax), required_text(&query, syntax))
    });
    let (matcher, required) = compiling.done().await.map_err(StoreError::from)?;
    let matcher = matcher.map_err(|error| invalid_query(args, &error))?;

    let rows = Rows::new(Wanted {
        budget,
        skip: args.offset,
        limit: args.limit.unwrap_or(DEFAULT_LIMIT),
        max_per_line: args.max_per_line.unwrap_or(u64::MAX),
        invert: args.invert,
        count_only: args.count_only,
    });

    let context = args.context;
    let invert = args.invert;
    let escapes = Arc::<AtomicBool>::default();
    let search = Search {
        matcher,
        required,
        context,
        invert,
        counts: true,
        keeps_filters: true,
        escapes: Arc::clone(&escapes),
    };
    let rows = scan(caller, found, search, rows).await?;
    Ok((rows, escapes.load(Ordering::Relaxed)))
}

fn too_slow(args: &SearchResource, time: Duration) -> ToolError {
    let read = json!({ "uri": args.uri });
    ToolError::new(format!(
        "The search took longer than {} seconds (compute.search_seconds) and was stopped. Use a simpler regular expression, with less repetition, or read parts: {}.",
        time.as_secs_f64(),
        call_at_revision("read_resource", read, args.revision)
    ))
}

fn invalid_query(args: &SearchResource, error: &grep_regex::Error) -> ToolError {
    let reason = reason(error);
    if args.literal {
        return ToolError::new(format!("query cannot be searched for: {reason}."));
    }

    ToolError::new(format!(
        "query is not a valid regular expression: {reason}. To search for the text itself, escape it: {}",
        json!({ "query": escape(&shortened(&args.query)) })
    ))
}
