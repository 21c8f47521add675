//! What there is for a caller, whether registered or listed by hand.

use std::sync::Arc;

use rmcp::model;

use crate::{
    handler::Scope,
    protocol::Fault,
    registry::{PageOf, Registry, paging},
};

impl Registry {
    /// Whether there are tools at all.
    pub fn has_tools(&self) -> bool {
        self.has_custom_tools() || self.catalog().has_tools()
    }

    /// Whether a handler says which tools there are, maybe to each caller others.
    pub fn has_custom_tools(&self) -> bool {
        self.definition.custom.tools.is_there()
    }

    /// Whether there are prompts at all.
    pub fn has_prompts(&self) -> bool {
        self.has_custom_prompts() || self.catalog().has_prompts()
    }

    /// Whether a handler says which prompts there are.
    pub fn has_custom_prompts(&self) -> bool {
        self.definition.custom.prompts.is_there()
    }

    /// Whether handlers say which resources and templates the server has.
    pub fn has_custom_resources(&self) -> bool {
        self.definition.custom.resources.is_there()
    }

    /// Whether anything can be completed.
    pub fn has_completions(&self) -> bool {
        self.definition.custom.complete.is_some() || self.catalog().has_completions()
    }

    /// A page of the tools that this caller has.
    ///
    /// # Errors
    /// [`Fault::InvalidParams`] for what is no cursor, and what a handler says.
    pub async fn tools_of(
        &self,
        cursor: Option<&str>,
        scope: Arc<Scope>,
    ) -> Result<PageOf<model::Tool>, Fault> {
        if self.has_custom_tools() {
            return self.definition.custom.tools.page(cursor, self.page_size(), scope).await;
        }
        self.tools_for(scope.identity.grant(), cursor)
    }

    /// The same of the prompts.
    ///
    /// # Errors
    /// As [`Registry::tools_of`].
    pub async fn prompts_of(
        &self,
        cursor: Option<&str>,
        scope: Arc<Scope>,
    ) -> Result<PageOf<model::Prompt>, Fault> {
        if self.has_custom_prompts() {
            return self.definition.custom.prompts.page(cursor, self.page_size(), scope).await;
        }
        self.prompts_for(scope.identity.grant(), cursor)
    }

    /// The same of the templates.
    ///
    /// # Errors
    /// As [`Registry::tools_of`].
    pub async fn templates_of(
        &self,
        cursor: Option<&str>,
        scope: Arc<Scope>,
    ) -> Result<PageOf<model::ResourceTemplate>, Fault> {
        if self.has_custom_resources() {
            let templates = self.custom_templates(scope).await?;
            let show = |template: &model::ResourceTemplate| Some(template.clone());
            return paging::page(&templates, show, "templates", cursor, self.page_size());
        }
        self.templates_for(scope.identity.grant(), cursor)
    }

    /// The server's own resources for this caller, where a handler lists them.
    ///
    /// # Errors
    /// What the handler says.
    pub async fn custom_resources(&self, scope: Arc<Scope>) -> Result<Vec<model::Resource>, Fault> {
        self.definition.custom.resources.list(scope).await
    }

    /// The same for templates.
    ///
    /// # Errors
    /// What the handler says.
    pub async fn custom_templates(
        &self,
        scope: Arc<Scope>,
    ) -> Result<Vec<model::ResourceTemplate>, Fault> {
        self.definition.custom.resources.templates(scope).await
    }
}
