//! [`Registry`]: what a server offers, and how it is asked for it.

use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::RwLock;
use rmcp::model;
use serde_json::Value;
use tokio::sync::broadcast;

use super::{
    Access, BuildError, Builder, Completing, HeaderParameter, OutputRules, PageOf,
    collection::Collection, complete, custom::CustomHandlers, prompt, resource, template, tool,
};
use crate::{
    auth::Grant,
    handler::Scope,
    protocol::{Announcement, Fault},
    store::Content,
};

/// How far a listener may fall behind before it misses that something changed.
const BACKLOG: usize = 64;

/// What a server offers. Made by [`Builder`], shared by all calls.
pub struct Registry {
    pub(super) definition: Definition,
    // Read once a call and written hardly ever. A call goes on with what it
    // has read, whatever changes meanwhile.
    catalog: RwLock<Arc<Catalog>>,
    changes: broadcast::Sender<Announcement>,
    pub(super) access: Access,
    pub(super) output: ArcSwap<OutputRules>,
}

/// What stays as it is while the server runs.
pub(super) struct Definition {
    pub(super) info: model::Implementation,
    pub(super) instructions: Option<String>,
    pub(super) page_size: usize,
    pub(super) fixed_lists: bool,
    pub(super) experimental: model::ExperimentalCapabilities,
    pub(super) custom: CustomHandlers,
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
    /// use larder::{Context, Registry, Tool};
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

    pub(super) fn new(definition: Definition, catalog: Catalog) -> Self {
        let changes = broadcast::Sender::new(BACKLOG);
        Self {
            definition,
            catalog: RwLock::new(Arc::new(catalog)),
            changes,
            access: Access::default(),
            output: ArcSwap::default(),
        }
    }

    /// Name and version.
    pub fn info(&self) -> &model::Implementation {
        &self.definition.info
    }

    /// How a model should use this server.
    pub fn instructions(&self) -> Option<&str> {
        self.definition.instructions.as_deref()
    }

    /// How many items a page of a listing has at most.
    pub fn page_size(&self) -> usize {
        self.definition.page_size
    }

    /// Whether tools and prompts stay as they are while the server runs.
    pub fn has_fixed_lists(&self) -> bool {
        self.definition.fixed_lists
    }

    /// Capabilities that the protocol does not know.
    pub fn experimental(&self) -> &model::ExperimentalCapabilities {
        &self.definition.experimental
    }

