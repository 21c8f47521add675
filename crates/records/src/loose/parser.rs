//! [`Parser`]: reads one value after another, and writes each as JSON.

use super::repairs::{Repair, Repairs};
use crate::MAX_DEPTH;

/// The reason why a value has no end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParseEnd {
    /// The text ends within the value.
    End,
    /// The text is no value.
    Invalid,
}

/// The syntax that comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Value,
    Key,
    CommaOrEnd,
}

/// An open list or object.
#[derive(Debug, Clone, Copy)]
struct OpenContainer {
    /// The byte that ends it in the text.
    end: u8,
    is_object: bool,
    /// The length of the output after its last complete child, and the number of children.
    complete: usize,
    children: u64,
}

/// Reads values without recursion.
pub(super) struct Parser<'a> {
    pub(super) text: &'a [u8],
    pub(super) at: usize,
    pub(super) out: Vec<u8>,
    pub(super) repairs: Repairs,
    /// The number of the record that is being read.
    pub(super) record: u64,
    open: Vec<OpenContainer>,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self {
            text,
            at: 0,
            out: Vec::with_capacity(text.len() + 16),
            repairs: Repairs::default(),
            record: 0,
            open: Vec::new(),
        }
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Passes over white space and comments.
    fn pass_space(&mut self) {
        loop {
            let rest = &self.text[self.at..];
            let blank = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            self.at += blank;

            let rest = &rest[blank..];
            let length = match rest {
                [b'/', b'/', ..] | [b'#', ..] => memchr::memchr(b'\n', rest).unwrap_or(rest.len()),
                [b'/', b'*', ..] => {
                    memchr::memmem::find(rest, b"*/").map_or(rest.len(), |end| end + 2)
                }
                // A space without a break.
                [0xC2, 0xA0, ..] => 2,
                _ => return,
            };
            if rest[0] != 0xC2 {
                self.repairs.add(Repair::Comment, self.record);
            }
            self.at += length;
        }
    }

    /// Passes over what may stand between two values: white space, comments, a comma, a record
    /// separator (RFC 7464).
    pub(super) fn pass_between(&mut self) {
        loop {
            self.pass_space();
            match self.peek() {
                Some(b',' | b';' | 0x1E) => self.at += 1,
                _ => return,
            }
        }
    }

    /// Checks that a value is followed by white space, a comma or another value.
    pub(super) fn ends_value(&self) -> Option<()> {
        match self.peek() {
            None
            | Some(b' ' | b'\t' | b'\n' | b'\r' | b',' | b';' | 0x1E | b'{' | b'[' | b'#' | b'/') => {
                Some(())
            }
            Some(_) => None,
        }
    }

    /// Reads a value.
    pub(super) fn value(&mut self) -> Result<(), ParseEnd> {
        self.open.clear();
        let mut next = Next::Value;

        loop {
            self.pass_space();
            let Some(byte) = self.peek() else { return Err(ParseEnd::End) };

            next = match next {
                Next::Value => match byte {
                    b'{' | b'[' | b'(' => self.begin(byte)?,
                    b']' | b'}' | b')' => self.end_after_comma(byte)?,
                    _ => {
                        self.scalar(byte)?;
                        self.ended()
                    }
                },
                Next::Key => {
                    if byte == b'}' {
                        self.end_after_comma(byte)?
                    } else {
                        self.key(byte)?;
                        Next::Value
                    }
                }
                Next::CommaOrEnd => self.comma_or_end(byte)?,
            };

            if self.open.is_empty() {
                return Ok(());
            }
        }
    }

    fn begin(&mut self, byte: u8) -> Result<Next, ParseEnd> {
        if self.open.len() == MAX_DEPTH {
            return Err(ParseEnd::Invalid);
        }

        let (end, is_object) = match byte {
            b'{' => (b'}', true),
            b'(' => {
                self.repairs.add(Repair::Literal, self.record);
                (b')', false)
            }
            _ => (b']', false),
        };
        self.at += 1;
        self.out.push(if is_object { b'{' } else { b'[' });
        self.open.push(OpenContainer { end, is_object, complete: self.out.len(), children: 0 });
        Ok(if is_object { Next::Key } else { Next::Value })
    }

    /// Notes the end of a value.
    fn ended(&mut self) -> Next {
        if let Some(open) = self.open.last_mut() {
            open.complete = self.out.len();
            open.children += 1;
        }
        if self.open.len() == 1 {
            self.record += 1;
        }
        Next::CommaOrEnd
    }

    /// An end where a value or a name could come: of an empty list or object, or after a comma.
    fn end_after_comma(&mut self, byte: u8) -> Result<Next, ParseEnd> {
        let Some(open) = self.open.last().copied() else { return Err(ParseEnd::Invalid) };
        if open.children > 0 {
            if self.out.last() != Some(&b',') {
                // A name without a value.
                return Err(ParseEnd::Invalid);
            }
            self.out.pop();
            // The comma of a tuple with one item belongs to it.
            if open.end != b')' {
                self.repairs.add(Repair::Comma, self.record);
            }
        } else if self.out.len() != open.complete {
            return Err(ParseEnd::Invalid);
        }
        self.end(byte)
    }

    fn end(&mut self, byte: u8) -> Result<Next, ParseEnd> {
        match self.open.pop() {
            Some(open) if open.end == byte => {
                self.at += 1;
                self.out.push(if open.is_object { b'}' } else { b']' });
                Ok(self.ended())
            }
            _ => Err(ParseEnd::Invalid),
        }
    }

    fn comma_or_end(&mut self, byte: u8) -> Result<Next, ParseEnd> {
        let is_object = self.open.last().is_some_and(|open| open.is_object);
        if byte != b',' {
            return self.end(byte);
        }

        self.at += 1;
        self.out.push(b',');
        Ok(if is_object { Next::Key } else { Next::Value })
    }

    /// A name and its colon.
    fn key(&mut self, byte: u8) -> Result<(), ParseEnd> {
        match byte {
            b'"' => self.string(b'"')?,
            b'\'' => {
                self.repairs.add(Repair::Literal, self.record);
                self.string(b'\'')?;
            }
            _ => {
                let word = self.word();
                if word.is_empty() {
                    return Err(ParseEnd::Invalid);
                }
                self.at += word.len();
                self.quote(word);
                self.repairs.add(Repair::Key, self.record);
            }
        }

        self.pass_space();
        match self.peek() {
            Some(b':') => {
                self.at += 1;
                self.out.push(b':');
                Ok(())
            }
            None => Err(ParseEnd::End),
            Some(_) => Err(ParseEnd::Invalid),
        }
    }

    /// The letters, digits and signs from here on.
    fn word(&self) -> &'a [u8] {
        let rest = &self.text[self.at..];
        let is_part = |byte: &&u8| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.' | b'+' | b'-')
        };
        &rest[..rest.iter().take_while(is_part).count()]
    }

    /// Appends a word as a text.
    fn quote(&mut self, word: &[u8]) {
        self.out.push(b'"');
        self.out.extend_from_slice(word);
        self.out.push(b'"');
    }

    /// A text, a number or a word.
    fn scalar(&mut self, byte: u8) -> Result<(), ParseEnd> {
        match byte {
            b'"' => return self.string(b'"'),
            b'\'' => {
                self.repairs.add(Repair::Literal, self.record);
                return self.string(b'\'');
            }
            _ => {}
        }

        let word = self.word();
        let is_last = self.at + word.len() == self.text.len();
        let (json, repair): (&[u8], _) = match word {
            b"true" | b"false" | b"null" => (word, None),
            b"True" => (b"true", Some(Repair::Literal)),
            b"False" => (b"false", Some(Repair::Literal)),
            b"None" | b"undefined" | b"NULL" | b"nil" => (b"null", Some(Repair::Literal)),
            b"NaN" | b"nan" | b"-NaN" | b"-nan" | b"Infinity" | b"-Infinity" | b"+Infinity"
            | b"inf" | b"-inf" | b"Inf" | b"-Inf" => (b"null", Some(Repair::NotANumber)),
            b"b" | b"u" | b"r" | b"f"
                if matches!(self.text.get(self.at + 1), Some(b'\'' | b'"')) =>
            {
                self.at += 1;
                self.repairs.add(Repair::Literal, self.record);
                let quote = self.text[self.at];
                return self.string(quote);
            }
            _ if word.first().is_some_and(u8::is_ascii_alphabetic) => {
                return if is_last && !word.is_empty() {
                    Err(ParseEnd::End)
                } else {
                    self.call(word)
                };
            }
            _ => return self.number(word, is_last),
        };

        self.at += word.len();
        self.out.extend_from_slice(json);
        if let Some(repair) = repair {
            self.repairs.add(repair, self.record);
        }
        Ok(())
    }

    fn number(&mut self, word: &[u8], is_last: bool) -> Result<(), ParseEnd> {
        let text = std::str::from_utf8(word).map_err(|_| ParseEnd::Invalid)?;
        let (negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let plain = digits.replace('_', "");
        let is_strict = !text.starts_with('+') && plain.len() == digits.len();

        if plain.starts_with(['+', '-']) {
            return Err(ParseEnd::Invalid);
        }

        let first = plain.bytes().next();
        let is_code = plain.len() > 1
            && first == Some(b'0')
            && plain.bytes().all(|byte| byte.is_ascii_digit());
        let sign = if negative { "-" } else { "" };

        let (json, repair) = if is_code {
            (format!("\"{sign}{plain}\""), Some(Repair::Code))
        } else if let Some(hex) = plain.strip_prefix("0x").or_else(|| plain.strip_prefix("0X")) {
            let value = u64::from_str_radix(hex, 16).map_err(|_| ParseEnd::Invalid)?;
            (format!("{sign}{value}"), Some(Repair::Number))
        } else {
            let is_digits =
                |c: char| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-');
            let value = plain.parse::<f64>().ok().filter(|_| plain.chars().all(is_digits));
            let Some(value) = value else {
                let is_beginning = is_last && plain.chars().all(is_digits) && !plain.is_empty();
                return Err(if is_beginning { ParseEnd::End } else { ParseEnd::Invalid });
            };

            let has_point = plain.ends_with('.') || plain.starts_with('.') || plain.contains(".e");
            let has_zero =
                first == Some(b'0') && plain.as_bytes().get(1).is_some_and(u8::is_ascii_digit);
            if value.is_infinite() {
                (format!("{sign}1.7976931348623157e308"), Some(Repair::Range))
            } else if has_point || has_zero || plain.contains(".E") {
                (format!("{sign}{value:?}"), Some(Repair::Number))
            } else {
                (format!("{sign}{plain}"), (!is_strict).then_some(Repair::Number))
            }
        };

        self.at += word.len();
        self.out.extend_from_slice(json.as_bytes());
        if let Some(repair) = repair {
            self.repairs.add(repair, self.record);
        }
        Ok(())
    }

    /// A call such as `Decimal('1.5')`: its only argument, or its text.
    fn call(&mut self, name: &[u8]) -> Result<(), ParseEnd> {
        let start = self.at;
        let rest = &self.text[start + name.len()..];
        if rest.first() != Some(&b'(') {
            return Err(ParseEnd::Invalid);
        }

        let end = memchr::memchr(b')', &rest[..rest.len().min(200)]).ok_or(ParseEnd::Invalid)?;
        let argument = rest[1..end].trim_ascii();
        let inner = match argument {
            [quote @ (b'"' | b'\''), text @ .., last] if quote == last && !text.contains(quote) => {
                text
            }
            _ if argument.contains(&b',') || argument.is_empty() => {
                &self.text[start..=start + name.len() + end]
            }
            _ => argument,
        };

        let text = String::from_utf8_lossy(inner).into_owned();
        self.out.push(b'"');
        text.chars().for_each(|c| self.push_char(c));
        self.out.push(b'"');
        self.at = start + name.len() + end + 1;
        self.repairs.add(Repair::Call, self.record);
        Ok(())
    }

    /// Ends a value that is cut: leaves out what is incomplete in the outermost list that has
    /// complete items, else in the innermost list or object. `start` is where the value begins in
    /// the output.
    pub(super) fn close(&mut self, start: usize) {
        let has_children = |open: &OpenContainer| open.children > 0;
        let list = self.open.iter().position(|open| !open.is_object && has_children(open));
        let level = list.or_else(|| self.open.iter().rposition(has_children));

        let Some(level) = level else {
            self.out.truncate(start);
            self.at = self.text.len();
            return;
        };

        self.out.truncate(self.open[level].complete);
        for open in self.open[..=level].iter().rev() {
            self.out.push(if open.is_object { b'}' } else { b']' });
        }
        self.at = self.text.len();
    }
}
