//! Where Redis is and how long to wait for it.

use std::{fmt, time::Duration};

use ::redis::{
    ConnectionAddr, ConnectionInfo, IntoConnectionInfo, ProtocolVersion, RedisConnectionInfo,
};

use super::RedisError;

/// How to reach Redis. Its `Debug` text does not hold the password.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisSettings {
    /// `redis://user:password@host:6379/0`; with TLS `rediss://`; a cluster
    /// by one or more of its hosts, `redis+cluster://host:7000,host:7001` or
    /// `rediss+cluster://`; the primary that Sentinels know under a name,
    /// `redis+sentinel://user:password@host:26379,host:26379/name/0` or
    /// `rediss+sentinel://`, where `?sentinel_username=…&sentinel_password=…`
    /// is for the Sentinels themselves. Users and passwords are percent-encoded.
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

const SCHEMES: [&str; 6] = [
    "redis://",
    "rediss://",
    "redis+cluster://",
    "rediss+cluster://",
    "redis+sentinel://",
    "rediss+sentinel://",
];

/// Where Sentinels listen if nothing else is said.
const SENTINEL_PORT: u16 = 26379;

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
    /// One of a single server, one or more of a cluster, or the Sentinels.
    pub(super) nodes: Vec<ConnectionInfo>,
    pub(super) kind: Kind,
}

/// What stands at the hosts of a URL.
pub(super) enum Kind {
    Server,
    Cluster,
    /// Those who know which server is the primary of that name, and how to
    /// log in there.
    Sentinels {
        primary: String,
        login: RedisConnectionInfo,
    },
}

impl Place {
    pub(super) fn parse(url: &str) -> Result<Self, RedisError> {
        // The URL holds a password and therefore stands in no message.
        let wrong = |problem: &str| {
            RedisError::Setting(format!(
                "store.url: the URL of Redis cannot be used: {problem}. Write it like redis://user:password@host:6379/0, with rediss:// for TLS, redis+cluster://host:7000,host:7001, or redis+sentinel://host:26379,host:26379/name"
            ))
        };
        let (scheme, rest) = url.split_once("://").ok_or_else(|| wrong("it has no scheme"))?;
        if !SCHEMES.iter().any(|known| known.strip_suffix("://") == Some(scheme)) {
            return Err(wrong("its scheme is another"));
        }
        let (scheme, kind) = scheme.split_once('+').unwrap_or((scheme, ""));
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let (login, hosts) =
            authority.rfind('@').map_or(("", authority), |at| authority.split_at(at + 1));
        let at = |login: &str, host: &str, path: &str| {
            let url = format!("{scheme}://{login}{host}{path}");
            let node = url.into_connection_info().map_err(|error| wrong(&error.to_string()))?;
            let settings = node.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
            Ok::<_, RedisError>(node.set_redis_settings(settings))
        };
        let all = |login: &str, path: &str| {
            hosts.split(',').map(|host| at(login, host, path)).collect::<Result<Vec<_>, _>>()
        };
        let (nodes, kind) = match kind {
            "cluster" => (all(login, path)?, Kind::Cluster),
            "sentinel" => {
                let (path, query) = path.split_once('?').unwrap_or((path, ""));
                let (primary, db) = path
                    .trim_start_matches('/')
                    .split_once('/')
                    .unwrap_or((path.trim_start_matches('/'), ""));
                if primary.is_empty() {
                    return Err(wrong(
                        "the name by which the Sentinels know the primary is missing",
                    ));
                }
                let own = sentinel_login(query).map_err(|problem| wrong(&problem))?;
                let sentinel = |host: &str| at(&own, &with_port(host, SENTINEL_PORT), "");
                let nodes = hosts.split(',').map(sentinel).collect::<Result<Vec<_>, _>>()?;
                let server = at(login, "primary", &format!("/{db}"))?;
                let kind = Kind::Sentinels {
                    primary: primary.to_owned(),
                    login: server.redis_settings().clone(),
                };
                (nodes, kind)
            }
            _ if hosts.contains(',') => {
                return Err(wrong("only a cluster and Sentinels have several hosts"));
            }
            _ => (all(login, path)?, Kind::Server),
        };
        Ok(Self { nodes, kind })
    }