    /// What there is now.
    pub fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog.read())
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
        if self.definition.fixed_lists && announcement != Announcement::ResourceListChanged {
            faults.push("This server's tools and prompts stay as they are while it runs".into());
            return Err(BuildError { faults });
        }
        {
            let mut current = self.catalog.write();
            let mut next = Catalog::clone(&current);
            edit(&mut next, &mut faults);
            if !faults.is_empty() {
                return Err(BuildError { faults });
            }
            *current = Arc::new(next);
        }
        self.announce(announcement);
        Ok(())
    }

    pub(super) fn announce(&self, announcement: Announcement) {
        // Nobody listening is no failure.
        let _ = self.changes.send(announcement);
    }

    /// A page of the tools, in the order of registration.
    pub fn tools(&self, cursor: Option<&str>) -> Result<PageOf<model::Tool>, Fault> {
        self.tools_for(&Grant::All, cursor)
    }

    /// Those of them that a caller with that grant may use.
    pub fn tools_for(
        &self,
        grant: &Grant,
        cursor: Option<&str>,
    ) -> Result<PageOf<model::Tool>, Fault> {
        let shows = |item: &_| self.shows(grant, item);
        let catalog = self.catalog();
        let mut page = catalog.tools.page(cursor, self.definition.page_size, shows)?;
        for listed in page.items.iter_mut().filter(|tool| tool.output_schema.is_some()) {
            if let Some(tool) = catalog.tools.get(&listed.name)
                && self.may_spill(&listed.name)
            {
                listed.output_schema.clone_from(&tool.body.admits_spilled);
            }
        }
        Ok(page)
    }

    /// A page of the prompts, in the order of registration.
    pub fn prompts(&self, cursor: Option<&str>) -> Result<PageOf<model::Prompt>, Fault> {
        self.prompts_for(&Grant::All, cursor)
    }

    /// Those of them that a caller with that grant may use.
    pub fn prompts_for(
        &self,
        grant: &Grant,
        cursor: Option<&str>,
    ) -> Result<PageOf<model::Prompt>, Fault> {
        let shows = |item: &_| self.shows(grant, item);
        self.catalog().prompts.page(cursor, self.definition.page_size, shows)
    }

    /// A page of the templates, in the order of registration.
    pub fn templates(
        &self,
        cursor: Option<&str>,
    ) -> Result<PageOf<model::ResourceTemplate>, Fault> {
        self.templates_for(&Grant::All, cursor)
    }

    /// Those of them that a caller with that grant may use.
    pub fn templates_for(
        &self,
        grant: &Grant,
        cursor: Option<&str>,
    ) -> Result<PageOf<model::ResourceTemplate>, Fault> {
        let shows = |item: &_| self.shows(grant, item);
        self.catalog().templates.page(cursor, self.definition.page_size, shows)
    }

    /// The arguments of a tool that have headers of their own.
    pub fn header_parameters(&self, tool: &str) -> Vec<HeaderParameter> {
        self.catalog().tools.get(tool).map(|tool| tool.body.headers.clone()).unwrap_or_default()
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
        scope: Arc<Scope>,
    ) -> Result<model::CallToolResult, Fault> {
        if self.definition.custom.tools.is_there() {
            return Box::pin(self.definition.custom.tools.call(name, arguments, scope)).await;
        }
        let tool = self.catalog().tools.get(name).cloned();
        let tool = tool.ok_or_else(|| Fault::invalid_params(format!("Unknown tool: {name}")))?;
        self.admit(&scope.identity, || self.tool_needs(name))?;
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
        scope: Arc<Scope>,
    ) -> Result<model::GetPromptResult, Fault> {
        if self.definition.custom.prompts.is_there() {
            return self.definition.custom.prompts.get(name, arguments, scope).await;
        }
        let prompt = self.catalog().prompts.get(name).cloned();
        let prompt = prompt.ok_or_else(|| unknown_prompt(name))?;
        self.admit(&scope.identity, || self.prompt_needs(name))?;
        prompt.get(arguments, scope).await
    }

    /// Suggests values of an argument of a prompt or of a template.
    ///
    /// # Errors
    /// [`Fault::InvalidParams`] when there is no such prompt, template or argument;
    /// [`Fault::Internal`] when the completer panics.
    pub async fn complete(
        &self,
        reference: &model::Reference,
        argument: &str,
        completing: Completing,
        scope: Arc<Scope>,
    ) -> Result<model::CompletionInfo, Fault> {
        let no_argument =
            |item: &str| Fault::invalid_params(format!("{item} has no argument {argument:?}"));
        let catalog = self.catalog();
        if let Some(custom) = &self.definition.custom.complete
            && !catalog.bears(reference)
        {
            let values = custom.suggest(reference, argument, completing, scope).await?;
            return Ok(complete::bounded(values));
        }
        let values = if let Some(name) = reference.as_prompt_name() {
            self.admit(&scope.identity, || self.prompt_needs(name))?;
            let prompt = catalog.prompts.get(name).ok_or_else(|| unknown_prompt(name))?;
            if !prompt.listed.arguments.iter().flatten().any(|a| a.name == argument) {
                return Err(no_argument(&format!("The prompt {name}")));
            }
            prompt.body.completers.suggest(argument, completing, scope).await?.unwrap_or_default()
        } else {
            let uri = reference.as_resource_uri().unwrap_or_default();
            self.admit(&scope.identity, || self.template_needs(uri))?;
            let unknown = || Fault::invalid_params(format!("Unknown resource template: {uri}"));
            let template = catalog.templates.get(uri).ok_or_else(unknown)?;
            if !template.body.template.variables().any(|v| v == argument) {
                return Err(no_argument(&format!("The template {uri}")));
            }
            let typed = completing.value.clone();
            match template.body.completers.suggest(argument, completing, scope.clone()).await? {
                Some(values) => values,
                None => complete::from_resources(&template.body.template, argument, &typed, &scope)
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
        scope: Arc<Scope>,
    ) -> Option<Result<(Content, Option<String>), Fault>> {
        let catalog = self.catalog();
        if let Err(refused) = self.admit(&scope.identity, || self.uri_needs(uri)) {
            return Some(Err(refused)).filter(|_| self.is_static(uri));
        }
        if let Some(resource) = catalog.resource(uri) {
            return Some(resource.read(uri, scope).await);
        }
        for template in catalog.templates.iter() {
            if let Some(variables) = template.body.template.matches(uri) {
                return Some(template.read(uri, variables, scope).await);
            }
        }
        self.definition.custom.resources.read(uri, scope).await
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
        !self.templates.is_empty() || self.prompts.iter().any(|p| !p.body.completers.is_empty())
    }

    /// Whether that is a registered prompt or template.
    fn bears(&self, reference: &model::Reference) -> bool {
        reference.as_prompt_name().is_some_and(|name| self.prompts.get(name).is_some())
            || reference.as_resource_uri().is_some_and(|uri| self.templates.get(uri).is_some())
    }

    /// The input schema of that tool, if there is one.
    pub fn input_schema(&self, tool: &str) -> Option<Arc<model::JsonObject>> {
        self.tools.get(tool).map(|tool| Arc::clone(&tool.listed.input_schema))
    }

    /// Whether a resource or a template bears or covers that URI.
    pub fn covers(&self, uri: &str) -> bool {
        self.resource(uri).is_some()
            || self.templates.iter().any(|t| t.body.template.matches(uri).is_some())
    }

    /// All static resources, in the order of registration.
    pub fn resources(&self) -> impl ExactSizeIterator<Item = &model::Resource> {
        self.resources.iter().map(|r| &r.listed)
    }

    /// A static resource as it is listed, with what can be known of it now
    /// without reading it.
    pub async fn listed_now(&self, resource: &model::Resource) -> model::Resource {
        match self.resources.get(&resource.uri) {
            Some(registered) => registered.listed_now().await,
            None => resource.clone(),
        }
    }

    /// The resource of that URI. An authority with an empty path and one with
    /// the path `/` name the same (RFC 3986, 6.2.3). Whoever asks for scopes
    /// and whoever reads must find the same one.
    pub(super) fn resource(&self, uri: &str) -> Option<&Arc<resource::Registered>> {
        self.resources.get(uri).or_else(|| {
            let (_, rest) = uri.split_once("://")?;
            match rest.find(['/', '?', '#']) {
                None => self.resources.get(&format!("{uri}/")),
                Some(at) if &rest[at..] == "/" => self.resources.get(uri.strip_suffix('/')?),
                Some(_) => None,
            }
        })
    }

    /// The templates, in the order of registration.
    pub fn templates(&self) -> impl ExactSizeIterator<Item = &model::ResourceTemplate> {
        self.templates.iter().map(|t| &t.listed)
    }
}

pub(super) fn unknown_prompt(name: &str) -> Fault {
    Fault::invalid_params(format!("Unknown prompt: {name}"))
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry").field("info", self.info()).finish_non_exhaustive()
    }
}
