//! The content of one revision, read from Redis.

use std::{ops::Range, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;

use super::{
    NAME, RedisState,
    parts::{ContentParts, MAX_INLINE},
    unavailable,
};
use crate::{
    redis::{Shard, cmd, pipe},
    store::{Blob, ResourceUri, StoreError, blocks},
};

/// The bytes that one read fetches: one uncompressed block.
const READ_AHEAD: u64 = blocks::BLOCK_BYTES as u64;

/// The content of one revision. Its keys are never reused for other content.
pub(super) struct RedisBlob {
    pub(super) inner: Arc<RedisState>,
    pub(super) shard: Shard,
    pub(super) parts: ContentParts,
    pub(super) uri: ResourceUri,
}

impl RedisBlob {
    /// Whether Redis copies this content, which has `stored` bytes, into a shard.
    pub(super) fn is_copied_into(
        &self,
        inner: &Arc<RedisState>,
        shard: &Shard,
        stored: u64,
    ) -> bool {
        // Commands copy within a shard only.
        let is_near = Arc::ptr_eq(&self.inner, inner) && self.shard.start() == shard.start();

        // Small content goes with the commit, and empty content has no key to copy. Redis answers
        // nobody while it copies a key, which content of earlier versions fills with up to 512 MiB.
        is_near && stored > MAX_INLINE as u64 && self.parts.are_short(stored)
    }
}

#[async_trait]
impl Blob for RedisBlob {
    async fn range(&self, range: Range<u64>) -> Result<Bytes, StoreError> {
        let ranges: Vec<_> = self.parts.split(range.clone()).collect();

        let bytes = match &ranges[..] {
            [] => Vec::new(),
            [(part, within)] => {
                let mut get = cmd("GETRANGE");
                get.arg(self.parts.key(&self.shard, *part)).arg(within.start).arg(within.end - 1);
                self.inner.redis.query::<Vec<u8>>(&get).await.map_err(unavailable)?
            }
            several => {
                let mut gets = pipe();
                for (part, within) in several {
                    let get = gets.cmd("GETRANGE").arg(self.parts.key(&self.shard, *part));
                    get.arg(within.start).arg(within.end - 1);
                }
                let read = self.inner.redis.pipeline::<Vec<Vec<u8>>>(&gets).await;
                read.map_err(unavailable)?.concat()
            }
        };

        // The resource expired, or was replaced or deleted longer than the grace period ago.
        if bytes.len() as u64 != range.end - range.start {
            return Err(StoreError::NotFound { uri: self.uri.clone() });
        }

        Ok(bytes.into())
    }

    fn read_ahead(&self) -> u64 {
        READ_AHEAD
    }
}

/// Content outside Redis, in an instance without a location for it: each read fails.
pub(super) struct Unreachable;

#[async_trait]
impl Blob for Unreachable {
    async fn range(&self, _: Range<u64>) -> Result<Bytes, StoreError> {
        let source = "the content is stored outside Redis; set store.blobs to its location".into();
        Err(StoreError::Unavailable { backend: NAME, source })
    }
}
