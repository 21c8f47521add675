//! `search_resources`: a ranked search for words in all resources of the caller.
//!
//! There is no index: resources live for a day, most are never searched, and
//! instances may share the store. A search reads the content, the newest first,
//! within limits that the result names.

use std::{fmt::Write, sync::Arc};

use futures_util::{StreamExt, TryStreamExt, stream};
use larder_protocol::quote::{quoted, shortened};
use larder_records::words::{count, number};
use larder_runtime::compute::{self, Compute, Stop};
use larder_store::store::{Entry, Kind, StoreError, StoredResource};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::time::{Instant, timeout_at};

use super::{
    ToolOptions,
    rank::{Hits, Query, rank},
    regex::check_length,
    scan::{Search, scan},
    wording::{call, check_prefix},
};
use crate::{
    handler::{Context, ToolError},
    registry::Tool,
};

const DEFAULT_LIMIT: usize = 20;
/// The largest limit, as in the schema of the argument.
const MAX_LIMIT: usize = 200;
/// So many lines are sure to be on the first page of search_resource.
const FIRST_PAGE_LINES: u64 = 10;
/// Reserved for the text before the list.
const HEAD_BYTES: usize = 1_000;
/// The most resources considered, in the order of their URIs.
const MAX_LISTED: usize = 10_000;
/// The number of resources listed at once.
const PAGE_SIZE: usize = 1_000;
/// The most bytes of content that one search reads.
const MAX_BYTES: u64 = 512 << 20;
/// The number of resources searched at once.
const CONCURRENCY: usize = 4;

/// Finds stored resources by words in their content, with matching lines.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SearchResources {
    /// Words; a phrase in "quotes".
    query: String,
    /// The beginning of their URIs.
    #[serde(default)]
    prefix: Option<String>,
    /// Default: 20.
    #[serde(default)]
    #[schemars(range(min = 1, max = 200))]
    limit: Option<usize>,
}

pub(super) fn tool<S: Send + Sync + 'static>(options: ToolOptions) -> Tool<S> {
    Tool::new(move |ctx: Context<S>, args: SearchResources| {
        let budget = options.budget(&ctx, HEAD_BYTES);
        async move { search(&ctx, &args, budget).await }
    })
}

async fn search<S>(
    ctx: &Context<S>,
    args: &SearchResources,
    budget: usize,
) -> Result<String, ToolError> {
    check_length(&args.query)?;
    check_prefix(args.prefix.as_deref())?;

    let deadline = Instant::now() + compute::search_time();
    let caller = ctx.identity().owner().as_str();
    let slot = timeout_at(deadline, compute::search_slot(caller)).await;
    let _slot = slot.map_err(|_| no_slot())?.map_err(StoreError::from)?;

    let text = args.query.clone();
    let parsing = Compute::queue(caller, move |_| Query::parse(&text));
    let query = Arc::new(parsing.done().await.map_err(StoreError::from)??);

    let mut coverage = Coverage::default();
    let mut found = Vec::new();
    let listed = candidates(ctx, args, &mut coverage).await?;
    let plan = coverage.plan(listed);

    let searches =
        plan.into_iter().map(|listed| search_one(ctx, Arc::clone(&query), listed, deadline));
    let mut searched = stream::iter(searches).buffered(CONCURRENCY);
    while let Some((entry, outcome)) = searched.try_next().await? {
        match outcome {
            Outcome::Searched(hits) => {
                coverage.searched += 1;
                coverage.bytes += entry.size;
                found.extend(hits.map(|hits| (entry, hits)));
            }
            Outcome::Binary(hits) => {
                coverage.binary += 1;
                found.extend(hits.map(|hits| (entry, hits)));
            }
            Outcome::TimedOut => coverage.left_out += 1,
            Outcome::Unreadable => coverage.unreadable += 1,
            Outcome::Gone => {}
        }
    }

    rank(&mut found, coverage.searched, |entry| entry.size);
    Ok(result_text(args, &query, &found, &coverage, budget))
}

fn no_slot() -> ToolError {
    ToolError::new(
        "The server is busy with other searches (compute.searches). Try again when some have ended.",
    )
}

/// The resources that a search has covered.
#[derive(Debug, Default)]
struct Coverage {
    searched: usize,
    bytes: u64,
    binary: usize,
    unreadable: usize,
    /// Resources not searched because of the limits of time and bytes.
    left_out: usize,
    /// There are more resources than [`MAX_LISTED`].
    more_listed: bool,
}

