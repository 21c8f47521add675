//! Content on its way into Redis, under a key that expires if it never arrives.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;

use super::{Inner, entry, millis, unavailable};
use crate::{
    auth::Owner,
    redis::{RedisError, cmd, pipe},
    store::{Committed, Draft, Packed, StoreError, Upload, blocks::BLOCK_BYTES},
};

/// How much is collected before it is sent. What is left at the end goes with
/// the commit, so small content takes one step in all.
const WINDOW: usize = 2 * BLOCK_BYTES;

/// How long the next blocks may take to come.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

pub(super) struct RedisUpload {
    inner: Arc<Inner>,
    owner: Owner,
    /// Of the content; of no other ever.
    id: String,
    key: String,
    /// How much content has come.
    size: u64,
    /// How much is kept of it.
    stored: u64,
    /// What is not sent yet.
    held: Vec<Bytes>,
    /// What is being sent, while more comes, and how much is there then.
    sending: Option<(AbortOnDropHandle<Result<u64, RedisError>>, u64)>,
    /// Whether what lies there may be removed when this is dropped.
    mine: bool,
}

impl RedisUpload {
    pub(super) fn new(inner: Arc<Inner>, owner: Owner) -> Self {
        let id = inner.random.id();
        let key = entry::blob_key(&inner.shard_of(&owner), &id);
        Self {
            inner,
            owner,
            id,
            key,
            size: 0,
            stored: 0,
            held: Vec::new(),
            sending: None,
            mine: true,
        }
    }

    /// Until what was sent has arrived.
    async fn arrived(&mut self) -> Result<(), StoreError> {
        let Some((sending, size)) = self.sending.take() else { return Ok(()) };
        let lost = |source| StoreError::Unavailable { backend: super::NAME, source };
        let there = sending.await.map_err(|error| lost(error.into()))?.map_err(unavailable)?;
        if there != size {
            return Err(lost("the content was lost on its way".into()));
        }
        Ok(())
    }

    /// Sends what is held, and does not wait for it to arrive.
    fn send(&mut self) {
        let (inner, key) = (Arc::clone(&self.inner), self.key.clone());
        let held = std::mem::take(&mut self.held);
        let sending = AbortOnDropHandle::new(tokio::spawn(async move {
            let mut append = pipe();
            // Together, or a lost connection might leave a key that never expires.
            append.atomic();
            for block in &held {
                append.cmd("APPEND").arg(&key).arg(&block[..]);
            }
            drop(held);
            append.cmd("PEXPIRE").arg(&key).arg(millis(PATIENCE)).ignore();
            let there: Vec<u64> = inner.redis.pipeline(&append).await?;
            Ok(there.last().copied().unwrap_or_default())
        }));
        self.sending = Some((sending, self.stored));
    }
}

#[async_trait]
impl Upload for RedisUpload {
    async fn append(&mut self, block: Packed) -> Result<(), StoreError> {
        // The commit counts exactly; this is so that what can never fit does not fill Redis first.
        if self.size + block.size > self.inner.limits.bytes_per_owner {
            return Err(StoreError::Full(format!(
                "The content has more bytes than all your resources may have together ({}). Store less.",
                self.inner.limits.bytes_per_owner
            )));
        }
        if self.held.iter().map(Bytes::len).sum::<usize>() + block.bytes.len() > WINDOW {
            self.arrived().await?;
            self.send();
        }
        self.size += block.size;
        self.stored += block.bytes.len() as u64;
        self.held.push(block.bytes);
        Ok(())
    }

    async fn commit(mut self: Box<Self>, draft: Draft) -> Result<Committed, StoreError> {
        debug_assert_eq!(self.owner, draft.owner, "content stays with whom it was begun for");
        self.arrived().await?;
        // From here on it may be somebody's resource, also where no answer comes:
        // what is refused is removed there, and what never arrives expires.
        self.mine = false;
        let committed = self.inner.commit(draft, &self.id, &self.held).await;
        self.mine = matches!(committed, Err(StoreError::NotFound { .. }));
        committed
    }
}

impl Drop for RedisUpload {
    fn drop(&mut self) {
        // It would expire, but may be large. Where nothing runs any more, it does expire.
        if self.mine
            && self.stored > 0
            && let Ok(runtime) = Handle::try_current()
        {
            let (inner, key) = (Arc::clone(&self.inner), self.key.clone());
            runtime.spawn(async move {
                if let Err(error) = inner.redis.query::<()>(cmd("UNLINK").arg(&key)).await {
                    tracing::debug!(%error, "content that was given up is left to expire");
                }
            });
        }
    }
}
