//! [`Whole`]: a result that is stored, and what is sent of it.

use larder_store::store::{Entry, Kind};
use rmcp::model::{CallToolResult, ContentBlock, MetaObject};
use serde_json::Value;

#[cfg(feature = "query")]
use super::left_out::left_out_warning;
use super::{
    preview_result::{NextTools, PreviewResult},
    store_parts::StoredPart,
};

/// A stored result.
pub(crate) struct Whole {
    pub(super) tool: String,
    pub(super) stored: Vec<StoredPart>,
    /// The content blocks that are not stored.
    pub(super) small: Vec<ContentBlock>,
    /// The structured content, if it is not stored.
    pub(super) value: Option<Value>,
    pub(super) meta: Option<MetaObject>,
    /// Whether the answer has structured content.
    pub(super) structured: bool,
    pub(super) with_links: bool,
    pub(super) is_error: bool,
    /// The tools that the caller may use.
    pub(super) next: NextTools,
    pub(super) preview_bytes: usize,
    /// Why the server behind the tool did not send all.
    pub(super) left_out: Option<String>,
    /// A sentence about an earlier result of the same call.
    pub(super) remark: Option<String>,
}

impl Whole {
    /// The part that a projection reads: the largest one that has records, or else the largest
    /// text. `None` if there is no text.
    pub(crate) fn main(&self) -> Option<&Entry> {
        let entries = self.stored.iter().map(|part| &*part.entry);
        let texts = entries.filter(|entry| entry.kind == Kind::Text);
        texts.max_by_key(|entry| (entry.records.is_some(), entry.size))
    }

    /// The number of other parts.
    pub(crate) fn others(&self) -> usize {
        self.stored.len().saturating_sub(1)
    }

    /// The URIs of the other parts.
    #[cfg(feature = "query")]
    pub(crate) fn other_uris(&self) -> Vec<&str> {
        let main = self.main().map(|entry| entry.uri.as_str());
        let uris = self.stored.iter().map(|part| part.entry.uri.as_str());
        uris.filter(|uri| Some(*uri) != main).collect()
    }

    /// Says that the server behind the tool did not send all, if that shows.
    #[cfg(feature = "query")]
    pub(crate) fn warning(&self) -> Option<String> {
        self.left_out.as_deref().map(left_out_warning)
    }

    /// Whether the answer has structured content.
    #[cfg(feature = "query")]
    pub(crate) fn is_structured(&self) -> bool {
        self.structured
    }

    /// Takes the blocks and the metadata that are not stored.
    #[cfg(feature = "query")]
    pub(crate) fn into_unstored(self) -> (Vec<ContentBlock>, Option<MetaObject>) {
        (self.small, self.meta)
    }

    /// The previews in place of what is stored.
    pub(crate) fn into_preview(self) -> CallToolResult {
        let preview = PreviewResult {
            tool: &self.tool,
            next: self.next,
            stored: &self.stored,
            preview_bytes: self.preview_bytes,
            is_error: self.is_error,
            left_out: self.left_out.as_deref(),
            remark: self.remark.as_deref(),
        };
        preview.compose(self.small, self.value, self.structured, self.with_links, self.meta)
    }
}
