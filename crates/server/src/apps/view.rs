//! [`View`]: the ways to show content, and which of them fit a resource.

use larder_records::{Layout, essence};
use larder_store::store::{Kind, StoreError, StoredResource};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A way to show content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum View {
    /// Markdown as a page.
    Markdown,
    /// Records as rows.
    Table,
    /// A tree of JSON values.
    Json,
    /// Numbered lines.
    Log,
    /// A picture.
    Image,
    /// Pages.
    Pdf,
    /// The changes since another revision or resource.
    Diff,
    /// Curves of numeric columns.
    Chart,
    /// Bytes in hexadecimal.
    Bytes,
}

/// The views that fit, the best one first.
pub(super) async fn fitting(found: &StoredResource) -> Result<Vec<View>, StoreError> {
    let entry = &found.entry;
    let media_type = &*essence(&entry.mime_type);
    let is_image = media_type.starts_with("image/");

    if entry.kind == Kind::Binary {
        return Ok(match media_type {
            "application/pdf" => vec![View::Pdf, View::Bytes],
            _ if is_image => vec![View::Image, View::Bytes],
            _ => vec![View::Bytes],
        });
    }

    let mut views = match found.layout().await? {
        Some(Layout::Json) => vec![View::Table, View::Json, View::Chart, View::Log],
        Some(Layout::JsonLines | Layout::Rows(_)) => vec![View::Table, View::Chart, View::Log],
        Some(Layout::Log) | None => vec![View::Log],
    };

    if is_image {
        views.insert(0, View::Image);
    }
    if matches!(media_type, "text/markdown" | "text/x-markdown") {
        views.insert(0, View::Markdown);
    }
    views.extend([View::Diff, View::Bytes]);
    Ok(views)
}
