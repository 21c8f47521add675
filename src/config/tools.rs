//! `[tools]`: which there are, and how much they answer.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ConfigError;
use crate::registry::{OutputRules, Spill};

/// `[tools]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ToolsConfig {
    /// Whether clients may create, update and delete resources themselves.
    pub write: bool,
    /// The most bytes of text that a tool's answer has; what is larger is
    /// stored, and a preview stands for it.
    pub output_bytes: usize,
    /// The same for pictures and sounds, as they are sent.
    pub media_bytes: usize,
    /// Other values of `output_bytes`, by the name that a client gives itself;
    /// a `*` at the end stands for any ending.
    pub clients: BTreeMap<String, usize>,
    /// By tool, when its results are stored: `auto`, `always` or `never`.
    pub spill: BTreeMap<String, Spill>,
}

impl ToolsConfig {
    /// # Errors
    /// Names the setting.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let mut budgets = vec![("tools.output_bytes".to_owned(), self.output_bytes)];
        let named = self.clients.iter();
        budgets.extend(named.map(|(client, bytes)| (format!("tools.clients.{client}"), *bytes)));
        // Less would not hold what a preview has to say.
        match budgets.iter().find(|(_, bytes)| *bytes < 2_000) {
            Some((setting, _)) => Err(ConfigError::new(setting, "it must be at least 2000")),
            None => Ok(()),
        }
    }

    /// Bounds for answers.
    pub fn output(&self) -> OutputRules {
        OutputRules {
            output_bytes: self.output_bytes,
            media_bytes: self.media_bytes,
            clients: self.clients.clone(),
            tools: self.spill.clone(),
        }
    }
}

impl Default for ToolsConfig {
    fn default() -> Self {
        let OutputRules { output_bytes, media_bytes, clients, tools: spill } =
            OutputRules::default();
        Self { write: true, output_bytes, media_bytes, clients, spill }
    }
}
