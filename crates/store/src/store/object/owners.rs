//! Lists owners by their ledgers.

use futures_util::TryStreamExt;
use larder_identity::Owner;
use object_store::path::Path;

use super::{ObjectState, layout, stored_entry::StoredEntry};
use crate::store::{OwnerPage, StoreError};

impl ObjectState {
    /// A page of owners, which begins after the owner whose ledger has the folder `after`.
    pub(super) async fn owners(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<OwnerPage, StoreError> {
        let after = after
            .and_then(|after| layout::ledgers_after(after).ok())
            .unwrap_or_else(layout::ledgers);
        let mut records = self.objects.list_after(&layout::ledgers(), after);

        let mut owners = Vec::new();
        let mut last = None;
        while let Some(record) = records.try_next().await? {
            let Some(ledger) = layout::folder(&record) else { continue };
            if last.as_ref() == Some(&ledger) {
                continue;
            }

            if owners.len() >= limit.max(1) {
                let next = last.as_ref().and_then(Path::filename).map(str::to_owned);
                return Ok(OwnerPage { owners, next });
            }

            owners.extend(self.owner_of(&ledger).await?);
            last = Some(ledger);
        }

        Ok(OwnerPage { owners, next: None })
    }

    /// The owner of a ledger. A name that is too long for a path is read from one of the owner's
    /// entries; `None` without an entry.
    async fn owner_of(&self, ledger: &Path) -> Result<Option<Owner>, StoreError> {
        if let Some(owner) = layout::owner(ledger) {
            return Ok(Some(owner));
        }

        let Some(folder) = ledger.filename().and_then(|name| Path::parse(name).ok()) else {
            return Ok(None);
        };

        let mut files = self.objects.list(&folder);
        while let Some(file) = files.try_next().await? {
            if layout::number(&file.location).is_some()
                && let Some(bytes) = self.objects.get(&file.location).await?
                && let Ok(stored) = serde_json::from_slice::<StoredEntry>(&bytes)
                && layout::owner_folder(&stored.entry.owner) == folder
            {
                return Ok(Some(stored.entry.owner));
            }
        }

        Ok(None)
    }
}
