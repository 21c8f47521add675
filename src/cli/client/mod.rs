//! A client for people at a terminal and for scripts: each command calls the
//! server's own tools.

mod browser;
mod cat;
mod content;
mod copy;
mod describe;
mod endpoint;
mod grep;
mod links;
mod login;
mod login_files;
pub(super) mod logins;
pub(super) mod look;
mod ls;
mod mcp_client;
mod parts;
pub(super) mod person;
mod put;
mod query;
mod resources;
mod rm;
mod trust;

use std::{
    io::{ErrorKind, IsTerminal, Write},
    path::PathBuf,
    process::ExitCode,
};

use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use larder_protocol::quote::{bounded, visible_json};
use serde_json::Value;

pub(super) use self::{
    browser::{open as open_browser, page},
    content::Content,
    endpoint::Endpoint,
    login::{LoginCommand, run as run_login},
    mcp_client::McpClient,
};
use super::{fail, in_runtime};

/// Why a command failed. Exit codes: 1, the server refused or found nothing;
/// 2, usage; 3, no server; 4, no access; 130, interrupted.
#[derive(Debug, thiserror::Error)]
pub(super) enum ClientError {
    /// The server refused the request or found nothing, with its message.
    #[error("{0}")]
    Failed(String),
    /// An argument, a setting or a local file cannot be used.
    #[error("{0}")]
    Usage(String),
    /// The server cannot be reached, or is not a Larder server.
    #[error("{0}")]
    Unreachable(String),
    /// Authentication failed, or the caller lacks permission.
    #[error("{0}")]
    Denied(String),
    /// Failures of parts of a command, which are told already; with the exit code.
    #[error("")]
    Told(u8),
    /// The person has pressed Ctrl-C.
    #[error("Interrupted.")]
    Interrupted,
    /// Standard output is closed, as by `head`: not a failure.
    #[error("standard output is closed")]
    Closed,
}

impl ClientError {
    pub(super) fn code(&self) -> u8 {
        match self {
            Self::Failed(_) => 1,
            Self::Usage(_) => 2,
            Self::Unreachable(_) => 3,
            Self::Denied(_) => 4,
            Self::Told(code) => *code,
            // A shell's code for a program that SIGINT ends.
            Self::Interrupted => 130,
            Self::Closed => 0,
        }
    }

    /// The failure of a command whose parts have told theirs.
    fn told_already(&self) -> Self {
        Self::Told(self.code())
    }

    /// A local file, or standard input or output, cannot be used.
    pub(super) fn local(name: &str, error: &std::io::Error) -> Self {
        let problem = match error.kind() {
            ErrorKind::NotFound => "no such file".to_owned(),
            ErrorKind::IsADirectory => "it is a directory: give its files".to_owned(),
            _ => person::without_code(&error.to_string()),
        };
        Self::Usage(format!("{name}: {problem}."))
    }

    /// A response that no Larder server sends.
    pub(super) fn unexpected_reply() -> Self {
        Self::Unreachable("The server answers, but not as a Larder server does.".into())
    }
}

const DEFAULT_URL: &str = "http://127.0.0.1:8000/mcp";

/// Reads a time to live: a number of seconds, or durations such as `90s`, `1h 30m` and `7d`.
fn parse_ttl(text: &str) -> Result<f64, String> {
    let seconds = match text.trim().parse::<f64>() {
        Ok(seconds) => Some(seconds),
        Err(_) => humantime::parse_duration(text).ok().map(|duration| duration.as_secs_f64()),
    };
    let seconds = seconds.filter(|seconds| seconds.is_finite() && *seconds > 0.0);
    seconds.ok_or_else(|| "write it as 90s, 1h or 7d".into())
}

/// The server, and the caller's token.
#[derive(Debug, Clone, Args)]
pub(super) struct ServerArgs {
    /// The server: a URL, or what of it is not http:// or /mcp, such as localhost:8000.
    #[arg(long, value_name = "URL", env = "LARDER_URL", default_value = DEFAULT_URL)]
    server: String,
    /// The bearer token. Prefer the environment: others can see command lines.
    #[arg(long, value_name = "TOKEN", env = "LARDER_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// A file with the certificate of a certificate authority to trust, in PEM.
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
}

impl ServerArgs {
    /// The server at that URL, without a token.
    pub(super) fn new(url: String) -> Self {
        Self { server: url, token: None, ca: None }
    }

    /// The server as it was typed.
    pub(super) fn url(&self) -> &str {
        &self.server
    }

    /// The token. An empty one counts as none.
    pub(super) fn token(&self) -> Option<&str> {
        self.token.as_deref().filter(|token| !token.is_empty())
    }

    /// The file of certificates to trust.
    pub(super) fn ca(&self) -> Option<&PathBuf> {
        self.ca.as_ref()
    }

