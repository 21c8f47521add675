//! [`Unescape`]: decodes a JSON string that arrives in pieces.

#![cfg_attr(not(feature = "upstream"), allow(dead_code, reason = "only upstreams send such texts"))]

/// The decoder of one string, from after its opening quote to its closing quote.
#[derive(Debug, Default)]
pub struct Unescape(StringState);

#[derive(Debug, Default, Clone, Copy)]
enum StringState {
    #[default]
    Plain,
    /// After a backslash.
    Escape,
    /// Within `\uXXXX`.
    Hex { code: u16, digits: u8, high: Option<u16> },
    /// After the first half of a surrogate pair.
    Half(u16),
    /// After the first half of a surrogate pair and a backslash.
    HalfEscape(u16),
}

/// The error of a malformed JSON string: an unknown escape, a control character, or half a
/// surrogate pair.
#[derive(Debug, PartialEq, Eq)]
pub struct InvalidString;

impl Unescape {
    /// Decodes to `decoded` up to the string's end. Returns how many bytes it has used, the
    /// closing quote included, and whether the string has ended. Does not check UTF-8.
    ///
    /// # Errors
    /// [`InvalidString`] for a malformed string.
    pub fn feed(
        &mut self,
        input: &[u8],
        decoded: &mut Vec<u8>,
    ) -> Result<(usize, bool), InvalidString> {
        let mut used = 0;

        while let Some(&byte) = input.get(used) {
            if let StringState::Plain = self.0 {
                let rest = &input[used..];
                let end = memchr::memchr2(b'"', b'\\', rest);
                let plain = &rest[..end.unwrap_or(rest.len())];
                if plain.iter().any(|byte| *byte < 0x20) {
                    return Err(InvalidString);
                }

                decoded.extend_from_slice(plain);
                used += plain.len() + usize::from(end.is_some());
                match end {
                    Some(end) if rest[end] == b'"' => return Ok((used, true)),
                    Some(_) => self.0 = StringState::Escape,
                    None => {}
                }
                continue;
            }

            used += 1;
            self.0 = self.escaped(byte, decoded)?;
        }

        Ok((used, false))
    }

    /// The state after a byte of an escape.
    fn escaped(&self, byte: u8, decoded: &mut Vec<u8>) -> Result<StringState, InvalidString> {
        let hex = |high| StringState::Hex { code: 0, digits: 0, high };

        Ok(match (self.0, byte) {
            (StringState::Escape, b'u') => hex(None),
            (StringState::Escape, _) => {
                decoded.push(match byte {
                    b'"' | b'\\' | b'/' => byte,
                    b'b' => 8,
                    b'f' => 12,
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    _ => return Err(InvalidString),
                });
                StringState::Plain
            }
            (StringState::Half(high), b'\\') => StringState::HalfEscape(high),
            (StringState::HalfEscape(high), b'u') => hex(Some(high)),
            (StringState::Hex { code, digits, high }, _) => {
                let digit = char::from(byte).to_digit(16).ok_or(InvalidString)?;
                let code = code << 4 | u16::try_from(digit).unwrap_or_default();

                match (high, code) {
                    _ if digits < 3 => StringState::Hex { code, digits: digits + 1, high },
                    (None, 0xD800..0xDC00) => StringState::Half(code),
                    _ => {
                        let units = high.into_iter().chain([code]);
                        let mut characters = char::decode_utf16(units);
                        let character =
                            characters.next().and_then(Result::ok).ok_or(InvalidString)?;

                        decoded.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                        StringState::Plain
                    }
                }
            }
            _ => return Err(InvalidString),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Decodes a string's inside and closing quote, fed in pieces of these sizes.
    fn decode(inside: &[u8], pieces: &[usize]) -> Option<Vec<u8>> {
        let mut decoder = Unescape::default();
        let mut decoded = Vec::new();
        let mut rest = inside;

        for size in pieces.iter().chain(std::iter::repeat(&7)) {
            let (piece, after) = rest.split_at((*size).min(rest.len()));
            let (used, has_ended) = decoder.feed(piece, &mut decoded).ok()?;
            if has_ended || after.is_empty() {
                return (has_ended && used == piece.len() && after.is_empty()).then_some(decoded);
            }
            rest = after;
        }
        None
    }

    proptest! {
        #[test]
        fn strings_in_any_pieces_decode_as_serde_json_reads_them(
            parts in prop::collection::vec(prop::sample::select(vec![
                "a", "bc", "\\n", "\\\"", "\\\\", "\\/", "\\u0041", "\\u20aC", "\\ud83e\\udd80",
                "\\ud83e", "\\udd80", "é", "🦀", "\\x", "\\u12", "\n", "\u{7f}", "\\b\\f\\r\\t",
            ]), 0..12),
            pieces in prop::collection::vec(1usize..9, 0..40),
        ) {
            let inside = format!("{}\"", parts.concat());
            let read = serde_json::from_str::<String>(&format!("\"{inside}")).ok();
            prop_assert_eq!(decode(inside.as_bytes(), &pieces), read.map(String::into_bytes));
        }
    }
}
