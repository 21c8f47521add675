//! `[console]`: pages for people on the server.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ConfigError, ServerConfig, server::is_within};

/// `[console]`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ConsoleConfig {
    /// Whether the console is served: pages at which people see and manage what they have stored.
    pub enabled: bool,
    /// The path of the console, on this server and at server.public_url.
    pub path: String,
    /// How long a login lasts at most, in seconds. It ends with its token.
    pub session: u64,
}

impl ConsoleConfig {
    /// # Errors
    /// Names the setting.
    pub(super) fn check(&self, server: &ServerConfig) -> Result<(), ConfigError> {
        ConfigError::require_positive("console.session", self.session)?;
        let is_plain = |part: &str| {
            !part.is_empty()
                && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
        };
        if !self.path.strip_prefix('/').is_some_and(|path| path.split('/').all(is_plain)) {
            let problem = "it must begin with a slash and have letters, digits, - and _ between slashes, such as /console";
            return Err(ConfigError::new("console.path", problem));
        }
        if !self.enabled {
            return Ok(());
        }
        if cfg!(not(feature = "console")) {
            let problem = "this build has no console: enable the feature `console`";
            return Err(ConfigError::new("console.enabled", problem));
        }
        let taken = [server.path.as_str(), "/resources", "/content", "/healthz", "/readyz"];
        let overlaps = |taken: &&str| is_within(&self.path, taken) || is_within(taken, &self.path);
        if let Some(taken) = taken.iter().find(|taken| overlaps(taken)) {
            let problem = format!("{taken} has another use on this server");
            return Err(ConfigError::new("console.path", problem));
        }
        if !server.max_version().is_modern() {
            let problem = "the console calls tools by 2026-07-28: allow it here, or set console.enabled = false";
            return Err(ConfigError::new("server.max_version", problem));
        }
        Ok(())
    }
}

impl Default for ConsoleConfig {
    fn default() -> Self {
        Self { enabled: false, path: "/console".to_owned(), session: 8 * 60 * 60 }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_path_is_one_of_its_own() {
        let server = ServerConfig::default();
        let check = |path: &str| {
            let config = ConsoleConfig { enabled: true, path: path.into(), ..Default::default() };
            config.check(&server)
        };
        for path in ["/console", "/a/b-c_d", "/mcps"] {
            assert!(check(path).is_ok(), "{path}");
        }
        for path in
            ["", "/", "console", "/console/", "/a//b", "/{x}", "/mcp", "/mcp/x", "/resources"]
        {
            let refused = check(path).unwrap_err().to_string();
            assert!(refused.starts_with("console.path: "), "{path} {refused}");
        }
    }
}
