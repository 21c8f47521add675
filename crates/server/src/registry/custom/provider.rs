//! The custom handlers as a provider.

use std::sync::Arc;

use async_trait::async_trait;
use larder_protocol::Fault;
use rmcp::model::{self, CallToolResult, JsonObject};

use super::CustomHandlers;
use crate::{
    handler::{Contents, Scope},
    registry::{
        complete::{CompletionInput, completion_info},
        offer::Offer,
        provided_tool::{FoundTool, ProvidedTool},
        provider::Provider,
    },
};

#[async_trait]
impl Provider for CustomHandlers {
    fn offers(&self, what: Offer) -> bool {
        match what {
            Offer::Tools => self.tools.is_defined(),
            Offer::Prompts => self.prompts.is_defined(),
            Offer::Resources => self.resources.is_defined(),
            Offer::Completions => self.complete.is_some(),
        }
    }

    fn replaces(&self, what: Offer) -> bool {
        matches!(what, Offer::Tools | Offer::Prompts) && self.offers(what)
    }

    async fn tools(&self, scope: &Arc<Scope>) -> Result<Vec<Arc<ProvidedTool>>, Fault> {
        let tools = self.tools.list(Arc::clone(scope)).await?;
        Ok(tools.into_iter().map(|tool| Arc::new(ProvidedTool::custom(tool))).collect())
    }

    async fn tool(&self, name: &str, scope: &Arc<Scope>) -> Result<Option<FoundTool>, Fault> {
        let tools = self.tools.list(Arc::clone(scope)).await?;
        let found = tools.into_iter().find(|tool| tool.name == name);
        Ok(found.map(|tool| FoundTool::Listed(Arc::new(ProvidedTool::custom(tool)))))
    }

    fn lists_tool(&self, name: &str) -> bool {
        self.tools.has_listed(name)
    }

    async fn call_tool(
        &self,
        tool: &ProvidedTool,
        arguments: JsonObject,
        scope: Arc<Scope>,
    ) -> Result<CallToolResult, Fault> {
        self.tools.call(&tool.listed.name, arguments, scope).await
    }

    async fn prompts(&self, scope: &Arc<Scope>) -> Result<Vec<model::Prompt>, Fault> {
        self.prompts.list(Arc::clone(scope)).await
    }

    async fn get_prompt(
        &self,
        name: &str,
        arguments: &JsonObject,
        scope: &Arc<Scope>,
    ) -> Option<Result<model::GetPromptResult, Fault>> {
        if !self.prompts.is_defined() {
            return None;
        }
        Some(self.prompts.get(name, arguments.clone(), Arc::clone(scope)).await)
    }

    async fn resources(&self, scope: &Arc<Scope>) -> Result<Vec<model::Resource>, Fault> {
        self.resources.list(Arc::clone(scope)).await
    }

    async fn templates(&self, scope: &Arc<Scope>) -> Result<Vec<model::ResourceTemplate>, Fault> {
        self.resources.templates(Arc::clone(scope)).await
    }

    async fn read(&self, uri: &str, scope: &Arc<Scope>) -> Option<Result<Contents, Fault>> {
        self.resources.read(uri, Arc::clone(scope)).await
    }

    async fn complete(
        &self,
        reference: &model::Reference,
        argument: &str,
        input: &CompletionInput,
        scope: &Arc<Scope>,
    ) -> Option<Result<model::CompleteResult, Fault>> {
        let completer = self.complete.as_ref()?;
        let values = completer.suggest(reference, argument, input.clone(), Arc::clone(scope)).await;
        Some(values.map(|values| model::CompleteResult::new(completion_info(values.into()))))
    }
}
