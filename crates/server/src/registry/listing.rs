//! The lists that a caller gets: registered items, then items of providers.

use std::{collections::HashSet, sync::Arc};

use futures_util::future::try_join_all;
use larder_oauth::Grant;
use larder_protocol::Fault;
use rmcp::model;

use super::{
    apps::{has_app, is_app_only, remove_app},
    definition::Registry,
    offer::Offer,
    paging::{self, ListPage},
    projection::with_reserved,
    provided_tool::ProvidedTool,
    tool,
    tool_set::{BuiltIn, ToolReach, UpstreamTools},
};
use crate::handler::Scope;

/// The registered items.
impl Registry {
    /// A page of the registered tools, in the order of registration.
    pub fn tools(&self, cursor: Option<&str>) -> Result<ListPage<model::Tool>, Fault> {
        self.granted_tools(&Grant::All, cursor)
    }

    /// A page of the registered tools that a caller with this grant may use.
    pub fn granted_tools(
        &self,
        grant: &Grant,
        cursor: Option<&str>,
    ) -> Result<ListPage<model::Tool>, Fault> {
        self.registered_tools(grant, true, cursor)
    }

    /// The page of [`granted_tools`](Self::granted_tools) for a client that shows pages of MCP
    /// Apps, or for a client that does not.
    fn registered_tools(
        &self,
        grant: &Grant,
        shows_apps: bool,
        cursor: Option<&str>,
    ) -> Result<ListPage<model::Tool>, Fault> {
        let is_shown = |item: &tool::RegisteredTool| self.is_tool_shown(grant, shows_apps, item);
        let catalog = self.catalog();
        let mut page = catalog.tools.page(cursor, self.page_size(), is_shown)?;

        if !shows_apps {
            page.items.iter_mut().filter(|tool| has_app(tool)).for_each(remove_app);
        }

        for listed in &mut page.items {
            if let Some(tool) = catalog.tools.get(&listed.name) {
                listed.output_schema = self.listed_output(tool);
                listed.input_schema = self.listed_input(tool);
            }
        }

        Ok(page)
    }

    fn is_tool_shown(&self, grant: &Grant, shows_apps: bool, tool: &tool::RegisteredTool) -> bool {
        self.is_shown(grant, tool)
            && (shows_apps || !is_app_only(&tool.listed))
            && self.is_in_set(tool, shows_apps)
    }

    /// Whether the set of the server lists a tool; always for a tool of the server's author.
    fn is_in_set(&self, tool: &tool::RegisteredTool, shows_apps: bool) -> bool {
        let Some(part) = tool.body.built_in else { return true };

        let others = match (self.has_no_providers(), self.hides_provided_tools()) {
            (true, _) => UpstreamTools::None,
            (false, false) => UpstreamTools::Listed,
            (false, true) => UpstreamTools::Found,
        };
        self.definition.own_tools.lists(&tool.listed.name, part, others, shows_apps)
    }

    /// How the model of a caller calls a registered tool.
    pub(crate) fn reach(&self, scope: &Scope, tool: &str) -> ToolReach {
        let catalog = self.catalog();
        let Some(registered) = catalog.tools.get(tool) else { return ToolReach::None };

        if !self.is_shown(scope.identity.grant(), &**registered) {
            ToolReach::None
        } else if self.is_in_set(registered, scope.client.shows_apps()) {
            ToolReach::Listed
        } else if self.hides_provided_tools() {
            ToolReach::ByCallTool
        } else {
            ToolReach::None
        }
    }

    /// A page of the registered prompts, in the order of registration.
    pub fn prompts(&self, cursor: Option<&str>) -> Result<ListPage<model::Prompt>, Fault> {
        self.granted_prompts(&Grant::All, cursor)
    }

    /// A page of the registered prompts that a caller with this grant may use.
    pub fn granted_prompts(
        &self,
        grant: &Grant,
        cursor: Option<&str>,
    ) -> Result<ListPage<model::Prompt>, Fault> {
        let is_shown = |item: &_| self.is_shown(grant, item);
        self.catalog().prompts.page(cursor, self.page_size(), is_shown)
    }

    /// A page of the registered templates, in the order of registration.
    pub fn templates(
        &self,
        cursor: Option<&str>,
    ) -> Result<ListPage<model::ResourceTemplate>, Fault> {
        self.granted_templates(&Grant::All, cursor)
    }

    /// A page of the registered templates that a caller with this grant may use.
    pub fn granted_templates(
        &self,
        grant: &Grant,
        cursor: Option<&str>,
    ) -> Result<ListPage<model::ResourceTemplate>, Fault> {
        let is_shown = |item: &_| self.is_shown(grant, item);
        self.catalog().templates.page(cursor, self.page_size(), is_shown)
    }
}

