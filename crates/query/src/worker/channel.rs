//! The worker's end of the messages, and the content that it asks for.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Read, StdinLock, StdoutLock, Write},
};

use larder_records::{
    Conversion, DecodeFault, Layout, Misfits, TextDecoder, TextEncoding,
    notes::{Note, NoteKind},
    words::count,
};
use serde::Serialize;

use crate::{
    Answer, Confinement, QueryError, Question,
    script::{ScriptFailure, ScriptStart},
    wire::{self, Progress},
};

/// The maximum size of content that is kept for the next pass, in bytes.
const KEPT_BYTES: usize = 16 << 20;
/// The most records of one oddity that are counted.
const MAX_ODD: usize = 100_000;
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
    /// How the contents are text, by the index of their table.
    encodings: Vec<Option<TextEncoding>>,
    /// The most bytes of text that one content may become.
    input_bytes: u64,
    /// Notes about the contents, by the index of their table.
    told: Vec<Told>,
    /// The table whose content is read.
    reading: usize,
    /// Whether a part of the result to store was sent.
    has_stored: bool,
}

/// The work of a worker.
pub(super) enum Asked {
    Question(Question),
    Script(ScriptStart),
}

/// The note of the server about a content, and the repairs.
#[derive(Debug, Clone, Default)]
struct Told {
    table: String,
    /// The change of the content, and the layout of what it is now.
    change: Option<ContentChange>,
    /// How it was changed.
    converted: Vec<Note>,
    misfits: Misfits,
    /// The records that have an oddity.
    odd: BTreeMap<Oddity, BTreeSet<u64>>,
}

/// A property of a record that is told, because other readers take it otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Oddity {
    /// The record was repaired to be JSON.
    Repaired,
    /// The record has a key more than once.
    RepeatedKey,
}

impl Oddity {
    fn note(self, records: &BTreeSet<u64>) -> Note {
        let at_least = if records.len() == MAX_ODD { "at least " } else { "" };
        let records_told = count(records.len() as u64, "record");
        let text = match self {
            Self::Repaired => format!("{at_least}{records_told} repaired to be JSON"),
            Self::RepeatedKey => {
                format!("{at_least}{records_told} with a key twice, of which the last value counts")
            }
        };

        Note {
            kind: NoteKind::Repaired,
            table: None,
            column: None,
            count: records.len() as u64,
            first: records.first().copied(),
            text,
        }
    }
}

/// A change of content before it is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct ContentChange {
    pub(super) conversion: Conversion,
    pub(super) layout: Layout,
    /// Whether it was made for jq.
    pub(super) is_for_filters: bool,
}

impl Channel {
    pub(super) fn new() -> Self {
        let input = io::stdin().lock();
        let output = io::stdout().lock();
        Self {
            input,
            output,
            buffer: Vec::new(),
            pulling: false,
            kept: Vec::new(),
            encodings: Vec::new(),
            input_bytes: 0,
            told: Vec::new(),
            reading: 0,
            has_stored: false,
        }
    }

    /// Says that the worker can get questions, and how far it is confined.
    pub(super) fn ready(&mut self, barriers: Confinement) -> io::Result<()> {
        self.send(wire::READY, &barriers)
    }

