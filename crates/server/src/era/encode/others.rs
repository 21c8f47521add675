//! Encodes members that the protocol's types do not have, as a server behind this one wrote them.

use bytes::Bytes;
use larder_protocol::{Fault, OtherMembers};
use rmcp::model::{ContentBlock, GetPromptResult, MetaObject};
use serde::Serialize;
use serde_json::Value;

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

/// The messages of a prompt, whose content may have other members.
pub(super) fn prompt(prompt: &GetPromptResult) -> Result<Value, Fault> {
    let mut prompt = as_written(prompt)?;
    if let Some(Value::Array(messages)) = prompt.get_mut("messages") {
        let contents = messages.iter_mut().filter_map(|message| message.get_mut("content"));
        contents.for_each(OtherMembers::restore);
    }
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
