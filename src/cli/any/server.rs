//! [`AnyServer`]: the connection to a server, as the command line names it.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use clap::Args;
use larder_gateway::{
    ClientTls, Command, Inherited, OAuth, Remote, RemoteAuth, Settings,
    direct::{Direct, DirectError},
};
use larder_protocol::{ErrorResponse, LogLevel};
use larder_server::registry::LoginSite;
use serde::Deserialize;
use serde_json::{Value, json};

use super::attendant::Terminal;
use crate::{
    cli::{
        client::{ClientError, Endpoint, McpClient, ServerArgs, logins, person},
        named::{header_value, is_startable, parse_header},
    },
    near::did_you_mean,
};

/// How long a program may take to start: the first time, `npx` and `uvx` have to install it.
const PROGRAM_START: Duration = Duration::from_secs(300);
/// How long a server over HTTP may take to answer the first request.
const REMOTE_START: Duration = Duration::from_secs(30);
/// How long the end of a session may take.
const CLOSING: Duration = Duration::from_secs(10);
/// How often a request is repeated after the pages that a server wants to be visited first.
const MAX_VISITS: usize = 8;
/// The code of a request that is refused until pages are visited (2025-11-25, elicitation).
const URL_ELICITATION_REQUIRED: i64 = -32_042;

/// A server over HTTP, or a program that serves over its standard input and output.
#[derive(Debug, Args)]
pub(super) struct AnyServerArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// A header of each request, and the environment variable that has its value; may be
    /// repeated.
    #[arg(long = "header", value_name = "NAME=VARIABLE", value_parser = parse_header, conflicts_with = "command")]
    headers: Vec<(String, String)>,
    /// The least severe log messages to show: debug, info, notice, warning, error, or none.
    #[arg(long, value_name = "LEVEL", default_value = "info", value_parser = parse_level)]
    log_level: WantedLogs,
    /// How long to wait without an answer or progress, such as 90s or 1h.
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = humantime::parse_duration)]
    timeout: Duration,
    /// The program, in place of a server over HTTP.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// The log messages that are wanted.
#[derive(Debug, Clone, Copy)]
struct WantedLogs(Option<LogLevel>);

fn parse_level(text: &str) -> Result<WantedLogs, String> {
    if text == "none" {
        return Ok(WantedLogs(None));
    }
    let level = LogLevel::deserialize(json!(text));
    level.map(|level| WantedLogs(Some(level))).map_err(|_| {
        "write debug, info, notice, warning, error, critical, alert, emergency or none".into()
    })
}

/// A pair such as `name=value`.
pub(super) fn parse_pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.to_owned()))
        }
        _ => Err("write it as NAME=VALUE".into()),
    }
}

/// A connected server, and the person at the terminal.
pub(super) struct AnyServer {
    direct: Direct,
    terminal: Terminal,
    place: NamedPlace,
}

/// The server as it was named.
struct NamedPlace {
    /// The URL, or the program.
    name: String,
    /// The URL; `None` for a program.
    endpoint: Option<Endpoint>,
    headers: BTreeMap<String, String>,
    args: ServerArgs,
    /// How long to wait for an answer.
    timeout: Duration,
}

/// Why a request has no result.
pub(super) enum Unanswered {
    /// The server has refused it.
    Refused(ErrorResponse),
    /// Any other reason.
    Other(ClientError),
}

impl From<ClientError> for Unanswered {
    fn from(error: ClientError) -> Self {
        Self::Other(error)
    }
}

impl From<Unanswered> for ClientError {
    fn from(unanswered: Unanswered) -> Self {
        match unanswered {
            Unanswered::Refused(error) => Self::Failed(error.message),
            Unanswered::Other(error) => error,
        }
    }
}

impl AnyServerArgs {
    /// Connects to the server. `may_ask` says whether the person can be asked: standard input is
    /// not used for anything else.
    pub(super) async fn open(self, may_ask: bool) -> Result<AnyServer, ClientError> {
        let place = self.place()?;
        let terminal = Terminal::new(place.name.clone(), self.log_level.0, may_ask);
        let site = place.endpoint.as_ref().and_then(logins::known_site);
        let settings = self.settings(&place, site.as_ref())?;

        let capabilities = terminal.capabilities();
        let opened = Box::pin(Direct::open(settings, &capabilities, site.as_ref()));
        match terminal.until_interrupted(opened).await? {
            Ok(direct) => Ok(AnyServer { direct, terminal, place }),
            Err(error) => Err(terminal.until_interrupted(place.told(error)).await?),
        }
    }

