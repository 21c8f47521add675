//! [`Receiving`]: stores long texts of a call's result while they arrive.
//!
//! Such a text is never in memory as a whole. In the result, a URI stands for it, which is secret
//! until the call ends; `spill` finds the text by that URI, and makes it a resource.

#![cfg_attr(not(feature = "upstream"), allow(dead_code, reason = "only upstreams send such texts"))]

use bytes::{Bytes, BytesMut};
use sha2::{Digest, Sha256};

use super::Scope;
use crate::{
    auth::Owner,
    compute::Compute,
    preview::{HEAD_BYTES, TAIL_BYTES},
    protocol::JsonDigest,
    random::Random,
    store::{Arrived, Arriving, ResourceUri, Store, StoreError},
};

/// Where long texts of a call's result go.
#[derive(Debug)]
pub(crate) struct Receiving {
    owner: Owner,
    store: Store,
    random: Random,
    tool: String,
    /// The length in bytes up to which a text may be sent as it is.
    longest: usize,
}

/// A text that is still arriving. Dropping it discards it.
pub(crate) struct ReceivingText {
    uri: ResourceUri,
    size: u64,
    /// The first bytes.
    head: BytesMut,
    /// The last bytes, and more.
    tail: Vec<u8>,
    /// The digest of the text, if it may be JSON.
    json: Option<JsonDigest>,
    owner: Owner,
    upload: Result<Arriving, StoreError>,
}

/// A text that has arrived. Dropping it discards it.
#[derive(Debug)]
pub(crate) struct ReceivedText {
    /// What stands for it in the result.
    pub(crate) uri: ResourceUri,
    pub(crate) size: u64,
    /// The first [`HEAD_BYTES`].
    pub(crate) head: Bytes,
    /// The last [`TAIL_BYTES`].
    pub(crate) tail: Bytes,
    /// The digest of the text as JSON, if it may be JSON.
    pub(crate) json: Option<[u8; 32]>,
    /// The upload, or why it failed.
    pub(crate) upload: Result<Arrived, StoreError>,
}

/// A string of structured content that is still arriving. Only its digest is kept.
pub(crate) struct HashingText {
    name: String,
    size: u64,
    hash: Sha256,
}

/// A string of structured content that has arrived.
#[derive(Debug)]
pub(crate) struct HashedText {
    /// What stands for it in the result.
    pub(crate) name: String,
    pub(crate) size: u64,
    pub(crate) sha256: [u8; 32],
}

/// Structured content that has long strings.
#[derive(Debug)]
pub(crate) struct ReceivedStructure {
    /// All of its JSON.
    pub(crate) whole: ReceivedText,
    /// The strings that the value in the result lacks.
    pub(crate) strings: Vec<HashedText>,
}

/// The parts of a result that were stored while they arrived.
#[derive(Debug, Default)]
pub(crate) struct ReceivedResult {
    pub(crate) texts: Vec<ReceivedText>,
    pub(crate) structure: Option<Box<ReceivedStructure>>,
}

impl ReceivedResult {
    /// Whether nothing was stored.
    pub(crate) fn is_empty(&self) -> bool {
        self.texts.is_empty() && self.structure.is_none()
    }
}

impl Receiving {
    /// For a call of this tool, whose result must be stored if it has a text of more than
    /// `longest` bytes. `None` if nothing can be stored under the tool's name.
    pub(crate) fn new(scope: &Scope, tool: &str, longest: usize) -> Option<Self> {
        ResourceUri::for_result(tool, "").ok()?;
        let (owner, store) = (scope.identity.owner().clone(), scope.store.clone());
        let (random, tool) = (scope.random.clone(), tool.to_owned());
        Some(Self { owner, store, random, tool, longest })
    }

    /// The length in bytes up to which a text may be sent as it is.
    pub(crate) fn longest(&self) -> usize {
        self.longest
    }

    /// Whether what is received for one call can be given to the other one.
    pub(crate) fn suits(&self, other: &Self) -> bool {
        let Self { owner, tool, longest, store: _, random: _ } = self;
        (owner, tool, longest) == (&other.owner, &other.tool, &other.longest)
    }