    /// Whether connections are encrypted.
    pub(super) fn is_tls(&self) -> bool {
        self.nodes.iter().any(|node| matches!(node.addr(), ConnectionAddr::TcpTls { .. }))
    }
}

/// What opens the Sentinels, as a URL spells it before a host.
fn sentinel_login(query: &str) -> Result<String, String> {
    let (mut user, mut password) = ("", None);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("sentinel_username", value)) => user = value,
            Some(("sentinel_password", value)) => password = Some(value),
            _ => {
                return Err("after the ? only sentinel_username= and sentinel_password= are known"
                    .to_owned());
            }
        }
    }
    Ok(match password {
        Some(password) => format!("{user}:{password}@"),
        None if user.is_empty() => String::new(),
        None => return Err("sentinel_username needs a sentinel_password".to_owned()),
    })
}

/// A host that says its port, also if that is the usual one.
fn with_port(host: &str, usual: u16) -> String {
    // The colons of an IPv6 address stand in brackets.
    match host.rfind(':') {
        Some(colon) if !host[colon..].contains(']') => host.to_owned(),
        _ if host.is_empty() => String::new(),
        _ => format!("{host}:{usual}"),
    }
}

/// The hosts and what is there, without what opens it.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tls = if self.is_tls() { "s" } else { "" };
        let kind = match &self.kind {
            Kind::Server => "",
            Kind::Cluster => "+cluster",
            Kind::Sentinels { .. } => "+sentinel",
        };
        write!(f, "redis{tls}{kind}://")?;
        for (at, node) in self.nodes.iter().enumerate() {
            let separator = if at > 0 { "," } else { "" };
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
            Kind::Sentinels { primary, login } => {
                write!(f, "/{primary}")?;
                login
            }
            _ => self.nodes[0].redis_settings(),
        };
        // The number of the database; most have only the first.
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
            "redis+sentinel://me:secret@a/",
            "redis+sentinel://me:secret@a/name/db",
            "redis+sentinel://me:secret@a:x/name",
            "redis+sentinel:///name",
            "redis+sentinel://a/name?sentinel_username=me",
            "redis+sentinel://a/name?password=secret",
            "redis+other://me:secret@a",
        ] {
            let error = Place::parse(url).map(|place| place.to_string()).expect_err(url);
            assert!(error.to_string().contains("store.url"), "{error}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }

    #[test]
    fn sentinels_are_asked_for_a_primary_and_each_has_a_login_of_its_own() {
        let url = "redis+sentinel://me:s%40cret@a,[::1],b:7/main/3?sentinel_username=watch&sentinel_password=s%2Fcret";
        for (url, tls) in [(url.to_owned(), false), (url.replace("redis+", "rediss+"), true)] {
            let place = Place::parse(&url).expect("it is a URL of Redis");
            let shown = "+sentinel://a:26379,[::1]:26379,b:7/main/3";
            assert_eq!(place.to_string(), format!("redis{}{shown}", if tls { "s" } else { "" }));
            assert_eq!(place.is_tls(), tls);
            assert!(RedisSettings::is_for(&url));
            assert!(!format!("{:?}", RedisSettings::new(&url)).contains("cret"));
            for node in &place.nodes {
                let login = node.redis_settings();
                assert_eq!((login.username(), login.password()), (Some("watch"), Some("s/cret")));
            }
            let Kind::Sentinels { primary, login } = &place.kind else {
                panic!("it is one of Sentinels")
            };
            assert_eq!(primary, "main");
            assert_eq!((login.username(), login.password()), (Some("me"), Some("s@cret")));
            assert_eq!(login.db(), 3);
        }
        let place = Place::parse("redis+sentinel://a/main").expect("that is enough");
        assert_eq!(place.to_string(), "redis+sentinel://a:26379/main");
        assert_eq!(place.nodes[0].redis_settings().password(), None);
    }
}
