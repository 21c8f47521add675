//! [`Hashing`]: the SHA-256 of content, computed beside the compression of its blocks.

use bytes::Bytes;
use futures_util::FutureExt;
use larder_runtime::{
    compute::{Busy, Compute},
    hex::hex,
};
use sha2::{Digest, Sha256};

/// How many blocks may wait for the hash before the writer also waits.
const MAX_WAITING: usize = 3;

/// The hash of blocks, in order. A piece of work takes all blocks that wait, so that the writer
/// rarely waits for the hash.
pub(super) struct Hashing {
    running: Compute<Sha256>,
    waiting: Vec<Bytes>,
}

impl Hashing {
    pub(super) fn new() -> Self {
        Self { running: Compute::Done(Ok(Sha256::new())), waiting: Vec::new() }
    }

    /// Adds the next block, as work of `owner`.
    ///
    /// # Errors
    /// [`Busy`]: too much work waits.
    pub(super) async fn add(&mut self, owner: &str, block: Bytes) -> Result<(), Busy> {
        self.waiting.push(block);
        if self.waiting.len() > MAX_WAITING || self.running.wait().now_or_never().is_some() {
            self.hash_waiting(owner).await?;
        }
        Ok(())
    }

    /// The digest of all blocks, in hexadecimal.
    ///
    /// # Errors
    /// [`Busy`]: too much work waits.
    pub(super) async fn finish(mut self, owner: &str) -> Result<String, Busy> {
        self.hash_waiting(owner).await?;
        Ok(hex(&self.running.done().await?.finalize()))
    }

    /// Starts to hash all blocks that wait, once the running work is done.
    async fn hash_waiting(&mut self, owner: &str) -> Result<(), Busy> {
        let blocks = std::mem::take(&mut self.waiting);
        let placeholder = Compute::Done(Ok(Sha256::new()));
        let mut hash = std::mem::replace(&mut self.running, placeholder).done().await?;

        let bytes = blocks.iter().map(Bytes::len).sum();
        self.running = Compute::run(owner, bytes, move || {
            for block in &blocks {
                hash.update(block);
            }
            hash
        });

        Ok(())
    }
}
