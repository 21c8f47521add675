//! Copying and moving resources in a handler.

use std::{future::IntoFuture, sync::Arc};

use futures_util::future::BoxFuture;
use larder_store::store::{Details, Entry, ResourceUri, StoreError, StoredResource};

use super::{Context, details_setters};
use crate::handler::Scope;

impl<S> Context<S> {
    /// Stores a copy of a resource, which may be shared with the caller, as a resource of the
    /// caller, with its metadata. A URI that is in use gets a new revision. Await the returned
    /// builder, or set metadata first.
    ///
    /// ```
    /// use larder_server::{Context, ToolError};
    ///
    /// async fn keep(ctx: &Context, uri: &str) -> Result<String, ToolError> {
    ///     let found = ctx.read_resource(uri).await?;
    ///     let copy = ctx.copy_resource(&found, "notes://kept").name("Kept").await?;
    ///     Ok(format!("It is at {copy} until {}.", copy.expires))
    /// }
    /// ```
    ///
    /// # Errors
    /// The errors of [`Store::copy`](larder_store::store::Store::copy).
    pub fn copy_resource(
        &self,
        source: &StoredResource,
        to: impl Into<String>,
    ) -> CopyResource<'_> {
        let scope = self.scope();
        let source = source.clone();
        CopyResource { scope, source, to: to.into(), details: Details::default() }
    }

    /// Moves a resource of the caller to another URI, with its metadata and its expiry, unless
    /// `details` has others. A URI that is in use gets a new revision.
    ///
    /// # Errors
    /// The errors of [`Store::rename`](larder_store::store::Store::rename);
    /// [`StoreError::ReadOnly`] for a resource of the server's definition.
    pub async fn rename_resource(
        &self,
        uri: &str,
        to: &str,
        details: Details,
    ) -> Result<Arc<Entry>, StoreError> {
        let scope = self.scope();
        let uri = ResourceUri::parse(uri)?;
        let to = ResourceUri::parse(to)?;

        match scope.store.rename(scope.identity.owner(), &uri, &to, details).await {
            Err(error) if error.is_not_found() && scope.server.is_static(uri.as_str()) => {
                Err(StoreError::ReadOnly { uri })
            }
            renamed => renamed,
        }
    }
}

/// Copies a resource when awaited.
#[must_use = "nothing is copied until it is awaited"]
pub struct CopyResource<'a> {
    scope: &'a Scope,
    source: StoredResource,
    to: String,
    details: Details,
}

impl CopyResource<'_> {
    details_setters!();

    /// Sets all metadata at once. Metadata that it lacks comes from the source.
    pub fn details(mut self, details: Details) -> Self {
        self.details = details;
        self
    }
}

impl<'a> IntoFuture for CopyResource<'a> {
    type Output = Result<Arc<Entry>, StoreError>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let uri = ResourceUri::parse(&self.to)?;
            let owner = self.scope.identity.owner();
            let details = Details { session: self.scope.session.clone(), ..self.details };
            self.scope.store.copy(&self.source, owner, uri, details).await
        })
    }
}
