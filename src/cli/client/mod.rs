//! A client for people at a terminal and for scripts: each command calls the
//! server's own tools.

mod call;
mod cat;
mod copy;
mod grep;
mod login;
mod ls;
mod mcp_client;
mod put;
mod query;
mod resources;
mod rm;

use std::{
    io::{ErrorKind, IsTerminal, Write},
    path::PathBuf,
    process::ExitCode,
};

use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};

pub(super) use self::{
    login::{LoginCommand, run as run_login},
    mcp_client::McpClient,
};
use super::{fail, in_runtime};

/// Why a command failed. Exit codes: 1, the server refused or found nothing;
/// 2, usage; 3, no server; 4, no access.
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
    /// Standard output is closed, as by `head`: not a failure.
    #[error("standard output is closed")]
    Closed,
}

impl ClientError {
    fn code(&self) -> u8 {
        match self {
            Self::Failed(_) => 1,
            Self::Usage(_) => 2,
            Self::Unreachable(_) => 3,
            Self::Denied(_) => 4,
            Self::Closed => 0,
        }
    }

    /// A local file, or standard input or output, cannot be used.
    pub(super) fn local(name: &str, error: &std::io::Error) -> Self {
        Self::Usage(format!("{name}: {error}"))
    }

    /// A response that no Larder server sends.
    pub(super) fn unexpected_reply() -> Self {
        Self::Unreachable("The server answers, but not as a Larder server does.".into())
    }
}

const DEFAULT_URL: &str = "http://127.0.0.1:8000/mcp";

/// The server, and the caller's token.
#[derive(Debug, Clone, Args)]
pub(super) struct ServerArgs {
    /// The URL of the server's endpoint.
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
}

/// The commands that call a server.
#[derive(Debug, Subcommand)]
pub(super) enum ClientCommand {
    /// Store a file, or standard input (-), and print its URI.
    Put(put::PutArgs),
    /// List stored resources: URI, bytes, type and expiry, separated by tabs.
    Ls(ls::LsArgs),
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
    /// Call a tool and print its result.
    Call(call::CallArgs),
}

pub(super) fn run(command: ClientCommand) -> ExitCode {
    in_runtime(|| async {
        exit_code(match command {
            ClientCommand::Put(args) => put::run(args).await,
            ClientCommand::Ls(args) => ls::run(args).await,
            ClientCommand::Cat(args) => cat::run(args).await,
            ClientCommand::Grep(args) => grep::run(args).await,
            ClientCommand::Query(args) => query::run_sql(args).await,
            ClientCommand::Jq(args) => query::run_jq(args).await,
            ClientCommand::Cp(args) => copy::copy(args).await,
            ClientCommand::Mv(args) => copy::rename(args).await,
            ClientCommand::Rm(args) => rm::run(args).await,
            ClientCommand::Call(args) => call::run(args).await,
        })
    })
}

/// The exit code of a command; its error goes to standard error.
pub(super) fn exit_code(result: Result<(), ClientError>) -> ExitCode {
    match result {
        Ok(()) | Err(ClientError::Closed) => ExitCode::SUCCESS,
        Err(error) => fail(error.code(), &error),
    }
}

/// Writes to standard output.
pub(super) fn print(bytes: &[u8]) -> Result<(), ClientError> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => ClientError::Closed,
        _ => ClientError::local("standard output", &error),
    })
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
