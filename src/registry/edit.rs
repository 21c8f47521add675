//! Changing what a server offers while it runs. Clients that listen are told.

use super::{BuildError, Prompt, Resource, Template, Tool};
use crate::{handler::Context, protocol::Announcement};

impl<S: Send + Sync + 'static> Context<S> {
    /// Offers one more tool from now on.
    ///
    /// # Errors
    /// What is wrong with it; nothing changes then.
    pub fn add_tool(&self, tool: Tool<S>) -> Result<(), BuildError> {
        self.registry().edit(Announcement::ToolListChanged, |catalog, faults| {
            let tool = tool.register(self.shared_state(), faults);
            catalog.tools.add(tool, faults);
        })
    }

    /// Offers that tool no longer. Calls of it that run go on.
    ///
    /// # Errors
    /// When there is no such tool.
    pub fn remove_tool(&self, name: &str) -> Result<(), BuildError> {
        self.registry().edit(Announcement::ToolListChanged, |catalog, faults| {
            if !catalog.tools.remove(name) {
                faults.push(format!("There is no tool {name:?}"));
            }
        })
    }

    /// Offers one more prompt from now on.
    ///
    /// # Errors
    /// What is wrong with it; nothing changes then.
    pub fn add_prompt(&self, prompt: Prompt<S>) -> Result<(), BuildError> {
        self.registry().edit(Announcement::PromptListChanged, |catalog, faults| {
            let prompt = prompt.register(self.shared_state(), faults);
            catalog.prompts.add(prompt, faults);
        })
    }

    /// Offers that prompt no longer.
    ///
    /// # Errors
    /// When there is no such prompt.
    pub fn remove_prompt(&self, name: &str) -> Result<(), BuildError> {
        self.registry().edit(Announcement::PromptListChanged, |catalog, faults| {
            if !catalog.prompts.remove(name) {
                faults.push(format!("There is no prompt {name:?}"));
            }
        })
    }

    /// Offers one more resource of the server's own from now on, to everybody.
    ///
    /// # Errors
    /// What is wrong with it; nothing changes then.
    pub fn add_resource(&self, resource: Resource<S>) -> Result<(), BuildError> {
        self.registry().edit(Announcement::ResourceListChanged, |catalog, faults| {
            let resource = resource.register(self.shared_state(), faults);
            catalog.resources.add(resource, faults);
        })
    }

    /// Offers that resource no longer.
    ///
    /// # Errors
    /// When there is no such resource.
    pub fn remove_resource(&self, uri: &str) -> Result<(), BuildError> {
        self.registry().edit(Announcement::ResourceListChanged, |catalog, faults| {
            if !catalog.resources.remove(uri) {
                faults.push(format!("There is no resource {uri:?}"));
            }
        })
    }

    /// Offers whatever resources match one more URI template from now on, to
    /// everybody. Who listens for changes of resources is told.
    ///
    /// # Errors
    /// What is wrong with it; nothing changes then.
    pub fn add_template(&self, template: Template<S>) -> Result<(), BuildError> {
        self.registry().edit(Announcement::ResourceListChanged, |catalog, faults| {
            if let Some(template) = template.register(self.shared_state(), faults) {
                catalog.templates.add(template, faults);
            }
        })
    }

    /// Offers that template no longer.
    ///
    /// # Errors
    /// When there is no such template.
    pub fn remove_template(&self, uri_template: &str) -> Result<(), BuildError> {
        self.registry().edit(Announcement::ResourceListChanged, |catalog, faults| {
            if !catalog.templates.remove(uri_template) {
                faults.push(format!("There is no resource template {uri_template:?}"));
            }
        })
    }
}
