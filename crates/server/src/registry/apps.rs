//! The data of registered tools for clients with MCP Apps (MCP Apps, 2026-01-26).

use larder_protocol::APPS_META;
use rmcp::model;
use serde_json::Value;

/// Whether the tool has data for MCP Apps.
pub(super) fn has_app(tool: &model::Tool) -> bool {
    tool.meta.as_ref().is_some_and(|meta| meta.0.contains_key(APPS_META))
}

/// Whether only pages may call the tool, and no model.
pub(super) fn is_app_only(tool: &model::Tool) -> bool {
    let settings = tool.meta.as_ref().and_then(|meta| meta.0.get(APPS_META));
    let visibility = settings.and_then(|ui| ui.get("visibility")).and_then(Value::as_array);
    visibility.is_some_and(|seen_by| !seen_by.is_empty() && seen_by.iter().all(|who| who == "app"))
}

/// Removes the data for MCP Apps.
pub(super) fn remove_app(tool: &mut model::Tool) {
    if let Some(meta) = &mut tool.meta {
        meta.0.shift_remove(APPS_META);
        if meta.0.is_empty() {
            tool.meta = None;
        }
    }
}
