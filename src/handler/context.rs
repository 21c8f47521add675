//! What a handler has at hand while it runs.

use std::{future::IntoFuture, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use rmcp::model::{self, ContentBlock};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Asking, Control, Server, ToolError};
use crate::{
    auth::{Identity, Principal},
    protocol::{ClientFacts, Fault, LogLevel, Outgoing, ProgressToken},
    random::Random,
    store::{Audience, Content, Details, Entry, Found, ResourceUri, Store, StoreError},
};

/// One running call, as the floors above made it.
#[derive(Debug, Clone)]
pub struct Scope {
    /// Minted by the server: unique, and safe to name things with.
    pub request_id: Arc<str>,
    /// Who calls, and what they may do.
    pub identity: Identity,
    /// What the client says of itself.
    pub client: Arc<ClientFacts>,
    /// The session that what is created now ends with, if with any.
    pub session: Option<Arc<str>>,
    /// Where resources lie.
    pub store: Store,
    /// The server that the call runs in.
    pub server: Arc<dyn Server>,
    /// Where ids come from.
    pub random: Random,
    /// Set when the caller wants to hear of progress.
    pub progress_token: Option<ProgressToken>,
    /// Which log messages the caller wants; none without.
    pub log_level: Option<LogLevel>,
    /// How it can ask its client.
    pub asking: Asking,
    /// What it may ask of whoever runs it.
    pub control: Arc<Control>,
    /// The most that `resources/read` gives at once, in bytes.
    pub read_bytes: u64,
    /// Where messages about this call go. Boxed, so that a channel takes little
    /// where there are none.
    pub outbox: mpsc::Sender<Box<Outgoing>>,
    /// Cancelled when the call is.
    pub cancellation: CancellationToken,
}

/// What a handler has at hand. Cheap to clone.
pub struct Context<S = ()> {
    call: Arc<Running>,
    state: Arc<S>,
}

struct Running {
    scope: Arc<Scope>,
    /// The last progress told; it must rise (2026-07-28, patterns: Progress).
    progress: Mutex<f64>,
}

impl<S> Clone for Context<S> {
    fn clone(&self) -> Self {
        Self { call: Arc::clone(&self.call), state: Arc::clone(&self.state) }
    }
}

impl<S> Context<S> {
    pub(crate) fn new(scope: Arc<Scope>, state: Arc<S>) -> Self {
        let progress = Mutex::new(f64::NEG_INFINITY);
        Self { call: Arc::new(Running { scope, progress }), state }
    }

    /// The server's own state, as given to [`Builder::state`](super::Builder::state).
    pub fn state(&self) -> &S {
        &self.state
    }

    /// A name for this call that no other call has: 128 random bits in
    /// hexadecimal. The JSON-RPC id is chosen by the client, repeats, and is
    /// not for naming things.
    pub fn request_id(&self) -> &str {
        &self.call.scope.request_id
    }

    /// Who calls.
    pub fn principal(&self) -> &Principal {
        self.call.scope.identity.principal()
    }

    /// Who calls, and what they may do.
    pub fn identity(&self) -> &Identity {
        &self.call.scope.identity
    }

    /// What the client says of itself; not verified.
    pub fn client(&self) -> &ClientFacts {
        &self.call.scope.client
    }

    /// The store, for what the methods here do not do.
    pub fn store(&self) -> &Store {
        &self.call.scope.store
    }

    /// How much text this call's answer may have, in bytes, before it is put by
    /// as a resource: for tools that bound their answers themselves.
    pub fn output_bytes(&self) -> usize {
        self.call.scope.server.output_bytes(&self.call.scope.client)
    }

    /// How much of a resource may be read at once, in bytes.
    pub fn read_bytes(&self) -> u64 {
        self.call.scope.read_bytes
    }

