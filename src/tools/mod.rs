//! The tools that every Larder server can offer over what it stores. They
//! must do by themselves: many hosts show a model neither links nor resources.
//!
//! Every answer stays under the output budget, and says in plain text what it
//! is: complete or not, out of how much, and the exact next call.

mod create;
mod delete;
mod describe;
mod list;
mod pattern;
mod rank;
mod read;
mod scan;
mod search;
mod search_all;
mod share;
mod update;
mod windows;
mod wording;

use rmcp::model::{JsonObject, MetaObject, ToolAnnotations};
use serde_json::json;

use crate::{
    handler::Context,
    registry::{Builder, Spill, Tool},
};

/// How the tools answer.
#[derive(Debug, Clone, Default)]
pub struct ToolOptions {
    /// The most that one answer may have, in bytes of text; what the server's
    /// [`OutputRules`](crate::registry::OutputRules) say where this is less.
    pub output_bytes: Option<usize>,
}

impl ToolOptions {
    /// What an answer to that call may have beside `head` bytes that it says of
    /// itself.
    fn budget<S>(&self, ctx: &Context<S>, head: usize) -> usize {
        let all = self.output_bytes.unwrap_or(usize::MAX).min(ctx.output_bytes());
        all.saturating_sub(head).max(head)
    }
}

/// Adds the tools that read: `list_resources`, `describe_resource`,
/// `read_resource`, `search_resource`, `search_resources`; and [`windows`] by URI.
///
/// ```
/// use larder::{Registry, tools::{ToolOptions, self}};
///
/// let registry = Registry::builder("mine").with(tools::reading(ToolOptions::default())).build()?;
/// assert_eq!(registry.tools(None)?.items.len(), 5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn reading<S: Send + Sync + 'static>(
    options: ToolOptions,
) -> impl FnOnce(Builder<S>) -> Builder<S> {
    move |builder| {
        builder
            .tool(reads(list::tool(options.clone()), "List resources"))
            .tool(reads(describe::tool(options.clone()), "Describe a resource"))
            .tool(reads(read::tool(options.clone()), "Read a resource"))
            .tool(reads(search::tool(options.clone()), "Search a resource"))
            .tool(reads(search_all::tool(options), "Search all stored resources"))
            .with(windows())
    }
}

/// Adds a template by which parts of whatever can be read are resources, too:
/// `URI?lines=1-200` and `URI?bytes=0-65535`. [`reading`] does that as well.
pub fn windows<S: Send + Sync + 'static>() -> impl FnOnce(Builder<S>) -> Builder<S> {
    |builder| builder.template(windows::template())
}

/// Adds the tools that write: `create_resource`, `update_resource`,
/// `delete_resource`, `share_resource`.
pub fn writing<S: Send + Sync + 'static>() -> impl FnOnce(Builder<S>) -> Builder<S> {
    |builder| {
        let adds = hints("Store a resource", false, false);
        let replaces = hints("Replace a resource's content", true, true);
        let shares = hints("Share a resource", false, false);
        let removes = hints("Delete a resource", true, true);
        builder
            .tool(create::tool().annotations(adds))
            .tool(update::tool().annotations(replaces))
            .tool(delete::tool().annotations(removes))
            .tool(share::tool().annotations(shares))
    }
}

fn hints(title: &str, destructive: bool, idempotent: bool) -> ToolAnnotations {
    let (title, closed_world) = (Some(title.to_owned()), Some(false));
    ToolAnnotations::from_raw(title, Some(false), Some(destructive), Some(idempotent), closed_world)
}

/// Marks a tool that changes nothing and answers within its own budget: a host
/// need not move its answers aside again.
fn reads<S: Send + Sync + 'static>(tool: Tool<S>, title: &str) -> Tool<S> {
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
