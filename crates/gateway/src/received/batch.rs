//! [`Batch`]: several messages in one, of which there may be only so many.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

/// The most messages of a batch: more than the answers for which one upstream is waited for, as
/// Larder itself sends no batches.
pub(crate) const MAX_BATCH: usize = 1_000;

/// The messages of a batch, which are not read yet. `None` if there are more than [`MAX_BATCH`].
pub(super) struct Batch<'a>(pub(super) Option<Vec<&'a RawValue>>);

impl<'de: 'a, 'a> Deserialize<'de> for Batch<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Messages).map(Self)
    }
}

/// Reads the messages up to the limit. What follows is checked, and not kept.
struct Messages;

impl<'de> Visitor<'de> for Messages {
    type Value = Option<Vec<&'de RawValue>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a batch of messages")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut batch: A) -> Result<Self::Value, A::Error> {
        let mut messages = Vec::new();
        while let Some(message) = batch.next_element()? {
            if messages.len() == MAX_BATCH {
                while batch.next_element::<IgnoredAny>()?.is_some() {}
                return Ok(None);
            }
            messages.push(message);
        }
        Ok(Some(messages))
    }
}
