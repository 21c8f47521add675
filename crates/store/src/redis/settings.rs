//! The address of Redis and the timeout for it.

use std::{fmt, time::Duration};

use ::redis::{
    ConnectionAddr, ConnectionInfo, IntoConnectionInfo, ProtocolVersion, RedisConnectionInfo,
};

use super::RedisError;

/// The address of Redis, and how to use it. The `Debug` output contains no password.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisSettings {
    /// The URL, with user and password percent-encoded:
    ///
    /// - a server: `redis://user:password@host:6379/0`, with TLS `rediss://`;
    /// - a cluster, by one or more of its hosts:
    ///   `redis+cluster://host:7000,host:7001` or `rediss+cluster://`;
    /// - the primary that Sentinels monitor under a name:
    ///   `redis+sentinel://user:password@host:26379,host:26379/name/0` or
    ///   `rediss+sentinel://`. The credentials of the Sentinels themselves are
    ///   `?sentinel_username=…&sentinel_password=…`.
    pub url: String,
    /// The limit for one command, including a reconnect.
    pub timeout: Duration,

    /// The prefix of all keys and channels. Installations with different prefixes can share a Redis.
    pub prefix: String,
}

impl RedisSettings {
    /// Settings for `url`, with a timeout of two seconds and the prefix `larder`.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), timeout: Duration::from_secs(2), prefix: "larder".into() }
    }

    /// Whether the URL has one of the schemes for Redis.
    pub fn is_for(url: &str) -> bool {
        SCHEMES.iter().any(|scheme| url.starts_with(scheme))
    }
}

const SCHEMES: [&str; 6] = [
    "redis://",
    "rediss://",
    "redis+cluster://",
    "rediss+cluster://",
    "redis+sentinel://",
    "rediss+sentinel://",
];

/// The default port of Sentinels.
const SENTINEL_PORT: u16 = 26379;

impl fmt::Debug for RedisSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = Address::parse(&self.url).map_or("(invalid)".into(), |a| a.to_string());
        f.debug_struct("RedisSettings")
            .field("url", &address)
            .field("timeout", &self.timeout)
            .field("prefix", &self.prefix)
            .finish()
    }
}

/// A parsed URL.
pub(super) struct Address {
    /// The single server, one or more nodes of a cluster, or the Sentinels.
    pub(super) nodes: Vec<ConnectionInfo>,
    pub(super) kind: ServerKind,
}

/// The kind of servers that the hosts of a URL are.
pub(super) enum ServerKind {
    Server,
    Cluster,
    /// Sentinels, the name of the primary that they monitor, and its credentials.
    Sentinels {
        primary: String,
        login: RedisConnectionInfo,
    },
}

impl Address {
    pub(super) fn parse(url: &str) -> Result<Self, RedisError> {
        // The URL may contain a password, so no message quotes it.
        let invalid = |problem: &str| {
            RedisError::Setting(format!(
                "store.url: invalid Redis URL: {problem}. Examples: redis://user:password@host:6379/0, rediss:// for TLS, redis+cluster://host:7000,host:7001, redis+sentinel://host:26379,host:26379/name"
            ))
        };

        let (scheme, rest) = url.split_once("://").ok_or_else(|| invalid("no scheme"))?;
        if !SCHEMES.iter().any(|known| known.strip_suffix("://") == Some(scheme)) {
            return Err(invalid("unknown scheme"));
        }

        let (scheme, kind) = scheme.split_once('+').unwrap_or((scheme, ""));
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let (login, hosts) =
            authority.rfind('@').map_or(("", authority), |end| authority.split_at(end + 1));

        let node = |login: &str, host: &str, path: &str| {
            let url = format!("{scheme}://{login}{host}{path}");
            let info = url.into_connection_info().map_err(|error| invalid(&error.to_string()))?;
            let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
            Ok::<_, RedisError>(info.set_redis_settings(settings))
        };

        let all = |login: &str, path: &str| {
            hosts.split(',').map(|host| node(login, host, path)).collect::<Result<Vec<_>, _>>()
        };

        let (nodes, kind) = match kind {
            "cluster" => (all(login, path)?, ServerKind::Cluster),
            "sentinel" => {
                let (path, query) = path.split_once('?').unwrap_or((path, ""));
                let (primary, db) = path
                    .trim_start_matches('/')
                    .split_once('/')
                    .unwrap_or((path.trim_start_matches('/'), ""));
                if primary.is_empty() {
                    return Err(invalid(
                        "the name of the primary that the Sentinels monitor is missing",
                    ));
                }

                let own = sentinel_login(query).map_err(|problem| invalid(&problem))?;
                let sentinel = |host: &str| node(&own, &with_port(host, SENTINEL_PORT), "");
                let nodes = hosts.split(',').map(sentinel).collect::<Result<Vec<_>, _>>()?;
                let server = node(login, "primary", &format!("/{db}"))?;
                let kind = ServerKind::Sentinels {
                    primary: primary.to_owned(),
                    login: server.redis_settings().clone(),
                };
                (nodes, kind)
            }
            _ if hosts.contains(',') => {
                return Err(invalid("only cluster and Sentinel URLs have several hosts"));
            }
            _ => (all(login, path)?, ServerKind::Server),
        };

        Ok(Self { nodes, kind })
    }

