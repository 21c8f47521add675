//! What the store refuses or cannot do.

use super::{InvalidUri, ResourceUri};
use crate::clock::Timestamp;

/// Each variant's text is fit for the caller's eyes; what only the log may
/// see hangs on [`StoreError::Unavailable`] and [`StoreError::Corrupt`] as
/// the error's source.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Nothing of that name for this owner.
    #[error("Resource not found: {uri}{}", gone(uri))]
    NotFound {
        /// The name.
        uri: ResourceUri,
    },
    /// It was there and its time is over.
    #[error(
        "Resource expired: {uri} was removed at {at}. Run {} again to make a new one.",
        maker(uri)
    )]
    Expired {
        /// The name.
        uri: ResourceUri,
        /// Its time.
        at: Timestamp,
    },
    /// It is there, but not that revision of it.
    #[error("{uri} has no revision {revision} (any more). Kept {}.", listed(kept))]
    NoRevision {
        /// The name.
        uri: ResourceUri,
        /// Which.
        revision: u64,
        /// Those that there are, oldest first.
        kept: Vec<u64>,
    },
    /// The name is no URI.
    #[error(transparent)]
    InvalidUri(#[from] InvalidUri),
    /// A time to live that is zero, or longer than the server allows.
    #[error("{0}")]
    InvalidTtl(String),
    /// Content declared as text is not UTF-8.
    #[error(
        "The content is not UTF-8 text: byte {at} is invalid. Store it as binary (blob) instead."
    )]
    NotText {
        /// Where, in bytes from its start.
        at: u64,
    },
    /// A window by lines was asked of binary content.
    #[error("{uri} is binary and has no lines. Use unit \"bytes\".")]
    NoLines {
        /// The name.
        uri: ResourceUri,
    },
    /// The name belongs to the server's own definition.
    #[error(
        "{uri} is part of this server and cannot be changed or deleted; only stored resources can."
    )]
    ReadOnly {
        /// The name.
        uri: ResourceUri,
    },
    /// A quota or the store's capacity would be exceeded.
    #[error("{0}")]
    Full(String),
    /// The stream that the content was read from failed.
    #[error("The content could not be read to its end: {0}")]
    Input(#[source] std::io::Error),
    /// The backend does not answer.
    #[error("The {backend} store is not available now; try again shortly.")]
    Unavailable {
        /// Which.
        backend: &'static str,
        /// For the log.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// What the backend holds of this resource cannot be read.
    #[error("The stored data of {uri} is damaged.")]
    Corrupt {
        /// The name.
        uri: ResourceUri,
        /// For the log.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// `are 3, 4`
fn listed(kept: &[u64]) -> String {
    let numbers: Vec<_> = kept.iter().map(u64::to_string).collect();
    format!("{} {}", if kept.len() == 1 { "is" } else { "are" }, numbers.join(", "))
}

/// What to run again.
fn maker(uri: &ResourceUri) -> &str {
    uri.made_by().unwrap_or("the tool that made it")
}

/// Its name alone says what was there, whoever asks.
fn gone(uri: &ResourceUri) -> String {
    let hint = |tool| {
        format!(
            ". Results of {tool} are there for a while only; run {tool} again to make a new one."
        )
    };
    uri.made_by().map(hint).unwrap_or_default()
}

impl StoreError {
    /// Whether this says that the caller has no such resource (any more).
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. } | Self::Expired { .. } | Self::NoRevision { .. })
    }

    /// Whether it is the server's failure rather than the caller's.
    pub fn is_internal(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::Corrupt { .. })
    }
}
