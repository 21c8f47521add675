//! [`Info`]: what a page knows about a resource before it reads a part.

use larder_store::store::{Kind, StoredResource};
use serde::Serialize;

use super::{
    AppOptions,
    columns::Column,
    table::{self, Records},
    view::{self, View},
};
use crate::handler::{Context, ToolError};

/// Metadata of a resource, and how it is shown.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Info {
    pub(super) uri: String,
    pub(super) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) description: Option<String>,

    pub(super) mime_type: String,
    /// Whether it is text.
    pub(super) text: bool,
    /// In bytes.
    pub(super) size: u64,
    pub(super) lines: u64,

    pub(super) revision: u64,
    /// The stored revisions, the oldest first.
    pub(super) revisions: Vec<u64>,
    pub(super) updated: String,
    pub(super) expires: String,

    /// The view to begin with.
    pub(super) r#as: View,
    /// All views that fit.
    pub(super) views: Vec<View>,

    /// The number of records, and what they have in common.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) records: Option<Records>,
    /// Whether rows can be sorted and filtered.
    pub(super) sorts: bool,
    /// Whether lines can be searched.
    pub(super) searches: bool,

    /// The other side of a comparison.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) against: Option<Against>,
    /// Seconds between two looks for a new revision.
    pub(super) poll: f64,
}

/// The other side of a comparison.
#[derive(Debug, Serialize)]
pub(super) struct Against {
    pub(super) uri: String,
    pub(super) revision: u64,
    pub(super) size: u64,
}

/// Describes a resource for the page. Reads the first records at most.
pub(super) async fn describe<S>(
    ctx: &Context<S>,
    found: &StoredResource,
    wanted: Option<View>,
    options: &AppOptions,
) -> Result<Info, ToolError> {
    let entry = &found.entry;
    let mut views = view::fitting(found).await?;
    let records = if views.contains(&View::Table) {
        table::describe(ctx.identity().owner(), found).await?
    } else {
        None
    };

    let is_table = records.as_ref().is_some_and(|(_, is_table)| *is_table);
    let is_numeric = records.as_ref().is_some_and(|(r, _)| r.columns.iter().any(Column::is_number));
    views.retain(|view| match view {
        View::Table => is_table,
        View::Chart => is_table && is_numeric,
        _ => true,
    });

    let stored = ctx.revisions(entry.uri.as_str()).await.unwrap_or_default();
    let mut revisions: Vec<u64> = stored.iter().map(|found| found.entry.revision).collect();
    revisions.sort_unstable();

    let best = views.first().copied().unwrap_or(View::Bytes);
    let is_text = entry.kind == Kind::Text;

    Ok(Info {
        uri: entry.uri.to_string(),
        name: entry.name.clone(),
        title: entry.title.clone(),
        description: entry.description.clone(),
        mime_type: entry.mime_type.clone(),
        text: is_text,
        size: entry.size,
        lines: entry.lines,
        revision: entry.revision,
        revisions,
        updated: entry.updated.to_string(),
        expires: entry.expires.to_string(),
        r#as: wanted.filter(|view| views.contains(view)).unwrap_or(best),
        views,
        records: records.map(|(records, _)| records),
        sorts: options.sorts(),
        searches: is_text,
        against: None,
        poll: options.poll.as_secs_f64(),
    })
}