/// Registered items and items of providers.
impl Registry {
    fn any_provider(&self, what: Offer) -> bool {
        self.definition.providers.iter().any(|provider| provider.offers(what))
    }

    /// Whether the server has tools.
    pub fn has_tools(&self) -> bool {
        self.has_provided_tools() || self.catalog().has_tools()
    }

    /// Whether a provider lists tools, possibly different ones for each caller.
    pub fn has_provided_tools(&self) -> bool {
        self.any_provider(Offer::Tools)
    }

    /// Whether the server has prompts.
    pub fn has_prompts(&self) -> bool {
        self.has_provided_prompts() || self.catalog().has_prompts()
    }

    /// Whether a provider lists prompts.
    pub fn has_provided_prompts(&self) -> bool {
        self.any_provider(Offer::Prompts)
    }

    /// Whether a provider lists resources.
    pub fn has_provided_resources(&self) -> bool {
        self.any_provider(Offer::Resources)
    }

    /// Whether the server can complete arguments.
    pub fn has_completions(&self) -> bool {
        self.any_provider(Offer::Completions) || self.catalog().has_completions()
    }

    /// A page of the tools that the caller may use.
    ///
    /// # Errors
    /// [`Fault::InvalidParams`] for an invalid cursor; the error of a provider.
    pub async fn tools_page(
        &self,
        cursor: Option<&str>,
        scope: Arc<Scope>,
    ) -> Result<ListPage<model::Tool>, Fault> {
        let grant = scope.identity.grant();
        let shows_apps = scope.client.shows_apps();

        if !self.has_provided_tools() {
            return self.registered_tools(grant, shows_apps, cursor);
        }

        let provided = if self.hides_provided_tools() {
            Vec::new()
        } else {
            self.provided_tools(&scope).await?
        };

        let catalog = self.catalog();
        let granted =
            catalog.tools.iter().filter(|tool| self.is_tool_shown(grant, shows_apps, tool));
        let mut tools: Vec<_> = granted.map(|tool| self.listed_tool(tool)).collect();

        if !shows_apps {
            tools.iter_mut().filter(|tool| has_app(tool)).for_each(remove_app);
        }

        tools.extend(provided.iter().map(|tool| self.listed_provided(tool)));
        paging::page(&tools, |tool| Some(tool.clone()), "tools", cursor, self.page_size())
    }

    /// The tools of providers that the caller may use, listed or not.
    ///
    /// # Errors
    /// A provider's error.
    pub async fn provided_tools(
        &self,
        scope: &Arc<Scope>,
    ) -> Result<Vec<Arc<ProvidedTool>>, Fault> {
        let providers = self.definition.providers.load();
        let lists = providers.iter().map(|provider| provider.tools(scope));
        let provided = try_join_all(lists).await?;

        let catalog = self.catalog();
        let grant = scope.identity.grant();
        let mut names = HashSet::new();
        let tools = provided.into_iter().flatten().filter(|tool| {
            let name = &*tool.listed.name;
            catalog.tools.get(name).is_none()
                && self.is_granted(grant, name)
                && names.insert(name.to_owned())
        });

        Ok(tools.collect())
    }

    /// The tools that the caller may use and the list does not have, as the list would have them:
    /// those of providers, then those of this server.
    ///
    /// # Errors
    /// A provider's error.
    pub(crate) async fn unlisted_tools(
        &self,
        scope: &Arc<Scope>,
    ) -> Result<Vec<model::Tool>, Fault> {
        let provided = self.provided_tools(scope).await?;
        let shows_apps = scope.client.shows_apps();
        let grant = scope.identity.grant();
        let mut tools: Vec<_> = provided.iter().map(|tool| self.listed_provided(tool)).collect();

        let catalog = self.catalog();
        let own = catalog.tools.iter().filter(|tool| {
            // Without pages, tools that show content to people are of no use.
            self.is_shown(grant, &***tool)
                && tool.body.built_in != Some(BuiltIn::Viewing)
                && !self.is_in_set(tool, shows_apps)
        });
        tools.extend(own.map(|tool| self.listed_tool(tool)));
        Ok(tools)
    }

    fn listed_tool(&self, tool: &tool::RegisteredTool) -> model::Tool {
        let mut listed = tool.listed.clone();
        listed.output_schema = self.listed_output(tool);
        listed.input_schema = self.listed_input(tool);
        listed
    }

    /// The output schema in the list.
    fn listed_output(&self, tool: &tool::RegisteredTool) -> Option<Arc<model::JsonObject>> {
        let own = tool.listed.output_schema.as_ref()?;
        if tool.body.built_in.is_some() && !self.output.load().own_schemas {
            return None;
        }

        let is_spillable = self.may_spill(&tool.listed.name) || self.projects(tool);
        if is_spillable { tool.body.spillable_schema.clone() } else { Some(Arc::clone(own)) }
    }

