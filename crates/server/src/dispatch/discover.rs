//! `initialize` and `server/discover`: the server's identity and its capabilities.

use std::sync::Arc;

use larder_protocol::{Announcement, ProtocolVersion};
use larder_store::task::EXTENSION;
use rmcp::model::{
    self, DiscoverResult, InitializeResult, JsonObject, PromptsCapability, ResourcesCapability,
    ServerCapabilities, ToolsCapability,
};

use super::{CacheHint, Dispatcher, Reply};
use crate::{
    handler::Scope,
    registry::{Registry, SessionClient},
};

impl Dispatcher {
    /// The cache hint for the server's definition. It is the same for every caller, unless
    /// scopes decide who sees what: then every list is private (2026-07-28, utilities:
    /// Caching).
    pub(super) fn definition_hint(&self) -> CacheHint {
        if self.registry.lists_depend_on_caller() {
            CacheHint::DEFINITION_PRIVATE
        } else {
            CacheHint::DEFINITION
        }
    }

    /// The era fills in the supported versions.
    pub(super) async fn discover(&self, scope: Arc<Scope>) -> Reply {
        let mut result = DiscoverResult::new(Vec::new(), capabilities(&self.registry));
        let client = SessionClient {
            identity: &scope.identity,
            client: &scope.client,
            session: scope.client_session.as_ref(),
        };
        result.instructions = self.registry.instructions_for(&client).await;
        Reply::Discover(Box::new(result), self.definition_hint())
    }
}

pub(super) async fn initialize(
    registry: &Registry,
    version: ProtocolVersion,
    client: &SessionClient<'_>,
) -> InitializeResult {
    let mut capabilities = capabilities(registry);
    // Extensions are negotiated per request, so a session has none.
    capabilities.extensions = None;

    let mut result = InitializeResult::new(capabilities)
        .with_server_info(registry.info().clone())
        .with_protocol_version(wire_version(version));
    result.instructions = registry.instructions_for(client).await;
    result
}

/// Declares a capability if and only if its methods are answered.
fn capabilities(registry: &Registry) -> ServerCapabilities {
    let mut capabilities = ServerCapabilities::default();
    let list_changed = |list: Announcement| registry.announces(&list).then_some(true);

    if registry.has_tools() {
        let mut tools = ToolsCapability::default();
        tools.list_changed = list_changed(Announcement::ToolListChanged);
        capabilities.tools = Some(tools);
    }
    if registry.has_prompts() {
        let mut prompts = PromptsCapability::default();
        prompts.list_changed = list_changed(Announcement::PromptListChanged);
        capabilities.prompts = Some(prompts);
    }

    if registry.has_completions() {
        capabilities.completions = Some(JsonObject::new());
    }
    if !registry.experimental().is_empty() {
        capabilities.experimental = Some(registry.experimental().clone());
    }

    if !registry.has_handlers() {
        return capabilities;
    }

    // Any handler may send log messages.
    capabilities.logging = Some(JsonObject::new());

    let mut extensions = model::ExtensionCapabilities::new();
    extensions.insert(EXTENSION.to_owned(), JsonObject::new());
    capabilities.extensions = Some(extensions);

    // Any handler may create resources.
    let mut resources = ResourcesCapability::default();
    resources.subscribe = Some(true);
    resources.list_changed = Some(true);
    capabilities.resources = Some(resources);

    capabilities
}

/// The version as the type of `rmcp`.
pub(super) fn wire_version(version: ProtocolVersion) -> model::ProtocolVersion {
    match version {
        ProtocolVersion::V2024_11_05 => model::ProtocolVersion::V_2024_11_05,
        ProtocolVersion::V2025_03_26 => model::ProtocolVersion::V_2025_03_26,
        ProtocolVersion::V2025_06_18 => model::ProtocolVersion::V_2025_06_18,
        ProtocolVersion::V2025_11_25 => model::ProtocolVersion::V_2025_11_25,
        ProtocolVersion::V2026_07_28 => model::ProtocolVersion::V_2026_07_28,
    }
}
