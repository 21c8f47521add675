//! Excerpts of a value before and after its change, which show the place where they differ.

use larder_records::words::cut;

/// The excerpts of two texts, each of at most about `max_bytes`, with `…` in place of the rest.
/// Both begin at the same place: the start, or shortly before the first difference.
pub(super) fn excerpts(before: &str, after: &str, max_bytes: usize) -> (String, String) {
    let start = start(before, after, max_bytes);
    (excerpt(before, start, max_bytes), excerpt(after, start, max_bytes))
}

/// The first bytes of a text that has no counterpart.
pub(super) fn beginning(text: &str, max_bytes: usize) -> String {
    excerpt(text, 0, max_bytes)
}

/// The offset at which both excerpts begin.
fn start(before: &str, after: &str, max_bytes: usize) -> usize {
    let pairs = before.char_indices().zip(after.chars());
    let same = pairs.take_while(|((_, left), right)| left == right);
    let difference = same.last().map_or(0, |((at, left), _)| at + left.len_utf8());

    // A difference in the first half shows without a mark at the start.
    if difference <= max_bytes / 2 {
        return 0;
    }
    before.ceil_char_boundary(difference - max_bytes / 2)
}

fn excerpt(text: &str, start: usize, max_bytes: usize) -> String {
    let rest = &text[start..];
    let shown = cut(rest, max_bytes);
    let left = if start > 0 { "…" } else { "" };
    let right = if shown.len() < rest.len() { "…" } else { "" };
    format!("{left}{shown}{right}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_excerpts_have_the_place_of_the_first_difference() {
        let pair = |before: &str, after: &str| excerpts(before, after, 8);
        let texts = |before: &str, after: &str| (before.to_owned(), after.to_owned());

        assert_eq!(pair("old", "new"), texts("old", "new"));
        assert_eq!(pair("abcdold678", "abcdnew678"), texts("abcdold6…", "abcdnew6…"));
        assert_eq!(pair("0123456789old", "0123456789new"), texts("…6789old", "…6789new"));
        assert_eq!(pair("ääääääo", "ääääääö"), texts("…ääo", "…ääö"));
        assert_eq!(pair("0123456789", "0123456789abcdef"), texts("…6789", "…6789abcd…"));
        assert_eq!(pair("", "0123456789"), texts("", "01234567…"));
    }
}
