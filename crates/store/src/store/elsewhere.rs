//! Counts what is stored for an owner outside of the store.

use std::time::Duration;

use larder_identity::Owner;

use super::{ResourceUri, Store, StoreError};

/// The URI for which room is made. No resource can have it, so nothing is removed for it.
const URI: &str = "larder://shared/elsewhere";

impl Store {
    /// Counts `bytes` towards the quota of the owner for `ttl`, as an upload in progress of that ID
    /// does, in place of what the ID has counted before. 0 ends it.
    ///
    /// # Errors
    /// [`StoreError::Full`]; it counts as much as before then.
    pub async fn count_elsewhere(
        &self,
        owner: &Owner,
        id: &str,
        bytes: u64,
        ttl: Duration,
    ) -> Result<(), StoreError> {
        if bytes > 0 {
            let uri = ResourceUri::parse(URI)?;
            let before = self.backend.reserve(owner, &uri, id, bytes, ttl).await?;

            if before <= bytes {
                return Ok(());
            }
        }
        self.backend.release(owner, id, bytes).await
    }
}
