//! The tools over the store. They work alone, because many hosts show a model
//! neither links nor resources.
//!
//! Every result stays under the output limit and says in plain text whether it
//! is complete, what the total is, and the exact next call.

mod check_upload;
#[cfg(feature = "query")]
mod code;
mod create;
mod delete;
mod describe;
mod download_url;
mod edit;
mod finding;
mod link_request;
mod list;
#[cfg(feature = "query")]
mod projection;
#[cfg(feature = "query")]
mod projection_cursor;
#[cfg(feature = "query")]
mod projection_each;
#[cfg(feature = "query")]
mod projection_inputs;
#[cfg(feature = "query")]
mod projection_pages;
#[cfg(feature = "query")]
mod projection_value;
#[cfg(feature = "query")]
mod query;
mod rank;
mod read;
mod read_records;
mod record_facts;
mod regex;
mod required_text;
mod scan;
mod search;
mod search_all;
mod share;
mod stored_file;
mod update;
mod upload_url;
mod windows;
mod wording;

#[cfg(feature = "query")]
use std::sync::Arc;

use rmcp::model::{JsonObject, MetaObject, ToolAnnotations};
use serde_json::json;

#[cfg(feature = "query")]
pub use self::code::{CodeWrites, Coding};
pub(crate) use self::search::LineSearch;
use crate::{
    handler::Context,
    registry::{Builder, BuiltIn, Spill, Tool},
};

/// The names of all tools of this module and of the viewer that models see.
pub const BUILT_IN_TOOLS: [&str; 17] = [
    "list_resources",
    "describe_resource",
    "read_resource",
    "search_resource",
    "search_resources",
    "query_resource",
    "run_code",
    "create_resource",
    "update_resource",
    "delete_resource",
    "share_resource",
    "download_url",
    "upload_url",
    "check_upload",
    "find_tools",
    "call_tool",
    "view_resource",
];

/// Options of the tools that read.
#[derive(Debug, Clone, Default)]
pub struct ToolOptions {
    /// The most bytes of text in one result. The server's
    /// [`OutputRules`](crate::registry::OutputRules) apply where they are lower.
    pub output_bytes: Option<usize>,
}

impl ToolOptions {
    /// The bytes of content in a result of this call: the limit less
    /// `head_bytes`, which are reserved for the text before the content.
    fn budget<S>(&self, ctx: &Context<S>, head_bytes: usize) -> usize {
        let limit = self.output_bytes.unwrap_or(usize::MAX).min(ctx.output_bytes());
        limit.saturating_sub(head_bytes).max(head_bytes)
    }
}

/// Adds the tools that read: `list_resources`, `describe_resource`,
/// `read_resource`, `search_resource` and `search_resources`; and the template
/// [`windows`].
///
/// ```
/// use larder_server::{Registry, tools::{ToolOptions, self}};
///
/// let registry = Registry::builder("mine").with(tools::reading(ToolOptions::default())).build()?;
/// assert_eq!(registry.tools(None)?.items.len(), 5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn reading<S: Send + Sync + 'static>(
    options: ToolOptions,
) -> impl FnOnce(Builder<S>) -> Builder<S> {
    move |builder| {
        let builder = builder
            .tool(read_only(list::tool(options.clone())))
            .tool(read_only(describe::tool(options.clone())))
            .tool(essential(read::tool(options.clone())));
        let builder = builder
            .tool(essential(search::tool(options.clone())))
            .tool(read_only(search_all::tool(options)));

        builder.with(windows())
    }
}

/// Adds a template for parts of any resource: `URI?lines=1-200` and
/// `URI?bytes=0-65535`. [`reading`] includes it.
pub fn windows<S: Send + Sync + 'static>() -> impl FnOnce(Builder<S>) -> Builder<S> {
    |builder| builder.template(windows::template())
}

/// Adds `query_resource`: SQL and jq over stored content, in processes of their
/// own. With `store`, results can be stored as resources.
///
/// The server's program is started again for that, with the argument
/// `query-worker`, so it must be the binary of this crate, or one whose `main`
/// calls `larder::cli::run`. Adds nothing on Windows, which has no limits for
/// such a process.
#[cfg(feature = "query")]
pub fn querying<S: Send + Sync + 'static>(
    limits: larder_query::QueryLimits,
    store: bool,
) -> impl FnOnce(Builder<S>) -> Builder<S> {
    querying_with(Arc::new(larder_query::Queries::new(limits)), store)
}

/// [`querying`] with worker processes that others use as well.
#[cfg(feature = "query")]
pub fn querying_with<S: Send + Sync + 'static>(
    queries: Arc<larder_query::Queries>,
    store: bool,
) -> impl FnOnce(Builder<S>) -> Builder<S> {
    move |builder| {
        if cfg!(not(unix)) {
            return builder;
        }

        let tool = query::tool(queries, store);
        builder.tool(if store {
            let tool = tool.annotations(hints(false, true)).spill(Spill::Never);
            tool.built_in(BuiltIn::Essential)
        } else {
            essential(tool)
        })
    }
}

