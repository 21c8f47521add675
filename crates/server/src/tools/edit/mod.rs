//! Edits of stored content: a change alone is given, and the answer is what has changed. No other
//! write is lost.

mod json;
mod text;

use larder_records::{Layout, essence, is_json_lines, words::number};
use larder_runtime::compute::Compute;
use larder_store::store::{Content, Details, Entry, Kind, ResourceUri, StoreError};
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Value, json};

use self::json::JsonChange;
pub(super) use self::text::TextEdit;
use super::wording::call;
use crate::{
    handler::{Context, StoredFacts, Structured, ToolError},
    spill::{difference, tool_calls::type_and_size},
};

/// How often an edit starts again because another write came first.
const MAX_ATTEMPTS: usize = 32;
/// The most bytes of the changed lines in the answer.
const DIFFERENCE_BYTES: usize = 650;

/// A change of content.
#[derive(Debug, Clone)]
pub(super) struct Edit {
    kind: EditKind,
    /// The revision that the content must have.
    if_revision: Option<u64>,
}

#[derive(Debug, Clone)]
enum EditKind {
    Texts(Vec<TextEdit>),
    Json(JsonChange),
}

impl Edit {
    /// The change that these arguments of a call give, if they give one.
    ///
    /// # Errors
    /// They give several, or a revision without a change.
    pub(super) fn from_arguments(
        edits: Option<Vec<TextEdit>>,
        json_patch: Option<Vec<Value>>,
        merge_patch: Option<Value>,
        if_revision: Option<u64>,
    ) -> Result<Option<Self>, ToolError> {
        let edits = edits.map(EditKind::Texts);
        let patch = json_patch.map(|patch| EditKind::Json(JsonChange::Patch(patch.into())));
        let merge = merge_patch.map(|patch| EditKind::Json(JsonChange::Merge(patch)));

        let mut given = [edits, patch, merge].into_iter().flatten();
        let kind = given.next();
        if given.next().is_some() {
            let problem = "Give one of edits, json_patch and merge_patch.";
            return Err(ToolError::permanent(problem));
        }
        if kind.is_none() && if_revision.is_some() {
            let problem = "if_revision is for edits, json_patch and merge_patch.";
            return Err(ToolError::permanent(problem));
        }
        Ok(kind.map(|kind| Self { kind, if_revision }))
    }

    /// Changes a resource of the caller.
    pub(super) async fn apply<S>(
        &self,
        ctx: &Context<S>,
        uri: &str,
        details: Details,
    ) -> Result<(Structured<StoredFacts>, CallToolResult), ToolError> {
        let scope = ctx.scope();
        let owner = scope.identity.owner();
        let uri = ResourceUri::parse(uri).map_err(StoreError::from)?;
        ctx.resource_store().check_target(&uri)?;

        for _ in 0..MAX_ATTEMPTS {
            let found = match scope.store.get(owner, &uri).await {
                Err(error) if error.is_not_found() && scope.server.is_static(uri.as_str()) => {
                    return Err(StoreError::ReadOnly { uri }.into());
                }
                found => found?,
            };
            self.check(&found.entry, scope.read_bytes)?;

            let limits =
                EditLimits { max_bytes: scope.read_bytes, has_lines: has_lines(&found.entry) };
            let bytes = found.bytes().await?;
            let kind = self.kind.clone();
            let changing = Compute::run(owner.as_str(), bytes.len(), move || {
                kind.changed(&String::from_utf8_lossy(&bytes), limits)
            });
            let changed = changing.done().await.map_err(StoreError::from)?;
            let (after, difference) = changed.map_err(|problem| {
                ToolError::permanent(format!("{uri} is unchanged: {problem}"))
            })?;

            let content = Content::from(after);
            let updated = scope.store.update_unchanged(&found.entry, content, details.clone());
            if let Some(entry) = updated.await? {
                return Ok(edited(&entry, &difference));
            }
        }
        Err(StoreError::Contended { uri }.into())
    }

    /// Checks that the content can be edited.
    fn check(&self, entry: &Entry, max_bytes: u64) -> Result<(), ToolError> {
        let uri = &entry.uri;
        if let Some(revision) = self.if_revision.filter(|revision| *revision != entry.revision) {
            let read = call("read_resource", &json!({ "uri": uri }));
            return Err(ToolError::permanent(format!(
                "{uri} is unchanged: it has revision {}, not {revision}. Read it again: {read}",
                entry.revision
            )));
        }

        if entry.kind != Kind::Text {
            return Err(ToolError::permanent(format!(
                "{uri} is binary ({}): edits are for text. Give new content as blob.",
                entry.mime_type
            )));
        }
        if entry.size > max_bytes {
            return Err(ToolError::permanent(format!(
                "{uri} has {} bytes, and {} can be edited at once (limits.read_bytes): compute a new resource by query_resource and \"into\".",
                number(entry.size),
                number(max_bytes)
            )));
        }
        Ok(())
    }
}

/// Whether content is JSON with a value on each line.
fn has_lines(entry: &Entry) -> bool {
    is_json_lines(&essence(&entry.mime_type))
        || entry.records.as_ref().is_some_and(|index| index.layout() == Layout::JsonLines)
}

/// The limits of an edit of one content.
#[derive(Debug, Clone, Copy)]
struct EditLimits {
    /// The most bytes of the content after the edit.
    max_bytes: u64,
    /// Whether the content is JSON with a value on each line.
    has_lines: bool,
}

impl EditKind {
    /// The new content, and how it differs.
    fn changed(&self, text: &str, limits: EditLimits) -> Result<(String, String), String> {
        let EditLimits { max_bytes, has_lines } = limits;
        let (after, difference) = match self {
            Self::Texts(edits) => {
                let after = text::apply(text.to_owned(), edits, max_bytes)?;
                let difference = difference(text, &after, DIFFERENCE_BYTES).into_text();
                (after, difference)
            }
            Self::Json(change) => {
                let changed = json::apply(text, change, has_lines, max_bytes)?;
                let difference = changed.difference(text, DIFFERENCE_BYTES);
                (changed.after, difference)
            }
        };

        if difference.is_empty() {
            return Err("nothing of it would change.".to_owned());
        }
        Ok((after, difference))
    }
}

/// The answer: the URI alone, for programs that read text; and the changed lines.
fn edited(entry: &Entry, difference: &str) -> (Structured<StoredFacts>, CallToolResult) {
    let text =
        format!("Edited: revision {}, {}.\n{difference}", entry.revision, type_and_size(entry));
    let content = CallToolResult::success(vec![
        ContentBlock::text(entry.uri.as_str()),
        ContentBlock::text(text),
    ]);
    (Structured(StoredFacts::new(entry)), content)
}
