//! `resources/list`, `resources/templates/list` and `resources/read` by hand.
//! What callers have put by stands beside, and comes first; then what is registered.

use std::sync::Arc;

use futures_util::{FutureExt, future::BoxFuture};
use rmcp::model;

use super::{Listing, listed, listing, pair};
use crate::{
    handler::{Context, IntoContent, ResourceError, Scope},
    protocol::Fault,
    registry::{Builder, resource},
    store::Content,
};

type Reading = BoxFuture<'static, Result<Content, ResourceError>>;
type Read = Box<dyn Fn(Arc<Scope>, String) -> Reading + Send + Sync>;

/// Handlers beside registered resources and templates.
#[derive(Default)]
pub(in crate::registry) struct Resources {
    list: Option<Listing<model::Resource>>,
    templates: Option<Listing<model::ResourceTemplate>>,
    read: Option<Read>,
}

impl<S: Send + Sync + 'static> Builder<S> {
    /// Lists the server's own resources by a handler, which may give each
    /// caller another list. Goes together with [`Builder::read_resource`], and
    /// beside [`Builder::resource`] and [`Builder::template`]: what is registered
    /// comes first.
    ///
    /// ```
    /// use larder::{Context, Registry, ResourceError};
    /// use rmcp::model::Resource;
    ///
    /// let registry = Registry::builder("by-hand")
    ///     .list_resources(|_: Context| async { Ok(vec![Resource::new("docs://one", "one")]) })
    ///     .read_resource(|_: Context, uri: String| async move {
    ///         match uri.as_str() {
    ///             "docs://one" => Ok("The first page."),
    ///             _ => Err(ResourceError::NotFound),
    ///         }
    ///     })
    ///     .build();
    /// assert!(registry.is_ok());
    /// ```
    #[must_use]
    pub fn list_resources<F, Fut>(mut self, list: F) -> Self
    where
        F: Fn(Context<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<model::Resource>, Fault>> + Send + 'static,
    {
        self.custom.resources.list = Some(listing(&self.state, list));
        self
    }

    /// Answers `resources/templates/list` by a handler. Goes together with
    /// [`Builder::read_resource`] as well, which reads what they cover.
    #[must_use]
    pub fn list_resource_templates<F, Fut>(mut self, list: F) -> Self
    where
        F: Fn(Context<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<model::ResourceTemplate>, Fault>> + Send + 'static,
    {
        self.custom.resources.templates = Some(listing(&self.state, list));
        self
    }

    /// Reads the server's own resources by a handler, listed or not: it is
    /// given whatever URI the caller has put nothing by at and nothing is
    /// registered for, and says
    /// [`ResourceError::NotFound`] where there is nothing. The URI is as the
    /// caller wrote it; a handler that takes a part of it for the name of a
    /// file has to see where that leads
    /// ([`UriTemplate::matches`](crate::uri_template::UriTemplate::matches) does).
    #[must_use]
    pub fn read_resource<F, Fut, R>(mut self, read: F) -> Self
    where
        F: Fn(Context<S>, String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, ResourceError>> + Send + 'static,
        R: IntoContent + Send + 'static,
    {
        let state = Arc::clone(&self.state);
        self.custom.resources.read = Some(Box::new(move |scope, uri| {
            let reading = read(Context::new(scope, Arc::clone(&state)), uri);
            async move { reading.await?.into_content().await }.boxed()
        }));
        self
    }
}

impl<S> Context<S> {
    /// The server's own resources and templates for this caller, where
    /// handlers list them.
    ///
    /// # Errors
    /// What the handlers say.
    pub async fn listed_by_hand(
        &self,
    ) -> Result<(Vec<model::Resource>, Vec<model::ResourceTemplate>), Fault> {
        let (registry, scope) = (self.registry(), self.scope());
        let resources = registry.custom_resources(scope.clone()).await?;
        Ok((resources, registry.custom_templates(scope.clone()).await?))
    }
}

impl Resources {
    pub(super) fn check(&self, faults: &mut Vec<String>) {
        let lists = self.list.is_some() || self.templates.is_some();
        let reads = self.read.is_some();
        // URIs tell whose a resource is, so what is registered may stand beside.
        pair(("resources/list", lists), ("resources/read", reads), None, faults);
    }

    /// Whether resources are listed and read by hand.
    pub(in crate::registry) fn is_there(&self) -> bool {
        self.read.is_some()
    }

    pub(in crate::registry) async fn list(
        &self,
        scope: Arc<Scope>,
    ) -> Result<Vec<model::Resource>, Fault> {
        listed(self.list.as_ref(), "resources/list", scope).await
    }

    pub(in crate::registry) async fn templates(
        &self,
        scope: Arc<Scope>,
    ) -> Result<Vec<model::ResourceTemplate>, Fault> {
        listed(self.templates.as_ref(), "resources/templates/list", scope).await
    }

    /// What the handler reads; nothing where it finds nothing.
    pub(in crate::registry) async fn read(
        &self,
        uri: &str,
        scope: Arc<Scope>,
    ) -> Option<Result<(Content, Option<String>), Fault>> {
        let read = self.read.as_ref()?;
        let request_id = Arc::clone(&scope.request_id);
        let content = resource::guarded(uri, &request_id, || read(scope, uri.to_owned())).await;
        match content {
            Err(Fault::ResourceNotFound { .. }) => None,
            content => Some(content.map(|content| {
                let mime_type = content.given_mime_type().map(str::to_owned);
                (content, mime_type)
            })),
        }
    }
}
