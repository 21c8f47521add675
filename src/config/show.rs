//! Prints the effective configuration, secrets masked, and its schema.

use toml::{Table, Value};

use super::{Config, ConfigError};

/// Replaces a secret.
const MASK: &str = "***";
/// The shortest segment of a path that may be a key.
const MIN_KEY: usize = 16;
/// The longest name of an option that is shown.
const MAX_OPTION: usize = 32;
/// Suffixes of the names of secret settings. Settings that name a file or a variable
/// (`…_file`, `…_env`) are not secret.
const SECRET_SUFFIXES: [&str; 5] = ["password", "secret", "token", "sha256", "access_key"];

impl Config {
    /// All settings as TOML, without secrets:
    ///
    /// - secrets, passwords and hashes of tokens are masked;
    /// - of an `env` and of `headers`, only values that are one `${NAME}` are shown;
    /// - of a `command`, only the program and the names of its long options are shown;
    /// - of an `http` or `https` URL, credentials and the values of the query are masked, and of
    ///   the setting `url` also segments of the path that may be keys;
    /// - of other URLs, passwords and secret parameters are masked.
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
        Value::String(text) if name == "url" => *text = mask_keys(&mask_url(text)),
        Value::String(text) => *text = mask_url(text),
        // Secrets in the environment and headers of an upstream have arbitrary names.
        Value::Table(table) if matches!(name, "env" | "headers") => {
            for (_, value) in table.iter_mut() {
                if !value.as_str().is_some_and(is_variable) {
                    *value = MASK.into();
                }
            }
        }
        Value::Array(words) if name == "command" => {
            for word in words.iter_mut().skip(1) {
                *word = mask_argument(word.as_str().unwrap_or_default()).into();
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

/// Whether a value is one variable of the environment, and nothing besides.
fn is_variable(value: &str) -> bool {
    let name = value.strip_prefix("${").and_then(|value| value.strip_suffix('}'));
    name.is_some_and(|name| !name.is_empty() && !name.contains(['$', '{', '}']))
}

/// The argument of a program. Any may be a secret, so only the name of a long option is shown.
fn mask_argument(argument: &str) -> String {
    let (option, has_value) = match argument.split_once('=') {
        Some((option, _)) => (option, true),
        None => (argument, false),
    };

    let is_option = option.strip_prefix("--").is_some_and(|name| {
        name.len() <= MAX_OPTION
            && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
    });

    match (is_option, has_value) {
        (true, true) => format!("{option}={MASK}"),
        (true, false) => option.to_owned(),
        (false, _) => MASK.to_owned(),
    }
}

fn is_web(scheme: &str) -> bool {
    scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
}

/// Masks segments of the path of a web URL that may be keys: long, of letters and digits.
fn mask_keys(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://").filter(|(scheme, _)| is_web(scheme)) else {
        return url.to_owned();
    };

    let end = rest.find('?').unwrap_or(rest.len());
    let (path, query) = rest.split_at(end);
    let has = |segment: &str, is: fn(char) -> bool| segment.chars().any(is);

    let segments = path.split('/').enumerate().map(|(at, segment)| {
        let is_key = segment.len() >= MIN_KEY
            && has(segment, |c| c.is_ascii_digit())
            && has(segment, char::is_alphabetic);
        // The first segment is the host.
        if at > 0 && is_key { MASK } else { segment }
    });

    format!("{scheme}://{}{query}", segments.collect::<Vec<_>>().join("/"))
}

/// Masks credentials and secret parameters in a URL or a comma-separated list of URLs. Of a web
/// URL, all credentials and parameters may be secrets: a token is often the user. Returns other
/// text unchanged.
pub(crate) fn mask_url(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };

    // The password ends at the last @, because an unencoded password may contain an @.
    let hosts = rest.rfind('@').map_or(0, |index| index + 1);
    let end = rest[hosts..].find(['/', '?']).map_or(rest.len(), |index| hosts + index);
    let (authority, path) = rest.split_at(end);
    let is_web = is_web(scheme);

    let hosts = authority.split(',').map(|host| match host.rsplit_once('@') {
        None => host.to_owned(),
        Some((_, host)) if is_web => format!("{MASK}@{host}"),
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
        Some((name, _)) if is_web || is_secret(name) => format!("{name}={MASK}"),
        None if is_web && !parameter.is_empty() => MASK.to_owned(),
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
            ("https://hush@a.example/x", "https://***@a.example/x"),
            ("https://hush:hush@a.example/x", "https://***@a.example/x"),
            ("HTTPS://a.example/x?key=hush&hush&", "HTTPS://a.example/x?key=***&***&"),
            ("memory:", "memory:"),
        ] {
            assert_eq!(mask_url(url), shown);
        }
    }

    #[test]
    fn segments_of_a_path_that_may_be_keys_are_masked() {
        for (url, shown) in [
            ("https://a.example/s/0123456789abcdef/mcp?k=***", "https://a.example/s/***/mcp?k=***"),
            ("https://a0123456789abcdef.example/mcp", "https://a0123456789abcdef.example/mcp"),
            ("https://a.example/v1/workspaces/mcp", "https://a.example/v1/workspaces/mcp"),
            ("file:///var/lib/larder0123456789abcdef", "file:///var/lib/larder0123456789abcdef"),
        ] {
            assert_eq!(mask_keys(url), shown);
        }
    }

    #[test]
    fn of_an_argument_only_the_name_of_a_long_option_is_shown() {
        for (argument, shown) in [
            ("--api-key=hush", "--api-key=***"),
            ("--token", "--token"),
            ("--", "--"),
            ("-phush", "***"),
            ("-y", "***"),
            ("hush", "***"),
            ("KEY=hush", "***"),
            ("--HUSH", "***"),
            ("--0123abcd", "***"),
            ("", "***"),
        ] {
            assert_eq!(mask_argument(argument), shown, "{argument}");
        }

        for (value, is_shown) in
            [("${A}", true), ("${A}hush", false), ("${A}${B}", false), ("${}", false), ("x", false)]
        {
            assert_eq!(is_variable(value), is_shown, "{value}");
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
