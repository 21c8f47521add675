//! An upload: writes content to an object, unless it is small, then commits the entry.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::runtime::Handle;

use super::{
    Inner, change::Put, content_writer::ContentWriter, layout, reserved::Reservation,
    stored_entry::StoredContent,
};
use crate::{
    auth::Owner,
    store::{Committed, Draft, ResourceUri, StoreError, StoredBlock, Upload},
};

/// An upload of content into an object.
pub(super) struct ObjectUpload {
    inner: Arc<Inner>,
    owner: Owner,

    /// The ID of the content's object, never reused.
    id: String,
    /// The bytes of content that have arrived.
    arrived: u64,

    reservation: Reservation,
    writer: ContentWriter,
}

impl ObjectUpload {
    pub(super) fn new(
        inner: Arc<Inner>,
        owner: Owner,
        uri: &ResourceUri,
        reservation: Option<&str>,
    ) -> Self {
        let id = inner.random.id();
        let path = layout::content(&layout::resource(&owner, uri), &id);
        let writer = ContentWriter::new(inner.objects.clone(), path);

        let reservation = Reservation::new(&inner, &owner, uri, reservation);

        Self { inner, owner, id, arrived: 0, reservation, writer }
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

    async fn append(&mut self, block: StoredBlock) -> Result<(), StoreError> {
        self.arrived += block.size;
        self.reservation.cover(self.arrived).await?;
        self.writer.append(block.bytes).await
    }

    async fn commit(mut self: Box<Self>, draft: Draft) -> Result<Committed, StoreError> {
        debug_assert_eq!(self.owner, draft.owner, "an upload commits for the owner that began it");

        self.writer.check_disk().await?;
        let content = match self.writer.take_small(StoredContent::MAX_IN_ENTRY) {
            Some(small) => StoredContent::Entry { base64: small },
            None => {
                // Scheduled before the content is complete, so that content without an entry
                // is found.
                self.inner.schedule_expiry(&draft).await?;
                self.writer.finish().await?;
                StoredContent::Object(self.id.clone())
            }
        };

        let has_object = self.writer.keep();
        let put = Put {
            draft,
            content,
            reservation: self.reservation.id().to_owned(),
            unreserved: self.reservation.unreserved(),
        };

        let committed = self.inner.put(put).await;

        match &committed {
            Ok(_) => self.reservation.committed(),
            Err(StoreError::NotFound { .. } | StoreError::Full(_)) => {
                self.writer.discard(has_object);
            }
            Err(_) => {}
        }

        committed
    }

    async fn discard(mut self: Box<Self>) {
        if let Some(releasing) = self.reservation.releasing() {
            releasing.await;
        }
    }
}

impl Drop for ObjectUpload {
    fn drop(&mut self) {
        if let Some(releasing) = self.reservation.releasing()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(releasing);
        }
    }
}
