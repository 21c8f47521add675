//! Stores results that are over the budget of an answer as resources of the
//! caller, and replaces them by a preview.
//!
//! Hosts differ: some show a model the structured content only, some show
//! neither links nor resources. So the URI, the size, whether the preview is
//! complete, and the next call are in the text and in the structured content
//! of a tool that has it; the resource link is an addition. What is sent
//! always matches the listed output schema.

mod answer;
mod keep;
mod lines;
mod look;
mod parts;

use std::sync::Arc;

use rmcp::model::CallToolResult;

use keep::Kept;
use parts::Parts;

use crate::{
    handler::{Context, IntoToolResult, Scope, ToolError},
    registry::{READING_TOOL, Registry, Spill},
};

/// Bounds the results of one call.
pub struct Spiller {
    scope: Arc<Scope>,
    /// The most bytes of text in one result.
    output_bytes: usize,
    /// The most bytes of images and audio in one result, in base64.
    media_bytes: usize,
    /// Whether it stores a result although the caller has no tool to read it.
    even_unread: bool,
}

impl Spiller {
    /// For a call of that scope.
    pub fn new(scope: &Arc<Scope>) -> Self {
        let registry = Registry::from_scope(scope);
        Self {
            output_bytes: registry.output_bytes(&scope.client),
            media_bytes: registry.media_bytes(),
            scope: Arc::clone(scope),
            even_unread: false,
        }
    }

    /// Stores results even if the caller has no tool to read them, because the
    /// result becomes part of another one that is bounded itself.
    #[must_use]
    pub fn even_unread(self) -> Self {
        Self { even_unread: true, ..self }
    }

    /// The tool's result as it may be sent: unchanged, or a preview of it.
    pub async fn bounded(&self, tool: &str, result: CallToolResult) -> CallToolResult {
        let unregistered = if self.even_unread { Spill::Auto } else { Spill::Never };
        let policy = Registry::from_scope(&self.scope).spill_of(tool).unwrap_or(unregistered);
        let spills = match policy {
            Spill::Never => false,
            Spill::Auto => {
                parts::is_over(&result, self.output_bytes, self.media_bytes)
                    && (self.even_unread || self.offers(READING_TOOL))
            }
            Spill::Always => true,
        };
        if !spills {
            return result;
        }
        // On the heap, so that calls which spill nothing need no room for it.
        Box::pin(self.spill(tool, result, policy == Spill::Always)).await
    }

    /// Stores the parts that are too large, or all of them.
    async fn spill(&self, tool: &str, result: CallToolResult, all: bool) -> CallToolResult {
        let fits = !parts::is_over(&result, self.output_bytes, self.media_bytes);
        let whole = fits.then(|| result.clone());
        let with_links = !Registry::from_scope(&self.scope).has_ui(tool);
        let is_error = result.is_error;
        let meta = result.meta.clone();
        let parts = Parts::of(result, self.output_bytes, self.media_bytes, all);
        if parts.large.is_empty() {
            return parts.back(is_error, meta);
        }
        let structured = parts.structured;
        match keep::keep(tool, parts.large, self).await {
            Ok(kept) => {
                let said = answer::Answer {
                    tool,
                    reads: self.offers(READING_TOOL),
                    searches: self.offers("search_resource"),
                    kept: &kept,
                    is_error: is_error == Some(true),
                };
                said.compose(parts.small, parts.value, structured, with_links, meta)
            }
            // A result that the author wants stored, but that fits, is sent.
            Err(refused) => whole.unwrap_or_else(|| {
                ToolError::new(refused.message(tool, self.output_bytes)).into_tool_result()
            }),
        }
    }

    /// Whether the caller has that tool.
    fn offers(&self, tool: &str) -> bool {
        Registry::from_scope(&self.scope).offers(self.scope.identity.grant(), tool)
    }
}

impl<S> Context<S> {
    /// A tool's result as an answer can hold it: one that is larger than
    /// [`Context::output_bytes`] is stored and replaced by a preview.
    pub async fn bounded(&self, tool: &str, result: CallToolResult) -> CallToolResult {
        Spiller::new(self.scope()).even_unread().bounded(tool, result).await
    }
}
