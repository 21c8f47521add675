//! Lists of a result that are stored as JSON, because their items are many and small.

use larder_protocol::{OtherMembers, json_size};
use rmcp::model::{Annotations, ContentBlock, MetaObject, ResourceContents};
use serde_json::{Map, Value, json};

use super::{
    part::Part,
    received::Received,
    sizes::{FRAME_BYTES, frame_size, is_media, meta_size, metadata_size, size},
};

/// Takes all links, as one JSON list, if they do not fit into `room` bytes. Returns the bytes of
/// those that stay.
pub(super) fn take_links(
    blocks: &mut [Option<ContentBlock>],
    room: usize,
    large: &mut Vec<Part>,
) -> usize {
    let links = blocks.iter().flatten().filter(|block| is_link(block));
    let bytes = links.map(json_size).sum();
    if bytes <= room {
        return bytes;
    }

    large.push(Part::of_value(list_of(blocks, is_link)));
    0
}

/// The annotations and the `_meta` of blocks and of a result.
pub(super) struct Metadata {
    /// The metadata that does not fit, which is stored.
    pub(super) taken: Option<Part>,
    /// The bytes of the metadata that stays.
    pub(super) bytes: usize,
}

/// Takes the metadata of the blocks and of the result if it does not fit into `room` bytes.
pub(super) fn take_metadata(
    blocks: &mut [Option<ContentBlock>],
    meta: &mut Option<MetaObject>,
    room: usize,
) -> Metadata {
    let bytes: usize = blocks.iter().flatten().map(metadata_size).sum();
    let bytes = bytes + meta_size(meta.as_ref());
    if bytes <= room {
        return Metadata { taken: None, bytes };
    }

    let of_blocks = blocks.iter_mut().enumerate().filter_map(|(index, block)| {
        let mut members = metadata_of(block.as_mut()?);
        if members.is_empty() {
            return None;
        }
        members.insert("block".to_owned(), (index + 1).into());

        let mut members = Value::Object(members);
        OtherMembers::restore(&mut members);
        Some(members)
    });
    let of_blocks: Vec<_> = of_blocks.collect();

    let mut metadata = json!({ "_meta": meta.take(), "content": of_blocks });
    OtherMembers::restore(&mut metadata);
    let mut part = Part::of_value(metadata);
    part.name = Some("Metadata of the result".to_owned());
    Metadata { taken: Some(part), bytes: 0 }
}

/// Takes all blocks but links, as one JSON list, if their texts and the JSON around their content do
/// not fit into `room` bytes. Few of them always fit.
pub(super) fn take_many(
    blocks: &mut [Option<ContentBlock>],
    received: &Received,
    room: usize,
    large: &mut Vec<Part>,
) {
    let mut texts = 0usize;
    let mut frames = 0usize;
    for block in blocks.iter().flatten().filter(|block| !is_link(block)) {
        frames += frame_size(block);
        if !is_media(block) {
            texts += size(block, received);
        }
    }

    if frames > room.saturating_sub(texts).max(FRAME_BYTES) {
        large.push(Part::of_value(list_of(blocks, |block| !is_link(block))));
    }
}

fn is_link(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::ResourceLink(_))
}

/// Takes the blocks that match, as JSON.
fn list_of(blocks: &mut [Option<ContentBlock>], matches: impl Fn(&ContentBlock) -> bool) -> Value {
    let taken = blocks.iter_mut().filter_map(|block| block.take_if(|block| matches(block)));
    let mut list: Value = taken.filter_map(|block| serde_json::to_value(block).ok()).collect();

    OtherMembers::restore(&mut list);
    list
}

/// Takes the annotations and the `_meta` of a block.
fn metadata_of(block: &mut ContentBlock) -> Map<String, Value> {
    let mut members = Map::new();
    let mut add = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            members.insert(name.to_owned(), value);
        }
    };

    let (annotations, meta): (&mut Option<Annotations>, &mut Option<MetaObject>) = match block {
        ContentBlock::Text(text) => (&mut text.annotations, &mut text.meta),
        ContentBlock::Image(image) => (&mut image.annotations, &mut image.meta),
        ContentBlock::Audio(audio) => (&mut audio.annotations, &mut audio.meta),
        ContentBlock::Resource(embedded) => {
            if let ResourceContents::TextResourceContents { meta, .. }
            | ResourceContents::BlobResourceContents { meta, .. } = &mut embedded.resource
            {
                let inner = meta.take().map(|MetaObject(meta)| json!({ "_meta": meta }));
                add("resource", inner);
            }
            (&mut embedded.annotations, &mut embedded.meta)
        }
        _ => return members,
    };

    add("annotations", annotations.take().and_then(|taken| serde_json::to_value(taken).ok()));
    add("_meta", meta.take().map(|MetaObject(meta)| Value::Object(meta)));
    members
}
