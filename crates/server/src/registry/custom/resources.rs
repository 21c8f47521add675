//! Custom handlers of `resources/list`, `resources/templates/list` and
//! `resources/read`. A read looks for dynamic resources first, then for
//! registered ones, and then calls the custom handler.

use std::sync::Arc;

use futures_util::{FutureExt, future::BoxFuture};
use larder_protocol::Fault;
use rmcp::model;

use super::handlers::{ListHandler, check_pair, list_handler, run_list};
use crate::{
    handler::{Contents, Context, IntoContents, ResourceError, Scope},
    registry::resource,
};

type ReadFuture = BoxFuture<'static, Result<Contents, ResourceError>>;
type ReadHandler = Box<dyn Fn(Arc<Scope>, String) -> ReadFuture + Send + Sync>;

/// The handlers, in addition to registered resources and templates.
#[derive(Default)]
pub(in crate::registry) struct CustomResources {
    list: Option<ListHandler<model::Resource>>,
    list_templates: Option<ListHandler<model::ResourceTemplate>>,
    read: Option<ReadHandler>,
}

impl CustomResources {
    pub(in crate::registry) fn on_list<S, F, Fut>(&mut self, state: &Arc<S>, list: F)
    where
        S: Send + Sync + 'static,
        F: Fn(Context<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<model::Resource>, Fault>> + Send + 'static,
    {
        self.list = Some(list_handler(state, list));
    }

    pub(in crate::registry) fn on_list_templates<S, F, Fut>(&mut self, state: &Arc<S>, list: F)
    where
        S: Send + Sync + 'static,
        F: Fn(Context<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<model::ResourceTemplate>, Fault>> + Send + 'static,
    {
        self.list_templates = Some(list_handler(state, list));
    }

    pub(in crate::registry) fn on_read<S, F, Fut, R>(&mut self, state: &Arc<S>, read: F)
    where
        S: Send + Sync + 'static,
        F: Fn(Context<S>, String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, ResourceError>> + Send + 'static,
        R: IntoContents + Send + 'static,
    {
        let state = Arc::clone(state);
        self.read = Some(Box::new(move |scope, uri| {
            let result = read(Context::new(scope, Arc::clone(&state)), uri);
            async move { result.await?.into_contents().await }.boxed()
        }));
    }

    pub(super) fn check(&self, problems: &mut Vec<String>) {
        let has_list = self.list.is_some() || self.list_templates.is_some();
        // Registered items are allowed as well, because URIs tell them apart.
        check_pair(
            ("resources/list", has_list),
            ("resources/read", self.read.is_some()),
            None,
            problems,
        );
    }

    /// Whether custom handlers list and read the resources.
    pub(in crate::registry) fn is_defined(&self) -> bool {
        self.read.is_some()
    }

    pub(in crate::registry) async fn list(
        &self,
        scope: Arc<Scope>,
    ) -> Result<Vec<model::Resource>, Fault> {
        run_list(self.list.as_ref(), "resources/list", scope).await
    }

    pub(in crate::registry) async fn templates(
        &self,
        scope: Arc<Scope>,
    ) -> Result<Vec<model::ResourceTemplate>, Fault> {
        run_list(self.list_templates.as_ref(), "resources/templates/list", scope).await
    }

    /// Reads a resource; `None` if the handler does not find it.
    pub(in crate::registry) async fn read(
        &self,
        uri: &str,
        scope: Arc<Scope>,
    ) -> Option<Result<Contents, Fault>> {
        let read = self.read.as_ref()?;
        let request_id = Arc::clone(&scope.request_id);
        match resource::run_handler(uri, &request_id, || read(scope, uri.to_owned())).await {
            Err(Fault::ResourceNotFound { .. }) => None,
            contents => Some(contents),
        }
    }
}