impl Coverage {
    /// Whether every text of the caller was searched.
    fn is_complete(&self) -> bool {
        self.left_out + self.unreadable == 0 && !self.more_listed
    }

    /// Appends what was searched, and what was not and why.
    fn describe(&self, text: &mut String) {
        let searched = count(self.searched as u64, "text");
        let _ = write!(text, " Searched: {searched}, {}.", count(self.bytes, "byte"));

        let mut not_searched = Vec::new();
        for (texts, reason) in [
            (
                self.left_out,
                "older texts, because of the limits of time and bytes (a prefix narrows the search)",
            ),
            (self.binary, "binary, except for names and descriptions"),
            (self.unreadable, "that could not be read"),
        ] {
            if texts > 0 {
                not_searched.push(format!("{} {reason}", number(texts as u64)));
            }
        }

        if self.more_listed {
            let listed = number(MAX_LISTED as u64);
            not_searched
                .push(format!("all after the first {listed} by URI (a prefix narrows the search)"));
        }
        if !not_searched.is_empty() {
            let _ = write!(text, " NOT searched: {}.", not_searched.join("; "));
        }
    }
}

/// The caller's resources, the most recently written first.
async fn candidates<S>(
    ctx: &Context<S>,
    args: &SearchResources,
    coverage: &mut Coverage,
) -> Result<Vec<StoredResource>, ToolError> {
    let owner = ctx.identity().owner();
    let prefix = args.prefix.as_deref().unwrap_or_default();
    let mut listed: Vec<StoredResource> = Vec::new();

    loop {
        let after = listed.last().map(|found| found.entry.uri.as_str());
        let (page, more) =
            ctx.resource_store().list_with_content(owner, prefix, after, PAGE_SIZE).await?;
        listed.extend(page);
        if !more {
            break;
        }
        if listed.len() >= MAX_LISTED {
            coverage.more_listed = true;
            break;
        }
    }

    listed.sort_by(|StoredResource { entry: a, .. }, StoredResource { entry: b, .. }| {
        b.updated.cmp(&a.updated).then_with(|| a.uri.cmp(&b.uri))
    });
    Ok(listed)
}

impl Coverage {
    /// The resources to search within [`MAX_BYTES`].
    fn plan(&mut self, mut listed: Vec<StoredResource>) -> Vec<StoredResource> {
        let mut bytes = 0u64;
        let total = listed.len();

        listed.retain(|StoredResource { entry, .. }| {
            let size = if entry.kind == Kind::Text { entry.size } else { 0 };
            // The plan has at least one text, however large.
            let fits = bytes == 0 || bytes + size <= MAX_BYTES;
            bytes += if fits { size } else { 0 };
            fits
        });

        self.left_out = total - listed.len();
        listed
    }
}

enum Outcome {
    /// Matches in its content or metadata, if any.
    Searched(Option<Hits>),
    /// The resource is binary: only its metadata was searched.
    Binary(Option<Hits>),
    TimedOut,
    Unreadable,
    /// The resource was deleted or expired meanwhile.
    Gone,
}

async fn search_one<S>(
    ctx: &Context<S>,
    query: Arc<Query>,
    listed: StoredResource,
    deadline: Instant,
) -> Result<(Arc<Entry>, Outcome), ToolError> {
    let entry = Arc::clone(&listed.entry);
    let metadata = [Some(&entry.name), entry.title.as_ref(), entry.description.as_ref()];
    let metadata = metadata.into_iter().flatten().map(String::as_str).chain([entry.uri.as_str()]);
    let metadata = metadata.collect::<Vec<_>>().join("\n");
    let metadata_terms = query.terms_in(metadata.as_bytes(), &Stop::default());

    let with_metadata = |mut hits: Hits| {
        hits.add_metadata(metadata_terms);
        (hits.lines > 0 || metadata_terms > 0).then_some(hits)
    };

    if entry.kind == Kind::Binary {
        return Ok((entry, Outcome::Binary(with_metadata(Hits::new(query)))));
    }

    let scan = async |found: &StoredResource| {
        let search = Search::lines(query.matcher(), query.required.clone());
        scan(ctx.identity().owner(), found, search, Hits::new(Arc::clone(&query))).await
    };

    let search = async {
        if !entry.is_expired(ctx.resource_store().now())
            && let Ok(hits) = scan(&listed).await
        {
            return Ok(Ok(hits));
        }
        // The resource may have been deleted or replaced since it was listed.
        let found = ctx.resource_store().get(ctx.identity().owner(), &entry.uri).await?;
        Ok(scan(&found).await)
    };

    let outcome = match timeout_at(deadline, search).await {
        Err(_) => Outcome::TimedOut,
        Ok(Ok(Ok(hits))) => Outcome::Searched(with_metadata(hits)),
        Ok(Ok(Err(_)) | Err(StoreError::Corrupt { .. })) => Outcome::Unreadable,
        Ok(Err(error)) if error.is_not_found() => Outcome::Gone,
        Ok(Err(error)) => return Err(error.into()),
    };

    Ok((entry, outcome))
}

