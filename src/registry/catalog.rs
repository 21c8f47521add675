//! [`Registry`]: what a server offers, and how it is asked for it.

use std::sync::{Arc, PoisonError, RwLock};

use rmcp::model;
use serde_json::Value;
use tokio::sync::broadcast;

use super::{
    BuildError, Builder, Completing, HeaderParameter, PageOf, Scope, collection::Collection,
    complete, prompt, resource, template, tool,
};
use crate::{
    protocol::{Announcement, Fault},
    store::Content,
};

/// How far a listener may fall behind before it misses that something changed.
const BACKLOG: usize = 64;

/// What a server offers. Made by [`Builder`], shared by all calls.
pub struct Registry {
    info: model::Implementation,
    instructions: Option<String>,
    page_size: usize,
    // Read once a call and written hardly ever. A call goes on with what it
    // has read, whatever changes meanwhile.
    catalog: RwLock<Arc<Catalog>>,
    changes: broadcast::Sender<Announcement>,
}

/// The tools, prompts, resources and templates at one time.
#[derive(Clone, Default)]
pub struct Catalog {
    pub(super) tools: Collection<tool::Registered>,
    pub(super) prompts: Collection<prompt::Registered>,
    pub(super) resources: Collection<resource::Registered>,
    pub(super) templates: Collection<template::Registered>,
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

    pub(super) fn new(
        info: model::Implementation,
        instructions: Option<String>,
        page_size: usize,
        catalog: Catalog,
    ) -> Self {
        let changes = broadcast::Sender::new(BACKLOG);
        Self { info, instructions, page_size, catalog: RwLock::new(Arc::new(catalog)), changes }
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

    /// What there is now.
    pub fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Says that a list has changed, to whoever listens from now on.
    pub fn listen(&self) -> broadcast::Receiver<Announcement> {
        self.changes.subscribe()
    }

    /// Changes what there is, all or nothing.
    ///
    /// # Errors
    /// What would be wrong with the server then.
    pub(super) fn edit(
        &self,
        announcement: Announcement,
        edit: impl FnOnce(&mut Catalog, &mut Vec<String>),
    ) -> Result<(), BuildError> {
        let mut faults = Vec::new();
        {
            let mut current = self.catalog.write().unwrap_or_else(PoisonError::into_inner);
            let mut next = Catalog::clone(&current);
            edit(&mut next, &mut faults);
            if !faults.is_empty() {
                return Err(BuildError { faults });
            }
            *current = Arc::new(next);
        }
        // Nobody listening is no failure.
        let _ = self.changes.send(announcement);
        Ok(())
    }

    /// A page of the tools, in the order of registration.
    pub fn tools(&self, cursor: Option<&str>) -> Result<PageOf<model::Tool>, Fault> {
        self.catalog().tools.page(cursor, self.page_size)
    }

    /// A page of the prompts, in the order of registration.
    pub fn prompts(&self, cursor: Option<&str>) -> Result<PageOf<model::Prompt>, Fault> {
        self.catalog().prompts.page(cursor, self.page_size)
    }

    /// A page of the templates, in the order of registration.
    pub fn templates(
        &self,
        cursor: Option<&str>,
    ) -> Result<PageOf<model::ResourceTemplate>, Fault> {
        self.catalog().templates.page(cursor, self.page_size)
    }

    /// The arguments of a tool that have headers of their own.
    pub fn header_parameters(&self, tool: &str) -> Vec<HeaderParameter> {
        self.catalog().tools.get(tool).map(|tool| tool.headers.clone()).unwrap_or_default()
    }

    /// Calls a tool. Bad arguments, a failing handler and a panic give a
    /// result with `isError`, not a fault (2026-07-28, tools: Error Handling).
    ///
    /// # Errors
    /// [`Fault::InvalidParams`] for a tool that there is not.
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: Option<Value>,
        scope: Scope,
    ) -> Result<model::CallToolResult, Fault> {
        let tool = self.catalog().tools.get(name).cloned();
        let tool = tool.ok_or_else(|| Fault::invalid_params(format!("Unknown tool: {name}")))?;
        Ok(tool.call(arguments, scope).await)
    }

