//! Moves stored resources from one store to another through a file or a pipe.
//!
//! The format is one zstd stream of frames: a byte for the kind, the length of the payload as a
//! big-endian `u32`, and the payload. Kinds: `H`, the header, first, in JSON; `R`, a revision's
//! metadata in JSON; `C`, a piece of its content; `A`, an early end of the content, which does not
//! count; `E`, the end, in JSON. The content of a revision follows its `R` and is complete after
//! `size` bytes. Revisions of a resource are in order, earliest first.

mod export;
mod frames;
mod import;
mod revision;
#[cfg(test)]
mod tests;

pub use self::{
    export::{Exported, export},
    import::{Imported, import},
};
use crate::store::StoreError;

/// The progress of a running transfer.
#[derive(Debug)]
pub enum Progress<'a> {
    /// The revisions and bytes of content that have been processed so far.
    Done {
        /// The number of revisions.
        revisions: u64,
        /// The bytes of content.
        bytes: u64,
    },
    /// A revision was left out.
    LeftOut {
        /// The owner.
        owner: &'a str,
        /// The URI.
        uri: &'a str,
        /// The revision.
        revision: u64,
        /// The reason.
        why: &'a StoreError,
    },
}

/// The reason why a transfer ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransferError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file or pipe cannot be read or written.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The input is not an export.
    #[error("the input is not an export of Larder")]
    NotAnExport,
    /// A later version of Larder has made the export.
    #[error("the export has version {0} of the format; this Larder reads version {VERSION}")]
    Version(u32),
    /// The input ends before the export does.
    #[error("the export is incomplete: it was cut off. What it has was imported; export again")]
    Incomplete,
    /// The input is an export, and damaged.
    #[error("the export is damaged: {0}")]
    Damaged(String),
}

/// The version of the format.
const VERSION: u32 = 1;
