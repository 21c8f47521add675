//! A result taken apart: what stays in the answer, and what has to go.

use std::io;

use bytes::Bytes;
use rmcp::model::{CallToolResult, ContentBlock, MetaObject, ResourceContents};
use serde_json::Value;

use crate::protocol::json_size;

/// How many texts are put by each by itself; the others go together.
const TEXTS: usize = 8;
/// The least that is left of the budget for what stays beside the previews.
const KEPT_FOR_PREVIEW: usize = 4_000;

/// Something that has to go.
pub(super) struct Part {
    /// What it is called, where it has a name.
    pub(super) name: Option<String>,
    pub(super) mime_type: Option<String>,
    pub(super) body: Body,
}

pub(super) enum Body {
    /// UTF-8, in pieces.
    Text(Vec<Bytes>),
    /// A value, and its JSON.
    Json(Value, Bytes),
    /// Bytes in base64.
    Base64(String),
}

/// A result taken apart.
pub(super) struct Parts {
    pub(super) large: Vec<Part>,
    /// In their order.
    pub(super) small: Vec<ContentBlock>,
    /// The structured content, where it is small.
    pub(super) value: Option<Value>,
    /// Whether there was structured content.
    pub(super) structured: bool,
}

/// Whether a result is larger than an answer may be: text, or structured
/// content (hosts show one or the other), or pictures and sounds.
pub(super) fn is_over(result: &CallToolResult, text_bytes: usize, media_bytes: usize) -> bool {
    let (mut text, mut media) = (0usize, 0usize);
    for block in &result.content {
        match block {
            ContentBlock::Image(image) => media += image.data.len(),
            ContentBlock::Audio(audio) => media += audio.data.len(),
            other => text += size(other),
        }
    }
    if text > text_bytes || media > media_bytes {
        return true;
    }
    result.structured_content.as_ref().is_some_and(|value| json_size(value) > text_bytes)
}

fn size(block: &ContentBlock) -> usize {
    match block {
        ContentBlock::Text(text) => text.text.len(),
        ContentBlock::Image(image) => image.data.len(),
        ContentBlock::Audio(audio) => audio.data.len(),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::TextResourceContents { text, .. } => text.len(),
            ResourceContents::BlobResourceContents { blob, .. } => blob.len(),
            _ => 0,
        },
        // A link is small by nature.
        _ => 0,
    }
}

impl Parts {
    /// Accepts out the largest first, until the rest leaves room for the
    /// previews; or everything.
    pub(super) fn of(
        result: CallToolResult,
        text_bytes: usize,
        media_bytes: usize,
        all: bool,
    ) -> Self {
        let mut value = result.structured_content;
        let structured = value.is_some();
        let mut blocks: Vec<Option<ContentBlock>> = result.content.into_iter().map(Some).collect();
        let room =
            if all { 0 } else { text_bytes.saturating_sub(KEPT_FOR_PREVIEW.max(text_bytes / 2)) };
        let media_room = if all { 0 } else { media_bytes };
        let mut large = Vec::new();

        if let Some(some) = &value {
            let copy = copy_of(some, &blocks);
            let json = match &copy {
                Some((at, Copy::Json)) => blocks[*at].as_ref().map_or(0, size),
                _ => json_size(some),
            };
            if json > room {
                // Stored once, in whichever form it can be read best.
                let copy = copy.and_then(|(at, copy)| Some((text(blocks[at].take()?), copy)));
                let taken = value.take().unwrap_or_default();
                let part = match copy {
                    Some((text, Copy::Json)) => Part::json(taken, text.into()),
                    Some((text, Copy::Text)) => Part::text(vec![text.into()]),
                    None => {
                        // A value always serializes.
                        let json = serde_json::to_vec(&taken).unwrap_or_default();
                        Part::json(taken, json.into())
                    }
                };
                large.push(part);
            }
        }
        take_media(&mut blocks, media_room, &mut large);
        take_text(&mut blocks, room, all, &mut large);
        let small = blocks.into_iter().flatten().collect();
        Self { large, small, value, structured }
    }

