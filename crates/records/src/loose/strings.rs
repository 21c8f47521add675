//! Texts in quotes, as JSON texts.

use super::{
    parser::{ParseEnd, Parser},
    repairs::Repair,
};

impl Parser<'_> {
    /// A text in these quotes, which begins at the present byte.
    pub(super) fn string(&mut self, quote: u8) -> Result<(), ParseEnd> {
        self.at += 1;
        self.out.push(b'"');

        loop {
            let rest = &self.text[self.at..];
            let plain = rest.iter().position(|byte| {
                *byte == quote || matches!(byte, b'\\' | b'"') || *byte < 0x20 || *byte >= 0x80
            });
            let plain = plain.unwrap_or(rest.len());
            self.out.extend_from_slice(&rest[..plain]);
            self.at += plain;

            match self.text.get(self.at) {
                None => return Err(ParseEnd::End),
                Some(byte) if *byte == quote => {
                    self.at += 1;
                    self.out.push(b'"');
                    return Ok(());
                }
                Some(b'\\') => self.escape()?,
                Some(b'"') => {
                    self.out.extend_from_slice(b"\\\"");
                    self.at += 1;
                }
                Some(byte) if *byte < 0x20 => {
                    self.push_char(char::from(*byte));
                    self.repairs.add(Repair::Escape, self.record);
                    self.at += 1;
                }
                Some(_) => self.beyond_ascii()?,
            }
        }
    }

    /// A character that is not ASCII, or bytes that are none.
    fn beyond_ascii(&mut self) -> Result<(), ParseEnd> {
        let rest = &self.text[self.at..];
        let end = rest.iter().take(4).skip(1).take_while(|byte| **byte & 0xC0 == 0x80).count() + 1;
        match std::str::from_utf8(&rest[..end]) {
            Ok(character) => self.out.extend_from_slice(character.as_bytes()),
            Err(_) if rest.len() < 4 && end == rest.len() => return Err(ParseEnd::End),
            Err(_) => {
                self.push_char('\u{fffd}');
                self.repairs.add(Repair::Character, self.record);
            }
        }
        self.at += end;
        Ok(())
    }

    /// An escape, which begins with the backslash at the present byte.
    fn escape(&mut self) -> Result<(), ParseEnd> {
        let Some(byte) = self.text.get(self.at + 1).copied() else { return Err(ParseEnd::End) };
        self.at += 2;

        match byte {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {
                self.out.extend_from_slice(&[b'\\', byte]);
            }
            b'u' => return self.unicode_escape(),
            // A line that continues.
            b'\n' => self.repairs.add(Repair::Escape, self.record),
            b'x' => {
                let code = self.hex(2)?;
                self.push_char(char::from_u32(code).unwrap_or('\u{fffd}'));
                self.repairs.add(Repair::Escape, self.record);
            }
            b'\'' => self.out.push(b'\''),
            b'0' => self.push_char('\0'),
            b'a' => self.push_char('\u{7}'),
            b'v' => self.push_char('\u{b}'),
            other => {
                // The backslash stands for itself, as in `\d`.
                self.out.extend_from_slice(b"\\\\");
                self.at -= usize::from(!(0x20..0x80).contains(&other));
                if (0x20..0x80).contains(&other) {
                    self.push_char(char::from(other));
                }
                self.repairs.add(Repair::Escape, self.record);
            }
        }
        Ok(())
    }

    /// `\u12AB`, and the other half of a pair.
    fn unicode_escape(&mut self) -> Result<(), ParseEnd> {
        let first = self.hex(4)?;
        let mut character = char::from_u32(first);

        if (0xD800..0xDC00).contains(&first) && self.text[self.at..].starts_with(b"\\u") {
            let before = self.at;
            self.at += 2;
            let second = self.hex(4)?;
            if (0xDC00..0xE000).contains(&second) {
                let code = 0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00);
                character = char::from_u32(code);
            } else {
                self.at = before;
            }
        }

        if character.is_none() {
            self.repairs.add(Repair::Character, self.record);
        }
        self.push_char(character.unwrap_or('\u{fffd}'));
        Ok(())
    }

    /// A number of so many hexadecimal digits.
    fn hex(&mut self, digits: usize) -> Result<u32, ParseEnd> {
        let Some(text) = self.text.get(self.at..self.at + digits) else {
            return Err(ParseEnd::End);
        };
        let text = std::str::from_utf8(text).map_err(|_| ParseEnd::Invalid)?;
        let code = u32::from_str_radix(text, 16).map_err(|_| ParseEnd::Invalid)?;
        self.at += digits;
        Ok(code)
    }

    /// Appends a character as JSON has it in texts.
    pub(super) fn push_char(&mut self, character: char) {
        match character {
            '"' => self.out.extend_from_slice(b"\\\""),
            '\\' => self.out.extend_from_slice(b"\\\\"),
            control if control < ' ' => {
                self.out.extend_from_slice(format!("\\u{:04x}", u32::from(control)).as_bytes());
            }
            other => self.out.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}
