//! [`Base64Pieces`]: decodes base64 that arrives in pieces.

use base64::{
    Engine,
    prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD},
};
use sha2::{Digest, Sha256};

/// The beginning of a `data:` URL (RFC 2397).
const DATA_URL: &[u8] = b"data:";
/// The longest beginning of a `data:` URL, up to its comma.
const MAX_DATA_URL_HEAD: usize = 1 << 10;

/// The decoder of one base64 string, and the string's digest. Servers write base64 in several ways:
/// in the alphabet of URLs, without padding, with white space, or as a `data:` URL.
#[derive(Default)]
pub(crate) struct Base64Pieces {
    hash: Sha256,
    /// Characters that are not decoded yet, in the standard alphabet.
    rest: Vec<u8>,
    /// Whether the base64 has begun, after the beginning of a `data:` URL.
    has_begun: bool,
    /// Whether the padding has come.
    has_ended: bool,
}

/// The error of a string that is not base64.
#[derive(Debug, PartialEq, Eq)]
pub struct NotBase64;

/// Decodes base64 in any of the ways in which servers write it.
///
/// # Errors
/// [`NotBase64`].
pub fn decode_base64(text: &str) -> Result<Vec<u8>, NotBase64> {
    if let Ok(decoded) = BASE64_STANDARD.decode(text) {
        return Ok(decoded);
    }

    let mut pieces = Base64Pieces::default();
    let mut decoded = pieces.feed(text.as_bytes())?;
    decoded.extend(pieces.finish()?.last);
    Ok(decoded)
}

/// The end of a base64 string.
pub(crate) struct EndOfBase64 {
    /// The last bytes of the content, if the padding is missing.
    pub(crate) last: Vec<u8>,
    /// The SHA-256 of the string as it was sent.
    pub(crate) sha256: [u8; 32],
}

impl Base64Pieces {
    /// Decodes the next piece, without the characters that are no whole group yet.
    ///
    /// # Errors
    /// [`NotBase64`].
    pub(crate) fn feed(&mut self, piece: &[u8]) -> Result<Vec<u8>, NotBase64> {
        self.hash.update(piece);
        let characters = piece.iter().filter(|byte| !byte.is_ascii_whitespace());
        self.rest.extend(characters.map(|byte| match byte {
            b'-' => b'+',
            b'_' => b'/',
            other => *other,
        }));

        if !self.has_begun && !self.begin()? {
            return Ok(Vec::new());
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

    /// Skips the beginning of a `data:` URL. Returns whether the base64 has begun.
    fn begin(&mut self) -> Result<bool, NotBase64> {
        let compared = self.rest.len().min(DATA_URL.len());
        if !self.rest[..compared].eq_ignore_ascii_case(&DATA_URL[..compared]) {
            self.has_begun = true;
            return Ok(true);
        }

        let Some(comma) = memchr::memchr(b',', &self.rest) else {
            let is_long = self.rest.len() > MAX_DATA_URL_HEAD;
            return if is_long { Err(NotBase64) } else { Ok(false) };
        };
        if !self.rest[..comma].to_ascii_lowercase().ends_with(b";base64") {
            return Err(NotBase64);
        }

        self.rest.drain(..=comma);
        self.has_begun = true;
        Ok(true)
    }

    /// Ends the string.
    ///
    /// # Errors
    /// [`NotBase64`] if a character is left that is no whole byte.
    pub(crate) fn finish(self) -> Result<EndOfBase64, NotBase64> {
        let padding = self.rest.iter().rev().take_while(|byte| **byte == b'=').count();
        let last = &self.rest[..self.rest.len() - padding];
        if padding > 0 && last.is_empty() {
            return Err(NotBase64);
        }

        let last = BASE64_STANDARD_NO_PAD.decode(last).map_err(|_| NotBase64)?;
        Ok(EndOfBase64 { last, sha256: self.hash.finalize().into() })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use base64::prelude::BASE64_URL_SAFE_NO_PAD;
    use proptest::prelude::*;

    use super::*;

    fn decode(text: &str, piece: usize) -> Result<Vec<u8>, NotBase64> {
        let mut pieces = Base64Pieces::default();
        let mut decoded = Vec::new();
        for piece in text.as_bytes().chunks(piece) {
            decoded.extend(pieces.feed(piece)?);
        }

        let EndOfBase64 { last, sha256 } = pieces.finish()?;
        assert_eq!(sha256[..], Sha256::digest(text.as_bytes())[..]);
        decoded.extend(last);
        assert_eq!(decode_base64(text).as_ref(), Ok(&decoded));
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
            prop_assert_eq!(decode(&(lines.join("\r\n") + "\n"), piece), Ok(bytes.clone()));

            let bare = BASE64_URL_SAFE_NO_PAD.encode(&bytes);
            prop_assert_eq!(decode(&bare, piece), Ok(bytes.clone()));
            let urls = [format!("data:image/png;base64,{text}"), format!("DATA:;Base64,\n{bare}")];
            for url in urls {
                prop_assert_eq!(decode(&url, piece), Ok(bytes.clone()));
            }
        }
    }

    #[test]
    fn a_string_that_begins_like_a_data_url_may_be_base64() {
        for text in ["data", "dat", "da", "DATA"] {
            for piece in 1..5 {
                let expected = BASE64_STANDARD_NO_PAD.decode(text).map_err(|_| NotBase64);
                assert_eq!(decode(text, piece), expected, "{text} by {piece}");
            }
        }
    }

    #[test]
    fn malformed_base64_is_refused_in_any_pieces() {
        let long = format!("data:{};base64,QUFB", "x".repeat(2 * MAX_DATA_URL_HEAD));
        for text in [
            "Q",
            "QUFBQ",
            "=",
            "QUFB=",
            "QQ==QQ==",
            "QQ==x",
            "Q!Q=",
            "=QQQ",
            "QR==",
            "data:,QUFB",
            "data:image/png;base64",
            "xdata:image/png;base64,QUFB",
            &long,
        ] {
            for piece in 1..5 {
                assert_eq!(decode(text, piece), Err(NotBase64), "{text} by {piece}");
            }
        }
    }
}
