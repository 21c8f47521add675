//! Larder: an MCP server that keeps large results out of the model's context.
//!
//! A tool puts its bulky result by as an *ephemeral resource* (a URI with a
//! time to live) and returns a short text with a link; the client then reads,
//! searches and pages what it needs. Larder speaks Streamable HTTP and stdio
//! in both eras of the protocol: 2026-07-28, and 2025-03-26 to 2025-11-25.
//!
//! A server of one's own:
//!
//! ```no_run
//! use larder::registry::{Context, Registry, Tool, ToolError};
//!
//! /// Searches through millions of log lines.
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct SearchLogs {
//!     /// What to look for.
//!     query: String,
//! }
//!
//! async fn search_logs(ctx: Context, args: SearchLogs) -> Result<String, ToolError> {
//!     let found = format!("… ten megabytes about {} …", args.query);
//!     let uri = format!("results://search/{}", ctx.request_id());
//!     let entry = ctx.create_resource(uri, found).name("Search results").await?;
//!     Ok(format!("Search complete. Access at {entry}"))
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     larder::cli::run(|_| Registry::builder("logs").tool(Tool::new(search_logs)).build())
//! }
//! ```
//!
//! The floors, lowest first; each uses only those below it:
//! [`protocol`], [`clock`], [`random`], [`preview`]; [`auth`], [`redis`]; [`store`], [`session`], [`task`];
//! [`registry`]; [`tools`], [`workflow`]; [`dispatch`]; [`era`]; [`http`] and stdio;
//! [`config`], [`telemetry`], [`shutdown`], [`watch`]; [`app`]; [`cli`].

pub mod app;
mod aside;
pub mod auth;
pub mod cli;
pub mod clock;
pub mod config;
pub mod dispatch;
pub mod era;
mod gauge;
pub mod http;
pub mod preview;
pub mod protocol;
pub mod random;
pub mod redis;
pub mod registry;
pub mod session;
pub mod shutdown;
mod stdio;
pub mod store;
pub mod task;
pub mod telemetry;
pub mod tools;
pub mod watch;
pub mod workflow;

/// The code in the guides, which is compiled and run like any example here.
#[cfg(doctest)]
mod guides {
    macro_rules! guides {
        ($($name:ident: $file:literal)*) => {
            $(#[doc = include_str!(concat!("../docs/", $file))] struct $name;)*
        };
    }
    guides! {
        GettingStarted: "getting-started.md"
        Tools: "tools.md"
        Prompts: "prompts.md"
        Resources: "resources.md"
        DynamicResources: "dynamic-resources.md"
        AskingTheClient: "asking-the-client.md"
        Guidance: "guidance.md"
    }
}
