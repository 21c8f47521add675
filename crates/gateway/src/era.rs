//! [`KnownEra`]: what is known of the protocol era of an upstream.

use super::link::Era;

/// The era of an upstream, as far as earlier starts have found it out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum KnownEra {
    #[default]
    Unknown,
    /// The last start that succeeded has found this era.
    Found(Era),
    /// The last start has brought no answer to `server/discover`, which may have confused the
    /// server.
    Silent,
}

impl KnownEra {
    /// The era that the last start has found.
    pub(super) fn found(self) -> Option<Era> {
        match self {
            Self::Found(era) => Some(era),
            Self::Unknown | Self::Silent => None,
        }
    }

    /// The knowledge after a start that has brought no answer in time.
    pub(super) fn after_silence(self) -> Self {
        if self == Self::Unknown { Self::Silent } else { Self::Unknown }
    }
}
