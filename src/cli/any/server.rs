//! [`AnyServer`]: the connection to a server, as the command line names it.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    time::Duration,
};

use clap::Args;
use larder_gateway::{
    ClientTls, Command, Inherited, OAuth, Remote, RemoteAuth, Settings, Target,
    direct::{Direct, DirectError},
};
use larder_protocol::LogLevel;
use serde::Deserialize;
use serde_json::{Value, json};

use super::attendant::Terminal;
use crate::{
    cli::client::{ClientError, Endpoint, McpClient, ServerArgs, logins, person, trusting},
    near::did_you_mean,
};

/// How long a program may take to start: the first time, `npx` and `uvx` have to install it.
const START: Duration = Duration::from_secs(300);

/// A server over HTTP, or a program that serves over its standard input and output.
#[derive(Debug, Args)]
pub(super) struct AnyServerArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// A header of each request: NAME=VALUE; may be repeated.
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = parse_pair)]
    headers: Vec<(String, String)>,
    /// The least severe log messages to show: debug, info, notice, warning, error, or none.
    #[arg(long, value_name = "LEVEL", default_value = "info", value_parser = parse_level)]
    log_level: Wanted,
    /// How long to wait without an answer or progress, such as 90s or 1h.
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = humantime::parse_duration)]
    timeout: Duration,
    /// The program, in place of a server over HTTP.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// The log messages that are wanted.
#[derive(Debug, Clone, Copy)]
struct Wanted(Option<LogLevel>);

