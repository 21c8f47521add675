//! Compression: each block by itself, and only where it pays, so that a window
//! still costs just the blocks it lies in.

use std::{fmt, io, panic};

use bytes::Bytes;
use tokio::task::JoinHandle;
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

/// How much a worker of the runtime takes on by itself: some tens of microseconds.
const INLINE_BYTES: usize = 16 * 1024;

/// A block as it is kept. It is compressed if, and only if, that made it shorter.
#[derive(Debug, Clone)]
pub struct Packed {
    /// What is kept.
    pub bytes: Bytes,
    /// How many bytes of content that is: what quotas count.
    pub size: u64,
}

/// Packs the blocks of one content.
pub(super) struct Packer(Option<Compressor<'static>>);

impl Packer {
    pub(super) fn new() -> Self {
        Self(Compressor::new(LEVEL).ok().and_then(|mut zstd| {
            // So that damage is found, wherever the bytes may lie.
            zstd.set_parameter(CParameter::ChecksumFlag(true)).ok()?;
            Some(zstd)
        }))
    }

    /// For content that is looked at and forgotten.
    pub(super) fn none() -> Self {
        Self(None)
    }

    pub(super) fn pack(&mut self, block: Bytes) -> Packed {
        let size = block.len() as u64;
        let most = block.len() - block.len() / LEAST_SAVED;
        let worth = block.len() >= LEAST_BYTES;
        // Short of memory, it is kept as it is.
        let packed = self.0.as_mut().filter(|_| worth).and_then(|zstd| zstd.compress(&block).ok());
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

impl fmt::Debug for Packer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Packer").field(&self.0.is_some()).finish()
    }
}

/// The content of a compressed block of that size.
///
/// # Errors
/// Where it is damaged.
pub(super) async fn unpack(packed: Bytes, size: usize) -> io::Result<Bytes> {
    let work = move || {
        let content = Decompressor::new()?.decompress(&packed, size)?;
        if content.len() == size {
            return Ok(content.into());
        }
        let problem = format!("a block of {size} bytes has {} of them", content.len());
        Err(io::Error::new(io::ErrorKind::InvalidData, problem))
    };
    Aside::run(size, work).done().await
}

/// Work on that many bytes, on a thread for such work if they are many: the
/// runtime's own workers have others to serve.
pub(super) enum Aside<T> {
    Done(T),
    Running(JoinHandle<T>),
}

impl<T: Send + 'static> Aside<T> {
    pub(super) fn run(bytes: usize, work: impl FnOnce() -> T + Send + 'static) -> Self {
        if bytes <= INLINE_BYTES {
            return Self::Done(work());
        }
        Self::Running(tokio::task::spawn_blocking(work))
    }

    pub(super) async fn done(self) -> T {
        match self {
            Self::Done(result) => result,
            Self::Running(running) => match running.await {
                Ok(result) => result,
                Err(error) => match error.try_into_panic() {
                    Ok(panic) => panic::resume_unwind(panic),
                    // The runtime ends, and this with it.
                    Err(_) => std::future::pending().await,
                },
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use proptest::prelude::*;

    use super::*;

    fn packed(block: &[u8]) -> Packed {
        Packer::new().pack(Bytes::copy_from_slice(block))
    }

    fn unpacked(packed: &[u8], size: usize) -> io::Result<Bytes> {
        let packed = Bytes::copy_from_slice(packed);
        unpack(packed, size).now_or_never().expect("little is done at once")
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
                prop_assert_eq!(unpacked(&packed.bytes, block.len()).expect("it is whole"), block);
            }
        }

        #[test]
        fn damage_is_found(at in any::<prop::sample::Index>(), bit in 0u8..8) {
            let block = "a line of a log\n".repeat(500);
            let mut bytes = packed(block.as_bytes()).bytes.to_vec();
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            // A bit of the header that means nothing may be lost without harm.
            if let Ok(content) = unpacked(&bytes, block.len()) {
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
            unpacked(bytes, size).expect_err("it is not the block");
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
