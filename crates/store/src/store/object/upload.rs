//! An upload: writes content to an object, unless it is small, then commits the entry.

use std::{any::Any, sync::Arc};

use async_trait::async_trait;
use larder_identity::Owner;
use object_store::path::Path;
use tokio::runtime::Handle;

use super::{
    ObjectBlob, ObjectState, change::PutOperation, content_writer::ContentWriter, layout,
    stored_entry::StoredContent,
};
use crate::store::{
    Committed, Draft, ResourceUri, StoreError, StoredBlock, StoredResource, Upload,
    upload_reservation::UploadReservation,
};

/// An upload of content into an object.
pub(super) struct ObjectUpload {
    state: Arc<ObjectState>,
    owner: Owner,
    /// The folder of the resource.
    resource: Path,

    /// The ID of the content's object, never reused for other content.
    id: String,
    /// Whether the object is the content of a stored revision of the resource, which this upload
    /// shares.
    is_shared: bool,
    /// The bytes of content that have arrived.
    arrived: u64,

    reservation: UploadReservation<ObjectState>,
    writer: ContentWriter,
}

impl ObjectUpload {
    pub(super) fn new(
        state: Arc<ObjectState>,
        owner: Owner,
        uri: &ResourceUri,
        reservation: Option<&str>,
    ) -> Self {
        let id = state.random.id();
        let resource = layout::resource(&owner, uri);
        let path = layout::content(&resource, &id);
        let writer = ContentWriter::new(state.objects.clone(), path);

        let reservation = UploadReservation::new(&state, &owner, uri, reservation);

        let is_shared = false;
        Self { state, owner, resource, id, is_shared, arrived: 0, reservation, writer }
    }

    /// The end of the reservation, if it belongs to this upload alone and has reserved anything.
    fn releasing(&mut self) -> Option<impl Future<Output = ()> + Send + use<>> {
        if !self.reservation.forget() {
            return None;
        }

        let state = Arc::clone(&self.state);
        let owner = self.owner.clone();
        let id = self.reservation.id().to_owned();

        Some(async move {
            if let Err(error) = state.release(&owner, &id, 0).await {
                tracing::debug!(%error, "cannot end a reservation; it will end by itself");
            }
        })
    }
}

#[async_trait]
impl Upload for ObjectUpload {
    async fn reserve(&mut self, bytes: u64) -> Result<(), StoreError> {
        self.writer.check_disk().await?;
        self.reservation.announce(bytes).await
    }

    fn reserved(&self) -> u64 {
        self.reservation.bytes()
    }

    async fn copy(&mut self, source: &StoredResource) -> Result<bool, StoreError> {
        let blob: &dyn Any = &*source.blob;
        let Some(ObjectBlob { objects, path, .. }) = blob.downcast_ref() else { return Ok(false) };
        if !self.state.objects.is_same_location(objects) {
            return Ok(false);
        }

        let shared = layout::shared_content(&self.resource, path);
        if shared.is_none() && !self.state.objects.copies(source.entry.stored_size()) {
            return Ok(false);
        }

        self.arrived = source.entry.size;
        self.reservation.cover(self.arrived).await?;

        match shared {
            Some(id) => {
                id.clone_into(&mut self.id);
                self.is_shared = true;
            }
            None => self.writer.copy(path.clone()),
        }
        Ok(true)
    }

    async fn append(&mut self, block: StoredBlock) -> Result<(), StoreError> {
        self.arrived += block.size;
        self.reservation.cover(self.arrived).await?;
        self.writer.append(block.bytes).await
    }

    async fn commit(mut self: Box<Self>, draft: Draft) -> Result<Committed, StoreError> {
        debug_assert_eq!(self.owner, draft.owner, "an upload commits for the owner that began it");

        self.writer.check_disk().await?;
        let small =
            if self.is_shared { None } else { self.writer.take_small(StoredContent::MAX_IN_ENTRY) };
        let content = match small {
            Some(small) => StoredContent::Entry { base64: small },
            None => {
                // Scheduled before the content is complete, so that content without an entry
                // is found.
                self.state.schedule_expiry(&draft).await?;
                self.writer.finish(&draft.uri).await?;
                StoredContent::Object(self.id.clone())
            }
        };

        let has_object = self.writer.keep();
        let put = PutOperation {
            draft,
            content,
            is_shared: self.is_shared,
            reservation: self.reservation.id().to_owned(),
            unreserved: self.reservation.unreserved(),
        };

        let committed = self.state.put(put).await;

        match &committed {
            // The commit has ended the reservation.
            Ok(_) => {
                self.reservation.forget();
            }
            Err(StoreError::NotFound { .. } | StoreError::Full(_)) => {
                self.writer.discard(has_object);
            }
            Err(_) => {}
        }

        committed
    }

    async fn discard(mut self: Box<Self>) {
        if let Some(releasing) = self.releasing() {
            releasing.await;
        }
    }
}

impl Drop for ObjectUpload {
    fn drop(&mut self) {
        if let Some(releasing) = self.releasing()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(releasing);
        }
    }
}
