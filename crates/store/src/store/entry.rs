//! The metadata of a stored resource.

use std::{fmt, sync::Arc};

use larder_identity::Owner;
use larder_records::RecordIndex;
use larder_runtime::clock::Timestamp;
use serde::{Deserialize, Serialize};

use super::ResourceUri;

/// A stored resource without its content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Entry {
    /// The resource's URI, chosen by its creator.
    pub uri: ResourceUri,
    /// The owner.
    pub owner: Owner,
    /// The number of this write to the URI: 1 for a new resource.
    pub revision: u64,
    /// Short name; by default the last segment of the URI.
    pub name: String,
    /// Title for display.
    pub title: Option<String>,
    /// Description of the content.
    pub description: Option<String>,
    /// The media type.
    pub mime_type: String,
    /// Text or binary.
    pub kind: Kind,
    /// The content's size in bytes.
    pub size: u64,
    /// Number of lines; 0 for binary content.
    pub lines: u64,
    /// SHA-256 of the content, in hexadecimal.
    pub sha256: String,
    /// When the resource was created; updates keep this.
    pub created: Timestamp,
    /// When the resource was last written.
    pub updated: Timestamp,
    /// When the resource expires: at this time it no longer exists.
    pub expires: Timestamp,
    /// The session at whose end the resource is deleted, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Arc<str>>,
    /// The upstream servers that the content comes from, in order; empty for content of callers
    /// and of this server.
    #[serde(default, skip_serializing_if = "super::origins::is_empty")]
    pub origins: Arc<[Arc<str>]>,
    /// The block table, in order of offsets.
    pub blocks: Arc<[Block]>,
    /// The positions of the records of structured text. `None` for short content, and for content
    /// that earlier versions of Larder wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<Arc<RecordIndex>>,
}

/// The bytes that an entry without its texts counts: about the size of its record and of its
/// keys in the indexes.
const ENTRY_BYTES: u64 = 1024;

/// How many times a backend stores the URI: in the entry's key and in the indexes.
const URI_COPIES: u64 = 4;

impl Entry {
    /// The bytes that this revision counts towards the quota of its owner: the content before
    /// compression, the metadata, the record index, and a fixed amount, so that resources without
    /// content are not free.
    pub fn counted_bytes(&self) -> u64 {
        let optional_texts = [self.title.as_ref(), self.description.as_ref()];
        let texts = [&self.name, &self.mime_type]
            .into_iter()
            .chain(optional_texts.into_iter().flatten())
            .map(String::len)
            .chain(self.origins.iter().map(|origin| origin.len()))
            .sum::<usize>();
        let uri = self.uri.as_str().len() as u64;
        let records = self.records.as_ref().map_or(0, |index| index.memory_bytes());

        self.size + ENTRY_BYTES + URI_COPIES * uri + texts as u64 + records
    }

    /// The stored size in bytes: less than `size` where blocks are compressed.
    pub fn stored_size(&self) -> u64 {
        self.blocks.last().map_or(0, Block::stored_end)
    }

    /// Whether the resource is expired at `now`.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        now >= self.expires
    }
}

/// Writes the URI, for texts such as `format!("Access at {entry}")`.
impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.uri.fmt(f)
    }
}

/// Whether a client receives the content as `text` or as `blob`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// UTF-8 text.
    Text,
    /// Any bytes.
    Binary,
}

impl Kind {
    /// The media type of content without an explicit type.
    pub fn default_mime_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain",
            Self::Binary => "application/octet-stream",
        }
    }
}

/// A block of content. In text, no character spans two blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// Offset in the content, in bytes.
    pub offset: u64,
    /// Length in the content, in bytes.
    pub len: u64,
    /// Number of line feeds before the block.
    pub first_line: u64,
    /// Offset in the stored blob, in bytes.
    pub stored: u64,
    /// Length in the stored blob, in bytes: less than `len` where the block is
    /// compressed (zstd), otherwise equal.
    pub stored_len: u64,
}

impl Block {
    /// The offset after the block, in the content.
    pub fn end(&self) -> u64 {
        self.offset + self.len
    }

    /// The offset after the block, in the stored blob.
    pub fn stored_end(&self) -> u64 {
        self.stored + self.stored_len
    }

    /// Whether the block is stored compressed.
    pub fn is_compressed(&self) -> bool {
        self.stored_len < self.len
    }
}
