//! What a server's author does with hosts: `dev` looks at the server in the
//! MCP Inspector, `install` writes it into a host's configuration. Both start
//! it over standard input and output, with the flags that it was given here.

use std::{ffi::OsString, process::ExitCode};

use clap::Subcommand;

use super::{ServeArgs, USAGE, dev, fail, install};

/// `dev` and `install`, of the binary and of every server built on the crate.
#[derive(Debug, Subcommand)]
pub(super) enum HostCommand {
    /// Look at this server in the MCP Inspector (needs Node.js).
    Dev(dev::DevArgs),
    /// Add this server to a host's configuration.
    Install(install::InstallArgs),
}

impl HostCommand {
    /// `serve` is what stands before the flags of a server in its command line.
    pub(super) fn run(self, serve: &[&str]) -> ExitCode {
        let flags = match &self {
            Self::Dev(args) => args.starts(),
            Self::Install(args) => args.starts(),
        };
        // What cannot be used is better said here than in a host's log.
        if let Some(Err(error)) = flags.map(ServeArgs::configure) {
            return fail(USAGE, &error);
        }
        let done = match self {
            Self::Dev(args) => dev::run(&args, serve),
            Self::Install(args) => install::run(&args, serve),
        };
        done.unwrap_or_else(|problem| fail(USAGE, &problem))
    }
}

/// The command line that starts this server over standard input and output.
pub(super) fn command_line(serve: &[&str], flags: &ServeArgs) -> Result<Vec<OsString>, String> {
    let program = std::env::current_exe()
        .map_err(|error| format!("It cannot be found out where this program is: {error}"))?;
    let mut line = vec![program.into_os_string()];
    line.extend(serve.iter().map(OsString::from));
    line.push("--stdio".into());
    let mut flag = |name: &str, value: OsString| line.extend([name.into(), value]);
    if let Some(config) = flags.file() {
        // Hosts start it somewhere else.
        let config = std::path::absolute(config)
            .map_err(|error| format!("--config {}: {error}", config.display()))?;
        flag("--config", config.into_os_string());
    }
    if let Some(store) = &flags.store {
        flag("--store", store.into());
    }
    if let Some(version) = &flags.max_version {
        flag("--max-version", version.into());
    }
    Ok(line)
}
