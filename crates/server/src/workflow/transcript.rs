//! The transcript of a run: the messages that the model reads, bounded as a whole.

use base64::{Engine, prelude::BASE64_STANDARD};
use larder_runtime::compute::Compute;
use larder_store::store::{Kind, StoreError, StoredResource};
use rmcp::model::{CallToolResult, ContentBlock, PromptMessage, ResourceContents, Role};
use serde_json::{Value, json};

use super::path::Bound;
use crate::handler::Context;

/// The most bytes of the preview of a large resource.
const PREVIEW_BYTES: usize = 3_000;
/// A shorter preview is left out: it would show too little.
const LEAST_PREVIEW_BYTES: usize = 300;

/// The bytes of a message when the transcript is full: enough for the preview of a stored
/// result, with its URI and the next call.
const LAST_BYTES: usize = 2_000;

/// The messages of a run.
#[derive(Debug)]
pub(super) struct Transcript {
    pub(super) messages: Vec<PromptMessage>,
    /// The bytes of text that still fit.
    text_left: usize,
    /// The bytes of images, audio and other binary content that still fit, in base64.
    media_left: usize,
}

impl Transcript {
    /// An empty transcript of at most that many bytes of text, and of media.
    pub(super) fn new(text_bytes: usize, media_bytes: usize) -> Self {
        Self { messages: Vec::new(), text_left: text_bytes, media_left: media_bytes }
    }

    pub(super) fn user(&mut self, text: impl Into<String>) {
        self.say(Role::User, text.into());
    }

    pub(super) fn assistant(&mut self, text: impl Into<String>) {
        self.say(Role::Assistant, text.into());
    }

    /// Adds a text, cut if it does not fit.
    fn say(&mut self, role: Role, mut text: String) {
        let room = self.text_left.max(LAST_BYTES);
        if text.len() > room {
            let end = text.floor_char_boundary(room);
            let cut = text.len() - end;
            text.truncate(end);
            text.push_str(&format!("… [{cut} bytes left out: the transcript is full]"));
        }

        self.text_left = self.text_left.saturating_sub(text.len());
        self.messages.push(PromptMessage::new_text(role, text));
    }

    fn block(&mut self, content: ContentBlock) {
        let (text, media) = match &content {
            ContentBlock::Image(image) => (0, image.data.len()),
            ContentBlock::Audio(audio) => (0, audio.data.len()),
            ContentBlock::Resource(embedded) => match &embedded.resource {
                ResourceContents::TextResourceContents { text, .. } => (text.len(), 0),
                ResourceContents::BlobResourceContents { blob, .. } => (0, blob.len()),
                _ => (0, 0),
            },
            _ => (0, 0),
        };

        self.text_left = self.text_left.saturating_sub(text);
        self.media_left = self.media_left.saturating_sub(media);
        self.messages.push(PromptMessage::new(Role::User, content));
    }

