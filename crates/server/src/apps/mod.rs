//! The viewer: a page by which hosts of MCP Apps show stored content to people, and the tools
//! that it calls. All of them read as the caller does.
//!
//! `web/` has the source of the pages, `page` what is built from it. A page reads parts of
//! content (`view_window`, `view_bytes`) and holds no more than it shows.

mod columns;
mod domain;
mod info;
mod lines;
mod page;
mod table;
mod tree;
mod view;
mod view_bytes;
mod view_list;
mod view_resource;
mod view_window;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use rmcp::model::{CallToolResult, ContentBlock, JsonObject, MetaObject, ToolAnnotations};
use serde::Serialize;
use serde_json::{Value, json};

use larder_protocol::APPS_META;
#[cfg(feature = "query")]
use larder_query::Queries;

use crate::{
    handler::{Context, ToolError},
    registry::{Builder, BuiltIn, Registry, Spill, Tool},
};

pub(crate) use self::page::pdf_script_gzip;

/// The tool by which models read what a page shows.
const READING_TOOL: &str = "read_resource";

/// How the viewer is offered.
#[derive(Debug, Clone)]
pub struct AppOptions {
    /// How often a page looks for a new revision.
    pub poll: Duration,
    /// The origins that hosts give the pages, by client name: a domain, or `auto` for the one
    /// that the host expects. A trailing `*` matches any ending.
    pub domains: BTreeMap<String, String>,
    /// The URL of the endpoint, if clients of other machines reach it.
    pub endpoint: Option<String>,
    /// Sorts and filters tables. Without it they are shown in their order.
    #[cfg(feature = "query")]
    pub queries: Option<Arc<Queries>>,
}

impl Default for AppOptions {
    fn default() -> Self {
        Self {
            poll: Duration::from_secs(3),
            domains: BTreeMap::new(),
            endpoint: None,
            #[cfg(feature = "query")]
            queries: None,
        }
    }
}

impl AppOptions {
    /// Whether tables can be sorted and filtered.
    fn sorts(&self) -> bool {
        #[cfg(feature = "query")]
        return self.queries.is_some();
        #[cfg(not(feature = "query"))]
        false
    }
}

/// Adds `view_resource`, the tools that only pages call (`view_window`, `view_bytes` and, for the
/// console, `view_list`), and the page `ui://larder/view.html`. Clients that do not declare MCP
/// Apps see `view_resource` alone.
///
/// ```
/// use larder_server::{Registry, apps::{self, AppOptions}};
///
/// let registry = Registry::builder("mine").with(apps::viewing(AppOptions::default())).build()?;
/// assert_eq!(registry.tools(None)?.items.len(), 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn viewing<S: Send + Sync + 'static>(
    options: AppOptions,
) -> impl FnOnce(Builder<S>) -> Builder<S> {
    move |builder| {
        let options = Arc::new(options);
        let shown = json!({ "resourceUri": page::VIEW_URI });
        let called = json!({ "visibility": ["app"] });
        let builder = page::all(&options).into_iter().fold(builder, Builder::resource);

        builder
            .tool(reading(view_resource::tool(&options), shown))
            .tool(reading(view_window::tool(&options), called.clone()))
            .tool(reading(view_bytes::tool(), called.clone()))
            .tool(reading(view_list::tool(), called))
    }
}

/// A tool that reads, bounds its results itself, and has these data for MCP Apps.
fn reading<S: Send + Sync + 'static>(tool: Tool<S>, ui: Value) -> Tool<S> {
    let hints = ToolAnnotations::from_raw(None, Some(true), None, None, Some(false));

    let mut meta = JsonObject::new();
    meta.insert(APPS_META.into(), ui);
    let tool = tool.annotations(hints).meta(MetaObject(meta)).spill(Spill::Never);
    tool.built_in(BuiltIn::Viewing)
}

/// Refuses a caller that lacks the scopes of a tool that does the same for models.
fn check_scopes<S>(ctx: &Context<S>, tool: &str) -> Result<(), ToolError> {
    let registry = Registry::from_scope(ctx.scope());
    registry.check_tool_scopes(ctx.identity(), tool).map_err(|_| {
        ToolError::permanent(format!(
            "This needs the scopes of {tool} (auth.scopes), which your token lacks."
        ))
    })
}

/// A value for the page, with a sentence for everyone else.
fn result(text: String, value: &impl Serialize) -> Result<CallToolResult, ToolError> {
    let value = serde_json::to_value(value).map_err(|error| {
        tracing::error!(%error, "a part for the viewer does not serialize");
        ToolError::new("The part could not be written as JSON.")
    })?;

    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = Some(value);
    Ok(result)
}
