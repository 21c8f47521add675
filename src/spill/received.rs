//! [`Received`]: the texts of a result that were stored while they arrived.

use crate::handler::ReceivedText;

/// The texts that a result names by their URIs. There are few of them. Those that nobody takes
/// are discarded.
#[derive(Default)]
pub(super) struct Received(Vec<ReceivedText>);

impl Received {
    pub(super) fn new(texts: Vec<ReceivedText>) -> Self {
        Self(texts)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text for which that stands.
    pub(super) fn find(&self, text: &str) -> Option<&ReceivedText> {
        self.0.iter().find(|received| received.uri.as_str() == text)
    }

    /// Takes the text for which that stands.
    pub(super) fn take(&mut self, text: &str) -> Option<ReceivedText> {
        let index = self.0.iter().position(|received| received.uri.as_str() == text)?;
        Some(self.0.swap_remove(index))
    }

    /// The size of a text in bytes.
    pub(super) fn len_of(&self, text: &str) -> usize {
        self.find(text).map_or(text.len(), ReceivedText::len)
    }

    /// Whether one text, as it is in the result, is another one.
    pub(super) fn is(&self, text: &str, other: &str) -> bool {
        match self.find(text) {
            Some(received) => received.is(other),
            None => text == other,
        }
    }
}
