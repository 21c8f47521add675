//! Numbers, counted nouns, names and cuts of text for messages.

use std::borrow::Cow;

use larder_protocol::quote::visible;

/// A number with thousands separators: `12,345`.
pub fn number(n: u64) -> String {
    let digits = n.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A number with its noun: `1 line`, `2 lines`.
pub fn count(n: u64, thing: &str) -> String {
    let plural = match thing {
        _ if n == 1 => "",
        "match" => "es",
        _ => "s",
    };
    format!("{} {thing}{plural}", number(n))
}

/// The longest prefix of at most `bytes` bytes that does not split a character.
pub fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// The first `bytes` bytes of a name from the content. Escapes line breaks and invisible
/// characters, so that the name cannot pass for the words around it.
pub(crate) fn name_of(name: &str, bytes: usize) -> Cow<'_, str> {
    visible(cut(name, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_nouns_are_in_the_plural() {
        assert_eq!(number(0), "0");
        assert_eq!(number(999), "999");
        assert_eq!(number(1_000), "1,000");
        assert_eq!(number(12_345_678), "12,345,678");
        assert_eq!(count(1, "match"), "1 match");
        assert_eq!(count(2, "match"), "2 matches");
        assert_eq!(count(0, "line"), "0 lines");
    }
}
