//! The server around a running call, as its handler reaches it.

use std::{any::Any, fmt, sync::Arc};

use futures_util::future::BoxFuture;
use rmcp::model::CallToolResult;
use serde_json::Value;

use super::Scope;
use crate::{
    protocol::{ClientFacts, Fault},
    store::Content,
};

/// Content and media type of a static resource.
pub type StaticContent = (Content, Option<String>);

/// The server's own definition, seen from a handler. The registry implements
/// it: the registry is a higher layer, so a handler knows this trait only.
pub trait Server: Any + fmt::Debug + Send + Sync {
    /// The most bytes of text in one result for that client.
    fn output_bytes(&self, client: &ClientFacts) -> usize;

    /// Whether the URI belongs to a resource or a template of the definition.
    fn is_static(&self, uri: &str) -> bool;

    /// Reads a static resource, or through the first template that matches;
    /// `None` when neither exists.
    fn read<'a>(
        &'a self,
        uri: &'a str,
        scope: Arc<Scope>,
    ) -> BoxFuture<'a, Option<Result<StaticContent, Fault>>>;

    /// Calls a tool with the checks of a request.
    fn call_tool<'a>(
        &'a self,
        name: &'a str,
        arguments: Option<Value>,
        scope: Arc<Scope>,
    ) -> BoxFuture<'a, Result<CallToolResult, Fault>>;
}
