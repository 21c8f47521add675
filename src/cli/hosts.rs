//! The commands of every server: `dev` and `install`, which make a host start this
//! server over standard input and output, with the flags given here; and the worker
//! process of queries.

use std::process::ExitCode;

use clap::Subcommand;

use super::{ServeArgs, USAGE, dev, fail, install};

/// Of the binary and of every server built on the crate.
#[derive(Debug, Subcommand)]
pub(super) enum HostCommand {
    /// Run this server in the MCP Inspector (needs Node.js).
    Dev(dev::DevArgs),
    /// Add this server to a host's configuration.
    Install(install::InstallArgs),
    /// Answer queries on standard input: the server starts this for query_resource.
    #[command(hide = true)]
    QueryWorker {
        /// The most memory of the process, in bytes.
        memory_bytes: u64,
    },
    /// Run the program of an upstream: the server starts this.
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    UpstreamProcess {
        /// The process ID of the server.
        larder: u32,
        /// The program and its arguments.
        #[arg(last = true)]
        line: Vec<String>,
    },
}

impl HostCommand {
    /// `subcommand` is the part of the command line before the server's flags:
    /// `serve` for the binary.
    pub(super) fn run(self, subcommand: &[&str]) -> ExitCode {
        let serve_args = match &self {
            Self::Dev(args) => args.serve_args(),
            Self::Install(args) => args.serve_args(),
            Self::QueryWorker { .. } => None,
            #[cfg(target_os = "linux")]
            Self::UpstreamProcess { .. } => None,
        };

        // The error is reported here, because a host would only log it.
        if let Some(Err(error)) = serve_args.map(ServeArgs::configure) {
            return fail(USAGE, &error);
        }

        let result = match self {
            Self::Dev(args) => dev::run(&args, subcommand),
            Self::Install(args) => install::run(&args, subcommand),
            Self::QueryWorker { memory_bytes } => Ok(larder_query::worker::main(memory_bytes)),
            #[cfg(target_os = "linux")]
            Self::UpstreamProcess { larder, line } => {
                Ok(larder_gateway::supervisor::main(larder, &line))
            }
        };

        result.unwrap_or_else(|problem| fail(USAGE, &problem))
    }
}
