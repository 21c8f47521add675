//! What the model reads: who said what, step by step.

use base64::{Engine, prelude::BASE64_STANDARD};
use rmcp::model::{CallToolResult, ContentBlock, PromptMessage, ResourceContents, Role};
use serde_json::Value;

use crate::{
    handler::Context,
    preview::Preview,
    store::{Found, Kind, StoreError},
};

/// How much is shown of a resource that is too large to be shown.
const PREVIEW: usize = 3_000;

/// The messages so far.
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

    /// For a tool's result: all of it as one text, and after it what is no text.
    /// Hosts differ in what they show of embedded resources, so those that are
    /// text stand in the text.
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

    /// Shows a resource under its own URI, with its own type: whole where it
    /// is small, as a link otherwise. Gives what later steps can use of it.
    pub(super) async fn resource(
        &mut self,
        found: &Found,
        budget: usize,
    ) -> Result<Value, StoreError> {
        let entry = &found.entry;
        let described = serde_json::json!({
            "uri": entry.uri, "mime_type": entry.mime_type, "size": entry.size,
        });
        let is_large = entry.size > budget as u64;
        if is_large {
            let mut text = format!(
                "PREVIEW ONLY: {} has {} bytes. Read parts of it with read_resource, or find things in it with search_resource.",
                entry.uri, entry.size
            );
            let preview = Preview::of_found(found, PREVIEW.min(budget / 2)).await?;
            preview.write_to(&mut text);
            self.user(text);
            self.block(entry.to_link());
            if entry.kind == Kind::Binary {
                return Ok(described);
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
                Ok(described)
            }
        }
    }

    /// Shows a tool's result, what is too large as a preview. Gives what later
    /// steps can use of it, which is all of it.
    ///
    /// # Errors
    /// In words for the model, when what is too large cannot be put by.
    pub(super) async fn result<S>(
        &mut self,
        ctx: &Context<S>,
        tool: &str,
        result: CallToolResult,
    ) -> Result<Value, String> {
        let value = value_of(&result);
        let shown = ctx.bounded(tool, result).await;
        if shown.is_error == Some(true) {
            return Err(all_text(&shown));
        }
        for content in shown.content {
            match content {
                ContentBlock::Text(text) => self.user(format!("Result of {tool}:\n{}", text.text)),
                other => self.block(other),
            }
        }
        Ok(value)
    }
}

/// What later steps can use of a result.
fn value_of(result: &CallToolResult) -> Value {
    if let Some(structured) = &result.structured_content {
        return structured.clone();
    }
    let text = all_text(result);
    serde_json::from_str(&text).unwrap_or_else(|_| text.into())
}

/// All texts of a result, a line feed between them.
pub(super) fn all_text(result: &CallToolResult) -> String {
    let texts: Vec<_> =
        result.content.iter().filter_map(|c| c.as_text()).map(|t| &*t.text).collect();
    texts.join("\n")
}
