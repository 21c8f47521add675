//! `larder dev`: runs the server in the MCP Inspector.

use std::{ffi::OsString, io, process::Command, process::ExitCode};

use clap::Args;

use super::ServeArgs;

#[derive(Debug, Args)]
pub(super) struct DevArgs {
    #[command(flatten)]
    serve: ServeArgs,
    /// Another command that serves over standard input and output, instead of
    /// this program: with `-- cargo run --quiet -- --stdio`, Reconnect in the
    /// Inspector builds and starts it again.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl DevArgs {
    /// The flags of this program, if it is the server.
    pub(super) fn serve_args(&self) -> Option<&ServeArgs> {
        self.command.is_empty().then_some(&self.serve)
    }
}

#[cfg(windows)]
const NPX: &str = "npx.cmd";
#[cfg(not(windows))]
const NPX: &str = "npx";

/// Runs the Inspector until it exits, and returns its exit code.
pub(super) fn run(args: &DevArgs, subcommand: &[&str]) -> Result<ExitCode, String> {
    let command_line = if args.command.is_empty() {
        args.serve.stdio_command_line(subcommand)?
    } else {
        args.command.clone()
    };

    let mut inspector = Command::new(NPX);
    inspector.args(["--yes", "@modelcontextprotocol/inspector", "--"]).args(command_line);

    let status = inspector.status().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            format!("{NPX} was not found: the MCP Inspector needs Node.js, from https://nodejs.org")
        }
        _ => format!("{NPX} cannot be run: {error}"),
    })?;

    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(1)))
}
