//! `search_resource`, by ripgrep's engine: linear in the content whatever the
//! pattern, streamed block by block, off the threads that serve connections.

use std::{fmt::Write, io};

use bytes::Bytes;
use futures_util::StreamExt;
use grep_matcher::Matcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::mpsc;

use super::{ToolOptions, wording::call};
use crate::{
    preview::words::{count, number},
    registry::{Context, Tool, ToolError},
    store::{Found, Kind},
};

const DEFAULT_LIMIT: usize = 50;
/// Kept for what an answer says of itself.
const HEAD: usize = 800;
/// The most that is shown of one line, in bytes, around its first match.
const SHOWN_OF_LINE: usize = 400;
/// The longest line that is searched: it has to be in memory as a whole.
const LONGEST_LINE: usize = 64 << 20;

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
    let matcher = RegexMatcherBuilder::new()
        .line_terminator(Some(b'\n'))
        .build(&args.query)
        .map_err(|error| bad_query(&args.query, &error))?;
    let found = ctx.read_any(&args.uri).await?;
    if found.entry.kind == Kind::Binary {
        return Err(ToolError::new(format!(
            "{} is binary ({}) and has no lines to search. Read it with {}.",
            args.uri,
            found.entry.mime_type,
            call("read_resource", &json!({ "uri": args.uri, "unit": "bytes" }))
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
    let hits = run(&found, matcher, args.context, hits).await?;
    Ok(answer(&found, &args, limit, &hits))
}

fn bad_query(query: &str, error: &grep_regex::Error) -> ToolError {
    let query: String = query.chars().take(200).collect();
    ToolError::new(format!(
        "query is not a regular expression that can be searched for: {error}. To search for the text itself, escape it: {}",
        json!({ "query": escape(&query) })
    ))
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() * 2);
    for c in text.chars() {
        if r"\.+*?()|[]{}^$#&-~".contains(c) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

/// Streams the content to a thread that searches it.
async fn run(
    found: &Found,
    matcher: RegexMatcher,
    context: usize,
    mut hits: Hits,
) -> Result<Hits, ToolError> {
    // A few blocks ahead of the search, no more.
    let (sender, receiver) = mpsc::channel::<Bytes>(4);
    let searching = tokio::task::spawn_blocking(move || {
        let mut searcher = SearcherBuilder::new()
            .line_number(true)
            .before_context(context)
            .after_context(context)
            .heap_limit(Some(LONGEST_LINE))
            .build();
        let reader = Blocks { receiver, block: Bytes::new() };
        searcher.search_reader(&matcher, reader, &mut hits).map(|()| hits)
    });
    let mut blocks = std::pin::pin!(found.stream());
    let mut failed = None;
    while let Some(block) = blocks.next().await {
        match block {
            Ok(block) => {
                if sender.send(block).await.is_err() {
                    break;
                }
            }
            Err(error) => {
                failed = Some(error);
                break;
            }
        }
    }
    // The search ends when nothing more can come.
    drop(sender);
    let searched = searching.await;
    if let Some(error) = failed {
        return Err(error.into());
    }
    match searched {
        Ok(Ok(hits)) => Ok(hits),
        Ok(Err(error)) => {
            tracing::info!(%error, "a search ended early");
            Err(ToolError::new(format!(
                "A line is longer than {} bytes and cannot be searched. Read parts of it with read_resource and unit \"bytes\".",
                number(LONGEST_LINE as u64)
            )))
        }
        Err(error) => {
            tracing::error!(%error, "a search panicked");
            Err(ToolError::new("The search failed with an internal error."))
        }
    }
}

/// The content as the searching thread reads it.
struct Blocks {
    receiver: mpsc::Receiver<Bytes>,
    block: Bytes,
}

impl io::Read for Blocks {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.block.is_empty() {
            match self.receiver.blocking_recv() {
                Some(block) => self.block = block,
                None => return Ok(0),
            }
        }
        let length = buffer.len().min(self.block.len());
        buffer[..length].copy_from_slice(&self.block.split_to(length));
        Ok(length)
    }
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
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        let (start, end) = shown_of_line(bytes, around);
        let part = String::from_utf8_lossy(&bytes[start..end]);
        let before =
            if start > 0 { format!("…[{} bytes] ", number(start as u64)) } else { String::new() };
        let left = bytes.len() - end;
        let after =
            if left > 0 { format!(" …[{} bytes]", number(left as u64)) } else { String::new() };
        let length = part.len() + before.len() + after.len() + 24;
        // One line at least, or reading on would stand still.
        if self.text.len() + length > self.budget && !self.text.is_empty() {
            self.full = true;
            return false;
        }
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{line}{mark} {before}{part}{after}");
        true
    }
}

/// The part of a line that is shown: all of it, or what surrounds `around`.
fn shown_of_line(line: &[u8], around: usize) -> (usize, usize) {
    if line.len() <= SHOWN_OF_LINE {
        return (0, line.len());
    }
    let boundary = |mut at: usize| {
        while at > 0 && at < line.len() && line[at] & 0b1100_0000 == 0b1000_0000 {
            at -= 1;
        }
        at
    };
    let start = around.saturating_sub(SHOWN_OF_LINE / 4).min(line.len() - SHOWN_OF_LINE);
    (boundary(start), boundary(start + SHOWN_OF_LINE))
}

impl Sink for Hits {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        self.total += 1;
        if self.total <= self.skip || self.full || self.shown == self.limit {
            self.full |= self.shown == self.limit;
            return Ok(true);
        }
        let at = self.matcher.find(found.bytes()).ok().flatten().map_or(0, |m| m.start());
        let line = found.line_number().unwrap_or(0);
        if self.show(line, ':', found.bytes(), at) {
            self.shown += 1;
            self.first_line.get_or_insert(line);
        }
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        let before_first = self.total < self.skip;
        if !self.full && !before_first {
            let line = context.line_number().unwrap_or(0);
            self.show(line, '-', context.bytes(), 0);
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, io::Error> {
        if !self.full && !self.text.is_empty() {
            self.text.push_str("--\n");
        }
        Ok(true)
    }
}

fn answer(found: &Found, args: &SearchResource, limit: usize, hits: &Hits) -> String {
    let entry = &found.entry;
    let searched = format!("{} ({})", entry.uri, count(entry.lines, "line"));
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
            call("search_resource", &on)
        )
    };
    if let Some(line) = hits.first_line {
        let from = line.saturating_sub(11);
        let read = json!({ "uri": entry.uri, "offset": from, "limit": 20 });
        // Line N is at offset N - 1.
        head = format!(
            "{head} To see around line {}: {}.",
            number(line),
            call("read_resource", &read)
        );
    }
    format!("{head}\n\n{}", hits.text)
}
