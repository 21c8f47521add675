//! The structure of JSON as tokens, from blocks of any size. Checks brackets,
//! commas and colons; not the contents of strings and numbers.

mod classes;
mod words;

use memchr::memchr2;

pub(crate) use self::classes::WORD;
use super::{Fault, MAX_DEPTH};

/// The maximum number of bytes of a key that are captured. A longer key matches nothing.
const KEY_BYTES: usize = 64 << 10;

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// The start of a member's key.
    Key,
    /// The start of a list.
    List,
    /// The start of an object.
    Object,
    /// The start of any other value.
    Scalar,
    /// The end of a value.
    End,
}

/// A token with its offset. An end has the offset after the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) offset: u64,
}

/// The token that the next byte is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Between tokens.
    Between,
    /// In the key of a member.
    Key,
    /// In a string that is a value.
    Text,
    /// In a number, `true`, `false` or `null`.
    Atom,
}

/// The syntax that may come next, apart from white space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    Colon,
    CommaOrEnd,
    Nothing,
}

/// Reads tokens from blocks, and keeps the state between two blocks.
#[derive(Debug, Clone)]
pub(crate) struct Lexer {
    /// The offset of the next byte.
    offset: u64,
    mode: Mode,
    /// Whether the last byte was a backslash, within a string.
    escaped: bool,
    expected: Expected,
    /// The open containers: whether each is an object.
    open: Vec<bool>,
    /// Whether the current key is captured.
    capturing: bool,
    /// The captured key in JSON, as far as it was read.
    key: Vec<u8>,
}

impl Lexer {
    pub(crate) fn new() -> Self {
        Self {
            offset: 0,
            mode: Mode::Between,
            escaped: false,
            expected: Expected::Value,
            open: Vec::new(),
            capturing: false,
            key: Vec::new(),
        }
    }

    /// A lexer of content that continues with a value at this offset.
    pub(crate) fn starting_at(offset: u64) -> Self {
        Self { offset, ..Self::new() }
    }

    /// A lexer that continues at an item of a list or at a member of an object.
    pub(crate) fn within(object: bool, offset: u64) -> Self {
        let expected = if object { Expected::Key } else { Expected::Value };
        Self { offset, expected, open: vec![object], ..Self::new() }
    }

    /// The number of open containers.
    pub(crate) fn depth(&self) -> usize {
        self.open.len()
    }

    /// Whether the innermost container is an object.
    fn in_object(&self) -> bool {
        self.open.last() == Some(&true)
    }

    /// Whether the value that has just begun is in an object. A value that is a container
    /// (`opened`) is itself the innermost container now.
    pub(crate) fn parent_is_object(&self, opened: bool) -> bool {
        let parent = self.open.len().checked_sub(1 + usize::from(opened));
        parent.is_some_and(|parent| self.open[parent])
    }

    /// Captures the key that has just begun.
    pub(crate) fn capture_key(&mut self) {
        self.capturing = true;
        self.key.clear();
        self.key.push(b'"');
    }

    /// The key that was captured last.
    pub(crate) fn key(&self) -> Option<String> {
        serde_json::from_slice(&self.key).ok()
    }

    /// The next token in the block; `at` is the position in it. `None` when the
    /// block is used up.
    pub(crate) fn next(&mut self, block: &[u8], at: &mut usize) -> Result<Option<Token>, Fault> {
        while *at < block.len() {
            let token = match self.mode {
                Mode::Between => self.between(block, at)?,
                Mode::Atom => self.atom(block, at),
                Mode::Key | Mode::Text => self.string(block, at),
            };

            if token.is_some() {
                return Ok(token);
            }
        }
        Ok(None)
    }

    /// The last token, after all blocks.
    pub(crate) fn finish(&mut self) -> Result<Option<Token>, Fault> {
        let token = (self.mode == Mode::Atom).then(|| self.end_value());
        match self.expected {
            Expected::Nothing if self.mode == Mode::Between => Ok(token),
            _ => Err(Fault::Truncated { offset: self.offset }),
        }
    }

