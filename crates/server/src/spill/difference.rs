//! The difference of two texts, short enough for an answer.

use std::{fmt::Write, time::Duration};

use larder_records::words::count;
use similar::{ChangeTag, DiffOp, TextDiff};

use super::excerpts::{beginning, excerpts};

/// The most bytes of a line.
const MAX_LINE_BYTES: usize = 120;
/// The lines of context around a change.
const CONTEXT: usize = 1;
/// How long lines are compared; after that the difference may be longer than it has to be.
const MAX_TIME: Duration = Duration::from_millis(300);
/// The most bytes between the first and the last change that are compared line by line.
const MAX_COMPARED: usize = 1 << 20;

/// The difference of two texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Difference {
    /// The changed lines, with their places, and how many are not shown.
    Lines(String),
    /// More is changed than is compared, from this line on.
    Much { line: usize },
}

impl Difference {
    /// The text for an answer. Empty if nothing is changed.
    pub(crate) fn into_text(self) -> String {
        match self {
            Self::Lines(lines) => lines,
            Self::Much { line } => format!("From line {line} on, much is changed."),
        }
    }
}

/// The difference of two texts, whose changed lines take at most about `max_bytes`.
pub(crate) fn difference(before: &str, after: &str, max_bytes: usize) -> Difference {
    let start = common_lines(before, after);
    let (before_rest, after_rest) = (&before[start..], &after[start..]);
    let skipped = before[..start].matches('\n').count();

    if before_rest.len().max(after_rest.len()) > MAX_COMPARED
        && common_end(before_rest, after_rest) + MAX_COMPARED
            < before_rest.len().max(after_rest.len())
    {
        return Difference::Much { line: skipped + 1 };
    }

    let diff = TextDiff::configure().timeout(MAX_TIME).diff_lines(before_rest, after_rest);
    let mut text = String::new();
    let mut left_out = 0;

    for group in diff.grouped_ops(CONTEXT) {
        let Some(first) = group.first() else { continue };
        let line = skipped + first.old_range().start + 1;
        let mut hunk = format!("@@ line {line} @@\n");
        let mut changed = 0;

        for (sign, line) in group.iter().flat_map(|op| lines(&diff, *op)) {
            let is_change = sign != ' ';
            if text.len() + hunk.len() > max_bytes {
                left_out += usize::from(is_change);
                continue;
            }

            changed += usize::from(is_change);
            // Writing to a string cannot fail.
            let _ = writeln!(hunk, "{sign}{line}");
        }
        if changed > 0 {
            text += &hunk;
        }
    }

    if left_out > 0 {
        let _ = writeln!(text, "… {} not shown", count(left_out as u64, "more changed line"));
    }
    Difference::Lines(text.trim_end().to_owned())
}

/// The lines of an operation with their signs: those before the change, then those after it.
fn lines(diff: &TextDiff<'_, '_, str>, op: DiffOp) -> Vec<(char, String)> {
    let on_side = |side: ChangeTag| {
        let changes = diff.iter_changes(&op).filter(move |change| change.tag() == side);
        changes.map(|change| change.value().trim_end_matches(['\n', '\r'])).collect::<Vec<_>>()
    };
    if matches!(op, DiffOp::Equal { .. }) {
        let lines = on_side(ChangeTag::Equal).into_iter();
        return lines.map(|line| (' ', beginning(line, MAX_LINE_BYTES))).collect();
    }

    let before = on_side(ChangeTag::Delete);
    let after = on_side(ChangeTag::Insert);
    let pair = |index: usize| match (before.get(index), after.get(index)) {
        (Some(before), Some(after)) => {
            let (before, after) = excerpts(before, after, MAX_LINE_BYTES);
            (Some(before), Some(after))
        }
        (before, after) => {
            let beginning = |line: &&str| beginning(line, MAX_LINE_BYTES);
            (before.map(beginning), after.map(beginning))
        }
    };
    let (before, after): (Vec<_>, Vec<_>) = (0..before.len().max(after.len())).map(pair).unzip();
    let removed = before.into_iter().flatten().map(|line| ('-', line));
    removed.chain(after.into_iter().flatten().map(|line| ('+', line))).collect()
}

/// The bytes of the lines that two texts begin with, less the lines of context.
fn common_lines(before: &str, after: &str) -> usize {
    let pairs = before.bytes().zip(after.bytes());
    let same = pairs.take_while(|(left, right)| left == right).count();
    let whole_lines = &before.as_bytes()[..same];

    let mut end = memchr::memrchr(b'\n', whole_lines).map_or(0, |at| at + 1);
    for _ in 0..CONTEXT {
        end = memchr::memrchr(b'\n', &whole_lines[..end.saturating_sub(1)]).map_or(0, |at| at + 1);
    }
    end
}

/// The bytes that two texts end with.
fn common_end(before: &str, after: &str) -> usize {
    let pairs = before.bytes().rev().zip(after.bytes().rev());
    pairs.take_while(|(left, right)| left == right).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown_of(before: &str, after: &str, max_bytes: usize) -> String {
        difference(before, after, max_bytes).into_text()
    }

    #[test]
    fn a_change_is_shown_with_its_place_and_bounded() {
        let lines = |from: usize, to: usize| {
            (from..=to).map(|n| format!("line {n}\n")).collect::<Vec<_>>().concat()
        };
        let before = lines(1, 10_000);
        let after = lines(1, 5_000) + "new\n" + &lines(5_001, 10_000);
        assert_eq!(shown_of(&before, &after, 800), "@@ line 5000 @@\n line 5000\n+new\n line 5001");

        let after = before.replace("line 7\n", "line seven\n");
        let shown = shown_of(&before, &after, 800);
        assert_eq!(shown, "@@ line 6 @@\n line 6\n-line 7\n+line seven\n line 8");

        let all = before.replace("line", "row");
        let shown = shown_of(&before, &all, 800);
        assert!(shown.len() < 1_000 && shown.contains("more changed lines not shown"), "{shown}");

        let long = "x".repeat(5_000);
        let shown = shown_of("a\n", &format!("{long}\n"), 800);
        assert!(shown.len() < 300 && shown.contains('…'), "{shown}");
    }

    #[test]
    fn long_lines_are_shown_where_they_differ() {
        let lines = |word: &str| {
            let start = "x".repeat(500);
            format!("a\n{start} first {word} {start}\n{start} second {word} {start}\nb\n")
        };
        let shown = shown_of(&lines("old"), &lines("new"), 2_000);
        for line in ["x first old x", "x first new x", "x second old x", "x second new x"] {
            assert!(shown.contains(line), "{line}: {shown}");
        }
        for line in shown.lines().filter(|line| line.starts_with(['-', '+'])) {
            assert!(line[1..].starts_with("…x") && line.ends_with("x…"), "{line}");
            assert!(line.len() < 200, "{line}");
        }
    }
}
