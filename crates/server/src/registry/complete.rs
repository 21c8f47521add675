//! Completion of arguments (2026-07-28, utilities: Completion).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use futures_util::{FutureExt, future::BoxFuture};
use larder_protocol::{
    Fault,
    uri_template::{ListingPrefix, UriTemplate},
};
use larder_store::store::StoreError;
use rmcp::model::CompletionInfo;

use super::item::catch_panic;
use crate::handler::{Context, Scope};

/// The most values in a response (2026-07-28, utilities: Completion).
const MAX_VALUES: usize = 100;
/// The maximum number of pages of the caller's resources that are scanned for values.
const MAX_PAGES: usize = 10;
/// The number of resources on a page.
const PAGE_SIZE: usize = 1_000;

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
        arguments: &(impl Iterator<Item = &'a String> + Clone),
        problems: &mut Vec<String>,
    ) {
        for argument in self.by_argument.keys() {
            if !arguments.clone().any(|a| a == argument) {
                let known: Vec<_> = arguments.clone().map(String::as_str).collect();
                problems.push(format!(
                    "{item}: it has no argument {argument:?} to complete; its arguments are: {}",
                    known.join(", ")
                ));
            }
        }
    }

    pub(super) fn register(self, state: &Arc<S>) -> RegisteredCompleters {
        let by_argument = self.by_argument.into_iter().map(|(argument, suggest)| {
            let state = Arc::clone(state);
            let suggest: RegisteredSuggest = Box::new(move |scope, input| {
                suggest(Context::new(scope, Arc::clone(&state)), input)
            });
            (argument, suggest)
        });
        RegisteredCompleters { by_argument: by_argument.collect() }
    }
}

type RegisteredSuggest =
    Box<dyn Fn(Arc<Scope>, CompletionInput) -> BoxFuture<'static, Vec<String>> + Send + Sync>;

/// Completers with the server's state.
pub(super) struct RegisteredCompleters {
    by_argument: BTreeMap<String, RegisteredSuggest>,
}

impl RegisteredCompleters {
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

/// Values for an argument.
pub(super) struct Suggested {
    pub(super) values: Vec<String>,
    /// Whether these are all values.
    pub(super) is_all: bool,
}

/// The values of a template's variable in the URIs of the caller's resources.
pub(super) async fn from_resources(
    template: &UriTemplate,
    variable: &str,
    input: &CompletionInput,
    scope: &Scope,
) -> Result<Suggested, StoreError> {
    let owner = scope.identity.owner();
    let typed = input.value.as_str();

    if template.base_uri_variable() == Some(variable) {
        let page = scope.store.list(owner, typed, None, MAX_VALUES).await?;
        let values = page.entries.iter().map(|entry| entry.uri.to_string()).collect();
        return Ok(Suggested { values, is_all: !page.more });
    }

    let ListingPrefix { prefix, before_variable } =
        template.listing_prefix(variable, typed, &input.arguments);
    // Equal values need not be adjacent in the order of URIs.
    let mut values = BTreeSet::new();
    let mut after: Option<String> = None;
    for _ in 0..MAX_PAGES {
        let page = scope.store.list(owner, &prefix, after.as_deref(), PAGE_SIZE).await?;
        for entry in &page.entries {
            let Some(mut found) = template.matches(entry.uri.as_str()) else { continue };
            let fits = input.arguments.iter().all(|(name, value)| {
                name == variable || found.get(name).is_none_or(|found| found == value)
            });
            if let Some(value) = found.remove(variable)
                && fits
                && value.starts_with(typed)
            {
                values.insert(value);
            }
        }

        after =
            page.entries.last().map(|entry| end_of_segment(entry.uri.as_str(), before_variable));

        if !page.more {
            return Ok(Suggested { values: values.into_iter().collect(), is_all: true });
        }
    }

    Ok(Suggested { values: values.into_iter().collect(), is_all: false })
}

/// A listing position after all URIs that share the segment of the variable, which
/// have the same value; after this URI if the segment is not known.
fn end_of_segment(uri: &str, before_variable: Option<usize>) -> String {
    let segment = before_variable.and_then(|start| Some(start + uri.get(start..)?.find('/')? + 1));
    match segment {
        // DEL comes after every character of a URI.
        Some(end) => format!("{}\u{7f}", &uri[..end]),
        None => uri.to_owned(),
    }
}

/// The response: at most [`MAX_VALUES`] values, and the total if it is known.
pub(super) fn completion_info(Suggested { mut values, is_all }: Suggested) -> CompletionInfo {
    let total = values.len();
    values.truncate(MAX_VALUES);

    let mut info = CompletionInfo::default();
    info.values = values;
    info.total = u32::try_from(total).ok().filter(|_| is_all);
    info.has_more = Some(total > MAX_VALUES || !is_all);
    info
}

impl From<Vec<String>> for Suggested {
    fn from(values: Vec<String>) -> Self {
        Self { values, is_all: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_completers_of_unknown_arguments_are_problems() {
        let mut completers = Completers::<()>::default();
        for argument in ["area", "city", "zone"] {
            completers.add(argument, |_, _| async { Vec::new() });
        }

        let mut problems = Vec::new();
        completers.check("Prompt", &["city".to_owned()].iter(), &mut problems);
        let problem = |argument| {
            format!("Prompt: it has no argument {argument:?} to complete; its arguments are: city")
        };

        assert_eq!(problems, [problem("area"), problem("zone")]);
    }
}
