//! Cuts content into blocks while it streams in: one pass that checks UTF-8,
//! counts lines, hashes, and never holds more than one block.

use bytes::{Bytes, BytesMut};
use sha2::{Digest, Sha256};

use super::{Block, Kind, StoreError, Upload};

/// How much raw content a block holds at most. Small enough that a window
/// reads little too much, large enough that a table of them stays small.
pub(super) const BLOCK_BYTES: usize = 256 * 1024;

/// The longest incomplete UTF-8 sequence.
const MAX_PARTIAL_CHAR: usize = 3;

/// What is known of content once all of it has passed.
pub(super) struct Measured {
    pub(super) size: u64,
    pub(super) lines: u64,
    pub(super) sha256: String,
    pub(super) blocks: Vec<Block>,
}

/// Takes pieces of any size and gives blocks to an upload.
pub(super) struct BlockWriter {
    kind: Kind,
    upload: Box<dyn Upload>,
    /// Less than a block that could not be passed on yet.
    rest: BytesMut,
    blocks: Vec<Block>,
    offset: u64,
    line_feeds: u64,
    ends_with_line_feed: bool,
    hash: Sha256,
}

impl BlockWriter {
    pub(super) fn new(kind: Kind, upload: Box<dyn Upload>) -> Self {
        Self {
            kind,
            upload,
            rest: BytesMut::new(),
            blocks: Vec::new(),
            offset: 0,
            line_feeds: 0,
            ends_with_line_feed: false,
            hash: Sha256::new(),
        }
    }

    /// Takes the next piece. A piece of a block or more is sliced, not copied.
    pub(super) async fn write(&mut self, mut piece: Bytes) -> Result<(), StoreError> {
        while !piece.is_empty() {
            if self.rest.is_empty() && piece.len() >= BLOCK_BYTES {
                let cut = self.cut(&piece[..BLOCK_BYTES])?;
                self.emit(piece.split_to(cut)).await?;
                continue;
            }
            let room = BLOCK_BYTES - self.rest.len();
            self.rest.extend_from_slice(&piece.split_to(room.min(piece.len())));
            if self.rest.len() == BLOCK_BYTES {
                let cut = self.cut(&self.rest)?;
                let block = self.rest.split_to(cut).freeze();
                self.emit(block).await?;
            }
        }
        Ok(())
    }

    /// Passes on what is left.
    pub(super) async fn finish(mut self) -> Result<(Box<dyn Upload>, Measured), StoreError> {
        if !self.rest.is_empty() {
            if self.kind == Kind::Text {
                std::str::from_utf8(&self.rest).map_err(|e| self.not_text(e.valid_up_to()))?;
            }
            let block = std::mem::take(&mut self.rest).freeze();
            self.emit(block).await?;
        }
        let unfinished_line = self.offset > 0 && !self.ends_with_line_feed;
        let lines = match self.kind {
            Kind::Text => self.line_feeds + u64::from(unfinished_line),
            Kind::Binary => 0,
        };
        let sha256 = hex(&self.hash.finalize());
        let measured = Measured { size: self.offset, lines, sha256, blocks: self.blocks };
        Ok((self.upload, measured))
    }

    /// Where a full buffer can be cut: between characters in text.
    fn cut(&self, full: &[u8]) -> Result<usize, StoreError> {
        if self.kind == Kind::Binary {
            return Ok(full.len());
        }
        match std::str::from_utf8(full) {
            Ok(_) => Ok(full.len()),
            Err(e)
                if e.error_len().is_none() && full.len() - e.valid_up_to() <= MAX_PARTIAL_CHAR =>
            {
                Ok(e.valid_up_to())
            }
            Err(e) => Err(self.not_text(e.valid_up_to())),
        }
    }

    fn not_text(&self, at: usize) -> StoreError {
        StoreError::NotText { at: self.offset + at as u64 }
    }

    async fn emit(&mut self, block: Bytes) -> Result<(), StoreError> {
        let len = block.len() as u64;
        self.blocks.push(Block { offset: self.offset, len, first_line: self.line_feeds });
        self.hash.update(&block);
        if self.kind == Kind::Text {
            self.line_feeds += memchr::memchr_iter(b'\n', &block).count() as u64;
            self.ends_with_line_feed = block.last() == Some(&b'\n');
        }
        self.offset += len;
        self.upload.append(block).await
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}
