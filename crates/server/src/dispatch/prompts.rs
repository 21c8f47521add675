//! `prompts/list`, `prompts/get` and `completion/complete`.

use std::{collections::BTreeMap, sync::Arc};

use larder_protocol::{Fault, Member, Method, Params};
use rmcp::model::{JsonObject, ListPromptsResult, Reference};
use serde::Deserialize;

use super::{Dispatcher, Reply, parse_cursor};
use crate::{handler::Scope, registry::CompletionInput};

impl Dispatcher {
    pub(super) async fn list_prompts(
        &self,
        params: &Params,
        scope: Arc<Scope>,
    ) -> Result<Reply, Fault> {
        if !self.registry.has_prompts() {
            return Err(Fault::MethodNotFound(Method::ListPrompts.as_str().into()));
        }

        let page = self.registry.prompts_page(parse_cursor(params)?.as_deref(), scope).await?;
        let mut result = ListPromptsResult::with_all_items(page.items);
        result.next_cursor = page.next;
        Ok(Reply::Prompts(result, self.list_hint(self.registry.has_provided_prompts())))
    }

    pub(super) async fn get_prompt(
        &self,
        params: &Params,
        scope: Arc<Scope>,
    ) -> Result<Reply, Fault> {
        let name = params.required_text(Member::Name)?;
        let arguments: JsonObject = params.read(Member::Arguments)?.unwrap_or_default();
        Ok(Reply::GetPrompt(self.registry.get_prompt(&name, arguments, scope).await?))
    }

    pub(super) async fn complete(
        &self,
        params: &Params,
        scope: Arc<Scope>,
    ) -> Result<Reply, Fault> {
        #[derive(Deserialize)]
        struct Argument {
            name: String,
            value: String,
        }

        #[derive(Default, Deserialize)]
        struct CompletionContext {
            #[serde(default)]
            arguments: BTreeMap<String, String>,
        }

        #[derive(Deserialize)]
        struct CompleteParams {
            r#ref: Reference,
            argument: Argument,
            #[serde(default)]
            context: CompletionContext,
        }

        if !self.registry.has_completions() {
            return Err(Fault::MethodNotFound(Method::Complete.as_str().into()));
        }

        let CompleteParams { r#ref: reference, argument, context } = params.parse()?;
        let completing = CompletionInput { value: argument.value, arguments: context.arguments };
        let completed = self.registry.complete(&reference, &argument.name, completing, scope);
        Ok(Reply::Complete(completed.await?))
    }
}
