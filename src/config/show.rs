//! Prints the effective configuration, secrets masked, and its schema.

use toml::{Table, Value};

use super::{Config, ConfigError};

/// Replaces a secret.
const MASK: &str = "***";
/// Suffixes of the names of secret settings. Settings that name a file or a variable
/// (`…_file`, `…_env`) are not secret.
const SECRET_SUFFIXES: [&str; 5] = ["password", "secret", "token", "sha256", "access_key"];

impl Config {
    /// All settings as TOML. Passwords in URLs and hashes of tokens are masked.
    ///
    /// ```
    /// let mut config = larder::config::Config::default();
    /// config.store.url = "redis://user:hush@host:6379/0".into();
    /// let shown = config.show().unwrap();
    /// assert!(shown.contains(r#"url = "redis://user:***@host:6379/0""#));
    /// ```
    ///
    /// # Errors
    /// A value cannot be represented in TOML.
    pub fn show(&self) -> Result<String, ConfigError> {
        let mut table = Table::try_from(self).map_err(ConfigError::unreadable)?;
        table.iter_mut().for_each(|(name, value)| mask(name, value));
        toml::to_string_pretty(&table).map_err(ConfigError::unreadable)
    }

    /// The JSON Schema of all settings, for editors.
    pub fn schema() -> serde_json::Value {
        schemars::schema_for!(Self).to_value()
    }
}

fn mask(name: &str, value: &mut Value) {
    match value {
        Value::String(text) if is_secret(name) => *text = MASK.into(),
        Value::String(text) => *text = mask_url(text),
        // Environment and headers of an upstream, where secrets have any name.
        Value::Table(table) if matches!(name, "env" | "headers") => {
            for (_, value) in table.iter_mut() {
                if !value.as_str().is_some_and(|text| text.starts_with("${")) {
                    *value = MASK.into();
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| mask(name, value)),
        Value::Table(table) => table.iter_mut().for_each(|(name, value)| mask(name, value)),
        _ => {}
    }
}

fn is_secret(name: &str) -> bool {
    SECRET_SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
}

/// Masks passwords and secret parameters in a URL or a comma-separated list of URLs.
/// Returns other text unchanged.
pub(super) fn mask_url(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    // Up to the last @: a password that is not percent-encoded may contain one.
    let hosts = rest.rfind('@').map_or(0, |index| index + 1);
    let end = rest[hosts..].find(['/', '?']).map_or(rest.len(), |index| hosts + index);
    let (authority, path) = rest.split_at(end);
    let hosts = authority.split(',').map(|host| match host.rsplit_once('@') {
        None => host.to_owned(),
        Some((user, host)) => match user.split_once(':') {
            None => format!("{user}@{host}"),
            Some((user, _)) => format!("{user}:{MASK}@{host}"),
        },
    });
    let hosts = hosts.collect::<Vec<_>>().join(",");
    let Some((path, query)) = path.split_once('?') else {
        return format!("{scheme}://{hosts}{path}");
    };
    let parameters = query.split('&').map(|parameter| match parameter.split_once('=') {
        Some((name, _)) if is_secret(name) => format!("{name}={MASK}"),
        _ => parameter.to_owned(),
    });
    let query = parameters.collect::<Vec<_>>().join("&");
    format!("{scheme}://{hosts}{path}?{query}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::config::TokenConfig;

    #[test]
    fn passwords_are_masked_in_all_kinds_of_urls() {
        for (url, shown) in [
            ("redis://host", "redis://host"),
            ("redis://:hush@host/0", "redis://:***@host/0"),
            ("redis://user:hu/s@h@host/0", "redis://user:***@host/0"),
            ("redis+cluster://u:hush@a:1,b:2", "redis+cluster://u:***@a:1,b:2"),
            (
                "redis+sentinel://u:hush@a:1/name/0?sentinel_username=s&sentinel_password=hush",
                "redis+sentinel://u:***@a:1/name/0?sentinel_username=s&sentinel_password=***",
            ),
            ("https://a.example/mcp", "https://a.example/mcp"),
            ("memory:", "memory:"),
        ] {
            assert_eq!(mask_url(url), shown);
        }
    }

    #[test]
    fn the_output_can_be_loaded_again() {
        let mut config = Config::default();
        config.sessions.url = Some("redis://:hush@host".into());
        let token = TokenConfig {
            name: "a".into(),
            sha256: "f".repeat(64),
            scopes: Vec::new(),
            groups: Vec::new(),
            ..TokenConfig::default()
        };
        config.auth.tokens = vec![token];
        let shown = config.show().unwrap();
        assert!(!shown.contains("hush") && !shown.contains("ffff"), "{shown}");
        let read: Config = toml::from_str(&shown).unwrap();
        assert_eq!(read.limits, config.limits);
        assert_eq!(read.auth.tokens[0].sha256, MASK);
    }
}
