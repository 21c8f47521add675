//! `[content]`: stored content over HTTP.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[content]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ContentConfig {
    /// Whether stored content can be read and deleted over HTTP at `/resources`.
    pub enabled: bool,
}

impl Default for ContentConfig {
    fn default() -> Self {
        Self { enabled: true }
    }
}
