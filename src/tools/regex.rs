//! Regular expressions that match lines.

use grep_regex::{Error, RegexMatcher, RegexMatcherBuilder};

/// A matcher with ripgrep's rules: a match never crosses lines, and `^` and `$`
/// match at the ends of a line.
pub(super) fn matcher(pattern: &str, ignore_case: bool) -> Result<RegexMatcher, Error> {
    let mut builder = RegexMatcherBuilder::new();
    builder.line_terminator(Some(b'\n')).multi_line(true).case_insensitive(ignore_case);
    builder.build(pattern)
}

/// A pattern that matches this text literally.
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