/// Lets callers ask for a part of a result in the same call: the reserved argument `_larder` of the
/// tools of providers, and of tools that are [`projectable`](crate::Tool::projectable). The whole
/// result is stored. With `store`, answers can be stored, too. Needs the tools of [`reading`] and
/// [`querying_with`], in whose processes the parts are computed.
#[cfg(feature = "query")]
pub fn projecting<S: Send + Sync + 'static>(
    queries: Arc<larder_query::Queries>,
    store: bool,
) -> impl FnOnce(Builder<S>) -> Builder<S> {
    move |builder| {
        if cfg!(not(unix)) {
            return builder;
        }
        builder.projector(Arc::new(projection::Projecting { queries, may_store: store }))
    }
}

/// Adds `run_code`: JavaScript over the tools of this server and of those behind it, in processes as
/// confined as those of [`querying`], whose tool it needs.
#[cfg(feature = "query")]
pub fn coding<S: Send + Sync + 'static>(coding: Coding) -> impl FnOnce(Builder<S>) -> Builder<S> {
    move |builder| {
        if cfg!(not(unix)) {
            return builder;
        }

        // The code may call any tool.
        let hints =
            ToolAnnotations::from_raw(None, Some(false), Some(true), Some(false), Some(true));
        builder.tool(code::tool(coding).annotations(hints).built_in(BuiltIn::Feature))
    }
}

/// Adds `download_url`: URLs at which stored content can be downloaded without credentials. It
/// works in a server over HTTP that knows its URL (`server.public_url`).
pub fn downloading<S: Send + Sync + 'static>() -> impl FnOnce(Builder<S>) -> Builder<S> {
    |builder| {
        // The tool changes nothing, but each link is new.
        let hints = ToolAnnotations::from_raw(None, Some(true), None, Some(false), Some(false));
        builder.tool(writes(download_url::tool().spill(Spill::Never), hints))
    }
}

/// Adds `upload_url`: URLs at which anyone can store content without credentials, once; and
/// `check_upload`, which tells whether the content is stored. They work where [`downloading`] does,
/// in a server with the tools of [`writing`].
pub fn uploading<S: Send + Sync + 'static>() -> impl FnOnce(Builder<S>) -> Builder<S> {
    |builder| {
        let adds = hints(false, false);
        builder
            .tool(writes(upload_url::tool().spill(Spill::Never), adds))
            .tool(read_only(check_upload::tool()).built_in(BuiltIn::Writing))
    }
}

/// Adds `find_tools` and `call_tool`, by which a model finds and calls the tools of providers.
/// The tools of providers are then not listed: hundreds of definitions would fill its context.
pub fn finding<S: Send + Sync + 'static>(
    options: ToolOptions,
) -> impl FnOnce(Builder<S>) -> Builder<S> {
    move |builder| {
        // The called tool may do anything.
        let calls =
            ToolAnnotations::from_raw(None, Some(false), Some(true), Some(false), Some(true));

        builder
            .tool(read_only(finding::find_tool(options)).built_in(BuiltIn::Feature))
            .tool(finding::call_tool().annotations(calls).built_in(BuiltIn::Feature))
            .hide_provided_tools()
    }
}

/// Adds the tools that write: `create_resource`, `update_resource`,
/// `delete_resource`, `share_resource`.
pub fn writing<S: Send + Sync + 'static>() -> impl FnOnce(Builder<S>) -> Builder<S> {
    |builder| {
        let adds = hints(false, false);
        let updates = hints(true, false);
        let shares = hints(false, false);
        let removes = hints(true, true);

        builder
            .tool(writes(create::tool(), adds))
            .tool(writes(update::tool(), updates))
            .tool(writes(delete::tool(), removes))
            .tool(writes(share::tool(), shares))
    }
}

fn hints(destructive: bool, idempotent: bool) -> ToolAnnotations {
    let closed_world = Some(false);
    ToolAnnotations::from_raw(None, Some(false), Some(destructive), Some(idempotent), closed_world)
}

/// A built-in tool that writes or makes links, with its hints.
fn writes<S: Send + Sync + 'static>(tool: Tool<S>, hints: ToolAnnotations) -> Tool<S> {
    tool.annotations(hints).built_in(BuiltIn::Writing)
}

/// A built-in tool that reads, and that previews propose.
fn essential<S: Send + Sync + 'static>(tool: Tool<S>) -> Tool<S> {
    read_only(tool).built_in(BuiltIn::Essential)
}

/// Marks a built-in tool as read-only, and as bounding its own results: neither Larder
/// nor the host needs to store them again.
fn read_only<S: Send + Sync + 'static>(tool: Tool<S>) -> Tool<S> {
    // Tools that only read need no hint about repeated calls.
    let hints = ToolAnnotations::from_raw(None, Some(true), None, None, Some(false));

    let mut meta = JsonObject::new();
    meta.insert("anthropic/maxResultSizeChars".into(), json!(100_000));
    let tool = tool.annotations(hints).meta(MetaObject(meta)).spill(Spill::Never);
    tool.built_in(BuiltIn::Reading)
}
