//! `describe_resource`

use std::fmt::Write;

use larder_oauth::Owner;
use larder_records::{Conversion, words::count};
use larder_store::store::{Entry, Form, Kind, StoreError, StoredResource, TextView};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{ToolOptions, record_facts, wording::call_at_revision};
use crate::{
    handler::{Context, ToolError},
    registry::Tool,
    spill::tool_calls::{READ_AT_ONCE, arguments_after, search_arguments},
};

/// Reserved for the facts before the preview.
const HEAD_BYTES: usize = 800;
/// The most bytes of the preview.
const PREVIEW_BYTES: usize = 3_000;

/// Describes a stored resource: size, expiry, records, columns and their types, first and last
/// lines, revisions.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DescribeResource {
    /// The URI.
    uri: String,
    /// An earlier one.
    #[serde(default)]
    #[schemars(range(min = 1))]
    revision: Option<u64>,
}

pub(super) fn tool<S: Send + Sync + 'static>(options: ToolOptions) -> Tool<S> {
    Tool::new(move |ctx: Context<S>, args: DescribeResource| {
        let budget = options.budget(&ctx, HEAD_BYTES).min(PREVIEW_BYTES);
        async move { describe(&ctx, &args, budget).await }
    })
}

async fn describe<S>(
    ctx: &Context<S>,
    args: &DescribeResource,
    budget: usize,
) -> Result<String, ToolError> {
    let uri = &args.uri;
    let revision = args.revision;
    let found = ctx.read_any_revision(uri, revision).await?;
    let entry = &found.entry;

    let owner = ctx.identity().owner();
    let (view, encoding) = text_view(&found, owner).await?;
    let shown = view.as_ref().map_or(&found, |view| &view.text);

    let form = shown.form(None, None).await?;
    let conversion = form.and_then(|form| form.conversion);
    let facts = match conversion.filter(|conversion| conversion.is_for_queries()) {
        Some(conversion) => of_query(conversion, uri, revision),
        None => of_records(owner, shown, form, budget / 2).await?,
    };
    let (preview, head) = shown.preview_and_head(budget.saturating_sub(facts.len())).await?;
    let read = arguments_after(&shown.entry, &preview, &head, READ_AT_ONCE);

    let mut text = format!("{}\nname: {}\n", entry.uri, entry.name);
    let mut line = |label: &str, value: &dyn std::fmt::Display| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{label}: {value}");
    };

    if let Some(title) = &entry.title {
        line("title", title);
    }
    if let Some(description) = &entry.description {
        line("description", description);
    }
    line("type", &entry.mime_type);
    line("size", &count(entry.size, "byte"));
    if let Some(encoding) = encoding {
        line("text", &encoding);
    }

    let read = call_at_revision("read_resource", read, revision);
    let next = match shown.entry.kind {
        Kind::Text => {
            line("lines", &count(shown.entry.lines, "line"));
            let search = call_at_revision("search_resource", search_arguments(uri), revision);
            format!("{read} or {search}")
        }
        Kind::Binary => {
            line("lines", &"none, it is binary");
            read
        }
    };

    line("sha256", &entry.sha256);
    line("revision", &revisions(ctx, entry).await);
    line("created", &entry.created);
    line("updated", &entry.updated);
    line("expires", &entry.expires);
    line("next", &next);

    text.push_str(&facts);
    preview.write_to(&mut text);
    Ok(text)
}

/// The text of compressed content and of other encodings, and what it is or why it cannot be read.
async fn text_view(
    found: &StoredResource,
    owner: &Owner,
) -> Result<(Option<TextView>, Option<String>), ToolError> {
    match found.text_view(owner).await {
        Ok(view) => {
            let fact = view.as_ref().map(|TextView { text, encoding, .. }| {
                format!("{}; {} as UTF-8", encoding.told(), count(text.entry.size, "byte"))
            });
            Ok((view, fact))
        }
        Err(StoreError::Undecodable { fault, .. }) => {
            Ok((None, Some(format!("cannot be read: {fault}"))))
        }
        Err(error) => Err(error.into()),
    }
}

/// Facts that the records of a text have in common, and how they are read; empty if it has none.
async fn of_records(
    owner: &Owner,
    shown: &StoredResource,
    form: Option<Form>,
    budget: usize,
) -> Result<String, ToolError> {
    let Some(view) = shown.record_view_of(owner, form).await? else {
        let facts = record_facts::describe(owner, shown, None, budget).await?;
        return Ok(facts.unwrap_or_default());
    };

    let told: Vec<_> = view.notes.iter().map(|note| note.line(false)).collect();
    let told = if told.is_empty() { "deeply nested JSON".to_owned() } else { told.join("; ") };
    // A filter reads JSON as it is, where a strict parser does.
    let root = view.is_for_tables.then_some(".");
    let facts = record_facts::describe(owner, &view.records, root, budget).await?;
    Ok(format!("records are read after a change: {told}\n{}", facts.unwrap_or_default()))
}

/// How queries read content whose records they alone have.
fn of_query(conversion: Conversion, uri: &str, revision: Option<u64>) -> String {
    let query = json!({ "from": uri, "sql": "SELECT * FROM t" });
    let query = call_at_revision("query_resource", query, revision);
    format!("records: of {}, for queries: {query}\n", conversion.name())
}

/// `3; kept: 1 (5 bytes, written at …), 2 (…), 3 (…)`; the number alone if the
/// resource has one revision.
async fn revisions<S>(ctx: &Context<S>, entry: &Entry) -> String {
    // Resources that the server registers have no other revisions.
    let stored = ctx.revisions(entry.uri.as_str()).await.unwrap_or_default();
    if stored.len() < 2 {
        return entry.revision.to_string();
    }

    let each = stored.iter().map(|found| {
        let Entry { revision, size, updated, .. } = &*found.entry;
        format!("{revision} ({}, written at {updated})", count(*size, "byte"))
    });
    format!("{}; kept: {}", entry.revision, each.collect::<Vec<_>>().join(", "))
}
