//! Splits a result into parts that are stored and content that is sent.

use std::{cmp::Reverse, collections::HashSet};

use rmcp::model::{CallToolResult, ContentBlock, MetaObject, ResourceContents};
use serde_json::Value;

use super::{
    copies::{CopyKind, find_copy, mirrors_blocks, remove_member_copy},
    items::{ItemBlocks, item_copies},
    lists::{take_links, take_many, take_metadata},
    part::Part,
    received::Received,
    sizes::{FEW_LINKS_BYTES, FRAME_BYTES, is_media, size},
};

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
        received.leave_out_malformed(&mut blocks);

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

        large.extend(take_value(&mut value, &mut blocks, &mut received, text_room));

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
        take_text(&mut blocks, &mut received, text_room, text_bytes, &mut large);
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

/// Takes the structured content, and the blocks that repeat it, if they do not fit into `room`
/// bytes. A value and its copy are stored once, in the form that is easier to read.
fn take_value(
    value: &mut Option<Value>,
    blocks: &mut [Option<ContentBlock>],
    received: &mut Received,
    room: usize,
) -> Option<Part> {
    let content = value.as_ref()?;
    let copy = find_copy(content, blocks, received);
    let copies = match copy {
        Some((index, _)) => vec![index],
        None => item_copies(content, blocks, received).unwrap_or_default(),
    };

    let of_blocks = copies.iter().filter_map(|index| blocks[*index].as_ref());
    let of_blocks = of_blocks.map(|block| size(block, received)).sum();
    let bytes = match &copy {
        Some((_, CopyKind::Json)) => of_blocks,
        Some((_, CopyKind::Text)) => received.size_of(content),
        _ => received.size_of(content).max(of_blocks),
    };

    if bytes <= room {
        return None;
    }

    let value = value.take().unwrap_or_default();
    let mut taken: Vec<_> =
        copies.iter().filter_map(|index| Some(text(blocks[*index].take()?))).collect();

    Some(match (copy, taken.pop()) {
        (Some((_, kind)), Some(text)) => part_of_copy(kind, text, value, received),
        _ => match received.take_structure(&value) {
            Some(whole) => Part::received_json(whole, None),
            None => match received.take_exact_content(&value) {
                Some(exact) => Part::json(value, exact),
                None => Part::of_value(value),
            },
        },
    })
}

