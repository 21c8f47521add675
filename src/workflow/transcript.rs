//! The transcript of a run: the messages that the model reads.

use base64::{Engine, prelude::BASE64_STANDARD};
use rmcp::model::{CallToolResult, ContentBlock, PromptMessage, ResourceContents, Role};
use serde_json::Value;

use crate::{
    handler::Context,
    preview::Preview,
    store::{Kind, StoreError, StoredResource},
};

/// The most bytes of the preview of a large resource.
const PREVIEW_BYTES: usize = 3_000;

/// The messages of a run.
#[derive(Debug, Default)]
pub(super) struct Transcript {
    pub(super) messages: Vec<PromptMessage>,
}

impl Transcript {
    pub(super) fn user(&mut self, text: impl Into<String>) {
        self.messages.push(PromptMessage::new_text(Role::User, text));
    }

    pub(super) fn assistant(&mut self, text: impl Into<String>) {
        self.messages.push(PromptMessage::new_text(Role::Assistant, text));
    }

    fn block(&mut self, content: ContentBlock) {
        self.messages.push(PromptMessage::new(Role::User, content));
    }

    /// The transcript as a tool's result: one text, and after it all content that
    /// is not text. Embedded text resources become part of the text, because not
    /// all hosts show them.
    pub(super) fn into_content(self) -> (String, Vec<ContentBlock>) {
        let (mut texts, mut others) = (Vec::new(), Vec::new());
        for message in self.messages {
            match message.content {
                ContentBlock::Text(text) => texts.push(text.text),
                ContentBlock::Resource(embedded) => match &embedded.resource {
                    ResourceContents::TextResourceContents { uri, mime_type, text, .. } => {
                        let mime_type = mime_type.as_deref().unwrap_or_default();
                        texts.push(format!("{uri} ({mime_type}):\n{text}"));
                    }
                    ResourceContents::BlobResourceContents { uri, .. } => {
                        texts.push(format!("{uri} is not text."));
                        others.push(ContentBlock::Resource(embedded));
                    }
                    _ => others.push(ContentBlock::Resource(embedded)),
                },
                other => others.push(other),
            }
        }
        let text = texts.join("\n\n");
        let mut content = vec![ContentBlock::text(&text)];
        content.append(&mut others);
        (text, content)
    }

    /// Adds a resource: embedded if it is small, else a preview and a link.
    /// Returns its value for later steps.
    pub(super) async fn resource(
        &mut self,
        found: &StoredResource,
        budget: usize,
    ) -> Result<Value, StoreError> {
        let entry = &found.entry;
        let description = serde_json::json!({
            "uri": entry.uri, "mime_type": entry.mime_type, "size": entry.size,
        });
        let is_large = entry.size > budget as u64;
        if is_large {
            let mut text = format!(
                "PREVIEW ONLY: {} has {} bytes. Read parts of it with read_resource, or find lines in it with search_resource.",
                entry.uri, entry.size
            );
            let preview = Preview::from_stored(found, PREVIEW_BYTES.min(budget / 2)).await?;
            preview.write_to(&mut text);
            self.user(text);
            self.block(entry.to_link());
            if entry.kind == Kind::Binary {
                return Ok(description);
            }
        }
        let bytes = found.bytes().await?;
        let (uri, mime_type) = (entry.uri.as_str(), entry.mime_type.as_str());
        match entry.kind {
            Kind::Text => {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let value = serde_json::from_str(&text).unwrap_or_else(|_| text.clone().into());
                if !is_large {
                    let contents = ResourceContents::text(text, uri).with_mime_type(mime_type);
                    self.block(ContentBlock::resource(contents));
                }
                Ok(value)
            }
            Kind::Binary => {
                let blob = BASE64_STANDARD.encode(&bytes);
                let contents = ResourceContents::blob(blob, uri).with_mime_type(mime_type);
                self.block(ContentBlock::resource(contents));
                Ok(description)
            }
        }
    }

    /// Adds a tool's result: a preview of it if it is too large. Returns the
    /// complete value for later steps.
    ///
    /// # Errors
    /// A message for the model, when a large result cannot be stored.
    pub(super) async fn result<S>(
        &mut self,
        ctx: &Context<S>,
        tool: &str,
        result: CallToolResult,
    ) -> Result<Value, String> {
        let value = value_of(&result);
        let bounded = ctx.bounded(tool, result).await;
        if bounded.is_error == Some(true) {
            return Err(all_text(&bounded));
        }
        for content in bounded.content {
            match content {
                ContentBlock::Text(text) => self.user(format!("Result of {tool}:\n{}", text.text)),
                other => self.block(other),
            }
        }
        Ok(value)
    }
}

/// The value of a result for later steps: structured content, or else the text,
/// parsed if it is JSON.
fn value_of(result: &CallToolResult) -> Value {
    if let Some(structured) = &result.structured_content {
        return structured.clone();
    }
    let text = all_text(result);
    serde_json::from_str(&text).unwrap_or_else(|_| text.into())
}

/// All texts of a result, joined by line feeds.
pub(super) fn all_text(result: &CallToolResult) -> String {
    let texts: Vec<_> =
        result.content.iter().filter_map(|c| c.as_text()).map(|t| &*t.text).collect();
    texts.join("\n")
}
