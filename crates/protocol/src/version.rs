//! [`ProtocolVersion`]: the versions of the protocol.

/// A version of the Model Context Protocol. Later versions compare as greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProtocolVersion {
    /// Supported in `initialize` only.
    V2024_11_05,
    /// The first version with Streamable HTTP.
    V2025_03_26,
    /// The first version with the `MCP-Protocol-Version` header.
    V2025_06_18,
    /// The last version with sessions, and the first with priming events.
    V2025_11_25,
    /// Stateless: version and capabilities on each request.
    V2026_07_28,
}

impl ProtocolVersion {
    /// The latest version.
    pub const LATEST: Self = Self::V2026_07_28;
    /// The latest version that `initialize` can negotiate.
    pub const LATEST_LEGACY: Self = Self::V2025_11_25;
    /// All versions, newest first.
    pub const ALL: [Self; 5] = [
        Self::V2026_07_28,
        Self::V2025_11_25,
        Self::V2025_06_18,
        Self::V2025_03_26,
        Self::V2024_11_05,
    ];

    /// The version of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|v| v.as_str() == name)
    }

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// Whether each request carries version and capabilities (2026-07-28,
    /// versioning: Terminology).
    pub fn is_modern(self) -> bool {
        self >= Self::V2026_07_28
    }

    /// The names of all versions up to `max`, newest first.
    pub fn names_up_to(max: Self) -> Vec<&'static str> {
        Self::ALL.into_iter().filter(|v| *v <= max).map(Self::as_str).collect()
    }
}

impl std::fmt::Display for ProtocolVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::ProtocolVersion;

    #[test]
    fn names_round_trip_and_order_by_date() {
        for version in ProtocolVersion::ALL {
            assert_eq!(ProtocolVersion::parse(version.as_str()), Some(version));
        }
        assert!(ProtocolVersion::ALL.is_sorted_by(|a, b| a > b && a.as_str() > b.as_str()));
    }
}
