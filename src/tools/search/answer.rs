//! The text of the result.

use std::fmt::Write;

use serde_json::{Value, json};

use super::{
    super::{
        regex::has_short_matches,
        scan::{PIECE_MATCH_BYTES, WHOLE_LINE_BYTES},
        wording::{call_at_revision, revision_suffix},
    },
    SearchResource,
    places::Places,
    rows::{MatchRow, Row, Rows},
};
use crate::{
    preview::words::{count, number},
    quote::quoted,
    records::Location,
    store::StoredResource,
};

/// Longer JSON Pointers are left out, in bytes.
const POINTER_BYTES: usize = 200;
/// The bytes that the call for a match in a long line reads before it.
const BEFORE_BYTES: u64 = 1_000;

/// The rows that fit, as text.
struct Shown<'a> {
    text: String,
    first: Option<&'a MatchRow>,
    /// The number of matches up to the last row's end.
    passed: u64,
}

pub(super) fn result_text(
    found: &StoredResource,
    args: &SearchResource,
    rows: &Rows,
    places: &Places,
    budget: usize,
) -> String {
    let entry = &found.entry;
    let searched =
        format!("{}{} ({})", entry.uri, revision_suffix(args.revision), count(entry.lines, "line"));
    let complete = complete(args, rows);
    if rows.matches == 0 {
        let query = quoted(&args.query);
        let found = if args.invert { "Every line" } else { "No line" };
        return format!("{found} of {searched} matches {query}. {complete}");
    }
    let total = total(args, rows);
    if args.count_only {
        return format!("{total} in {searched}. {complete}");
    }
    let shown = show(rows, places, budget);
    let Some(first) = shown.first else {
        return format!("{total} in {searched}, none after the first {}.", number(args.offset));
    };
    let range = |passed: u64| {
        let what = if args.invert { "Lines without a match" } else { "Matches" };
        let (first, last) = (number(args.offset + 1), number(passed));
        format!("{what} {first}-{last} of {} in {searched}.", number(rows.matches))
    };
    let is_end = shown.passed == rows.matches;
    let head = if is_end && args.offset == 0 {
        format!("{total} in {searched}. {complete}")
    } else if is_end {
        let exact = complete.strip_prefix("Complete.").unwrap_or(&complete);
        format!(
            "{} This is the end.{}{exact}",
            range(shown.passed),
            if exact.is_empty() { "" } else { " " }
        )
    } else {
        let next = next_arguments(args, shown.passed);
        let next = call_at_revision("search_resource", next, args.revision);
        format!("{} Not complete; next: {next}.", range(shown.passed))
    };
    format!("{head} {}\n\n{}", to_see(args, first, places), shown.text)
}

/// Whether the total is exact, and whether all of it is shown.
fn complete(args: &SearchResource, rows: &Rows) -> String {
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
    if limits.is_empty() { "Complete.".to_owned() } else { limits.join(" ") }
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
    next
}

/// The call that shows the place of a match.
fn to_see(args: &SearchResource, row: &MatchRow, places: &Places) -> String {
    let place = row.at.first().copied().unwrap_or_default();
    let (what, read) = match places.get(place) {
        Some(Location { record: Some(record), at, .. })
            if at.to_string().len() <= POINTER_BYTES =>
        {
            let mut read =
                json!({ "uri": args.uri, "unit": "records", "offset": record, "limit": 1 });
            if !at.is_empty() {
                read["at"] = json!(at.to_string());
            }
            (format!("To see record {}", number(*record)), read)
        }
        _ if row.is_long => {
            let from = place.saturating_sub(BEFORE_BYTES);
            let limit = 2 * BEFORE_BYTES;
            let read = json!({ "uri": args.uri, "unit": "bytes", "offset": from, "limit": limit });
            (format!("To see around byte {}", number(place)), read)
        }
        _ => {
            // Ten lines before it; line N is at offset N - 1.
            let from = row.line.saturating_sub(11);
            let read = json!({ "uri": args.uri, "offset": from, "limit": 20 });
            (format!("To see around line {}", number(row.line)), read)
        }
    };
    format!("{what}: {}.", call_at_revision("read_resource", read, args.revision))
}

fn show<'a>(rows: &'a Rows, places: &Places, budget: usize) -> Shown<'a> {
    let mut shown = Shown { text: String::new(), first: None, passed: 0 };
    for row in &rows.items {
        let line = match row {
            Row::Gap => "--".to_owned(),
            Row::Context { line, text } => format!("{line}- {text}"),
            Row::Match(row) => format!("{}: {}{}", row.line, place(row, places), row.text),
        };
        // At least one match, or the next call would be the same one.
        if shown.first.is_some() && shown.text.len() + line.len() >= budget {
            break;
        }
        // Writing to a string cannot fail.
        let _ = writeln!(shown.text, "{line}");
        if let Row::Match(row) = row {
            shown.first.get_or_insert(row);
            shown.passed = row.passed;
        }
    }
    shown
}

/// The place of a match within its line: `byte 17, record 3, /3/level: `.
fn place(row: &MatchRow, places: &Places) -> String {
    let mut parts: Vec<String> = Vec::new();
    if row.is_long {
        parts.extend(row.at.first().map(|offset| format!("byte {offset}")));
    }
    for location in row.at.iter().filter_map(|offset| places.get(*offset)) {
        let pointer = location.pointer.as_ref().map(ToString::to_string);
        let pointer =
            pointer.filter(|pointer| !pointer.is_empty() && pointer.len() <= POINTER_BYTES);
        let record = location.record.map(|record| format!("record {record}"));
        for part in record.into_iter().chain(pointer) {
            if !parts.contains(&part) {
                parts.push(part);
            }
        }
    }
    if parts.is_empty() { String::new() } else { parts.join(", ") + ": " }
}