    /// The next question, or a script; `None` when there are no more.
    pub(super) fn next(&mut self) -> io::Result<Option<Asked>> {
        match wire::read(&mut self.input, &mut self.buffer)? {
            None => Ok(None),
            Some(wire::QUESTION) => {
                let question: Question = serde_json::from_slice(&self.buffer)?;
                self.encodings = question.tables.iter().map(|table| table.encoding).collect();
                self.input_bytes = question.input_bytes;
                self.has_stored = false;
                self.told.resize(question.tables.len(), Told::default());
                let encodings = self.encodings.iter_mut();
                let tables = question.tables.iter().zip(encodings);
                for (told, (table, encoding)) in self.told.iter_mut().zip(tables) {
                    told.table.clone_from(&table.name);
                    // Content that was changed is UTF-8.
                    encoding.take_if(|_| told.change.is_some());
                }
                Ok(Some(Asked::Question(question)))
            }
            Some(wire::SCRIPT) => Ok(Some(Asked::Script(serde_json::from_slice(&self.buffer)?))),
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
        self.has_stored = true;
        wire::write(&mut self.output, wire::STORE, bytes).map_err(|_| QueryError::Failed)
    }

    /// Whether the question can be answered anew: no part of a result was sent.
    pub(super) fn can_repeat(&self) -> bool {
        !self.has_stored
    }

    /// Reads the rest of the content that is on its way.
    pub(super) fn drain(&mut self) -> io::Result<()> {
        while self.pulling && self.next_block()? {}
        Ok(())
    }

    /// How a table's content was changed.
    pub(super) fn change(&self, table: usize) -> Option<ContentChange> {
        self.told.get(table).and_then(|told| told.change)
    }

    /// Puts changed content in the place of a table's content.
    pub(super) fn replace(
        &mut self,
        table: usize,
        change: ContentChange,
        bytes: Vec<u8>,
        notes: Vec<Note>,
    ) {
        self.kept[table] = Some(bytes);
        self.encodings[table] = None;
        if let Some(told) = self.told.get_mut(table) {
            told.change = Some(change);
            told.converted = notes;
        }
    }

    /// Drops changed content, so that the stored content is read again.
    pub(super) fn restore(&mut self, table: usize, encoding: Option<TextEncoding>) {
        self.kept[table] = None;
        self.encodings[table] = encoding;
        if let Some(told) = self.told.get_mut(table) {
            told.change = None;
            told.converted = Vec::new();
        }
    }

    /// Notes a record that has an oddity.
    pub(super) fn tell(&mut self, oddity: Oddity, record: u64) {
        let Some(told) = self.told.get_mut(self.reading) else { return };
        let records = told.odd.entry(oddity).or_default();
        if records.len() < MAX_ODD {
            records.insert(record);
        }
    }

    /// Notes about the contents.
    pub(super) fn notes(&self) -> Vec<Note> {
        let of_table = |told: &Told| {
            let odd = told.odd.iter().map(|(oddity, records)| oddity.note(records));
            let notes = told.converted.iter().cloned().chain(told.misfits.note()).chain(odd);
            let table = told.table.clone();
            notes.map(move |note| Note { table: Some(table.clone()), ..note }).collect::<Vec<_>>()
        };
        self.told.iter().flat_map(of_table).collect()
    }

    /// Sends a message of a script, as JSON.
    pub(super) fn script_message(&mut self, json: &[u8]) -> io::Result<()> {
        wire::write(&mut self.output, wire::FROM_SCRIPT, json)
    }

    /// Sends the value that a script has returned, as JSON.
    pub(super) fn script_done(&mut self, value: &str) -> io::Result<()> {
        self.script_message(format!(r#"{{"done":{{"value":{value}}}}}"#).as_bytes())
    }

    pub(super) fn script_failed(&mut self, failure: &ScriptFailure) -> io::Result<()> {
        let message = serde_json::json!({ "failed": { "failure": failure } });
        self.script_message(message.to_string().as_bytes())
    }

    /// The next answer to a call of a script, as JSON; `None` when the server has gone.
    pub(super) fn script_reply(&mut self) -> io::Result<Option<String>> {
        match wire::read(&mut self.input, &mut self.buffer)? {
            None => Ok(None),
            Some(wire::REPLY) => {
                let text = String::from_utf8(std::mem::take(&mut self.buffer));
                text.map(Some).map_err(|_| io::ErrorKind::InvalidData.into())
            }
            Some(_) => Err(io::ErrorKind::InvalidData.into()),
        }
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

        self.reading = table;
        let kept = self.kept[table].take();
        if kept.is_none() {
            self.send(wire::PULL, &table).map_err(|_| QueryError::Failed)?;
            self.pulling = true;
            self.buffer.clear();
        }

        let keeping = if kept.is_none() { Some(Vec::new()) } else { None };
        let encoding = self.encodings.get(table).copied().flatten();
        let decoder = encoding.map(|encoding| TextDecoder::new(encoding, self.input_bytes));
        Ok(Content {
            kept,
            keeping,
            at: 0,
            bytes: 0,
            raw: Raw { decoder, text: Vec::new(), at: 0, fault: None },
            channel: self,
            table,
        })
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
    /// The bytes that have come so far, unless they are too many to keep.
    keeping: Option<Vec<u8>>,
    /// The position in the block.
    at: usize,
    /// The bytes that have been read, as UTF-8.
    pub(super) bytes: u64,
    raw: Raw,
}

/// Content in another encoding, on its way to UTF-8.
struct Raw {
    /// `None` if the content is UTF-8, and after its end.
    decoder: Option<TextDecoder>,
    /// The text that was decoded last.
    text: Vec<u8>,
    /// The position in the text.
    at: usize,
    fault: Option<DecodeFault>,
}

impl Content<'_> {
    /// The channel, for progress.
    pub(super) fn channel(&mut self) -> &mut Channel {
        self.channel
    }

    /// Passes over so many lines. A line ends at a line feed, a carriage return, or both.
    pub(super) fn skip_lines(&mut self, mut lines: u32) -> Result<(), QueryError> {
        let mut byte = [0];
        let mut after_return = false;

        // A line feed that is left over is an empty line, which is no row.
        while lines > 0 && self.read(&mut byte).map_err(|_| self.failure())? > 0 {
            let ends = byte[0] == b'\r' || (byte[0] == b'\n' && !after_return);
            lines -= u32::from(ends);
            after_return = byte[0] == b'\r';
        }
        Ok(())
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
                Err(_) => return Err(self.failure()),
            }
        }
    }

    /// Notes the rows that do not fit.
    pub(super) fn tell(&mut self, misfits: Misfits) {
        if let Some(told) = self.channel.told.get_mut(self.table) {
            told.misfits = misfits;
        }
    }

    /// Why reading has failed.
    pub(super) fn failure(&self) -> QueryError {
        match self.raw.fault {
            None => QueryError::Failed,
            Some(fault @ DecodeFault::TooLong { .. }) => QueryError::Refused(format!(
                "The content cannot be read: {fault} (query.input_bytes)."
            )),
            Some(fault) => QueryError::Refused(format!("The content cannot be read: {fault}.")),
        }
    }

    /// Decodes the next part of the content. Returns whether there is text.
    fn decode(&mut self) -> Result<bool, DecodeFault> {
        self.raw.text.clear();
        self.raw.at = 0;

        while self.raw.text.is_empty() {
            let Some(mut decoder) = self.raw.decoder.take() else { return Ok(false) };
            if !self.has_block() {
                decoder.finish(&mut self.raw.text)?;
                return Ok(!self.raw.text.is_empty());
            }

            let block = self.kept.as_ref().unwrap_or(&self.channel.buffer);
            self.at += decoder.step(&block[self.at..], &mut self.raw.text)?;
            self.raw.decoder = Some(decoder);
        }
        Ok(true)
    }
}

impl Read for Content<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.raw.decoder.is_none() && self.raw.text.is_empty() {
            return self.read_stored(to);
        }

        if self.raw.at == self.raw.text.len() {
            let decoded = self.decode().map_err(|fault| {
                self.raw.fault = Some(fault);
                io::Error::other(fault)
            })?;
            if !decoded {
                return Ok(0);
            }
        }

        let rest = &self.raw.text[self.raw.at..];
        let length = to.len().min(rest.len());
        to[..length].copy_from_slice(&rest[..length]);
        self.raw.at += length;
        self.bytes += length as u64;
        Ok(length)
    }
}

impl Content<'_> {
    /// Whether the block has unread bytes, after getting the next one if it has none.
    fn has_block(&mut self) -> bool {
        self.next_block().is_ok() && {
            let block = self.kept.as_ref().unwrap_or(&self.channel.buffer);
            self.at < block.len()
        }
    }

    /// Gets the next block if the present one is used up.
    fn next_block(&mut self) -> io::Result<()> {
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
        Ok(())
    }

    /// Reads the stored bytes.
    fn read_stored(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.next_block()?;
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
