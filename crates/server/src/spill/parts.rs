//! Splits a result into parts that are stored and content that is sent.

use bytes::Bytes;
use rmcp::model::{CallToolResult, ContentBlock, MetaObject, ResourceContents};
use serde_json::Value;

use super::{
    copies::{CopyKind, find_copy, mirrors_blocks, remove_member_copy},
    lists::{take_links, take_many, take_metadata},
    part::Part,
    received::Received,
    sizes::{FEW_LINKS_BYTES, FRAME_BYTES, is_media, size},
};

/// How many texts are stored separately. The others are joined.
const SEPARATE_TEXTS: usize = 8;
/// The least number of bytes of the budget that is reserved for previews.
const PREVIEW_BYTES: usize = 4_000;

/// A split result.
pub(super) struct Parts {
    /// The parts to store.
    pub(super) large: Vec<Part>,
    /// The content blocks to send, in their order.
    pub(super) small: Vec<ContentBlock>,
    /// The structured content, if it is small enough to send.
    pub(super) value: Option<Value>,
    /// Whether the result has structured content.
    pub(super) structured: bool,
    /// The `_meta` of the result, if it is small enough to send.
    pub(super) meta: Option<MetaObject>,
}

impl Parts {
    /// Splits off the largest content first, until the rest leaves room for the
    /// previews. With `all`, splits off everything.
    pub(super) fn split(
        result: CallToolResult,
        mut received: Received,
        text_bytes: usize,
        media_bytes: usize,
        all: bool,
    ) -> Self {
        let mut value = result.structured_content;
        let structured = value.is_some();
        let mut blocks: Vec<Option<ContentBlock>> = result.content.into_iter().map(Some).collect();

        let link_room = text_bytes.saturating_sub(PREVIEW_BYTES.max(text_bytes / 2));
        let text_room = if all { 0 } else { link_room };
        let media_room = if all { 0 } else { media_bytes };
        let mut large = Vec::new();

        // Media in the structured content are stored from their blocks alone.
        let is_mirrored = value.as_ref().is_some_and(|value| {
            mirrors_blocks(value, &blocks, &received) && received.size_of(value) > text_room
        });
        let media_room = if is_mirrored { 0 } else { media_room };
        if is_mirrored {
            value = None;
        }

        if let Some(content) = &mut value {
            remove_member_copy(content, &blocks, &received, text_room);
        }

        if let Some(content) = &value {
            let copy = find_copy(content, &blocks, &received);
            let json_bytes = match &copy {
                Some((index, CopyKind::Json)) => {
                    blocks[*index].as_ref().map_or(0, |block| size(block, &received))
                }
                _ => received.size_of(content),
            };

            if json_bytes > text_room {
                // A value and its copy are stored once, in the form that is easier to read.
                let copy = copy.and_then(|(index, kind)| Some((text(blocks[index].take()?), kind)));
                let value = value.take().unwrap_or_default();
                let is_incomplete = received.is_incomplete(&value);

                let part = match copy {
                    Some((text, kind)) => match (received.take(&text), kind) {
                        (Some(text), CopyKind::Json) if is_incomplete => {
                            Part::received_json(text, None)
                        }
                        // Records get lines of their own, unless the tool has laid them out.
                        (Some(text), CopyKind::Json) if text.lines() > 1 => {
                            Part::received_json(text, Some(value))
                        }
                        (Some(_), CopyKind::Json) => Part::of_value(value),
                        (Some(text), CopyKind::Text) => Part::received(text),
                        (None, CopyKind::Json) => Part::json(value, text.into()),
                        (None, CopyKind::Text) => Part::text(vec![text.into()]),
                    },
                    None => match received.take_structure(&value) {
                        Some(whole) => Part::received_json(whole, None),
                        None => match received.take_exact_content(&value) {
                            Some(exact) => Part::json(value, exact),
                            None => Part::of_value(value),
                        },
                    },
                };

                large.push(part);
            }
        }

        let mut meta = result.meta;
        let mut lists = Vec::new();
        let links = take_links(&mut blocks, link_room.max(FEW_LINKS_BYTES), &mut lists);
        let many_links = links.saturating_sub(FEW_LINKS_BYTES);
        let metadata_room = link_room.saturating_sub(many_links).max(FRAME_BYTES);
        let metadata = take_metadata(&mut blocks, &mut meta, metadata_room);
        let much_metadata = metadata.bytes.saturating_sub(FRAME_BYTES);

        take_media(&mut blocks, &mut received, media_room, &mut large);
        large.append(&mut lists);
        let text_room = text_room.saturating_sub(many_links + much_metadata);
        take_text(&mut blocks, &mut received, text_room, all, &mut large);
        take_many(&mut blocks, &received, text_room, &mut large);
        large.extend(metadata.taken);

        let small = blocks.into_iter().flatten().collect();
        Self { large, small, value, structured, meta }
    }