    /// The result again, where nothing of it has to go.
    pub(super) fn back(self, is_error: Option<bool>, meta: Option<MetaObject>) -> CallToolResult {
        let mut result = CallToolResult::success(self.small);
        result.structured_content = self.value;
        result.is_error = is_error;
        result.meta = meta;
        result
    }
}

impl Part {
    fn json(value: Value, json: Bytes) -> Self {
        let mime_type = Some("application/json".to_owned());
        Self { name: None, mime_type, body: Body::Json(value, json) }
    }

    fn text(pieces: Vec<Bytes>) -> Self {
        Self { name: None, mime_type: None, body: Body::Text(pieces) }
    }

    fn base64(mime_type: Option<String>, data: String) -> Self {
        Self { name: None, mime_type, body: Body::Base64(data) }
    }
}

fn is_media(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::Image(_) | ContentBlock::Audio(_))
}

fn text(block: ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text,
        _ => String::new(),
    }
}

/// The positions of those blocks, the largest first, that have to go for the
/// rest to fit.
fn largest(
    blocks: &[Option<ContentBlock>],
    is: impl Fn(&ContentBlock) -> bool,
    room: usize,
) -> Vec<usize> {
    let sizes = blocks.iter().enumerate().filter_map(|(at, block)| {
        block.as_ref().filter(|block| is(block)).map(|block| (size(block), at))
    });
    let mut sizes: Vec<_> = sizes.filter(|(size, _)| *size > 0).collect();
    let mut left: usize = sizes.iter().map(|(size, _)| size).sum();
    sizes.sort_by_key(|(size, at)| (std::cmp::Reverse(*size), *at));
    let mut go = Vec::new();
    for (size, at) in sizes {
        if left <= room {
            break;
        }
        left -= size;
        go.push(at);
    }
    go
}

fn take_media(blocks: &mut [Option<ContentBlock>], room: usize, large: &mut Vec<Part>) {
    let mut go = largest(blocks, is_media, room);
    go.sort_unstable();
    for at in go {
        match blocks[at].take() {
            Some(ContentBlock::Image(i)) => large.push(Part::base64(Some(i.mime_type), i.data)),
            Some(ContentBlock::Audio(a)) => large.push(Part::base64(Some(a.mime_type), a.data)),
            other => blocks[at] = other,
        }
    }
}

/// Texts and what is embedded. The largest texts each by itself, since each may
/// be a file; where there are many, the others as one.
fn take_text(blocks: &mut [Option<ContentBlock>], room: usize, all: bool, large: &mut Vec<Part>) {
    let mut go = largest(blocks, |block| !is_media(block), room);
    let is_text = |at: &usize| matches!(blocks[*at], Some(ContentBlock::Text(_)));
    let texts = go.iter().filter(|at| is_text(at)).count();
    let alone = if all || texts > TEXTS { usize::from(!all) * TEXTS } else { texts };
    let together: Vec<_> = go.iter().copied().filter(is_text).skip(alone).collect();
    go.sort_unstable();
    let mut joined = Vec::new();
    let mut joined_at = None;
    for at in go {
        match blocks[at].take() {
            Some(ContentBlock::Text(text)) if together.contains(&at) => {
                if joined_at.is_none() {
                    joined_at = Some(large.len());
                } else {
                    joined.push(Bytes::from_static(b"\n"));
                }
                joined.push(text.text.into());
            }
            Some(ContentBlock::Text(text)) => large.push(Part::text(vec![text.text.into()])),
            Some(ContentBlock::Resource(embedded)) => large.push(embedded_part(embedded.resource)),
            other => blocks[at] = other,
        }
    }
    if let Some(at) = joined_at {
        large.insert(at, Part::text(joined));
    }
}

fn embedded_part(contents: ResourceContents) -> Part {
    match contents {
        ResourceContents::TextResourceContents { uri, mime_type, text, .. } => {
            Part { name: Some(uri), mime_type, body: Body::Text(vec![text.into()]) }
        }
        ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
            Part { name: Some(uri), ..Part::base64(mime_type, blob) }
        }
        _ => Part::text(Vec::new()),
    }
}

