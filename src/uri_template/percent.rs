//! Percent-encoding (RFC 3986, section 2.1).

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Encodes all but unreserved characters (RFC 3986, section 2.3).
pub(crate) const SEGMENT: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Encodes as [`SEGMENT`] does, except the slashes between segments.
pub(crate) const PATH: &AsciiSet = &SEGMENT.remove(b'/');

/// Encodes the characters of the set, as `%XX` in upper case.
pub(crate) fn encode(text: &str, set: &'static AsciiSet) -> String {
    utf8_percent_encode(text, set).to_string()
}

/// Decodes a text. `None` for a `%` without two hexadecimal digits, which the
/// crate would leave as it is, and for a result that is not UTF-8.
pub(crate) fn decode(encoded: &str) -> Option<String> {
    let starts_with_digits = |rest: &str| {
        rest.as_bytes()
            .first_chunk::<2>()
            .is_some_and(|pair| pair.iter().all(u8::is_ascii_hexdigit))
    };
    if !encoded.split('%').skip(1).all(starts_with_digits) {
        return None;
    }
    percent_decode_str(encoded).decode_utf8().ok().map(Into::into)
}
