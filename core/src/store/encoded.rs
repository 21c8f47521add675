//! Content as a zstd stream (RFC 8878), for readers that decompress it themselves: the frames in
//! which blocks are stored, one after the other. A block that is stored as it is becomes a frame
//! of raw blocks.

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};

use super::{Block, StoreError, StoredResource, reading::MAX_FETCHES};

/// The maximum size of a raw block in a frame.
const MAX_RAW: usize = 128 * 1024;

/// The header of a frame of one segment whose size has four bytes.
const FRAME_HEADER: [u8; 5] = [0x28, 0xb5, 0x2f, 0xfd, 0b1010_0000];

/// Encoding must save at least 1/8 of the content; less is not worth it to the reader.
const MIN_SAVED_DIVISOR: u64 = 8;

impl StoredResource {
    /// The length of the content as a zstd stream, in bytes, if that is much less than its size.
    pub fn zstd_len(&self) -> Option<u64> {
        let (blocks, size) = (&self.entry.blocks, self.entry.size);
        let len = blocks.iter().map(encoded_len).sum::<u64>();
        (size > 0 && len <= size - size / MIN_SAVED_DIVISOR).then_some(len)
    }

    /// The content as a zstd stream, which is not decompressed here.
    pub fn stream_zstd(&self) -> impl Stream<Item = Result<Bytes, StoreError>> + Send + use<> {
        let found = self.clone();
        let batches = stream::iter(self.batches(0..self.entry.blocks.len()));
        let fetched = batches.map(move |batch| {
            let found = found.clone();
            async move {
                let blocks = &found.entry.blocks[batch];
                let (Some(first), Some(last)) = (blocks.first(), blocks.last()) else {
                    return Ok(Vec::new());
                };
                let mut bytes = found.blob.range(first.stored..last.stored_end()).await?;
                let mut frames = Vec::new();
                for block in blocks {
                    let stored = bytes.split_to(found.index(block.stored_len)?);
                    if block.is_compressed() {
                        frames.push(stored);
                    } else {
                        add_raw_frame(&mut frames, stored);
                    }
                }
                Ok(frames)
            }
        });
        fetched.buffered(MAX_FETCHES).flat_map(|frames: Result<Vec<Bytes>, StoreError>| {
            let (frames, error) = match frames {
                Ok(frames) => (frames, None),
                Err(error) => (Vec::new(), Some(Err(error))),
            };
            stream::iter(frames.into_iter().map(Ok).chain(error))
        })
    }
}

/// The length of a block's frame.
fn encoded_len(block: &Block) -> u64 {
    if block.is_compressed() {
        return block.stored_len;
    }
    FRAME_HEADER.len() as u64 + 4 + 3 * block.len.div_ceil(MAX_RAW as u64) + block.len
}

/// Adds a frame of the bytes as they are.
fn add_raw_frame(frames: &mut Vec<Bytes>, mut stored: Bytes) {
    // A block of content has 256 KiB at most.
    let size = u32::try_from(stored.len()).unwrap_or(u32::MAX);
    frames.push([&FRAME_HEADER[..], &size.to_le_bytes()].concat().into());
    while !stored.is_empty() {
        let raw = stored.split_to(stored.len().min(MAX_RAW));
        let is_last = u32::from(stored.is_empty());
        let header = (u32::try_from(raw.len()).unwrap_or(u32::MAX) << 3) | is_last;
        frames.push(Bytes::copy_from_slice(&header.to_le_bytes()[..3]));
        frames.push(raw);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::Arc;

    use futures_util::TryStreamExt;

    use super::*;
    use crate::{
        auth::Owner,
        clock::ManualClock,
        store::{BLOCK_BYTES, Details, MemoryLimits, ResourceUri, Store, StoreLimits},
        testing::store::noise,
    };

    async fn stored(content: Vec<u8>) -> StoredResource {
        let limits = (MemoryLimits::default(), StoreLimits::default());
        let store = Store::memory(Arc::new(ManualClock::new()), limits.0, limits.1);
        let (owner, uri) = (Owner::new("alice"), ResourceUri::parse("x:1").unwrap());
        let content = content.into();
        store.create(&owner, uri.clone(), content, Details::default()).await.unwrap();
        store.get(&owner, &uri).await.unwrap()
    }

    #[tokio::test]
    async fn the_frames_are_the_content_whichever_blocks_are_compressed() {
        let text = "a line of a log\n".repeat(BLOCK_BYTES / 4);
        // Whole blocks of both kinds, and a short one at the end.
        for noisy in [0, BLOCK_BYTES, BLOCK_BYTES - 16, 1] {
            let mut content = text.clone().into_bytes();
            content.extend(noise(noisy));
            content.extend(text.as_bytes());
            content.extend(b"the end");
            let found = stored(content.clone()).await;
            let frames: Vec<_> = found.stream_zstd().try_collect().await.unwrap();
            let encoded = frames.concat();
            assert_eq!(found.zstd_len(), Some(encoded.len() as u64));
            assert!(zstd::decode_all(&encoded[..]).unwrap() == content, "{noisy}");
        }
    }

    #[tokio::test]
    async fn what_would_save_little_is_not_encoded() {
        for content in [Vec::new(), b"short".to_vec(), noise(BLOCK_BYTES)] {
            assert_eq!(stored(content).await.zstd_len(), None);
        }
        // All the same, it can be.
        let (noise, found) = (noise(BLOCK_BYTES), stored(noise(BLOCK_BYTES)).await);
        let frames: Vec<_> = found.stream_zstd().try_collect().await.unwrap();
        assert_eq!(frames.len(), 5, "its two raw blocks are not copied");
        assert!(zstd::decode_all(&frames.concat()[..]).unwrap() == noise);
    }
}
