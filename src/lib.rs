//! Larder: an MCP server that keeps large results out of the model's context.
//!
//! A tool stores its large result as an *ephemeral resource* (a URI with a time
//! to live) and returns a short text with a link. The client then reads and
//! searches the parts that it needs. Larder supports Streamable HTTP and stdio in
//! both protocol eras: modern (2026-07-28) and legacy (2025-03-26 to 2025-11-25).
//!
//! A server:
//!
#![cfg_attr(feature = "macros", doc = "```no_run")]
#![cfg_attr(not(feature = "macros"), doc = "```ignore")]
//! use larder::prelude::*;
//!
//! /// Adds two numbers.
//! #[tool]
//! fn add(/** The first. */ a: f64, /** The second. */ b: f64) -> Sum {
//!     Sum { sum: a + b }
//! }
//!
//! #[larder::output]
//! struct Sum {
//!     sum: f64,
//! }
//!
//! /// Searches the logs.
//! #[tool(annotations(read_only), scope = "logs:read")]
//! async fn search_logs(
//!     ctx: &Context<Logs>,
//!     #[arg(min_length = 1)] query: String,
//!     #[arg(default = 10, range = 1..=100)] limit: usize,
//! ) -> Result<Stored> {
//!     let found = ctx.state().search(&query, limit).context("The logs cannot be searched now.")?;
//!     ctx.progress(1).of(2).message("searched").await;
//!     let stored = ctx.store(found.join("\n")).name("Results").ttl(hours(1)).await?;
//!     Ok(stored.say(format!("Found {} lines.", found.len())))
//! }
//!
//! /// Weather of a city.
//! #[resource("weather://{city}", mime_type = "application/json")]
//! async fn weather(city: String) -> Result<Json<Value>> {
//!     Ok(Json(json!({ "city": city, "celsius": 21.5 })))
//! }
//!
//! /// Lists a text's main ideas.
//! #[prompt]
//! fn main_ideas(count: u32, text: String) -> [Message; 2] {
//!     [user(format!("List {count} main ideas of: {text}")), assistant("1.")]
//! }
//!
//! fn main() -> ExitCode {
//!     larder::server("logs")
//!         .lifespan(Logs::open, Logs::close)
//!         .tool(add)
//!         .tool(search_logs)
//!         .resource(weather)
//!         .prompt(main_ideas)
//!         .reading()
//!         .run()
//! }
//! # use std::{io, sync::Arc};
//! # struct Logs;
//! # impl Logs {
//! #     async fn open() -> io::Result<Self> { Ok(Self) }
//! #     async fn close(self: Arc<Self>) {}
//! #     fn search(&self, _: &str, _: usize) -> io::Result<Vec<String>> { Ok(Vec::new()) }
//! # }
//! ```
//!
//! [`tool`](macro@tool), [`resource`](macro@resource) and [`prompt`](macro@prompt) make items
//! of functions, [`server()`] takes them, [`Server`] runs them, and [`test()`] tests them.
//! Below them are [`Tool`], [`Resource`], [`Template`] and [`Prompt`], and [`Registry::builder`].
//!
//! Most modules are crates of their own, lowest level first:
//!
//! 1. Base: [`protocol`], [`uri_template`], [`records`], [`preview`], [`clock`], [`random`], [`auth`]
//! 2. What is kept: [`store`], [`session`], [`task`], [`vault`], [`redis`], [`transfer`]
//! 3. What is offered: [`handler`], [`registry`], [`spill`], [`sources`], [`workflow`], [`tools`],
//!    [`apps`], [`upstream`]
//! 4. How it is served: [`admission`], [`dispatch`], [`era`], [`login`], [`http`], stdio
//! 5. How a server runs: [`config`], [`app`], [`server`](mod@server), [`shutdown`], [`watch`],
//!    [`test_client`], [`prelude`]

// A build with few features leaves items unused and signatures wider than needed.
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

pub mod app;
#[cfg(feature = "cli")]
pub mod cli;
pub mod config;
#[cfg(feature = "cli")]
mod near;
pub mod prelude;
pub mod server;
pub mod shutdown;
#[cfg(feature = "cli")]
pub mod telemetry;
pub mod test_client;
pub mod watch;

// Crates below the server, offered as modules of this crate.
#[doc(inline)]
pub use larder_gateway as upstream;
#[doc(inline)]
pub use larder_login as login;
#[doc(inline)]
pub use larder_oauth as auth;
#[doc(inline)]
pub use larder_protocol as protocol;
#[doc(inline)]
pub use larder_protocol::uri_template;
#[cfg(feature = "query")]
#[doc(inline)]
pub use larder_query as query;
#[doc(inline)]
pub use larder_records as records;
#[doc(inline)]
pub use larder_records::preview;
#[doc(inline)]
pub use larder_runtime::{clock, random};
#[doc(inline)]
pub use larder_server::{
    admission, apps, dispatch, era, handler, http, registry, sources, spill, tools, workflow,
};
#[doc(inline)]
pub use larder_store::{redis, session, store, task, transfer, vault};
#[cfg(any(test, feature = "testing"))]
#[doc(inline)]
pub use larder_store::{session_contract, store_contract, task_contract, testing, vault_contract};

// Generated code names the crate `larder`, so this crate needs the alias, too.
extern crate self as larder;

#[cfg(feature = "macros")]
pub use larder_macros::{args, data, output, prompt, resource, test, tool};
pub use larder_server::{
    AskError, Audio, BuildError, Builder, CompletionInput, Contents, Context, DirectoryResource,
    Elicited, ErrorContext, FileResource, HttpResource, Image, IntoContent, IntoContents,
    IntoPromptMessage, IntoPromptResult, IntoToolResult, Json, Prompt, Registry, Resource,
    ResourceError, Result, Root, Sampled, Sampling, Spill, Stored, Structured, Template, Tool,
    ToolError, assistant, user, within_roots,
};
pub use uri_template::{UriTemplate, Variables};

/// The types of the protocol, of the crate `rmcp`.
pub use rmcp::model;
pub use serde_json::{Value, json};
pub use server::{Server, server};
pub use test_client::{Test, TestClient, TestError, test};

/// Items that code of the macros uses.
#[cfg(feature = "macros")]
#[doc(hidden)]
pub mod __private {
    pub use schemars;
    pub use serde;

    pub use crate::handler::{Argument, AsItIs, NoResult, Returned, Value, ValueOrError};

    /// Runs a test.
    ///
    /// # Panics
    /// If there is no runtime, or the test panics.
    pub fn block_on<F: Future>(test: F) -> F::Output {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a test has a runtime").block_on(test)
    }
}

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
        SmallAnswers: "small-answers.md"
        Workflows: "workflows.md"
    }
}
