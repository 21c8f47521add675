//! The errors of the store.

use std::borrow::Cow;

use larder_protocol::quote::{MAX_CHARS, shortened};
use larder_records::DecodeFault;
use larder_runtime::{clock::Timestamp, compute::Busy};

use super::{InvalidUri, ResourceUri};

/// An error of the store. Its text may be shown to the caller. The `source` of
/// [`StoreError::Unavailable`] and [`StoreError::Corrupt`] is for the log only.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The owner has no such resource.
    #[error("Resource not found: {}{}", shown(uri), rerun_hint(uri))]
    NotFound {
        /// The requested URI.
        uri: ResourceUri,
    },
    /// The resource existed and has expired.
    #[error(
        "Resource expired: {} was removed at {at}. Run {} again to make a new one.",
        shown(uri),
        uri.result_tool().filter(|tool| tool.len() <= MAX_CHARS).unwrap_or("the tool that made it")
    )]
    Expired {
        /// The requested URI.
        uri: ResourceUri,
        /// When the resource expired.
        at: Timestamp,
    },
    /// The resource exists, but the revision is not stored (any more).
    #[error("{} has no revision {revision}. Available revisions: {}.", shown(uri), list(available))]
    NoRevision {
        /// The requested URI.
        uri: ResourceUri,
        /// The requested revision.
        revision: u64,
        /// The stored revisions, oldest first.
        available: Vec<u64>,
    },
    /// The text is not a URI.
    #[error(transparent)]
    InvalidUri(#[from] InvalidUri),
    /// The time to live is zero, or longer than the server allows.
    #[error("{0}")]
    InvalidTtl(String),
    /// A text of the metadata has an invisible or misleading character.
    #[error(
        "{member} has the character U+{code:04X}, which cannot be shown: leave out control characters (line feeds too) and bidirectional ones."
    )]
    InvalidMetadata {
        /// The name of the text, such as `name`.
        member: &'static str,
        /// The code of the character.
        code: u32,
    },
    /// A name, title, description or media type is too long.
    #[error("{0}")]
    InvalidDetails(String),
    /// Content declared as text is not UTF-8.
    #[error(
        "The content is not UTF-8 text: byte {offset} is invalid. Store it as binary (blob) instead."
    )]
    NotText {
        /// The offset of the first invalid byte.
        offset: u64,
    },
    /// Lines of binary content were requested.
    #[error("{} is binary and has no lines. Use unit \"bytes\".", shown(uri))]
    NoLines {
        /// The requested URI.
        uri: ResourceUri,
    },
    /// Content in another encoding cannot be made text.
    #[error(
        "{} cannot be read as text: {fault}. Read its bytes (unit \"bytes\"), or download it.",
        shown(uri)
    )]
    Undecodable {
        /// The requested URI.
        uri: ResourceUri,
        /// The reason.
        fault: DecodeFault,
    },
    /// The URI belongs to a resource that the server defines.
    #[error(
        "{} is part of this server and cannot be changed or deleted; only stored resources can.",
        shown(uri)
    )]
    ReadOnly {
        /// The requested URI.
        uri: ResourceUri,
    },
    /// The write would exceed a quota or the store's capacity.
    #[error("{0}")]
    Full(String),
    /// The content differs from the size or digest that its sender announced.
    #[error("{0}")]
    NotAsAnnounced(String),
    /// Other calls wrote the resource again and again while it was being rewritten.
    #[error("{} is written by others all the time; nothing was changed. Try again.", shown(uri))]
    Contended {
        /// The requested URI.
        uri: ResourceUri,
    },
    /// The stream of the content to store failed.
    #[error("Reading the content to store failed: {0}")]
    Input(#[source] std::io::Error),
    /// Too much work waits for the CPU.
    #[error(transparent)]
    Busy(#[from] Busy),
    /// The backend is not reachable.
    #[error("The {backend} store is not available now; try again shortly.")]
    Unavailable {
        /// The backend's name.
        backend: &'static str,
        /// The cause, for the log only.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The stored data of this resource cannot be decoded.
    #[error("The stored data of {} is damaged.", shown(uri))]
    Corrupt {
        /// The requested URI.
        uri: ResourceUri,
        /// The cause, for the log only.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// The URI, shortened for a message.
fn shown(uri: &ResourceUri) -> Cow<'_, str> {
    shortened(uri.as_str())
}

/// The revisions as a list, such as `3, 4`.
fn list(revisions: &[u64]) -> String {
    let numbers: Vec<_> = revisions.iter().map(u64::to_string).collect();
    numbers.join(", ")
}

/// A hint at the tool to run again. It is derived from the URI alone, so it reveals nothing
/// about stored resources.
fn rerun_hint(uri: &ResourceUri) -> String {
    let hint = |tool| format!(". Results of {tool} expire; run {tool} again to make a new one.");
    uri.result_tool().filter(|tool| tool.len() <= MAX_CHARS).map(hint).unwrap_or_default()
}

impl StoreError {
    /// Whether the caller has no such resource or revision (any more).
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. } | Self::Expired { .. } | Self::NoRevision { .. })
    }

    /// Whether the server failed, rather than the request being wrong.
    pub fn is_internal(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::Corrupt { .. })
    }

    /// Whether the same request may succeed later.
    pub fn is_temporary(&self) -> bool {
        matches!(
            self,
            Self::Unavailable { .. } | Self::Busy(_) | Self::Full(_) | Self::Contended { .. }
        )
    }
}
