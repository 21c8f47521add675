//! Resources of the server's own definition.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{FutureExt, future::BoxFuture};
use rmcp::model;

use super::{
    access,
    item::{self, Item, annotation_setters, common_setters},
    marks,
};
use crate::{
    handler::{Context, IntoContent, ResourceError, Scope},
    protocol::Fault,
    store::{Content, ResourceUri},
};

type ReadResult = Result<Content, ResourceError>;
type Handler<S> = Box<dyn Fn(Context<S>) -> BoxFuture<'static, ReadResult> + Send + Sync>;

/// A resource that is always there, read anew each time.
///
/// ```
/// use larder::{Context, Registry, Resource};
///
/// let registry = Registry::builder("docs")
///     .resource(Resource::text("docs://welcome", "Hello."))
///     .resource(Resource::new("docs://time", |_: Context| async { "now" }).title("The time"))
///     .build()?;
/// assert_eq!(registry.catalog().resources().len(), 2);
/// # Ok::<(), larder::BuildError>(())
/// ```
pub struct Resource<S = ()> {
    listed: model::Resource,
    scopes: Vec<String>,
    handler: Handler<S>,
    stat: Option<Stat>,
}

/// What is known of a resource without reading it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts {
    pub(crate) size: Option<u64>,
    pub(crate) last_modified: Option<String>,
}

/// Looks, each time the resource is listed.
pub(crate) type Stat = Box<dyn Fn() -> BoxFuture<'static, Facts> + Send + Sync>;

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
            scopes: Vec::new(),
            handler: Box::new(move |context| read(context).then(R::into_content).boxed()),
            stat: None,
        }
    }

    /// Text that does not change.
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        let text = Bytes::from(text.into());
        let size = text.len() as u64;
        let mut resource =
            Self::new(uri, move |_| std::future::ready(Content::shared_text(text.clone())));
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

    /// How many bytes it has.
    #[must_use]
    pub fn size(mut self, bytes: u64) -> Self {
        self.listed.size = Some(bytes);
        self
    }

    common_setters!();
    annotation_setters!();

    /// Asks for size and last change whenever the resource is listed.
    pub(crate) fn stat(mut self, stat: Stat) -> Self {
        self.stat = Some(stat);
        self
    }

    pub(super) fn register(self, state: &Arc<S>, faults: &mut Vec<String>) -> Registered {
        if let Err(invalid) = ResourceUri::parse(&self.listed.uri) {
            faults.push(format!("Resource: {invalid}"));
        }
        let item = format!("Resource {:?}", self.listed.uri);
        let scopes = access::read(&item, &self.scopes, faults);
        marks::check_icons(&item, self.listed.icons.as_deref().unwrap_or_default(), faults);
        marks::check_annotations(&item, self.listed.annotations.as_ref(), faults);
        let (state, handler) = (Arc::clone(state), self.handler);
        let read = move |scope| handler(Context::new(scope, Arc::clone(&state)));
        Item { listed: self.listed, scopes, body: Body { read: Box::new(read), stat: self.stat } }
    }
}

pub(super) type Registered = Item<model::Resource, Body>;

pub(super) struct Body {
    read: Box<dyn Fn(Arc<Scope>) -> BoxFuture<'static, ReadResult> + Send + Sync>,
    stat: Option<Stat>,
}

impl Registered {
    /// The content and its media type, if the definition gives one.
    pub(super) async fn read(
        &self,
        uri: &str,
        scope: Arc<Scope>,
    ) -> Result<(Content, Option<String>), Fault> {
        let content = guarded(uri, &scope.request_id.clone(), || (self.body.read)(scope)).await?;
        let given = content.given_mime_type().map(str::to_owned);
        Ok((content, given.or_else(|| self.listed.mime_type.clone())))
    }

    /// As it is listed, with what can be known now without reading it.
    pub(super) async fn listed_now(&self) -> model::Resource {
        let mut listed = self.listed.clone();
        if let Some(stat) = &self.body.stat {
            let facts = stat().await;
            listed.size = facts.size;
            if let Some(time) = facts.last_modified {
                listed.annotations.get_or_insert_default().last_modified = Some(time);
            }
        }
        listed
    }
}

/// Runs a resource handler; a panic in it is this read's failure alone.
pub(super) async fn guarded(
    uri: &str,
    request_id: &str,
    read: impl FnOnce() -> BoxFuture<'static, ReadResult>,
) -> Result<Content, Fault> {
    match item::guarded("resource", uri, request_id, read).await {
        Ok(result) => result.map_err(|error| error.into_fault(uri)),
        Err(_) => Err(Fault::Internal(format!(
            "Reading {uri} failed with an internal error (request {request_id})."
        ))),
    }
}
