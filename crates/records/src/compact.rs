//! [`Compactor`]: removes the white space around the tokens of JSON. [`compact_record`] writes a
//! record on one line.

use super::Container;

/// Removes the white space between the tokens of JSON that comes in pieces. Checks nothing:
/// other text keeps all its other bytes.
#[derive(Debug, Clone, Default)]
pub struct Compactor {
    in_string: bool,
    is_escaped: bool,
}

impl Compactor {
    /// Appends the next piece without the white space between its tokens.
    pub fn feed(&mut self, json: &[u8], out: &mut Vec<u8>) {
        for byte in json {
            if self.in_string {
                self.in_string = self.is_escaped || *byte != b'"';
                self.is_escaped = !self.is_escaped && *byte == b'\\';
            } else if byte.is_ascii_whitespace() {
                continue;
            } else {
                self.in_string = *byte == b'"';
            }
            out.push(*byte);
        }
    }
}

/// Appends a record of JSON on one line: a member of an object as an object of its
/// own.
pub fn compact_record(json: &[u8], container: Container, out: &mut Vec<u8>) {
    let is_member = container == Container::Object;
    out.extend(is_member.then_some(b'{'));
    Compactor::default().feed(json, out);
    out.extend(is_member.then_some(b'}'));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_any_size_are_compacted_as_the_whole() {
        let json = b"{ \"a b\" : [ 1,\n 2 ],\t\"c\\\" d\": \" \\\\ \" }\r\n";
        for size in 1..json.len() {
            let mut out = Vec::new();
            let mut compactor = Compactor::default();
            json.chunks(size).for_each(|piece| compactor.feed(piece, &mut out));
            assert_eq!(out, b"{\"a b\":[1,2],\"c\\\" d\":\" \\\\ \"}", "{size}");
        }
    }
}
