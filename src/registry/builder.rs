//! Puts a server's definition together and finds all its faults at once.

use std::{collections::HashMap, sync::Arc};

use rmcp::model::Implementation;

use super::{Registry, Resource, Template, Tool, resource, template, tool};

/// How many items a page has where nobody says otherwise.
const PAGE_SIZE: usize = 100;

/// Collects what a server offers. `S` is the state that handlers reach by
/// [`Context::state`](super::Context::state).
pub struct Builder<S = ()> {
    info: Implementation,
    instructions: Option<String>,
    page_size: usize,
    state: Arc<S>,
    tools: Vec<tool::Registered>,
    resources: Vec<resource::Registered>,
    templates: Vec<template::Registered>,
    faults: Vec<String>,
}

impl Builder {
    /// A server of that name, with this crate's version until
    /// [`Builder::version`] says otherwise.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            info: Implementation::new(name, env!("CARGO_PKG_VERSION")),
            instructions: None,
            page_size: PAGE_SIZE,
            state: Arc::new(()),
            tools: Vec::new(),
            resources: Vec::new(),
            templates: Vec::new(),
            faults: Vec::new(),
        }
    }

    /// Gives the handlers registered from here on a state to share.
    pub fn state<S>(self, state: S) -> Builder<S> {
        Builder {
            info: self.info,
            instructions: self.instructions,
            page_size: self.page_size,
            state: Arc::new(state),
            tools: self.tools,
            resources: self.resources,
            templates: self.templates,
            faults: self.faults,
        }
    }
}

impl<S: Send + Sync + 'static> Builder<S> {
    /// The server's own version.
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.info.version = version.into();
        self
    }

    /// A name for people.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.info.title = Some(title.into());
        self
    }

    /// How a model should use this server.
    #[must_use]
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.instructions = Some(text.into());
        self
    }

    /// How many items a page of a listing has at most. 100 by default.
    #[must_use]
    pub fn page_size(mut self, items: usize) -> Self {
        if items == 0 {
            self.faults.push("page_size must be at least 1".into());
        }
        self.page_size = items.max(1);
        self
    }

    /// Offers a tool.
    #[must_use]
    pub fn tool(mut self, tool: Tool<S>) -> Self {
        self.tools.push(tool.register(&self.state, &mut self.faults));
        self
    }

    /// Offers a resource.
    #[must_use]
    pub fn resource(mut self, resource: Resource<S>) -> Self {
        self.resources.push(resource.register(&self.state, &mut self.faults));
        self
    }

    /// Offers whatever resources match a URI template.
    #[must_use]
    pub fn template(mut self, template: Template<S>) -> Self {
        self.templates.extend(template.register(&self.state, &mut self.faults));
        self
    }

    /// Lets somebody else add to the server: `builder.with(tools::reading)`.
    #[must_use]
    pub fn with(self, add: impl FnOnce(Self) -> Self) -> Self {
        add(self)
    }

    /// Checks everything.
    ///
    /// # Errors
    /// All that is wrong, each fault with the item's name.
    pub fn build(mut self) -> Result<Registry, BuildError> {
        if self.info.name.trim().is_empty() {
            self.faults.push("The server needs a name".into());
        }
        let tool_index =
            index(self.tools.iter().map(|t| &*t.listed.name), "Tool", &mut self.faults);
        let resource_index =
            index(self.resources.iter().map(|r| &*r.listed.uri), "Resource", &mut self.faults);
        index(
            self.templates.iter().map(|t| &*t.listed.uri_template),
            "Resource template",
            &mut self.faults,
        );
        if !self.faults.is_empty() {
            return Err(BuildError { faults: self.faults });
        }
        Ok(Registry {
            info: self.info,
            instructions: self.instructions,
            page_size: self.page_size,
            tool_list: self.tools.iter().map(|t| t.listed.clone()).collect(),
            tools: self.tools,
            tool_index,
            resources: self.resources,
            resource_index,
            template_list: self.templates.iter().map(|t| t.listed.clone()).collect(),
            templates: self.templates,
        })
    }
}

/// Where each name stands; every name given twice is a fault.
fn index<'a>(
    names: impl Iterator<Item = &'a str>,
    what: &str,
    faults: &mut Vec<String>,
) -> HashMap<String, usize> {
    let mut index = HashMap::new();
    for (at, name) in names.enumerate() {
        if index.insert(name.to_owned(), at).is_some() {
            faults.push(format!("{what} {name:?} is registered twice"));
        }
    }
    index
}

/// Everything that is wrong with a server's definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildError {
    /// One a fault, each naming its item.
    pub faults: Vec<String>,
}

impl std::fmt::Display for BuildError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count = self.faults.len();
        write!(
            f,
            "the server's definition has {count} fault{}",
            if count == 1 { "" } else { "s" }
        )?;
        for fault in &self.faults {
            write!(f, "\n  - {fault}")?;
        }
        Ok(())
    }
}

impl std::error::Error for BuildError {}
