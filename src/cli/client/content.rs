//! [`Content`]: a resource's content on standard output, piece by piece.

use super::{ClientError, look, print, print_text};

/// The content of a resource, written as it arrives. A terminal is not given binary content, and
/// of text no control characters.
pub(in crate::cli) struct Content {
    uri: String,
    /// The command that prints the resource, for the advice to save it.
    command: &'static str,
    is_for_people: bool,
    is_begun: bool,
    /// The first bytes of a character whose end has not arrived.
    rest: Vec<u8>,
}

impl Content {
    pub(in crate::cli) fn new(uri: &str, command: &'static str) -> Self {
        Self {
            uri: uri.to_owned(),
            command,
            is_for_people: look::is_for_people(),
            is_begun: false,
            rest: Vec::new(),
        }
    }

    /// Writes the next piece.
    ///
    /// # Errors
    /// A terminal cannot show it, or standard output is closed.
    pub(in crate::cli) fn print(&mut self, piece: &[u8]) -> Result<(), ClientError> {
        if !self.is_for_people {
            return print(piece);
        }
        if !self.is_begun && !is_text(piece) {
            let Self { uri, command, .. } = self;
            return Err(ClientError::Usage(format!(
                "{uri} is binary, which a terminal cannot show. Save it: {command} {uri} > FILE"
            )));
        }

        self.is_begun = true;
        let text = self.next_text(piece);
        print_text(&text)
    }

    /// Writes the end: a character that was cut.
    ///
    /// # Errors
    /// Standard output is closed.
    pub(in crate::cli) fn finish(self) -> Result<(), ClientError> {
        print_text(&String::from_utf8_lossy(&self.rest))
    }

    /// The text up to the last complete character.
    fn next_text(&mut self, piece: &[u8]) -> String {
        self.rest.extend_from_slice(piece);
        let cut = match std::str::from_utf8(&self.rest) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            // Bytes that are no text within text are shown as such.
            Ok(_) | Err(_) => self.rest.len(),
        };

        let rest = self.rest.split_off(cut);
        let text = std::mem::replace(&mut self.rest, rest);
        String::from_utf8_lossy(&text).into_owned()
    }
}

/// Whether these bytes are text, apart from a cut last character.
pub(super) fn is_text(bytes: &[u8]) -> bool {
    !bytes.contains(&0)
        && std::str::from_utf8(bytes).map_or_else(|error| error.error_len().is_none(), |_| true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_are_cut_between_pieces_stay_whole() {
        let mut content = Content::new("x:a", "larder cat");
        // A control character of two bytes (CSI) must not slip through in halves.
        let pieces = [&b"a\xc2"[..], b"\x9b2J\xc3", b"\xa4", b"\xff!", b"\xe2\x82"];
        let texts = pieces.map(|piece| content.next_text(piece));
        assert_eq!(texts, ["a", "\u{9b}2J", "\u{e4}", "\u{fffd}!", ""]);
        assert_eq!(content.rest, b"\xe2\x82");
    }
}
