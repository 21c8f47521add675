//! [`Part`]: a part of a result that is stored.

use bytes::Bytes;
use larder_records::Compactor;
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
    /// The items of a list, some of which were stored while they arrived.
    Items(Vec<Item>),
}

/// An item of a list, which gets a line of its own.
pub(super) enum Item {
    Json(String),
    Text(String),
    /// JSON that was stored while it arrived.
    ReceivedJson(Box<ReceivedText>),
    /// Text that was stored while it arrived.
    ReceivedText(Box<ReceivedText>),
}

/// The size of the pieces of a list in bytes.
const PIECE_BYTES: usize = 256 << 10;

impl Body {
    /// The bytes that are in memory.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Text(pieces) => pieces.iter().map(Bytes::len).sum(),
            Self::Json(_, json) => json.len(),
            Self::Base64(data) => data.len(),
            // Received content has only its ends in memory.
            Self::Received(text, _) => text.head.len(),
            Self::Items(items) => items.iter().map(Item::size).sum(),
        }
    }
}

impl Item {
    /// The bytes that are in memory.
    fn size(&self) -> usize {
        match self {
            Self::Json(text) | Self::Text(text) => text.len(),
            Self::ReceivedJson(text) | Self::ReceivedText(text) => text.head.len(),
        }
    }

    fn is_received(&self) -> bool {
        matches!(self, Self::ReceivedJson(_) | Self::ReceivedText(_))
    }

    /// Appends the line of an item that is in memory.
    pub(super) fn write_line(&self, out: &mut Vec<u8>) {
        let start = out.len();
        match self {
            Self::Json(json) => Compactor::default().feed(json.as_bytes(), out),
            // Writing to a list cannot fail.
            Self::Text(text) => drop(serde_json::to_writer(&mut *out, text)),
            Self::ReceivedJson(_) | Self::ReceivedText(_) => {}
        }

        on_one_line(&mut out[start..]);
        out.push(b'\n');
    }
}

/// Replaces line breaks, which only strings of malformed JSON have here.
pub(super) fn on_one_line(json: &mut [u8]) {
    json.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
}

impl Part {
    /// A list, with a line for each item.
    pub(super) fn list(items: Vec<Item>) -> Self {
        let mime_type = Some("application/x-ndjson".to_owned());
        if items.iter().any(Item::is_received) {
            return Self { name: None, mime_type, body: Body::Items(items) };
        }

        let mut pieces = Vec::new();
        let mut piece = Vec::new();
        for item in items {
            item.write_line(&mut piece);
            if piece.len() >= PIECE_BYTES {
                pieces.push(std::mem::take(&mut piece).into());
            }
        }

        pieces.push(piece.into());
        Self { name: None, mime_type, body: Body::Text(pieces) }
    }

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
