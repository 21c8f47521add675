//! `search_resource`

use std::fmt::Write;

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{
    ToolOptions,
    pattern::{escape, matcher},
    scan::{Report, scan},
    wording::{call_at, of_revision, shown_of_line},
};
use crate::{
    handler::{Context, ToolError},
    preview::words::{count, number},
    registry::Tool,
    store::{Found, Kind},
};

const DEFAULT_LIMIT: usize = 50;
/// Kept for what an answer says of itself.
const HEAD: usize = 800;
/// The most that is shown of one line, in bytes, around its first match.
const SHOWN_OF_LINE: usize = 400;

/// Finds lines of a stored resource by a regular expression, like ripgrep.
/// Shows matching lines with their numbers (N: a match, N- context), and how
/// many there are in all.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SearchResource {
    /// Which resource.
    uri: String,
    /// A regular expression in Rust's syntax: no look-around, no
    /// backreferences. (?i) at the start ignores case.
    query: String,
    /// How many lines to show before and after each match. 0 by default.
    #[serde(default)]
    #[schemars(range(max = 50))]
    context: usize,
    /// How many matching lines to show at most. 50 by default.
    #[serde(default)]
    #[schemars(range(min = 1, max = 10000))]
    limit: Option<usize>,
    /// How many matching lines to skip: for reading on. 0 by default.
    #[serde(default)]
    offset: u64,
    /// Which revision, by its number; the latest by default. describe_resource
    /// lists those that are kept.
    #[serde(default)]
    #[schemars(range(min = 1))]
    revision: Option<u64>,
}

pub(super) fn tool<S: Send + Sync + 'static>(options: ToolOptions) -> Tool<S> {
    Tool::new(move |ctx: Context<S>, args: SearchResource| {
        let budget = options.budget(&ctx, HEAD);
        async move { search(&ctx, args, budget).await }
    })
}

async fn search<S>(
    ctx: &Context<S>,
    args: SearchResource,
    budget: usize,
) -> Result<String, ToolError> {
    let matcher = matcher(&args.query, false).map_err(|error| bad_query(&args.query, &error))?;
    let found = ctx.read_any_at(&args.uri, args.revision).await?;
    if found.entry.kind == Kind::Binary {
        return Err(ToolError::new(format!(
            "{} is binary ({}) and has no lines to search. Read it with {}.",
            args.uri,
            found.entry.mime_type,
            call_at("read_resource", json!({ "uri": args.uri, "unit": "bytes" }), args.revision)
        )));
    }
    let limit = args.limit.unwrap_or(DEFAULT_LIMIT);
    let hits = Hits {
        matcher: matcher.clone(),
        text: String::new(),
        budget,
        skip: args.offset,
        limit,
        shown: 0,
        total: 0,
        first_line: None,
        full: false,
    };
    let hits = scan(&found, matcher, args.context, hits).await?;
    Ok(answer(&found, &args, limit, &hits))
}

fn bad_query(query: &str, error: &grep_regex::Error) -> ToolError {
    let query: String = query.chars().take(200).collect();
    ToolError::new(format!(
        "query is not a regular expression that can be searched for: {error}. To search for the text itself, escape it: {}",
        json!({ "query": escape(&query) })
    ))
}

/// Gathers what will be shown, and counts what will not.
struct Hits {
    matcher: RegexMatcher,
    text: String,
    budget: usize,
    skip: u64,
    limit: usize,
    shown: usize,
    total: u64,
    first_line: Option<u64>,
    /// Nothing more is shown, so that what is shown has no gaps.
    full: bool,
}

impl Hits {
    fn show(&mut self, line: u64, mark: char, bytes: &[u8], around: usize) -> bool {
        let part = shown_of_line(bytes, around, SHOWN_OF_LINE);
        // One line at least, or reading on would stand still.
        if self.text.len() + part.len() + 24 > self.budget && !self.text.is_empty() {
            self.full = true;
            return false;
        }
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{line}{mark} {part}");
        true
    }
}

impl Report for Hits {
    fn matched(&mut self, line: u64, text: &[u8]) {
        self.total += 1;
        if self.total <= self.skip || self.full || self.shown == self.limit {
            self.full |= self.shown == self.limit;
            return;
        }
        let at = self.matcher.find(text).ok().flatten().map_or(0, |m| m.start());
        if self.show(line, ':', text, at) {
            self.shown += 1;
            self.first_line.get_or_insert(line);
        }
    }

    fn context(&mut self, line: u64, text: &[u8]) {
        let before_first = self.total < self.skip;
        if !self.full && !before_first {
            self.show(line, '-', text, 0);
        }
    }

    fn gap(&mut self) {
        if !self.full && !self.text.is_empty() {
            self.text.push_str("--\n");
        }
    }
}

fn answer(found: &Found, args: &SearchResource, limit: usize, hits: &Hits) -> String {
    let entry = &found.entry;
    let searched =
        format!("{}{} ({})", entry.uri, of_revision(args.revision), count(entry.lines, "line"));
    let total = count(hits.total, "matching line");
    if hits.total == 0 {
        return format!("No line of {searched} matches {:?}. Complete.", args.query);
    }
    if hits.shown == 0 {
        return format!("{total} in {searched}, none after the first {}.", number(args.offset));
    }
    let done = args.offset + hits.shown as u64;
    let first = number(args.offset + 1);
    let mut head = if args.offset == 0 && done == hits.total {
        format!("{total} in {searched}. Complete.")
    } else if done == hits.total {
        format!(
            "Matching lines {first}-{} of {} in {searched}. This is the end.",
            number(done),
            number(hits.total)
        )
    } else {
        let mut on =
            json!({ "uri": entry.uri, "query": args.query, "offset": done, "limit": limit });
        if args.context > 0 {
            on["context"] = json!(args.context);
        }
        format!(
            "Matching lines {first}-{} of {} in {searched}. Not complete; next: {}.",
            number(done),
            number(hits.total),
            call_at("search_resource", on, args.revision)
        )
    };
    if let Some(line) = hits.first_line {
        let from = line.saturating_sub(11);
        let read = json!({ "uri": entry.uri, "offset": from, "limit": 20 });
        // Line N is at offset N - 1.
        head = format!(
            "{head} To see around line {}: {}.",
            number(line),
            call_at("read_resource", read, args.revision)
        );
    }
    format!("{head}\n\n{}", hits.text)
}
