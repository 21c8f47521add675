//! Creating, reading, updating, deleting and sharing resources in a handler.

use std::{future::IntoFuture, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use larder_protocol::Fault;
use larder_store::store::{
    Content, Deleted, Details, Entry, ResourceUri, Rewrite, Share, StoreError, StoredResource,
};

use super::{Context, details_setters};
use crate::handler::{ReadContent, Scope, ToolError};

impl<S> Context<S> {
    /// Stores a large result as a resource of the caller. Await the returned
    /// builder, or set metadata first.
    ///
    /// ```
    /// use std::time::Duration;
    /// use larder_server::{Context, ToolError};
    ///
    /// /// Searches the logs.
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Search {
    ///     /// The text to find.
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
    ///     Ok(format!("The search found 100000 results. Access at {entry}"))
    /// }
    /// ```
    pub fn create_resource(
        &self,
        uri: impl Into<String>,
        content: impl Into<Content>,
    ) -> CreateResource<'_> {
        CreateResource::new(self.scope(), uri.into(), content.into())
    }

    /// Replaces the content of a resource. Name, description, media type and
    /// expiry stay, unless the builder sets them.
    ///
    /// # Errors
    /// The errors of [`Store::update`](larder_store::store::Store::update);
    /// [`StoreError::ReadOnly`] for a resource of the server's definition.
    pub fn update_resource(
        &self,
        uri: impl Into<String>,
        content: impl Into<Content>,
    ) -> UpdateResource<'_> {
        UpdateResource::new(self.scope(), uri.into(), NewContent::Given(content.into()))
    }

    /// Writes a resource from its own content as a new revision: with other metadata, with
    /// more at its end, or with the content of an earlier revision. What the builder does not
    /// set stays.
    ///
    /// ```
    /// use larder_store::store::Rewrite;
    /// use larder_server::{Context, ToolError};
    ///
    /// async fn log(ctx: &Context, line: String) -> Result<(), ToolError> {
    ///     let appended = (line + "\n").into();
    ///     ctx.rewrite_resource("notes://log", Rewrite { appended, ..Rewrite::default() }).await?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// The errors of [`Store::rewrite`](larder_store::store::Store::rewrite);
    /// [`StoreError::ReadOnly`] for a resource of the server's definition.
    pub fn rewrite_resource(&self, uri: impl Into<String>, rewrite: Rewrite) -> UpdateResource<'_> {
        UpdateResource::new(self.scope(), uri.into(), NewContent::Rewritten(rewrite))
    }

    /// Deletes a resource. Returns whether it existed.
    ///
    /// # Errors
    /// [`StoreError::InvalidUri`], [`StoreError::Unavailable`];
    /// [`StoreError::ReadOnly`] for a resource of the server's definition.
    pub async fn delete_resource(&self, uri: &str) -> Result<bool, StoreError> {
        let scope = self.scope();
        let uri = ResourceUri::parse(uri)?;

        let deleted = scope.store.delete(scope.identity.owner(), &uri).await?;
        if !deleted && scope.server.is_static(uri.as_str()) {
            return Err(StoreError::ReadOnly { uri });
        }
        Ok(deleted)
    }

    /// Deletes the caller's resources whose URIs begin with `prefix`, at most `limit` of them.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`]; some resources may be deleted then.
    pub async fn delete_resources(
        &self,
        prefix: &str,
        limit: usize,
    ) -> Result<Deleted, StoreError> {
        let scope = self.scope();
        scope.store.delete_prefix(scope.identity.owner(), prefix, limit).await
    }

    /// Shares one of the caller's resources by a link: a resource whose URI cannot be guessed. Give
    /// an [`Audience`](larder_store::store::Audience), or a [`Share`] with a time to live. The link
    /// expires with the resource, or earlier. Deleting the link ends the sharing.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::Expired`], [`StoreError::Full`].
    pub async fn share_resource(
        &self,
        uri: &str,
        share: impl Into<Share>,
    ) -> Result<Arc<Entry>, StoreError> {
        let scope = self.scope();
        let uri = ResourceUri::parse(uri)?;
        scope.store.share(&scope.identity, &uri, share, &scope.random.id()).await
    }

    /// Finds one of the caller's resources, or a resource that is shared with them.
    /// The result has the metadata, and reads content by window, as a stream or
    /// as a whole.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::Expired`].
    pub async fn read_resource(&self, uri: &str) -> Result<StoredResource, StoreError> {
        let scope = self.scope();
        scope.store.read_named(&scope.identity, uri).await
    }

    /// The stored revisions of one of the caller's resources, oldest first; the
    /// current one is last.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::Expired`].
    pub async fn revisions(&self, uri: &str) -> Result<Vec<StoredResource>, StoreError> {
        let scope = self.scope();
        scope.store.read_revisions(&scope.identity, &ResourceUri::parse(uri)?).await
    }

    /// Finds a dynamic resource, or else a static resource of the server's definition.
    ///
    /// # Errors
    /// The error that reading the resource would return to the caller.
    pub async fn find(&self, uri: &str) -> Result<StoredResource, Fault> {
        let scope = self.scope();
        let missing = match self.read_resource(uri).await {
            Ok(found) => return Ok(found),
            Err(missing) => missing,
        };

        let Some(content) = scope.server.read(uri, scope.clone()).await else {
            return Err(missing.into());
        };
        self.detached(uri, content?.only(uri)?).await
    }

    /// Finds a resource as [`Context::find`] does, with all contents of a static resource that
    /// has several.
    ///
    /// # Errors
    /// The errors of [`Context::find`].
    pub(crate) async fn find_all(&self, uri: &str) -> Result<Vec<StoredResource>, Fault> {
        let scope = self.scope();
        let missing = match self.read_resource(uri).await {
            Ok(found) => return Ok(vec![found]),
            Err(missing) => missing,
        };

        let contents = scope.server.read(uri, scope.clone()).await.ok_or(missing)??;
        let mut found = Vec::new();
        for content in contents {
            found.push(self.detached(uri, content).await?);
        }
        Ok(found)
    }

    /// A content of the static resource `of`.
    async fn detached(&self, of: &str, read: ReadContent) -> Result<StoredResource, Fault> {
        let ReadContent { uri, mime_type, content, .. } = read;
        let scope = self.scope();
        let details = Details { mime_type, ..Details::default() };
        let uri = ResourceUri::of_listed(uri.as_deref().unwrap_or(of));
        let owner = scope.identity.owner().clone();
        Ok(StoredResource::detached(uri, owner, content, details, scope.store.now()).await?)
    }

    /// Finds a revision of one of the caller's resources; without a revision number, finds a
    /// resource as [`Context::find`] does.
    ///
    /// # Errors
    /// The errors of [`Context::find`].
    pub async fn find_revision(
        &self,
        uri: &str,
        revision: Option<u64>,
    ) -> Result<StoredResource, Fault> {
        let Some(_) = revision else { return self.find(uri).await };
        let scope = self.scope();
        let uri = ResourceUri::parse(uri).map_err(StoreError::from)?;
        Ok(scope.store.read_revision(&scope.identity, &uri, revision).await?)
    }

    /// Finds a resource as [`Context::find`] does, with an error for the model.
    ///
    /// # Errors
    /// The errors of [`Context::find`].
    pub async fn read_any(&self, uri: &str) -> Result<StoredResource, ToolError> {
        self.find(uri).await.map_err(|fault| ToolError::new(fault.to_string()))
    }

    /// Finds a revision as [`Context::find_revision`] does, with an error for the model.
    ///
    /// # Errors
    /// The errors of [`Context::find`].
    pub async fn read_any_revision(
        &self,
        uri: &str,
        revision: Option<u64>,
    ) -> Result<StoredResource, ToolError> {
        self.find_revision(uri, revision).await.map_err(|fault| ToolError::new(fault.to_string()))
    }
}

