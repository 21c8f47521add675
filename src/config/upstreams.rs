//! `[[upstreams]]`: other MCP servers behind this one.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    time::Duration,
};

use larder_gateway::{
    Command, LoginIssuer, OAuth, OAuthClient, Remote, RemoteAuth, SessionPolicy, Settings, Target,
    ToolFilter,
};
use larder_runtime::environment::variable;
use larder_server::registry::Spill;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    ConfigError, UpstreamExchangeConfig,
    expand::{expand, named_in},
    units::{Size, Span},
};

/// `[[upstreams]]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpstreamConfig {
    /// Name: 1 to 24 of a-z, 0-9 and -. With several upstreams their tools are called name__tool.
    pub name: String,
    /// The program and its arguments.
    #[serde(default)]
    pub command: Vec<String>,
    /// URL of a server over Streamable HTTP, instead of a command.
    #[serde(default)]
    pub url: Option<String>,
    /// Headers of each request to the URL. ${NAME} is replaced as in the environment.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Files that have the values of further headers. They are read again when they change.
    #[serde(default)]
    pub header_files: BTreeMap<String, PathBuf>,
    /// How Larder authenticates itself at the URL, besides headers.
    #[serde(default)]
    pub auth: Option<UpstreamAuthConfig>,
    /// In place of auth: the token of each caller is exchanged for one of the upstream (RFC 8693).
    /// Needs `auth.mode` = `"oauth"`.
    #[serde(default)]
    pub exchange: Option<UpstreamExchangeConfig>,
    /// Environment variables of the program, which inherits only PATH, HOME, LANG and TMPDIR, and
    /// over stdio all but those of Larder itself. ${NAME} is replaced by a variable of the
    /// environment of Larder itself.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Tools that are offered. A trailing * matches any ending.
    #[serde(default)]
    pub tools: ToolFilter,
    /// Sharing of processes: `"auto"` (each session of a client has its own; without sessions, each
    /// caller), `"caller"` or `"all"`.
    #[serde(default)]
    pub session: SessionPolicy,
    /// When the results of a tool are stored: `"auto"`, `"always"` or `"never"`. By the name that
    /// the upstream gives the tool; a trailing * matches any ending.
    #[serde(default)]
    pub spill: BTreeMap<String, Spill>,
    /// jq filters for the results of tools, by such names. Callers see what the filter gives, and the
    /// URI of the whole; a call can ask for another part, or for all by `_larder: {whole: true}`.
    #[serde(default)]
    pub project: BTreeMap<String, String>,
    /// Answer a call whose result the caller has had before in its session by `unchanged since 14:02
    /// UTC, kept until …: URI`, or by what has changed if that is little. The tool runs all the same,
    /// and its results are stored.
    #[serde(default)]
    pub unchanged: bool,
    /// The tools that one call may run for several arguments (`_larder: {each: […]}`): `"read"` are
    /// those that say that they only read, `"all"` are all.
    #[serde(default)]
    pub each: EachPolicy,
    /// The arguments of tools that take the cursor of a page, by such names, for `_larder: {pages: n}`
    /// where neither the result nor the arguments of the tool show it.
    #[serde(default)]
    pub pages: BTreeMap<String, String>,
    /// How long stored results of a tool live, by such names; at most `store.max_ttl`.
    #[serde(default)]
    pub ttl: BTreeMap<String, Span>,
    /// References in the arguments of its tools.
    #[serde(default)]
    pub refs: RefsConfig,
    /// Whether /readyz/dependencies reports this upstream while it is down. One that nobody has
    /// used counts as available, because it starts with its first use.
    #[serde(default)]
    pub required: bool,
    /// How long a process stays without a call. The process of a session stays until the session
    /// ends, and over stdio until Larder ends.
    #[serde(default = "idle")]
    pub idle: Span,
    /// The most processes at a time. For another one, the process that has been idle for the
    /// longest time ends. One caller has three quarters of them at most.
    #[serde(default = "max_processes")]
    pub max_processes: usize,
    /// How long the start may take.
    #[serde(default = "start_timeout")]
    pub start_timeout: Span,
    /// How long a list waits for an upstream that was never listed. If that comes later, the change
    /// is announced.
    #[serde(default = "list_timeout")]
    pub list_timeout: Span,
    /// How long a request may take; progress starts it anew.
    #[serde(default = "call_timeout")]
    pub call_timeout: Span,
    /// The largest message that the upstream may send.
    #[serde(default = "max_message")]
    pub max_message: Size,
    /// The most JSON values of one message, at every depth. A value takes far more memory than its
    /// few bytes of JSON.
    #[serde(default = "max_values")]
    pub max_values: usize,
    /// The most memory for the definitions of all its tools, prompts, resources and templates,
    /// about as large as their JSON and 96 bytes for each value. What is over it is not offered.
    #[serde(default = "max_catalogue")]
    pub max_catalogue: Size,
    /// How long a call of a client without a session waits for the answer to the upstream's
    /// question. Then the upstream is told to stop.
    #[serde(default = "answer_timeout")]
    pub answer_timeout: Span,
    /// The most calls that wait for such answers.
    #[serde(default = "max_parked")]
    pub max_parked: usize,
    /// The most calls of one caller that wait for such answers.
    #[serde(default = "max_parked_per_caller")]
    pub max_parked_per_caller: usize,
}

