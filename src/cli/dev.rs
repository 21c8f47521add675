//! `larder dev`: the server in the MCP Inspector.

use std::{ffi::OsString, io, process::Command, process::ExitCode};

use clap::Args;

use super::{ServeArgs, hosts};

#[derive(Debug, Args)]
pub(super) struct DevArgs {
    #[command(flatten)]
    serve: ServeArgs,
    /// Another command that serves over standard input and output, instead of
    /// this program: with `-- cargo run --quiet -- --stdio` the Inspector's
    /// Reconnect builds and starts it anew.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl DevArgs {
    /// With what this program is started, if it is.
    pub(super) fn starts(&self) -> Option<&ServeArgs> {
        self.command.is_empty().then_some(&self.serve)
    }
}

#[cfg(windows)]
const NPX: &str = "npx.cmd";
#[cfg(not(windows))]
const NPX: &str = "npx";

/// Ends when the Inspector does.
pub(super) fn run(args: &DevArgs, serve: &[&str]) -> Result<ExitCode, String> {
    let line = if args.command.is_empty() {
        hosts::command_line(serve, &args.serve)?
    } else {
        args.command.clone()
    };
    let mut inspector = Command::new(NPX);
    inspector.args(["--yes", "@modelcontextprotocol/inspector", "--"]).args(line);
    let ended = inspector.status().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            format!("{NPX} is not there: the MCP Inspector needs Node.js, from https://nodejs.org")
        }
        _ => format!("{NPX} cannot be run: {error}"),
    })?;
    let code = ended.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(1)))
}
