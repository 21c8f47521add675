//! Stores results that are larger than the output budget as resources of the
//! caller, and replaces them by a preview.
//!
//! Hosts differ: some show a model only the structured content, some show
//! neither links nor resources. So the text, and the structured content of a
//! tool that has it, both contain the URI, the size, whether the preview is
//! complete, and the next calls. A resource link is added. The result always
//! matches the listed output schema.

mod again;
mod changes;
mod copies;
mod difference;
mod excerpts;
mod items;
pub(crate) mod left_out;
mod lists;
mod part;
mod parts;
mod preview_result;
mod received;
pub(crate) mod record_columns;
mod sizes;
mod store_parts;
pub(crate) mod tool_calls;
mod unique_names;
mod whole;

use std::sync::Arc;

use rmcp::model::CallToolResult;

pub(crate) use difference::difference;
use larder_runtime::compute::{Compute, INLINE_BYTES};
use parts::Parts;
use preview_result::NextTools;
pub(crate) use preview_result::structured_resource;
use received::Received;
use store_parts::{StorePartsError, Storing, store_parts};
pub(crate) use unique_names::has_unique_names;
pub(crate) use whole::Whole;

use crate::{
    handler::{Context, IntoToolResult, Longest, Receiving, Scope, ToolError},
    registry::{QUERYING_TOOL, READING_TOOL, Registry, SEARCHING_TOOL, Spill},
};

/// Bounds the results of one call.
pub struct Spiller {
    scope: Arc<Scope>,
    /// The most bytes of text in one result.
    output_bytes: usize,
    /// The most bytes of images and audio in one result, in base64.
    media_bytes: usize,
    /// Whether it stores results even if the caller has no tool to read them.
    without_reader: bool,
}

impl Spiller {
    /// A spiller for the results of that call.
    pub fn new(scope: &Arc<Scope>) -> Self {
        let registry = Registry::from_scope(scope);
        Self {
            output_bytes: registry.output_bytes(&scope.client),
            media_bytes: registry.media_bytes(),
            scope: Arc::clone(scope),
            without_reader: false,
        }
    }

    /// Stores results even if the caller has no tool to read them. For results
    /// that become part of another result, which is bounded itself.
    #[must_use]
    pub fn without_reader(self) -> Self {
        Self { without_reader: true, ..self }
    }

    /// Lets the long strings of an upstream's result be stored while they arrive, if
    /// [`Spiller::bounded`] would store them.
    pub fn receive(&self, tool: &str) {
        if !Registry::from_scope(&self.scope).may_be_provided(tool) {
            return;
        }

        let Self { output_bytes, media_bytes, without_reader, .. } = *self;
        let scope = Arc::downgrade(&self.scope);
        let tool = tool.to_owned();

        self.scope.control.receive(Box::new(move || {
            let scope = scope.upgrade()?;
            Self { scope, output_bytes, media_bytes, without_reader }.receiving(&tool)
        }));
    }

    /// How long strings of the tool's result are stored while they arrive. `None` if they are not.
    fn receiving(&self, tool: &str) -> Option<Receiving> {
        Registry::from_scope(&self.scope).origin_of(tool)?;

        let stores = match self.policy(tool) {
            Spill::Never => false,
            Spill::Auto => self.is_readable(),
            Spill::Always => true,
        };

        let longest = Longest { text: self.output_bytes, media: self.media_bytes };
        if stores { Receiving::new(&self.scope, tool, longest) } else { None }
    }

    /// The tool's result, or a preview of it if the result must be stored.
    pub async fn bounded(&self, tool: &str, result: CallToolResult) -> CallToolResult {
        let received = Received::new(self.scope.control.take_received());
        self.bounded_with(tool, result, received).await
    }

    /// The tool's result, or a preview of it, with the parts that have been stored already.
    async fn bounded_with(
        &self,
        tool: &str,
        result: CallToolResult,
        received: Received,
    ) -> CallToolResult {
        let policy = self.policy(tool);

        let is_over = || sizes::is_over(&result, self.output_bytes, self.media_bytes);
        let spills = match policy {
            _ if !received.is_empty() => true,
            Spill::Never => false,
            Spill::Auto => is_over() && self.is_readable(),
            Spill::Always => true,
        };

        if !spills {
            return result;
        }

        // The future is boxed, so that the futures of other calls stay small.
        Box::pin(self.spill(tool, result, received, policy == Spill::Always)).await
    }

