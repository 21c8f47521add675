//! The worker's end of the messages, and the content that it asks for.

use std::io::{self, Read, StdinLock, StdoutLock, Write};

use serde::Serialize;

use crate::{
    Answer, Confinement, QueryError, Question,
    wire::{self, Progress},
};

/// The maximum size of content that is kept for the next pass, in bytes.
const KEPT_BYTES: usize = 16 << 20;
/// The number of rows between two notices of progress.
const PROGRESS_ROWS: u64 = 100_000;

/// The standard input and output of the worker, as messages.
pub(super) struct Channel {
    input: StdinLock<'static>,
    output: StdoutLock<'static>,
    /// The payload of the last message.
    buffer: Vec<u8>,
    /// Whether content is on its way.
    pulling: bool,
    /// Small contents that have been read, by the index of their table.
    kept: Vec<Option<Vec<u8>>>,
}

impl Channel {
    pub(super) fn new() -> Self {
        let (input, output) = (io::stdin().lock(), io::stdout().lock());
        Self { input, output, buffer: Vec::new(), pulling: false, kept: Vec::new() }
    }

    /// Says that the worker can get questions, and how far it is confined.
    pub(super) fn ready(&mut self, barriers: Confinement) -> io::Result<()> {
        self.send(wire::READY, &barriers)
    }

    /// The next question; `None` when there are no more.
    pub(super) fn question(&mut self) -> io::Result<Option<Question>> {
        match wire::read(&mut self.input, &mut self.buffer)? {
            None => Ok(None),
            Some(wire::QUESTION) => Ok(Some(serde_json::from_slice(&self.buffer)?)),
            Some(_) => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Whether no content is on its way.
    pub(super) fn is_idle(&self) -> bool {
        !self.pulling
    }

    pub(super) fn answer(&mut self, answer: &Answer) -> io::Result<()> {
        self.send(wire::ANSWER, answer)
    }

    pub(super) fn fail(&mut self, error: &QueryError) -> io::Result<()> {
        self.send(wire::FAILURE, error)
    }

    /// Says how far the query is, now and then.
    pub(super) fn progress(&mut self, progress: Progress) -> Result<(), QueryError> {
        if progress.read.is_multiple_of(PROGRESS_ROWS) {
            self.send(wire::PROGRESS, &progress).map_err(|_| QueryError::Failed)?;
        }
        Ok(())
    }

    /// Sends a part of the result to store.
    pub(super) fn store(&mut self, bytes: &[u8]) -> Result<(), QueryError> {
        wire::write(&mut self.output, wire::STORE, bytes).map_err(|_| QueryError::Failed)
    }

    fn send(&mut self, tag: u8, message: &impl Serialize) -> io::Result<()> {
        wire::write(&mut self.output, tag, &serde_json::to_vec(message)?)?;
        self.output.flush()
    }

    /// The content of a table, from its start.
    pub(super) fn content(&mut self, table: usize) -> Result<Content<'_>, QueryError> {
        if self.kept.len() <= table {
            self.kept.resize(table + 1, None);
        }

        let kept = self.kept[table].take();
        if kept.is_none() {
            self.send(wire::PULL, &table).map_err(|_| QueryError::Failed)?;
            self.pulling = true;
            self.buffer.clear();
        }

        let keeping = if kept.is_none() { Some(Vec::new()) } else { None };
        Ok(Content { channel: self, table, kept, keeping, at: 0, bytes: 0 })
    }

    /// The next block, in the buffer; false at the end.
    fn next_block(&mut self) -> io::Result<bool> {
        match wire::read(&mut self.input, &mut self.buffer)? {
            Some(wire::BLOCK) => Ok(true),
            Some(wire::END) => {
                self.pulling = false;
                self.buffer.clear();
                Ok(false)
            }
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// The content of a table, block by block.
pub(super) struct Content<'a> {
    channel: &'a mut Channel,
    table: usize,

    /// The content, if it is here already.
    kept: Option<Vec<u8>>,
    /// What has come so far, unless it is too much to keep.
    keeping: Option<Vec<u8>>,
    /// The position in the block.
    at: usize,
    /// The bytes that have been read.
    pub(super) bytes: u64,
}

impl Content<'_> {
    /// The channel, for progress.
    pub(super) fn channel(&mut self) -> &mut Channel {
        self.channel
    }

    /// Calls `each` with all blocks.
    pub(super) fn blocks(
        &mut self,
        mut each: impl FnMut(&[u8], &mut Self) -> Result<(), QueryError>,
    ) -> Result<(), QueryError> {
        let mut block = vec![0; 256 << 10];
        loop {
            match self.read(&mut block) {
                Ok(0) => return Ok(()),
                Ok(length) => each(&block[..length], self)?,
                Err(_) => return Err(QueryError::Failed),
            }
        }
    }
}

impl Read for Content<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.kept.is_none() && self.at == self.channel.buffer.len() {
            // Empty blocks are skipped: a read of no bytes would mean the end.
            while self.channel.pulling && self.channel.next_block()? {
                if !self.channel.buffer.is_empty() {
                    break;
                }
            }

            self.at = 0;
            let block = &self.channel.buffer;
            match &mut self.keeping {
                Some(kept) if kept.len() + block.len() <= KEPT_BYTES => kept.extend(block),
                keeping => *keeping = None,
            }
        }

        let block = self.kept.as_ref().unwrap_or(&self.channel.buffer);
        let length = to.len().min(block.len() - self.at);
        to[..length].copy_from_slice(&block[self.at..self.at + length]);
        self.at += length;
        self.bytes += length as u64;
        Ok(length)
    }
}

impl Drop for Content<'_> {
    fn drop(&mut self) {
        let whole = !self.channel.pulling;
        let keeping = self.keeping.take().filter(|_| whole);
        self.channel.kept[self.table] = self.kept.take().or(keeping);
    }
}