/// A value whose copy is this text.
fn part_of_copy(kind: CopyKind, text: String, value: Value, received: &mut Received) -> Part {
    let is_incomplete = received.is_incomplete(&value);
    match (received.take(&text), kind) {
        (Some(text), CopyKind::Json) if is_incomplete => Part::received_json(text, None),
        // Records get lines of their own, unless the tool has laid them out.
        (Some(text), CopyKind::Json) if text.lines() > 1 => Part::received_json(text, Some(value)),
        (Some(text), CopyKind::Text) => Part::received(text),
        (None, CopyKind::Json) => Part::json(value, text.into()),
        (None, CopyKind::Text) => Part::text(vec![text.into()]),
        (Some(_), CopyKind::Json) | (_, CopyKind::Member) => Part::of_value(value),
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
    sizes.sort_by_key(|(size, index)| (Reverse(*size), *index));

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

/// Units that are taken as a whole: the blocks of a list, or a text or embedded resource, which may
/// be a file.
enum Unit {
    List(ItemBlocks),
    Block(usize),
}

/// Takes texts and embedded resources, the largest first, until the others fit into `room` bytes.
/// Texts over `large_text` bytes may be files; others that are the items of a list are one part.
fn take_text(
    blocks: &mut [Option<ContentBlock>],
    received: &mut Received,
    room: usize,
    large_text: usize,
    large: &mut Vec<Part>,
) {
    let is_text =
        |block: &ContentBlock| matches!(block, ContentBlock::Text(_) | ContentBlock::Resource(_));
    let texts = blocks.iter().flatten().filter(|block| is_text(block));
    let mut left: usize = texts.map(|block| size(block, received)).sum();
    if left <= room {
        return;
    }

    let lists = ItemBlocks::find(blocks, received, large_text);
    let in_list: HashSet<usize> = lists.iter().flat_map(|list| &list.indexes).copied().collect();

    // The units with their sizes, and the index of the first block of each.
    let mut units: Vec<(usize, usize, Unit)> = Vec::new();
    for (index, block) in blocks.iter().enumerate() {
        let Some(block) = block.as_ref().filter(|block| is_text(block)) else { continue };
        let bytes = size(block, received);
        if bytes > 0 && !in_list.contains(&index) {
            units.push((bytes, index, Unit::Block(index)));
        }
    }

    for list in lists {
        let first = list.indexes.first().copied().unwrap_or_default();
        units.push((list.bytes, first, Unit::List(list)));
    }
    units.sort_by_key(|(bytes, first, _)| (Reverse(*bytes), *first));

    let mut taken: Vec<(usize, Part)> = Vec::new();
    for (bytes, first, unit) in units {
        if left <= room {
            break;
        }
        left -= bytes;

        let part = match unit {
            Unit::List(list) => Some(list.take(blocks, received)),
            Unit::Block(index) => take_block(&mut blocks[index], received),
        };
        taken.extend(part.map(|part| (first, part)));
    }

    taken.sort_by_key(|(first, _)| *first);
    large.extend(taken.into_iter().map(|(_, part)| part));
}

/// Takes a text or an embedded resource.
fn take_block(block: &mut Option<ContentBlock>, received: &mut Received) -> Option<Part> {
    match block.take() {
        Some(ContentBlock::Text(text)) => Some(text_part(text.text, received)),
        Some(ContentBlock::Resource(embedded)) => Some(embedded_part(embedded.resource, received)),
        other => {
            *block = other;
            None
        }
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
            Body::Items(_) => panic!("nothing was received"),
        };
        parts.large.iter().map(read).collect()
    }

    #[test]
    fn small_blocks_are_sent_when_a_large_one_is_stored() {
        let small = "Found three files.";
        let large = "x".repeat(50_000);
        let result =
            CallToolResult::success(vec![ContentBlock::text(small), ContentBlock::text(&large)]);

        let parts = Parts::split(result, Received::default(), 32_000, 1_000_000, false);
        assert_eq!(texts(&parts), [large]);
        assert_eq!(parts.small, [ContentBlock::text(small)]);
    }

    fn split(blocks: Vec<ContentBlock>) -> Parts {
        let result = CallToolResult::success(blocks);
        Parts::split(result, Received::default(), 32_000, 1_000_000, false)
    }

    #[test]
    fn many_medium_texts_are_one_list_in_their_order() {
        let text = |n: usize| format!("{n:0>1000}");
        let parts = split((0..200).map(|n| ContentBlock::text(text(n))).collect());

        assert_eq!(parts.small.len(), 0);
        let [stored] = &texts(&parts)[..] else { panic!("{} parts", parts.large.len()) };
        let read: Vec<String> =
            stored.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(read, (0..200).map(text).collect::<Vec<_>>());
    }

    #[test]
    fn many_small_texts_are_one_list() {
        let parts = split(vec![ContentBlock::text("x"); 200_000]);
        assert_eq!((parts.large.len(), parts.small.len()), (1, 0));
        assert_eq!(texts(&parts)[0].lines().count(), 200_000);
    }

    #[test]
    fn objects_are_one_list_and_other_blocks_stay() {
        let item = |n: usize| json!({ "id": n, "text": "x".repeat(600) });
        let pretty = |n| ContentBlock::text(serde_json::to_string_pretty(&item(n)).unwrap());
        let mut blocks = vec![ContentBlock::text("Found 60 issues.")];
        blocks.extend((0..60).map(pretty));
        blocks.insert(30, ContentBlock::image("AAAA", "image/png"));

        let parts = split(blocks);
        assert_eq!(parts.small.len(), 2);
        let [stored] = &texts(&parts)[..] else { panic!("{} parts", parts.large.len()) };
        let read: Vec<Value> =
            stored.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(read, (0..60).map(item).collect::<Vec<_>>());
    }

    #[test]
    fn a_list_and_its_items_as_blocks_are_stored_once() {
        let items: Vec<_> = (0..60).map(|n| json!({ "id": n, "text": "x".repeat(600) })).collect();
        let texts_of = items.iter().map(|item| ContentBlock::text(format!("{item:#}")));
        let mut result = CallToolResult::success(texts_of.collect());
        result.content.insert(0, ContentBlock::text("They are:"));
        result.structured_content = Some(json!({ "result": items }));

        let parts = Parts::split(result, Received::default(), 32_000, 1_000_000, false);
        assert_eq!(parts.small, [ContentBlock::text("They are:")]);
        let [stored] = &texts(&parts)[..] else { panic!("{} parts", parts.large.len()) };
        let read: Value = serde_json::from_str(stored).unwrap();
        assert_eq!((read, parts.value), (json!({ "result": items }), None));
    }

    #[test]
    fn a_small_list_stays_whole_beside_a_large_text() {
        let item = |n: usize| ContentBlock::text(json!({ "id": n }).to_string());
        let mut blocks: Vec<_> = (0..60).map(item).collect();
        blocks.push(ContentBlock::text("x".repeat(50_000)));

        let parts = split(blocks);
        assert_eq!((parts.large.len(), parts.small.len()), (1, 60));
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
