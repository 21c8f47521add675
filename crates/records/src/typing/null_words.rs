//! Words that stand for no value.

/// The words that stand for no value among numbers, booleans or dates, in lower case: those of R,
/// pandas, Excel, SQL and of statistical offices.
const WORDS: [&str; 43] = [
    "-",
    "--",
    "---",
    "–",
    "—",
    ".",
    "..",
    "?",
    "na",
    "n/a",
    "n.a.",
    "nan",
    "-nan",
    "null",
    "none",
    "nil",
    "missing",
    "unknown",
    "undefined",
    "(null)",
    "[null]",
    "<null>",
    "<na>",
    "\\n",
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
    "n.d.",
    "not available",
    "not applicable",
    "no data",
    "no value",
];
/// The longest word in bytes.
const MAX_WORD: usize = 14;

/// The index of the word that a text is, without blanks around it.
pub(super) fn null_word(text: &str) -> Option<u8> {
    if text.len() > MAX_WORD {
        return None;
    }
    let found = WORDS.iter().position(|word| word.eq_ignore_ascii_case(text))?;
    u8::try_from(found).ok()
}

/// Whether a word, true or false may begin with this byte.
#[inline]
pub(super) fn may_begin_word(byte: u8) -> bool {
    matches!(byte | 0x20, b'n' | b'm' | b'u' | b't' | b'f')
}
