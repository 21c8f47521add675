//! The tools that a caller can call from code.

use std::{collections::BTreeMap, sync::Arc};

use larder_protocol::Fault;
use rmcp::model;

use super::{apps::is_app_only, definition::Registry};
use crate::handler::Scope;

impl Registry {
    /// The names of the tools that the caller may see, of this server and of providers, listed or
    /// not, except those for pages; and whether each says that it only reads.
    ///
    /// # Errors
    /// A provider's error.
    pub(crate) async fn callable_tools(
        &self,
        scope: &Arc<Scope>,
    ) -> Result<BTreeMap<String, bool>, Fault> {
        let provided = self.provided_tools(scope).await?;
        let catalog = self.catalog();
        let grant = scope.identity.grant();

        let shown = catalog.tools.iter().filter(|own| self.is_shown(grant, &***own));
        let own = shown.filter(|own| !is_app_only(&own.listed)).map(|own| &own.listed);
        let listed = own.chain(provided.iter().map(|tool| &tool.listed));
        Ok(listed.map(|tool| (tool.name.to_string(), only_reads(tool))).collect())
    }
}

/// Whether a tool says that it changes nothing.
fn only_reads(tool: &model::Tool) -> bool {
    let hint = tool.annotations.as_ref().and_then(|hints| hints.read_only_hint);
    hint == Some(true)
}