    fn listed_provided(&self, tool: &ProvidedTool) -> model::Tool {
        let mut listed = tool.listed.clone();
        listed.input_schema = Arc::clone(self.provided_arguments(tool));

        let projects = self.definition.projector.is_some() && tool.projectable_input.is_some();
        let is_spilled = projects || self.spills(&listed.name, tool.spill);
        if listed.output_schema.is_some() && is_spilled {
            listed.output_schema.clone_from(&tool.spillable_schema);
        }
        listed
    }

    /// The arguments of a provider's tool in the list.
    fn provided_arguments<'a>(&self, tool: &'a ProvidedTool) -> &'a Arc<model::JsonObject> {
        let with_reserved = self.definition.projector.as_ref().and(tool.projectable_input.as_ref());
        with_reserved.unwrap_or(&tool.listed.input_schema)
    }

    /// Whether callers may ask a registered tool for a part of its result.
    fn projects(&self, tool: &tool::RegisteredTool) -> bool {
        tool.body.is_projectable && self.definition.projector.is_some()
    }

    /// The arguments of a registered tool in the list.
    fn listed_input(&self, tool: &tool::RegisteredTool) -> Arc<model::JsonObject> {
        let own = &tool.listed.input_schema;
        let with_reserved = if self.projects(tool) { with_reserved(own) } else { None };
        with_reserved.map_or_else(|| Arc::clone(own), Arc::new)
    }

    /// A page of the prompts that the caller may use.
    ///
    /// # Errors
    /// The errors of [`Registry::tools_page`].
    pub async fn prompts_page(
        &self,
        cursor: Option<&str>,
        scope: Arc<Scope>,
    ) -> Result<ListPage<model::Prompt>, Fault> {
        let grant = scope.identity.grant();

        if !self.has_provided_prompts() {
            return self.granted_prompts(grant, cursor);
        }

        let providers = self.definition.providers.load();
        let lists = providers.iter().map(|provider| provider.prompts(&scope));
        let provided = try_join_all(lists).await?;

        let catalog = self.catalog();
        let granted = catalog.prompts.iter().filter(|prompt| self.is_shown(grant, &***prompt));
        let mut prompts: Vec<_> = granted.map(|prompt| prompt.listed.clone()).collect();

        let mut names = HashSet::new();
        let of_providers = provided.into_iter().flatten().filter(|prompt| {
            catalog.prompts.get(&prompt.name).is_none()
                && self.is_granted(grant, &prompt.name)
                && names.insert(prompt.name.clone())
        });

        prompts.extend(of_providers);
        paging::page(&prompts, |prompt| Some(prompt.clone()), "prompts", cursor, self.page_size())
    }

    /// A page of the templates that the caller may use.
    ///
    /// # Errors
    /// The errors of [`Registry::tools_page`].
    pub async fn templates_page(
        &self,
        cursor: Option<&str>,
        scope: Arc<Scope>,
    ) -> Result<ListPage<model::ResourceTemplate>, Fault> {
        let grant = scope.identity.grant();
        if !self.has_provided_resources() {
            return self.granted_templates(grant, cursor);
        }

        let provided = self.provided_templates(&scope).await?;
        let catalog = self.catalog();
        let granted =
            catalog.templates.iter().filter(|template| self.is_shown(grant, &***template));
        let mut templates: Vec<_> = granted.map(|template| template.listed.clone()).collect();

        let of_providers =
            provided.into_iter().filter(|t| self.can_list_template(grant, &t.uri_template));
        templates.extend(of_providers);
        paging::page(&templates, |t| Some(t.clone()), "templates", cursor, self.page_size())
    }

    /// The resources that providers list for the caller.
    ///
    /// # Errors
    /// A provider's error.
    pub async fn provided_resources(
        &self,
        scope: &Arc<Scope>,
    ) -> Result<Vec<model::Resource>, Fault> {
        let providers = self.definition.providers.load();
        let lists = providers.iter().map(|provider| provider.resources(scope));
        Ok(try_join_all(lists).await?.into_iter().flatten().collect())
    }

    /// The templates that providers list for the caller.
    ///
    /// # Errors
    /// A provider's error.
    pub async fn provided_templates(
        &self,
        scope: &Arc<Scope>,
    ) -> Result<Vec<model::ResourceTemplate>, Fault> {
        let providers = self.definition.providers.load();
        let lists = providers.iter().map(|provider| provider.templates(scope));
        Ok(try_join_all(lists).await?.into_iter().flatten().collect())
    }
}
