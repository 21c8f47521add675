//! [`Settings`] of one upstream.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
    time::Duration,
};

use larder_server::registry::Spill;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::{Host, Url};

/// The rule by which callers share a process of an upstream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SessionPolicy {
    /// Each session of a client has its own; without sessions, each caller.
    #[default]
    Auto,
    /// Each caller has its own.
    Caller,
    /// All callers share one.
    All,
}

/// The place of an upstream's server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A program that Larder starts.
    Command(Command),
    /// A server over Streamable HTTP.
    Remote(Remote),
}

/// A program that serves over standard input and output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Command {
    /// The program and its arguments.
    pub line: Vec<String>,
    /// Environment variables beside those that it inherits.
    pub env: BTreeMap<String, String>,
    /// The part of Larder's environment that it inherits.
    pub inherits: Inherited,
}

/// The part of Larder's environment that a program inherits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Inherited {
    /// PATH, HOME, LANG and TMPDIR, and on Windows the variables that name folders of the system
    /// and of the user.
    #[default]
    Basic,
    /// All variables but Larder's own, which begin with `LARDER_`, and those with these names.
    AllBut(BTreeSet<String>),
}

/// A server over Streamable HTTP.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Remote {
    /// The URL of the endpoint.
    pub url: String,
    /// Headers of each request.
    pub headers: BTreeMap<String, String>,
    /// How it knows who calls, besides the headers.
    pub auth: Option<RemoteAuth>,
    /// The TLS of connections, if it is not that of the system.
    pub tls: Option<ClientTls>,
}

/// The TLS of a client, such as one that trusts a certificate of its own.
#[derive(Clone)]
pub struct ClientTls(Arc<rustls::ClientConfig>);

impl ClientTls {
    /// The TLS with this configuration.
    pub fn new(config: rustls::ClientConfig) -> Self {
        Self(Arc::new(config))
    }

    /// The configuration.
    pub(super) fn config(&self) -> rustls::ClientConfig {
        self.0.as_ref().clone()
    }
}

/// Two are equal if they are one configuration.
impl PartialEq for ClientTls {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for ClientTls {}

/// How a server over HTTP knows who calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoteAuth {
    /// Each caller logs in at the server.
    Login(OAuth),
    /// The token that a caller presents is exchanged for one of the server.
    Exchange(TokenExchangeSettings),
}

/// How callers log in at a server over HTTP.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct OAuth {
    /// The authorization server, and the client that Larder is to it.
    pub issuer: LoginIssuer,
    /// The scopes to ask for, beside those that the server demands.
    pub scopes: Vec<String>,
}

/// The authorization server of a login. Only a configured one can have a secret of Larder.
#[derive(Clone, PartialEq, Eq)]
pub enum LoginIssuer {
    /// The first one that the server names, as this client if it has registered Larder beforehand.
    Named {
        /// The client ID.
        client_id: Option<String>,
    },
    /// Only this one.
    Configured {
        /// The authorization server's issuer URL.
        issuer: String,
        /// The client as which it has registered Larder beforehand.
        client: Option<OAuthClient>,
    },
}

/// A client that an authorization server has registered beforehand.
#[derive(Clone, PartialEq, Eq)]
pub struct OAuthClient {
    /// The client ID.
    pub id: String,
    /// The client secret.
    pub secret: Option<String>,
}

impl Default for LoginIssuer {
    fn default() -> Self {
        Self::Named { client_id: None }
    }
}

impl LoginIssuer {
    /// The issuer that the operator has configured.
    pub(super) fn configured(&self) -> Option<&str> {
        match self {
            Self::Named { .. } => None,
            Self::Configured { issuer, .. } => Some(issuer),
        }
    }

    /// The client that is registered beforehand.
    pub(super) fn client(&self) -> Option<OAuthClient> {
        match self {
            Self::Named { client_id } => {
                client_id.clone().map(|id| OAuthClient { id, secret: None })
            }
            Self::Configured { client, .. } => client.clone(),
        }
    }
}

/// How tokens are exchanged (RFC 8693).
#[derive(Clone, PartialEq, Eq)]
pub struct TokenExchangeSettings {
    /// The authorization server.
    pub server: TokenServer,

    /// Larder's client ID there.
    pub client_id: String,
    /// The secret of that client.
    pub client_secret: String,

    /// The service that the new token is for, by its name at the authorization server.
    pub audience: Option<String>,
    /// The service that the new token is for, by its URL.
    pub resource: Option<String>,
    /// The scopes to ask for. If there are none, the authorization server decides.
    pub scopes: Vec<String>,

    /// The most exchanged tokens that are kept in memory.
    pub max_tokens: usize,
}

