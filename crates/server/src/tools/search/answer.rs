//! The text of the result.

use std::fmt::Write;

use larder_protocol::{json_size, quote::quoted};
use larder_records::words::{count, number};
use larder_store::store::StoredResource;
use rmcp::model::{CallToolResult, ContentBlock};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    super::{
        regex::has_short_matches,
        scan::{PIECE_MATCH_BYTES, WHOLE_LINE_BYTES},
        wording::{at_revision, call, revision_suffix},
    },
    SearchResource,
    places::{POINTER_BYTES, Places},
    rows::{MatchRow, Row, Rows},
    see::See,
};
use crate::handler::Structured;

/// The structured result: the same as the text, because some hosts show a model only
/// one of them.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SearchResult {
    /// The number of all matches; with invert, of the lines without one.
    total: u64,
    /// The number of lines with a match; with invert, without one.
    lines: u64,
    /// Whether total is exact and rows has all matches.
    pub(super) complete: bool,
    /// The returned lines.
    rows: Vec<FoundLine>,
    /// The arguments of search_resource for the next matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<Value>,
    /// The arguments of read_resource that show the first returned match.
    #[serde(skip_serializing_if = "Option::is_none")]
    read: Option<Value>,
}

/// A line, or a match in a long line.
#[derive(Debug, Serialize, JsonSchema)]
struct FoundLine {
    /// The number of the line, from 1.
    line: u64,
    /// Whether it is only context of a match.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    context: bool,
    /// The places of matches, in long lines and in records.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    places: Vec<Place>,
    text: String,
}

/// The place of a match.
#[derive(Debug, Serialize, JsonSchema)]
struct Place {
    /// The offset in the content, in bytes.
    byte: u64,
    /// The number of the record, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<u64>,
    /// The JSON Pointer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pointer: Option<String>,
}

/// The rows that fit.
#[derive(Default)]
struct Shown<'a> {
    text: String,
    rows: Vec<FoundLine>,
    first: Option<&'a MatchRow>,
    /// The number of matches up to the last row's end.
    passed: u64,
}

pub(super) fn result(
    found: &StoredResource,
    args: &SearchResource,
    rows: &Rows,
    places: &Places,
    see: Option<See>,
    budget: usize,
) -> (Structured<SearchResult>, CallToolResult) {
    let entry = &found.entry;
    let searched =
        format!("{}{} ({})", entry.uri, revision_suffix(args.revision), count(entry.lines, "line"));

    let (exact, limits) = limits(args, rows);
    let mut result = SearchResult {
        total: rows.matches,
        lines: rows.lines,
        complete: exact,
        rows: Vec::new(),
        next: None,
        read: None,
    };

    let total = total(args, rows);
    let shown = if args.count_only { Shown::default() } else { show(rows, places, budget) };

    let text = match shown.first {
        _ if rows.matches == 0 => {
            let query = quoted(&args.query);
            let found = if args.invert { "Every line" } else { "No line" };
            format!("{found} of {searched} matches {query}. {limits}")
        }
        _ if args.count_only => format!("{total} in {searched}. {limits}"),
        None => {
            result.complete = false;
            format!("{total} in {searched}, none after the first {}.", number(args.offset))
        }
        Some(_) => {
            let is_end = shown.passed == rows.matches;
            let head = if is_end && args.offset == 0 {
                format!("{total} in {searched}. {limits}")
            } else {
                result.complete = false;
                let what = if args.invert { "Lines without a match" } else { "Matches" };
                let from = number(args.offset + 1);
                let to = number(shown.passed);
                let range = format!("{what} {from}-{to} of {}", number(rows.matches));
                if is_end {
                    let limits = if exact { String::new() } else { format!(" {limits}") };
                    format!("{range} in {searched}. This is the end.{limits}")
                } else {
                    let next = result.next.insert(next_arguments(args, shown.passed));
                    let next = call("search_resource", next);
                    format!("{range} in {searched}. Not complete; next: {next}.")
                }
            };

            let see = see.map_or_else(String::new, |See { what, read }| {
                format!(" To see {what}: {}.", call("read_resource", result.read.insert(read)))
            });
            format!("{head}{see}\n\n{}", shown.text)
        }
    };

    result.rows = shown.rows;
    (Structured(result), CallToolResult::success(vec![ContentBlock::text(text)]))
}