    /// Begins a string of which only the digest is kept.
    pub(crate) fn begin_hashing(&self) -> HashingText {
        let name = format!("larder-string:{}", self.random.id());
        HashingText { name, size: 0, hash: Sha256::new() }
    }

    /// Begins a text. `None` if nothing can be stored under the tool's name.
    pub(crate) async fn begin(&self) -> Option<ReceivingText> {
        let uri = ResourceUri::for_result(&self.tool, &self.random.id()).ok()?;
        Some(ReceivingText {
            upload: self.store.begin(&self.owner, uri.clone()).await,
            uri,
            size: 0,
            head: BytesMut::new(),
            tail: Vec::new(),
            json: None,
            owner: self.owner.clone(),
        })
    }
}

impl HashingText {
    /// What stands for it in the result.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Adds a piece.
    pub(crate) fn add(&mut self, piece: &[u8]) {
        self.size += piece.len() as u64;
        self.hash.update(piece);
    }

    /// Ends the string.
    pub(crate) fn finish(self) -> HashedText {
        HashedText { name: self.name, size: self.size, sha256: self.hash.finalize().into() }
    }
}

impl ReceivingText {
    /// What stands for it in the result.
    pub(crate) fn uri(&self) -> &ResourceUri {
        &self.uri
    }

    /// Adds a piece. An error of the store is kept for the end.
    pub(crate) async fn write(&mut self, piece: Bytes) {
        let first = piece.iter().find(|byte| !byte.is_ascii_whitespace());
        if self.size == 0 && matches!(first, Some(b'{' | b'[')) {
            self.json = Some(JsonDigest::default());
        }
        self.size += piece.len() as u64;
        let room = HEAD_BYTES - self.head.len();
        self.head.extend_from_slice(&piece[..piece.len().min(room)]);
        self.tail.extend_from_slice(&piece[piece.len().saturating_sub(TAIL_BYTES)..]);
        if self.tail.len() > 2 * TAIL_BYTES {
            self.tail.drain(..self.tail.len() - TAIL_BYTES);
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
        if let Ok(upload) = &mut self.upload
            && let Err(error) = upload.write(piece).await
        {
            self.upload = Err(error);
        }
    }

    /// Ends the text.
    pub(crate) async fn finish(self) -> ReceivedText {
        let Self { uri, size, head, mut tail, json, upload, .. } = self;
        tail.drain(..tail.len().saturating_sub(TAIL_BYTES));
        let upload = match upload {
            Ok(upload) => upload.finish().await,
            Err(error) => Err(error),
        };
        let json = json.and_then(JsonDigest::finish);
        ReceivedText { uri, size, head: head.freeze(), tail: tail.into(), json, upload }
    }
}

impl HashedText {
    /// Whether it is that text.
    pub(crate) fn is(&self, text: &str) -> bool {
        self.size == text.len() as u64 && self.sha256[..] == Sha256::digest(text.as_bytes())[..]
    }
}

impl ReceivedText {
    /// The size in bytes.
    pub(crate) fn len(&self) -> usize {
        usize::try_from(self.size).unwrap_or(usize::MAX)
    }

    /// Whether it is the same text.
    pub(crate) fn is(&self, text: &str) -> bool {
        self.len() == text.len()
            && text.as_bytes().starts_with(&self.head)
            && self.has_digest(text.len() as u64, &Sha256::digest(text.as_bytes()))
    }

    /// Whether it is a text of this size and digest.
    pub(crate) fn has_digest(&self, size: u64, sha256: &[u8]) -> bool {
        self.size == size && self.upload.as_ref().is_ok_and(|upload| upload.has_digest(sha256))
    }

    /// Whether it is the JSON of that value, in any layout.
    pub(crate) fn is_json_of(&self, value: &serde_json::Value) -> bool {
        self.json.is_some() && self.json == JsonDigest::of(value)
    }

    /// Whether both are the same JSON, in any layout.
    pub(crate) fn is_same_json(&self, other: &Self) -> bool {
        self.json.is_some() && self.json == other.json
    }

    /// The number of lines, as far as it is known.
    pub(crate) fn lines(&self) -> u64 {
        self.upload.as_ref().map_or(0, Arrived::lines)
    }
}