/// Creates a resource when awaited.
#[must_use = "nothing is created until it is awaited"]
pub struct CreateResource<'a> {
    scope: &'a Scope,
    uri: String,
    content: Content,
    details: Details,
}

impl<'a> CreateResource<'a> {
    pub(crate) fn new(scope: &'a Scope, uri: String, content: Content) -> Self {
        Self { scope, uri, content, details: Details::default() }
    }
}

impl CreateResource<'_> {
    details_setters!();

    /// Sets all metadata at once.
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

enum NewContent {
    Given(Content),
    Rewritten(Rewrite),
}

/// Updates a resource when awaited.
#[must_use = "nothing is updated until it is awaited"]
pub struct UpdateResource<'a> {
    scope: &'a Scope,
    uri: String,
    content: NewContent,
    details: Details,
}

impl<'a> UpdateResource<'a> {
    fn new(scope: &'a Scope, uri: String, content: NewContent) -> Self {
        Self { scope, uri, content, details: Details::default() }
    }
}

impl UpdateResource<'_> {
    /// A new time to live, from now on. By default the expiry stays.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.details.ttl = Some(ttl);
        self
    }

    /// Replaces the metadata that is set; the rest stays.
    pub fn details(mut self, details: Details) -> Self {
        self.details = details;
        self
    }
}

impl<'a> IntoFuture for UpdateResource<'a> {
    type Output = Result<Arc<Entry>, StoreError>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let uri = ResourceUri::parse(&self.uri)?;
            let store = &self.scope.store;
            let owner = self.scope.identity.owner();
            let updated = match self.content {
                NewContent::Given(content) => {
                    store.update(owner, uri.clone(), content, self.details).await
                }
                NewContent::Rewritten(rewrite) => {
                    store.rewrite(owner, uri.clone(), rewrite, self.details).await
                }
            };

            match updated {
                Err(error) if error.is_not_found() && self.scope.server.is_static(uri.as_str()) => {
                    Err(StoreError::ReadOnly { uri })
                }
                updated => updated,
            }
        })
    }
}
