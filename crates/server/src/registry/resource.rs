//! [`Resource`]: a static resource of the server's definition.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{FutureExt, future::BoxFuture};
use larder_protocol::Fault;
use larder_store::store::{Content, ResourceUri};
use rmcp::model;

use super::{
    annotations::{check_annotations, check_icons},
    item::{Item, annotation_setters, catch_panic, common_setters},
    scope_rules,
};
use crate::handler::{Contents, Context, IntoContents, ResourceError, Scope};

type ReadResult = Result<Contents, ResourceError>;
type Handler<S> = Box<dyn Fn(Context<S>) -> BoxFuture<'static, ReadResult> + Send + Sync>;

/// A static resource. Its handler runs for each read.
///
/// ```
/// use larder_server::{Context, Registry, Resource};
///
/// let registry = Registry::builder("docs")
///     .resource(Resource::text("docs://welcome", "Hello."))
///     .resource(Resource::new("docs://time", |_: Context| async { "now" }).title("The time"))
///     .build()?;
/// assert_eq!(registry.catalog().resources().len(), 2);
/// # Ok::<(), larder_server::BuildError>(())
/// ```
pub struct Resource<S = ()> {
    listed: model::Resource,
    scopes: Vec<String>,
    origin: Option<&'static str>,
    handler: Handler<S>,
    stat: Option<StatFn>,
    cache: Option<CacheRule>,
}

/// The rule by which a client may cache the result of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheRule {
    /// The time for which the result is fresh.
    pub ttl: Duration,
    /// Whether callers may share the result.
    pub scope: model::CacheScope,
}

/// The facts about a resource that are known without reading it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ResourceStat {
    pub(crate) size: Option<u64>,
    pub(crate) last_modified: Option<String>,
}

/// Gets the facts about a resource, each time that it is listed.
pub(crate) type StatFn = Box<dyn Fn() -> BoxFuture<'static, ResourceStat> + Send + Sync>;

impl<S: Send + Sync + 'static> Resource<S> {
    /// A resource with this handler.
    pub fn new<F, Fut, R>(uri: impl Into<String>, read: F) -> Self
    where
        F: Fn(Context<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = R> + Send + 'static,
        R: IntoContents + 'static,
    {
        let uri = uri.into();
        let name = uri.rsplit(['/', ':']).find(|part| !part.is_empty()).unwrap_or(&uri).to_owned();
        let listed = model::Resource::new(uri, name);

        Self {
            listed,
            scopes: Vec::new(),
            origin: None,
            handler: Box::new(move |context| read(context).then(R::into_contents).boxed()),
            stat: None,
            cache: None,
        }
    }

    /// Constant text.
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        let text = Bytes::from(text.into());
        let size = text.len() as u64;
        let mut resource =
            Self::new(uri, move |_| std::future::ready(Content::shared_text(text.clone())));
        resource.listed.mime_type = Some("text/plain".into());
        resource.listed.size = Some(size);
        resource
    }

    /// Constant bytes.
    pub fn binary(uri: impl Into<String>, bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        let size = bytes.len() as u64;
        let mut resource = Self::new(uri, move |_| std::future::ready(bytes.clone()));
        resource.listed.mime_type = Some("application/octet-stream".into());
        resource.listed.size = Some(size);
        resource
    }

    /// The short name. Default: the last segment of the URI.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.listed.name = name.into();
        self
    }

    /// A description of the content.
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

    /// The size in bytes.
    #[must_use]
    pub fn size(mut self, bytes: u64) -> Self {
        self.listed.size = Some(bytes);
        self
    }

    common_setters!();
    annotation_setters!();

    /// Gets size and last change each time the resource is listed.
    pub(crate) fn stat(mut self, stat: StatFn) -> Self {
        self.stat = Some(stat);
        self
    }

    pub(super) fn register(self, state: &Arc<S>, problems: &mut Vec<String>) -> RegisteredResource {
        if let Err(invalid) = ResourceUri::parse(&self.listed.uri) {
            problems.push(format!("Resource: {invalid}"));
        }

        let item = format!("Resource {:?}", self.listed.uri);
        let scopes = scope_rules::parse(&item, &self.scopes, problems);
        check_icons(&item, self.listed.icons.as_deref().unwrap_or_default(), problems);
        check_annotations(&item, self.listed.annotations.as_ref(), problems);

        let state = Arc::clone(state);
        let handler = self.handler;
        let read = move |scope| handler(Context::new(scope, Arc::clone(&state)));
        let body = ResourceBody { read: Box::new(read), stat: self.stat, cache: self.cache };
        Item { listed: self.listed, scopes, origin: self.origin, body }
    }
}

pub(super) type RegisteredResource = Item<model::Resource, ResourceBody>;

pub(super) struct ResourceBody {
    read: Box<dyn Fn(Arc<Scope>) -> BoxFuture<'static, ReadResult> + Send + Sync>,
    stat: Option<StatFn>,
    pub(super) cache: Option<CacheRule>,
}

impl RegisteredResource {
    /// The contents. Their own media types win over the definition's.
    pub(super) async fn read(&self, uri: &str, scope: Arc<Scope>) -> Result<Contents, Fault> {
        let contents =
            run_handler(uri, &scope.request_id.clone(), || (self.body.read)(scope)).await?;
        Ok(or_mime_type(contents, self.listed.mime_type.as_deref()))
    }

    /// The list entry with the current size and time of change.
    pub(super) async fn current_entry(&self) -> model::Resource {
        let mut listed = self.listed.clone();
        if let Some(stat) = &self.body.stat {
            let stat = stat().await;
            listed.size = stat.size;
            if let Some(time) = stat.last_modified {
                listed.annotations.get_or_insert_default().last_modified = Some(time);
            }
        }
        listed
    }
}

/// The contents, with the definition's media type for the resource itself if its content has
/// none.
pub(super) fn or_mime_type(mut contents: Contents, listed: Option<&str>) -> Contents {
    for content in contents.iter_mut().filter(|content| content.uri.is_none()) {
        content.mime_type = content.mime_type.take().or_else(|| listed.map(str::to_owned));
    }
    contents
}

/// Runs a resource handler. A panic fails only this read.
pub(super) async fn run_handler(
    uri: &str,
    request_id: &str,
    read: impl FnOnce() -> BoxFuture<'static, ReadResult>,
) -> Result<Contents, Fault> {
    match catch_panic("resource", uri, request_id, read).await {
        Ok(result) => result.map_err(|error| error.into_fault(uri)),
        Err(_) => Err(Fault::Internal(format!(
            "Reading {} failed with an internal error (request {request_id}).",
            larder_protocol::quote::shortened(uri)
        ))),
    }
}
