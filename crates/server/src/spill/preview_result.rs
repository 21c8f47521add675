//! The result that replaces a stored one. Text and structured content say the
//! same, because some hosts show a model only one of them.

use std::fmt::Write;

use larder_records::preview::Excerpt;
use larder_records::words::{count, number};
use larder_store::store::{Entry, Kind};
use rmcp::model::{CallToolResult, ContentBlock, MetaObject};
use serde_json::{Value, json};

use super::{
    left_out::left_out_warning,
    store_parts::StoredPart,
    tool_calls::{call, count_arguments, jq_root, search_arguments, type_and_size},
};
use crate::registry::{QUERYING_TOOL, READING_TOOL, SEARCHING_TOOL, ToolReach};

/// Reserved for the sentence before the previews.
const NOTE_BYTES: usize = 150;
/// The parts that have their next calls, if there are many.
const PARTS_WITH_NEXT: usize = 12;

/// The tools that previews propose.
#[derive(Debug, Clone, Copy)]
pub(super) struct NextTools {
    /// `read_resource`
    pub(super) read: ToolReach,
    /// `search_resource`
    pub(super) search: ToolReach,
    /// `query_resource`
    pub(super) query: ToolReach,
}

/// Builds a preview result.
pub(super) struct PreviewResult<'a> {
    pub(super) tool: &'a str,
    pub(super) next: NextTools,
    pub(super) stored: &'a [StoredPart],
    /// The most bytes of text that show what is stored.
    pub(super) preview_bytes: usize,
    /// Whether the stored result is an error.
    pub(super) is_error: bool,
    /// Why the server behind the tool did not send all.
    pub(super) left_out: Option<&'a str>,
    /// A sentence about an earlier result of the same call.
    pub(super) remark: Option<&'a str>,
}

