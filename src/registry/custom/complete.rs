//! `completion/complete` by hand.

use std::sync::Arc;

use futures_util::{FutureExt, future::BoxFuture};
use rmcp::model::Reference;

use super::guarded;
use crate::{
    handler::{Context, Scope},
    protocol::Fault,
    registry::{Builder, Completing},
};

type Suggesting = BoxFuture<'static, Result<Vec<String>, Fault>>;

/// A handler that suggests values.
pub(in crate::registry) struct Complete(
    Box<dyn Fn(Arc<Scope>, Reference, String, Completing) -> Suggesting + Send + Sync>,
);

impl<S: Send + Sync + 'static> Builder<S> {
    /// Suggests values by a handler for what is not registered: prompts and
    /// templates that are listed by hand. It is given what is being filled in,
    /// the argument, and what was typed so far.
    #[must_use]
    pub fn complete<F, Fut>(mut self, suggest: F) -> Self
    where
        F: Fn(Context<S>, Reference, String, Completing) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<String>, Fault>> + Send + 'static,
    {
        let state = Arc::clone(&self.state);
        self.custom.complete =
            Some(Complete(Box::new(move |scope, reference, argument, completing| {
                let context = Context::new(scope, Arc::clone(&state));
                suggest(context, reference, argument, completing).boxed()
            })));
        self
    }
}

impl Complete {
    pub(in crate::registry) async fn suggest(
        &self,
        reference: &Reference,
        argument: &str,
        completing: Completing,
        scope: Arc<Scope>,
    ) -> Result<Vec<String>, Fault> {
        let request_id = Arc::clone(&scope.request_id);
        let run = || (self.0)(scope, reference.clone(), argument.to_owned(), completing);
        guarded("completion/complete", &request_id, run).await
    }
}
