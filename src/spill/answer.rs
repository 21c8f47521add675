//! What stands for a result that was put by: the same in text, for hosts that
//! show a model the text, and in structured content, for those that show it
//! that alone.

use std::fmt::Write;

use rmcp::model::{CallToolResult, ContentBlock, MetaObject};
use serde_json::{Value, json};

use super::Kept;
use crate::{
    preview::{
        Excerpt,
        words::{count, number},
    },
    store::{Entry, Kind},
};

/// An answer about to be made.
pub(super) struct Answer<'a> {
    pub(super) tool: &'a str,
    /// Whether the caller has the tools that the preview can name.
    pub(super) reads: bool,
    pub(super) searches: bool,
    pub(super) kept: &'a [Kept],
    pub(super) is_error: bool,
}

impl Answer<'_> {
    /// The preview first, so that no host cuts it away; then what was small
    /// enough; then the links.
    pub(super) fn compose(
        &self,
        small: Vec<ContentBlock>,
        value: Option<Value>,
        structured: bool,
        with_links: bool,
        meta: Option<MetaObject>,
    ) -> CallToolResult {
        let note = self.note(!small.is_empty() || value.is_some());
        let mut content = vec![ContentBlock::text(self.text(&note))];
        content.extend(small);
        if with_links {
            content.extend(self.kept.iter().map(|kept| kept.entry.to_link()));
        }
        let mut result = CallToolResult::success(content);
        result.is_error = Some(self.is_error);
        // A failure needs none, and the schema does not speak of it.
        if structured && !self.is_error {
            result.structured_content = Some(self.structured(&note, value));
        }
        result.meta = meta;
        result
    }

    fn is_complete(&self) -> bool {
        self.kept.iter().all(|kept| kept.preview.is_whole())
    }

    fn note(&self, beside: bool) -> String {
        let tool = self.tool;
        let size = self.kept.iter().map(|kept| kept.entry.size).sum();
        let size = count(size, "byte");
        let what = if self.is_error { "failure message" } else { "result" };
        let where_to = match self.kept {
            [one] => format!("at {}", one.entry.uri),
            kept => format!("as {} resources", kept.len()),
        };
        if self.is_complete() {
            return format!(
                "The {what} of {tool} ({size}) is stored {where_to}, and complete below."
            );
        }
        let rest = if beside { "; smaller parts follow as they are" } else { "" };
        format!(
            "PREVIEW ONLY: this is not the whole {what} of {tool}. All of its {size} are stored {where_to}; below are excerpts{rest}."
        )
    }

    fn text(&self, note: &str) -> String {
        let mut text = note.to_owned();
        for Kept { entry, preview } in self.kept {
            // Writing to a string cannot fail.
            let _ = write!(text, "\n\n{}\n{}", entry.uri, size(entry));
            let _ = write!(text, "; complete there; expires at {}", entry.expires);
            for fact in &preview.facts {
                let _ = write!(text, "\n{fact}");
            }
            let _ = write!(text, "\nNext: {}", self.next(entry).join(" or "));
            preview.write_ends_to(&mut text);
        }
        text
    }

    fn structured(&self, note: &str, value: Option<Value>) -> Value {
        let resources: Vec<_> = self.kept.iter().map(|kept| self.resource(kept)).collect();
        let mut spilled = json!({
            "note": note,
            "complete": self.is_complete(),
            "resources": resources,
        });
        if let Some(value) = value {
            spilled["value"] = value;
        }
        json!({ "spilled": spilled })
    }

    fn resource(&self, Kept { entry, preview }: &Kept) -> Value {
        let mut resource = json!({
            "uri": entry.uri,
            "name": entry.name,
            "mime_type": entry.mime_type,
            "size": entry.size,
            "expires": entry.expires.to_string(),
            "facts": preview.facts,
            "next": self.next(entry),
        });
        if entry.kind == Kind::Text {
            resource["lines"] = json!(entry.lines);
        }
        for (member, excerpt) in [("head", &preview.head), ("tail", &preview.tail)] {
            if let Some(Excerpt { label, text, .. }) = excerpt {
                resource[member] = json!({ "label": label, "text": text });
            }
        }
        resource
    }

    /// The exact calls that lead on, of those that the caller has.
    fn next(&self, entry: &Entry) -> Vec<String> {
        let mut next = Vec::new();
        let text = entry.kind == Kind::Text;
        if self.reads {
            let read = match entry.kind {
                Kind::Text => json!({ "uri": entry.uri, "offset": 0, "limit": 100 }),
                Kind::Binary => json!({ "uri": entry.uri, "unit": "bytes" }),
            };
            next.push(format!("read_resource {read}"));
        }
        if self.searches && text {
            let search = json!({ "uri": entry.uri, "query": "PATTERN" });
            next.push(format!("search_resource {search}"));
        }
        if next.is_empty() {
            next.push(format!("resources/read {}", json!({ "uri": entry.uri })));
        }
        next
    }
}

/// `text/csv, 12,345 bytes, 67 lines`.
fn size(entry: &Entry) -> String {
    let bytes = count(entry.size, "byte");
    match entry.kind {
        Kind::Text => format!("{}, {bytes}, {} lines", entry.mime_type, number(entry.lines)),
        Kind::Binary => format!("{}, {bytes}, binary", entry.mime_type),
    }
}