    fn place(&self) -> Result<NamedPlace, ClientError> {
        let args = self.server.clone();
        let timeout = self.timeout;
        if let Some(program) = self.command.first() {
            if args.ca().is_some() {
                let problem = "--ca is for a server over HTTP: leave it out for a program.";
                return Err(ClientError::Usage(problem.into()));
            }
            is_startable(program).map_err(ClientError::Usage)?;
            let headers = BTreeMap::new();
            return Ok(NamedPlace {
                name: program.clone(),
                endpoint: None,
                headers,
                args,
                timeout,
            });
        }

        let endpoint = Endpoint::of_any_server(args.url()).map_err(ClientError::Usage)?;
        let headers = self.headers.iter().map(|(name, variable)| {
            let value = header_value(name, variable).map_err(ClientError::Usage)?;
            Ok((name.clone(), value))
        });
        let headers = headers.collect::<Result<_, ClientError>>()?;
        Ok(NamedPlace { name: endpoint.shown(), endpoint: Some(endpoint), headers, args, timeout })
    }

    /// The settings of the server. `site` has the logins of the person, if there are any.
    fn settings(
        &self,
        place: &NamedPlace,
        site: Option<&LoginSite>,
    ) -> Result<Settings, ClientError> {
        let Some(endpoint) = &place.endpoint else {
            let inherits = Inherited::AllBut(BTreeSet::default());
            let command = Command { line: self.command.clone(), env: BTreeMap::new(), inherits };
            let mut settings = Settings::new(Settings::name_of(&self.command), command);
            settings.start_timeout = PROGRAM_START.min(self.timeout);
            settings.call_timeout = self.timeout;
            return Ok(settings);
        };

        let mut headers = place.headers.clone();
        if let Some(token) = self.server.token() {
            headers.insert("authorization".into(), format!("Bearer {token}"));
        }
        let has_own = headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
        let may_log_in = site.is_some() && !has_own;
        let remote = Remote {
            url: endpoint.url().to_string(),
            headers,
            auth: may_log_in.then(|| RemoteAuth::Login(OAuth::default())),
            tls: self.server.tls()?.map(ClientTls::new),
        };

        let mut settings = Settings::new(logins::name(endpoint), remote);
        settings.start_timeout = REMOTE_START.min(self.timeout);
        settings.call_timeout = self.timeout;
        Ok(settings)
    }
}

impl AnyServer {
    /// Sends a request.
    pub(super) async fn request(
        &self,
        method: &'static str,
        params: Value,
    ) -> Result<Value, Unanswered> {
        self.attended(|| self.direct.request(method, params.clone(), &self.terminal)).await
    }

    /// Calls a tool.
    pub(super) async fn call(&self, tool: &str, arguments: &Value) -> Result<Value, Unanswered> {
        self.attended(|| self.direct.call(tool, arguments, &self.terminal)).await
    }

    /// Sends a request until Ctrl-C, and again after the person has visited the pages that the
    /// server wants to be visited first.
    async fn attended<F: Future<Output = Result<Value, DirectError>>>(
        &self,
        send: impl Fn() -> F,
    ) -> Result<Value, Unanswered> {
        for _ in 0..MAX_VISITS {
            let answered = self.terminal.until_interrupted(Box::pin(send())).await?;
            self.terminal.clear();

            let error = match answered {
                Ok(answer) => return Ok(answer),
                Err(DirectError::Refused(error)) => error,
                Err(error) => return Err(self.told(error).await?.into()),
            };
            if error.code != URL_ELICITATION_REQUIRED {
                return Err(Unanswered::Refused(error));
            }

            let pages = error.data.as_ref().map_or(&Value::Null, |data| &data["elicitations"]);
            let visits = self.terminal.visits(pages);
            if !self.terminal.until_interrupted(visits).await? {
                return Err(Unanswered::Refused(error));
            }
        }

        let name = &self.place.name;
        let told = format!("{name} wants pages to be visited again and again.");
        Err(ClientError::Failed(told).into())
    }

    /// All items of a list. A server without that list has none.
    pub(super) async fn list(
        &self,
        method: &'static str,
        member: &str,
    ) -> Result<Vec<Value>, ClientError> {
        const METHOD_NOT_FOUND: i64 = -32601;

        let list = Box::pin(self.direct.list(method, member, &self.terminal));
        let listed = self.terminal.until_interrupted(list).await?;
        self.terminal.clear();

        match listed {
            Ok(items) => Ok(items),
            Err(DirectError::Refused(error)) if error.code == METHOD_NOT_FOUND => Ok(Vec::new()),
            Err(error) => Err(self.told(error).await?),
        }
    }

