//! Custom handlers for whole methods: the server's author lists, calls, gets or
//! reads items without registering them, possibly different ones for each
//! caller. [`Builder`](super::Builder) sets them.

mod complete;
mod handlers;
mod prompts;
mod provider;
mod resources;
mod tools;

pub(super) use complete::CustomCompleter;
use prompts::CustomPrompts;
use resources::CustomResources;
use tools::CustomTools;

/// The custom handlers of a server.
#[derive(Default)]
pub(super) struct CustomHandlers {
    pub(super) tools: CustomTools,
    pub(super) prompts: CustomPrompts,
    pub(super) resources: CustomResources,
    pub(super) complete: Option<CustomCompleter>,
}

impl CustomHandlers {
    /// Whether there is any handler.
    pub(super) fn is_defined(&self) -> bool {
        self.tools.is_defined()
            || self.prompts.is_defined()
            || self.resources.is_defined()
            || self.complete.is_some()
    }

    /// Reports incomplete pairs, and pairs for items that are also registered.
    pub(super) fn check(&self, has_tools: bool, has_prompts: bool, problems: &mut Vec<String>) {
        self.tools.check(has_tools, problems);
        self.prompts.check(has_prompts, problems);
        self.resources.check(problems);
    }
}
