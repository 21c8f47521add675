//! Records of structured content: the items of a JSON list or the members of a
//! JSON object, the lines of NDJSON and of logs, the rows of CSV and TSV.
//!
//! A [`Scanner`] gets content in blocks of any size and gives the boundaries of
//! the records; a [`Splitter`] gives their bytes; a [`RecordIndex`] finds record N
//! again without a scan from the start; a [`Locator`] names the place of a byte. All
//! work in bounded memory and without I/O. Offsets are in bytes from the start of the
//! content. Records are numbered from 0. [`record_lines`] lays JSON out with a record on
//! each line.

mod columns_and_rows;
mod compact;
mod conversion;
mod escapes;
mod index;
mod indexer;
mod json;
mod lexer;
mod lines;
mod lists;
mod locator;
mod loose;
mod maps;
mod markdown;
mod media_type;
mod misfits;
pub mod notes;
mod pointer;
pub mod preview;
mod record_lines;
mod row_parser;
mod rows;
mod scanner;
mod splitter;
mod table;
mod table_detection;
mod text_decoder;
pub mod typing;
pub mod words;

use serde::{Deserialize, Serialize};

pub use compact::{Compactor, compact_record};
pub use conversion::Conversion;
pub use escapes::{EscapeStripper, has_escapes, without_escapes};
pub use index::{Mark, RecordIndex};
pub use indexer::Indexer;
pub use lists::{List, Lists};
pub use locator::{Location, Locator};
pub use loose::{Converted, repair_member, repair_value};
pub use media_type::{essence, is_json_lines};
pub use misfits::Misfits;
pub use pointer::{InvalidPointer, Pointer};
pub use preview::{declared_table, possible_table};
pub use record_lines::record_lines;
pub use row_parser::RowParser;
pub use scanner::Scanner;
pub use splitter::Splitter;
pub use table::{Character, Charset, Decimal, Delimiter, Dialect, InvalidOption, TableOptions};
pub use text_decoder::{Compression, DecodeFault, TextDecoder, TextEncoding};

/// The depth of JSON that is accepted, in nested lists and objects.
pub const MAX_DEPTH: usize = 1_000;

/// The division of content into records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// A JSON value with records in one list or object.
    Json,
    /// A JSON value on each line; empty lines are no records.
    JsonLines,
    /// Delimited rows, below a header row if there is one, which is no record. Fields may be
    /// quoted and contain line breaks. Empty lines are no records.
    Rows(Dialect),
    /// Lines of text, empty ones included.
    Log,
}

/// The JSON value that has the records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Container {
    /// A list: its items are the records.
    List,
    /// An object: its members are the records.
    Object,
    /// A string, number, boolean or null: it is the only record.
    Scalar,
}

/// The boundaries of one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// The number of the record.
    pub number: u64,
    /// The offset of its first byte. For a member of an object: of its key.
    pub start: u64,
    /// The offset of its value: `start`, except for a member of an object.
    pub value: u64,
    /// The offset after its last byte. Line breaks and commas are not included.
    pub end: u64,
}

/// The reason why content cannot be divided into records.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The content is not JSON.
    #[error("it is not JSON: unexpected byte at offset {offset}")]
    Malformed {
        /// The offset of the byte.
        offset: u64,
    },
    /// The content ends within a JSON value.
    #[error("it is not JSON: it ends within a value, at offset {offset}")]
    Truncated {
        /// The size of the content.
        offset: u64,
    },
    /// Lists and objects are nested too deeply.
    #[error("its JSON is nested deeper than {MAX_DEPTH} levels, at offset {offset}")]
    TooDeep {
        /// The offset of the bracket.
        offset: u64,
    },
    /// A record is too long to be handled as a whole.
    #[error("the record at offset {offset} is longer than {limit} bytes")]
    TooLong {
        /// The offset of the record.
        offset: u64,
        /// The limit.
        limit: usize,
    },
}

#[cfg(test)]
mod tests;
