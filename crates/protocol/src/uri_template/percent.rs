//! Percent-encoding (RFC 3986, section 2.1).

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Encodes all but unreserved characters (RFC 3986, section 2.3).
pub const SEGMENT: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Encodes all but what a path may contain: slashes and `pchar` (RFC 3986, section 3.3).
/// RFC 6570 keeps `?`, `#`, `[` and `]` as well, but those would end the path or make the
/// URI invalid, and a value is not meant to.
pub const PATH: &AsciiSet = &SEGMENT
    .remove(b'/')
    .remove(b':')
    .remove(b'@')
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=');

/// Encodes the characters of the set, as `%XX` in upper case.
pub fn encode(text: &str, set: &'static AsciiSet) -> String {
    utf8_percent_encode(text, set).to_string()
}

/// Decodes a text. `None` for a `%` without two hexadecimal digits, which the
/// crate would leave as it is, and for a result that is not UTF-8.
pub fn decode(encoded: &str) -> Option<String> {
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

/// Decodes the reserved characters that a segment of a path may contain (RFC 3986, section 3.3):
/// `a%40x` becomes `a@x`. Other escapes stay.
pub fn decode_plain(uri: &str) -> String {
    let mut parts = uri.split('%');
    let mut decoded = parts.next().unwrap_or_default().to_owned();

    for part in parts {
        let byte = part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let plain = byte.map(char::from).filter(|c| ":@!$&'()*+,;=".contains(*c));
        match plain {
            Some(plain) => {
                decoded.push(plain);
                decoded.push_str(&part[2..]);
            }
            None => {
                decoded.push('%');
                decoded.push_str(part);
            }
        }
    }

    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_of_a_segment_are_decoded_and_others_are_not() {
        assert_eq!(
            decode_plain("d://a%40x.com/b%2Fc%3f%25%C3%BC"),
            "d://a@x.com/b%2Fc%3f%25%C3%BC"
        );

        for unchanged in ["d://a", "d://%", "d://%4", "d://%zz", "d://%+1", "d://%é"] {
            assert_eq!(decode_plain(unchanged), unchanged);
        }
    }
}
