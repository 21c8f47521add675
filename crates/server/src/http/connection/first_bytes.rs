//! The first bytes of a connection, which say whether it is HTTP/2.
//!
//! Hyper-util finds that out, too, but passes these bytes on as a read of their own. Hyper then
//! doubles its buffer for the rest of the head, which costs each connection 8 KiB.

use tokio::io::ReadBuf;

/// The first bytes of each connection of HTTP/2 (RFC 9113, section 3.4).
const PREFACE: [u8; 24] = *b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Bytes that were received and are not read yet.
#[derive(Default)]
pub(super) struct FirstBytes {
    bytes: [u8; PREFACE.len()],
    received: usize,
    read: usize,
}

impl FirstBytes {
    /// Room for more bytes, as long as they do not say which version it is; empty afterwards.
    pub(super) fn room(&mut self) -> &mut [u8] {
        let is_open = self.bytes[..self.received] == PREFACE[..self.received];
        let end = if is_open { PREFACE.len() } else { self.received };
        &mut self.bytes[self.received..end]
    }

    /// Notes that so many bytes were received into [`room`](Self::room).
    pub(super) fn received(&mut self, bytes: usize) {
        self.received += bytes;
    }

    /// Whether the client speaks HTTP/2.
    pub(super) fn is_http2(&self) -> bool {
        self.bytes == PREFACE && self.received == PREFACE.len()
    }

    /// Moves bytes that were not read into a buffer. Returns whether there were any.
    pub(super) fn read(&mut self, buffer: &mut ReadBuf<'_>) -> bool {
        let rest = &self.bytes[self.read..self.received];
        let len = rest.len().min(buffer.remaining());
        buffer.put_slice(&rest[..len]);
        self.read += len;
        len > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Receives the pieces one by one. Returns how many bytes were taken.
    fn receive(first: &mut FirstBytes, pieces: &[&[u8]]) -> usize {
        let mut taken = 0;
        for piece in pieces {
            let room = first.room();
            let len = room.len().min(piece.len());
            room[..len].copy_from_slice(&piece[..len]);
            first.received(len);
            taken += len;
        }
        taken
    }

    #[test]
    fn a_preface_in_any_pieces_is_http2() {
        for cut in 0..PREFACE.len() {
            let mut first = FirstBytes::default();
            let (before, after) = PREFACE.split_at(cut);

            assert_eq!(receive(&mut first, &[before]), cut);
            assert!(!first.is_http2() && !first.room().is_empty());

            assert_eq!(receive(&mut first, &[after, b"SETTINGS"]), PREFACE.len() - cut);
            assert!(first.is_http2() && first.room().is_empty());
        }
    }

    #[test]
    fn other_bytes_are_http1_and_are_read_in_any_pieces() {
        for text in ["GET /mcp HTTP/1.1", "PRI * HTTP/1.1\r\n", "PUT", "x"] {
            let mut first = FirstBytes::default();
            receive(&mut first, &[&text.as_bytes()[..1], &text.as_bytes()[1..]]);
            assert!(!first.is_http2() && first.room().is_empty(), "{text}");

            let (mut read, mut room) = (Vec::new(), [0; 2]);
            loop {
                let mut buffer = ReadBuf::new(&mut room);
                if !first.read(&mut buffer) {
                    break;
                }
                read.extend_from_slice(buffer.filled());
            }

            assert!(text.as_bytes().starts_with(&read) && !read.is_empty(), "{text}");
        }
    }
}