/// `[upstreams.refs]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RefsConfig {
    /// Upstreams whose stored content may be an argument; `"larder"` is content that callers and
    /// Larder itself have stored. A trailing * matches any ending.
    pub accept: Vec<String>,
}

impl Default for RefsConfig {
    fn default() -> Self {
        Self { accept: vec!["*".to_owned()] }
    }
}

/// The kinds of authentication at an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum UpstreamAuthKind {
    /// Each caller logs in at the upstream's authorization server.
    OAuth,
}

/// `auth` of an upstream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpstreamAuthConfig {
    /// `"oauth"`: each caller logs in at the authorization server of the upstream.
    pub kind: UpstreamAuthKind,
    /// Client ID, if the authorization server has registered Larder beforehand.
    #[serde(default)]
    pub client_id: Option<String>,
    /// Secret of that client. ${NAME} is replaced as in the environment. It needs the issuer, so
    /// that no other authorization server gets it.
    #[serde(default)]
    pub client_secret: Option<String>,
    /// Scopes to ask for, beside those that the upstream demands.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// The only authorization server that may be used. It may be at a private address. By default
    /// the first one that the upstream names, which must be at a public address.
    #[serde(default)]
    pub issuer: Option<String>,
}

/// A secret, with the variables of Larder's environment filled in.
pub(super) fn expand_secret(setting: &str, value: &str) -> Result<String, ConfigError> {
    expand(value, variable)
        .map_err(|missing| ConfigError::new(setting, format!("the variable {missing} is not set")))
}

impl UpstreamAuthConfig {
    /// The settings of the login at this upstream.
    fn settings(&self, upstream: &str) -> Result<OAuth, ConfigError> {
        let problem = |setting: &str, problem: &str| {
            ConfigError::new(
                &format!("upstreams.auth.{setting}"),
                format!("{upstream:?}: {problem}"),
            )
        };

        let secret = self.client_secret.as_ref();
        let secret =
            secret.map(|value| expand_secret("upstreams.auth.client_secret", value)).transpose()?;

        let client = match (self.client_id.clone(), secret) {
            (Some(id), secret) => Some(OAuthClient { id, secret }),
            (None, None) => None,
            (None, Some(_)) => {
                return Err(problem("client_id", "there is a client_secret without it"));
            }
        };

        let issuer = match (self.issuer.clone(), client) {
            (Some(issuer), client) => LoginIssuer::Configured { issuer, client },
            (None, Some(OAuthClient { secret: Some(_), .. })) => {
                let why = "a client_secret needs the issuer of its authorization server: without \
                           it, the upstream chooses who gets the secret";
                return Err(problem("issuer", why));
            }
            (None, client) => LoginIssuer::Named { client_id: client.map(|client| client.id) },
        };

        Ok(OAuth { issuer, scopes: self.scopes.clone() })
    }
}

fn idle() -> Span {
    Span(Duration::from_secs(600))
}

fn max_processes() -> usize {
    16
}

fn start_timeout() -> Span {
    Span(Duration::from_secs(30))
}

fn list_timeout() -> Span {
    Span(Duration::from_secs(5))
}

