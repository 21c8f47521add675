//! The registry's rules for the size of results.

use std::{sync::Arc, time::Duration};

use larder_protocol::{Announcement, ClientFacts};

use super::{
    apps::has_app,
    definition::Registry,
    output_rules::{OutputRules, READING_TOOL, Spill, is_match, lookup},
    provider::Provider,
};

impl Registry {
    /// Checks rules before [`Registry::set_output_rules`] sets them.
    ///
    /// # Errors
    /// The patterns that match no tool.
    pub fn check_output_rules(&self, rules: &OutputRules) -> Result<(), Vec<String>> {
        // The tools of providers are not known yet.
        if !self.definition.providers.is_empty() {
            return Ok(());
        }

        let catalog = self.catalog();
        let is_unmatched = |pattern: &&String| {
            !catalog.tools.iter().any(|tool| is_match(pattern, &tool.listed.name))
        };
        let unmatched: Vec<_> = rules.tools.keys().filter(is_unmatched).cloned().collect();
        if unmatched.is_empty() { Ok(()) } else { Err(unmatched) }
    }

    /// Sets the rules. Announces a change of the tools if their output schemas
    /// may have changed.
    pub fn set_output_rules(&self, rules: OutputRules) {
        let before = self.output.swap(Arc::new(rules));
        let now = self.output.load();
        if before.tools != now.tools || before.own_schemas != now.own_schemas {
            self.announce_declared(Announcement::ToolListChanged);
        }
    }

    /// The most bytes of text in one result for that client.
    pub fn output_bytes(&self, client: &ClientFacts) -> usize {
        let name = client.info.as_ref().map_or("", |info| info.name.as_str());
        let rules = self.output.load();
        lookup(&rules.clients, name).copied().unwrap_or(rules.output_bytes)
    }

    /// The most bytes of images and audio in one result, in base64.
    pub(crate) fn media_bytes(&self) -> usize {
        self.output.load().media_bytes
    }

    /// The most bytes of text in a workflow's prompt as a whole.
    pub(crate) fn prompt_bytes(&self) -> usize {
        self.output.load().prompt_bytes
    }

    /// The most bytes of text that show a stored result.
    pub(crate) fn preview_bytes(&self) -> usize {
        self.output.load().preview_bytes
    }

    /// Whether the tool has its own user interface (MCP Apps), which reads the
    /// result itself.
    pub(crate) fn has_ui(&self, tool: &str) -> bool {
        match self.catalog().tools.get(tool) {
            Some(registered) => has_app(&registered.listed),
            None => self.known_tool(tool).is_some_and(|known| has_app(&known.listed)),
        }
    }

    /// Whether the tool of a server behind this one lists an output schema.
    pub(crate) fn lists_output_schema(&self, tool: &str) -> bool {
        self.catalog().tools.get(tool).is_none()
            && self.known_tool(tool).is_some_and(|known| known.listed.output_schema.is_some())
    }

    /// Whether results of the tool have structured content that clients check.
    #[cfg(feature = "query")]
    pub(crate) fn has_output_schema(&self, tool: &str) -> bool {
        match self.catalog().tools.get(tool) {
            Some(registered) => registered.listed.output_schema.is_some(),
            None => self.lists_output_schema(tool),
        }
    }

    /// The rule by which the tool's results are stored. `None` for a tool that is not known,
    /// or of a custom handler, which bounds its results itself.
    pub(crate) fn spill_of(&self, tool: &str) -> Option<Spill> {
        let own = match self.catalog().tools.get(tool) {
            Some(registered) => registered.body.spill,
            None => self.known_tool(tool)?.spill?,
        };
        Some(lookup(&self.output.load().tools, tool).copied().unwrap_or(own))
    }

    /// Whether a result of the tool that the caller has had before is told by what has changed.
    pub(crate) fn tells_changes(&self, tool: &str) -> bool {
        self.catalog().tools.get(tool).is_none()
            && self.known_tool(tool).is_some_and(|known| known.tells_changes)
    }

    /// The server behind this one that the tool's results come from.
    pub(crate) fn origin_of(&self, tool: &str) -> Option<Arc<str>> {
        self.provider_of(tool)?.origin()
    }

    /// Whether the tool is not registered, and may be one of a provider, which may not have
    /// listed its tools yet.
    pub(crate) fn may_be_provided(&self, tool: &str) -> bool {
        !self.definition.providers.is_empty() && self.catalog().tools.get(tool).is_none()
    }

    /// The provider of a tool, as far as it is known.
    pub(super) fn provider_of(&self, tool: &str) -> Option<Arc<dyn Provider>> {
        if self.catalog().tools.get(tool).is_some() {
            return None;
        }
        self.definition.providers.iter().find(|provider| provider.known_tool(tool).is_some())
    }

    /// The time to live of the tool's stored results. `None` for the store's default.
    pub(crate) fn ttl_of(&self, tool: &str) -> Option<Duration> {
        match self.catalog().tools.get(tool) {
            Some(_) => None,
            None => self.known_tool(tool)?.ttl,
        }
    }

    /// Whether a preview may replace the tool's result, so that the tool's
    /// output schema has to allow it.
    pub(super) fn may_spill(&self, tool: &str) -> bool {
        self.spills(tool, self.catalog().tools.get(tool).map(|tool| tool.body.spill))
    }

    /// Whether a preview may replace the result of a tool whose own rule is `own`.
    pub(super) fn spills(&self, tool: &str, own: Option<Spill>) -> bool {
        let rule = || lookup(&self.output.load().tools, tool).copied();
        match own.map(|own| rule().unwrap_or(own)) {
            None | Some(Spill::Never) => false,
            Some(Spill::Auto) => self.catalog().tools.get(READING_TOOL).is_some(),
            Some(Spill::Always) => true,
        }
    }
}
