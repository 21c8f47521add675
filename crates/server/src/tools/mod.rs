//! The tools over the store. They work alone, because many hosts show a model
//! neither links nor resources.
//!
//! Every result stays under the output limit and says in plain text whether it
//! is complete, what the total is, and the exact next call.

mod check_upload;
mod create;
mod delete;
mod describe;
mod download_url;
mod edit;
mod finding;
mod link_request;
mod list;
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

pub(crate) use self::search::LineSearch;
use crate::{
    handler::Context,
    registry::{Builder, Spill, Tool},
};

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
            .tool(read_only(list::tool(options.clone()), "List resources"))
            .tool(read_only(describe::tool(options.clone()), "Describe a resource"))
            .tool(read_only(read::tool(options.clone()), "Read a resource"));
        let builder = builder
            .tool(read_only(search::tool(options.clone()), "Search a resource"))
            .tool(read_only(search_all::tool(options), "Search all stored resources"));

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
        let title = "Query resources";
        builder.tool(if store {
            tool.annotations(hints(title, false, true)).spill(Spill::Never)
        } else {
            read_only(tool, title)
        })
    }
}

/// Adds `download_url`: URLs at which stored content can be downloaded without credentials. It
/// works in a server over HTTP that knows its URL (`server.public_url`).
pub fn downloading<S: Send + Sync + 'static>() -> impl FnOnce(Builder<S>) -> Builder<S> {
    |builder| {
        let title = Some("Create a download link".to_owned());
        // The tool changes nothing, but each link is new.
        let hints = ToolAnnotations::from_raw(title, Some(true), None, Some(false), Some(false));
        builder.tool(download_url::tool().annotations(hints).spill(Spill::Never))
    }
}

/// Adds `upload_url`: URLs at which anyone can store content without credentials, once; and
/// `check_upload`, which tells whether the content is stored. They work where [`downloading`] does,
/// in a server with the tools of [`writing`].
pub fn uploading<S: Send + Sync + 'static>() -> impl FnOnce(Builder<S>) -> Builder<S> {
    |builder| {
        let adds = hints("Create an upload link", false, false);
        builder
            .tool(upload_url::tool().annotations(adds).spill(Spill::Never))
            .tool(read_only(check_upload::tool(), "Check an upload"))
    }
}

/// Adds `find_tools` and `call_tool`, by which a model finds and calls the tools of providers.
/// The tools of providers are then not listed: hundreds of definitions would fill its context.
pub fn finding<S: Send + Sync + 'static>(
    options: ToolOptions,
) -> impl FnOnce(Builder<S>) -> Builder<S> {
    move |builder| {
        // The called tool may do anything.
        let calls = ToolAnnotations::from_raw(
            Some("Call a tool".to_owned()),
            Some(false),
            Some(true),
            Some(false),
            Some(true),
        );

        builder
            .tool(read_only(finding::find_tool(options), "Find tools"))
            .tool(finding::call_tool().annotations(calls))
            .hide_provided_tools()
    }
}

/// Adds the tools that write: `create_resource`, `update_resource`,
/// `delete_resource`, `share_resource`.
pub fn writing<S: Send + Sync + 'static>() -> impl FnOnce(Builder<S>) -> Builder<S> {
    |builder| {
        let adds = hints("Store a resource", false, false);
        let updates = hints("Update a resource", true, false);
        let shares = hints("Share a resource", false, false);
        let removes = hints("Delete a resource", true, true);

        builder
            .tool(create::tool().annotations(adds))
            .tool(update::tool().annotations(updates))
            .tool(delete::tool().annotations(removes))
            .tool(share::tool().annotations(shares))
    }
}

fn hints(title: &str, destructive: bool, idempotent: bool) -> ToolAnnotations {
    let title = Some(title.to_owned());
    let closed_world = Some(false);
    ToolAnnotations::from_raw(title, Some(false), Some(destructive), Some(idempotent), closed_world)
}

/// Marks a tool as read-only, and as bounding its own results: neither Larder
/// nor the host needs to store them again.
fn read_only<S: Send + Sync + 'static>(tool: Tool<S>, title: &str) -> Tool<S> {
    let hints = ToolAnnotations::from_raw(
        Some(title.to_owned()),
        Some(true),
        None,
        Some(true),
        Some(false),
    );

    let mut meta = JsonObject::new();
    meta.insert("anthropic/maxResultSizeChars".into(), json!(100_000));
    tool.annotations(hints).meta(MetaObject(meta)).spill(Spill::Never)
}