    /// The original result, if nothing of it is stored.
    pub(super) fn into_result(self, is_error: Option<bool>) -> CallToolResult {
        let mut result = CallToolResult::success(self.small);
        result.structured_content = self.value;
        result.is_error = is_error;
        result.meta = self.meta;
        result
    }
}

fn text(block: ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text,
        _ => String::new(),
    }
}

/// The indexes of the largest matching blocks, without which the other matching
/// blocks fit into `room` bytes. Largest first.
fn largest(
    blocks: &[Option<ContentBlock>],
    matches: impl Fn(&ContentBlock) -> bool,
    received: &Received,
    room: usize,
) -> Vec<usize> {
    let sizes = blocks.iter().enumerate().filter_map(|(index, block)| {
        block.as_ref().filter(|block| matches(block)).map(|block| (size(block, received), index))
    });
    let mut sizes: Vec<_> = sizes.filter(|(size, _)| *size > 0).collect();
    let mut left: usize = sizes.iter().map(|(size, _)| size).sum();
    sizes.sort_by_key(|(size, index)| (std::cmp::Reverse(*size), *index));

    let mut largest = Vec::new();
    for (size, index) in sizes {
        if left <= room {
            break;
        }
        left -= size;
        largest.push(index);
    }
    largest
}

fn take_media(
    blocks: &mut [Option<ContentBlock>],
    received: &mut Received,
    room: usize,
    large: &mut Vec<Part>,
) {
    let mut taken = largest(blocks, is_media, received, room);
    taken.sort_unstable();

    for index in taken {
        match blocks[index].take() {
            Some(ContentBlock::Image(image)) => {
                large.push(Part::base64(Some(image.mime_type), image.data, received));
            }
            Some(ContentBlock::Audio(audio)) => {
                large.push(Part::base64(Some(audio.mime_type), audio.data, received));
            }
            other => blocks[index] = other,
        }
    }
}

/// Takes texts and embedded resources. The largest texts become separate parts,
/// because each may be a file; if there are many, the others are joined.
fn take_text(
    blocks: &mut [Option<ContentBlock>],
    received: &mut Received,
    room: usize,
    all: bool,
    large: &mut Vec<Part>,
) {
    let is_text =
        |block: &ContentBlock| matches!(block, ContentBlock::Text(_) | ContentBlock::Resource(_));
    let mut taken = largest(blocks, is_text, received, room);

    // Texts that were stored while they arrived are separate anyway.
    let (mut texts, mut stored) = (0, 0);
    for block in taken.iter().filter_map(|index| blocks[*index].as_ref()) {
        let ContentBlock::Text(text) = block else { continue };
        texts += 1;
        stored += usize::from(received.find(&text.text).is_some());
    }

    let is_joinable = |index: &&usize| match &blocks[**index] {
        Some(ContentBlock::Text(text)) => received.find(&text.text).is_none(),
        _ => false,
    };
    let separate = if all { 0 } else { texts.min(SEPARATE_TEXTS).saturating_sub(stored) };

    let mut is_joined = vec![false; blocks.len()];
    for index in taken.iter().filter(is_joinable).skip(separate) {
        is_joined[*index] = true;
    }

    taken.sort_unstable();
    let mut joined = Vec::new();
    let mut joined_position = None;
    for index in taken {
        match blocks[index].take() {
            Some(ContentBlock::Text(text)) if is_joined[index] => {
                if joined_position.is_none() {
                    joined_position = Some(large.len());
                } else {
                    joined.push(Bytes::from_static(b"\n"));
                }
                joined.push(text.text.into());
            }
            Some(ContentBlock::Text(text)) => large.push(text_part(text.text, received)),
            Some(ContentBlock::Resource(embedded)) => {
                large.push(embedded_part(embedded.resource, received));
            }
            other => blocks[index] = other,
        }
    }

    if let Some(position) = joined_position {
        large.insert(position, Part::text(joined));
    }
}

