//! [`Receiving`]: stores long texts of a call's result while they arrive, and long base64 (images,
//! audio, blobs) decoded.
//!
//! Such a string is never in memory as a whole. The result has a placeholder, a URI that is secret
//! until the call ends; `spill` finds the stored content by that URI, and makes it a resource.
//! Contents that `resources/read` returns are in the store only until they are sent.

use bytes::{Bytes, BytesMut};
use larder_oauth::Owner;
use larder_protocol::JsonDigest;
use larder_records::preview::{HEAD_BYTES, TAIL_BYTES};
use larder_runtime::{compute::Compute, random::Random};
use larder_store::store::{Arrived, Arriving, Kind, ResourceUri, Store, StoreError};
use sha2::{Digest, Sha256};

use super::{
    Scope,
    base64_pieces::{Base64Pieces, NotBase64},
};

/// Contents of resources up to this size are held in memory: storing a content takes about as much.
const SMALL_CONTENT: usize = 256 << 10;

/// Stores the long strings of a call's result.
#[derive(Debug)]
pub struct Receiving {
    owner: Owner,
    store: Store,
    random: Random,
    source: Source,
    longest: Longest,
}

/// The origin of the long strings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The result of this tool.
    Tool(String),
    /// The contents of a resource.
    Resource,
}

/// The lengths in bytes up to which the strings of a result may be sent as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Longest {
    /// Texts, and the blobs of embedded resources.
    pub text: usize,
    /// Images and audio, in base64.
    pub media: usize,
}

/// A text or base64 that is still arriving. Dropping the value discards the content.
pub struct ReceivingText {
    uri: ResourceUri,
    /// Binary content arrives as base64.
    kind: Kind,
    base64: Base64Pieces,
    /// The length in bytes of the string so far.
    length: u64,
    /// The size of the content in bytes so far.
    size: u64,
    /// The first bytes.
    head: BytesMut,
    /// The last bytes, and more.
    tail: Vec<u8>,
    /// Whether a text that may be JSON needs a digest, because copies of it may follow.
    may_have_copies: bool,
    /// The digest of the text, if it may be JSON.
    json: Option<JsonDigest>,
    owner: Owner,
    upload: Result<Arriving, StoreError>,
}

/// A text or binary content that has arrived. Dropping the value discards the content.
#[derive(Debug)]
pub struct ReceivedText {
    /// The placeholder in the result.
    pub(crate) uri: ResourceUri,
    /// Binary content has arrived as base64.
    pub(crate) kind: Kind,
    /// The length in bytes of the string that has arrived.
    length: u64,
    /// The size of the content in bytes.
    pub(crate) size: u64,
    /// The first [`HEAD_BYTES`].
    pub(crate) head: Bytes,
    /// The last [`TAIL_BYTES`].
    pub(crate) tail: Bytes,
    /// The digest of the text as JSON, if it may be JSON.
    pub(crate) json: Option<[u8; 32]>,
    /// The SHA-256 of the base64 of binary content.
    base64: Option<[u8; 32]>,
    /// The upload, or the reason why it failed.
    pub upload: Result<Arrived, StoreError>,
}

/// A string of structured content that is still arriving. Only its digest is kept.
pub struct HashingText {
    name: String,
    size: u64,
    hash: Sha256,
}

/// A string that has arrived, of which only the digest is kept.
#[derive(Debug)]
pub struct HashedText {
    /// The placeholder in the result.
    pub(crate) name: String,
    pub(crate) size: u64,
    pub(crate) sha256: [u8; 32],
}

/// Structured content that has long strings.
#[derive(Debug)]
pub struct ReceivedStructure {
    /// The JSON of the whole value.
    pub whole: ReceivedText,
    /// The strings that the value in the result lacks.
    pub strings: Vec<HashedText>,
}

/// The parts of a result that were stored while they arrived.
#[derive(Debug, Default)]
pub struct ReceivedResult {
    /// The texts and data of blocks, in their order.
    pub texts: Vec<ReceivedText>,
    /// The structured content, if it was stored.
    pub structure: Option<Box<ReceivedStructure>>,
}

impl ReceivedResult {
    /// Whether nothing was stored.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty() && self.structure.is_none()
    }
}

