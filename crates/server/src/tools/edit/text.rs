//! Replacements of exact texts.

use larder_records::words::{count, number};
use memchr::memmem;
use schemars::JsonSchema;
use serde::Deserialize;

/// The most edits of one call: each of them reads the text.
const MAX_EDITS: usize = 1_000;
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

/// The text after all edits, in their order: each sees what the edits before it have left. No text
/// on the way is longer than `max_bytes`.
///
/// # Errors
/// The edit that does not fit, and where its text stands.
pub(super) fn apply(text: String, edits: &[TextEdit], max_bytes: u64) -> Result<String, String> {
    if edits.is_empty() {
        return Err("edits is empty: give {\"old\": …, \"new\": …}.".to_owned());
    }
    if edits.len() > MAX_EDITS {
        let most = number(MAX_EDITS as u64);
        return Err(format!("one call makes at most {most} edits: give the rest in another."));
    }

    let mut each = edits.iter().enumerate();
    each.try_fold(text, |text, (index, edit)| {
        replaced(&text, edit, max_bytes).map_err(|problem| format!("edits[{index}]: {problem}"))
    })
}

fn replaced(text: &str, edit: &TextEdit, max_bytes: u64) -> Result<String, String> {
    let TextEdit { old, new, all } = edit;
    if old.is_empty() {
        return Err("old is empty: give a text that is there, or append.".to_owned());
    }
    if old == new {
        return Err("old and new are the same.".to_owned());
    }

    let places = places(text, old);
    match places.as_slice() {
        [] => Err(missing(text, old)),
        [_, ..] if *all => {
            let found = memmem::find_iter(text.as_bytes(), old).count();
            check_size(text, edit, found, max_bytes)?;
            Ok(text.replace(old.as_str(), new))
        }
        [at] => {
            check_size(text, edit, 1, max_bytes)?;
            Ok([&text[..*at], new, &text[at + old.len()..]].concat())
        }
        several => {
            let apart = memmem::find_iter(text.as_bytes(), old).count();
            let found = apart.max(several.len());
            // Overlapping places are not all counted.
            let is_part = apart < several.len() && several.len() > MAX_PLACES;
            let least = if is_part { "at least " } else { "" };
            let named = several.iter().take(MAX_PLACES);
            let lines: Vec<_> = named.map(|at| number(line_at(text, *at))).collect();
            let more = if several.len() > MAX_PLACES { ", …" } else { "" };
            Err(format!(
                "old occurs {least}{}, in lines {}{more}: give more of the text around it, or \"all\": true.",
                count(found as u64, "time"),
                lines.join(", ")
            ))
        }
    }
}

/// Checks the size of the text after so many replacements, before there is such a text.
fn check_size(text: &str, edit: &TextEdit, found: usize, max_bytes: u64) -> Result<(), String> {
    let kept = text.len().saturating_sub(edit.old.len().saturating_mul(found));
    let size = kept.saturating_add(edit.new.len().saturating_mul(found)) as u64;
    if size > max_bytes { Err(too_large(size, max_bytes)) } else { Ok(()) }
}

/// Says that content would be too large to be edited again.
pub(super) fn too_large(size: u64, max_bytes: u64) -> String {
    let size = number(size);
    let most = number(max_bytes);
    format!("it would have {size} bytes, and an edit gives at most {most} (limits.read_bytes).")
}

/// The first offsets at which a text stands, also where it overlaps itself: more than are named,
/// and no more, because a text that overlaps itself takes long to find.
fn places(text: &str, old: &str) -> Vec<usize> {
    let finder = memmem::Finder::new(old);
    let mut places = Vec::new();
    let mut from = 0;
    while places.len() <= MAX_PLACES
        && let Some(at) = finder.find(&text.as_bytes()[from..])
    {
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
    #![allow(clippy::unwrap_used)]

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
            assert_eq!(apply(text.into(), &edits, 100).as_deref(), Ok(edited));
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
            let problem = apply(text.into(), std::slice::from_ref(&wanted), 100).unwrap_err();
            assert!(problem.contains(said), "{wanted:?}: {problem}");
        }
        assert!(apply(text.into(), &[], 100).is_err());
    }

    #[test]
    fn a_text_that_grows_over_the_limit_is_refused_before_it_is_made() {
        // Twelve edits of 1,000 times the text would take 10^36 bytes.
        let growing: Vec<_> = (0..12).map(|_| edit("a", &"a".repeat(1_000), true)).collect();
        let one = "x".repeat(10_000);
        for (edits, said) in [
            (growing, "edits[2]: it would have 1,000,000,000 bytes"),
            (vec![edit("a", &one, true)], "edits[0]: it would have 10,000 bytes"),
            (vec![edit("a", &one, false)], "edits[0]: it would have 10,000 bytes"),
            (vec![edit("a", "b", false); 1_001], "at most 1,000 edits"),
        ] {
            let limit = if said.contains("1,000,000,000") { 1_000_000 } else { 9_999 };
            let problem = apply("a".into(), &edits, limit).unwrap_err();
            assert!(problem.contains(said), "{problem}");
        }
        assert_eq!(apply("a".into(), &[edit("a", &one, true)], 10_000), Ok(one));
    }

    #[test]
    fn a_text_that_overlaps_itself_is_found_a_few_times() {
        let text = "a".repeat(2 << 20);
        let old = "a".repeat(1 << 20);
        assert_eq!(places(&text, &old), (0..=MAX_PLACES).collect::<Vec<_>>());
        let problem = apply(text, &[edit(&old, "b", false)], u64::MAX).unwrap_err();
        assert!(
            problem.contains("occurs at least 6 times, in lines 1, 1, 1, 1, 1, …"),
            "{problem}"
        );
    }
}