    /// The transcript as a tool's result: one text, and after it all content that
    /// is not text. Embedded text resources become part of the text, because not
    /// all hosts show them.
    pub(super) fn into_content(self) -> (String, Vec<ContentBlock>) {
        let mut texts = Vec::new();
        let mut others = Vec::new();

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

    /// Adds a resource of at most `budget` bytes, or a preview and a link if it is larger
    /// or the transcript has no room for it. Reads no more than what it adds.
    pub(super) async fn resource(
        &mut self,
        found: &StoredResource,
        budget: usize,
    ) -> Result<(), StoreError> {
        let entry = &found.entry;
        let room = match entry.kind {
            Kind::Text => self.text_left,
            // In base64, three bytes become four.
            Kind::Binary => self.media_left / 4 * 3,
        };

        if entry.size > budget.min(room) as u64 {
            let mut text = format!(
                "PREVIEW ONLY: {} has {} bytes. Read parts of it with read_resource, or find lines in it with search_resource.",
                entry.uri, entry.size
            );
            let preview_bytes = PREVIEW_BYTES.min(budget / 2).min(self.text_left);
            if preview_bytes >= LEAST_PREVIEW_BYTES {
                found.preview(preview_bytes).await?.write_to(&mut text);
            }

            self.user(text);
            self.block(entry.to_link());
            return Ok(());
        }

        let bytes = found.bytes().await?;
        let uri = entry.uri.as_str();
        let mime_type = entry.mime_type.as_str();
        let contents = match entry.kind {
            Kind::Text => ResourceContents::text(String::from_utf8_lossy(&bytes), uri),
            Kind::Binary => ResourceContents::blob(BASE64_STANDARD.encode(&bytes), uri),
        };

        self.block(ContentBlock::resource(contents.with_mime_type(mime_type)));
        Ok(())
    }

    /// Adds a tool's result: a preview of it if it is too large.
    ///
    /// # Errors
    /// A message for the model, when a large result cannot be stored.
    pub(super) async fn result<S>(
        &mut self,
        ctx: &Context<S>,
        tool: &str,
        result: CallToolResult,
    ) -> Result<(), String> {
        let text_bytes = self.text_left.max(LAST_BYTES);
        let bounded = ctx.bounded(tool, result, text_bytes, self.media_left).await;

        if bounded.is_error == Some(true) {
            return Err(all_text(&bounded));
        }

        for content in bounded.content {
            match content {
                ContentBlock::Text(text) => self.user(format!("Result of {tool}:\n{}", text.text)),
                other => self.block(other),
            }
        }
        Ok(())
    }
}

/// The value of a resource for later steps: text, parsed if it is JSON; of binary content a
/// description.
///
/// # Errors
/// A message for the model.
pub(super) async fn value_of_resource<S>(
    ctx: &Context<S>,
    found: &StoredResource,
) -> Result<Value, String> {
    let entry = &found.entry;
    let max_bytes = ctx.read_bytes();

    if entry.kind == Kind::Binary {
        let uri = &entry.uri;
        let mime_type = &entry.mime_type;
        let size = entry.size;
        return Ok(json!({ "uri": uri, "mime_type": mime_type, "size": size }));
    }

    if entry.size > max_bytes {
        return Err(format!(
            "{} has {} bytes, and a step can bind at most {max_bytes} (limits.read_bytes).",
            entry.uri, entry.size
        ));
    }

    let bytes = found.bytes().await.map_err(|error| error.to_string())?;
    parsed(ctx, String::from_utf8_lossy(&bytes).into_owned()).await
}

/// The value of a result for later steps: structured content, or else the text,
/// parsed if it is JSON.
///
/// # Errors
/// A message for the model.
pub(super) async fn value_of_result<S>(
    ctx: &Context<S>,
    result: &CallToolResult,
) -> Result<Bound, String> {
    match &result.structured_content {
        Some(structured) => bound(ctx, structured.clone()).await,
        None => {
            let value = parsed(ctx, all_text(result)).await?;
            bound(ctx, value).await
        }
    }
}

/// The value to bind, in which a lone text is parsed if it is JSON.
pub(super) async fn bound<S>(ctx: &Context<S>, value: Value) -> Result<Bound, String> {
    let owner = ctx.identity().owner();
    let bytes =
        value.as_object().and_then(|members| members.values().next()?.as_str()).map_or(0, str::len);
    let parsing = Compute::run(owner.as_str(), bytes, move || Bound::from(value));
    parsing.done().await.map_err(|busy| busy.to_string())
}

/// JSON, or else the text.
async fn parsed<S>(ctx: &Context<S>, text: String) -> Result<Value, String> {
    let parsing = Compute::run(ctx.identity().owner().as_str(), text.len(), move || {
        serde_json::from_str(&text).unwrap_or_else(|_| text.into())
    });
    parsing.done().await.map_err(|busy| busy.to_string())
}

/// All texts of a result, joined by line feeds.
pub(super) fn all_text(result: &CallToolResult) -> String {
    let texts: Vec<_> =
        result.content.iter().filter_map(|c| c.as_text()).map(|t| &*t.text).collect();
    texts.join("\n")
}
