//! Words that stand for no value.

/// The words that stand for no value among numbers, booleans or dates, in lower case: those of R,
/// pandas, Excel, SQL and of statistical offices. The first [`IN_JSON`] of them do so in strings
/// of JSON, too, which has a null of its own, so that other words are meant as words.
const WORDS: [&str; 46] = [
    "nan",
    "-nan",
    // NaN of YAML.
    ".nan",
    "na",
    "n/a",
    "n.a.",
    "<na>",
    "#n/a",
    "#na",
    "#n/a n/a",
    "#div/0!",
    "#name?",
    "#null!",
    "#num!",
    "#ref!",
    "#value!",
    "#error!",
    "1.#ind",
    "-1.#ind",
    "1.#qnan",
    "-1.#qnan",
    "-",
    "--",
    "---",
    "–",
    "—",
    ".",
    "..",
    "?",
    // Missing dates of MySQL.
    "0000-00-00",
    "0000-00-00 00:00:00",
    // The words of CSV alone.
    "null",
    "none",
    "nil",
    "missing",
    "unknown",
    "undefined",
    "(null)",
    "[null]",
    "<null>",
    "\\n",
    "n.d.",
    "not available",
    "not applicable",
    "no data",
    "no value",
];
/// How many of the words stand for no value in JSON.
const IN_JSON: usize = 31;
/// The longest word in bytes.
const MAX_WORD: usize = 19;

/// The index of the word that a text is, without blanks around it.
pub(super) fn null_word(text: &str) -> Option<u8> {
    if text.len() > MAX_WORD {
        return None;
    }
    let found = WORDS.iter().position(|word| word.eq_ignore_ascii_case(text))?;
    u8::try_from(found).ok()
}

/// Whether a word stands for no value in strings of JSON.
pub(super) fn is_null_in_json(word: u8) -> bool {
    usize::from(word) < IN_JSON
}

/// Whether a word, true or false may begin with this byte.
#[inline]
pub(super) fn may_begin_word(byte: u8) -> bool {
    matches!(byte | 0x20, b'n' | b'm' | b'u' | b't' | b'f')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_known_in_any_case_and_by_their_first_letter() {
        for (index, word) in WORDS.iter().enumerate() {
            assert_eq!(null_word(&word.to_uppercase()), u8::try_from(index).ok(), "{word}");
            let first = word.as_bytes()[0];
            assert!(!first.is_ascii_alphabetic() || may_begin_word(first), "{word}");
        }
        assert!(WORDS.iter().all(|word| word.len() <= MAX_WORD));
        assert_eq!(WORDS[IN_JSON], "null");
    }
}