impl Receiving {
    /// Receives for a call of this tool, whose result must be stored if it has a string that is
    /// longer than `longest`. `None` if nothing can be stored under the tool's name.
    pub(crate) fn new(scope: &Scope, tool: &str, longest: Longest) -> Option<Self> {
        ResourceUri::for_result(tool, "").ok()?;
        Some(Self {
            owner: scope.identity.owner().clone(),
            store: scope.store.clone(),
            random: scope.random.clone(),
            source: Source::Tool(tool.to_owned()),
            longest,
        })
    }

    /// Receives for a request that reads a resource.
    pub fn of_resource(scope: &Scope) -> Self {
        let longest = scope.server.output_bytes(&scope.client).max(SMALL_CONTENT);
        Self {
            owner: scope.identity.owner().clone(),
            store: scope.store.clone(),
            random: scope.random.clone(),
            source: Source::Resource,
            longest: Longest { text: longest, media: longest },
        }
    }

    /// The origin of the strings.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The lengths up to which strings may be sent as they are.
    pub fn longest(&self) -> Longest {
        self.longest
    }

    /// Whether strings that were received for one call can be given to the other call.
    pub fn is_interchangeable_with(&self, other: &Self) -> bool {
        let Self { owner, source, longest, store: _, random: _ } = self;
        (owner, source, longest) == (&other.owner, &other.source, &other.longest)
    }

    /// Begins a string of which only the digest is kept.
    pub fn begin_hashing(&self) -> HashingText {
        let name = format!("larder-string:{}", self.random.id());
        HashingText { name, size: 0, hash: Sha256::new() }
    }

    /// Begins a text, or base64 for binary content. `None` if nothing can be stored under the
    /// tool's name.
    pub async fn begin(&self, kind: Kind) -> Option<ReceivingText> {
        let owner = &self.owner;
        let id = self.random.id();

        let (uri, upload) = match &self.source {
            Source::Tool(tool) => {
                let uri = ResourceUri::for_result(tool, &id).ok()?;
                (uri.clone(), self.store.begin(owner, uri, kind).await)
            }
            Source::Resource => {
                let uri = ResourceUri::parse(&format!("transit:{id}")).ok()?;
                (uri.clone(), self.store.begin_transit(owner, uri, kind).await)
            }
        };

        Some(ReceivingText {
            upload,
            uri,
            kind,
            base64: Base64Pieces::default(),
            length: 0,
            size: 0,
            head: BytesMut::new(),
            tail: Vec::new(),
            may_have_copies: matches!(self.source, Source::Tool(_)),
            json: None,
            owner: self.owner.clone(),
        })
    }
}

impl HashingText {
    /// The placeholder in the result.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Adds a piece.
    pub fn add(&mut self, piece: &[u8]) {
        self.size += piece.len() as u64;
        self.hash.update(piece);
    }

    /// Ends the string.
    pub fn finish(self) -> HashedText {
        HashedText { name: self.name, size: self.size, sha256: self.hash.finalize().into() }
    }
}

impl ReceivingText {
    /// The placeholder in the result.
    pub fn uri(&self) -> &ResourceUri {
        &self.uri
    }

    /// Adds a piece. After an error of the store, or of base64 that is invalid, nothing more is
    /// stored; [`ReceivedText::upload`] has the error.
    pub async fn write(&mut self, piece: Bytes) {
        self.length += piece.len() as u64;
        match self.kind {
            Kind::Text => self.write_text(piece).await,
            Kind::Binary if self.upload.is_err() => {}
            Kind::Binary => match self.decode(piece).await {
                Ok(content) => self.store(content).await,
                Err(error) => self.upload = Err(error),
            },
        }
    }

    /// The content of a piece of base64.
    async fn decode(&mut self, piece: Bytes) -> Result<Bytes, StoreError> {
        let mut base64 = std::mem::take(&mut self.base64);
        let work = Compute::run(self.owner.as_str(), piece.len(), move || {
            let decoded = base64.feed(&piece);
            (base64, decoded)
        });
        let (base64, decoded) = work.done().await?;
        self.base64 = base64;
        Ok(decoded?.into())
    }