impl PreviewResult<'_> {
    /// The result: the preview, so that hosts which cut results keep it; then
    /// the small content blocks; then the links.
    pub(super) fn compose(
        &self,
        small: Vec<ContentBlock>,
        value: Option<Value>,
        structured: bool,
        with_links: bool,
        meta: Option<MetaObject>,
    ) -> CallToolResult {
        let (previews, shown) = self.previews();
        let is_complete =
            shown == self.stored.len() && self.stored.iter().all(|part| part.preview.is_whole());
        let mut note = self.note(is_complete, !small.is_empty() || value.is_some());
        if let Some(reason) = self.left_out {
            note = format!("{note}\n{}", left_out_warning(reason));
        }
        if let Some(remark) = self.remark {
            note = format!("{note}\n{remark}");
        }

        let mut content = vec![ContentBlock::text(note.clone() + &previews)];
        content.extend(small);
        if with_links {
            content.extend(self.stored.iter().map(|part| part.entry.to_link()));
        }

        let mut result = CallToolResult::success(content);
        result.is_error = Some(self.is_error);
        // The output schema does not apply to errors.
        if structured && !self.is_error {
            result.structured_content = Some(self.structured(&note, is_complete, shown, value));
        }
        result.meta = meta;
        result
    }

    /// The first sentence. `has_small` says whether other content follows.
    fn note(&self, is_complete: bool, has_small: bool) -> String {
        let tool = self.tool;
        let size = self.stored.iter().map(|part| part.entry.size).sum();
        let size = count(size, "byte");
        let what = if self.is_error { "failure message" } else { "result" };
        let location = match self.stored {
            [_] => String::new(),
            parts => format!(" as {} resources", parts.len()),
        };

        if is_complete {
            return format!(
                "The {what} of {tool} ({size}) is stored{location}, and complete below."
            );
        }

        let rest = if has_small { "; smaller parts follow as they are" } else { "" };
        format!(
            "PREVIEW ONLY: this is not the whole {what} of {tool}. All of its {size} are stored{location}{rest}:"
        )
    }

    /// The previews, and how many of them there are. If the first ones fill most of the result,
    /// only type and size of the others are given.
    fn previews(&self) -> (String, usize) {
        let mut text = String::new();
        let mut shown = 0;
        for (index, part) in self.stored.iter().enumerate() {
            let StoredPart { entry, preview, columns, .. } = part;
            // Writing to a string cannot fail.
            // A URI ends its line, so that no host takes more for a part of it.
            let _ = write!(text, "\n\n{}\n{}", entry.uri, type_and_size(entry));
            let _ = write!(text, "; expires at {}", entry.expires);

            if shown > 0 && text.len() > self.preview_bytes / 4 * 3 {
                if index < PARTS_WITH_NEXT {
                    let _ = write!(text, "\nNext: {}", self.next(part).join(" or "));
                }
                continue;
            }

            shown += 1;
            if let Some(fact) = records_fact(entry, columns.as_deref()) {
                let _ = write!(text, "\n{fact}");
            }
            for fact in &preview.facts {
                let _ = write!(text, "\n{fact}");
            }

            let _ = write!(text, "\nNext: {}", self.next(part).join(" or "));
            let _ = write!(text, "; or as an argument of another tool: \"{{{{{}}}}}\"", entry.uri);

            let room = self.preview_bytes.saturating_sub(text.len() + NOTE_BYTES);
            preview.write_excerpts_to(&mut text, room);
        }
        (text, shown)
    }

    fn structured(
        &self,
        note: &str,
        is_complete: bool,
        shown: usize,
        value: Option<Value>,
    ) -> Value {
        let resources = self.stored.iter().enumerate();
        let resources: Vec<_> =
            resources.map(|(index, part)| self.resource(part, index < shown)).collect();

        let mut spilled = json!({
            "note": note,
            "complete": is_complete,
            "resources": resources,
        });
        if let Some(value) = value {
            spilled["value"] = value;
        }

        json!({ "spilled": spilled })
    }

    /// A stored part, with its preview if that is shown.
    fn resource(&self, part: &StoredPart, is_shown: bool) -> Value {
        let StoredPart { entry, preview, columns, .. } = part;
        let mut resource = structured_resource(entry);
        if !is_shown {
            return resource;
        }

        resource["facts"] = json!(preview.facts);
        resource["next"] = json!(self.next(part));

        if let Some(index) = &entry.records {
            resource["records"] = json!({
                "total": index.total(),
                "at": index.at(),
                "table": "t",
                "columns": columns,
                "jq_root": jq_root(index),
            });
        }

        for (member, excerpt) in [("head", &preview.head), ("tail", &preview.tail)] {
            if let Some(Excerpt { label, text, .. }) = excerpt {
                resource[member] = json!({ "label": label, "text": text });
            }
        }
        resource
    }

    /// The exact next calls, of the tools that the caller's model can call.
    fn next(&self, StoredPart { entry, after, .. }: &StoredPart) -> Vec<String> {
        let uri = entry.uri.as_str();
        let mut next = Vec::new();

        next.extend(self.next.read.call(READING_TOOL, after));
        if entry.kind == Kind::Text {
            next.extend(self.next.search.call(SEARCHING_TOOL, &search_arguments(uri)));
        }
        if entry.records.is_some() {
            next.extend(self.next.query.call(QUERYING_TOOL, &count_arguments(uri)));
        }

        if next.is_empty() {
            next.push(call("resources/read", &json!({ "uri": entry.uri })));
        }
        next
    }
}

/// A stored resource in structured content, without its next calls.
pub(crate) fn structured_resource(entry: &Entry) -> Value {
    let mut resource = json!({
        "uri": entry.uri,
        "name": entry.name,
        "mime_type": entry.mime_type,
        "size": entry.size,
        "expires": entry.expires.to_string(),
        "next": [],
    });
    if entry.kind == Kind::Text {
        resource["lines"] = json!(entry.lines);
    }
    resource
}

/// `Records: 49,000 at /items; table t (id, level); jq root .items[]`.
fn records_fact(entry: &Entry, columns: Option<&str>) -> Option<String> {
    let index = entry.records.as_ref()?;
    let at = if index.at().is_empty() { String::new() } else { format!(" at {}", index.at()) };
    let columns = columns.map(|columns| format!(" ({columns})")).unwrap_or_default();
    let total = number(index.total());
    let root = jq_root(index);
    Some(format!("Records: {total}{at}; table t{columns}; jq root {root}"))
}
