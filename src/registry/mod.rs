//! What a server offers: tools, resources and templates, checked as a whole
//! when it is built; and [`Context`], what a handler has at hand.
//!
//! Nothing here knows how a call arrived.

mod builder;
mod context;
mod error;
mod output;
mod paging;
mod resource;
mod schema;
mod template;
mod tool;

use std::collections::HashMap;

pub use builder::{BuildError, Builder};
pub use context::{Context, CreateResource, Scope, UpdateResource};
pub use error::{ResourceError, ToolError};
pub use output::{IntoContent, IntoToolResult, Json};
pub use paging::{Cursor, PageOf};
pub use resource::Resource;
use rmcp::model;
pub use template::{Template, UriTemplate, Variables};
pub use tool::Tool;

use crate::protocol::Fault;

/// What a server offers. Made by [`Builder`], unchanging, shared by all calls.
pub struct Registry {
    info: model::Implementation,
    instructions: Option<String>,
    page_size: usize,
    tools: Vec<tool::Registered>,
    tool_index: HashMap<String, usize>,
    tool_list: Vec<model::Tool>,
    resources: Vec<resource::Registered>,
    resource_index: HashMap<String, usize>,
    templates: Vec<template::Registered>,
    template_list: Vec<model::ResourceTemplate>,
}

impl Registry {
    /// Begins a server of that name.
    ///
    /// ```
    /// use larder::registry::{Context, Registry, Tool};
    ///
    /// /// Says it back.
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Echo {
    ///     /// What to say.
    ///     text: String,
    /// }
    ///
    /// async fn echo(_: Context, args: Echo) -> String {
    ///     args.text
    /// }
    ///
    /// let registry = Registry::builder("echo").tool(Tool::new(echo)).build()?;
    /// let tool = &registry.tools(None)?.items[0];
    /// assert_eq!(tool.name, "echo");
    /// assert_eq!(tool.description.as_deref(), Some("Says it back."));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder(name: impl Into<String>) -> Builder {
        Builder::new(name)
    }

    /// Name and version.
    pub fn info(&self) -> &model::Implementation {
        &self.info
    }

    /// How a model should use this server.
    pub fn instructions(&self) -> Option<&str> {
        self.instructions.as_deref()
    }

    /// How many items a page of a listing has at most.
    pub fn page_size(&self) -> usize {
        self.page_size
    }

    /// Whether there are tools at all.
    pub fn has_tools(&self) -> bool {
        !self.tools.is_empty()
    }

    /// A page of the tools, in the order of registration.
    pub fn tools(&self, cursor: Option<&str>) -> Result<PageOf<'_, model::Tool>, Fault> {
        paging::page(&self.tool_list, "tools", cursor, self.page_size)
    }

    /// A page of the templates, in the order of registration.
    pub fn templates(
        &self,
        cursor: Option<&str>,
    ) -> Result<PageOf<'_, model::ResourceTemplate>, Fault> {
        paging::page(&self.template_list, "templates", cursor, self.page_size)
    }

    /// All templates, in the order of registration.
    pub fn all_templates(&self) -> &[model::ResourceTemplate] {
        &self.template_list
    }

    /// The static resources, in the order of registration.
    pub fn resources(&self) -> impl ExactSizeIterator<Item = &model::Resource> {
        self.resources.iter().map(|r| &r.listed)
    }

    /// Calls a tool. Bad arguments, a failing handler and a panic give a
    /// result with `isError`, not a fault (2026-07-28, tools: Error Handling).
    ///
    /// # Errors
    /// [`Fault::InvalidParams`] for a tool that there is not.
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: Option<serde_json::Value>,
        scope: Scope,
    ) -> Result<model::CallToolResult, Fault> {
        let unknown = || Fault::invalid_params(format!("Unknown tool: {name}"));
        let tool = &self.tools[*self.tool_index.get(name).ok_or_else(unknown)?];
        Ok(tool.call(arguments, scope).await)
    }

    /// Whether a resource or a template of this server's definition bears or
    /// covers that URI.
    pub fn is_static(&self, uri: &str) -> bool {
        self.resource_index.contains_key(uri)
            || self.templates.iter().any(|t| t.template.matches(uri).is_some())
    }

    /// Reads a static resource, or through the first template that matches.
    /// Nothing when neither is there.
    ///
    /// # Errors
    /// What the handler says, as the caller may see it.
    pub async fn read(
        &self,
        uri: &str,
        scope: Scope,
    ) -> Option<Result<(crate::store::Content, Option<String>), Fault>> {
        if let Some(at) = self.resource_index.get(uri) {
            return Some(self.resources[*at].read(uri, scope).await);
        }
        for template in &self.templates {
            if let Some(variables) = template.template.matches(uri) {
                return Some(template.read(uri, variables, scope).await);
            }
        }
        None
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry").field("info", &self.info).finish_non_exhaustive()
    }
}
