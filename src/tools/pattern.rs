//! Patterns that lines are held against.

use grep_regex::{Error, RegexMatcher, RegexMatcherBuilder};

/// A regular expression as ripgrep has it: it never matches across lines, and
/// `^` and `$` stand for where one begins and ends.
pub(super) fn matcher(pattern: &str, ignore_case: bool) -> Result<RegexMatcher, Error> {
    let mut builder = RegexMatcherBuilder::new();
    builder.line_terminator(Some(b'\n')).multi_line(true).case_insensitive(ignore_case);
    builder.build(pattern)
}

/// A pattern that finds just that text.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() * 2);
    for c in text.chars() {
        if r"\.+*?()|[]{}^$#&-~".contains(c) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}
