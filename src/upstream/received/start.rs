//! The answers of `initialize` and `server/discover`.

use super::{
    capabilities::Capabilities,
    problem::Problem,
    result::{Answer, RawResult},
};
use crate::protocol::ProtocolVersion;

/// The answer of `initialize`.
pub(in crate::upstream) struct Initialized {
    /// The protocol version, if the upstream says one.
    pub(in crate::upstream) version: Option<String>,
    pub(in crate::upstream) capabilities: Capabilities,
}

/// The answer of `server/discover`.
pub(in crate::upstream) struct Discovered {
    /// Whether the upstream supports the modern era.
    pub(in crate::upstream) is_modern: bool,
    pub(in crate::upstream) capabilities: Capabilities,
}

impl Answer for Initialized {
    fn read(result: RawResult) -> Result<Self, Problem> {
        let mut result = result.object()?;
        let version = result.take_text("protocolVersion");
        Ok(Self { version, capabilities: Capabilities::of(result.take("capabilities")) })
    }
}

impl Answer for Discovered {
    fn read(result: RawResult) -> Result<Self, Problem> {
        let mut result = result.object()?;
        let versions = result.take_list("supportedVersions")?;
        let is_modern = versions.iter().any(|version| version == ProtocolVersion::LATEST.as_str());
        Ok(Self { is_modern, capabilities: Capabilities::of(result.take("capabilities")) })
    }
}
