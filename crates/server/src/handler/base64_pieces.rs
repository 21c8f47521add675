//! [`Base64Pieces`]: decodes base64 that arrives in pieces.

use base64::{Engine, prelude::BASE64_STANDARD};
use sha2::{Digest, Sha256};

/// The decoder of one base64 string, and the string's digest.
#[derive(Default)]
pub(crate) struct Base64Pieces {
    hash: Sha256,
    /// Characters that are no whole group of four yet.
    rest: Vec<u8>,
    /// Whether the padding has come.
    has_ended: bool,
}

/// The error of a string that is not base64.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NotBase64;

impl Base64Pieces {
    /// Decodes the next piece, without the characters that are no whole group yet. Skips spaces and
    /// line breaks, which some libraries add.
    ///
    /// # Errors
    /// [`NotBase64`].
    pub(crate) fn feed(&mut self, piece: &[u8]) -> Result<Vec<u8>, NotBase64> {
        self.hash.update(piece);
        let mut from = 0;
        for space in memchr::memchr3_iter(b'\n', b'\r', b' ', piece).chain([piece.len()]) {
            self.rest.extend_from_slice(&piece[from..space]);
            from = space + 1;
        }

        if self.has_ended && !self.rest.is_empty() {
            return Err(NotBase64);
        }

        let groups = &self.rest[..self.rest.len() / 4 * 4];
        let decoded = BASE64_STANDARD.decode(groups).map_err(|_| NotBase64)?;
        self.has_ended = self.has_ended || groups.ends_with(b"=");
        let used = groups.len();
        self.rest.drain(..used);

        Ok(decoded)
    }

    /// The SHA-256 of the string.
    ///
    /// # Errors
    /// [`NotBase64`] if the last group is not whole.
    pub(crate) fn finish(self) -> Result<[u8; 32], NotBase64> {
        if self.rest.is_empty() { Ok(self.hash.finalize().into()) } else { Err(NotBase64) }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    fn decode(text: &str, piece: usize) -> Result<Vec<u8>, NotBase64> {
        let mut pieces = Base64Pieces::default();
        let mut decoded = Vec::new();
        for piece in text.as_bytes().chunks(piece) {
            decoded.extend(pieces.feed(piece)?);
        }

        assert_eq!(pieces.finish()?[..], Sha256::digest(text.as_bytes())[..]);
        Ok(decoded)
    }

    proptest! {
        #[test]
        fn base64_in_any_pieces_is_whole(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            piece in 1usize..50,
        ) {
            let text = BASE64_STANDARD.encode(&bytes);
            prop_assert_eq!(decode(&text, piece), Ok(bytes.clone()));

            let lines: Vec<_> = text.as_bytes().chunks(7).map(String::from_utf8_lossy).collect();
            prop_assert_eq!(decode(&(lines.join("\r\n") + "\n"), piece), Ok(bytes));
        }
    }

    #[test]
    fn malformed_base64_is_refused_in_any_pieces() {
        for text in ["QQ", "QQ=", "QQ==QQ==", "QQ==x", "Q!Q=", "=QQQ", "QR==", "data:,QUFB"] {
            for piece in 1..5 {
                assert_eq!(decode(text, piece), Err(NotBase64), "{text} by {piece}");
            }
        }
    }
}
