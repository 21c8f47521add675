//! The registry as the handlers of its own items reach it.

use std::{any::Any, sync::Arc};

use futures_util::{FutureExt, future::BoxFuture};
use rmcp::model::CallToolResult;
use serde_json::Value;

use super::Registry;
use crate::{
    handler::{Context, Scope, Server, StaticContent},
    protocol::{ClientFacts, Fault},
};

impl Server for Registry {
    fn output_bytes(&self, client: &ClientFacts) -> usize {
        Self::output_bytes(self, client)
    }

    fn is_static(&self, uri: &str) -> bool {
        Self::is_static(self, uri)
    }

    fn read<'a>(
        &'a self,
        uri: &'a str,
        scope: Arc<Scope>,
    ) -> BoxFuture<'a, Option<Result<StaticContent, Fault>>> {
        Self::read(self, uri, scope).boxed()
    }

    fn call_tool<'a>(
        &'a self,
        name: &'a str,
        arguments: Option<Value>,
        scope: Arc<Scope>,
    ) -> BoxFuture<'a, Result<CallToolResult, Fault>> {
        Self::call_tool(self, name, arguments, scope).boxed()
    }
}

impl Registry {
    /// The registry that a call runs in.
    pub(crate) fn of(scope: &Scope) -> &Self {
        let server: &dyn Any = &*scope.server;
        server.downcast_ref().expect("the dispatcher gives each call its registry as the server")
    }
}

impl<S> Context<S> {
    /// The definition of the server that this call runs in.
    pub fn registry(&self) -> &Registry {
        Registry::of(self.scope())
    }
}
