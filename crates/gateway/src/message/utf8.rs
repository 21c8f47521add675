//! [`Utf8Repair`]: makes UTF-8 of bytes that arrive in pieces.

use std::borrow::Cow;

/// Replaces what is no UTF-8 by U+FFFD. A character may be in two pieces.
#[derive(Default)]
pub(super) struct Utf8Repair {
    /// The first bytes of a character whose other bytes have not arrived.
    begun: Vec<u8>,
}

impl Utf8Repair {
    /// The next piece, up to its last complete character.
    pub(super) fn feed<'a>(&mut self, piece: &'a [u8]) -> Cow<'a, [u8]> {
        if self.begun.is_empty() && std::str::from_utf8(piece).is_ok() {
            return Cow::Borrowed(piece);
        }

        let mut bytes = std::mem::take(&mut self.begun);
        bytes.extend_from_slice(piece);
        let mut valid = Vec::with_capacity(bytes.len());
        let mut read = 0;

        for chunk in bytes.utf8_chunks() {
            valid.extend_from_slice(chunk.valid().as_bytes());
            read += chunk.valid().len() + chunk.invalid().len();
            if chunk.invalid().is_empty() {
                continue;
            }
            if read == bytes.len() && is_begun(chunk.invalid()) {
                self.begun = chunk.invalid().to_vec();
            } else {
                valid.extend_from_slice("\u{fffd}".as_bytes());
            }
        }

        Cow::Owned(valid)
    }
}

/// Whether more bytes may complete these to a character.
fn is_begun(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pieces_are_repaired_as_the_whole_is(
            parts in prop::collection::vec(prop::sample::select(vec![
                &b"a"[..], "é".as_bytes(), "🦀".as_bytes(), b"\xff", b"\xe2\x82", b"\xf0\x9f", b"\x80",
            ]), 0..12),
            sizes in prop::collection::vec(1usize..5, 1..8),
        ) {
            // A line feed ends a character that may have begun.
            let bytes = [parts.concat(), b"\n".to_vec()].concat();
            let mut repair = Utf8Repair::default();
            let mut rest = &bytes[..];
            let mut repaired = Vec::new();

            for size in sizes.iter().cycle() {
                let (piece, after) = rest.split_at((*size).min(rest.len()));
                repaired.extend_from_slice(&repair.feed(piece));
                rest = after;
                if rest.is_empty() {
                    break;
                }
            }

            prop_assert_eq!(String::from_utf8(repaired).ok(), Some(String::from_utf8_lossy(&bytes).into_owned()));
        }
    }
}
