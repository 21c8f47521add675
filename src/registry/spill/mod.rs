//! Results that are too large for an answer: put by as resources of the
//! caller's, and replaced by a preview that says what is where.
//!
//! The rules come from what hosts do with results. Some show a model the
//! structured content alone, some neither links nor resources: so the URI, the
//! size, whether it is complete and the next call stand in plain text and, where
//! a tool has structured content, there as well; the link comes in addition.
//! What is sent always fits the schema that is listed.

mod answer;
mod keep;
mod lines;
mod look;
mod parts;
mod rules;
mod schema;

use std::sync::Arc;

use rmcp::model::CallToolResult;

pub use rules::{OutputRules, Spill};
pub(super) use schema::admit;

use keep::Kept;
use parts::Parts;

use super::{IntoToolResult, Registry, Scope, ToolError};
use crate::auth::Grant;

/// The tool that reads what was put by. Where a caller has no such tool, a
/// model could not come at it, so nothing is put by of its own accord.
const READING: &str = "read_resource";

/// Where a call's result goes if it is too large.
pub struct Spilling {
    scope: Arc<Scope>,
    /// How much text one answer may have.
    output_bytes: usize,
    /// How much of pictures and sounds, as they are sent.
    media_bytes: usize,
    /// Whether it goes there although the caller may have no tool to read it.
    unread: bool,
}

impl Spilling {
    /// For a call of that scope.
    pub fn of(scope: &Arc<Scope>) -> Self {
        let registry = &scope.registry;
        Self {
            scope: Arc::clone(scope),
            output_bytes: registry.output_bytes(&scope.client),
            media_bytes: registry.output.load().media_bytes,
            unread: false,
        }
    }

    /// Also for a caller who has no tool to read it, because what holds the
    /// result has a bound of its own.
    #[must_use]
    pub fn even_unread(self) -> Self {
        Self { unread: true, ..self }
    }
}

impl Registry {
    /// The tool's result as it may be sent: itself, or what stands for it.
    pub async fn bounded(
        &self,
        tool: &str,
        result: CallToolResult,
        to: &Spilling,
    ) -> CallToolResult {
        let unknown = if to.unread { Spill::Auto } else { Spill::Never };
        let policy = self.spill_of(tool).unwrap_or(unknown);
        let spills = match policy {
            Spill::Never => false,
            Spill::Auto => {
                parts::is_over(&result, to.output_bytes, to.media_bytes)
                    && (to.unread || self.offers(to.scope.identity.grant(), READING))
            }
            Spill::Always => true,
        };
        if !spills {
            return result;
        }
        // On the heap, so that calls which spill nothing need no room for it.
        Box::pin(self.spill(tool, result, to, policy == Spill::Always)).await
    }

    /// Puts by what is too large, or everything.
    async fn spill(
        &self,
        tool: &str,
        result: CallToolResult,
        to: &Spilling,
        all: bool,
    ) -> CallToolResult {
        let fits = !parts::is_over(&result, to.output_bytes, to.media_bytes);
        let whole = fits.then(|| result.clone());
        let with_links = !self.has_ui(tool);
        let is_error = result.is_error;
        let meta = result.meta.clone();
        let parts = Parts::of(result, to.output_bytes, to.media_bytes, all);
        if parts.large.is_empty() {
            return parts.back(is_error, meta);
        }
        let structured = parts.structured;
        match keep::keep(tool, parts.large, to).await {
            Ok(kept) => {
                let offers = |tool| self.offers(to.scope.identity.grant(), tool);
                let said = answer::Answer {
                    tool,
                    reads: offers(READING),
                    searches: offers("search_resource"),
                    kept: &kept,
                    is_error: is_error == Some(true),
                };
                said.compose(parts.small, parts.value, structured, with_links, meta)
            }
            // What the author wanted stored and fits all the same is sent.
            Err(refused) => whole.unwrap_or_else(|| {
                ToolError::new(refused.message(tool, to.output_bytes)).into_tool_result()
            }),
        }
    }

    fn has_ui(&self, tool: &str) -> bool {
        let tool = self.catalog().tools.get(tool).cloned();
        tool.and_then(|tool| tool.listed.meta.as_ref().map(|meta| meta.0.contains_key("ui")))
            .unwrap_or(false)
    }

    /// Whether the caller has that tool.
    fn offers(&self, grant: &Grant, tool: &str) -> bool {
        self.catalog().tools.get(tool).is_some_and(|tool| self.shows(grant, &**tool))
    }
}