/// Whether the total is exact and no match was left out, and the sentences that say so.
fn limits(args: &SearchResource, rows: &Rows) -> (bool, String) {
    let mut limits = Vec::new();
    if rows.left_out {
        limits.push("More matches of some lines are not shown (max_per_line).".to_owned());
    }

    if rows.in_pieces && !has_short_matches(&args.query, args.syntax()) {
        limits.push(format!(
            "Lines over {} bytes are searched in pieces: matches over {} bytes may be missed in them.",
            number(WHOLE_LINE_BYTES as u64),
            number(PIECE_MATCH_BYTES as u64)
        ));
    }

    if limits.is_empty() { (true, "Complete.".to_owned()) } else { (false, limits.join(" ")) }
}

fn total(args: &SearchResource, rows: &Rows) -> String {
    if args.invert {
        return format!("{} without a match", count(rows.matches, "line"));
    }

    let matches = count(rows.matches, "match");
    if rows.lines == rows.matches {
        return matches;
    }
    format!("{matches} on {}", count(rows.lines, "line"))
}

fn next_arguments(args: &SearchResource, offset: u64) -> Value {
    let mut next = json!({
        "uri": args.uri,
        "query": args.query,
        "offset": offset,
        "limit": args.limit.unwrap_or(super::DEFAULT_LIMIT),
    });

    if args.context > 0 {
        next["context"] = json!(args.context);
    }
    if let Some(max) = args.max_per_line {
        next["max_per_line"] = json!(max);
    }

    let flags = [
        ("ignore_case", args.ignore_case),
        ("literal", args.literal),
        ("whole_word", args.whole_word),
        ("invert", args.invert),
    ];
    for (name, _) in flags.into_iter().filter(|(_, is_set)| *is_set) {
        next[name] = json!(true);
    }
    at_revision(next, args.revision)
}

fn show<'a>(rows: &'a Rows, places: &Places, budget: usize) -> Shown<'a> {
    let mut shown = Shown::default();
    let mut row_bytes = 0;
    // Rows after a gap are context of the next match, which may not be shown.
    let mut gap = None;

    for row in &rows.items {
        let (line, found) = match row {
            Row::Gap => ("--".to_owned(), None),
            Row::Context { line, text } => (format!("{line}- {text}"), Some(context(*line, text))),
            Row::Match(row) => {
                let found = found_line(row, places);
                (
                    format!("{}: {}{}", row.line, place_words(row, &found.places), row.text),
                    Some(found),
                )
            }
        };

        row_bytes += found.as_ref().map_or(0, |found| json_size(found) + 1);
        // A result has at least one match, or the next call would repeat this call.
        let is_full = row_bytes.max(shown.text.len() + line.len()) >= budget;
        if shown.first.is_some() && is_full {
            break;
        }

        if let Row::Gap = row {
            gap = Some((shown.text.len(), shown.rows.len()));
        }

        // Writing to a string cannot fail.
        let _ = writeln!(shown.text, "{line}");
        shown.rows.extend(found);

        if let Row::Match(row) = row {
            shown.first.get_or_insert(row);
            shown.passed = row.passed;
            gap = None;
        }
    }

    if let Some((text, rows)) = gap {
        shown.text.truncate(text);
        shown.rows.truncate(rows);
    }
    shown
}

fn context(line: u64, text: &str) -> FoundLine {
    FoundLine { line, context: true, places: Vec::new(), text: text.to_owned() }
}

fn found_line(row: &MatchRow, places: &Places) -> FoundLine {
    let place = |offset: &u64| {
        let location = places.get(*offset);
        let record = location.and_then(|location| location.record);
        let pointer = location.and_then(|location| location.pointer.as_ref());
        let pointer = pointer.map(ToString::to_string);
        let pointer =
            pointer.filter(|pointer| !pointer.is_empty() && pointer.len() <= POINTER_BYTES);
        let is_shown = row.is_long || record.is_some() || pointer.is_some();
        is_shown.then_some(Place { byte: *offset, record, pointer })
    };

    FoundLine {
        line: row.line,
        context: false,
        places: row.at.iter().filter_map(place).collect(),
        text: row.text.clone(),
    }
}

/// The places within a line: `byte 17, record 3, /3/level: `.
fn place_words(row: &MatchRow, places: &[Place]) -> String {
    let byte = places.first().filter(|_| row.is_long);
    let mut words: Vec<String> =
        byte.map(|place| format!("byte {}", place.byte)).into_iter().collect();

    for Place { record, pointer, .. } in places {
        let record = record.map(|record| format!("record {record}"));
        for word in record.into_iter().chain(pointer.clone()) {
            if !words.contains(&word) {
                words.push(word);
            }
        }
    }

    if words.is_empty() { String::new() } else { words.join(", ") + ": " }
}
