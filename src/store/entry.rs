//! What the store knows of a resource without looking at its bytes.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use super::ResourceUri;
use crate::{auth::Owner, clock::Timestamp};

/// A stored resource: everything but the bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Entry {
    /// The name its creator chose.
    pub uri: ResourceUri,
    /// Whose it is.
    pub owner: Owner,
    /// Counts the writes to this URI while it lives, from 1.
    pub revision: u64,
    /// For programs and short displays; the URI's last part by default.
    pub name: String,
    /// For people.
    pub title: Option<String>,
    /// What is in it.
    pub description: Option<String>,
    /// The media type.
    pub mime_type: String,
    /// Text or binary.
    pub kind: Kind,
    /// The content's size in bytes.
    pub size: u64,
    /// How many lines it has; 0 for binary.
    pub lines: u64,
    /// SHA-256 of the content, in hexadecimal.
    pub sha256: String,
    /// When it was created; updates keep it.
    pub created: Timestamp,
    /// When it was last written.
    pub updated: Timestamp,
    /// From when on it is gone.
    pub expires: Timestamp,
    /// The session that it is to end with, if with any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Arc<str>>,
    /// Where each block of the content begins.
    pub blocks: Arc<[Block]>,
}

impl Entry {
    /// How many bytes are kept of its content: fewer than its size where
    /// blocks are compressed.
    pub fn stored_size(&self) -> u64 {
        self.blocks.last().map_or(0, Block::stored_end)
    }

    /// Whether it has expired at that time.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        now >= self.expires
    }
}

/// The URI, so that `format!("Access at {entry}")` reads well.
impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.uri.fmt(f)
    }
}

/// Whether a client sees `text` or `blob`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// UTF-8.
    Text,
    /// Anything.
    Binary,
}

impl Kind {
    /// The media type of content that came without one.
    pub fn default_mime_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain",
            Self::Binary => "application/octet-stream",
        }
    }
}

/// One block of content. In text, blocks begin and end between characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// Where it begins in the content, in bytes.
    pub offset: u64,
    /// Its length in the content, in bytes.
    pub len: u64,
    /// How many line feeds stand before it.
    pub first_line: u64,
    /// Where it begins in what is kept, in bytes.
    pub stored: u64,
    /// Its length in what is kept, in bytes: less than `len` where it is
    /// compressed (zstd), and otherwise the same.
    pub stored_len: u64,
}

impl Block {
    /// Where it ends.
    pub fn end(&self) -> u64 {
        self.offset + self.len
    }

    /// Where it ends in what is kept.
    pub fn stored_end(&self) -> u64 {
        self.stored + self.stored_len
    }

    /// Whether it is kept in fewer bytes than it has.
    pub fn is_compressed(&self) -> bool {
        self.stored_len < self.len
    }
}
