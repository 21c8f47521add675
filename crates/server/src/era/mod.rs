//! The two eras of the protocol. [`Inbound`] decides the era of each message.
//!
//! - **Modern** (2026-07-28): each request carries its version and capabilities. The server
//!   keeps no state between requests.
//! - **Legacy** (2025-03-26 to 2025-11-25): `initialize` begins a session, whose streams
//!   can be resumed.
//!
//! An era checks a request, turns it into a [`Call`](crate::dispatch::Call), and encodes
//! the reply. Layers below do not know eras; transports above carry bytes.

mod announce;
pub mod batch;
mod calls;
mod encode;
mod inbound;
mod legacy;
mod modern;
mod receive;
mod response_mode;
mod shared;
mod state;
mod subscription;

pub use announce::{announce_changes, announce_edits};
pub use calls::DetachableCall;
pub use encode::{
    Encoded, ResponseEncoder, encode_error, encode_outcome, encode_reply, error_code,
};
pub use inbound::{Inbound, MessageContext};
use larder_protocol::ProtocolVersion;
pub use legacy::{Answer, Legacy, SessionRequest};
pub use modern::{MirroredHeaders, Modern};
pub use receive::Unread;
pub use response_mode::{Accepts, ResponseMode};
pub use state::StateSealer;
pub use subscription::Subscription;

/// The rules that apply to a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// Sessions, or single requests without one.
    Legacy,
    /// Stateless.
    Modern,
}

impl Era {
    /// Decides by the declared version: the one in `_meta`, or else the one in the header.
    /// A legacy version or none means legacy. Any other means modern, whose checks reject
    /// unknown versions (2026-07-28, versioning: Backward Compatibility).
    pub fn from_versions(meta: Option<&str>, header: Option<&str>) -> Self {
        let declared = meta.or(header);
        match declared.map(ProtocolVersion::parse) {
            Some(None) => Self::Modern,
            Some(Some(version)) if version.is_modern() => Self::Modern,
            // Header and metadata disagree. The modern checks report it.
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