    async fn write_text(&mut self, piece: Bytes) {
        let first = piece.iter().find(|byte| !byte.is_ascii_whitespace());
        if self.size == 0 && self.may_have_copies && matches!(first, Some(b'{' | b'[')) {
            self.json = Some(JsonDigest::default());
        }

        if let Some(mut json) = self.json.take() {
            let fed = piece.clone();
            let work = Compute::run(self.owner.as_str(), piece.len(), move || {
                json.feed(&fed);
                json
            });
            // Without a digest, a copy of the text is not recognized.
            self.json = work.done().await.ok();
        }

        self.store(piece).await;
    }

    /// Stores the next piece of the content.
    async fn store(&mut self, piece: Bytes) {
        self.size += piece.len() as u64;
        let room = HEAD_BYTES - self.head.len();
        self.head.extend_from_slice(&piece[..piece.len().min(room)]);
        self.tail.extend_from_slice(&piece[piece.len().saturating_sub(TAIL_BYTES)..]);

        if self.tail.len() > 2 * TAIL_BYTES {
            self.tail.drain(..self.tail.len() - TAIL_BYTES);
        }

        if let Ok(upload) = &mut self.upload
            && let Err(error) = upload.write(piece).await
        {
            self.upload = Err(error);
        }
    }

    /// Ends the string.
    pub async fn finish(mut self) -> ReceivedText {
        let base64 = (self.kind == Kind::Binary).then(|| std::mem::take(&mut self.base64));
        let base64 = match base64.map(Base64Pieces::finish).transpose() {
            Ok(end) => {
                let last = end.as_ref().map(|end| Bytes::copy_from_slice(&end.last));
                if let Some(last) = last.filter(|last| !last.is_empty()) {
                    self.store(last).await;
                }
                end.map(|end| end.sha256)
            }
            Err(error) => {
                // An earlier error is the cause.
                if self.upload.is_ok() {
                    self.upload = Err(error.into());
                }
                None
            }
        };

        let Self { uri, kind, length, size, head, mut tail, json, upload, .. } = self;
        tail.drain(..tail.len().saturating_sub(TAIL_BYTES));

        let upload = match upload {
            Ok(upload) => upload.finish().await,
            Err(error) => Err(error),
        };

        ReceivedText {
            uri,
            kind,
            length,
            size,
            head: head.freeze(),
            tail: tail.into(),
            json: json.and_then(JsonDigest::finish),
            base64,
            upload,
        }
    }
}

impl HashedText {
    /// Whether `text` is the received string.
    pub(crate) fn equals_text(&self, text: &str) -> bool {
        self.size == text.len() as u64 && self.sha256[..] == Sha256::digest(text.as_bytes())[..]
    }
}

impl ReceivedText {
    /// The length in bytes of the string that has arrived.
    pub(crate) fn len(&self) -> usize {
        usize::try_from(self.length).unwrap_or(usize::MAX)
    }

    /// Whether `text` is the received string.
    pub(crate) fn equals_text(&self, text: &str) -> bool {
        self.len() == text.len()
            && (self.kind == Kind::Binary || text.as_bytes().starts_with(&self.head))
            && self.has_digest(text.len() as u64, &Sha256::digest(text.as_bytes()))
    }

    /// Whether the string that has arrived has this size and digest.
    pub(crate) fn has_digest(&self, size: u64, sha256: &[u8]) -> bool {
        self.length == size
            && match self.kind {
                Kind::Text => self.upload.as_ref().is_ok_and(|upload| upload.has_digest(sha256)),
                Kind::Binary => self.base64.is_some_and(|base64| base64 == sha256),
            }
    }

    /// Whether the received text is the JSON of this value, in any layout.
    pub(crate) fn is_json_of(&self, value: &serde_json::Value) -> bool {
        self.json.is_some() && self.json == JsonDigest::of(value)
    }

    /// Whether both texts are the same JSON value, in any layout.
    pub(crate) fn is_same_json(&self, other: &Self) -> bool {
        self.json.is_some() && self.json == other.json
    }

    /// The number of lines, as far as it is known.
    pub(crate) fn lines(&self) -> u64 {
        self.upload.as_ref().map_or(0, Arrived::lines)
    }
}

impl From<NotBase64> for StoreError {
    fn from(NotBase64: NotBase64) -> Self {
        let problem = "The data of an image, of audio or of a resource is not base64.";
        Self::NotAsAnnounced(problem.to_owned())
    }
}
