//! Compression: each block by itself, and only where it pays, so that a window
//! still costs just the blocks it lies in.

use std::io;

use bytes::Bytes;
use parking_lot::Mutex;
use zstd::{
    bulk::{Compressor, Decompressor},
    zstd_safe::CParameter,
};

/// zstd's fastest: on logs and JSON in blocks of this size it is as good as
/// the next ones, in a half of their time; and it rushes through what cannot
/// be compressed.
const LEVEL: i32 = 1;

/// Shorter blocks are left alone: they fit into one packet anyway.
const LEAST_BYTES: usize = 1024;

/// Compression has to save an eighth: less is not worth undoing it at each reading.
const LEAST_SAVED: usize = 8;

/// How many compressors and decompressors are kept for the next blocks: they
/// take some 100 kB each, and long to make beside what a small block takes.
const KEPT: usize = 4;

static PACKERS: Pool<Compressor<'static>> = Pool(Mutex::new(Vec::new()));
static UNPACKERS: Pool<Decompressor<'static>> = Pool(Mutex::new(Vec::new()));

/// A block as it is kept. It is compressed if, and only if, that made it shorter.
#[derive(Debug, Clone)]
pub struct Packed {
    /// What is kept.
    pub bytes: Bytes,
    /// How many bytes of content that is: what quotas count.
    pub size: u64,
}

/// Whether blocks are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packing {
    /// Each that gets shorter by it.
    WherePays,
    /// None of them: the content is looked at and forgotten.
    Never,
}

impl Packing {
    pub(super) fn pack(self, block: Bytes) -> Packed {
        let size = block.len() as u64;
        let most = block.len() - block.len() / LEAST_SAVED;
        let worth = self == Self::WherePays && block.len() >= LEAST_BYTES;
        // Short of memory, it is kept as it is.
        let packed = worth.then(|| compressed(&block).ok()).flatten();
        let bytes = match packed {
            Some(mut packed) if packed.len() <= most => {
                packed.shrink_to_fit();
                packed.into()
            }
            _ => block,
        };
        Packed { bytes, size }
    }
}

fn compressed(block: &[u8]) -> io::Result<Vec<u8>> {
    let new = || {
        let mut packer = Compressor::new(LEVEL)?;
        // So that damage is found, wherever the bytes may lie.
        packer.set_parameter(CParameter::ChecksumFlag(true))?;
        Ok(packer)
    };
    PACKERS.with(new, |packer| packer.compress(block))
}

/// The content of a compressed block of that size. Accepts its time: a hundred
/// microseconds for a full one.
///
/// # Errors
/// Where it is damaged.
pub(super) fn unpack(packed: &[u8], size: usize) -> io::Result<Bytes> {
    let content =
        UNPACKERS.with(Decompressor::new, |unpacker| unpacker.decompress(packed, size))?;
    if content.len() == size {
        return Ok(content.into());
    }
    let problem = format!("a block of {size} bytes has {} of them", content.len());
    Err(io::Error::new(io::ErrorKind::InvalidData, problem))
}

/// What is dear to make and can be used again, by one at a time.
struct Pool<T>(Mutex<Vec<T>>);

impl<T> Pool<T> {
    fn with<R>(
        &self,
        new: impl FnOnce() -> io::Result<T>,
        work: impl FnOnce(&mut T) -> io::Result<R>,
    ) -> io::Result<R> {
        let kept = || self.0.lock();
        let idle = kept().pop();
        let mut used = idle.map_or_else(new, Ok)?;
        let done = work(&mut used);
        let mut kept = kept();
        if kept.len() < KEPT {
            kept.push(used);
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packed(block: &[u8]) -> Packed {
        Packing::WherePays.pack(Bytes::copy_from_slice(block))
    }

    proptest! {
        #[test]
        fn what_is_packed_is_never_longer_and_comes_back(
            part in prop::collection::vec(any::<u8>(), 1..3000),
            times in 1usize..5,
        ) {
            let block = part.repeat(times);
            let packed = packed(&block);
            prop_assert_eq!(packed.size, block.len() as u64);
            prop_assert!(packed.bytes.len() <= block.len());
            if packed.bytes.len() == block.len() {
                prop_assert_eq!(&packed.bytes, &block);
            } else {
                prop_assert_eq!(unpack(&packed.bytes, block.len()).expect("it is whole"), block);
            }
        }

        #[test]
        fn damage_is_found(at in any::<prop::sample::Index>(), bit in 0u8..8) {
            let block = "a line of a log\n".repeat(500);
            let mut bytes = packed(block.as_bytes()).bytes.to_vec();
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            // A bit of the header that means nothing may be lost without harm.
            if let Ok(content) = unpack(&bytes, block.len()) {
                prop_assert_eq!(content, block);
            }
        }
    }

    #[test]
    fn a_block_that_is_cut_short_is_not_taken_for_a_whole_one() {
        let block = vec![b'x'; 5000];
        let bytes = packed(&block).bytes;
        assert!(bytes.len() < 100, "it can be compressed");
        for (bytes, size) in [(&bytes[..bytes.len() - 1], 5000), (&bytes, 4999), (&bytes, 5001)] {
            unpack(bytes, size).expect_err("it is not the block");
        }
    }

    #[test]
    fn what_does_not_pay_is_kept_as_it_is() {
        for block in [&b""[..], b"short", &[0; LEAST_BYTES - 1]] {
            assert_eq!(packed(block).bytes, block);
        }
        assert!(packed(&[0; LEAST_BYTES]).bytes.len() < 100);
    }
}
