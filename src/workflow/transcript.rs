//! What the model reads: who said what, step by step.

use base64::{Engine, prelude::BASE64_STANDARD};
use rmcp::model::{CallToolResult, ContentBlock, PromptMessage, ResourceContents, Role};
use serde_json::Value;

use crate::{
    registry::Context,
    store::{Found, Kind, StoreError},
};

/// The most that one resource or one result takes up; what is larger is
/// linked to.
const EMBEDDED: usize = 100_000;

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
    pub(super) async fn resource(&mut self, found: &Found) -> Result<Value, StoreError> {
        let entry = &found.entry;
        let described = serde_json::json!({
            "uri": entry.uri, "mime_type": entry.mime_type, "size": entry.size,
        });
        if entry.size > EMBEDDED as u64 {
            self.user(format!(
                "{} has {} bytes and is not shown here. Read parts of it with read_resource, or find things in it with search_resource.",
                entry.uri, entry.size
            ));
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
                if text.len() <= EMBEDDED {
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

    /// Shows a tool's result; puts by what is too large. Gives what later
    /// steps can use of it.
    pub(super) async fn result<S>(
        &mut self,
        ctx: &Context<S>,
        tool: &str,
        result: CallToolResult,
    ) -> Result<Value, StoreError> {
        let mut texts = Vec::new();
        for content in result.content {
            match content {
                ContentBlock::Text(text) if text.text.len() > EMBEDDED => {
                    let size = text.text.len();
                    texts.push(text.text.clone());
                    let name = format!("Result of {tool}");
                    let entry = ctx.create_resource(ctx.mint_uri(), text.text).name(name).await?;
                    self.user(format!(
                        "Result of {tool}: {size} bytes, stored at {entry}. Read parts of it with read_resource, or find things in it with search_resource."
                    ));
                    self.block(entry.to_link());
                }
                ContentBlock::Text(text) => {
                    self.user(format!("Result of {tool}:\n{}", text.text));
                    texts.push(text.text);
                }
                other => self.block(other),
            }
        }
        if let Some(structured) = result.structured_content {
            return Ok(structured);
        }
        let text = texts.join("\n");
        Ok(serde_json::from_str(&text).unwrap_or_else(|_| text.into()))
    }
}
