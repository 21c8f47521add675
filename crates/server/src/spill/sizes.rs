//! The size of a result: of its content, of its links, and of what surrounds the content.

use larder_protocol::{json_exceeds, json_size, size_up_to};
use rmcp::model::{Annotations, CallToolResult, ContentBlock, MetaObject, ResourceContents};

use super::received::Received;

/// The bytes that the links of a result may always take: without the link to what a tool has
/// stored, its result is useless. The metadata of a stored resource is smaller.
pub(super) const FEW_LINKS_BYTES: usize = 8_000;
/// The bytes that surround the content, and may always be taken: the JSON of some blocks, and
/// their metadata.
pub(super) const FRAME_BYTES: usize = 4_000;

/// The JSON of a block without its content.
const EMPTY_BLOCK: &str = r#"{"type":"text","text":""},"#;

/// Whether a result is over budget. Text and structured content count
/// separately, because hosts show one of them; images and audio have their own
/// budget. What surrounds the content counts as text.
pub(super) fn is_over(result: &CallToolResult, text_bytes: usize, media_bytes: usize) -> bool {
    let mut text = 0usize;
    let mut links = 0usize;
    let mut media = 0usize;
    let mut around = meta_size(result.meta.as_ref());
    for block in &result.content {
        match block {
            ContentBlock::Image(image) => media += image.data.len(),
            ContentBlock::Audio(audio) => media += audio.data.len(),
            ContentBlock::ResourceLink(_) => links += json_size(block),
            other => text += size(other, &Received::default()),
        }
        around += frame_size(block) + metadata_size(block);
    }

    text += links.saturating_sub(FEW_LINKS_BYTES) + around.saturating_sub(FRAME_BYTES);
    if text > text_bytes || media > media_bytes {
        return true;
    }
    result.structured_content.as_ref().is_some_and(|value| json_exceeds(value, text_bytes))
}

/// About how many bytes of text and data a result has. Does not read more than `max` bytes of
/// structured content.
pub(super) fn bytes(result: &CallToolResult, max: usize) -> usize {
    let in_block = |block| size(block, &Received::default()) + frame_size(block);
    let blocks: usize = result.content.iter().map(in_block).sum();
    let value = result.structured_content.as_ref();
    blocks + value.map_or(0, |value| size_up_to(value, max))
}

/// Whether a block is an image or audio, which have a budget of their own.
pub(super) fn is_media(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::Image(_) | ContentBlock::Audio(_))
}

/// The content of a block in bytes. All of a link is content.
pub(super) fn size(block: &ContentBlock, received: &Received) -> usize {
    match block {
        ContentBlock::Text(text) => received.len_of(&text.text),
        ContentBlock::Image(image) => received.len_of(&image.data),
        ContentBlock::Audio(audio) => received.len_of(&audio.data),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::TextResourceContents { text, .. } => received.len_of(text),
            ResourceContents::BlobResourceContents { blob, .. } => received.len_of(blob),
            _ => 0,
        },
        ContentBlock::ResourceLink(_) => json_size(block),
        _ => 0,
    }
}

/// The JSON of a block in bytes, without its content and its metadata.
pub(super) fn frame_size(block: &ContentBlock) -> usize {
    let members = match block {
        ContentBlock::Image(image) => image.mime_type.len(),
        ContentBlock::Audio(audio) => audio.mime_type.len(),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::TextResourceContents { uri, mime_type, .. }
            | ResourceContents::BlobResourceContents { uri, mime_type, .. } => {
                uri.len() + mime_type.as_ref().map_or(0, String::len)
            }
            _ => 0,
        },
        ContentBlock::ResourceLink(_) => return 0,
        _ => 0,
    };
    EMPTY_BLOCK.len() + members
}

/// The annotations and the `_meta` of a block in bytes. Those of a link are content.
pub(super) fn metadata_size(block: &ContentBlock) -> usize {
    let of = |annotations: &Option<Annotations>, meta: &Option<MetaObject>| {
        annotations.as_ref().map_or(0, json_size) + meta_size(meta.as_ref())
    };

    match block {
        ContentBlock::Text(text) => of(&text.annotations, &text.meta),
        ContentBlock::Image(image) => of(&image.annotations, &image.meta),
        ContentBlock::Audio(audio) => of(&audio.annotations, &audio.meta),
        ContentBlock::Resource(embedded) => {
            let inner = match &embedded.resource {
                ResourceContents::TextResourceContents { meta, .. }
                | ResourceContents::BlobResourceContents { meta, .. } => meta_size(meta.as_ref()),
                _ => 0,
            };
            of(&embedded.annotations, &embedded.meta) + inner
        }
        _ => 0,
    }
}

/// The size of `_meta` in bytes.
pub(super) fn meta_size(meta: Option<&MetaObject>) -> usize {
    meta.map_or(0, json_size)
}
