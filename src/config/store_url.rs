//! [`StoreUrl`]: the kind of place that a URL such as `store.url` names.

use larder_store::{redis::RedisSettings, store::ObjectLocation};

use super::ConfigError;

/// The schemes for error messages.
const SCHEMES: &str = "\"memory:\", \"redis://…\", \"file:///…\" and \"s3://…\"";

/// A URL of a place in which a server keeps things, by the kind of place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreUrl<'a> {
    /// The memory of the process.
    Memory,
    /// A Redis, as in [`RedisSettings::url`].
    Redis(&'a str),
    /// A directory or a bucket, as in [`ObjectLocation`].
    Objects(&'a str),
}

impl<'a> StoreUrl<'a> {
    /// Reads the URL of `setting`.
    ///
    /// # Errors
    /// The scheme is unknown, or the directory or bucket is not valid.
    pub(super) fn parse(setting: &str, url: &'a str) -> Result<Self, ConfigError> {
        // A URL may contain a password, so an error shows only its scheme.
        let scheme = url.split(':').next().unwrap_or_default();
        if scheme == "memory" {
            return Ok(Self::Memory);
        }

        if RedisSettings::is_for(url) {
            return Ok(Self::Redis(url));
        }

        if ObjectLocation::is_for(url) {
            let checked = ObjectLocation::check(url);
            checked.map_err(|problem| ConfigError::new(setting, problem))?;
            return Ok(Self::Objects(url));
        }

        let problem = format!("unknown scheme {scheme:?}; this build supports {SCHEMES}");
        Err(ConfigError::new(setting, problem))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheme_of_a_url_names_the_kind_of_place() {
        let kind = |url| StoreUrl::parse("store.url", url).expect("the URL is valid");
        assert_eq!(kind("memory:"), StoreUrl::Memory);
        assert_eq!(kind("memory"), StoreUrl::Memory);

        for url in ["redis://localhost", "rediss+sentinel://a,b/main"] {
            assert_eq!(kind(url), StoreUrl::Redis(url));
        }

        for url in ["file:///srv/larder", "s3://bucket/prefix"] {
            assert_eq!(kind(url), StoreUrl::Objects(url));
        }
    }

    #[test]
    fn a_url_that_names_no_place_is_refused_without_its_password() {
        for url in ["http://me:secret@a", "redis:secret@a", "s3://me:secret@bucket", "memoryhole:"]
        {
            let error = StoreUrl::parse("store.url", url).expect_err(url).to_string();
            assert!(error.starts_with("store.url: "), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
