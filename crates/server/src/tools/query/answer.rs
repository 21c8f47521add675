//! The result of a query, for models and for programs.

use larder_query::{Answer, Engine, Question, ReadCounts, Table};
use larder_records::{
    Layout, notes,
    words::{count, number},
};
use larder_store::store::Entry;
use rmcp::model::{CallToolResult, ContentBlock};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::{Format, QueryResource};
use crate::{
    handler::Structured,
    spill::tool_calls::{call, type_and_size},
};

/// The most bytes of notes in the text.
const MAX_NOTES_BYTES: usize = 600;

/// The structured result.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct QueryResult {
    /// The columns of the rows.
    columns: Vec<Column>,
    /// The returned rows. For jq each has one value.
    rows: Vec<Vec<Value>>,
    /// The number of rows of the whole result.
    total: u64,
    /// Whether rows contains the whole result.
    complete: bool,
    /// Whether the only returned row is too long for a result and was cut.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cut: bool,
    /// The arguments of query_resource for the next rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<Value>,
    /// The URI under which the whole result is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    stored: Option<String>,
    /// How much was read.
    read: Read,
    /// Notes about values that were taken for null, left out or changed while the content was read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<Note>,
}

/// A note about how the content was read.
#[derive(Debug, Serialize, JsonSchema)]
struct Note {
    /// null, text, number, big_integer, renamed, ragged, skipped, repaired or chosen.
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    table: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<String>,
    /// How many values, records or lines it concerns.
    count: u64,
    /// The offset of the first record, for read_resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<u64>,
    text: String,
}

impl Note {
    fn new(note: &notes::Note) -> Self {
        let notes::Note { kind, table, column, count, first, text } = note.clone();
        Self { kind: kind.name().to_owned(), table, column, count, first, text }
    }
}

/// Whether the whole result is stored.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stored<'a> {
    /// The answer is stored.
    At(&'a Entry),
    /// The caller can store it by `into`.
    No,
    /// The caller may not store it.
    Refused,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Column {
    name: String,
    /// integer, number, text, null, any; json for jq.
    r#type: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Read {
    rows: u64,
    bytes: u64,
    /// Lines that are not JSON, or that the pattern of a log does not match.
    skipped: u64,
}

pub(super) fn result(
    answer: Answer,
    args: &QueryResource,
    question: &Question,
    stored: Stored<'_>,
) -> (Structured<QueryResult>, CallToolResult) {
    let Answer { columns, rows, text, total, cut, read, places, notes } = answer;
    let shown = rows.len() as u64;
    let done = args.offset.saturating_add(shown);
    let complete = args.offset == 0 && shown == total && !cut;

    let next = if cut && matches!(stored, Stored::No) {
        Some(repeat(args, args.offset, true))
    } else if done < total && shown > 0 {
        Some(repeat(args, done, false))
    } else {
        None
    };

    let noun = if question.engine == Engine::Sql { "row" } else { "value" };
    let mut head = window(noun, args.offset, shown, total, cut);
    if cut {
        head += ": this one is too long and is cut";
        if matches!(stored, Stored::Refused) {
            head += ", so select less of it";
        }
    }

    // A filter over text that is not JSON gets its lines, which are seldom meant.
    let is_lines = |table: &Table| {
        table.layout == Layout::Log && table.conversion.is_none() && table.pattern.is_none()
    };
    let are_lines = question.engine != Engine::Sql && question.tables.iter().all(is_lines);
    head += &if are_lines {
        format!("; read {} of text, each as {{line_no, line}}", count(read.rows, "line"))
    } else {
        reading(&read, &places)
    };
    if !notes.is_empty() {
        head += &format!(". Note: {}", notes.text(MAX_NOTES_BYTES));
    }

    if let Some(next) = &next {
        head += &format!(". Next: {}", call("query_resource", next));
    }

    let stored = match stored {
        Stored::At(entry) => Some(entry),
        Stored::No | Stored::Refused => None,
    };
    if let Some(entry) = stored {
        head +=
            &format!(". The whole result is stored as {} ({})", entry.uri, type_and_size(entry));
    }

    let text = format!("{head}.\n\n{text}");
    let mut content = vec![ContentBlock::text(text)];
    content.extend(stored.map(Entry::to_link));

    let columns = columns.into_iter().map(|c| Column { name: c.name, r#type: c.kind });
    let result = QueryResult {
        columns: columns.collect(),
        rows,
        total,
        complete,
        cut,
        next,
        stored: stored.map(|entry| entry.uri.to_string()),
        read: Read { rows: read.rows, bytes: read.bytes, skipped: read.skipped },
        notes: notes.iter().map(Note::new).collect(),
    };

    (Structured(result), CallToolResult::success(content))
}

/// The part of the result that is shown: `2 of 48 rows, not complete`.
fn window(noun: &str, offset: u64, shown: u64, total: u64, cut: bool) -> String {
    let totals = count(total, noun);
    let done = offset.saturating_add(shown);

    if offset == 0 && shown == total && !cut {
        format!("{} of {totals}, complete", number(shown))
    } else if shown == 0 {
        format!("{totals}, none after the first {}", number(offset))
    } else if offset == 0 {
        format!("{} of {totals}, not complete", number(shown))
    } else {
        let end = if done >= total && !cut { "the end" } else { "not complete" };
        format!("{noun}s {} to {} of {totals}, {end}", number(offset + 1), number(done))
    }
}

/// How much was read, and from where: `; read 49 rows of /items; 2 lines skipped`.
fn reading(read: &ReadCounts, places: &[(String, String)]) -> String {
    let mut text = format!("; read {}", count(read.rows, "row"));
    match places {
        [(_, at)] => text += &format!(" of {at}"),
        places => {
            for (table, at) in places {
                text += &format!(", {table}: {at}");
            }
        }
    }

    if read.skipped > 0 {
        text += &format!("; {} skipped", count(read.skipped, "line"));
    }
    text
}

/// The arguments of the same query from another row on; or with the result
/// stored, if a row is too long to be returned.
fn repeat(args: &QueryResource, offset: u64, into: bool) -> Value {
    let mut next = json!({ "from": args.from });
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            next[name] = value;
        }
    };

    set("sql", args.sql.clone().map(Value::from));
    set("jq", args.jq.clone().map(Value::from));
    set("format", (args.format != Format::Auto).then(|| json!(args.format)));
    set("rows", args.rows.clone().map(Value::from));
    set("pattern", args.pattern.clone().map(Value::from));
    set("slurp", args.slurp.then_some(Value::Bool(true)));
    set("limit", args.limit.map(Value::from));
    set("revision", args.revision.map(Value::from));
    set("offset", (offset > 0).then(|| offset.into()));
    set("into", into.then(|| json!({})));

    next
}