fn call_timeout() -> Span {
    Span(Duration::from_secs(300))
}

fn max_message() -> Size {
    Size(64 << 20)
}

fn max_values() -> usize {
    500_000
}

fn max_catalogue() -> Size {
    Size(16 << 20)
}

fn answer_timeout() -> Span {
    Span(Duration::from_secs(300))
}

fn max_parked() -> usize {
    64
}

fn max_parked_per_caller() -> usize {
    8
}

/// The tools that one call may run for several arguments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EachPolicy {
    /// Tools that say that they only read.
    #[default]
    Read,
    /// All.
    All,
}

impl UpstreamConfig {
    /// The settings, with the variables of Larder's environment filled in.
    ///
    /// # Errors
    /// Names a variable that is not set.
    pub fn settings(&self) -> Result<Settings, ConfigError> {
        let target = match &self.url {
            Some(url) => {
                let mut headers = expand_all("headers", &self.headers)?;
                for (name, file) in &self.header_files {
                    headers.insert(name.clone(), read_header(name, file)?);
                }

                let auth = match (&self.auth, &self.exchange) {
                    (Some(auth), _) => Some(RemoteAuth::Login(auth.settings(&self.name)?)),
                    (None, Some(exchange)) => Some(RemoteAuth::Exchange(exchange.settings()?)),
                    (None, None) => None,
                };

                Target::Remote(Remote { url: url.clone(), headers, auth, tls: None })
            }
            None => {
                let env = expand_all("env", &self.env)?;
                Target::Command(Command { line: self.command.clone(), env, ..Command::default() })
            }
        };

        Ok(Settings {
            name: self.name.clone(),
            target,
            tools: self.tools.clone(),
            spill: self.spill.clone(),
            project: self.project.clone(),
            unchanged: self.unchanged,
            pages: self.pages.clone(),
            fans_out: self.each == EachPolicy::All,
            ttl: self.ttl.iter().map(|(tool, ttl)| (tool.clone(), ttl.0)).collect(),
            accept: self.refs.accept.clone(),
            session: self.session,
            required: self.required,
            idle: Some(self.idle.0),
            max_processes: self.max_processes,
            start_timeout: self.start_timeout.0,
            list_timeout: self.list_timeout.0,
            call_timeout: self.call_timeout.0,
            max_message: usize::try_from(self.max_message.0).unwrap_or(usize::MAX),
            max_values: self.max_values,
            max_catalogue: usize::try_from(self.max_catalogue.0).unwrap_or(usize::MAX),
            answer_timeout: self.answer_timeout.0,
            max_parked: self.max_parked,
            max_parked_per_caller: self.max_parked_per_caller,
        })
    }
}

impl UpstreamConfig {
    /// The variables of Larder's environment that these settings fill in: they may be secrets.
    pub(crate) fn variables(&self) -> BTreeSet<String> {
        let secret = |auth: &UpstreamAuthConfig| auth.client_secret.clone();
        let secrets = self.auth.as_ref().and_then(secret);
        let exchanged = self.exchange.as_ref().and_then(|exchange| exchange.client_secret.clone());

        let values = self.headers.values().chain(self.env.values()).chain(&secrets);
        let values = values.chain(&exchanged);
        values.flat_map(|value| named_in(value)).map(str::to_owned).collect()
    }
}

/// The value of a header in a file.
fn read_header(name: &str, file: &Path) -> Result<String, ConfigError> {
    let problem =
        |problem: String| ConfigError::new(&format!("upstreams.header_files.{name}"), problem);
    let read = std::fs::read_to_string(file);
    let read = read.map_err(|error| problem(format!("{}: {error}", file.display())))?;

    match read.trim() {
        "" => Err(problem(format!("{}: it is empty", file.display()))),
        value => Ok(value.to_owned()),
    }
}

/// The values with the variables of Larder's environment filled in.
fn expand_all(
    setting: &str,
    values: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, ConfigError> {
    let expanded = values.iter().map(|(name, value)| {
        let value = expand(value, variable).map_err(|missing| {
            let setting = format!("upstreams.{setting}.{name}");
            ConfigError::new(&setting, format!("the variable {missing} is not set"))
        })?;
        Ok((name.clone(), value))
    });

    expanded.collect()
}
