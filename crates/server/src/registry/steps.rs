//! Help for a step of a workflow before it uses an item: names that are near, and arguments that
//! fit.

use std::sync::Arc;

use larder_protocol::{
    Fault, near,
    quote::{quoted, shortened},
    size_up_to,
};
use larder_runtime::compute::{Compute, INLINE_BYTES};
use serde_json::Value;

use super::{
    definition::Registry,
    provided_tool::{FoundTool, ProvidedTool},
};
use crate::handler::Scope;

impl Registry {
    /// The arguments of a tool of a provider, as its schema wants them where it is known. A
    /// registered tool checks them itself.
    ///
    /// # Errors
    /// Why the tool cannot be called, for the transcript: the caller has no such tool, or the
    /// arguments do not fit.
    pub(crate) async fn fitted_arguments(
        &self,
        tool: &str,
        arguments: Value,
        scope: &Arc<Scope>,
    ) -> Result<Value, String> {
        if self.has_no_providers() || self.catalog().tools.get(tool).is_some() {
            return Ok(arguments);
        }

        for provider in &self.definition.providers {
            match provider.tool(tool, scope).await {
                Ok(None) => {}
                Ok(Some(FoundTool::Listed(found))) => return fitted(found, arguments, scope).await,
                // The call says what is wrong.
                Ok(Some(FoundTool::Unlisted)) | Err(_) => return Ok(arguments),
            }
        }

        let near = self.near_tools(tool, scope).await;
        Err(format!("There is no tool {}.{near}", quoted(tool)))
    }

    async fn near_tools(&self, tool: &str, scope: &Arc<Scope>) -> String {
        let provided = self.provided_tools(scope).await.unwrap_or_default();
        let catalog = self.catalog();
        let grant = scope.identity.grant();
        let own = catalog.tools.iter().filter(|own| self.is_shown(grant, &***own));
        let mut names: Vec<_> = own.map(|own| own.listed.name.to_string()).collect();
        names.extend(provided.iter().map(|provided| provided.listed.name.to_string()));
        suggested(tool, names, scope).await
    }

    /// URIs of static resources that are near to one that does not exist, as a sentence.
    pub(crate) async fn near_resources(&self, uri: &str, scope: &Arc<Scope>) -> String {
        let uris = self.static_uris(scope).await.unwrap_or_default();
        suggested(uri, uris, scope).await
    }

    /// The URIs of the static resources that the caller may list, of this server and of providers.
    ///
    /// # Errors
    /// A provider's error.
    pub(crate) async fn static_uris(&self, scope: &Arc<Scope>) -> Result<Vec<String>, Fault> {
        let provided = self.provided_resources(scope).await?;
        let catalog = self.catalog();
        let grant = scope.identity.grant();

        let own = catalog.resources().map(|resource| resource.uri.clone());
        let all = own.chain(provided.into_iter().map(|resource| resource.uri));
        Ok(all.filter(|uri| self.can_list_resource(grant, uri)).collect())
    }
}

/// The arguments as the schema of the tool wants them.
async fn fitted(
    tool: Arc<ProvidedTool>,
    mut arguments: Value,
    scope: &Scope,
) -> Result<Value, String> {
    let bytes = size_up_to(&arguments, INLINE_BYTES + 1);
    let fitting = Compute::run(scope.identity.owner().as_str(), bytes, move || {
        tool.fit(&mut arguments).map(|()| arguments).map_err(|problem| {
            format!("The arguments do not fit the tool {}: {problem}", shortened(&tool.listed.name))
        })
    });
    fitting.done().await.map_err(|busy| busy.to_string())?
}

/// A sentence with the names that are near. Comparing takes time with their number.
async fn suggested(name: &str, names: Vec<String>, scope: &Scope) -> String {
    let name = name.to_owned();
    // Comparing two names takes some hundred times as long as copying them.
    let bytes = names.iter().map(String::len).sum::<usize>().saturating_mul(100);
    let comparing = Compute::run(scope.identity.owner().as_str(), bytes, move || {
        near::suggestion(&name, names.iter().map(String::as_str))
    });
    comparing.done().await.unwrap_or_default()
}
