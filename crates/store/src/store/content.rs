//! Content to store: text, JSON, bytes, or a stream of text or bytes.

use std::{borrow::Cow, fmt, pin::Pin};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use larder_records::record_lines;

use super::{Expected, Kind, Ranges, Reserves, StoredResource};

/// Content as it arrives, in pieces of any size.
pub type ContentStream = Pin<Box<dyn Stream<Item = std::io::Result<Bytes>> + Send>>;

/// Content for a resource. The Rust type decides what a client receives: strings
/// and JSON become `text`, bytes become `blob`. JSON has a line for each of its records.
///
/// ```
/// use larder_store::store::Content;
///
/// let text: Content = "plain".into();
/// let json: Content = serde_json::json!({ "data": [1, 2, 3] }).into();
/// let pdf: Content = b"%PDF-1.7".to_vec().into();
/// assert_eq!(text.mime_type(), "text/plain");
/// assert_eq!(json.mime_type(), "application/json");
/// assert_eq!(pdf.mime_type(), "application/octet-stream");
/// ```
pub struct Content {
    kind: Kind,
    stream: ContentStream,
    mime_type: Cow<'static, str>,
    /// Whether `mime_type` was set, rather than derived from the content's type.
    mime_type_given: bool,
    /// Reads parts of the content, if that is possible.
    ranges: Option<Ranges>,
    /// Whether text that turns out not to be UTF-8 is stored as bytes.
    or_binary: bool,
    /// The announced size and digest, checked before the content becomes visible.
    expected: Expected,
    /// The bytes that count before they have arrived.
    reserves: Reserves,
    /// The stored resource whose content this is, unchanged.
    source: Option<Box<StoredResource>>,
}

impl Content {
    /// UTF-8 text that arrives in pieces, which may split characters.
    pub fn text_stream<S>(pieces: S) -> Self
    where
        S: Stream<Item = std::io::Result<Bytes>> + Send + 'static,
    {
        Self::streamed(Kind::Text, pieces)
    }

    /// Bytes that arrive in pieces.
    pub fn byte_stream<S>(pieces: S) -> Self
    where
        S: Stream<Item = std::io::Result<Bytes>> + Send + 'static,
    {
        Self::streamed(Kind::Binary, pieces)
    }

    /// Content that is stored as text if all of it is UTF-8, and otherwise as bytes. The kind is
    /// known only after the last piece.
    pub fn text_or_bytes<S>(pieces: S) -> Self
    where
        S: Stream<Item = std::io::Result<Bytes>> + Send + 'static,
    {
        Self { or_binary: true, ..Self::text_stream(pieces) }
    }

    /// Stores the content only if it has the size and digest that its sender announced.
    #[must_use]
    pub fn expecting(self, expected: Expected) -> Self {
        Self { expected, ..self }
    }

    /// Content that counts towards the quota of the owner as it arrives, whatever size
    /// the sender announced.
    #[must_use]
    pub fn counted_as_it_arrives(self) -> Self {
        Self { reserves: Reserves::Arrived, ..self }
    }

    /// Notes that this is the content of `source`, so that a backend which has it may copy it.
    pub(super) fn copied_from(self, source: &StoredResource) -> Self {
        Self { source: Some(Box::new(source.clone())), ..self }
    }

    /// The content as it is read, which no backend copies.
    pub(super) fn into_read(self) -> Self {
        Self { source: None, ..self }
    }

    /// The stored resource whose content this is, if its record index is that of content of this
    /// media type.
    pub(super) fn source(&self, mime_type: &str) -> Option<StoredResource> {
        let source = self.source.as_deref()?;
        let has_same_index = self.kind == Kind::Binary || source.entry.mime_type == mime_type;
        has_same_index.then(|| source.clone())
    }

    pub(super) fn reserves(&self) -> Reserves {
        self.reserves
    }

    pub(super) fn expected(&self) -> &Expected {
        &self.expected
    }

    pub(super) fn may_turn_binary(&self) -> bool {
        self.or_binary
    }

    /// UTF-8 text in a shared buffer, without a copy.
    pub fn shared_text(text: Bytes) -> Self {
        Self::from_bytes(Kind::Text, text)
    }

    /// JSON as text, stored with each record on a line of its own.
    pub fn json(text: &[u8]) -> Self {
        let pieces = record_lines(text).into_iter().map(Ok);
        let mime_type = "application/json".into();
        Self { mime_type, ..Self::text_stream(stream::iter(pieces)) }
    }

    /// Lets `ranges` read parts of the content.
    #[must_use]
    pub fn with_ranges(self, ranges: Ranges) -> Self {
        Self { ranges: Some(ranges), ..self }
    }

    /// The reader of parts of the content, if there is one.
    pub(super) fn ranges(&self) -> Option<Ranges> {
        self.ranges.clone()
    }

    /// Sets the media type.
    #[must_use]
    pub fn with_mime_type(mut self, mime_type: impl Into<Cow<'static, str>>) -> Self {
        self.mime_type = mime_type.into();
        self.mime_type_given = true;
        self
    }

    /// The media type, by default the type that belongs to the content's Rust type.
    pub fn mime_type(&self) -> &str {
        &self.mime_type
    }

    /// The media type, if it was set with [`with_mime_type`](Self::with_mime_type).
    pub fn explicit_mime_type(&self) -> Option<&str> {
        self.mime_type_given.then_some(&*self.mime_type)
    }

    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    /// Splits the content into its kind and its stream of pieces.
    pub fn into_parts(self) -> (Kind, ContentStream) {
        (self.kind, self.stream)
    }

    fn streamed<S>(kind: Kind, pieces: S) -> Self
    where
        S: Stream<Item = std::io::Result<Bytes>> + Send + 'static,
    {
        Self {
            kind,
            stream: pieces.boxed(),
            mime_type: kind.default_mime_type().into(),
            mime_type_given: false,
            ranges: None,
            or_binary: false,
            expected: Expected::default(),
            reserves: Reserves::Announced,
            source: None,
        }
    }

    fn from_bytes(kind: Kind, bytes: Bytes) -> Self {
        let expected = Expected { size: Some(bytes.len() as u64), sha256: None };
        Self::streamed(kind, stream::iter([Ok(bytes)])).expecting(expected)
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::from_bytes(Kind::Text, text.into())
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<serde_json::Value> for Content {
    fn from(json: serde_json::Value) -> Self {
        Self::json(json.to_string().as_bytes())
    }
}

impl From<Vec<u8>> for Content {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::from(bytes).into()
    }
}

impl From<Bytes> for Content {
    fn from(bytes: Bytes) -> Self {
        Self::from_bytes(Kind::Binary, bytes)
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Content").field("kind", &self.kind).finish_non_exhaustive()
    }
}
