//! Terminal escapes (ECMA-48), such as colours, which logs have around their words.

use std::borrow::Cow;

use memchr::memchr;

const ESCAPE: u8 = 0x1B;
/// The longest escape that is recognised, in bytes. A longer one is text.
const MAX_BYTES: usize = 4 << 10;

/// Whether a text has terminal escapes.
pub fn has_escapes(text: &[u8]) -> bool {
    memchr(ESCAPE, text).is_some()
}

/// The text without its terminal escapes. Line breaks stay, so that lines keep their numbers.
pub fn without_escapes(text: &str) -> Cow<'_, str> {
    if !has_escapes(text.as_bytes()) {
        return Cow::Borrowed(text);
    }

    let mut bytes = Vec::with_capacity(text.len());
    let mut stripper = EscapeStripper::default();
    stripper.feed(text.as_bytes(), &mut bytes);
    stripper.finish(&mut bytes);
    // Escapes are ASCII, or end at a character.
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}

/// Removes the terminal escapes of a text that comes in blocks.
#[derive(Debug, Clone, Default)]
pub struct EscapeStripper {
    /// An escape that has begun.
    held: Vec<u8>,
}

impl EscapeStripper {
    /// Appends the next block without its escapes.
    pub fn feed(&mut self, block: &[u8], out: &mut Vec<u8>) {
        let mut rest = block;

        loop {
            while !self.held.is_empty() {
                let Some((byte, after)) = rest.split_first() else { return };
                self.held.push(*byte);
                rest = after;
                self.judge(out);
            }

            let Some(found) = memchr(ESCAPE, rest) else {
                out.extend_from_slice(rest);
                return;
            };
            out.extend_from_slice(&rest[..found]);
            self.held.push(ESCAPE);
            rest = &rest[found + 1..];
        }
    }

    /// Ends the text. An escape that has not ended is text.
    pub fn finish(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.held);
    }

    /// Drops the held bytes if they are an escape, and passes them on if they are none.
    fn judge(&mut self, out: &mut Vec<u8>) {
        let last = self.held.last().copied().unwrap_or_default();
        let ends = match &self.held[1..] {
            // A control sequence: parameters, intermediate bytes, and a final byte.
            [b'[', inner @ ..] => match inner.last() {
                None | Some(0x20..=0x3F) => Judgement::Open,
                Some(0x40..=0x7E) => Judgement::Escape,
                Some(_) => Judgement::Text,
            },
            // A command, such as a link or a title: it ends with BEL or ESC \.
            [b']' | b'P' | b'X' | b'^' | b'_', inner @ ..] => match inner {
                [.., 0x07] | [.., ESCAPE, b'\\'] => Judgement::Escape,
                [.., b'\n'] => Judgement::Text,
                _ => Judgement::Open,
            },
            // Two or three bytes, such as a character set.
            [0x20..=0x2F] => Judgement::Open,
            [0x20..=0x2F, ..] | [0x30..=0x7E] => Judgement::Escape,
            _ => Judgement::Text,
        };

        match ends {
            Judgement::Open if self.held.len() < MAX_BYTES => {}
            Judgement::Escape => self.held.clear(),
            Judgement::Open | Judgement::Text => {
                let starts_anew = last == ESCAPE && self.held.len() > 1;
                self.held.truncate(self.held.len() - usize::from(starts_anew));
                out.append(&mut self.held);
                self.held.extend(starts_anew.then_some(ESCAPE));
            }
        }
    }
}

enum Judgement {
    Open,
    Escape,
    Text,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn colours_and_other_escapes_are_left_out() {
        for (text, expected) in [
            ("\u{1b}[31mERROR\u{1b}[0m: boom", "ERROR: boom"),
            ("\u{1b}[1;38;5;196mE\u{1b}[mR", "ER"),
            ("a\u{1b}[2K\u{1b}[1Gb", "ab"),
            ("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{7}!", "link!"),
            ("\u{1b}(Bx\u{1b}=y", "xy"),
            ("plain \u{e4}", "plain \u{e4}"),
            ("cut \u{1b}[3", "cut \u{1b}[3"),
            ("\u{1b}[3\u{e4}", "\u{1b}[3\u{e4}"),
            ("\u{1b}\u{1b}[1mx", "\u{1b}x"),
            ("a\u{1b}]0;t\nb", "a\u{1b}]0;t\nb"),
        ] {
            assert_eq!(without_escapes(text), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn blocks_do_not_matter_and_lines_stay(text in "[a\u{1b}\\[\\]0-9;m\n\u{7}\u{e4}]{0,60}", block in 1_usize..9) {
            let whole = without_escapes(&text).into_owned();
            let mut stripper = EscapeStripper::default();
            let mut out = Vec::new();
            for block in text.as_bytes().chunks(block) {
                stripper.feed(block, &mut out);
            }
            stripper.finish(&mut out);

            prop_assert_eq!(String::from_utf8(out).expect("it is text"), whole.clone());
            prop_assert_eq!(whole.matches('\n').count(), text.matches('\n').count());
        }
    }
}
