//! [`Received`]: the parts of a result that were stored while they arrived.

use bytes::Bytes;
use larder_protocol::json_size;
use larder_store::store::StoreError;
use rmcp::model::{ContentBlock, ResourceContents};
use serde_json::{Value, value::RawValue};

use crate::handler::{ReceivedResult, ReceivedStructure, ReceivedText};

/// The parts that a result only names. There are few of them. Those that nobody takes are
/// discarded.
#[derive(Default)]
pub(super) struct Received {
    result: ReceivedResult,
    /// The structured content as it was sent, where its value does not keep its numbers.
    exact: Option<Box<RawValue>>,
}

impl Received {
    pub(super) fn new(result: ReceivedResult) -> Self {
        Self { result, exact: None }
    }

    /// Adds the structured content as it was sent.
    pub(super) fn with_exact_content(self, exact: Option<Box<RawValue>>) -> Self {
        Self { exact, ..self }
    }

    /// Takes the JSON of the structured content as it was sent, unless the value has changed since.
    pub(super) fn take_exact_content(&mut self, value: &Value) -> Option<Bytes> {
        let exact = self.exact.take()?;
        let is_same = serde_json::from_str::<Value>(exact.get()).is_ok_and(|sent| sent == *value);
        is_same.then(|| exact.get().as_bytes().to_vec().into())
    }

    /// Replaces blocks whose base64 is none, which showed while it arrived, by texts that say so.
    pub(super) fn leave_out_malformed(&self, blocks: &mut [Option<ContentBlock>]) {
        if !self.result.texts.iter().any(is_malformed) {
            return;
        }

        for (index, block) in blocks.iter_mut().enumerate() {
            let (what, data) = match block {
                Some(ContentBlock::Image(image)) => ("image", &image.data),
                Some(ContentBlock::Audio(audio)) => ("audio", &audio.data),
                Some(ContentBlock::Resource(embedded)) => match &embedded.resource {
                    ResourceContents::BlobResourceContents { blob, .. } => ("blob", blob),
                    _ => continue,
                },
                _ => continue,
            };
            if self.find(data).is_some_and(is_malformed) {
                let number = index + 1;
                let note =
                    format!("(Content block {number} is left out: its {what} is not base64.)");
                *block = Some(ContentBlock::text(note));
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.result.is_empty()
    }

    /// The text for which that stands.
    pub(super) fn find(&self, text: &str) -> Option<&ReceivedText> {
        self.result.texts.iter().find(|received| received.uri.as_str() == text)
    }

    /// Takes the text for which that stands.
    pub(super) fn take(&mut self, text: &str) -> Option<ReceivedText> {
        let texts = &mut self.result.texts;
        let index = texts.iter().position(|received| received.uri.as_str() == text)?;
        Some(texts.swap_remove(index))
    }

    /// The size of a text in bytes.
    pub(super) fn len_of(&self, text: &str) -> usize {
        self.find(text).map_or(text.len(), ReceivedText::len)
    }

    /// Whether a text of a block is a string of the structured content.
    pub(super) fn is(&self, text: &str, string: &str) -> bool {
        let strings = self.result.structure.iter().flat_map(|structure| &structure.strings);
        let hashed = strings.into_iter().find(|hashed| hashed.name == string);

        match (self.find(text), hashed) {
            (Some(text), Some(hashed)) => text.has_digest(hashed.size, &hashed.sha256),
            (Some(text), None) => text.equals_text(string),
            (None, Some(hashed)) => hashed.equals_text(text),
            (None, None) => text == string,
        }
    }

    /// Whether a text is the JSON of the structured content, in any layout.
    pub(super) fn is_json_of(&self, text: &ReceivedText, value: &Value) -> bool {
        match &self.result.structure {
            Some(structure) => text.is_same_json(&structure.whole),
            None => text.is_json_of(value),
        }
    }

    /// Whether structured content lacks strings.
    pub(super) fn is_incomplete(&self, value: &Value) -> bool {
        self.result.structure.as_ref().is_some_and(|structure| lacks_strings(value, structure))
    }

    /// The size of structured content in bytes, or more than any room if it lacks strings.
    pub(super) fn size_of(&self, value: &Value) -> usize {
        if self.is_incomplete(value) { usize::MAX } else { json_size(value) }
    }

    /// Takes all of the structured content, if the value lacks strings.
    pub(super) fn take_structure(&mut self, value: &Value) -> Option<ReceivedText> {
        let structure =
            self.result.structure.take_if(|structure| lacks_strings(value, structure))?;
        Some(structure.whole)
    }
}

fn is_malformed(text: &ReceivedText) -> bool {
    matches!(text.upload, Err(StoreError::NotAsAnnounced(_)))
}

fn lacks_strings(value: &Value, structure: &ReceivedStructure) -> bool {
    let is_missing = |text: &str| structure.strings.iter().any(|hashed| hashed.name == text);
    match value {
        Value::String(text) => is_missing(text),
        Value::Array(items) => items.iter().any(|item| lacks_strings(item, structure)),
        Value::Object(members) => members
            .iter()
            .any(|(name, member)| is_missing(name) || lacks_strings(member, structure)),
        _ => false,
    }
}