    /// Cancelled when the call is. The handler itself is dropped then; this is
    /// for work that it handed to others.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.call.scope.cancellation
    }

    /// Tells the caller how far the work is, if it asked to be told. `done`
    /// must rise from call to call; what does not rise is not sent. Waits
    /// while the caller is slow to read.
    pub async fn progress(&self, done: f64, total: Option<f64>, message: Option<&str>) {
        let scope = &self.call.scope;
        if let (Some(task), Some(message)) = (scope.control.task(), message) {
            // A task has no stream; whoever polls it sees how it goes.
            task.note(message).await;
        }
        let Some(token) = scope.progress_token.clone() else { return };
        {
            let mut last = self.call.progress.lock();
            if !done.is_finite() || done <= *last {
                return;
            }
            *last = done;
        }
        let message = message.map(str::to_owned);
        let total = total.filter(|t| t.is_finite());
        self.send(Outgoing::Progress { token, progress: done, total, message }).await;
    }

    /// Sends the caller a log message about this call, if it wants messages of
    /// that level (2025-11-25 and 2026-07-28, utilities: Logging). No secrets
    /// and nothing internal belong in it.
    pub async fn log(&self, level: LogLevel, data: impl Into<serde_json::Value>) {
        let data = data.into();
        if self.call.scope.log_level.is_some_and(|wanted| level >= wanted) {
            self.send(Outgoing::Log { level, logger: None, data }).await;
        }
    }

    /// Closes the connection that this call is answered on, where it can be
    /// resumed, so that a long call holds none; the client comes back after
    /// `retry` (2025-11-25, transports: Sending Messages). Without effect
    /// elsewhere.
    pub async fn disconnect(&self, retry: Duration) {
        self.send(Outgoing::Disconnect { retry }).await;
    }

    pub(crate) fn shared_state(&self) -> &Arc<S> {
        &self.state
    }

    pub(crate) fn scope(&self) -> &Arc<Scope> {
        &self.call.scope
    }

    pub(crate) async fn send(&self, message: Outgoing) {
        // Nobody listening any more is no failure of the handler's.
        let _ = self.call.scope.outbox.send(Box::new(message)).await;
    }

    /// Puts a large result by. Await it as it is, or say more of it first.
    ///
    /// ```
    /// use std::time::Duration;
    /// use larder::{Context, ToolError};
    ///
    /// /// Searches the logs.
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Search {
    ///     /// What to look for.
    ///     query: String,
    /// }
    ///
    /// async fn search(ctx: Context, args: Search) -> Result<String, ToolError> {
    ///     let results = vec!["line"; 100_000].join("\n");
    ///     let entry = ctx
    ///         .create_resource(format!("results://search/{}", ctx.request_id()), results)
    ///         .name(format!("Search Results: {}", args.query))
    ///         .ttl(Duration::from_secs(3600))
    ///         .await?;
    ///     Ok(format!("Found 100000 results. Access at {entry}"))
    /// }
    /// ```
    pub fn create_resource(
        &self,
        uri: impl Into<String>,
        content: impl Into<Content>,
    ) -> CreateResource<'_> {
        CreateResource {
            scope: &self.call.scope,
            uri: uri.into(),
            content: content.into(),
            details: Details::default(),
        }
    }

    /// Gives a resource new content; name, description, type and expiry stay.
    ///
    /// # Errors
    /// As [`Store::update`]; [`StoreError::ReadOnly`] for what is part of the
    /// server's definition.
    pub fn update_resource(
        &self,
        uri: impl Into<String>,
        content: impl Into<Content>,
    ) -> UpdateResource<'_> {
        let scope = &self.call.scope;
        UpdateResource { scope, uri: uri.into(), content: content.into(), ttl: None }
    }

    /// Removes a resource; says whether there was one.
    ///
    /// # Errors
    /// [`StoreError::InvalidUri`], [`StoreError::Unavailable`];
    /// [`StoreError::ReadOnly`] for what is part of the server's definition.
    pub async fn delete_resource(&self, uri: &str) -> Result<bool, StoreError> {
        let (scope, uri) = (&self.call.scope, ResourceUri::parse(uri)?);
        let deleted = scope.store.delete(scope.identity.owner(), &uri).await?;
        if !deleted && scope.server.is_static(uri.as_str()) {
            return Err(StoreError::ReadOnly { uri });
        }
        Ok(deleted)
    }

    /// Lets others read one of the caller's resources, by a link that nobody can
    /// guess: the URI of what this gives. It expires with the resource; deleting
    /// the link takes it back.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::Expired`], [`StoreError::Full`].
    pub async fn share_resource(
        &self,
        uri: &str,
        audience: Audience,
    ) -> Result<Arc<Entry>, StoreError> {
        let (scope, uri) = (&self.call.scope, ResourceUri::parse(uri)?);
        scope.store.share(&scope.identity, &uri, audience, &scope.random.id()).await
    }

    /// One of the caller's resources, or one that is shared with them: what it is, and its content by window,
    /// as a stream, or whole.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::Expired`].
    pub async fn read_resource(&self, uri: &str) -> Result<Found, StoreError> {
        let scope = &self.call.scope;
        scope.store.read(&scope.identity, &ResourceUri::parse(uri)?).await
    }

    /// Whatever can be read at that URI; or, where a revision is named, that one
    /// of the caller's resource.
    ///
    /// # Errors
    /// In words for the model.
    pub async fn read_any_at(&self, uri: &str, revision: Option<u64>) -> Result<Found, ToolError> {
        self.find_at(uri, revision).await.map_err(|fault| ToolError::new(fault.to_string()))
    }

    /// The same, for a resource that shows another one.
    ///
    /// # Errors
    /// As reading that one would be answered.
    pub async fn find_at(&self, uri: &str, revision: Option<u64>) -> Result<Found, Fault> {
        let Some(_) = revision else { return self.find(uri).await };
        let scope = &self.call.scope;
        let uri = ResourceUri::parse(uri).map_err(StoreError::from)?;
        Ok(scope.store.read_revision(&scope.identity, &uri, revision).await?)
    }

    /// The revisions that are kept of one of the caller's resources, oldest first
    /// and the present one last.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::Expired`].
    pub async fn revisions(&self, uri: &str) -> Result<Vec<Found>, StoreError> {
        let scope = &self.call.scope;
        scope.store.read_revisions(&scope.identity, &ResourceUri::parse(uri)?).await
    }

    /// Whatever can be read at that URI, dynamic first, then what the server's
    /// own definition has there.
    ///
    /// # Errors
    /// In words for the model.
    pub async fn read_any(&self, uri: &str) -> Result<Found, ToolError> {
        self.find(uri).await.map_err(|fault| ToolError::new(fault.to_string()))
    }

    /// The same, for a resource that shows another one.
    ///
    /// # Errors
    /// As reading that one would be answered.
    pub async fn find(&self, uri: &str) -> Result<Found, Fault> {
        let scope = &self.call.scope;
        let missing = match self.read_resource(uri).await {
            Ok(found) => return Ok(found),
            Err(missing) => missing,
        };
        // A future within one of its own kind has to be boxed.
        let read = scope.server.read(uri, scope.clone());
        let Some(read) = read.await else { return Err(missing.into()) };
        let (content, mime_type) = read?;
        let details = Details { mime_type, ..Details::default() };
        let uri = ResourceUri::parse(uri).map_err(StoreError::from)?;
        let owner = scope.identity.owner().clone();
        Ok(Found::detached(uri, owner, content, details, scope.store.now()).await?)
    }

    /// A URI that nobody can guess: `larder://r/` and 128 random bits.
    pub fn mint_uri(&self) -> String {
        format!("larder://r/{}", self.call.scope.random.id())
    }
}

