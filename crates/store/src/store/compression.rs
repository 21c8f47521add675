//! Compression of blocks. Each block is compressed separately, so that a window
//! costs only the blocks that it overlaps.

use std::io;

use bytes::Bytes;
use parking_lot::Mutex;
use zstd::{
    bulk::{Compressor, Decompressor},
    zstd_safe::CParameter,
};

/// The fastest level of zstd. On logs and JSON in blocks of this size it
/// compresses as well as the next levels in half their time, and it is quick to
/// give up on incompressible data.
const LEVEL: i32 = 1;

/// Shorter blocks are not compressed, because they fit into one packet.
const MIN_BYTES: usize = 1024;

/// Compression must save at least 1/8 of a block; less is not worth
/// decompressing it for each read.
const MIN_SAVED_DIVISOR: usize = 8;

/// How many idle compressors and decompressors are kept. Each takes about
/// 100 kB, and creating one takes long compared to a small block.
const MAX_IDLE: usize = 4;

static COMPRESSORS: IdlePool<Compressor<'static>> = IdlePool(Mutex::new(Vec::new()));
static DECOMPRESSORS: IdlePool<Decompressor<'static>> = IdlePool(Mutex::new(Vec::new()));

/// A block as a backend stores it. It is compressed if `bytes` is shorter than
/// `size`.
#[derive(Debug, Clone)]
pub struct StoredBlock {
    /// The bytes to store.
    pub bytes: Bytes,
    /// The size before compression, which quotas count.
    pub size: u64,
}

/// Whether blocks are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compression {
    /// Each block is compressed that becomes sufficiently smaller.
    WhenSmaller,
    /// No block is compressed, because the content is read once and dropped.
    Never,
}

impl Compression {
    pub(super) fn apply(self, block: Bytes) -> StoredBlock {
        let size = block.len() as u64;
        let max = block.len() - block.len() / MIN_SAVED_DIVISOR;
        let eligible = self == Self::WhenSmaller && block.len() >= MIN_BYTES;

        // Compression fails only for lack of memory; then the block stays uncompressed.
        let compressed = eligible.then(|| compress(&block).ok()).flatten();
        let bytes = match compressed {
            Some(mut compressed) if compressed.len() <= max => {
                compressed.shrink_to_fit();
                compressed.into()
            }
            _ => block,
        };

        StoredBlock { bytes, size }
    }
}

fn compress(block: &[u8]) -> io::Result<Vec<u8>> {
    let new = || {
        let mut compressor = Compressor::new(LEVEL)?;
        // The checksum detects damage in any backend.
        compressor.set_parameter(CParameter::ChecksumFlag(true))?;
        Ok(compressor)
    };

    COMPRESSORS.with(new, |compressor| compressor.compress(block))
}

/// The content of a compressed block of `size` bytes. A full block takes about
/// 100 microseconds.
///
/// # Errors
/// The block is damaged.
pub(super) fn decompress(block: &[u8], size: usize) -> io::Result<Bytes> {
    let content = DECOMPRESSORS
        .with(Decompressor::new, |decompressor| decompressor.decompress(block, size))?;

    if content.len() == size {
        return Ok(content.into());
    }

    let problem = format!("a block of {size} bytes decompresses to {} bytes", content.len());
    Err(io::Error::new(io::ErrorKind::InvalidData, problem))
}

/// Idle values that are expensive to create.
struct IdlePool<T>(Mutex<Vec<T>>);

impl<T> IdlePool<T> {
    /// Runs `work` with an idle value, or with a new value if none is idle.
    fn with<R>(
        &self,
        new: impl FnOnce() -> io::Result<T>,
        work: impl FnOnce(&mut T) -> io::Result<R>,
    ) -> io::Result<R> {
        let idle = self.0.lock().pop();
        let mut value = idle.map_or_else(new, Ok)?;
        let result = work(&mut value);

        let mut idle = self.0.lock();
        if idle.len() < MAX_IDLE {
            idle.push(value);
        }

        result
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stored(block: &[u8]) -> StoredBlock {
        Compression::WhenSmaller.apply(Bytes::copy_from_slice(block))
    }

    proptest! {
        #[test]
        fn a_stored_block_is_never_longer_and_is_read_back(
            part in prop::collection::vec(any::<u8>(), 1..3000),
            times in 1usize..5,
        ) {
            let block = part.repeat(times);
            let stored = stored(&block);
            prop_assert_eq!(stored.size, block.len() as u64);
            prop_assert!(stored.bytes.len() <= block.len());

            if stored.bytes.len() == block.len() {
                prop_assert_eq!(&stored.bytes, &block);
            } else {
                let content = decompress(&stored.bytes, block.len()).expect("it is undamaged");
                prop_assert_eq!(content, block);
            }
        }

        #[test]
        fn damage_is_found_by_the_checksum(index in any::<prop::sample::Index>(), bit in 0u8..8) {
            let block = "a line of a log\n".repeat(500);
            let mut bytes = stored(block.as_bytes()).bytes.to_vec();
            let index = index.index(bytes.len());
            bytes[index] ^= 1 << bit;

            // Some bits of the header are unused: changing one of them does no damage.
            if let Ok(content) = decompress(&bytes, block.len()) {
                prop_assert_eq!(content, block);
            }
        }
    }

    #[test]
    fn a_truncated_block_is_an_error() {
        let block = vec![b'x'; 5000];
        let bytes = stored(&block).bytes;
        assert!(bytes.len() < 100, "it can be compressed");

        for (bytes, size) in [(&bytes[..bytes.len() - 1], 5000), (&bytes, 4999), (&bytes, 5001)] {
            decompress(bytes, size).expect_err("it is not the block");
        }
    }

    #[test]
    fn a_short_block_is_not_compressed() {
        for block in [&b""[..], b"short", &[0; MIN_BYTES - 1]] {
            assert_eq!(stored(block).bytes, block);
        }
        assert!(stored(&[0; MIN_BYTES]).bytes.len() < 100);
    }
}
