//! An MCP server: what is [offered](registry) to clients, how results that are too large are
//! [stored](spill), and how it is served over [Streamable HTTP](http) and stdio in both protocol
//! [eras](era).
//!
//! The modules are in two levels; a module uses modules of its own and of the lower level:
//!
//! 1. What is offered: [`handler`], [`registry`], [`spill`], [`sources`], [`workflow`], [`tools`],
//!    [`apps`], [`content_link`]
//! 2. How it is served: [`admission`], [`dispatch`], [`era`], [`http`], [`stdio`]
#![cfg_attr(
    not(feature = "query"),
    allow(dead_code, unused_imports, reason = "projections are computed by queries")
)]
// Without queries, the viewer answers at once that it cannot sort.
#![cfg_attr(not(feature = "query"), allow(clippy::unused_async, clippy::unused_self))]

pub mod admission;
pub mod apps;
pub mod content_link;
pub mod dispatch;
pub mod era;
pub mod handler;
pub mod http;
pub mod registry;
pub mod sources;
pub mod spill;
pub mod stdio;
pub mod tools;
pub mod workflow;

pub use handler::{
    AskError, Audio, Contents, Context, Elicited, ErrorContext, Image, IntoContent, IntoContents,
    IntoPromptMessage, IntoPromptResult, IntoToolResult, Json, ResourceError, Result, Root,
    Sampled, Sampling, Stored, Structured, ToolError, assistant, user, within_roots,
};
pub use registry::{
    BuildError, Builder, CompletionInput, Prompt, Registry, Resource, Spill, Template, Tool,
};
pub use sources::{DirectoryResource, FileResource, HttpResource};
