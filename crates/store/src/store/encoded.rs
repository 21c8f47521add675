//! Content as a zstd stream (RFC 8878), for readers that decompress it themselves: the frames in
//! which blocks are stored, in order. A block that is stored uncompressed becomes a frame of raw
//! blocks.

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};

use super::{Block, StoreError, StoredResource, reading::MAX_FETCHES};

/// The maximum size of a raw block in a frame.
const MAX_RAW: usize = 128 * 1024;

/// The header of a frame of one segment whose size field has four bytes.
const FRAME_HEADER: [u8; 5] = [0x28, 0xb5, 0x2f, 0xfd, 0b1010_0000];

/// Encoding must save at least 1/8 of the content; less is not worth it to the reader.
const MIN_SAVED_DIVISOR: u64 = 8;

impl StoredResource {
    /// The length of the content as a zstd stream, in bytes, if that is much less than its size.
    pub fn zstd_len(&self) -> Option<u64> {
        let blocks = &self.entry.blocks;
        let size = self.entry.size;
        let len = blocks.iter().map(encoded_len).sum::<u64>();
        (size > 0 && len <= size - size / MIN_SAVED_DIVISOR).then_some(len)
    }

    /// The content as a zstd stream, which the reader decompresses.
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

/// Adds a frame of the uncompressed bytes.
fn add_raw_frame(frames: &mut Vec<Bytes>, mut stored: Bytes) {
    // A block of content has at most 256 KiB, so its size fits.
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
        store::{BLOCK_BYTES, Details, MemoryLimits, ResourceUri, Store, StoreLimits},
        testing::store::noise,
    };
    use larder_identity::Owner;
    use larder_runtime::clock::ManualClock;

    async fn stored(content: Vec<u8>) -> StoredResource {
        let clock = Arc::new(ManualClock::new());
        let store = Store::memory(clock, MemoryLimits::default(), StoreLimits::default());
        let owner = Owner::new("alice");
        let uri = ResourceUri::parse("x:1").unwrap();

        let content = content.into();
        store.create(&owner, uri.clone(), content, Details::default()).await.unwrap();
        store.get(&owner, &uri).await.unwrap()
    }

    #[tokio::test]
    async fn the_stream_is_the_content_whichever_blocks_are_compressed() {
        let text = "a line of a log\n".repeat(BLOCK_BYTES / 4);
        // Whole blocks of both kinds, and a short block at the end.
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
    async fn content_that_compresses_little_is_not_offered_as_a_stream() {
        for content in [Vec::new(), b"short".to_vec(), noise(BLOCK_BYTES)] {
            assert_eq!(stored(content).await.zstd_len(), None);
        }

        // The stream itself still works.
        let noise = noise(BLOCK_BYTES);
        let found = stored(noise.clone()).await;
        let frames: Vec<_> = found.stream_zstd().try_collect().await.unwrap();
        assert_eq!(frames.len(), 5, "its two raw blocks are not copied");
        assert!(zstd::decode_all(&frames.concat()[..]).unwrap() == noise);
    }
}