    /// The TLS that trusts the certificates of the file, if there is one.
    ///
    /// # Errors
    /// The file cannot be read, or has no certificates.
    pub(super) fn tls(&self) -> Result<Option<rustls::ClientConfig>, ClientError> {
        let Some(file) = &self.ca else { return Ok(None) };
        let name = file.display().to_string();
        let pem = std::fs::read(file).map_err(|error| ClientError::local(&name, &error))?;
        let tls = trust::trusting(&pem);
        tls.map(Some).map_err(|problem| ClientError::Usage(format!("--ca {name}: {problem}.")))
    }
}

/// The commands that call a server.
#[derive(Debug, Subcommand)]
pub(super) enum ClientCommand {
    /// Store files, or standard input (-), and print their URIs.
    Put(put::PutArgs),
    /// List stored resources. In a pipe: URI, bytes, type and expiry, separated by tabs.
    Ls(ls::LsArgs),
    /// Describe a resource: type, size, structure, times, revisions.
    Describe(describe::DescribeArgs),
    /// Write a resource to standard output, as it was stored.
    Cat(cat::CatArgs),
    /// Print the lines that match a regular expression; exit code 1 if none.
    Grep(grep::GrepArgs),
    /// Run one SELECT over resources and print the rows as CSV. The first is table t.
    Query(query::QueryArgs),
    /// Run a jq filter over a resource and print a value a line.
    Jq(query::JqArgs),
    /// Copy a resource to another URI, without a download. What has the URI gets a new revision.
    Cp(copy::CopyArgs),
    /// Move a resource to another URI, which must not be in use.
    Mv(copy::CopyArgs),
    /// Delete resources.
    Rm(rm::RmArgs),
    /// Share a resource with others on this server, and print the URI of the link.
    Share(links::ShareArgs),
    /// Print a URL that downloads a resource without credentials until it expires.
    Url(links::UrlArgs),
    /// Open a resource in the browser.
    Open(links::OpenArgs),
}

pub(super) fn run(command: ClientCommand) -> ExitCode {
    look::without_colours_in_pipes();
    in_runtime(|| async {
        exit_code(match command {
            ClientCommand::Put(args) => put::run(args).await,
            ClientCommand::Ls(args) => ls::run(args).await,
            ClientCommand::Describe(args) => describe::run(args).await,
            ClientCommand::Cat(args) => cat::run(args).await,
            ClientCommand::Grep(args) => grep::run(args).await,
            ClientCommand::Query(args) => query::run_sql(args).await,
            ClientCommand::Jq(args) => query::run_jq(args).await,
            ClientCommand::Cp(args) => copy::copy(args).await,
            ClientCommand::Mv(args) => copy::rename(args).await,
            ClientCommand::Rm(args) => rm::run(args).await,
            ClientCommand::Share(args) => links::share(args).await,
            ClientCommand::Url(args) => links::url(args).await,
            ClientCommand::Open(args) => links::open(args).await,
        })
    })
}

/// The exit code of a command; its error goes to standard error.
pub(super) fn exit_code(result: Result<(), ClientError>) -> ExitCode {
    match result {
        Ok(()) | Err(ClientError::Closed) => ExitCode::SUCCESS,
        Err(ClientError::Told(code)) => ExitCode::from(code),
        Err(error) => fail(error.code(), &error),
    }
}

/// Tells an error. A terminal would obey control characters of another program's text in it.
pub(super) fn complain(error: &dyn std::fmt::Display) {
    let text = error.to_string();
    // Without standard error there is nobody to tell.
    let _ = writeln!(std::io::stderr(), "larder: {}", bounded(&text, usize::MAX));
}

/// Writes to standard output.
pub(super) fn print(bytes: &[u8]) -> Result<(), ClientError> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => ClientError::Closed,
        _ => ClientError::local("standard output", &error),
    })
}

/// Tells a line about what was done. It is done all the same when nobody reads that.
pub(super) fn say(line: &str) {
    let _ = print(format!("{line}\n").as_bytes());
}

/// Writes text of another program to standard output. A terminal would obey control characters in
/// it, so they are escaped there; a pipe gets the text as it is.
pub(super) fn print_text(text: &str) -> Result<(), ClientError> {
    print(look::shown(text).as_bytes())
}

/// Prints a value as a line of JSON. A terminal would obey control characters in it.
pub(super) fn print_json(value: &Value) -> Result<(), ClientError> {
    print(format!("{}\n", visible_json(&value.to_string())).as_bytes())
}

/// A progress bar on standard error; hidden unless that is a terminal.
/// `prints_content` says that the content goes to standard output: then the
/// bar is also hidden if that is a terminal.
fn progress_bar(total_bytes: Option<u64>, prints_content: bool) -> ProgressBar {
    if prints_content && std::io::stdout().is_terminal() {
        return ProgressBar::hidden();
    }

    let (bar, template) = match total_bytes {
        Some(total) => {
            (ProgressBar::new(total), "{bar:32} {bytes}/{total_bytes} {bytes_per_sec} {eta}")
        }
        None => (ProgressBar::new_spinner(), "{spinner} {bytes} {bytes_per_sec}"),
    };

    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
