//! [`Part`]: a part of a result that is stored.

use bytes::Bytes;
use serde_json::Value;

use super::received::Received;
use crate::handler::ReceivedText;

/// A part of a result to store.
pub(super) struct Part {
    /// The part's own name, such as the URI of an embedded resource.
    pub(super) name: Option<String>,
    pub(super) mime_type: Option<String>,
    pub(super) body: Body,
}

pub(super) enum Body {
    /// UTF-8 text, in pieces.
    Text(Vec<Bytes>),
    /// A value and its JSON.
    Json(Value, Bytes),
    /// Base64-encoded bytes.
    Base64(String),
    /// Content that was stored while it arrived, and its value if it is JSON and that is known.
    Received(Box<ReceivedText>, Option<Value>),
}

impl Body {
    /// The bytes that are in memory.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Text(pieces) => pieces.iter().map(Bytes::len).sum(),
            Self::Json(_, json) => json.len(),
            Self::Base64(data) => data.len(),
            // Received content has only its ends in memory.
            Self::Received(text, _) => text.head.len(),
        }
    }
}

impl Part {
    pub(super) fn json(value: Value, json: Bytes) -> Self {
        let mime_type = Some("application/json".to_owned());
        Self { name: None, mime_type, body: Body::Json(value, json) }
    }

    pub(super) fn of_value(value: Value) -> Self {
        // A value always serializes.
        let json = serde_json::to_vec(&value).unwrap_or_default();
        Self::json(value, json.into())
    }

    pub(super) fn received(text: ReceivedText) -> Self {
        Self { name: None, mime_type: None, body: Body::Received(Box::new(text), None) }
    }

    /// JSON that was stored while it arrived, and its value if that is known.
    pub(super) fn received_json(text: ReceivedText, value: Option<Value>) -> Self {
        let mime_type = Some("application/json".to_owned());
        Self { name: None, mime_type, body: Body::Received(Box::new(text), value) }
    }

    pub(super) fn text(pieces: Vec<Bytes>) -> Self {
        Self { name: None, mime_type: None, body: Body::Text(pieces) }
    }

    pub(super) fn base64(mime_type: Option<String>, data: String, received: &mut Received) -> Self {
        let body = match received.take(&data) {
            Some(content) => Body::Received(Box::new(content), None),
            None => Body::Base64(data),
        };
        Self { name: None, mime_type, body }
    }
}
