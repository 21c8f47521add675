//! A client for people at a terminal, and for scripts: what the service's own
//! tools do, by one request each.

mod get;
mod link;
mod look;
mod put;

use std::{io::IsTerminal, process::ExitCode};

use clap::{Args, Subcommand};

pub(super) use self::link::Link;
use super::{fail, in_runtime};

/// Exit codes: 1, the server refused or there is nothing; 2, the command line;
/// 3, no server; 4, no access.
#[derive(Debug, thiserror::Error)]
pub(super) enum ClientError {
    /// The server did not do it, or found nothing; its own words.
    #[error("{0}")]
    Failed(String),
    /// What was asked for makes no sense.
    #[error("{0}")]
    Usage(String),
    /// The server cannot be reached, or breaks off.
    #[error("{0}")]
    Unreachable(String),
    /// The server wants to know who calls, or does not let them.
    #[error("{0}")]
    Denied(String),
    /// Standard output is closed: whoever read it has enough.
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

    /// A local file, or standard input, cannot be used.
    pub(super) fn local(name: &str, error: &std::io::Error) -> Self {
        Self::Usage(format!("{name}: {error}"))
    }
}

/// Where a server is that nobody has told otherwise.
const HERE: &str = "http://127.0.0.1:8000/mcp";

/// Which server, as whom.
#[derive(Debug, Args)]
pub(super) struct ServerArgs {
    /// The URL of the server's endpoint.
    #[arg(long, value_name = "URL", env = "LARDER_URL", default_value = HERE)]
    server: String,
    /// The token that shows who calls; better in the environment than on the
    /// command line, where others see it.
    #[arg(long, value_name = "TOKEN", env = "LARDER_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// A file with the certificate of the authority to believe, in PEM.
    #[arg(long, value_name = "FILE")]
    ca: Option<std::path::PathBuf>,
}

impl ServerArgs {
    /// The server at that URL, without a token.
    pub(super) fn new(url: String) -> Self {
        Self { server: url, token: None, ca: None }
    }
}

/// What can be asked of a server.
#[derive(Debug, Subcommand)]
pub(super) enum ClientCommand {
    /// Store a file, or standard input (-), and print its URI.
    Put(put::PutArgs),
    /// List what is stored: URI, bytes, type, expiry, with tabs between.
    Ls(look::LsArgs),
    /// Write a resource to standard output, as it was stored.
    Cat(get::CatArgs),
    /// Print the lines that match a regular expression; exit code 1 if none.
    Grep(look::GrepArgs),
    /// Remove resources.
    Rm(look::RmArgs),
    /// Call a tool and print what it answers.
    Call(look::CallArgs),
}

pub(super) fn run(command: ClientCommand) -> ExitCode {
    in_runtime(|| async {
        exit_code(match command {
            ClientCommand::Put(args) => put::run(args).await,
            ClientCommand::Ls(args) => look::ls(args).await,
            ClientCommand::Cat(args) => get::run(args).await,
            ClientCommand::Grep(args) => look::grep(args).await,
            ClientCommand::Rm(args) => look::rm(args).await,
            ClientCommand::Call(args) => look::call(args).await,
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
    use std::io::Write;

    let mut out = std::io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(|error| match error.kind() {
        std::io::ErrorKind::BrokenPipe => ClientError::Closed,
        _ => ClientError::local("standard output", &error),
    })
}

/// How far a long transfer is, on a terminal; silent elsewhere, and where the
/// content itself goes to the terminal.
fn progress(total: Option<u64>, prints: bool) -> indicatif::ProgressBar {
    if prints && std::io::stdout().is_terminal() {
        return indicatif::ProgressBar::hidden();
    }
    // It hides itself where standard error is no terminal.
    match total {
        Some(total) => {
            let style = indicatif::ProgressStyle::with_template(
                "{bar:32} {bytes}/{total_bytes} {bytes_per_sec} {eta}",
            );
            let bar = indicatif::ProgressBar::new(total);
            if let Ok(style) = style { bar.with_style(style) } else { bar }
        }
        None => {
            let style =
                indicatif::ProgressStyle::with_template("{spinner} {bytes} {bytes_per_sec}");
            let bar = indicatif::ProgressBar::new_spinner();
            if let Ok(style) = style { bar.with_style(style) } else { bar }
        }
    }
}
