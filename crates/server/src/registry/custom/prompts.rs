//! Custom handlers of `prompts/list` and `prompts/get`.

use std::sync::Arc;

use futures_util::{FutureExt, future::BoxFuture};
use larder_protocol::Fault;
use rmcp::model::{self, GetPromptResult, JsonObject};

use super::handlers::{self, ListHandler, check_pair, list_handler, run_list};
use crate::{
    handler::{Context, IntoPromptResult, Scope},
    registry::prompt,
};

type GetFuture = BoxFuture<'static, Result<GetPromptResult, Fault>>;
type GetHandler = Box<dyn Fn(Arc<Scope>, String, JsonObject) -> GetFuture + Send + Sync>;

/// The handlers, instead of registered prompts.
#[derive(Default)]
pub(in crate::registry) struct CustomPrompts {
    list: Option<ListHandler<model::Prompt>>,
    get: Option<GetHandler>,
}

impl CustomPrompts {
    pub(in crate::registry) fn on_list<S, F, Fut>(&mut self, state: &Arc<S>, list: F)
    where
        S: Send + Sync + 'static,
        F: Fn(Context<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<model::Prompt>, Fault>> + Send + 'static,
    {
        self.list = Some(list_handler(state, list));
    }

    pub(in crate::registry) fn on_get<S, F, Fut, R>(&mut self, state: &Arc<S>, get: F)
    where
        S: Send + Sync + 'static,
        F: Fn(Context<S>, String, JsonObject) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, Fault>> + Send + 'static,
        R: IntoPromptResult + 'static,
    {
        let state = Arc::clone(state);
        self.get = Some(Box::new(move |scope, name, arguments| {
            get(Context::new(scope, Arc::clone(&state)), name, arguments)
                .map(|result| {
                    let result = result?.into_prompt_result();
                    result.map_err(|error| Fault::Internal(error.message().to_owned()))
                })
                .boxed()
        }));
    }

    pub(super) fn check(&self, has_registered: bool, problems: &mut Vec<String>) {
        check_pair(
            ("prompts/list", self.list.is_some()),
            ("prompts/get", self.get.is_some()),
            has_registered.then_some("prompts"),
            problems,
        );
    }

    /// Whether custom handlers list and get the prompts.
    pub(in crate::registry) fn is_defined(&self) -> bool {
        self.list.is_some()
    }

    pub(super) async fn list(&self, scope: Arc<Scope>) -> Result<Vec<model::Prompt>, Fault> {
        run_list(self.list.as_ref(), "prompts/list", scope).await
    }

    /// Gets a prompt of the caller's list, with the argument names checked.
    pub(in crate::registry) async fn get(
        &self,
        name: &str,
        arguments: JsonObject,
        scope: Arc<Scope>,
    ) -> Result<GetPromptResult, Fault> {
        let prompts = self.list(scope.clone()).await?;
        let found = prompts.into_iter().find(|prompt| prompt.name == name);
        let (Some(found), Some(get)) = (found, &self.get) else {
            return Err(prompt::unknown(name));
        };

        let known = found.arguments.as_deref().unwrap_or_default();
        for argument in known.iter().filter(|argument| argument.required == Some(true)) {
            if !arguments.contains_key(&argument.name) {
                let problem = format!("Invalid arguments: {:?} is missing", argument.name);
                return Err(Fault::invalid_params(problem));
            }
        }

        if let Some(other) = arguments.keys().find(|key| known.iter().all(|a| a.name != **key)) {
            let other = larder_protocol::quote::quoted(other);
            let problem = format!("Invalid arguments: {name} has no argument {other}");
            return Err(Fault::invalid_params(problem));
        }

        let request_id = Arc::clone(&scope.request_id);
        let run = || get(scope, name.to_owned(), arguments);
        let mut result = handlers::run("prompts/get", &request_id, run).await?;

        if result.description.is_none() {
            result.description = found.description;
        }
        Ok(result)
    }
}
