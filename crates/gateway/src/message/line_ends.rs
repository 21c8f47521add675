//! [`LineEnds`] and [`ByteOrderMark`]: the bytes of a text as other parsers expect them.

use bytes::{Bytes, BytesMut};

/// U+FEFF in UTF-8, at the beginning of some texts.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Removes the byte order mark of a text that comes in pieces.
#[derive(Default)]
pub(crate) struct ByteOrderMark {
    /// The first bytes, while they may be the beginning of a mark.
    held: Vec<u8>,
    is_past: bool,
}

impl ByteOrderMark {
    /// The next piece without the mark.
    pub(crate) fn remove(&mut self, piece: Bytes) -> Bytes {
        if self.is_past {
            return piece;
        }

        let piece = if self.held.is_empty() {
            piece
        } else {
            let mut joined = BytesMut::from(&self.held[..]);
            joined.extend_from_slice(&piece);
            joined.freeze()
        };
        if piece.len() < MARK.len() && MARK.starts_with(&piece) {
            self.held = piece.to_vec();
            return Bytes::new();
        }

        self.is_past = true;
        if piece.starts_with(MARK) { piece.slice(MARK.len()..) } else { piece }
    }
}

/// Makes each line of a stream of events end with a line feed. The lines of such a stream may end
/// with a carriage return, a line feed, or both (HTML, 9.2.6).
#[derive(Default)]
pub(crate) struct LineEnds {
    mark: ByteOrderMark,
    /// Whether the last piece has ended with a carriage return.
    is_after_return: bool,
}

impl LineEnds {
    /// The next piece with line feeds alone.
    pub(crate) fn normalize(&mut self, piece: Bytes) -> Bytes {
        let mut piece = self.mark.remove(piece);
        if piece.is_empty() {
            return piece;
        }

        if self.is_after_return && piece[0] == b'\n' {
            piece = piece.slice(1..);
            self.is_after_return = false;
            if piece.is_empty() {
                return piece;
            }
        }
        self.is_after_return = piece.last() == Some(&b'\r');

        if memchr::memchr(b'\r', &piece).is_none() {
            return piece;
        }
        let mut lines = BytesMut::with_capacity(piece.len());
        let mut rest = &piece[..];
        while let Some(end) = memchr::memchr(b'\r', rest) {
            lines.extend_from_slice(&rest[..end]);
            lines.extend_from_slice(b"\n");
            rest = &rest[end + 1..];
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        lines.extend_from_slice(rest);
        lines.freeze()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// The text in pieces of that many bytes.
    fn normalized(text: &str, size: usize) -> String {
        let mut ends = LineEnds::default();
        let pieces = text.as_bytes().chunks(size);
        let lines = pieces.flat_map(|piece| ends.normalize(Bytes::copy_from_slice(piece)).to_vec());
        String::from_utf8(lines.collect()).unwrap()
    }

    #[test]
    fn lines_end_with_line_feeds_however_the_text_is_cut() {
        for (text, expected) in [
            ("data: 1\r\rdata: 2\r\r", "data: 1\n\ndata: 2\n\n"),
            ("data: 1\r\n\r\ndata: 2\r\n\r\n", "data: 1\n\ndata: 2\n\n"),
            ("a\r\n\rb\n\r\n\nc", "a\n\nb\n\n\nc"),
            ("\u{feff}data: 1\n\n", "data: 1\n\n"),
            ("\u{feff}\r\n\u{feff}x\r", "\n\u{feff}x\n"),
            ("\r\n", "\n"),
            ("\u{fe00}x", "\u{fe00}x"),
            ("ab", "ab"),
            ("", ""),
        ] {
            for size in 1..=text.len().max(1) {
                assert_eq!(normalized(text, size), expected, "{text:?} by {size}");
            }
        }
    }
}
