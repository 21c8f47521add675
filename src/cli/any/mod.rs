//! A client for any MCP server, over HTTP or over the standard input and output of a program:
//! `larder call`, `run`, `tools`, `read`, `prompts`, `login` and `logout`.

mod attendant;
mod call;
mod callback;
mod elicitation;
mod log_in;
mod prompts;
mod read;
mod run;
mod server;
mod shown;
mod tools;

use std::process::ExitCode;

use clap::Subcommand;

use super::{
    client::{exit_code, look},
    in_runtime,
};

/// The commands that use any server.
#[derive(Debug, Subcommand)]
pub(super) enum AnyCommand {
    /// Call a tool of any MCP server and print its result.
    Call(call::CallArgs),
    /// Run a file of JavaScript on a server with the tool run_code, and print its result.
    Run(run::RunArgs),
    /// List the tools of any MCP server, or show one with its arguments.
    Tools(tools::ToolsArgs),
    /// Read a resource of any MCP server, or list its resources.
    Read(read::ReadArgs),
    /// Get a prompt of any MCP server, or list its prompts.
    Prompts(prompts::PromptsArgs),
    /// Log in at a server with OAuth: the browser opens, and the tokens are kept for the commands
    /// of this user.
    Login(log_in::LoginArgs),
    /// Forget the login at a server, and revoke its tokens.
    Logout(log_in::LogoutArgs),
}

pub(super) fn run(command: AnyCommand) -> ExitCode {
    larder_gateway::supervise_programs();
    look::without_colours_in_pipes();
    in_runtime(|| async {
        exit_code(match command {
            AnyCommand::Call(args) => call::run(args).await,
            AnyCommand::Run(args) => run::run(args).await,
            AnyCommand::Tools(args) => tools::run(args).await,
            AnyCommand::Read(args) => read::run(args).await,
            AnyCommand::Prompts(args) => prompts::run(args).await,
            AnyCommand::Login(args) => log_in::log_in(args).await,
            AnyCommand::Logout(args) => log_in::log_out(args).await,
        })
    })
}