    fn between(&mut self, block: &[u8], at: &mut usize) -> Result<Option<Token>, Fault> {
        let byte = block[*at];
        let offset = self.offset;
        let wants_value = matches!(self.expected, Expected::Value | Expected::ValueOrEnd);

        let kind = match byte {
            b' ' | b'\t' | b'\n' | b'\r' => None,
            // A byte order mark.
            0xEF | 0xBB | 0xBF if offset < 3 && self.open.is_empty() => None,
            b':' if self.expected == Expected::Colon => {
                self.expected = Expected::Value;
                None
            }
            b',' if self.expected == Expected::CommaOrEnd => {
                self.expected = if self.in_object() { Expected::Key } else { Expected::Value };
                None
            }
            b'"' if matches!(self.expected, Expected::Key | Expected::KeyOrEnd) => {
                self.mode = Mode::Key;
                self.capturing = false;
                Some(TokenKind::Key)
            }
            b'"' if wants_value => {
                self.mode = Mode::Text;
                self.capturing = false;
                Some(TokenKind::Scalar)
            }
            b'{' | b'[' if wants_value => {
                if self.open.len() == MAX_DEPTH {
                    return Err(Fault::TooDeep { offset });
                }
                let object = byte == b'{';
                self.open.push(object);
                self.expected = if object { Expected::KeyOrEnd } else { Expected::ValueOrEnd };
                Some(if object { TokenKind::Object } else { TokenKind::List })
            }
            b'}' | b']' if self.may_close(byte == b'}') => {
                self.open.pop();
                self.offset += 1;
                *at += 1;
                return Ok(Some(self.end_value()));
            }
            b'-' | b'0'..=b'9' | b'a'..=b'z' if wants_value => {
                self.mode = Mode::Atom;
                return Ok(Some(Token { kind: TokenKind::Scalar, offset }));
            }
            _ => return Err(Fault::Malformed { offset }),
        };

        self.offset += 1;
        *at += 1;
        Ok(kind.map(|kind| Token { kind, offset }))
    }

    fn may_close(&self, object: bool) -> bool {
        let empty = if object { Expected::KeyOrEnd } else { Expected::ValueOrEnd };
        self.open.last() == Some(&object)
            && (self.expected == empty || self.expected == Expected::CommaOrEnd)
    }

    fn atom(&mut self, block: &[u8], at: &mut usize) -> Option<Token> {
        let rest = &block[*at..];
        let is_part = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'+' | b'.');
        let length = rest.iter().take_while(|b| is_part(b)).count();
        self.offset += length as u64;
        *at += length;
        (length < rest.len()).then(|| self.end_value())
    }

    fn string(&mut self, block: &[u8], at: &mut usize) -> Option<Token> {
        let rest = &block[*at..];
        let (length, ends) = if std::mem::take(&mut self.escaped) {
            (1, false)
        } else {
            match string_end(rest) {
                None => (rest.len(), false),
                Some(found) => {
                    self.escaped = rest[found] == b'\\';
                    (found + 1, !self.escaped)
                }
            }
        };

        if self.capturing && self.key.len() < KEY_BYTES {
            self.key.extend_from_slice(&rest[..length]);
        }
        self.offset += length as u64;
        *at += length;
        match (ends, self.mode) {
            (false, _) => None,
            (true, Mode::Key) => {
                self.mode = Mode::Between;
                self.expected = Expected::Colon;
                None
            }
            (true, _) => Some(self.end_value()),
        }
    }

    fn end_value(&mut self) -> Token {
        self.mode = Mode::Between;
        self.expected = if self.open.is_empty() { Expected::Nothing } else { Expected::CommaOrEnd };
        Token { kind: TokenKind::End, offset: self.offset }
    }
}

/// The next quote or backslash. Most strings are so short that a vectorised search
/// takes longer to begin than to look at their bytes.
fn string_end(text: &[u8]) -> Option<usize> {
    const SHORT: usize = 16;
    let is_end = |byte: &u8| matches!(byte, b'"' | b'\\');
    let (start, rest) = text.split_at(text.len().min(SHORT));
    let in_start = start.iter().position(is_end);
    in_start.or_else(|| memchr2(b'"', b'\\', rest).map(|found| found + start.len()))
}
