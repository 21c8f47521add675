//! The answers of `initialize` and `server/discover`.

use larder_protocol::{ProtocolVersion, quote::bounded};

use super::{
    capabilities::Capabilities,
    object::Object,
    problem::Problem,
    result::{Answer, RawResult},
};

/// The most characters of instructions.
const INSTRUCTIONS_CHARS: usize = 4_000;
/// The most bytes of a protocol version.
const VERSION_BYTES: usize = 64;

/// The answer of `initialize`.
pub(crate) struct Initialized {
    /// The protocol version, if the upstream says one.
    pub(crate) version: Option<VersionName>,
    pub(crate) capabilities: Capabilities,
    /// The instructions of the upstream, for models.
    pub(crate) instructions: Option<String>,
}

/// A protocol version that Larder may not know, of at most [`VERSION_BYTES`].
#[derive(Debug)]
pub(crate) struct VersionName(String);

impl VersionName {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// The answer of `server/discover`.
pub(crate) struct Discovered {
    /// Whether the upstream supports the modern era.
    pub(crate) is_modern: bool,
    pub(crate) capabilities: Capabilities,
    /// The instructions of the upstream, for models.
    pub(crate) instructions: Option<String>,
}

/// A text for models, bounded, with its control characters shown.
fn instructions(result: &mut Object) -> Option<String> {
    let text = result.take_text("instructions")?;
    let text = text.trim();
    if text.is_empty() {
        return None;
    }

    let chars = text.chars().count();
    let mut shown = bounded(text, INSTRUCTIONS_CHARS).into_owned();
    if chars > INSTRUCTIONS_CHARS {
        shown.push_str(&format!(" (cut: the instructions have {chars} characters)"));
    }
    Some(shown)
}

impl Answer for Initialized {
    fn read(result: RawResult) -> Result<Self, Problem> {
        let mut result = result.object()?;
        let version = result.take_short_text("protocolVersion", VERSION_BYTES)?;
        let capabilities = result.take("capabilities").unwrap_or_default().into();
        let instructions = instructions(&mut result);
        Ok(Self { version: version.map(VersionName), capabilities, instructions })
    }
}

impl Answer for Discovered {
    fn read(result: RawResult) -> Result<Self, Problem> {
        let mut result = result.object()?;
        let versions = result.take_list("supportedVersions")?;
        let is_modern = versions.iter().any(|version| version == ProtocolVersion::LATEST.as_str());
        let capabilities = result.take("capabilities").unwrap_or_default().into();
        let instructions = instructions(&mut result);
        Ok(Self { is_modern, capabilities, instructions })
    }
}
