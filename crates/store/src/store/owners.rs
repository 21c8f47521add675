//! The owners of a store, for its operator.

use larder_identity::Owner;

use super::{
    Store, StoreError,
    partial::{hidden, is_hidden},
};

/// How many resources are listed and deleted at a time.
const PAGE: usize = 256;

/// A page of the owners of a store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnerPage {
    /// The owners; may be empty although more pages follow.
    pub owners: Vec<Owner>,
    /// The position at which the next page begins; `None` after the last page.
    pub next: Option<String>,
}

impl Store {
    /// A page of about `limit` owners; see [`Backend::owners`](super::Backend::owners). Owners of
    /// the parts of uploads are left out.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn owners(&self, after: Option<&str>, limit: usize) -> Result<OwnerPage, StoreError> {
        let mut page = self.backend.owners(after, limit).await?;
        page.owners.retain(|owner| !is_hidden(owner));
        Ok(page)
    }

    /// Deletes all resources of an owner, and the parts of unfinished uploads. Returns how many
    /// resources were deleted. Resources that the owner writes meanwhile may stay.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`]; some resources may then be deleted.
    pub async fn purge(&self, owner: &Owner) -> Result<u64, StoreError> {
        self.delete_all(&hidden(owner)).await?;
        self.delete_all(owner).await
    }

    async fn delete_all(&self, owner: &Owner) -> Result<u64, StoreError> {
        let mut sum = 0;
        let mut after = None;

        loop {
            let (deleted, last) = self.delete_page(owner, "", after.as_ref(), PAGE).await?;
            sum += deleted.resources;
            after = last;
            if !deleted.more {
                return Ok(sum);
            }
        }
    }
}
