//! The difference of two texts, short enough for an answer.

use std::{fmt::Write, time::Duration};

use larder_records::words::{count, cut};
use similar::{ChangeTag, TextDiff};

/// The most bytes of a line.
const MAX_LINE_BYTES: usize = 120;
/// The lines of context around a change.
const CONTEXT: usize = 1;
/// How long lines are compared; after that the difference may be longer than it has to be.
const MAX_TIME: Duration = Duration::from_millis(300);
/// The most bytes between the first and the last change that are compared line by line.
const MAX_COMPARED: usize = 1 << 20;

/// The changed lines, with their places, in at most about `max_bytes`; and how many are not shown.
pub(crate) fn difference(before: &str, after: &str, max_bytes: usize) -> String {
    let start = common_lines(before, after);
    let (before_rest, after_rest) = (&before[start..], &after[start..]);
    let skipped = before[..start].matches('\n').count();

    if before_rest.len().max(after_rest.len()) > MAX_COMPARED
        && common_end(before_rest, after_rest) + MAX_COMPARED
            < before_rest.len().max(after_rest.len())
    {
        return format!("From line {} on, much is changed.", skipped + 1);
    }

    let diff = TextDiff::configure().timeout(MAX_TIME).diff_lines(before_rest, after_rest);
    let mut text = String::new();
    let mut left_out = 0;

    for group in diff.grouped_ops(CONTEXT) {
        let Some(first) = group.first() else { continue };
        let line = skipped + first.old_range().start + 1;
        let mut hunk = format!("@@ line {line} @@\n");
        let mut changed = 0;

        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let sign = match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            };
            let is_change = sign != ' ';
            if text.len() + hunk.len() > max_bytes {
                left_out += usize::from(is_change);
                continue;
            }

            changed += usize::from(is_change);
            let whole = change.value().trim_end_matches(['\n', '\r']);
            let shown = cut(whole, MAX_LINE_BYTES);
            let mark = if shown.len() < whole.len() { "…" } else { "" };
            // Writing to a string cannot fail.
            let _ = writeln!(hunk, "{sign}{shown}{mark}");
        }
        if changed > 0 {
            text += &hunk;
        }
    }

    if left_out > 0 {
        let _ = writeln!(text, "… {} not shown", count(left_out as u64, "more changed line"));
    }
    text.trim_end().to_owned()
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

    #[test]
    fn a_change_is_shown_with_its_place_and_bounded() {
        let lines = |from: usize, to: usize| {
            (from..=to).map(|n| format!("line {n}\n")).collect::<Vec<_>>().concat()
        };
        let before = lines(1, 10_000);
        let after = lines(1, 5_000) + "new\n" + &lines(5_001, 10_000);
        assert_eq!(
            difference(&before, &after, 800),
            "@@ line 5000 @@\n line 5000\n+new\n line 5001"
        );

        let after = before.replace("line 7\n", "line seven\n");
        let shown = difference(&before, &after, 800);
        assert_eq!(shown, "@@ line 6 @@\n line 6\n-line 7\n+line seven\n line 8");

        let all = before.replace("line", "row");
        let shown = difference(&before, &all, 800);
        assert!(shown.len() < 1_000 && shown.contains("more changed lines not shown"), "{shown}");

        let long = "x".repeat(5_000);
        let shown = difference("a\n", &format!("{long}\n"), 800);
        assert!(shown.len() < 300 && shown.contains('…'), "{shown}");
    }
}
