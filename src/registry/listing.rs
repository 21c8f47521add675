//! The lists that a caller gets, of registered items or from custom handlers.

use std::sync::Arc;

use rmcp::model;

use super::{
    definition::Registry,
    paging::{self, ListPage},
};
use crate::{auth::Grant, handler::Scope, protocol::Fault};

/// The registered items.
impl Registry {
    /// A page of the registered tools, in the order of registration.
    pub fn tools(&self, cursor: Option<&str>) -> Result<ListPage<model::Tool>, Fault> {
        self.granted_tools(&Grant::All, cursor)
    }

    /// As [`Registry::tools`], only those that a caller with that grant may use.
    pub fn granted_tools(
        &self,
        grant: &Grant,
        cursor: Option<&str>,
    ) -> Result<ListPage<model::Tool>, Fault> {
        let is_shown = |item: &_| self.is_shown(grant, item);
        let catalog = self.catalog();
        let mut page = catalog.tools.page(cursor, self.page_size(), is_shown)?;
        for listed in page.items.iter_mut().filter(|tool| tool.output_schema.is_some()) {
            if let Some(tool) = catalog.tools.get(&listed.name)
                && self.may_spill(&listed.name)
            {
                listed.output_schema.clone_from(&tool.body.spillable_schema);
            }
        }
        Ok(page)
    }

    /// A page of the registered prompts, in the order of registration.
    pub fn prompts(&self, cursor: Option<&str>) -> Result<ListPage<model::Prompt>, Fault> {
        self.granted_prompts(&Grant::All, cursor)
    }

    /// As [`Registry::prompts`], only those that a caller with that grant may use.
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

    /// As [`Registry::templates`], only those that a caller with that grant may use.
    pub fn granted_templates(
        &self,
        grant: &Grant,
        cursor: Option<&str>,
    ) -> Result<ListPage<model::ResourceTemplate>, Fault> {
        let is_shown = |item: &_| self.is_shown(grant, item);
        self.catalog().templates.page(cursor, self.page_size(), is_shown)
    }
}

/// Registered items or those of custom handlers.
impl Registry {
    /// Whether the server has tools.
    pub fn has_tools(&self) -> bool {
        self.has_custom_tools() || self.catalog().has_tools()
    }

    /// Whether a custom handler lists the tools, possibly different ones for
    /// each caller.
    pub fn has_custom_tools(&self) -> bool {
        self.definition.custom.tools.is_defined()
    }

    /// Whether the server has prompts.
    pub fn has_prompts(&self) -> bool {
        self.has_custom_prompts() || self.catalog().has_prompts()
    }

    /// Whether a custom handler lists the prompts.
    pub fn has_custom_prompts(&self) -> bool {
        self.definition.custom.prompts.is_defined()
    }

    /// Whether custom handlers list and read the server's resources.
    pub fn has_custom_resources(&self) -> bool {
        self.definition.custom.resources.is_defined()
    }

    /// Whether the server can complete arguments.
    pub fn has_completions(&self) -> bool {
        self.definition.custom.complete.is_some() || self.catalog().has_completions()
    }

    /// A page of the tools that the caller may use.
    ///
    /// # Errors
    /// [`Fault::InvalidParams`] for an invalid cursor; the error of a custom
    /// handler.
    pub async fn tools_page(
        &self,
        cursor: Option<&str>,
        scope: Arc<Scope>,
    ) -> Result<ListPage<model::Tool>, Fault> {
        if self.has_custom_tools() {
            return self.definition.custom.tools.page(cursor, self.page_size(), scope).await;
        }
        self.granted_tools(scope.identity.grant(), cursor)
    }

    /// A page of the prompts that the caller may use.
    ///
    /// # Errors
    /// As for tools.
    pub async fn prompts_page(
        &self,
        cursor: Option<&str>,
        scope: Arc<Scope>,
    ) -> Result<ListPage<model::Prompt>, Fault> {
        if self.has_custom_prompts() {
            return self.definition.custom.prompts.page(cursor, self.page_size(), scope).await;
        }
        self.granted_prompts(scope.identity.grant(), cursor)
    }

    /// A page of the templates that the caller may use.
    ///
    /// # Errors
    /// As for tools.
    pub async fn templates_page(
        &self,
        cursor: Option<&str>,
        scope: Arc<Scope>,
    ) -> Result<ListPage<model::ResourceTemplate>, Fault> {
        if self.has_custom_resources() {
            let templates = self.custom_templates(scope).await?;
            let show = |template: &model::ResourceTemplate| Some(template.clone());
            return paging::page(&templates, show, "templates", cursor, self.page_size());
        }
        self.granted_templates(scope.identity.grant(), cursor)
    }

    /// The resources that a custom handler lists for the caller.
    ///
    /// # Errors
    /// The handler's error.
    pub async fn custom_resources(&self, scope: Arc<Scope>) -> Result<Vec<model::Resource>, Fault> {
        self.definition.custom.resources.list(scope).await
    }

    /// The templates that a custom handler lists for the caller.
    ///
    /// # Errors
    /// The handler's error.
    pub async fn custom_templates(
        &self,
        scope: Arc<Scope>,
    ) -> Result<Vec<model::ResourceTemplate>, Fault> {
        self.definition.custom.resources.templates(scope).await
    }
}
