//! Adding and removing items while the server runs. Subscribed clients get a
//! list change notification. Other instances do not change: items are code, which
//! one process cannot give to another.

use larder_protocol::Announcement;

use super::{
    build_error::BuildError, prompt::Prompt, resource::Resource, template::Template, tool::Tool,
};
use crate::handler::Context;

impl<S: Send + Sync + 'static> Context<S> {
    /// Adds a tool, for all callers of this instance.
    ///
    /// # Errors
    /// The problems of its definition. Nothing changes then.
    pub fn add_tool(&self, tool: Tool<S>) -> Result<(), BuildError> {
        self.registry().edit(Announcement::ToolListChanged, |catalog, problems| {
            let tool = tool.register(self.shared_state(), problems);
            catalog.tools.add(tool, problems);
        })
    }

    /// Removes a tool, for all callers of this instance. Running calls continue.
    ///
    /// # Errors
    /// If the tool does not exist.
    pub fn remove_tool(&self, name: &str) -> Result<(), BuildError> {
        self.registry().edit(Announcement::ToolListChanged, |catalog, problems| {
            if !catalog.tools.remove(name) {
                problems.push(format!("There is no tool {name:?}"));
            }
        })
    }

    /// Adds a prompt, for all callers of this instance.
    ///
    /// # Errors
    /// The problems of its definition. Nothing changes then.
    pub fn add_prompt(&self, prompt: Prompt<S>) -> Result<(), BuildError> {
        self.registry().edit(Announcement::PromptListChanged, |catalog, problems| {
            let prompt = prompt.register(self.shared_state(), problems);
            catalog.prompts.add(prompt, problems);
        })
    }

    /// Removes a prompt, for all callers of this instance.
    ///
    /// # Errors
    /// If the prompt does not exist.
    pub fn remove_prompt(&self, name: &str) -> Result<(), BuildError> {
        self.registry().edit(Announcement::PromptListChanged, |catalog, problems| {
            if !catalog.prompts.remove(name) {
                problems.push(format!("There is no prompt {name:?}"));
            }
        })
    }

    /// Adds a static resource, for all callers of this instance.
    ///
    /// # Errors
    /// The problems of its definition. Nothing changes then.
    pub fn add_resource(&self, resource: Resource<S>) -> Result<(), BuildError> {
        self.registry().edit(Announcement::ResourceListChanged, |catalog, problems| {
            let resource = resource.register(self.shared_state(), problems);
            catalog.resources.add(resource, problems);
        })
    }

    /// Removes a static resource, for all callers of this instance.
    ///
    /// # Errors
    /// If the resource does not exist.
    pub fn remove_resource(&self, uri: &str) -> Result<(), BuildError> {
        self.registry().edit(Announcement::ResourceListChanged, |catalog, problems| {
            if !catalog.resources.remove(uri) {
                problems.push(format!("There is no resource {uri:?}"));
            }
        })
    }

    /// Adds a resource template, for all callers of this instance. Announced as a
    /// change of the resources.
    ///
    /// # Errors
    /// The problems of its definition. Nothing changes then.
    pub fn add_template(&self, template: Template<S>) -> Result<(), BuildError> {
        self.registry().edit(Announcement::ResourceListChanged, |catalog, problems| {
            if let Some(template) = template.register(self.shared_state(), problems) {
                catalog.templates.add(template, problems);
            }
        })
    }

    /// Announces to all clients that the tools have changed, for servers that list
    /// them by [`Builder::list_tools`](crate::Builder::list_tools). Nothing is sent if
    /// the lists are fixed.
    pub fn tools_changed(&self) {
        self.registry().announce_declared(Announcement::ToolListChanged);
    }

    /// Announces to all clients that the prompts have changed, as
    /// [`Context::tools_changed`] does for tools.
    pub fn prompts_changed(&self) {
        self.registry().announce_declared(Announcement::PromptListChanged);
    }

    /// Announces to all clients that the resources or their templates have changed.
    /// Changes of stored resources are announced without it.
    pub fn resources_changed(&self) {
        self.registry().announce_declared(Announcement::ResourceListChanged);
    }

    /// Removes a resource template, for all callers of this instance.
    ///
    /// # Errors
    /// If the template does not exist.
    pub fn remove_template(&self, uri_template: &str) -> Result<(), BuildError> {
        self.registry().edit(Announcement::ResourceListChanged, |catalog, problems| {
            if !catalog.templates.remove(uri_template) {
                problems.push(format!("There is no resource template {uri_template:?}"));
            }
        })
    }
}
