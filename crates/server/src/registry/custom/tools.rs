//! Custom handlers of `tools/list` and `tools/call`.

use std::{collections::HashSet, sync::Arc};

use futures_util::{FutureExt, future::BoxFuture};
use larder_protocol::Fault;
use parking_lot::RwLock;
use rmcp::model::{self, CallToolResult, JsonObject};

use super::handlers::{self, ListHandler, check_pair, list_handler, run_list};
use crate::{
    handler::{Context, IntoToolResult, Scope},
    registry::{item::is_name, provided_tool::unknown_tool},
};

type CallFuture = BoxFuture<'static, Result<CallToolResult, Fault>>;
type CallHandler = Box<dyn Fn(Arc<Scope>, String, JsonObject) -> CallFuture + Send + Sync>;

/// The handlers, instead of registered tools.
#[derive(Default)]
pub(in crate::registry) struct CustomTools {
    list: Option<ListHandler<model::Tool>>,
    call: Option<CallHandler>,
    /// The names that were listed so far, up to [`MAX_NAMES`].
    names: RwLock<HashSet<String>>,
}

/// How many names of tools are remembered. The lists of callers may have no names in common.
const MAX_NAMES: usize = 1_000;

impl CustomTools {
    pub(in crate::registry) fn on_list<S, F, Fut>(&mut self, state: &Arc<S>, list: F)
    where
        S: Send + Sync + 'static,
        F: Fn(Context<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<model::Tool>, Fault>> + Send + 'static,
    {
        self.list = Some(list_handler(state, list));
    }

    pub(in crate::registry) fn on_call<S, F, Fut, R>(&mut self, state: &Arc<S>, call: F)
    where
        S: Send + Sync + 'static,
        F: Fn(Context<S>, String, JsonObject) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, Fault>> + Send + 'static,
        R: IntoToolResult + 'static,
    {
        let state = Arc::clone(state);
        let structure = R::structure();
        self.call = Some(Box::new(move |scope, name, arguments| {
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
    }

    pub(super) fn check(&self, has_registered: bool, problems: &mut Vec<String>) {
        check_pair(
            ("tools/list", self.list.is_some()),
            ("tools/call", self.call.is_some()),
            has_registered.then_some("tools"),
            problems,
        );
    }

    /// Whether custom handlers list and call the tools.
    pub(in crate::registry) fn is_defined(&self) -> bool {
        self.list.is_some()
    }

    pub(super) async fn list(&self, scope: Arc<Scope>) -> Result<Vec<model::Tool>, Fault> {
        let tools = run_list(self.list.as_ref(), "tools/list", scope).await?;
        if let Some(tool) = tools.iter().find(|tool| !is_name(&tool.name)) {
            tracing::error!(tool = %tool.name, "the tools/list handler returned an invalid name");
            return Err(Fault::Internal("The server's list of tools is invalid.".into()));
        }
        self.remember(&tools);
        Ok(tools)
    }

    /// Whether a tool of that name was listed to somebody.
    pub(super) fn has_listed(&self, name: &str) -> bool {
        self.names.read().contains(name)
    }

    fn remember(&self, tools: &[model::Tool]) {
        let is_new = {
            let names = self.names.read();
            names.len() < MAX_NAMES && tools.iter().any(|tool| !names.contains(&*tool.name))
        };
        if !is_new {
            return;
        }

        let mut names = self.names.write();
        for tool in tools {
            if names.len() >= MAX_NAMES {
                return;
            }
            names.insert(tool.name.to_string());
        }
    }

    /// Calls a tool of the caller's list.
    pub(super) async fn call(
        &self,
        name: &str,
        arguments: JsonObject,
        scope: Arc<Scope>,
    ) -> Result<CallToolResult, Fault> {
        let Some(call) = &self.call else {
            return Err(unknown_tool(name));
        };

        let request_id = Arc::clone(&scope.request_id);
        let run = || call(scope, name.to_owned(), arguments);
        handlers::run("tools/call", &request_id, run).await
    }
}
