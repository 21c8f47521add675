//! Completion of arguments (2026-07-28, utilities: Completion).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use futures_util::{FutureExt, future::BoxFuture};
use rmcp::model::CompletionInfo;

use super::item::catch_panic;
use crate::{
    handler::{Context, Scope},
    protocol::Fault,
    store::StoreError,
    uri_template::UriTemplate,
};

/// The most values in a response (2026-07-28, utilities: Completion).
const MAX_VALUES: usize = 100;
/// How many of the caller's resources are scanned for values.
const MAX_SCANNED: usize = 1_000;

/// The argument that the user types, and the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompletionInput {
    /// The text typed so far.
    pub value: String,
    /// The other arguments that the client knows, by name.
    pub arguments: BTreeMap<String, String>,
}

type Suggest<S> =
    Box<dyn Fn(Context<S>, CompletionInput) -> BoxFuture<'static, Vec<String>> + Send + Sync>;

/// Completers, by argument.
pub(super) struct Completers<S> {
    by_argument: BTreeMap<String, Suggest<S>>,
}

impl<S> Default for Completers<S> {
    fn default() -> Self {
        Self { by_argument: BTreeMap::new() }
    }
}

impl<S: Send + Sync + 'static> Completers<S> {
    pub(super) fn add<F, Fut>(&mut self, argument: impl Into<String>, suggest: F)
    where
        F: Fn(Context<S>, CompletionInput) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Vec<String>> + Send + 'static,
    {
        let suggest: Suggest<S> = Box::new(move |context, input| suggest(context, input).boxed());
        self.by_argument.insert(argument.into(), suggest);
    }

    pub(super) fn check<'a>(
        &self,
        item: &str,
        mut arguments: impl Iterator<Item = &'a String> + Clone,
        problems: &mut Vec<String>,
    ) {
        for argument in self.by_argument.keys() {
            if !arguments.clone().any(|a| a == argument) {
                let known: Vec<_> = arguments.by_ref().map(String::as_str).collect();
                problems.push(format!(
                    "{item}: its completer {argument:?} has no such argument; the arguments are: {}",
                    known.join(", ")
                ));
            }
        }
    }

    pub(super) fn register(self, state: &Arc<S>) -> Registered {
        let by_argument = self.by_argument.into_iter().map(|(argument, suggest)| {
            let state = Arc::clone(state);
            let suggest: RegisteredSuggest = Box::new(move |scope, input| {
                suggest(Context::new(scope, Arc::clone(&state)), input)
            });
            (argument, suggest)
        });
        Registered { by_argument: by_argument.collect() }
    }
}

type RegisteredSuggest =
    Box<dyn Fn(Arc<Scope>, CompletionInput) -> BoxFuture<'static, Vec<String>> + Send + Sync>;

/// Completers with the server's state.
pub(super) struct Registered {
    by_argument: BTreeMap<String, RegisteredSuggest>,
}

impl Registered {
    pub(super) fn is_empty(&self) -> bool {
        self.by_argument.is_empty()
    }

    /// The values of the argument's completer. `None` if it has no completer.
    ///
    /// # Errors
    /// [`Fault::Internal`] if the completer panics.
    pub(super) async fn suggest(
        &self,
        argument: &str,
        input: CompletionInput,
        scope: Arc<Scope>,
    ) -> Result<Option<Vec<String>>, Fault> {
        let Some(suggest) = self.by_argument.get(argument) else { return Ok(None) };
        let request_id = Arc::clone(&scope.request_id);
        let run = || suggest(scope, input);
        catch_panic("completer", argument, &request_id, run).await.map(Some).map_err(|_| {
            Fault::Internal(format!(
                "Completion of {argument:?} failed with an internal error (request {request_id})."
            ))
        })
    }
}

/// The values of a template's variable in the URIs of the caller's resources.
pub(super) async fn from_resources(
    template: &UriTemplate,
    variable: &str,
    typed: &str,
    scope: &Scope,
) -> Result<Vec<String>, StoreError> {
    let owner = scope.identity.owner();
    if template.base_uri_variable() == Some(variable) {
        let page = scope.store.list(owner, typed, None, MAX_VALUES + 1).await?;
        return Ok(page.entries.iter().map(|entry| entry.uri.to_string()).collect());
    }
    let prefix = template.literal_prefix();
    let page = scope.store.list(owner, prefix, None, MAX_SCANNED).await?;
    // Equal values need not be adjacent in the order of URIs.
    let values: BTreeSet<_> = page
        .entries
        .iter()
        .filter_map(|entry| template.matches(entry.uri.as_str())?.remove(variable))
        .filter(|value| value.starts_with(typed))
        .collect();
    Ok(values.into_iter().collect())
}

/// The response: at most [`MAX_VALUES`] values, and the total.
pub(super) fn completion_info(mut values: Vec<String>) -> CompletionInfo {
    let total = values.len();
    values.truncate(MAX_VALUES);
    let mut info = CompletionInfo::default();
    info.values = values;
    info.total = u32::try_from(total).ok();
    info.has_more = Some(total > MAX_VALUES);
    info
}