/// The place of an authorization server's token endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenServer {
    /// At this URL.
    Endpoint(String),
    /// In the metadata of this issuer.
    Issuer(String),
}

impl fmt::Debug for TokenExchangeSettings {
    /// Without the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenExchangeSettings")
            .field("client_id", &self.client_id)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for OAuth {
    /// Without the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let client_id = self.issuer.client().map(|client| client.id);
        f.debug_struct("OAuth").field("client_id", &client_id).finish_non_exhaustive()
    }
}

impl fmt::Debug for Remote {
    /// Without the values of headers, which may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").field("headers", &self.headers.keys()).finish_non_exhaustive()
    }
}

impl From<Vec<String>> for Target {
    fn from(line: Vec<String>) -> Self {
        Self::Command(Command { line, ..Command::default() })
    }
}

impl From<Command> for Target {
    fn from(command: Command) -> Self {
        Self::Command(command)
    }
}

impl From<Remote> for Target {
    fn from(remote: Remote) -> Self {
        Self::Remote(remote)
    }
}

/// Which tools of an upstream are offered, and under which names. A `*` at the
/// end of a pattern matches any ending.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ToolFilter {
    /// Tools that are offered.
    pub allow: Vec<String>,
    /// Tools that are not offered, even if they are allowed.
    pub deny: Vec<String>,
    /// Names of tools, by the name that the upstream gives them.
    pub rename: BTreeMap<String, String>,
}

impl Default for ToolFilter {
    fn default() -> Self {
        Self { allow: vec!["*".to_owned()], deny: Vec::new(), rename: BTreeMap::new() }
    }
}

impl ToolFilter {
    /// The name under which a tool is offered; `None` if it is not offered.
    pub(super) fn name<'a>(&'a self, own: &'a str) -> Option<&'a str> {
        let matches = |patterns: &[String]| {
            patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
                Some(prefix) => own.starts_with(prefix),
                None => own == pattern,
            })
        };

        let is_offered = matches(&self.allow) && !matches(&self.deny);
        is_offered.then(|| self.rename.get(own).map_or(own, String::as_str))
    }
}

/// How one upstream is started, and its limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The name, in messages and in the names of its tools if there are several
    /// upstreams.
    pub name: String,
    /// The place of the server.
    pub target: Target,

    /// Which tools are offered.
    pub tools: ToolFilter,
    /// When results are stored, by the upstream's own names of its tools or patterns.
    pub spill: BTreeMap<String, Spill>,
    /// jq filters for the results of tools, by name or pattern, where the caller does not say another.
    pub project: BTreeMap<String, String>,
    /// Whether a result that a caller has had before is told by what has changed.
    pub unchanged: bool,
    /// The arguments of tools that take the cursor of a page, by name or pattern.
    pub pages: BTreeMap<String, String>,
    /// Whether `each` may run tools that do not say that they only read.
    pub fans_out: bool,
    /// How long stored results live, likewise.
    pub ttl: BTreeMap<String, Duration>,
    /// Patterns of the upstreams whose stored content may be an argument of its tools;
    /// `larder` is content that callers and Larder itself have stored.
    pub accept: Vec<String>,

    /// The rule by which callers share a process.
    pub session: SessionPolicy,
    /// Whether the server is not ready while this one is down.
    pub required: bool,
    /// How long a process stays without a call, unless it belongs to a session. `None`: for ever.
    pub idle: Option<Duration>,
    /// The most processes at a time.
    pub max_processes: usize,

    /// How long the start may take.
    pub start_timeout: Duration,
    /// How long a list waits for an upstream that was never listed.
    pub list_timeout: Duration,
    /// How long a request may take without progress.
    pub call_timeout: Duration,

    /// The most bytes of one message.
    pub max_message: usize,
    /// The most JSON values of one message.
    pub max_values: usize,
    /// The most memory for the definitions of all its lists, in bytes.
    pub max_catalogue: usize,

    /// How long a call waits for its client's next round.
    pub answer_timeout: Duration,
    /// The most calls that wait for their clients' next round.
    pub max_parked: usize,
    /// The most such calls of one caller.
    pub max_parked_per_caller: usize,
}