/// A resource about to be created; awaiting it does.
#[must_use = "nothing is created until it is awaited"]
pub struct CreateResource<'a> {
    scope: &'a Scope,
    uri: String,
    content: Content,
    details: Details,
}

impl CreateResource<'_> {
    /// Short name; the last part of the URI by default.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.details.name = Some(name.into());
        self
    }

    /// A name for people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.details.title = Some(title.into());
        self
    }

    /// What is in it.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.details.description = Some(description.into());
        self
    }

    /// The media type; by the kind of content by default.
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.details.mime_type = Some(mime_type.into());
        self
    }

    /// How long it lives; a day by default.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.details.ttl = Some(ttl);
        self
    }

    /// All of the above at once.
    pub fn details(mut self, details: Details) -> Self {
        self.details = details;
        self
    }
}

impl<'a> IntoFuture for CreateResource<'a> {
    type Output = Result<Arc<Entry>, StoreError>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let uri = ResourceUri::parse(&self.uri)?;
            let owner = self.scope.identity.owner();
            let details = Details { session: self.scope.session.clone(), ..self.details };
            self.scope.store.create(owner, uri, self.content, details).await
        })
    }
}

/// New content about to be stored; awaiting it does.
#[must_use = "nothing is updated until it is awaited"]
pub struct UpdateResource<'a> {
    scope: &'a Scope,
    uri: String,
    content: Content,
    ttl: Option<Duration>,
}

impl UpdateResource<'_> {
    /// A new time to live, from now, instead of the old expiry.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }
}

impl<'a> IntoFuture for UpdateResource<'a> {
    type Output = Result<Arc<Entry>, StoreError>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let uri = ResourceUri::parse(&self.uri)?;
            let owner = self.scope.identity.owner();
            let updated = self.scope.store.update(owner, uri.clone(), self.content, self.ttl).await;
            match updated {
                Err(error) if error.is_not_found() && self.scope.server.is_static(uri.as_str()) => {
                    Err(StoreError::ReadOnly { uri })
                }
                updated => updated,
            }
        })
    }
}

impl Entry {
    /// As `resources/list` shows it.
    pub fn to_resource(&self) -> model::Resource {
        let mut resource = model::Resource::new(self.uri.as_str(), &self.name);
        resource.title.clone_from(&self.title);
        resource.description.clone_from(&self.description);
        resource.mime_type = Some(self.mime_type.clone());
        resource.size = Some(self.size);
        let mut annotations = model::Annotations::default();
        annotations.last_modified = Some(self.updated.to_string());
        resource.annotations = Some(annotations);
        resource
    }

    /// A `resource_link` to it, for a tool's result beside the URI in plain
    /// text: many hosts show the text only.
    pub fn to_link(&self) -> ContentBlock {
        ContentBlock::resource_link(self.to_resource())
    }
}
