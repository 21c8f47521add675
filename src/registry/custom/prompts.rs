//! `prompts/list` and `prompts/get` by hand.

use std::sync::Arc;

use futures_util::{FutureExt, future::BoxFuture};
use rmcp::model::{self, GetPromptResult, JsonObject};

use super::{Listing, guarded, listed, listing, pair};
use crate::{
    handler::{Context, IntoPromptResult, Scope},
    protocol::Fault,
    registry::{Builder, PageOf, catalog::unknown_prompt, paging},
};

type Getting = BoxFuture<'static, Result<GetPromptResult, Fault>>;
type Get = Box<dyn Fn(Arc<Scope>, String, JsonObject) -> Getting + Send + Sync>;

/// Handlers in the place of registered prompts.
#[derive(Default)]
pub(in crate::registry) struct Prompts {
    list: Option<Listing<model::Prompt>>,
    get: Option<Get>,
}

impl<S: Send + Sync + 'static> Builder<S> {
    /// Answers `prompts/list` by a handler, which may give each caller another
    /// list. Goes together with [`Builder::get_prompt`], instead of
    /// [`Builder::prompt`].
    ///
    /// ```
    /// use larder::{Context, Registry};
    /// use rmcp::model::{JsonObject, Prompt};
    ///
    /// let registry = Registry::builder("by-hand")
    ///     .list_prompts(|_: Context| async {
    ///         Ok(vec![Prompt::new("greet", Some("Greets."), None)])
    ///     })
    ///     .get_prompt(|_: Context, _name: String, _arguments: JsonObject| async { Ok("Say hello.") })
    ///     .build();
    /// assert!(registry.is_ok());
    /// ```
    #[must_use]
    pub fn list_prompts<F, Fut>(mut self, list: F) -> Self
    where
        F: Fn(Context<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<model::Prompt>, Fault>> + Send + 'static,
    {
        self.custom.prompts.list = Some(listing(&self.state, list));
        self
    }

    /// Answers `prompts/get` by a handler. What [`Builder::list_prompts`] does
    /// not list is refused, prompts as well as arguments, and so are requests
    /// that lack an argument which is listed as required.
    #[must_use]
    pub fn get_prompt<F, Fut, R>(mut self, get: F) -> Self
    where
        F: Fn(Context<S>, String, JsonObject) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, Fault>> + Send + 'static,
        R: IntoPromptResult + 'static,
    {
        let state = Arc::clone(&self.state);
        self.custom.prompts.get = Some(Box::new(move |scope, name, arguments| {
            get(Context::new(scope, Arc::clone(&state)), name, arguments)
                .map(|result| {
                    let result = result?.into_prompt_result();
                    result.map_err(|error| Fault::Internal(error.message().to_owned()))
                })
                .boxed()
        }));
        self
    }
}

impl Prompts {
    pub(super) fn check(&self, registered: bool, faults: &mut Vec<String>) {
        let (list, get) = (self.list.is_some(), self.get.is_some());
        pair(("prompts/list", list), ("prompts/get", get), registered.then_some("prompts"), faults);
    }

    /// Whether prompts are listed and written by hand.
    pub(in crate::registry) fn is_there(&self) -> bool {
        self.list.is_some()
    }

    pub(in crate::registry) async fn page(
        &self,
        cursor: Option<&str>,
        size: usize,
        scope: Arc<Scope>,
    ) -> Result<PageOf<model::Prompt>, Fault> {
        let prompts = listed(self.list.as_ref(), "prompts/list", scope).await?;
        paging::page(&prompts, |prompt| Some(prompt.clone()), "prompts", cursor, size)
    }

    pub(in crate::registry) async fn get(
        &self,
        name: &str,
        arguments: JsonObject,
        scope: Arc<Scope>,
    ) -> Result<GetPromptResult, Fault> {
        let prompts = listed(self.list.as_ref(), "prompts/list", scope.clone()).await?;
        let prompt = prompts.into_iter().find(|prompt| prompt.name == name);
        let (Some(prompt), Some(get)) = (prompt, &self.get) else {
            return Err(unknown_prompt(name));
        };
        let known = prompt.arguments.as_deref().unwrap_or_default();
        for argument in known.iter().filter(|argument| argument.required == Some(true)) {
            if !arguments.contains_key(&argument.name) {
                let problem = format!("Invalid arguments: {:?} is missing", argument.name);
                return Err(Fault::invalid_params(problem));
            }
        }
        if let Some(other) = arguments.keys().find(|key| known.iter().all(|a| a.name != **key)) {
            let problem = format!("Invalid arguments: {name} has no argument {other:?}");
            return Err(Fault::invalid_params(problem));
        }
        let request_id = Arc::clone(&scope.request_id);
        let run = || get(scope, name.to_owned(), arguments);
        let mut result = guarded("prompts/get", &request_id, run).await?;
        if result.description.is_none() {
            result.description = prompt.description;
        }
        Ok(result)
    }
}
