//! `search_resources`: words over all that the caller has stored, ranked.
//!
//! There is no index: what is stored lives for a day, is often written and
//! never searched, and may lie where many servers share it. What is searched
//! is read, the newest first, within bounds that the answer tells.

use std::{fmt::Write, sync::Arc, time::Duration};

use futures_util::{StreamExt, TryStreamExt, stream};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::time::{Instant, timeout_at};

use super::{
    ToolOptions,
    rank::{Hits, Query, rank},
    scan::scan,
    wording::call,
};
use crate::{
    handler::{Context, ToolError},
    preview::words::{count, number},
    registry::Tool,
    store::{Entry, Found, Kind, StoreError},
};

const DEFAULT_LIMIT: usize = 20;
/// Kept for what an answer says of itself.
const HEAD: usize = 1_000;
/// How many resources are looked at, in the order of their URIs.
const LISTED: usize = 10_000;
/// How many are listed at once.
const PAGE: usize = 1_000;
/// How much content is read for one search.
const READ: u64 = 512 << 20;
/// How long reading may go on.
const TIME: Duration = Duration::from_secs(10);
/// How many are read at once.
const AT_ONCE: usize = 4;

/// Finds which of your stored resources have some words, and where: all of
/// them are searched, and the best matches come first, each with its matching
/// lines. To find lines of one resource by a regular expression, use
/// search_resource.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SearchResources {
    /// Words in any case; "in quotes" for a phrase. Resources that have more of
    /// them come first.
    query: String,
    /// Only resources whose URI begins with this, such as results://.
    #[serde(default)]
    prefix: Option<String>,
    /// How many resources to show at most. 20 by default.
    #[serde(default)]
    #[schemars(range(min = 1, max = 200))]
    limit: Option<usize>,
}

pub(super) fn tool<S: Send + Sync + 'static>(options: ToolOptions) -> Tool<S> {
    Tool::new(move |ctx: Context<S>, args: SearchResources| {
        let budget = options.budget(&ctx, HEAD);
        async move { search(&ctx, &args, budget).await }
    })
}

async fn search<S>(
    ctx: &Context<S>,
    args: &SearchResources,
    budget: usize,
) -> Result<String, ToolError> {
    let query = Arc::new(Query::parse(&args.query)?);
    let mut extent = Extent::default();
    let mut found = Vec::new();
    let listed = candidates(ctx, args, &mut extent).await?;
    let plan = extent.plan(listed);
    let deadline = Instant::now() + TIME;
    let searches = plan.into_iter().map(|listed| one(ctx, Arc::clone(&query), listed, deadline));
    let mut searched = stream::iter(searches).buffered(AT_ONCE);
    while let Some((entry, outcome)) = searched.try_next().await? {
        match outcome {
            Outcome::Searched(hits) => {
                extent.searched += 1;
                extent.bytes += entry.size;
                found.extend(hits.map(|hits| (entry, hits)));
            }
            Outcome::NoText(hits) => {
                extent.binary += 1;
                found.extend(hits.map(|hits| (entry, hits)));
            }
            Outcome::TooLate => extent.left_out += 1,
            Outcome::Unreadable => extent.unreadable += 1,
            Outcome::Gone => {}
        }
    }
    rank(&mut found, extent.searched, |entry| entry.size);
    Ok(answer(args, &query, &found, &extent, budget))
}

/// How far a search went.
#[derive(Debug, Default)]
struct Extent {
    searched: usize,
    bytes: u64,
    binary: usize,
    unreadable: usize,
    /// Not searched for want of time, or because there is too much.
    left_out: usize,
    /// There are more than were looked at.
    more_listed: bool,
}

/// The caller's resources, the last written first.
async fn candidates<S>(
    ctx: &Context<S>,
    args: &SearchResources,
    extent: &mut Extent,
) -> Result<Vec<Found>, ToolError> {
    let (owner, prefix) = (ctx.identity().owner(), args.prefix.as_deref().unwrap_or_default());
    let mut listed: Vec<Found> = Vec::new();
    loop {
        let after = listed.last().map(|found| found.entry.uri.as_str());
        let (page, more) = ctx.store().list_found(owner, prefix, after, PAGE).await?;
        listed.extend(page);
        if !more {
            break;
        }
        if listed.len() >= LISTED {
            extent.more_listed = true;
            break;
        }
    }
    listed.sort_by(|Found { entry: a, .. }, Found { entry: b, .. }| {
        b.updated.cmp(&a.updated).then_with(|| a.uri.cmp(&b.uri))
    });
    Ok(listed)
}

impl Extent {
    /// As many of them as may be read.
    fn plan(&mut self, mut listed: Vec<Found>) -> Vec<Found> {
        let mut bytes = 0u64;
        let all = listed.len();
        listed.retain(|Found { entry, .. }| {
            let size = if entry.kind == Kind::Text { entry.size } else { 0 };
            // One at least, however large.
            let fits = bytes == 0 || bytes + size <= READ;
            bytes += if fits { size } else { 0 };
            fits
        });
        self.left_out = all - listed.len();
        listed
    }
}

enum Outcome {
    /// What its content, or else its name, has of the query.
    Searched(Option<Hits>),
    /// It is binary: only its name was looked at.
    NoText(Option<Hits>),
    TooLate,
    Unreadable,
    /// It went meanwhile.
    Gone,
}

