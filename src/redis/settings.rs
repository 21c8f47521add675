//! Where Redis is and how long to wait for it.

use std::{fmt, time::Duration};

use ::redis::{ConnectionInfo, IntoConnectionInfo, ProtocolVersion};

use super::RedisError;

/// How to reach Redis. Its `Debug` text does not hold the password.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisSettings {
    /// `redis://user:password@host:6379/0`; with TLS `rediss://`; a cluster
    /// by one or more of its hosts, `redis+cluster://host:7000,host:7001` or
    /// `rediss+cluster://`. An ACL user and a password are percent-encoded.
    pub url: String,
    /// How long connecting and the answer to one command may take together.
    pub timeout: Duration,
    /// What all keys and channels begin with. Installations with different
    /// prefixes can share one Redis.
    pub prefix: String,
}

impl RedisSettings {
    /// That URL, two seconds, and the prefix `larder`.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), timeout: Duration::from_secs(2), prefix: "larder".into() }
    }

    /// Whether a URL is one of Redis.
    pub fn is_for(url: &str) -> bool {
        SCHEMES.iter().any(|scheme| url.starts_with(scheme))
    }
}

const SCHEMES: [&str; 4] = ["redis://", "rediss://", "redis+cluster://", "rediss+cluster://"];

impl fmt::Debug for RedisSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = Place::parse(&self.url).map_or("(not usable)".into(), |p| p.to_string());
        f.debug_struct("RedisSettings")
            .field("url", &place)
            .field("timeout", &self.timeout)
            .field("prefix", &self.prefix)
            .finish()
    }
}

/// A URL, read.
pub(super) struct Place {
    /// One of a single server, one or more of a cluster.
    pub(super) nodes: Vec<ConnectionInfo>,
    pub(super) cluster: bool,
}

impl Place {
    pub(super) fn parse(url: &str) -> Result<Self, RedisError> {
        // The URL holds a password and therefore stands in no message.
        let wrong = |problem: &str| {
            RedisError::Setting(format!(
                "store.url: the URL of Redis cannot be used: {problem}. Write it like redis://user:password@host:6379/0, with rediss:// for TLS, or redis+cluster://host:7000,host:7001"
            ))
        };
        let (scheme, rest) = url.split_once("://").ok_or_else(|| wrong("it has no scheme"))?;
        if !SCHEMES.iter().any(|known| known.strip_suffix("://") == Some(scheme)) {
            return Err(wrong("its scheme is another"));
        }
        let (scheme, cluster) =
            scheme.strip_suffix("+cluster").map_or((scheme, false), |scheme| (scheme, true));
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let (user, hosts) =
            authority.rfind('@').map_or(("", authority), |at| authority.split_at(at + 1));
        if hosts.contains(',') && !cluster {
            return Err(wrong("only a cluster has several hosts"));
        }
        let nodes = hosts.split(',').map(|host| {
            let url = format!("{scheme}://{user}{host}{path}");
            let node = url.into_connection_info().map_err(|error| wrong(&error.to_string()))?;
            let settings = node.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
            Ok::<_, RedisError>(node.set_redis_settings(settings))
        });
        Ok(Self { nodes: nodes.collect::<Result<_, RedisError>>()?, cluster })
    }

    /// Whether connections are encrypted.
    pub(super) fn is_tls(&self) -> bool {
        self.nodes.iter().any(|node| matches!(node.addr(), ::redis::ConnectionAddr::TcpTls { .. }))
    }
}

/// The hosts, without what opens them.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tls = if self.is_tls() { "s" } else { "" };
        let cluster = if self.cluster { "+cluster" } else { "" };
        write!(f, "redis{tls}{cluster}://")?;
        for (at, node) in self.nodes.iter().enumerate() {
            write!(f, "{}{}", if at > 0 { "," } else { "" }, node.addr())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_every_kind_are_read() {
        for (url, shown, user) in [
            ("redis://localhost", "redis://localhost:6379", None),
            ("redis://:secret@10.0.0.1:7/3", "redis://10.0.0.1:7", None),
            ("rediss://me:s%40cret@r.example/", "rediss://r.example:6379", Some("me")),
            ("redis+cluster://a:1,b:2", "redis+cluster://a:1,b:2", None),
            ("rediss+cluster://me:secret@a:1,b:2", "rediss+cluster://a:1,b:2", Some("me")),
        ] {
            let place = Place::parse(url).expect("it is a URL of Redis");
            assert_eq!(place.to_string(), shown);
            assert_eq!(place.is_tls(), url.starts_with("rediss"));
            for node in &place.nodes {
                assert_eq!(node.redis_settings().username(), user);
            }
            assert!(RedisSettings::is_for(url));
            assert!(!format!("{:?}", RedisSettings::new(url)).contains("cret"));
        }
    }

    #[test]
    fn what_is_no_url_of_redis_is_refused_without_its_password() {
        for url in [
            "memory:",
            "http://a:secret@b",
            "redis://",
            "redis://me:secret@a:x",
            "redis://me:secret@a,b",
            "redis://me:secret@a/db",
            "redis+cluster://",
            "redis+sentinel://me:secret@a",
        ] {
            let error = Place::parse(url).map(|place| place.to_string()).expect_err(url);
            assert!(error.to_string().contains("store.url"), "{error}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}
