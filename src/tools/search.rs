//! `search_resource`

use std::{fmt::Write, sync::Arc, time::Duration};

use grep_matcher::Matcher;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{
    ToolOptions,
    regex::{SharedMatcher, check_length, escape, matcher, reason},
    scan::{LineSink, scan},
    wording::{call_at_revision, line_excerpt, revision_suffix},
};
use crate::{
    auth::Owner,
    compute::{self, Compute},
    handler::{Context, ToolError},
    preview::words::{count, number},
    quote::{quoted, shortened},
    registry::Tool,
    store::{Kind, StoreError, StoredResource},
};

const DEFAULT_LIMIT: usize = 50;
/// Reserved for the text before the lines.
const HEAD_BYTES: usize = 800;
/// The most bytes of one line in a result, around its first match.
const LINE_BYTES: usize = 400;

/// Finds lines of a stored resource by regular expression, like ripgrep. Returns
/// matching lines with their numbers (N: a match, N- context), and the total.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SearchResource {
    /// The URI of the resource.
    uri: String,
    /// A regular expression in Rust's syntax: no look-around, no
    /// backreferences. (?i) at the start ignores case.
    query: String,
    /// The lines of context before and after each match. 0 by default.
    #[serde(default)]
    #[schemars(range(max = 50))]
    context: usize,
    /// The most matching lines to return. 50 by default.
    #[serde(default)]
    #[schemars(range(min = 1, max = 10000))]
    limit: Option<usize>,
    /// How many matching lines to skip. 0 by default.
    #[serde(default)]
    offset: u64,
    /// The number of the revision; the latest by default. describe_resource
    /// lists the stored ones.
    #[serde(default)]
    #[schemars(range(min = 1))]
    revision: Option<u64>,
}

pub(super) fn tool<S: Send + Sync + 'static>(options: ToolOptions) -> Tool<S> {
    Tool::new(move |ctx: Context<S>, args: SearchResource| {
        // The next call repeats the query.
        let budget = options.budget(&ctx, HEAD_BYTES).saturating_sub(args.query.len());
        let budget = budget.max(LINE_BYTES);
        async move { search(&ctx, args, budget).await }
    })
}

async fn search<S>(
    ctx: &Context<S>,
    args: SearchResource,
    budget: usize,
) -> Result<String, ToolError> {
    check_length(&args.query)?;
    let found = ctx.read_any_revision(&args.uri, args.revision).await?;
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
    let limit = args.limit.unwrap_or(DEFAULT_LIMIT);
    let time = compute::search_time();
    let searching = find_matches(ctx.identity().owner(), &found, &args, budget);
    match tokio::time::timeout(time, searching).await {
        Ok(matches) => Ok(result_text(&found, &args, limit, &matches?)),
        Err(_) => Err(too_slow(&args, time)),
    }
}

async fn find_matches(
    caller: &Owner,
    found: &StoredResource,
    args: &SearchResource,
    budget: usize,
) -> Result<Matches, ToolError> {
    let _slot = compute::search_slot(caller.as_str()).await.map_err(StoreError::from)?;
    let query = args.query.clone();
    let compiling = Compute::queue(caller.as_str(), move |_| matcher(&query, false));
    let matcher = compiling.done().await.map_err(StoreError::from)?;
    let matcher = matcher.map_err(|error| invalid_query(&args.query, &error))?;
    let matches = Matches {
        matcher: Arc::clone(&matcher),
        text: String::new(),
        budget,
        skip: args.offset,
        limit: args.limit.unwrap_or(DEFAULT_LIMIT),
        shown: 0,
        total: 0,
        first_line: None,
        full: false,
    };
    scan(caller, found, matcher, args.context, matches).await
}

fn too_slow(args: &SearchResource, time: Duration) -> ToolError {
    let read = json!({ "uri": args.uri });
    ToolError::new(format!(
        "The search took longer than {} seconds (compute.search_seconds) and was stopped. Use a simpler regular expression, with less repetition, or read parts: {}.",
        time.as_secs_f64(),
        call_at_revision("read_resource", read, args.revision)
    ))
}

fn invalid_query(query: &str, error: &grep_regex::Error) -> ToolError {
    ToolError::new(format!(
        "query is not a valid regular expression: {}. To search for the text itself, escape it: {}",
        reason(error),
        json!({ "query": escape(&shortened(query)) })
    ))
}

/// Collects the lines of the result, and counts all matches.
struct Matches {
    matcher: SharedMatcher,
    text: String,
    budget: usize,
    skip: u64,
    limit: usize,
    shown: usize,
    total: u64,
    first_line: Option<u64>,
    /// No more lines are added, so that the result has no gaps.
    full: bool,
}

impl Matches {
    /// Adds a line if it fits, and returns whether it did.
    fn add(&mut self, line: u64, mark: char, bytes: &[u8], match_offset: usize) -> bool {
        let excerpt = line_excerpt(bytes, match_offset, LINE_BYTES);
        // At least one line, or the next call would be the same one.
        if self.text.len() + excerpt.len() + 24 > self.budget && !self.text.is_empty() {
            self.full = true;
            return false;
        }
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{line}{mark} {excerpt}");
        true
    }
}

impl LineSink for Matches {
    fn matched(&mut self, line: u64, text: &[u8]) {
        self.total += 1;
        if self.total <= self.skip || self.full || self.shown == self.limit {
            self.full |= self.shown == self.limit;
            return;
        }
        let offset = self.matcher.find(text).ok().flatten().map_or(0, |m| m.start());
        if self.add(line, ':', text, offset) {
            self.shown += 1;
            self.first_line.get_or_insert(line);
        }
    }

    fn context(&mut self, line: u64, text: &[u8]) {
        let before_first = self.total < self.skip;
        if !self.full && !before_first {
            self.add(line, '-', text, 0);
        }
    }

    fn gap(&mut self) {
        if !self.full && !self.text.is_empty() {
            self.text.push_str("--\n");
        }
    }
}

fn result_text(
    found: &StoredResource,
    args: &SearchResource,
    limit: usize,
    matches: &Matches,
) -> String {
    let entry = &found.entry;
    let searched =
        format!("{}{} ({})", entry.uri, revision_suffix(args.revision), count(entry.lines, "line"));
    let total = count(matches.total, "matching line");
    if matches.total == 0 {
        return format!("No line of {searched} matches {}. Complete.", quoted(&args.query));
    }
    if matches.shown == 0 {
        return format!("{total} in {searched}, none after the first {}.", number(args.offset));
    }
    let done = args.offset + matches.shown as u64;
    let first = number(args.offset + 1);
    let mut head = if args.offset == 0 && done == matches.total {
        format!("{total} in {searched}. Complete.")
    } else if done == matches.total {
        format!(
            "Matching lines {first}-{} of {} in {searched}. This is the end.",
            number(done),
            number(matches.total)
        )
    } else {
        let mut next =
            json!({ "uri": entry.uri, "query": args.query, "offset": done, "limit": limit });
        if args.context > 0 {
            next["context"] = json!(args.context);
        }
        format!(
            "Matching lines {first}-{} of {} in {searched}. Not complete; next: {}.",
            number(done),
            number(matches.total),
            call_at_revision("search_resource", next, args.revision)
        )
    };
    if let Some(line) = matches.first_line {
        // Ten lines before it; line N is at offset N - 1.
        let from = line.saturating_sub(11);
        let read = json!({ "uri": entry.uri, "offset": from, "limit": 20 });
        head = format!(
            "{head} To see around line {}: {}.",
            number(line),
            call_at_revision("read_resource", read, args.revision)
        );
    }
    format!("{head}\n\n{}", matches.text)
}