async fn one<S>(
    ctx: &Context<S>,
    query: Arc<Query>,
    listed: Found,
    deadline: Instant,
) -> Result<(Arc<Entry>, Outcome), ToolError> {
    let entry = Arc::clone(&listed.entry);
    let told = [Some(&entry.name), entry.title.as_ref(), entry.description.as_ref()];
    let told = told.into_iter().flatten().map(String::as_str).chain([entry.uri.as_str()]);
    let named = query.terms_in(told.collect::<Vec<_>>().join("\n").as_bytes());
    let noted = |mut hits: Hits| {
        hits.note_name(named);
        (hits.lines > 0 || named > 0).then_some(hits)
    };
    if entry.kind == Kind::Binary {
        return Ok((entry, Outcome::NoText(noted(Hits::new(query)))));
    }
    let scan =
        async |found: &Found| scan(found, query.matcher(), 0, Hits::new(Arc::clone(&query))).await;
    let search = async {
        if !entry.is_expired(ctx.store().now())
            && let Ok(hits) = scan(&listed).await
        {
            return Ok(Ok(hits));
        }
        // It may have gone since it was listed, or have been replaced.
        let found = ctx.store().get(ctx.identity().owner(), &entry.uri).await?;
        Ok(scan(&found).await)
    };
    let outcome = match timeout_at(deadline, search).await {
        Err(_) => Outcome::TooLate,
        Ok(Ok(Ok(hits))) => Outcome::Searched(noted(hits)),
        Ok(Ok(Err(_)) | Err(StoreError::Corrupt { .. })) => Outcome::Unreadable,
        Ok(Err(gone)) if gone.is_not_found() => Outcome::Gone,
        Ok(Err(error)) => return Err(error.into()),
    };
    Ok((entry, outcome))
}

fn answer(
    args: &SearchResources,
    query: &Query,
    found: &[(Arc<Entry>, Hits)],
    extent: &Extent,
    budget: usize,
) -> String {
    let limit = args.limit.unwrap_or(DEFAULT_LIMIT);
    let mut list = String::new();
    let mut shown = 0;
    for (at, (entry, hits)) in found.iter().enumerate().take(limit) {
        let item = item(at + 1, entry, hits, query);
        if list.len() + item.len() > budget && shown > 0 {
            break;
        }
        list.push_str(&item);
        shown += 1;
    }
    let what = args.prefix.as_ref().map_or(String::new(), |p| format!(" under {p}"));
    let mut text = match found.len() {
        0 => format!("No stored resource{what} has {}.", terms(&query.terms)),
        1 => format!("1 stored resource{what} has {}.", terms(&query.terms)),
        n => format!(
            "{} stored resources{what} have some of {}, the best first.",
            number(n as u64),
            terms(&query.terms)
        ),
    };
    let searched = count(extent.searched as u64, "text");
    let _ = write!(text, " Searched: {searched}, {}.", count(extent.bytes, "byte"));
    let mut not = Vec::new();
    let mut skipped = |n: usize, why: &str| {
        if n > 0 {
            not.push(format!("{} {why}", number(n as u64)));
        }
    };
    skipped(
        extent.left_out,
        "older ones, for want of time or because there is too much (a prefix narrows it)",
    );
    skipped(extent.binary, "binary, of which only names were looked at");
    skipped(extent.unreadable, "that could not be read");
    if extent.more_listed {
        let listed = number(LISTED as u64);
        not.push(format!("whatever comes after the first {listed} by URI (a prefix narrows it)"));
    }
    if !not.is_empty() {
        let _ = write!(text, " NOT searched: {}.", not.join("; "));
    }
    let all_searched = extent.left_out + extent.unreadable == 0 && !extent.more_listed;
    if shown < found.len() {
        let left = number((found.len() - shown) as u64);
        let _ = write!(text, " Not complete: {left} more are not shown");
        // Only what the limit cut off comes with a higher one.
        if shown == limit && limit < 200 {
            let mut on = json!({ "query": args.query, "limit": (limit * 2).min(200) });
            if let Some(prefix) = &args.prefix {
                on["prefix"] = json!(prefix);
            }
            let _ = write!(text, "; next: {}", call("search_resources", &on));
        } else {
            text.push_str("; more words or a prefix narrow it");
        }
        text.push('.');
    } else if all_searched {
        text.push_str(" Complete.");
    }
    if !list.is_empty() {
        let _ = write!(text, "\n{list}");
    }
    text
}

/// One resource, its best lines, and the call that finds all of them.
fn item(place: usize, entry: &Entry, hits: &Hits, query: &Query) -> String {
    let has: Vec<_> = hits.terms().map(str::to_owned).collect();
    let mut item = format!("\n{place}. {} ({})\n", entry.uri, entry.name);
    if hits.lines == 0 {
        let _ = writeln!(item, "   its name or description has {}", terms(&has));
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
    let search = json!({ "uri": entry.uri, "query": query.pattern });
    let _ = writeln!(item, "   next: {}", call("search_resource", &search));
    item
}

fn terms(terms: &[String]) -> String {
    let quoted: Vec<_> = terms.iter().map(|term| format!("{term:?}")).collect();
    quoted.join(", ")
}
