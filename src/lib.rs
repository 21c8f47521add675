//! Larder: an MCP server that keeps large results out of the model's context.
//!
//! A tool stores its large result as an *ephemeral resource* (a URI with a time
//! to live) and returns a short text with a link. The client then reads and
//! searches the parts that it needs. Larder supports Streamable HTTP and stdio in
//! both protocol eras: modern (2026-07-28) and legacy (2025-03-26 to 2025-11-25).
//!
//! A minimal server:
//!
//! ```no_run
//! use larder::{Context, Registry, Tool, ToolError};
//!
//! /// Searches through millions of log lines.
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct SearchLogs {
//!     /// The text to find.
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
//! The layers, lowest first; a module uses only modules of lower layers:
//!
//! 1. [`protocol`], [`preview`], [`records`], [`uri_template`], [`clock`], [`random`], [`vault`]
//! 2. [`auth`], [`redis`]
//! 3. [`admission`]
//! 4. [`store`], [`session`], [`task`]
//! 5. [`handler`]
//! 6. [`registry`]
//! 7. [`spill`]
//! 8. [`sources`], [`workflow`], [`tools`], [`upstream`]
//! 9. [`dispatch`], [`login`]
//! 10. [`era`]
//! 11. [`http`], stdio
//! 12. [`telemetry`], [`shutdown`], [`watch`]
//! 13. [`config`]
//! 14. [`app`]
//! 15. [`cli`]

// A build with few features leaves parts without a user, and functions with less to do.
#![cfg_attr(
    not(feature = "cli"),
    allow(
        dead_code,
        clippy::needless_pass_by_value,
        clippy::unnecessary_wraps,
        clippy::unused_async,
        clippy::unused_self
    )
)]

pub mod admission;
pub mod app;
pub mod auth;
#[cfg(feature = "cli")]
pub mod cli;
pub mod clock;
mod compute;
pub mod config;
#[cfg(feature = "http")]
mod content_link;
pub mod dispatch;
pub mod era;
pub mod handler;
#[cfg(feature = "http")]
pub mod http;
mod in_flight;
mod key_ring;
#[cfg(feature = "login")]
pub mod login;
pub mod preview;
pub mod protocol;
#[cfg(feature = "query")]
pub mod query;
mod quote;
pub mod random;
pub mod records;
#[cfg(feature = "redis")]
pub mod redis;
pub mod registry;
mod schema;
pub mod session;
pub mod shutdown;
pub mod sources;
pub mod spill;
mod stdio;
pub mod store;
pub mod task;
#[cfg(feature = "telemetry")]
pub mod telemetry;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod tools;
#[cfg(feature = "upstream")]
pub mod upstream;
pub mod uri_template;
#[cfg(any(feature = "http", feature = "login", feature = "upstream"))]
pub mod vault;
pub mod watch;
pub mod workflow;

pub use handler::{
    AskError, Audio, Contents, Context, Elicited, Image, IntoContent, IntoContents,
    IntoPromptMessage, IntoPromptResult, IntoToolResult, Json, ResourceError, Root, Sampled,
    Sampling, Structured, ToolError, assistant, user, within_roots,
};
pub use registry::{
    BuildError, Builder, CompletionInput, Prompt, Registry, Resource, Spill, Template, Tool,
};
#[cfg(feature = "web")]
pub use sources::HttpResource;
pub use sources::{DirectoryResource, FileResource};
pub use uri_template::{UriTemplate, Variables};

/// The examples of the guides in docs/, as doctests.
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
        Querying: "querying.md"
    }
}