fn text_part(text: String, received: &mut Received) -> Part {
    match received.take(&text) {
        Some(text) => Part::received(text),
        None => Part::text(vec![text.into()]),
    }
}

fn embedded_part(contents: ResourceContents, received: &mut Received) -> Part {
    match contents {
        ResourceContents::TextResourceContents { uri, mime_type, text, .. } => {
            Part { name: Some(uri), mime_type, ..text_part(text, received) }
        }
        ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
            Part { name: Some(uri), ..Part::base64(mime_type, blob, received) }
        }
        _ => Part::text(Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;
    use crate::spill::{part::Body, sizes::is_over};

    fn texts(parts: &Parts) -> Vec<String> {
        let read = |part: &Part| match &part.body {
            Body::Text(pieces) => String::from_utf8(pieces.concat()).unwrap(),
            Body::Json(_, json) => String::from_utf8(json.to_vec()).unwrap(),
            Body::Base64(data) => data.clone(),
            Body::Received(text, _) => text.uri.as_str().to_owned(),
        };
        parts.large.iter().map(read).collect()
    }

    #[test]
    fn small_blocks_are_sent_when_a_large_one_is_stored() {
        let (small, large) = ("Found three files.", "x".repeat(50_000));
        let result =
            CallToolResult::success(vec![ContentBlock::text(small), ContentBlock::text(&large)]);

        let parts = Parts::split(result, Received::default(), 32_000, 1_000_000, false);
        assert_eq!(texts(&parts), [large]);
        assert_eq!(parts.small, [ContentBlock::text(small)]);
    }

    #[test]
    fn many_medium_texts_are_joined_in_their_order() {
        let blocks: Vec<_> = (0..200).map(|n| ContentBlock::text(format!("{n:0>1000}"))).collect();

        let parts = Parts::split(
            CallToolResult::success(blocks),
            Received::default(),
            32_000,
            1_000_000,
            false,
        );

        assert_eq!(parts.large.len(), SEPARATE_TEXTS + 1);
        assert_eq!(parts.small.len(), 16);
        let lines: usize = texts(&parts).iter().map(|text| text.lines().count()).sum();
        assert_eq!(lines + parts.small.len(), 200);
    }

    #[test]
    fn many_small_texts_are_joined_without_comparing_each_with_each() {
        let blocks = vec![ContentBlock::text("x"); 200_000];
        let result = CallToolResult::success(blocks);

        let parts = Parts::split(result, Received::default(), 32_000, 1_000_000, false);
        assert_eq!(parts.large.len(), SEPARATE_TEXTS + 2);
        assert_eq!(parts.small.len(), 0);

        let texts = texts(&parts);
        let lines: usize = texts[..=SEPARATE_TEXTS].iter().map(|text| text.lines().count()).sum();
        let listed: Vec<ContentBlock> = serde_json::from_str(&texts[SEPARATE_TEXTS + 1]).unwrap();
        assert_eq!(lines + listed.len(), 200_000);
    }

    #[test]
    fn the_json_around_a_few_texts_counts_nothing_and_that_of_many_counts() {
        let result = |blocks: usize| CallToolResult::success(vec![ContentBlock::text(""); blocks]);
        assert!(!is_over(&result(150), 0, 0));
        assert!(is_over(&result(10_000), 32_000, 1_000_000));

        let parts = Parts::split(result(10_000), Received::default(), 32_000, 1_000_000, false);
        let stored: Vec<ContentBlock> = serde_json::from_str(&texts(&parts)[0]).unwrap();
        assert_eq!((stored.len(), parts.small.len()), (10_000, 0));
    }

    #[test]
    fn metadata_that_does_not_fit_is_stored_and_the_content_stays() {
        let meta = |n: usize| json!({ "_meta": { "a": "x".repeat(n) } });
        let result = |n: usize| -> CallToolResult {
            let mut block = meta(n);
            block["type"] = "text".into();
            block["text"] = "fine".into();
            block["annotations"] = json!({ "priority": 0.5 });
            let mut result = meta(10);
            result["content"] = json!([{ "type": "text", "text": "first" }, block]);
            serde_json::from_value(result).unwrap()
        };

        let small = result(2_000);
        assert!(!is_over(&small, 100, 100));
        let parts = Parts::split(small.clone(), Received::default(), 32_000, 1_000_000, true);
        assert_eq!(parts.meta, small.meta);

        let large = result(50_000);
        assert!(is_over(&large, 32_000, 1_000_000));
        let parts = Parts::split(large, Received::default(), 32_000, 1_000_000, false);
        assert_eq!(parts.small, [ContentBlock::text("first"), ContentBlock::text("fine")]);
        assert_eq!(parts.meta, None);

        let stored: Value = serde_json::from_str(&texts(&parts)[0]).unwrap();
        let mut of_block = meta(50_000);
        of_block["annotations"] = json!({ "priority": 0.5 });
        of_block["block"] = 2.into();
        assert_eq!(stored, json!({ "_meta": meta(10)["_meta"], "content": [of_block] }));
    }

    #[test]
    fn links_that_do_not_fit_are_stored_as_a_list() {
        let link = |n: usize| {
            let link = rmcp::model::Resource::new(format!("files://{n}"), format!("File {n}"));
            ContentBlock::resource_link(link)
        };
        let result = |links: usize| {
            let text = ContentBlock::text("Found many files.");
            CallToolResult::success(std::iter::once(text).chain((0..links).map(link)).collect())
        };

        assert!(!is_over(&result(10), 32_000, 1_000_000));
        assert!(!is_over(&result(10), 100, 1_000_000), "few links count nothing");
        assert!(is_over(&result(1_000), 32_000, 1_000_000));

        let parts = Parts::split(result(1_000), Received::default(), 32_000, 1_000_000, false);
        let stored: Vec<ContentBlock> = serde_json::from_str(&texts(&parts)[0]).unwrap();
        assert_eq!((stored.len(), &stored[7]), (1_000, &link(7)));
        assert_eq!(parts.small, [ContentBlock::text("Found many files.")]);

        let parts = Parts::split(result(10), Received::default(), 32_000, 1_000_000, true);
        assert_eq!((texts(&parts).len(), parts.small.len()), (1, 10), "few links stay");
    }

    #[test]
    fn media_that_the_structured_content_repeats_are_stored_once() {
        let data = "A".repeat(100_000);
        let mut result =
            CallToolResult::success(vec![ContentBlock::image(data.clone(), "image/png")]);
        let block = serde_json::json!({ "type": "image", "data": data, "mimeType": "image/png" });
        result.structured_content = Some(serde_json::json!({ "content": [block] }));

        assert!(is_over(&result, 32_000, 1_000_000));

        let parts = Parts::split(result, Received::default(), 32_000, 1_000_000, false);
        assert_eq!(texts(&parts), [data]);
        assert!(parts.structured && parts.value.is_none());
    }

    #[test]
    fn images_have_their_own_budget() {
        let image = |bytes: usize| ContentBlock::image("A".repeat(bytes), "image/png");
        let result = CallToolResult::success(vec![image(100_000), image(950_000), image(40_000)]);

        assert!(is_over(&result, 32_000, 1_000_000));
        let parts = Parts::split(result, Received::default(), 32_000, 1_000_000, false);
        assert_eq!(texts(&parts)[0].len(), 950_000);
        assert_eq!(parts.small.len(), 2);
    }
}