    /// Whether connections are encrypted.
    pub(super) fn is_tls(&self) -> bool {
        self.nodes.iter().any(|node| matches!(node.addr(), ConnectionAddr::TcpTls { .. }))
    }
}

/// The credentials of the Sentinels, in the form before a host in a URL.
fn sentinel_login(query: &str) -> Result<String, String> {
    let mut user = "";
    let mut password = None;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("sentinel_username", value)) => user = value,
            Some(("sentinel_password", value)) => password = Some(value),
            _ => {
                return Err(
                    "the only query parameters are sentinel_username and sentinel_password"
                        .to_owned(),
                );
            }
        }
    }

    Ok(match password {
        Some(password) => format!("{user}:{password}@"),
        None if user.is_empty() => String::new(),
        None => return Err("sentinel_username requires sentinel_password".to_owned()),
    })
}

/// The host with its port, or with `default` if it has none.
fn with_port(host: &str, default: u16) -> String {
    // The colons of an IPv6 address are in brackets.
    match host.rfind(':') {
        Some(colon) if !host[colon..].contains(']') => host.to_owned(),
        _ if host.is_empty() => String::new(),
        _ => format!("{host}:{default}"),
    }
}

/// The URL without credentials.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tls = if self.is_tls() { "s" } else { "" };
        let kind = match &self.kind {
            ServerKind::Server => "",
            ServerKind::Cluster => "+cluster",
            ServerKind::Sentinels { .. } => "+sentinel",
        };

        write!(f, "redis{tls}{kind}://")?;

        for (index, node) in self.nodes.iter().enumerate() {
            let separator = if index > 0 { "," } else { "" };
            match node.addr() {
                ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. }
                    if host.contains(':') =>
                {
                    write!(f, "{separator}[{host}]:{port}")?;
                }
                addr => write!(f, "{separator}{addr}")?,
            }
        }

        let login = match &self.kind {
            ServerKind::Sentinels { primary, login } => {
                write!(f, "/{primary}")?;
                login
            }
            _ => self.nodes[0].redis_settings(),
        };

        // The default database is not shown.
        if login.db() == 0 { Ok(()) } else { write!(f, "/{}", login.db()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_every_kind_are_read() {
        for (url, shown, user) in [
            ("redis://localhost", "redis://localhost:6379", None),
            ("redis://:secret@10.0.0.1:7/3", "redis://10.0.0.1:7/3", None),
            ("rediss://me:s%40cret@r.example/", "rediss://r.example:6379", Some("me")),
            ("redis+cluster://a:1,b:2", "redis+cluster://a:1,b:2", None),
            ("rediss+cluster://me:secret@a:1,b:2", "rediss+cluster://a:1,b:2", Some("me")),
        ] {
            let address = Address::parse(url).expect("the URL is valid");
            assert_eq!(address.to_string(), shown);
            assert_eq!(address.is_tls(), url.starts_with("rediss"));

            for node in &address.nodes {
                assert_eq!(node.redis_settings().username(), user);
            }

            assert!(RedisSettings::is_for(url));
            assert!(!format!("{:?}", RedisSettings::new(url)).contains("cret"));
        }
    }

    #[test]
    fn an_invalid_url_is_refused_without_quoting_its_password() {
        for url in [
            "memory:",
            "http://a:secret@b",
            "redis://",
            "redis://me:secret@a:x",
            "redis://me:secret@a,b",
            "redis://me:secret@a/db",
            "redis+cluster://",
            "redis+sentinel://me:secret@a",
            "redis+sentinel://me:secret@a/",
            "redis+sentinel://me:secret@a/name/db",
            "redis+sentinel://me:secret@a:x/name",
            "redis+sentinel:///name",
            "redis+sentinel://a/name?sentinel_username=me",
            "redis+sentinel://a/name?password=secret",
            "redis+other://me:secret@a",
        ] {
            let error = Address::parse(url).map(|address| address.to_string()).expect_err(url);

            assert!(error.to_string().contains("store.url"), "{error}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }

    #[test]
    fn sentinels_and_their_primary_have_separate_credentials() {
        let url = "redis+sentinel://me:s%40cret@a,[::1],b:7/main/3?sentinel_username=watch&sentinel_password=s%2Fcret";
        for (url, tls) in [(url.to_owned(), false), (url.replace("redis+", "rediss+"), true)] {
            let address = Address::parse(&url).expect("the URL is valid");

            let shown = "+sentinel://a:26379,[::1]:26379,b:7/main/3";
            assert_eq!(address.to_string(), format!("redis{}{shown}", if tls { "s" } else { "" }));
            assert_eq!(address.is_tls(), tls);
            assert!(RedisSettings::is_for(&url));
            assert!(!format!("{:?}", RedisSettings::new(&url)).contains("cret"));

            for node in &address.nodes {
                let login = node.redis_settings();
                assert_eq!((login.username(), login.password()), (Some("watch"), Some("s/cret")));
            }

            let ServerKind::Sentinels { primary, login } = &address.kind else {
                panic!("the URL names Sentinels")
            };
            assert_eq!(primary, "main");
            assert_eq!((login.username(), login.password()), (Some("me"), Some("s@cret")));
            assert_eq!(login.db(), 3);
        }

        let address = Address::parse("redis+sentinel://a/main").expect("the URL is valid");
        assert_eq!(address.to_string(), "redis+sentinel://a:26379/main");
        assert_eq!(address.nodes[0].redis_settings().password(), None);
    }
}