    /// The near names of a list, as a question, if the server has refused a request because it
    /// has nothing of this name; empty if nothing is near. `None` for any other refusal.
    pub(super) async fn missing(
        &self,
        name: &str,
        error: &ErrorResponse,
        (method, member, key): (&'static str, &str, &str),
    ) -> Option<String> {
        if !says_unknown(name, error) {
            return None;
        }
        let listed = self.list(method, member).await.ok()?;
        let names: Vec<_> = listed.iter().filter_map(|item| item[key].as_str()).collect();
        (!names.contains(&name)).then(|| did_you_mean(name, names))
    }

    /// Ends the session or the program.
    pub(super) async fn close(self) {
        let Self { direct, terminal, .. } = self;
        let closed = tokio::time::timeout(CLOSING, direct.close());
        // Interrupted or late, the end of this process ends both.
        let _ = terminal.until_interrupted(closed).await;
    }

    async fn told(&self, error: DirectError) -> Result<ClientError, ClientError> {
        self.terminal.until_interrupted(self.place.told(error)).await
    }
}

/// Whether a server has refused a request because it has nothing of this name.
fn says_unknown(name: &str, error: &ErrorResponse) -> bool {
    const INVALID_PARAMS: i64 = -32602;
    const RESOURCE_NOT_FOUND: i64 = -32002;

    let text = error.message.to_lowercase();
    let is_unknown = ["unknown", "not found", "no such", "does not exist"];
    match error.code {
        RESOURCE_NOT_FOUND => true,
        INVALID_PARAMS => {
            error.message.contains(name) && is_unknown.iter().any(|words| text.contains(words))
        }
        _ => false,
    }
}

impl NamedPlace {
    /// An error for a person.
    async fn told(&self, error: DirectError) -> ClientError {
        let name = &self.name;
        let is_program = self.endpoint.is_none();
        let with_stderr = |text: String, stderr: &str| match stderr {
            "" => text,
            lines => format!("{text}\nIts last lines: {lines}"),
        };

        match error {
            DirectError::NotStarted { reason, stderr } if is_program => ClientError::Unreachable(
                with_stderr(format!("{name} does not start as an MCP server: {reason}."), &stderr),
            ),
            DirectError::Ended { how, stderr } if is_program => {
                ClientError::Unreachable(with_stderr(format!("{name} ended ({how})."), &stderr))
            }
            DirectError::NotStarted { reason, .. } => match self.diagnosis().await {
                Some(error) => error,
                None => ClientError::Unreachable(format!("{name}: {reason}.")),
            },
            DirectError::Ended { how, .. } => {
                ClientError::Unreachable(format!("{name} ended the session ({how})."))
            }
            DirectError::Login(_) => ClientError::Denied(person::no_login(name)),
            DirectError::Status { status: 401, .. } if !self.has_credentials() => {
                ClientError::Denied(person::no_login(name))
            }
            DirectError::Status { status: 401 | 403, text } => {
                ClientError::Denied(format!("{name} does not accept the token: {text}"))
            }
            DirectError::Status { text, .. } => {
                self.diagnosis().await.unwrap_or(ClientError::Failed(text))
            }
            DirectError::TimedOut(after) => ClientError::Failed(format!(
                "{name} sent no answer and no progress within {}. Wait longer: --timeout 1h",
                humantime::format_duration(after)
            )),
            DirectError::Refused(error) => ClientError::Failed(error.message),
            DirectError::Invalid(problem) => ClientError::Unreachable(format!(
                "{name} sent an answer that cannot be used: {problem}"
            )),
            DirectError::Unanswered(reason) | DirectError::Other(reason) => {
                ClientError::Failed(format!("{name}: {reason}"))
            }
        }
    }

    fn has_credentials(&self) -> bool {
        let is_authorization = |name: &String| name.eq_ignore_ascii_case("authorization");
        self.args.token().is_some() || self.headers.keys().any(is_authorization)
    }

    /// The problem of a server that cannot be used, as a plain request to its URL shows it.
    async fn diagnosis(&self) -> Option<ClientError> {
        let endpoint = self.endpoint.as_ref()?;
        let diagnosed = Box::pin(McpClient::diagnose(endpoint, &self.args, &self.headers));
        tokio::time::timeout(self.timeout, diagnosed).await.ok().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_refusal_of_the_name_itself_says_that_it_is_unknown() {
        let error =
            |code, message: &str| ErrorResponse { code, message: message.into(), data: None };
        for (code, message, is_unknown) in [
            (-32602, "Unknown tool: echo", true),
            (-32602, "Tool echo not found", true),
            (-32002, "Resource not found", true),
            (-32602, "The file notes.txt is not found", false),
            (-32602, "echo needs a text", false),
            (-32603, "Unknown tool: echo", false),
            (0, "echo: not found", false),
        ] {
            assert_eq!(says_unknown("echo", &error(code, message)), is_unknown, "{message}");
        }
    }
}
