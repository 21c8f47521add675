//! Escapes text for JSON strings (RFC 8259, 7).

/// Appends the escaped text.
pub(super) fn escape(text: &str, out: &mut Vec<u8>) {
    let mut rest = text.as_bytes();
    loop {
        let (plain, special) = rest.split_at(plain_length(rest));
        out.extend_from_slice(plain);
        let Some((&byte, after)) = special.split_first() else { return };

        let short = match byte {
            b'"' => b'"',
            b'\\' => b'\\',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            8 => b'b',
            12 => b'f',
            _ => {
                const HEX: &[u8; 16] = b"0123456789abcdef";
                let digit = |nibble: u8| HEX[usize::from(nibble)];
                out.extend_from_slice(&[
                    b'\\',
                    b'u',
                    b'0',
                    b'0',
                    digit(byte >> 4),
                    digit(byte & 15),
                ]);

                rest = after;
                continue;
            }
        };

        out.extend_from_slice(&[b'\\', short]);
        rest = after;
    }
}

/// The number of bytes before the first that has to be escaped. Examines eight bytes at a
/// time.
fn plain_length(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 0xff;
    const HIGHS: u64 = ONES * 0x80;

    // Sets the highest bit of each zero byte. Bits above the first zero byte are arbitrary.
    let zero = |word: u64| word.wrapping_sub(ONES) & !word;

    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let control = word.wrapping_sub(ONES * 0x20) & !word;
        let quotes = zero(word ^ (ONES * u64::from(b'"'))) | zero(word ^ (ONES * u64::from(b'\\')));
        let special = (control | quotes) & HIGHS;
        if special != 0 {
            return index * 8 + special.trailing_zeros() as usize / 8;
        }
    }

    let is_special = |&byte: &u8| byte < 0x20 || byte == b'"' || byte == b'\\';
    words.len() * 8 + rest.iter().position(is_special).unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn escaped(text: &str) -> String {
        let mut out = vec![b'"'];
        escape(text, &mut out);
        out.push(b'"');
        String::from_utf8(out).expect("it is text")
    }

    #[test]
    fn each_byte_is_escaped_as_serde_json_does_at_any_position() {
        for byte in 0..0x80_u8 {
            for before in 0..9 {
                let text = format!("{}{}äß\u{80}", "x".repeat(before), char::from(byte));
                assert_eq!(escaped(&text), serde_json::json!(text).to_string());
            }
        }
    }

    proptest! {
        #[test]
        fn any_text_is_escaped_as_serde_json_does(text in "(?s).*|[\"\\\\\u{0}-\u{30}é😀]*") {
            prop_assert_eq!(escaped(&text), serde_json::json!(text).to_string());
        }
    }
}
