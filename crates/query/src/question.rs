//! [`Question`]: a query as a worker gets it; [`Answer`]: its result.

use larder_records::{Conversion, Layout, TableOptions, TextEncoding, notes::Notes};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The language of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Engine {
    /// One SELECT in SQLite's dialect.
    Sql,
    /// A jq filter. `slurp` makes one list of all inputs.
    Jq {
        /// Whether all inputs are read into one list first.
        slurp: bool,
    },
}

/// A content that a query reads: a table for SQL, the inputs for jq.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// The table's name.
    pub name: String,
    /// How the content is divided into rows.
    pub layout: Layout,
    /// The JSON Pointer to the rows. By default the outermost list; for jq the
    /// whole value.
    pub rows: Option<String>,
    /// The regular expression whose named groups are columns of a log.
    pub pattern: Option<String>,
    /// How the bytes are text, if they are not UTF-8.
    #[serde(default)]
    pub encoding: Option<TextEncoding>,
    /// The change that makes records of the content.
    #[serde(default)]
    pub conversion: Option<Conversion>,
    /// How the fields of a table are written. Its rows are in the layout.
    #[serde(default)]
    pub options: TableOptions,
}

/// The format of a stored result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ResultFormat {
    /// A JSON value on each line: an object for a row.
    Ndjson,
    /// A header and a row on each line.
    Csv,
    /// One JSON list.
    Json,
}

/// A query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The language.
    pub engine: Engine,
    /// The query.
    pub text: String,
    /// The tables that the query reads. None: the query is only checked, and not run.
    pub tables: Vec<Table>,
    /// The number of rows of the result to skip.
    pub offset: u64,
    /// The maximum number of rows to return.
    pub limit: u64,
    /// The maximum size of the returned rows as text, in bytes.
    pub text_bytes: usize,
    /// The format in which the whole result is sent, to be stored.
    pub store: Option<ResultFormat>,
    /// The maximum size of the stored result, in bytes.
    pub result_bytes: u64,
    /// The time limit in seconds.
    pub seconds: u64,
    /// The worker's memory limit in bytes, which errors name.
    pub memory_bytes: u64,
    /// The most bytes of text that content in another encoding may become.
    pub input_bytes: u64,
}

/// A column of a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// The name.
    pub name: String,
    /// The type of the returned values: `integer`, `number`, `text`, `null`, or `any`; `json`
    /// for jq.
    #[serde(rename = "type")]
    pub kind: String,
}

/// How much a query has read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadCounts {
    /// Rows, or inputs of jq.
    pub rows: u64,
    /// Bytes of content.
    pub bytes: u64,
    /// Lines that are not JSON, or that the pattern of a log does not match.
    pub skipped: u64,
}

/// A result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The columns.
    pub columns: Vec<Column>,
    /// The returned rows.
    pub rows: Vec<Vec<Value>>,
    /// The rows as text: CSV below a header for SQL, a value a line for jq.
    pub text: String,
    /// The number of rows of the whole result.
    pub total: u64,
    /// Whether a row is too long for the text, and is cut there.
    pub cut: bool,
    /// How much was read.
    pub read: ReadCounts,
    /// The JSON Pointers to the rows that were chosen by default, by table.
    pub places: Vec<(String, String)>,
    /// Notes about how the content was read.
    #[serde(default)]
    pub notes: Notes,
}