impl Settings {
    /// The default settings.
    pub fn new(name: impl Into<String>, target: impl Into<Target>) -> Self {
        Self {
            name: name.into(),
            target: target.into(),
            tools: ToolFilter::default(),
            spill: BTreeMap::new(),
            project: BTreeMap::new(),
            unchanged: false,
            pages: BTreeMap::new(),
            fans_out: false,
            ttl: BTreeMap::new(),
            accept: vec!["*".to_owned()],
            session: SessionPolicy::default(),
            required: false,
            idle: Some(Duration::from_secs(600)),
            max_processes: 16,
            start_timeout: Duration::from_secs(30),
            list_timeout: Duration::from_secs(5),
            call_timeout: Duration::from_secs(300),
            max_message: 64 << 20,
            max_values: 500_000,
            max_catalogue: 16 << 20,
            answer_timeout: Duration::from_secs(300),
            max_parked: 64,
            max_parked_per_caller: 8,
        }
    }

    /// A name for a command: what its package or program is called.
    pub fn name_of(command: &[String]) -> String {
        const RUNNERS: [&str; 10] =
            ["npx", "npm", "exec", "uvx", "uv", "run", "node", "bunx", "python", "python3"];

        let words = command.iter().filter(|word| !word.starts_with('-'));
        let base = |word: &String| {
            let last = word.rsplit(['/', '\\']).next().unwrap_or_default();
            let last = last.split(['@', '=']).next().unwrap_or_default();
            last.split('.').next().unwrap_or_default().to_ascii_lowercase()
        };

        let name = words.map(base).find(|word| !RUNNERS.contains(&word.as_str()));
        let name = name.unwrap_or_default();
        let name = name.strip_prefix("mcp-").unwrap_or(&name);
        let name = name.strip_prefix("server-").unwrap_or(name);
        let name = name.replace(|c: char| !c.is_ascii_lowercase() && !c.is_ascii_digit(), "-");
        let name = name[..name.len().min(24)].trim_matches('-');

        if name.is_empty() { "upstream".to_owned() } else { name.to_owned() }
    }

    /// A name for a URL: the first telling part of its host, or of its path if the host is an IP
    /// address.
    pub fn name_of_url(url: &str) -> String {
        let Ok(url) = Url::parse(url) else { return Self::name_of(&[]) };
        let is_telling = |part: &&str| !matches!(*part, "" | "www" | "mcp" | "api" | "sse");
        let part = match url.host() {
            Some(Host::Domain(domain)) => domain.split('.').find(is_telling),
            _ => url.path().split('/').find(is_telling),
        };
        Self::name_of(&[part.unwrap_or_default().to_owned()])
    }

    /// Whether a name can be an upstream's: 1 to 24 of a-z, 0-9 and -, none at
    /// an end. Without `_`, so that `name__tool` can be split.
    pub fn is_name(name: &str) -> bool {
        (1..=24).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            && !name.starts_with('-')
            && !name.ends_with('-')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_allowed_denied_and_renamed() {
        let filter = ToolFilter {
            allow: vec!["read_*".into(), "list".into()],
            deny: vec!["read_media*".into()],
            rename: [("read_text_file".to_owned(), "read".to_owned())].into(),
        };

        for (own, name) in [
            ("read_text_file", Some("read")),
            ("read_file", Some("read_file")),
            ("read_media_file", None),
            ("list", Some("list")),
            ("list_all", None),
        ] {
            assert_eq!(filter.name(own), name, "{own}");
        }

        assert_eq!(ToolFilter::default().name("x"), Some("x"));
    }

    #[test]
    fn a_url_names_its_upstream() {
        for (url, name) in [
            ("https://crm.example/mcp", "crm"),
            ("https://user:secret@mcp.linear.example:8443/sse", "linear"),
            ("http://localhost:3000/mcp", "localhost"),
            ("http://127.0.0.1:3000/mcp", "upstream"),
            ("http://127.0.0.1:3000/crm/mcp", "crm"),
            ("http://192.168.1.2/api/Files", "files"),
            ("http://[::1]:3000/mcp", "upstream"),
            ("https://mcp", "upstream"),
            ("nonsense", "upstream"),
        ] {
            let named = Settings::name_of_url(url);
            assert_eq!(named, name, "{url}");
            assert!(Settings::is_name(&named));
        }
    }

    #[test]
    fn a_command_names_its_upstream() {
        for (command, name) in [
            ("npx -y @modelcontextprotocol/server-filesystem /srv", "filesystem"),
            ("uvx mcp-server-git@2026.1.1 --repository x", "git"),
            ("node /opt/everything/index.js", "index"),
            ("/usr/bin/Some_Server", "some-server"),
            ("npx", "upstream"),
        ] {
            let command: Vec<_> = command.split(' ').map(str::to_owned).collect();
            let named = Settings::name_of(&command);
            assert_eq!(named, name);
            assert!(Settings::is_name(&named));
        }

        for bad in ["", "-a", "a-", "a_b", "A", "a23456789012345678901234x"] {
            assert!(!Settings::is_name(bad), "{bad}");
        }
    }
}
