//! Replacements of exact texts.

use larder_records::words::{count, number};
use memchr::memmem;
use schemars::JsonSchema;
use serde::Deserialize;

/// The most lines that an error names.
const MAX_PLACES: usize = 5;

/// A text that stands once in the content, and the text that replaces it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::tools) struct TextEdit {
    old: String,
    new: String,
    /// Whether each occurrence is replaced.
    #[serde(default)]
    all: bool,
}

/// The text after all edits, in their order: each sees what the edits before it have left.
///
/// # Errors
/// The edit that does not fit, and where its text stands.
pub(super) fn apply(text: String, edits: &[TextEdit]) -> Result<String, String> {
    if edits.is_empty() {
        return Err("edits is empty: give {\"old\": …, \"new\": …}.".to_owned());
    }

    let mut each = edits.iter().enumerate();
    each.try_fold(text, |text, (index, edit)| {
        replaced(&text, edit).map_err(|problem| format!("edits[{index}]: {problem}"))
    })
}

fn replaced(text: &str, TextEdit { old, new, all }: &TextEdit) -> Result<String, String> {
    if old.is_empty() {
        return Err("old is empty: give a text that is there, or append.".to_owned());
    }
    if old == new {
        return Err("old and new are the same.".to_owned());
    }
    if *all && text.contains(old.as_str()) {
        return Ok(text.replace(old.as_str(), new));
    }

    let places = places(text, old);
    match places.as_slice() {
        [] => Err(missing(text, old)),
        [at] => Ok([&text[..*at], new, &text[at + old.len()..]].concat()),
        several => {
            let named = several.iter().take(MAX_PLACES);
            let lines: Vec<_> = named.map(|at| number(line_at(text, *at))).collect();
            let more = if several.len() > MAX_PLACES { ", …" } else { "" };
            Err(format!(
                "old occurs {}, in lines {}{more}: give more of the text around it, or \"all\": true.",
                count(several.len() as u64, "time"),
                lines.join(", ")
            ))
        }
    }
}

/// The offsets at which a text stands, also where it overlaps itself.
fn places(text: &str, old: &str) -> Vec<usize> {
    let finder = memmem::Finder::new(old);
    let mut places = Vec::new();
    let mut from = 0;
    while let Some(at) = finder.find(&text.as_bytes()[from..]) {
        places.push(from + at);
        from += at + 1;
    }
    places
}

/// The number of the line at an offset.
fn line_at(text: &str, offset: usize) -> u64 {
    1 + memchr::memchr_iter(b'\n', &text.as_bytes()[..offset]).count() as u64
}

/// Says how a text that is missing differs from what is there.
fn missing(text: &str, old: &str) -> String {
    let lines = count(text.lines().count() as u64, "line");
    let there = |other: &str| text.find(other).map(|at| number(line_at(text, at)));

    if let Some(line) = there(&old.replace("\r\n", "\n").replace('\n', "\r\n")) {
        return format!("old is not there as it is: lines end with \\r\\n there (line {line}).");
    }
    if let Some(line) = there(&old.replace("\r\n", "\n")) {
        return format!("old is not there as it is: lines end with \\n there (line {line}).");
    }
    if let Some(line) = there(old.trim()).filter(|_| !old.trim().is_empty()) {
        return format!(
            "old is not there as it is, but without the white space around it in line {line}."
        );
    }

    let first = old.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let hint = match there(first).filter(|_| !first.is_empty()) {
        Some(line) if first.len() < old.trim().len() => {
            format!(" Its first line is in line {line}; what follows differs.")
        }
        _ => " Find it with search_resource.".to_owned(),
    };
    format!("old is not in its {lines}.{hint}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(old: &str, new: &str, all: bool) -> TextEdit {
        TextEdit { old: old.into(), new: new.into(), all }
    }

    #[test]
    fn each_edit_replaces_one_text_or_all() {
        let text = "one\ntwo\nthree\n";
        for (edits, edited) in [
            (vec![edit("two", "2", false)], "one\n2\nthree\n"),
            (vec![edit("two\n", "", false)], "one\nthree\n"),
            (vec![edit("one", "two", false), edit("two", "2", true)], "2\n2\nthree\n"),
            (vec![edit("e", "E", true)], "onE\ntwo\nthrEE\n"),
            (vec![edit("three\n", "three\nfour\n", false)], "one\ntwo\nthree\nfour\n"),
            (vec![edit("one", "ö", false), edit("ö\nt", "x", false)], "xwo\nthree\n"),
        ] {
            assert_eq!(apply(text.into(), &edits).as_deref(), Ok(edited));
        }
    }

    #[test]
    fn what_does_not_fit_is_counted_and_placed() {
        let text = "a\nb\na\n  c d\nlast\r\nline\r\naaa\n";
        for (wanted, said) in [
            (edit("a\n", "x", false), "edits[0]: old occurs 3 times, in lines 1, 3, 7: "),
            (edit("aa", "x", false), "edits[0]: old occurs 2 times, in lines 7, 7: "),
            (edit("none", "x", false), "edits[0]: old is not in its 7 lines. Find it"),
            (edit("none", "x", true), "edits[0]: old is not in its 7 lines."),
            (edit("last\nline", "x", false), "lines end with \\r\\n there (line 5)"),
            (edit("\tc d", "x", false), "without the white space around it in line 4"),
            (edit("b\nz", "x", false), "Its first line is in line 2; what follows differs."),
            (edit("", "x", false), "old is empty"),
            (edit("b", "b", false), "old and new are the same"),
        ] {
            let problem = apply(text.into(), std::slice::from_ref(&wanted)).unwrap_err();
            assert!(problem.contains(said), "{wanted:?}: {problem}");
        }
        assert!(apply(text.into(), &[]).is_err());
    }
}