/// How a text says the same as a value.
#[derive(Clone, Copy)]
enum Copy {
    /// As its JSON.
    Json,
    /// As the text that is all the value holds.
    Text,
}

/// The text block that says the same as the structured content, if one does.
fn copy_of(value: &Value, blocks: &[Option<ContentBlock>]) -> Option<(usize, Copy)> {
    let only_text = value.as_object().filter(|members| members.len() == 1);
    let only_text = only_text.and_then(|members| members.values().next()?.as_str());
    blocks.iter().enumerate().find_map(|(at, block)| {
        let Some(ContentBlock::Text(text)) = block else { return None };
        if only_text == Some(text.text.as_str()) {
            return Some((at, Copy::Text));
        }
        says_the_same(&text.text, value).then_some((at, Copy::Json))
    })
}

/// Whether a text is that value's JSON, however it is laid out.
fn says_the_same(text: &str, value: &Value) -> bool {
    struct Compare<'a>(&'a [u8]);
    impl io::Write for Compare<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            match self.0.strip_prefix(bytes) {
                Some(rest) => self.0 = rest,
                None => return Err(io::ErrorKind::InvalidData.into()),
            }
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    if !text.trim_start().starts_with(['{', '[']) {
        return false;
    }
    // As written by ourselves: nothing is allocated to see that.
    let mut compare = Compare(text.as_bytes());
    if serde_json::to_writer(&mut compare, value).is_ok() && compare.0.is_empty() {
        return true;
    }
    serde_json::from_str::<Value>(text).is_ok_and(|read| read == *value)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    fn texts(parts: &Parts) -> Vec<String> {
        let read = |part: &Part| match &part.body {
            Body::Text(pieces) => String::from_utf8(pieces.concat()).unwrap(),
            Body::Json(_, json) => String::from_utf8(json.to_vec()).unwrap(),
            Body::Base64(data) => data.clone(),
        };
        parts.large.iter().map(read).collect()
    }

    #[test]
    fn small_things_stay_beside_a_large_one() {
        let (small, large) = ("Found three files.", "x".repeat(50_000));
        let result =
            CallToolResult::success(vec![ContentBlock::text(small), ContentBlock::text(&large)]);
        let parts = Parts::of(result, 32_000, 1_000_000, false);
        assert_eq!(texts(&parts), [large]);
        assert_eq!(parts.small, [ContentBlock::text(small)]);
    }

    #[test]
    fn many_texts_of_middling_size_go_together_in_their_order() {
        let blocks: Vec<_> = (0..200).map(|n| ContentBlock::text(format!("{n:0>1000}"))).collect();
        let parts = Parts::of(CallToolResult::success(blocks), 32_000, 1_000_000, false);
        assert_eq!(parts.large.len(), TEXTS + 1);
        assert_eq!(parts.small.len(), 16);
        let lines: usize = texts(&parts).iter().map(|text| text.lines().count()).sum();
        assert_eq!(lines + parts.small.len(), 200);
    }

    #[test]
    fn a_copy_is_known_however_it_is_laid_out() {
        let value = json!({ "b": [1, 2], "a": "x" });
        for text in [
            value.to_string(),
            serde_json::to_string_pretty(&value).unwrap(),
            "{\"a\": \"\\u0078\", \"b\":[1,2]}".into(),
        ] {
            assert!(says_the_same(&text, &value), "{text}");
        }
        for text in ["{\"b\":[1,2]}", "x", "{\"b\":[1,2],\"a\":\"x\"} and more"] {
            assert!(!says_the_same(text, &value), "{text}");
        }
    }

    #[test]
    fn pictures_have_a_bound_of_their_own() {
        let image = |bytes: usize| ContentBlock::image("A".repeat(bytes), "image/png");
        let result = CallToolResult::success(vec![image(100_000), image(950_000), image(40_000)]);
        assert!(is_over(&result, 32_000, 1_000_000));
        let parts = Parts::of(result, 32_000, 1_000_000, false);
        assert_eq!(texts(&parts)[0].len(), 950_000);
        assert_eq!(parts.small.len(), 2);
    }
}