    fn policy(&self, tool: &str) -> Spill {
        let unregistered = if self.without_reader { Spill::Auto } else { Spill::Never };
        Registry::from_scope(&self.scope).spill_of(tool).unwrap_or(unregistered)
    }

    /// Whether the caller can read what is stored, or need not.
    fn is_readable(&self) -> bool {
        self.without_reader || self.offers(READING_TOOL)
    }

    /// Stores all of a result that is no error, whatever its size.
    ///
    /// # Errors
    /// The result to send, if it has nothing to store or cannot be stored.
    pub(crate) async fn store_whole(
        &self,
        tool: &str,
        result: CallToolResult,
    ) -> Result<Whole, CallToolResult> {
        let received = Received::new(self.scope.control.take_received());
        Box::pin(self.store(tool, result, received, true)).await
    }

    /// Stores the parts that are too large, or all parts, and replaces them by previews.
    async fn spill(
        &self,
        tool: &str,
        result: CallToolResult,
        received: Received,
        all: bool,
    ) -> CallToolResult {
        match self.store(tool, result, received, all).await {
            Ok(whole) => whole.into_preview(),
            Err(unstored) => unstored,
        }
    }

    /// Stores the parts that are too large, or all parts.
    ///
    /// # Errors
    /// The result to send, if there are none or they cannot be stored.
    async fn store(
        &self,
        tool: &str,
        result: CallToolResult,
        received: Received,
        all: bool,
    ) -> Result<Whole, CallToolResult> {
        let fits =
            received.is_empty() && !sizes::is_over(&result, self.output_bytes, self.media_bytes);
        let original = fits.then(|| result.clone());

        let registry = Registry::from_scope(&self.scope);
        let is_error = result.is_error;

        // A result that fits is sent if it cannot be stored.
        let failed = |error: StorePartsError| {
            original.unwrap_or_else(|| {
                ToolError::new(error.message(tool, self.output_bytes)).into_tool_result()
            })
        };

        let text_bytes = self.output_bytes;
        let media_bytes = self.media_bytes;
        let owner = self.scope.identity.owner().as_str();
        let bytes = sizes::bytes(&result, INLINE_BYTES + 1);
        let exact = self.scope.control.exact_content(result.structured_content.as_ref());
        let received = received.with_exact_content(exact);
        let is_provided = registry.may_be_provided(tool);
        let split = move || {
            let reason = if is_provided { left_out::left_out(&result, &received) } else { None };
            (Parts::split(result, received, text_bytes, media_bytes, all), reason)
        };
        let (parts, left_out) = match Compute::run(owner, bytes, split).done().await {
            Ok(parts) => parts,
            Err(busy) => return Err(failed(StorePartsError::Store(busy.into()))),
        };

        if parts.large.is_empty() {
            return Err(parts.into_result(is_error));
        }

        let Parts { large, small, value, structured, meta } = parts;
        let preview_bytes = registry.preview_bytes().min(self.output_bytes);
        let storing =
            Storing { scope: &self.scope, output_bytes: self.output_bytes, preview_bytes };
        let stored = store_parts(tool, large, &storing).await.map_err(failed)?;

        Ok(Whole {
            tool: tool.to_owned(),
            stored,
            small,
            value,
            meta,
            // Clients expect structured content of a tool that lists its schema.
            structured: structured || registry.lists_output_schema(tool),
            with_links: !registry.has_ui(tool),
            is_error: is_error == Some(true),
            next: NextTools {
                read: registry.reach(&self.scope, READING_TOOL),
                search: registry.reach(&self.scope, SEARCHING_TOOL),
                query: registry.reach(&self.scope, QUERYING_TOOL),
            },
            preview_bytes,
            left_out,
            remark: None,
        })
    }

    /// Whether the caller may use the tool.
    fn offers(&self, tool: &str) -> bool {
        Registry::from_scope(&self.scope).offers(self.scope.identity.grant(), tool)
    }
}

impl<S> Context<S> {
    /// Stores a tool's result if it is larger than [`Context::output_bytes`] or than the
    /// room that is left for it, and replaces it by a preview.
    pub(crate) async fn bounded(
        &self,
        tool: &str,
        result: CallToolResult,
        text_bytes: usize,
        media_bytes: usize,
    ) -> CallToolResult {
        let mut spiller = Spiller::new(self.scope()).without_reader();
        spiller.output_bytes = spiller.output_bytes.min(text_bytes);
        spiller.media_bytes = spiller.media_bytes.min(media_bytes);
        spiller.bounded(tool, result).await
    }
}