fn result_text(
    args: &SearchResources,
    query: &Query,
    found: &[(Arc<Entry>, Hits)],
    coverage: &Coverage,
    budget: usize,
) -> String {
    let limit = args.limit.unwrap_or(DEFAULT_LIMIT);
    let words = terms(&query.terms);

    let next = next_call(args, limit);

    // The text before the list repeats the query.
    let budget = budget.saturating_sub(words.len() + next.len()).max(HEAD_BYTES);

    let mut list = String::new();
    let mut shown = 0;
    for (index, (entry, hits)) in found.iter().enumerate().take(limit) {
        let item = item(index + 1, entry, hits, query);
        if list.len() + item.len() > budget && shown > 0 {
            break;
        }
        list.push_str(&item);
        shown += 1;
    }

    let scope = args.prefix.as_ref().map_or(String::new(), |p| format!(" under {}", shortened(p)));
    let mut text = match found.len() {
        // "No stored resource" would be a claim about those that were not searched, too.
        0 if !coverage.is_complete() => {
            format!("None of the searched resources{scope} has {words}.")
        }
        0 => format!("No stored resource{scope} has {words}."),
        1 => format!("1 stored resource{scope} has {words}."),
        n => format!(
            "{} stored resources{scope} have some of {words}, the best first.",
            number(n as u64)
        ),
    };

    coverage.describe(&mut text);
    if shown < found.len() {
        let hidden = number((found.len() - shown) as u64);
        let _ = write!(text, " Not complete: {hidden} more are not shown");
        // A higher limit does not help if the budget was the bound.
        if shown == limit && limit < MAX_LIMIT {
            let _ = write!(text, "; next: {next}");
        } else {
            text.push_str("; more words or a prefix narrow the search");
        }
        text.push('.');
    } else if coverage.is_complete() {
        text.push_str(" Complete.");
    }

    if !list.is_empty() {
        let _ = write!(text, "\n{list}");
    }
    text
}

/// The call that shows more resources.
fn next_call(args: &SearchResources, limit: usize) -> String {
    let mut next = json!({ "query": args.query, "limit": (limit * 2).min(MAX_LIMIT) });
    if let Some(prefix) = &args.prefix {
        next["prefix"] = json!(prefix);
    }
    call("search_resources", &next)
}

/// One resource, its best lines, and the call that finds all its lines.
fn item(rank: usize, entry: &Entry, hits: &Hits, query: &Query) -> String {
    let has: Vec<_> = hits.terms().map(str::to_owned).collect();
    let mut item = format!("\n{rank}. {} ({})\n", entry.uri, entry.name);

    if hits.lines == 0 {
        let _ = writeln!(item, "   its name or description has {}", terms(&has));
        let describe = call("describe_resource", &json!({ "uri": entry.uri }));
        let _ = writeln!(item, "   next: {describe}");
        return item;
    }

    let lines = number(entry.lines);
    let _ = writeln!(
        item,
        "   {} of {lines}, with {}",
        count(hits.lines, "matching line"),
        terms(&has)
    );
    for snippet in &hits.best {
        let _ = writeln!(item, "   {}: {}", snippet.line, snippet.text);
    }

    // An escaped query of punctuation can be too long for the other tool.
    if check_length(&query.pattern).is_ok() {
        let search = json!({ "uri": entry.uri, "query": query.pattern });
        let _ = write!(item, "   next: {}", call("search_resource", &search));

        // The first page of all matches may end before the best line.
        let best = hits.best.first();
        if let Some(best) = best.filter(|best| best.rank > FIRST_PAGE_LINES && !best.is_piece) {
            let read = json!({ "uri": entry.uri, "offset": best.line - 1, "limit": 10 });
            let _ = write!(item, " or {}", call("read_resource", &read));
        }
        item.push('\n');
    }
    item
}

fn terms(terms: &[String]) -> String {
    let quoted: Vec<_> = terms.iter().map(|term| quoted(term)).collect();
    quoted.join(", ")
}
