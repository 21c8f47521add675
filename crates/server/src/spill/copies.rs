//! Finds the text block that repeats the structured content.

use std::io;

use rmcp::model::ContentBlock;
use serde_json::Value;

use super::received::Received;

/// How a text block repeats the structured content.
#[derive(Clone, Copy)]
pub(super) enum CopyKind {
    /// The text is the value's JSON.
    Json,
    /// The JSON of the value's only member.
    Member,
    /// The text is the value's only member, a string.
    Text,
}

/// The index of the text block that repeats the value, if there is one.
pub(super) fn find_copy(
    value: &Value,
    blocks: &[Option<ContentBlock>],
    received: &Received,
) -> Option<(usize, CopyKind)> {
    let only = value.as_object().filter(|members| members.len() == 1);
    let only = only.and_then(|members| members.values().next());
    let only_text = only.and_then(Value::as_str);

    blocks.iter().enumerate().find_map(|(index, block)| {
        let Some(ContentBlock::Text(text)) = block else { return None };
        if only_text.is_some_and(|only| received.is(&text.text, only)) {
            return Some((index, CopyKind::Text));
        }

        let is_json = match received.find(&text.text) {
            Some(text) => received.is_json_of(text, value),
            None => !received.is_incomplete(value) && is_json_of(&text.text, value),
        };
        if is_json {
            return Some((index, CopyKind::Json));
        }

        let is_member = only.is_some_and(|only| match received.find(&text.text) {
            Some(text) => !received.is_incomplete(only) && text.is_json_of(only),
            None => !received.is_incomplete(only) && is_json_of(&text.text, only),
        });
        is_member.then_some((index, CopyKind::Member))
    })
}

/// Removes from a value the member that a text block repeats, if the block is larger than
/// `room` and will be stored: the text is easier to read than an escaped member.
pub(super) fn remove_member_copy(
    value: &mut Value,
    blocks: &[Option<ContentBlock>],
    received: &Received,
    room: usize,
) {
    let Some(members) = value.as_object_mut().filter(|members| members.len() > 1) else { return };

    let large = blocks.iter().filter_map(|block| match block {
        Some(ContentBlock::Text(text)) => Some(text.text.as_str()),
        _ => None,
    });

    for text in large.filter(|text| received.len_of(text) > room) {
        let is_copy = |member: &Value| member.as_str().is_some_and(|m| received.is(text, m));
        let copy = members.iter().find(|(_, member)| is_copy(member));
        if let Some(name) = copy.map(|(name, _)| name.clone()) {
            members.shift_remove(&name);
        }
    }
}

/// Whether the value's only member is a list of the content blocks themselves,
/// with images or audio among them.
pub(super) fn mirrors_blocks(
    value: &Value,
    blocks: &[Option<ContentBlock>],
    received: &Received,
) -> bool {
    let only = value.as_object().filter(|members| members.len() == 1);
    let Some(items) = only.and_then(|members| members.values().next()?.as_array()) else {
        return false;
    };

    let is_media = |block: &Option<ContentBlock>| {
        matches!(block, Some(ContentBlock::Image(_) | ContentBlock::Audio(_)))
    };
    let is = |item: &Value, text: &str| item.as_str().is_some_and(|item| received.is(text, item));

    items.len() == blocks.len()
        && blocks.iter().any(is_media)
        && items.iter().zip(blocks).all(|(item, block)| match block {
            Some(ContentBlock::Text(text)) => is(&item["text"], &text.text),
            Some(ContentBlock::Image(image)) => {
                is(&item["data"], &image.data) && item["mimeType"] == *image.mime_type
            }
            Some(ContentBlock::Audio(audio)) => {
                is(&item["data"], &audio.data) && item["mimeType"] == *audio.mime_type
            }
            _ => false,
        })
}

/// Whether a text is the value's JSON, whatever its whitespace and escapes.
pub(super) fn is_json_of(text: &str, value: &Value) -> bool {
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

    // Compare with compact JSON first, which allocates nothing.
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

    #[test]
    fn a_member_that_a_large_text_repeats_is_removed() {
        let blocks = [Some(ContentBlock::text("a long text"))];
        let mut value = json!({ "outcome": "done", "transcript": "a long text" });

        remove_member_copy(&mut value, &blocks, &Received::default(), 100);
        assert_eq!(value["transcript"], "a long text");

        remove_member_copy(&mut value, &blocks, &Received::default(), 5);
        assert_eq!(value, json!({ "outcome": "done" }));
    }

    #[test]
    fn json_is_recognised_whatever_its_layout() {
        let value = json!({ "b": [1, 2], "a": "x" });
        for text in [
            value.to_string(),
            serde_json::to_string_pretty(&value).unwrap(),
            "{\"a\": \"\\u0078\", \"b\":[1,2]}".into(),
        ] {
            assert!(is_json_of(&text, &value), "{text}");
        }

        for text in ["{\"b\":[1,2]}", "x", "{\"b\":[1,2],\"a\":\"x\"} and more"] {
            assert!(!is_json_of(text, &value), "{text}");
        }
    }
}
