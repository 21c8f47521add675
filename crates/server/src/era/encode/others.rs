//! Encodes members that the protocol's types do not have, as a server behind this one wrote them.

use bytes::Bytes;
use larder_protocol::{Fault, OtherMembers};
use rmcp::model::{ContentBlock, GetPromptResult, MetaObject};
use serde::Serialize;
use serde_json::{Map, Value};

use super::encoder::to_json;

/// Whether the metadata of an item carries other members.
pub(super) fn has_others(meta: Option<&MetaObject>) -> bool {
    meta.is_some_and(|MetaObject(meta)| OtherMembers::are_in(meta))
}

/// Whether the metadata of a content block carries other members.
pub(super) fn block_has_others(block: &ContentBlock) -> bool {
    has_others(match block {
        ContentBlock::Text(text) => text.meta.as_ref(),
        ContentBlock::Image(image) => image.meta.as_ref(),
        ContentBlock::Audio(audio) => audio.meta.as_ref(),
        ContentBlock::Resource(embedded) => embedded.meta.as_ref(),
        ContentBlock::ResourceLink(link) => link.meta.as_ref(),
        _ => None,
    })
}

/// The JSON of a block with its other members.
pub(super) fn block(block: &ContentBlock) -> Result<Bytes, Fault> {
    if !block_has_others(block) {
        return to_json(block);
    }

    let mut value = as_written(block)?;
    OtherMembers::restore(&mut value);
    to_json(&value)
}

/// A page of a list, whose items are in this member, with their other members.
pub(super) fn list(page: &impl Serialize, member: &str) -> Result<Value, Fault> {
    let mut page = as_written(page)?;
    if let Some(items) = page.get_mut(member) {
        OtherMembers::restore(items);
    }
    Ok(page)
}

/// The members of a result itself that its `_meta` carries. Without them, the `_meta` may be empty:
/// then there is none.
pub(super) fn take_own(meta: &mut Option<MetaObject>) -> Map<String, Value> {
    let Some(MetaObject(members)) = meta else { return Map::new() };
    if !OtherMembers::are_in(members) {
        return Map::new();
    }

    let own = OtherMembers::take_own(members);
    if members.is_empty() {
        *meta = None;
    }
    own
}

/// The JSON of members that follow others within an object, each after a comma.
pub(super) fn following(members: &Map<String, Value>) -> Result<Bytes, Fault> {
    if members.is_empty() {
        return Ok(Bytes::new());
    }

    let mut json = Vec::from(to_json(members)?);
    json.pop();
    json[0] = b',';
    Ok(json.into())
}

/// A response whose result has these members after its own.
pub(super) fn append(response: Bytes, members: &Map<String, Value>) -> Result<Bytes, Fault> {
    // The result is the last member of the response.
    const END: &[u8] = b"}}";
    match response.strip_suffix(END) {
        Some(head) if !members.is_empty() => Ok([head, &*following(members)?, END].concat().into()),
        _ => Ok(response),
    }
}

/// A result with its other members, also those of the objects in it.
pub(super) fn result(result: &impl Serialize) -> Result<Value, Fault> {
    let mut result = as_written(result)?;
    OtherMembers::restore(&mut result);
    Ok(result)
}

/// A prompt with its other members, also those of its messages and their content.
pub(super) fn prompt(prompt: &GetPromptResult) -> Result<Value, Fault> {
    let mut prompt = as_written(prompt)?;
    if let Some(Value::Array(messages)) = prompt.get_mut("messages") {
        let contents = messages.iter_mut().filter_map(|message| message.get_mut("content"));
        contents.for_each(OtherMembers::restore);
    }
    OtherMembers::restore(&mut prompt);
    Ok(prompt)
}

/// The value of the JSON of `item`. Unlike `serde_json::to_value`, it keeps an `f32` as it is
/// written.
fn as_written(item: &impl Serialize) -> Result<Value, Fault> {
    serde_json::from_slice(&to_json(item)?).map_err(|error| {
        tracing::error!(%error, "a result cannot be read again");
        Fault::Internal("The result cannot be encoded as JSON.".into())
    })
}
