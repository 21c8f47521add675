//! Content on its way into an object: at once if it is small, in parts if not.

use bytes::Bytes;
use object_store::{PutPayload, WriteMultipart, path::Path};
use tokio::runtime::Handle;

use super::objects::Objects;
use crate::store::StoreError;

/// S3 takes parts from 5 MiB on, and no more than 10,000 of them.
const PART: usize = 8 << 20;

/// How many parts are on their way at once.
const PARTS: usize = 2;

/// Removes what it has sent when it is dropped, unless that was
/// [given away](Self::give).
pub(in crate::store) struct Parts {
    objects: Objects,
    path: Path,
    /// What is not sent yet, and how much that is.
    held: Vec<Bytes>,
    held_bytes: usize,
    sending: Option<WriteMultipart>,
    /// Whether it lies there as a whole, and nobody's.
    whole: bool,
}

impl Parts {
    pub(in crate::store) fn new(objects: Objects, path: Path) -> Self {
        Self { objects, path, held: Vec::new(), held_bytes: 0, sending: None, whole: false }
    }

    pub(in crate::store) async fn append(&mut self, bytes: Bytes) -> Result<(), StoreError> {
        self.held_bytes += bytes.len();
        self.held.push(bytes);
        if self.held_bytes >= PART { self.send().await } else { Ok(()) }
    }

    /// Sends what is held, as soon as few enough parts are on their way.
    async fn send(&mut self) -> Result<(), StoreError> {
        let parts = match &mut self.sending {
            Some(parts) => parts,
            none => none.insert(self.objects.put_parts(&self.path, PART).await?),
        };
        let free = parts.wait_for_capacity(PARTS).await;
        free.map_err(|error| self.objects.failed(error))?;
        self.held.drain(..).for_each(|block| parts.put(block));
        self.held_bytes = 0;
        Ok(())
    }

    /// Makes an object of all that has come; of nothing, none.
    pub(in crate::store) async fn finish(&mut self) -> Result<(), StoreError> {
        if self.sending.is_some() {
            self.send().await?;
            if let Some(parts) = self.sending.take() {
                parts.finish().await.map_err(|error| self.objects.failed(error))?;
                self.whole = true;
            }
        } else if self.held_bytes > 0 {
            let payload: PutPayload = self.held.drain(..).collect();
            self.objects.put(&self.path, payload).await?;
            self.whole = true;
        }
        Ok(())
    }

    /// From here on it may be somebody's; says whether there is an object.
    pub(in crate::store) fn give(&mut self) -> bool {
        std::mem::take(&mut self.whole)
    }

    /// It was refused, if there is one.
    pub(in crate::store) fn take_back(&mut self, whole: bool) {
        self.whole = whole;
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        let Ok(runtime) = Handle::try_current() else { return };
        if let Some(parts) = self.sending.take() {
            runtime.spawn(async move {
                if let Err(error) = parts.abort().await {
                    tracing::debug!(%error, "parts that were given up are left behind");
                }
            });
        } else if self.whole {
            let (objects, path) = (self.objects.clone(), self.path.clone());
            runtime.spawn(async move {
                if let Err(error) = objects.remove(&path).await {
                    tracing::debug!(%error, "content that was given up is left to be tidied up");
                }
            });
        }
    }
}
