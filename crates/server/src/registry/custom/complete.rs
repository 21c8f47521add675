//! The custom handler of `completion/complete`.

use std::sync::Arc;

use futures_util::{FutureExt, future::BoxFuture};
use larder_protocol::Fault;
use rmcp::model::Reference;

use super::handlers;
use crate::{
    handler::{Context, Scope},
    registry::complete::CompletionInput,
};

type SuggestFuture = BoxFuture<'static, Result<Vec<String>, Fault>>;

/// A handler that suggests values.
pub(in crate::registry) struct CustomCompleter(
    Box<dyn Fn(Arc<Scope>, Reference, String, CompletionInput) -> SuggestFuture + Send + Sync>,
);

impl CustomCompleter {
    pub(in crate::registry) fn new<S, F, Fut>(state: &Arc<S>, suggest: F) -> Self
    where
        S: Send + Sync + 'static,
        F: Fn(Context<S>, Reference, String, CompletionInput) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<String>, Fault>> + Send + 'static,
    {
        let state = Arc::clone(state);
        Self(Box::new(move |scope, reference, argument, input| {
            suggest(Context::new(scope, Arc::clone(&state)), reference, argument, input).boxed()
        }))
    }

    pub(in crate::registry) async fn suggest(
        &self,
        reference: &Reference,
        argument: &str,
        input: CompletionInput,
        scope: Arc<Scope>,
    ) -> Result<Vec<String>, Fault> {
        let request_id = Arc::clone(&scope.request_id);
        let run = || (self.0)(scope, reference.clone(), argument.to_owned(), input);
        handlers::run("completion/complete", &request_id, run).await
    }
}
