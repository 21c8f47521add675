//! How much an answer may have, and which tools' results are put by.

use std::{collections::BTreeMap, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Registry;
use crate::{
    auth::Grant,
    protocol::{Announcement, ClientFacts},
};

/// The tool that reads stored results. Results of `Spill::Auto` tools are
/// stored only for callers who have it: without it a model could not read them.
pub(crate) const READING_TOOL: &str = "read_resource";

/// When a tool's result is put by as a resource and replaced by a preview.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Spill {
    /// When it is larger than an answer may be, and the caller has the tool
    /// `read_resource` to come at it.
    #[default]
    Auto,
    /// Always, however small it is.
    Always,
    /// Never: the tool bounds its answers itself, or the model needs all of it.
    Never,
}

/// How much an answer may have.
#[derive(Debug, Clone, PartialEq)]
pub struct OutputRules {
    /// Bytes of text, or of structured content.
    pub output_bytes: usize,
    /// Bytes of pictures and sounds, in base64.
    pub media_bytes: usize,
    /// Other bounds for clients that call themselves so; a `*` at the end
    /// stands for any ending. The longest name that fits counts.
    pub clients: BTreeMap<String, usize>,
    /// What counts instead of what tools say themselves; likewise with `*`.
    pub tools: BTreeMap<String, Spill>,
}

impl Default for OutputRules {
    /// 32,000 bytes of text: below what most hosts hand on to a model whole. A
    /// million of pictures: models see them, and pay for their dimensions.
    fn default() -> Self {
        Self {
            output_bytes: 32_000,
            media_bytes: 1_000_000,
            clients: BTreeMap::new(),
            tools: BTreeMap::new(),
        }
    }
}

/// Whether a name is that, or begins with what stands before a `*`.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == pattern,
    }
}

/// What is said for the longest name that fits.
fn fitting<'a, T>(rules: &'a BTreeMap<String, T>, name: &str) -> Option<&'a T> {
    let fitting = rules.iter().filter(|(pattern, _)| fits(pattern, name));
    // A name by itself stands over one with a star.
    fitting.max_by_key(|(pattern, _)| (pattern.len(), !pattern.ends_with('*'))).map(|(_, to)| to)
}

impl Registry {
    /// Whether these rules can be followed.
    ///
    /// # Errors
    /// The names of tools that there are not: a rule for nothing is a mistake.
    pub fn check_output(&self, rules: &OutputRules) -> Result<(), Vec<String>> {
        let catalog = self.catalog();
        let is_idle =
            |pattern: &&String| !catalog.tools.iter().any(|tool| fits(pattern, &tool.listed.name));
        let idle: Vec<_> = rules.tools.keys().filter(is_idle).cloned().collect();
        if idle.is_empty() { Ok(()) } else { Err(idle) }
    }

    /// Bounds answers like that from now on. Who listens for changes of the
    /// tools is told where their schemas may be others now.
    pub fn bound_output(&self, rules: OutputRules) {
        let before = self.output.swap(Arc::new(rules));
        if before.tools != self.output.load().tools && !self.definition.fixed_lists {
            self.announce(Announcement::ToolListChanged);
        }
    }

    /// How much text an answer to that client may have, in bytes.
    pub fn output_bytes(&self, client: &ClientFacts) -> usize {
        let name = client.info.as_ref().map_or("", |info| info.name.as_str());
        let rules = self.output.load();
        fitting(&rules.clients, name).copied().unwrap_or(rules.output_bytes)
    }

    /// The most bytes of images and audio in one result, in base64.
    pub(crate) fn media_bytes(&self) -> usize {
        self.output.load().media_bytes
    }

    /// Whether the tool has a user interface of its own (MCP Apps), which reads
    /// the result itself.
    pub(crate) fn has_ui(&self, tool: &str) -> bool {
        let tool = self.catalog().tools.get(tool).cloned();
        tool.and_then(|tool| tool.listed.meta.as_ref().map(|meta| meta.0.contains_key("ui")))
            .unwrap_or(false)
    }

    /// Whether a caller with that grant has the tool.
    pub(crate) fn offers(&self, grant: &Grant, tool: &str) -> bool {
        self.catalog().tools.get(tool).is_some_and(|tool| self.shows(grant, &**tool))
    }

    /// When that tool's results are put by; nothing for what is no registered
    /// tool, whose handler bounds its answers and says so in its schema itself.
    pub(crate) fn spill_of(&self, tool: &str) -> Option<Spill> {
        let own = self.catalog().tools.get(tool)?.body.spill;
        Some(fitting(&self.output.load().tools, tool).copied().unwrap_or(own))
    }

    /// Whether what is sent instead of that tool's result may be a preview, so
    /// that its output schema has to admit it.
    pub(super) fn may_spill(&self, tool: &str) -> bool {
        match self.spill_of(tool) {
            None | Some(Spill::Never) => false,
            Some(Spill::Auto) => self.catalog().tools.get(READING_TOOL).is_some(),
            Some(Spill::Always) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_exact_name_counts() {
        let rules = [("claude-*", 1), ("claude-code", 2), ("*", 3), ("claude-c*", 4)];
        let rules: BTreeMap<_, _> = rules.map(|(name, n)| (name.to_owned(), n)).into();
        for (name, rule) in
            [("claude-ai", 1), ("claude-code", 2), ("claude-code-2", 4), ("else", 3), ("", 3)]
        {
            assert_eq!(fitting(&rules, name), Some(&rule), "{name}");
        }
        assert_eq!(fitting(&BTreeMap::<String, u8>::new(), "x"), None);
    }
}
