//! The records of a JSON value: the items of a list or the members of an object.

use super::{
    Container, Fault, Pointer, Record,
    lexer::{Lexer, Token, TokenKind},
};

/// Whether a segment of a pointer is the index of this item: digits, without zeros in front
/// (RFC 6901, section 4).
fn is_index(segment: &str, item: usize) -> bool {
    let is_canonical = segment == "0" || !segment.starts_with(['0', '+']);
    is_canonical && segment.parse() == Ok(item)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JsonState {
    /// Within `level` containers on the way to the pointed-at value.
    Seeking { level: usize },
    /// Within the value: its children are at this depth.
    Inside { depth: usize },
    /// Within the value, which is a scalar.
    Scalar,
    /// After the value, or past the place where it would be.
    Done,
}

/// Finds the records of the value at a pointer.
#[derive(Debug, Clone)]
pub(super) struct JsonRecords {
    lexer: Lexer,
    path: Pointer,
    state: JsonState,
    /// The index of the next item, in a list on the way.
    item: usize,
    container: Option<Container>,
    /// The start of the record that has begun, and of its value.
    open: Option<(u64, u64)>,
    /// The start of a member's key whose value has not begun.
    key: Option<u64>,
    /// The number of the next record.
    number: u64,
    /// Whether the scan began at a record, without the containers around it.
    resumed: bool,
}

impl JsonRecords {
    pub(super) fn new(path: Pointer) -> Self {
        let state = JsonState::Seeking { level: 0 };
        Self {
            lexer: Lexer::new(),
            path,
            state,
            item: 0,
            container: None,
            open: None,
            key: None,
            number: 0,
            resumed: false,
        }
    }

    /// A scan that continues at a record. The content that it is fed begins there.
    pub(super) fn resume(container: Container, number: u64, offset: u64) -> Self {
        let object = container == Container::Object;
        let scalar = container == Container::Scalar;
        Self {
            lexer: if scalar { Lexer::starting_at(offset) } else { Lexer::within(object, offset) },
            state: if scalar { JsonState::Scalar } else { JsonState::Inside { depth: 1 } },
            container: Some(container),
            number,
            resumed: true,
            ..Self::new(Pointer::default())
        }
    }

    /// The kind of the pointed-at value; `None` until it is found.
    pub(super) fn container(&self) -> Option<Container> {
        self.container
    }

    /// The start of the record that has begun and not ended.
    pub(super) fn open(&self) -> Option<u64> {
        self.open.map(|(start, _)| start).or(self.key)
    }

    pub(super) fn feed(
        &mut self,
        block: &[u8],
        sink: &mut impl FnMut(Record),
    ) -> Result<(), Fault> {
        let mut at = 0;
        while !self.is_over() {
            let Some(token) = self.lexer.next(block, &mut at)? else { break };
            self.token(token, sink);
        }
        Ok(())
    }

    pub(super) fn finish(&mut self, sink: &mut impl FnMut(Record)) -> Result<(), Fault> {
        if self.is_over() {
            return Ok(());
        }
        if let Some(token) = self.lexer.finish()? {
            self.token(token, sink);
        }
        Ok(())
    }

    /// Whether the scan needs no more tokens. A scan from the start also checks the content
    /// after the records, so that truncated content does not pass for complete.
    fn is_over(&self) -> bool {
        self.state == JsonState::Done && self.resumed
    }

    fn token(&mut self, token: Token, sink: &mut impl FnMut(Record)) {
        match self.state {
            JsonState::Seeking { level } => self.seek(level, token),
            JsonState::Inside { depth } => self.inside(depth, token, sink),
            JsonState::Scalar if token.kind == TokenKind::End => {
                self.emit(token.offset, sink);
                self.state = JsonState::Done;
            }
            JsonState::Scalar => self.open = Some((token.offset, token.offset)),
            JsonState::Done => {}
        }
    }

    fn seek(&mut self, level: usize, token: Token) {
        let depth = self.lexer.depth();
        let container = match token.kind {
            TokenKind::Key => {
                if depth == level {
                    self.lexer.capture_key();
                }
                return;
            }
            TokenKind::End => {
                if depth < level {
                    self.state = JsonState::Done;
                }
                return;
            }
            TokenKind::List => Container::List,
            TokenKind::Object => Container::Object,
            TokenKind::Scalar => Container::Scalar,
        };

        let parent = depth - usize::from(container != Container::Scalar);
        if parent != level || !self.is_on_path(level, container) {
            return;
        }

        let is_target = level == self.path.len();
        self.state = match container {
            Container::Scalar if is_target => {
                self.open = Some((token.offset, token.offset));
                JsonState::Scalar
            }
            Container::Scalar => JsonState::Done,
            _ if is_target => JsonState::Inside { depth },
            _ => JsonState::Seeking { level: level + 1 },
        };

        self.item = 0;
        if is_target {
            self.container = Some(container);
        }
    }

    /// Whether the value that begins at this level is the one to follow.
    fn is_on_path(&mut self, level: usize, container: Container) -> bool {
        let Some(level) = level.checked_sub(1) else { return true };
        let Some(name) = self.path.segment(level) else { return false };

        // A value that is a container itself is already on the stack.
        if self.lexer.parent_is_object(container != Container::Scalar) {
            return self.lexer.key().as_deref() == Some(name);
        }

        let found = is_index(name, self.item);
        self.item += 1;
        found
    }

    fn inside(&mut self, depth: usize, token: Token, sink: &mut impl FnMut(Record)) {
        let now = self.lexer.depth();
        match token.kind {
            TokenKind::Key if now == depth => self.key = Some(token.offset),
            TokenKind::Scalar if now == depth => self.begin(token.offset),
            TokenKind::List | TokenKind::Object if now == depth + 1 => self.begin(token.offset),
            TokenKind::End if now == depth => self.emit(token.offset, sink),
            TokenKind::End if now < depth => self.state = JsonState::Done,
            _ => {}
        }
    }

    /// Notes the start of a value, and of its record.
    fn begin(&mut self, value: u64) {
        self.open = Some((self.key.take().unwrap_or(value), value));
    }

    fn emit(&mut self, end: u64, sink: &mut impl FnMut(Record)) {
        if let Some((start, value)) = self.open.take() {
            sink(Record { number: self.number, start, value, end });
            self.number += 1;
        }
    }
}
