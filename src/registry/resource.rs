//! Resources of the server's own definition.

use std::{panic::AssertUnwindSafe, sync::Arc};

use bytes::Bytes;
use futures_util::{FutureExt, future::BoxFuture};
use rmcp::model;

use super::{Context, IntoContent, ResourceError, Scope, collection::Item};
use crate::{
    protocol::Fault,
    store::{Content, ResourceUri},
};

type ReadResult = Result<Content, ResourceError>;
type Handler<S> = Box<dyn Fn(Context<S>) -> BoxFuture<'static, ReadResult> + Send + Sync>;

/// A resource that is always there, read anew each time.
///
/// ```
/// use larder::registry::{Context, Registry, Resource};
///
/// let registry = Registry::builder("docs")
///     .resource(Resource::text("docs://welcome", "Hello."))
///     .resource(Resource::new("docs://time", |_: Context| async { "now" }).title("The time"))
///     .build()?;
/// assert_eq!(registry.catalog().resources().len(), 2);
/// # Ok::<(), larder::registry::BuildError>(())
/// ```
pub struct Resource<S = ()> {
    listed: model::Resource,
    handler: Handler<S>,
}

impl<S: Send + Sync + 'static> Resource<S> {
    /// A resource that this handler reads.
    pub fn new<F, Fut, R>(uri: impl Into<String>, read: F) -> Self
    where
        F: Fn(Context<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = R> + Send + 'static,
        R: IntoContent + 'static,
    {
        let uri = uri.into();
        let name = uri.rsplit(['/', ':']).find(|part| !part.is_empty()).unwrap_or(&uri).to_owned();
        let listed = model::Resource::new(uri, name);
        Self {
            listed,
            handler: Box::new(move |context| read(context).map(R::into_content).boxed()),
        }
    }

    /// Text that does not change.
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        let text: Arc<str> = text.into().into();
        let size = text.len() as u64;
        let mut resource = Self::new(uri, move |_| std::future::ready(text.to_string()));
        resource.listed.mime_type = Some("text/plain".into());
        resource.listed.size = Some(size);
        resource
    }

    /// Bytes that do not change.
    pub fn binary(uri: impl Into<String>, bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        let size = bytes.len() as u64;
        let mut resource = Self::new(uri, move |_| std::future::ready(bytes.clone()));
        resource.listed.mime_type = Some("application/octet-stream".into());
        resource.listed.size = Some(size);
        resource
    }

    /// Short name; the last part of the URI by default.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.listed.name = name.into();
        self
    }

    /// A name for people.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.listed.title = Some(title.into());
        self
    }

    /// What is in it.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.listed.description = Some(description.into());
        self
    }

    /// The media type.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.listed.mime_type = Some(mime_type.into());
        self
    }

    pub(super) fn register(self, state: &Arc<S>, faults: &mut Vec<String>) -> Registered {
        if let Err(invalid) = ResourceUri::parse(&self.listed.uri) {
            faults.push(format!("Resource: {invalid}"));
        }
        let (state, handler) = (Arc::clone(state), self.handler);
        let read = move |scope| handler(Context::new(scope, Arc::clone(&state)));
        Registered { listed: self.listed, read: Box::new(read) }
    }
}

pub(super) struct Registered {
    pub(super) listed: model::Resource,
    read: Box<dyn Fn(Scope) -> BoxFuture<'static, ReadResult> + Send + Sync>,
}

impl Item for Registered {
    type Listed = model::Resource;
    const WHAT: &'static str = "Resource";
    const LIST: &'static str = "resources";

    fn listed(&self) -> &model::Resource {
        &self.listed
    }

    fn key(&self) -> &str {
        &self.listed.uri
    }
}

impl Registered {
    /// The content and its media type, if the definition gives one.
    pub(super) async fn read(
        &self,
        uri: &str,
        scope: Scope,
    ) -> Result<(Content, Option<String>), Fault> {
        let content = guarded(uri, || (self.read)(scope)).await?;
        Ok((content, self.listed.mime_type.clone()))
    }
}

/// Runs a resource handler; a panic in it is this read's failure alone.
pub(super) async fn guarded(
    uri: &str,
    read: impl FnOnce() -> BoxFuture<'static, ReadResult>,
) -> Result<Content, Fault> {
    match AssertUnwindSafe(async { read().await }).catch_unwind().await {
        Ok(result) => result.map_err(|error| error.into_fault(uri)),
        Err(_) => {
            tracing::error!(uri, "the resource's handler panicked");
            Err(Fault::Internal(format!("Reading {uri} failed with an internal error.")))
        }
    }
}
