//! The registry as handlers reach it.

use std::{any::Any, sync::Arc};

use futures_util::{FutureExt, future::BoxFuture};
use larder_oauth::Grant;
use larder_protocol::{ClientFacts, Fault};
use rmcp::model::{self, CallToolResult};
use serde_json::Value;

use super::definition::Registry;
use crate::handler::{Contents, Context, Scope, Server};

impl Server for Registry {
    fn output_bytes(&self, client: &ClientFacts) -> usize {
        Self::output_bytes(self, client)
    }

    fn is_static(&self, uri: &str) -> bool {
        Self::is_static(self, uri)
    }

    fn offers(&self, grant: &Grant, tool: &str) -> bool {
        Self::offers(self, grant, tool)
    }

    fn read<'a>(
        &'a self,
        uri: &'a str,
        scope: Arc<Scope>,
    ) -> BoxFuture<'a, Option<Result<Contents, Fault>>> {
        Self::read(self, uri, scope).boxed()
    }

    fn call_tool<'a>(
        &'a self,
        name: &'a str,
        arguments: Option<Value>,
        scope: Arc<Scope>,
    ) -> BoxFuture<'a, Result<CallToolResult, Fault>> {
        self.call_nested(name, arguments, scope).boxed()
    }
}

impl Registry {
    /// The registry of a call.
    pub(crate) fn from_scope(scope: &Scope) -> &Self {
        let server: &dyn Any = &*scope.server;
        server.downcast_ref().expect("the dispatcher gives each call its registry as the server")
    }
}

impl<S> Context<S> {
    /// The definition of the server that runs this call.
    pub fn registry(&self) -> &Registry {
        Registry::from_scope(self.scope())
    }

    /// The resources and templates that providers list for this caller.
    ///
    /// # Errors
    /// The providers' errors.
    pub async fn provided_listing(
        &self,
    ) -> Result<(Vec<model::Resource>, Vec<model::ResourceTemplate>), Fault> {
        let registry = self.registry();
        let scope = self.scope();

        let resources = registry.provided_resources(scope).await?;
        Ok((resources, registry.provided_templates(scope).await?))
    }
}
