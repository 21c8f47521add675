//! Handlers written by hand for whole methods: a server that says itself what
//! there is, to each caller its own, and runs, writes or reads what was asked
//! for.

mod complete;
mod prompts;
mod registry;
mod resources;
mod tools;

use std::sync::Arc;

use futures_util::{FutureExt, future::BoxFuture};

use super::{Catalog, item};
use crate::{
    handler::{Context, Scope},
    protocol::Fault,
};

/// Handlers in the place of registered items.
#[derive(Default)]
pub(super) struct CustomHandlers {
    pub(super) tools: tools::Tools,
    pub(super) prompts: prompts::Prompts,
    pub(super) resources: resources::Resources,
    pub(super) complete: Option<complete::Complete>,
}

impl CustomHandlers {
    pub(super) fn check(&self, catalog: &Catalog, faults: &mut Vec<String>) {
        self.tools.check(catalog.has_tools(), faults);
        self.prompts.check(catalog.has_prompts(), faults);
        self.resources.check(faults);
    }
}

/// Makes a list.
type Listing<L> =
    Box<dyn Fn(Arc<Scope>) -> BoxFuture<'static, Result<Vec<L>, Fault>> + Send + Sync>;

fn listing<S, F, Fut, L>(state: &Arc<S>, list: F) -> Listing<L>
where
    S: Send + Sync + 'static,
    F: Fn(Context<S>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Vec<L>, Fault>> + Send + 'static,
{
    let state = Arc::clone(state);
    Box::new(move |scope| list(Context::new(scope, Arc::clone(&state))).boxed())
}

/// What the handler lists; nothing where there is none.
async fn listed<L>(
    list: Option<&Listing<L>>,
    method: &str,
    scope: Arc<Scope>,
) -> Result<Vec<L>, Fault> {
    match list {
        Some(list) => guarded(method, &scope.request_id.clone(), || list(scope)).await,
        None => Ok(Vec::new()),
    }
}

/// Two methods of which neither is of use without the other, nor beside what
/// is registered.
fn pair(
    (list, lists): (&str, bool),
    (run, runs): (&str, bool),
    registered: Option<&str>,
    faults: &mut Vec<String>,
) {
    match (lists, runs, registered) {
        (true, false, _) => faults.push(format!("{list} has a handler, {run} has none")),
        (false, true, _) => faults.push(format!("{run} has a handler, {list} has none")),
        (true, true, Some(items)) => {
            faults
                .push(format!("it has both registered {items} and handlers for {list} and {run}"));
        }
        _ => {}
    }
}

/// Runs a handler; a panic in it is this call's failure alone.
async fn guarded<T>(
    method: &str,
    request_id: &str,
    run: impl FnOnce() -> BoxFuture<'static, Result<T, Fault>>,
) -> Result<T, Fault> {
    item::guarded("method", method, request_id, run).await.unwrap_or_else(|_| {
        Err(Fault::Internal(format!(
            "{method} failed with an internal error (request {request_id})."
        )))
    })
}
