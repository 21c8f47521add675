//! The two eras of the protocol, decided once a request, here.
//!
//! - **Modern** (2026-07-28): each request carries its version and
//!   capabilities; nothing is kept between requests.
//! - **Legacy** (2025-03-26 to 2025-11-25): `initialize` begins a session,
//!   whose streams can be resumed.
//!
//! Above, transports carry bytes; below, nothing knows of eras. An era checks
//! a request, turns it into a [`Call`](crate::dispatch::Call), and dresses the
//! reply.

mod announce;
mod calls;
mod encode;
mod inbound;
mod legacy;
mod listen;
mod modern;
mod response_mode;
mod shared;
mod state;

pub use announce::{announce_changes, announce_edits};
pub use calls::DetachableCall;
pub use encode::{Encoded, ResponseEncoder, code, encode_outcome, failure, success};
pub use inbound::{Inbound, MessageContext};
pub use legacy::{Answer, Legacy, SessionRequest};
pub use listen::Listen;
pub use modern::{MirroredHeaders, Modern};
pub use response_mode::{Accepts, ResponseMode};
pub use state::StateSealer;

use crate::protocol::ProtocolVersion;

/// Which rules a request goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// Sessions, or a single request without one.
    Legacy,
    /// Stateless.
    Modern,
}

impl Era {
    /// Decides by the version that the request declares: in its `_meta`, or
    /// else in the header. What names a legacy version is legacy; what names
    /// any other, even one that does not exist, is modern and will be told so;
    /// what names none is legacy (2026-07-28, versioning: Backward
    /// Compatibility).
    pub fn from_versions(meta: Option<&str>, header: Option<&str>) -> Self {
        let declared = meta.or(header);
        match declared.map(ProtocolVersion::parse) {
            Some(None) => Self::Modern,
            Some(Some(version)) if version.is_modern() => Self::Modern,
            // A modern header over legacy metadata contradicts itself; the
            // modern rules find and name the contradiction.
            Some(Some(_)) if header_is_modern(header) => Self::Modern,
            _ => Self::Legacy,
        }
    }
}

fn header_is_modern(header: Option<&str>) -> bool {
    header.and_then(ProtocolVersion::parse).is_some_and(ProtocolVersion::is_modern)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_era_follows_what_a_request_declares() {
        for (meta, header, era) in [
            (None, None, Era::Legacy),
            (None, Some("2025-11-25"), Era::Legacy),
            (None, Some("2026-07-28"), Era::Modern),
            (None, Some("v999.0.0"), Era::Modern),
            (Some("2026-07-28"), None, Era::Modern),
            (Some("2026-07-28"), Some("2025-11-25"), Era::Modern),
            (Some("2025-11-25"), Some("2025-11-25"), Era::Legacy),
            (Some("2025-11-25"), Some("2026-07-28"), Era::Modern),
            (Some("v999.0.0"), Some("2026-07-28"), Era::Modern),
        ] {
            assert_eq!(Era::from_versions(meta, header), era, "{meta:?} {header:?}");
        }
    }
}
