//! The common code of the custom handlers.

use std::sync::Arc;

use futures_util::{FutureExt, future::BoxFuture};
use larder_protocol::Fault;

use crate::{
    handler::{Context, Scope},
    registry::item::catch_panic,
};

/// The handler of a list method.
pub(super) type ListHandler<L> =
    Box<dyn Fn(Arc<Scope>) -> BoxFuture<'static, Result<Vec<L>, Fault>> + Send + Sync>;

pub(super) fn list_handler<S, F, Fut, L>(state: &Arc<S>, list: F) -> ListHandler<L>
where
    S: Send + Sync + 'static,
    F: Fn(Context<S>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Vec<L>, Fault>> + Send + 'static,
{
    let state = Arc::clone(state);
    Box::new(move |scope| list(Context::new(scope, Arc::clone(&state))).boxed())
}

/// Runs the handler of a list method. Empty without a handler.
pub(super) async fn run_list<L>(
    list: Option<&ListHandler<L>>,
    method: &str,
    scope: Arc<Scope>,
) -> Result<Vec<L>, Fault> {
    match list {
        Some(list) => run(method, &scope.request_id.clone(), || list(scope)).await,
        None => Ok(Vec::new()),
    }
}

/// Runs a handler. A panic fails only this request.
pub(super) async fn run<T>(
    method: &str,
    request_id: &str,
    handler: impl FnOnce() -> BoxFuture<'static, Result<T, Fault>>,
) -> Result<T, Fault> {
    catch_panic("method", method, request_id, handler).await.unwrap_or_else(|_| {
        Err(Fault::Internal(format!(
            "{method} failed with an internal error (request {request_id})."
        )))
    })
}

/// Reports a list method or its partner without the other, and both together
/// with registered items. Each method is given with whether it has a handler.
pub(super) fn check_pair(
    (list, has_list): (&str, bool),
    (partner, has_partner): (&str, bool),
    registered: Option<&str>,
    problems: &mut Vec<String>,
) {
    match (has_list, has_partner, registered) {
        (true, false, _) => problems.push(format!("{list} has a handler, {partner} has none")),
        (false, true, _) => problems.push(format!("{partner} has a handler, {list} has none")),
        (true, true, Some(items)) => {
            problems.push(format!(
                "it has both registered {items} and handlers for {list} and {partner}"
            ));
        }
        _ => {}
    }
}