fn parse_level(text: &str) -> Result<Wanted, String> {
    if text == "none" {
        return Ok(Wanted(None));
    }
    let level = LogLevel::deserialize(json!(text));
    level.map(|level| Wanted(Some(level))).map_err(|_| {
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
    /// The URL, or the program.
    name: String,
    args: ServerArgs,
    is_remote: bool,
}

impl AnyServerArgs {
    /// Connects to the server. `may_ask` says whether the person can be asked: standard input is
    /// not used for anything else.
    pub(super) async fn open(self, may_ask: bool) -> Result<AnyServer, ClientError> {
        let is_remote = self.command.is_empty();
        let endpoint = Endpoint::parse(self.server.url()).map_err(ClientError::Usage)?;
        let name = match self.command.first() {
            Some(program) => {
                crate::cli::named::is_startable(program).map_err(ClientError::Usage)?;
                program.clone()
            }
            None => endpoint.shown(),
        };

        let terminal = Terminal::new(self.log_level.0, may_ask);
        let site =
            if is_remote { logins::site(&endpoint, "http://127.0.0.1:0").ok() } else { None };
        let args = self.server.clone();
        let settings = self.settings(&endpoint)?;

        let capabilities = terminal.capabilities();
        let opened = Box::pin(Direct::open(settings, &capabilities, site.as_ref()));
        match terminal.until_interrupted(opened).await? {
            Ok(direct) => Ok(AnyServer { direct, terminal, name, args, is_remote }),
            Err(error) => Err(told(error, &args, &name, is_remote).await),
        }
    }

    fn settings(self, endpoint: &Endpoint) -> Result<Settings, ClientError> {
        let (name, target) = match self.command.first() {
            Some(_) => {
                let inherits = Inherited::AllBut(BTreeSet::default());
                let name = Settings::name_of(&self.command);
                let command = Command { line: self.command, env: BTreeMap::new(), inherits };
                (name, Target::Command(command))
            }
            None => {
                let mut headers: BTreeMap<_, _> = self.headers.into_iter().collect();
                let mut auth = Some(RemoteAuth::Login(OAuth::default()));
                if let Some(token) = self.server.token() {
                    headers.insert("authorization".into(), format!("Bearer {token}"));
                    auth = None;
                }
                let has_own = headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
                let auth = auth.filter(|_| !has_own);
                let tls = self.server.ca().map(tls_of).transpose()?;

                let url = endpoint.url().to_string();
                (logins::NAME.to_owned(), Target::Remote(Remote { url, headers, auth, tls }))
            }
        };

        let mut settings = Settings::new(name, target);
        settings.start_timeout = START;
        settings.call_timeout = self.timeout;
        Ok(settings)
    }
}

fn tls_of(file: &PathBuf) -> Result<ClientTls, ClientError> {
    let name = file.display().to_string();
    let pem = std::fs::read(file).map_err(|error| ClientError::local(&name, &error))?;
    let tls = trusting(&pem);
    let tls = tls.map_err(|problem| ClientError::Usage(format!("--ca {name}: {problem}.")))?;
    Ok(ClientTls::new(tls))
}

impl AnyServer {
    /// Sends a request.
    pub(super) async fn request(
        &self,
        method: &'static str,
        params: Value,
    ) -> Result<Value, ClientError> {
        let request = self.direct.request(method, params, &self.terminal);
        let answered = self.terminal.until_interrupted(request).await?;
        self.terminal.clear();
        self.or_told(answered).await
    }

    /// Calls a tool.
    pub(super) async fn call(&self, tool: &str, arguments: &Value) -> Result<Value, ClientError> {
        let call = self.direct.call(tool, arguments, &self.terminal);
        let answered = self.terminal.until_interrupted(call).await?;
        self.terminal.clear();
        self.or_told(answered).await
    }

    /// All items of a list. A server without that list has none.
    pub(super) async fn list(
        &self,
        method: &'static str,
        member: &str,
    ) -> Result<Vec<Value>, ClientError> {
        const METHOD_NOT_FOUND: i64 = -32601;

        let list = self.direct.list(method, member, &self.terminal);
        match self.terminal.until_interrupted(list).await? {
            Err(DirectError::Refused(error)) if error.code == METHOD_NOT_FOUND => Ok(Vec::new()),
            listed => self.or_told(listed).await,
        }
    }

    /// The near names of a list, as a question; empty if it has the name itself or nothing near.
    /// `None` if the list has the name.
    pub(super) async fn near(
        &self,
        name: &str,
        (method, member, key): (&'static str, &str, &str),
    ) -> Option<String> {
        let listed = self.list(method, member).await.ok()?;
        let names: Vec<_> = listed.iter().filter_map(|item| item[key].as_str()).collect();
        (!names.contains(&name)).then(|| did_you_mean(name, names))
    }

    /// Ends the session or the program.
    pub(super) async fn close(self) {
        self.direct.close().await;
    }

    async fn or_told<T>(&self, answered: Result<T, DirectError>) -> Result<T, ClientError> {
        match answered {
            Ok(answer) => Ok(answer),
            Err(error) => Err(told(error, &self.args, &self.name, self.is_remote).await),
        }
    }
}

/// An error for a person.
async fn told(error: DirectError, args: &ServerArgs, name: &str, is_remote: bool) -> ClientError {
    let with_stderr = |text: String, stderr: &str| match stderr {
        "" => text,
        lines => format!("{text}\nIts last lines: {lines}"),
    };

    match error {
        DirectError::NotStarted { reason, stderr } if !is_remote => ClientError::Unreachable(
            with_stderr(format!("{name} does not start as an MCP server: {reason}."), &stderr),
        ),
        DirectError::Ended { how, stderr } if !is_remote => {
            ClientError::Unreachable(with_stderr(format!("{name} ended ({how})."), &stderr))
        }
        DirectError::NotStarted { reason, .. } => match diagnosis(args).await {
            Some(error) => error,
            None => ClientError::Unreachable(format!("{name}: {reason}.")),
        },
        DirectError::Ended { how, .. } => {
            ClientError::Unreachable(format!("{name} ended the session ({how})."))
        }
        DirectError::Login(_) => ClientError::Denied(person::no_login(name)),
        DirectError::Status { status: 401 | 403, text } => {
            ClientError::Denied(format!("{name} does not accept the token: {text}"))
        }
        DirectError::Status { text, .. } => {
            diagnosis(args).await.unwrap_or(ClientError::Failed(text))
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

/// What a plain request to the URL shows about a server that cannot be used.
async fn diagnosis(args: &ServerArgs) -> Option<ClientError> {
    let client = McpClient::new(args.clone()).await.ok()?;
    match client.request("ping", &json!({})).await {
        Err(error @ (ClientError::Unreachable(_) | ClientError::Denied(_))) => Some(error),
        _ => None,
    }
}
