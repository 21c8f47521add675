//! The uploads in parts that have begun alike, such as all by one link.

use larder_identity::Owner;

use super::{
    PartialUpload, Store, StoreError,
    partial::{hidden, record_uri},
};

/// The beginning of the URIs of records.
const RECORD_PREFIX: &str = "upload:";

impl Store {
    /// The uploads of the owner whose IDs begin so, unless they are stored or removed; the oldest
    /// first. IDs must have one length, and letters and digits only.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn open_uploads(
        &self,
        owner: &Owner,
        id: &str,
    ) -> Result<Vec<PartialUpload>, StoreError> {
        let parts_owner = hidden(owner);
        let prefix = record_uri(id)?;
        let mut open = Vec::new();
        let mut after: Option<String> = None;

        loop {
            let page = self.list(&parts_owner, prefix.as_str(), after.as_deref(), 1).await?;
            let Some(entry) = page.entries.first() else { break };
            let path = entry.uri.as_str().strip_prefix(RECORD_PREFIX).unwrap_or_default();
            let id = path.split('/').next().unwrap_or_default();
            // The parts of an upload have a slash behind its ID, before which a digit sorts nothing.
            after = Some(format!("{RECORD_PREFIX}{id}0"));

            match self.upload_in_parts(owner, id).await {
                Ok(found) if !found.is_stored() => open.push(found),
                Ok(_) => {}
                // Parts may stay for a while without their record.
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
        open.sort_by_key(PartialUpload::begun);
        Ok(open)
    }

    /// An upload of the owner whose ID begins so, unless it is stored or removed.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn open_upload(
        &self,
        owner: &Owner,
        id: &str,
    ) -> Result<Option<PartialUpload>, StoreError> {
        Ok(self.open_uploads(owner, id).await?.pop())
    }

    /// Removes the uploads of the owner whose IDs begin so, but the latest `keep` of them and the
    /// one with the ID `except`.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`]; some may be removed then.
    pub async fn end_uploads(
        &self,
        owner: &Owner,
        id: &str,
        keep: usize,
        except: Option<&str>,
    ) -> Result<(), StoreError> {
        let mut ended = self.open_uploads(owner, id).await?;
        ended.retain(|upload| except != Some(upload.id()));
        ended.truncate(ended.len().saturating_sub(keep));

        for upload in ended {
            upload.cancel().await?;
        }
        Ok(())
    }
}
