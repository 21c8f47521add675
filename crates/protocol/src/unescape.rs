//! [`Unescape`]: decodes a JSON string that arrives in pieces.

/// The decoder of one string, from after its opening quote to its closing one.
#[derive(Debug, Default)]
pub struct Unescape {
    state: EscapeState,
    /// Whether it takes half a surrogate pair as U+FFFD, and control characters as they are.
    repairs: bool,
}

/// The replacement of half a surrogate pair.
const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();

#[derive(Debug, Default, Clone, Copy)]
enum EscapeState {
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
    /// A decoder that takes half a surrogate pair as U+FFFD, and control characters as they are.
    pub fn repairing() -> Self {
        Self { state: EscapeState::Plain, repairs: true }
    }

    /// Decodes to `decoded` up to the string's end. Returns how many bytes it has used, the
    /// closing quote included, and whether the string has ended. Does not check UTF-8.
    ///
    /// # Errors
    /// `InvalidString`.
    pub fn feed(
        &mut self,
        input: &[u8],
        decoded: &mut Vec<u8>,
    ) -> Result<(usize, bool), InvalidString> {
        let mut used = 0;
        while let Some(&byte) = input.get(used) {
            if let EscapeState::Plain = self.state {
                let rest = &input[used..];
                let end = memchr::memchr2(b'"', b'\\', rest);
                let plain = &rest[..end.unwrap_or(rest.len())];
                if !self.repairs && plain.iter().any(|byte| *byte < 0x20) {
                    return Err(InvalidString);
                }
                decoded.extend_from_slice(plain);
                used += plain.len() + usize::from(end.is_some());
                match end {
                    Some(end) if rest[end] == b'"' => return Ok((used, true)),
                    Some(_) => self.state = EscapeState::Escape,
                    None => {}
                }
                continue;
            }
            if self.repairs && matches!(self.state, EscapeState::Half(_)) && byte != b'\\' {
                decoded.extend_from_slice(REPLACEMENT);
                self.state = EscapeState::Plain;
                continue;
            }
            used += 1;
            self.state = self.escaped(byte, decoded)?;
        }
        Ok((used, false))
    }

    /// The state after a byte of an escape.
    fn escaped(&self, byte: u8, decoded: &mut Vec<u8>) -> Result<EscapeState, InvalidString> {
        let hex = |high| EscapeState::Hex { code: 0, digits: 0, high };
        Ok(match (self.state, byte) {
            (EscapeState::Escape, b'u') => hex(None),
            (EscapeState::Escape, _) => {
                decoded.push(match byte {
                    b'"' | b'\\' | b'/' => byte,
                    b'b' => 8,
                    b'f' => 12,
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    _ => return Err(InvalidString),
                });
                EscapeState::Plain
            }
            (EscapeState::Half(high), b'\\') => EscapeState::HalfEscape(high),
            (EscapeState::HalfEscape(high), b'u') => hex(Some(high)),
            (EscapeState::HalfEscape(_), _) if self.repairs => {
                decoded.extend_from_slice(REPLACEMENT);
                Self { state: EscapeState::Escape, repairs: true }.escaped(byte, decoded)?
            }
            (EscapeState::Hex { code, digits, high }, _) => {
                let digit = char::from(byte).to_digit(16).ok_or(InvalidString)?;
                let code = code << 4 | u16::try_from(digit).unwrap_or_default();
                match (high, code) {
                    _ if digits < 3 => EscapeState::Hex { code, digits: digits + 1, high },
                    (None, 0xD800..0xDC00) => EscapeState::Half(code),
                    (None, 0xDC00..0xE000) if self.repairs => {
                        decoded.extend_from_slice(REPLACEMENT);
                        EscapeState::Plain
                    }
                    (Some(_), code) if self.repairs && !(0xDC00..0xE000).contains(&code) => {
                        decoded.extend_from_slice(REPLACEMENT);
                        Self::end_of_escape(code, decoded)
                    }
                    _ => {
                        let units = high.into_iter().chain([code]);
                        let mut characters = char::decode_utf16(units);
                        let character = characters.next().and_then(Result::ok);
                        let character = character.ok_or(InvalidString)?;
                        decoded.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                        EscapeState::Plain
                    }
                }
            }
            _ => return Err(InvalidString),
        })
    }

    /// The state after an escape that ends no surrogate pair.
    fn end_of_escape(code: u16, decoded: &mut Vec<u8>) -> EscapeState {
        match char::from_u32(u32::from(code)) {
            Some(character) => {
                decoded.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                EscapeState::Plain
            }
            None => EscapeState::Half(code),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The inside and closing quote of a string, decoded in pieces of these sizes.
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

    #[test]
    fn half_pairs_and_control_characters_are_taken_if_that_is_wanted() {
        for (inside, text) in [
            (r"a\ud83db", "a\u{fffd}b"),
            (r"\ude00\ud83d\n", "\u{fffd}\u{fffd}\n"),
            (r"\ud83d\ud83d\ude00", "\u{fffd}\u{1f600}"),
            (r"\ud83d\u0041\ud83d", "\u{fffd}A\u{fffd}"),
            ("\t\u{1}", "\t\u{1}"),
        ] {
            let mut decoded = Vec::new();
            let mut decoder = Unescape::repairing();
            let ended = format!("{inside}\"").bytes().try_fold(false, |_, byte| {
                decoder.feed(&[byte], &mut decoded).map(|(_, has_ended)| has_ended)
            });
            assert_eq!((ended, String::from_utf8(decoded).as_deref()), (Ok(true), Ok(text)));
        }
        let mut decoder = Unescape::repairing();
        assert_eq!(decoder.feed(br"\x", &mut Vec::new()), Err(InvalidString));
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
