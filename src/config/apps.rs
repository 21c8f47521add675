//! `[apps]`: pages that hosts show beside a conversation.

use std::{collections::BTreeMap, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ConfigError;

/// `[apps]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AppsConfig {
    /// Offer view_resource, which shows stored content to people in hosts of MCP Apps. See
    /// docs/apps.md.
    pub enabled: bool,
    /// Seconds between two looks of an open page for a new revision.
    pub poll: u64,
    /// Domains at which hosts serve the page, by client name; a trailing * matches any ending.
    /// `"auto"` is the one that Claude derives from `server.public_url`. None is needed: see
    /// docs/apps.md.
    pub domains: BTreeMap<String, String>,
}

impl AppsConfig {
    /// # Errors
    /// Names the setting.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        ConfigError::require_positive("apps.poll", self.poll)?;

        let is_domain = |domain: &str| {
            !domain.is_empty()
                && domain.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte))
        };

        match self.domains.iter().find(|(_, domain)| !is_domain(domain)) {
            Some((client, _)) => {
                let setting = format!("apps.domains.{client}");
                Err(ConfigError::new(&setting, "it must be a domain or \"auto\""))
            }
            None => Ok(()),
        }
    }

    /// How often pages look for a new revision.
    pub fn poll(&self) -> Duration {
        Duration::from_secs(self.poll)
    }
}

impl Default for AppsConfig {
    fn default() -> Self {
        Self { enabled: true, poll: 3, domains: BTreeMap::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A host does not show a page that names another domain than it expects.
    #[test]
    fn no_domain_is_named_by_default() {
        assert_eq!(AppsConfig::default().domains, BTreeMap::new());
    }
}
