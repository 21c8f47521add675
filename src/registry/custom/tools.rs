//! `tools/list` and `tools/call` by hand.

use std::sync::Arc;

use futures_util::{FutureExt, future::BoxFuture};
use rmcp::model::{self, CallToolResult, JsonObject};
use serde_json::Value;

use super::{Listing, guarded, listed, listing, pair};
use crate::{
    handler::{Context, IntoToolResult, Scope, ToolError},
    protocol::Fault,
    registry::{Builder, PageOf, checked, item::is_name, paging},
    schema::Validator,
};

type Calling = BoxFuture<'static, Result<CallToolResult, Fault>>;
type Call = Box<dyn Fn(Arc<Scope>, String, JsonObject) -> Calling + Send + Sync>;

/// Handlers in the place of registered tools.
#[derive(Default)]
pub(in crate::registry) struct Tools {
    list: Option<Listing<model::Tool>>,
    call: Option<Call>,
}

impl<S: Send + Sync + 'static> Builder<S> {
    /// Answers `tools/list` by a handler, which may give each caller another
    /// list. Goes together with [`Builder::call_tool`], instead of
    /// [`Builder::tool`].
    ///
    /// ```
    /// use larder::{Context, Registry, protocol::Fault};
    /// use rmcp::model::{JsonObject, Tool};
    /// use serde_json::json;
    ///
    /// let schema = json!({ "type": "object" }).as_object().cloned().unwrap_or_default();
    /// let ping = Tool::new("ping", "Answers.", schema);
    /// let registry = Registry::builder("by-hand")
    ///     .list_tools(move |_: Context| {
    ///         let tools = vec![ping.clone()];
    ///         async move { Ok(tools) }
    ///     })
    ///     .call_tool(|_: Context, _name: String, _arguments: JsonObject| async { Ok("pong") })
    ///     .build();
    /// assert!(registry.is_ok());
    /// ```
    #[must_use]
    pub fn list_tools<F, Fut>(mut self, list: F) -> Self
    where
        F: Fn(Context<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<model::Tool>, Fault>> + Send + 'static,
    {
        self.custom.tools.list = Some(listing(&self.state, list));
        self
    }

    /// Answers `tools/call` by a handler. Calls of tools that
    /// [`Builder::list_tools`] does not list are refused, and arguments and
    /// structured content are held against the listed schemas, as for any tool.
    #[must_use]
    pub fn call_tool<F, Fut, R>(mut self, call: F) -> Self
    where
        F: Fn(Context<S>, String, JsonObject) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, Fault>> + Send + 'static,
        R: IntoToolResult + 'static,
    {
        let state = Arc::clone(&self.state);
        let structure = R::structure();
        self.custom.tools.call = Some(Box::new(move |scope, name, arguments| {
            let structure = structure.clone();
            call(Context::new(scope, Arc::clone(&state)), name, arguments)
                .map(move |result| {
                    let result = result?.into_structured_result();
                    Ok(match &structure {
                        Some(structure) => structure.finish(result),
                        None => result,
                    })
                })
                .boxed()
        }));
        self
    }
}

impl Tools {
    pub(super) fn check(&self, registered: bool, faults: &mut Vec<String>) {
        let (list, call) = (self.list.is_some(), self.call.is_some());
        pair(("tools/list", list), ("tools/call", call), registered.then_some("tools"), faults);
    }

    /// Whether tools are listed and called by hand.
    pub(in crate::registry) fn is_there(&self) -> bool {
        self.list.is_some()
    }

    pub(in crate::registry) async fn page(
        &self,
        cursor: Option<&str>,
        size: usize,
        scope: Arc<Scope>,
    ) -> Result<PageOf<model::Tool>, Fault> {
        let tools = self.listed(scope).await?;
        paging::page(&tools, |tool| Some(tool.clone()), "tools", cursor, size)
    }

    async fn listed(&self, scope: Arc<Scope>) -> Result<Vec<model::Tool>, Fault> {
        let tools = listed(self.list.as_ref(), "tools/list", scope).await?;
        if let Some(tool) = tools.iter().find(|tool| !is_name(&tool.name)) {
            tracing::error!(tool = %tool.name, "a tool is listed under a name that is none");
            return Err(Fault::Internal("The list of tools could not be made.".into()));
        }
        Ok(tools)
    }

    pub(in crate::registry) async fn call(
        &self,
        name: &str,
        arguments: Option<Value>,
        scope: Arc<Scope>,
    ) -> Result<CallToolResult, Fault> {
        let tools = self.listed(scope.clone()).await?;
        let tool = tools.into_iter().find(|tool| tool.name == name);
        let (Some(tool), Some(call)) = (tool, &self.call) else {
            return Err(Fault::invalid_params(format!("Unknown tool: {name}")));
        };
        // Anew for each call: the list may have changed since the last one.
        let input = Validator::new(JsonObject::clone(&tool.input_schema))
            .map_err(|fault| unusable(&fault))?;
        let output = tool.output_schema.as_deref().cloned().map(Validator::of_output);
        let output = output.transpose().map_err(|fault| unusable(&fault))?;
        let arguments = arguments.unwrap_or_else(|| Value::Object(JsonObject::new()));
        if let Err(refused) = input.check(&arguments) {
            return Ok(ToolError::new(refused).into_tool_result());
        }
        let Value::Object(arguments) = arguments else {
            return Err(Fault::invalid_params("\"arguments\" must be an object."));
        };
        let request_id = Arc::clone(&scope.request_id);
        let run = || call(scope, name.to_owned(), arguments);
        let mut result = guarded("tools/call", &request_id, run).await?;
        match &output {
            Some(output) => result = checked::check(output, name, result),
            // Nothing says what it would look like, and the text says the same.
            None => result.structured_content = None,
        }
        Ok(result)
    }
}

fn unusable(fault: &str) -> Fault {
    tracing::error!(%fault, "a tool is listed with a schema that cannot be used");
    Fault::Internal("The tool is listed with a schema that cannot be used.".into())
}