    /// Writes a prompt.
    ///
    /// # Errors
    /// [`Fault::InvalidParams`] for a prompt that there is not, and for
    /// arguments that do not fit; [`Fault::Internal`] for what the handler says.
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: model::JsonObject,
        scope: Scope,
    ) -> Result<model::GetPromptResult, Fault> {
        let prompt = self.catalog().prompts.get(name).cloned();
        prompt.ok_or_else(|| unknown_prompt(name))?.get(arguments, scope).await
    }

    /// Suggests values of an argument of a prompt or of a template.
    ///
    /// # Errors
    /// [`Fault::InvalidParams`] when there is no such prompt, template or argument.
    pub async fn complete(
        &self,
        reference: &model::Reference,
        argument: &str,
        completing: Completing,
        scope: Scope,
    ) -> Result<model::CompletionInfo, Fault> {
        let no_argument =
            |item: &str| Fault::invalid_params(format!("{item} has no argument {argument:?}"));
        let catalog = self.catalog();
        let values = if let Some(name) = reference.as_prompt_name() {
            let prompt = catalog.prompts.get(name).ok_or_else(|| unknown_prompt(name))?;
            if !prompt.listed.arguments.iter().flatten().any(|a| a.name == argument) {
                return Err(no_argument(&format!("The prompt {name}")));
            }
            prompt.completers.suggest(argument, completing, scope).await.unwrap_or_default()
        } else {
            let uri = reference.as_resource_uri().unwrap_or_default();
            let unknown = || Fault::invalid_params(format!("Unknown resource template: {uri}"));
            let template = catalog.templates.get(uri).ok_or_else(unknown)?;
            if !template.template.variables().any(|v| v == argument) {
                return Err(no_argument(&format!("The template {uri}")));
            }
            let typed = completing.value.clone();
            match template.completers.suggest(argument, completing, scope.clone()).await {
                Some(values) => values,
                None => complete::from_resources(&template.template, argument, &typed, &scope)
                    .await
                    .map_err(|error| Fault::Unavailable(error.to_string()))?,
            }
        };
        Ok(complete::bounded(values))
    }

    /// Whether a resource or a template of this server's definition bears or
    /// covers that URI.
    pub fn is_static(&self, uri: &str) -> bool {
        self.catalog().covers(uri)
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
    ) -> Option<Result<(Content, Option<String>), Fault>> {
        let catalog = self.catalog();
        if let Some(resource) = catalog.resources.get(uri) {
            return Some(resource.read(uri, scope).await);
        }
        for template in catalog.templates.iter() {
            if let Some(variables) = template.template.matches(uri) {
                return Some(template.read(uri, variables, scope).await);
            }
        }
        None
    }
}

impl Catalog {
    /// Whether there are tools at all.
    pub fn has_tools(&self) -> bool {
        !self.tools.is_empty()
    }

    /// Whether there are prompts at all.
    pub fn has_prompts(&self) -> bool {
        !self.prompts.is_empty()
    }

    /// Whether anything can be completed.
    pub fn has_completions(&self) -> bool {
        !self.templates.is_empty() || self.prompts.iter().any(|p| !p.completers.is_empty())
    }

    /// The input schema of that tool, if there is one.
    pub fn input_schema(&self, tool: &str) -> Option<Arc<model::JsonObject>> {
        self.tools.get(tool).map(|tool| Arc::clone(&tool.listed.input_schema))
    }

    /// Whether a resource or a template bears or covers that URI.
    pub fn covers(&self, uri: &str) -> bool {
        self.resources.get(uri).is_some()
            || self.templates.iter().any(|t| t.template.matches(uri).is_some())
    }

    /// The static resources, in the order of registration.
    pub fn resources(&self) -> impl ExactSizeIterator<Item = &model::Resource> {
        self.resources.iter().map(|r| &r.listed)
    }

    /// The templates, in the order of registration.
    pub fn templates(&self) -> impl ExactSizeIterator<Item = &model::ResourceTemplate> {
        self.templates.iter().map(|t| &t.listed)
    }
}

fn unknown_prompt(name: &str) -> Fault {
    Fault::invalid_params(format!("Unknown prompt: {name}"))
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry").field("info", &self.info).finish_non_exhaustive()
    }
}
