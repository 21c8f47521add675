//! Completion of arguments while somebody types them
//! (2026-07-28, utilities: Completion).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use futures_util::{FutureExt, future::BoxFuture};
use rmcp::model::CompletionInfo;

use super::item::guarded;
use crate::{
    handler::{Context, Scope},
    protocol::Fault,
    store::StoreError,
    uri_template::UriTemplate,
};

/// How many values a response may have.
const MOST: usize = 100;
/// How many of the caller's own resources are looked at for values.
const LOOKED_AT: usize = 1_000;

/// What has been typed so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completing {
    /// The beginning of the value.
    pub value: String,
    /// The other arguments, as far as they are known.
    pub arguments: BTreeMap<String, String>,
}

type Suggest<S> =
    Box<dyn Fn(Context<S>, Completing) -> BoxFuture<'static, Vec<String>> + Send + Sync>;

/// Who suggests values, by argument.
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
        F: Fn(Context<S>, Completing) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Vec<String>> + Send + 'static,
    {
        let suggest: Suggest<S> =
            Box::new(move |context, completing| suggest(context, completing).boxed());
        self.by_argument.insert(argument.into(), suggest);
    }

    pub(super) fn check<'a>(
        &self,
        item: &str,
        mut arguments: impl Iterator<Item = &'a String> + Clone,
        faults: &mut Vec<String>,
    ) {
        for argument in self.by_argument.keys() {
            if !arguments.clone().any(|a| a == argument) {
                let known: Vec<_> = arguments.by_ref().map(String::as_str).collect();
                faults.push(format!(
                    "{item}: it completes {argument:?}, which is none of its arguments ({})",
                    known.join(", ")
                ));
            }
        }
    }

    pub(super) fn register(self, state: &Arc<S>) -> Registered {
        let by_argument = self.by_argument.into_iter().map(|(argument, suggest)| {
            let state = Arc::clone(state);
            let suggest: RegisteredSuggest = Box::new(move |scope, completing| {
                suggest(Context::new(scope, Arc::clone(&state)), completing)
            });
            (argument, suggest)
        });
        Registered { by_argument: by_argument.collect() }
    }
}

type RegisteredSuggest =
    Box<dyn Fn(Arc<Scope>, Completing) -> BoxFuture<'static, Vec<String>> + Send + Sync>;

/// Completers with their state.
pub(super) struct Registered {
    by_argument: BTreeMap<String, RegisteredSuggest>,
}

impl Registered {
    pub(super) fn is_empty(&self) -> bool {
        self.by_argument.is_empty()
    }

    /// What the argument's own completer suggests, if it has one.
    ///
    /// # Errors
    /// [`Fault::Internal`] when it panics.
    pub(super) async fn suggest(
        &self,
        argument: &str,
        completing: Completing,
        scope: Arc<Scope>,
    ) -> Result<Option<Vec<String>>, Fault> {
        let Some(suggest) = self.by_argument.get(argument) else { return Ok(None) };
        let request_id = Arc::clone(&scope.request_id);
        let run = || suggest(scope, completing);
        guarded("completer", argument, &request_id, run).await.map(Some).map_err(|_| {
            Fault::Internal(format!(
                "Completing {argument:?} failed with an internal error (request {request_id})."
            ))
        })
    }
}

/// The values of a template's variable among the caller's own resources.
pub(super) async fn from_resources(
    template: &UriTemplate,
    variable: &str,
    typed: &str,
    scope: &Scope,
) -> Result<Vec<String>, StoreError> {
    let owner = scope.identity.owner();
    if template.whole_uri() == Some(variable) {
        let page = scope.store.list(owner, typed, None, MOST + 1).await?;
        return Ok(page.entries.iter().map(|entry| entry.uri.to_string()).collect());
    }
    let prefix = template.literal_prefix();
    let page = scope.store.list(owner, prefix, None, LOOKED_AT).await?;
    // In the order of their URIs, equal values need not stand together.
    let values: BTreeSet<_> = page
        .entries
        .iter()
        .filter_map(|entry| template.matches(entry.uri.as_str())?.remove(variable))
        .filter(|value| value.starts_with(typed))
        .collect();
    Ok(values.into_iter().collect())
}

/// As many as a response may have, and how many there are.
pub(super) fn bounded(mut values: Vec<String>) -> CompletionInfo {
    let total = values.len();
    values.truncate(MOST);
    let mut info = CompletionInfo::default();
    info.values = values;
    info.total = u32::try_from(total).ok();
    info.has_more = Some(total > MOST);
    info
}
