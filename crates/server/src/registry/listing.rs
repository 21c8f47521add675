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
    provided_tool::ProvidedTool,
    tool,
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

        for listed in page.items.iter_mut().filter(|tool| tool.output_schema.is_some()) {
            if let Some(tool) = catalog.tools.get(&listed.name)
                && self.may_spill(&listed.name)
            {
                listed.output_schema.clone_from(&tool.body.spillable_schema);
            }
        }

        Ok(page)
    }

    fn is_tool_shown(&self, grant: &Grant, shows_apps: bool, tool: &tool::RegisteredTool) -> bool {
        self.is_shown(grant, tool) && (shows_apps || !is_app_only(&tool.listed))
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

    fn listed_tool(&self, tool: &tool::RegisteredTool) -> model::Tool {
        let mut listed = tool.listed.clone();
        if listed.output_schema.is_some() && self.may_spill(&listed.name) {
            listed.output_schema.clone_from(&tool.body.spillable_schema);
        }
        listed
    }

    fn listed_provided(&self, tool: &ProvidedTool) -> model::Tool {
        let mut listed = tool.listed.clone();
        if listed.output_schema.is_some() && self.spills(&listed.name, tool.spill) {
            listed.output_schema.clone_from(&tool.spillable_schema);
        }
        listed
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
