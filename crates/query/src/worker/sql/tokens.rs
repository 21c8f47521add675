//! [`pieces`]: the tokens of a statement with their places, for what changes its text.

use sqlparser::{
    dialect::SQLiteDialect,
    tokenizer::{Location, Token, Tokenizer},
};

/// A token without white space and comments, with its place in bytes.
pub(super) struct PlacedToken {
    pub(super) token: Token,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl PlacedToken {
    /// Whether it is this keyword or name, in any case.
    pub(super) fn is_word(&self, name: &str) -> bool {
        matches!(&self.token, Token::Word(word) if word.value.eq_ignore_ascii_case(name))
    }
}

/// The tokens of a statement; `None` if it has a text that does not end, so that SQLite refuses it.
pub(super) fn pieces(sql: &str) -> Option<Vec<PlacedToken>> {
    let tokens = Tokenizer::new(&SQLiteDialect {}, sql).tokenize_with_location().ok()?;
    let mut places = TokenPlaces { rest: sql.chars(), at: 0, line: 1, column: 1 };
    let mut pieces = Vec::with_capacity(tokens.len());

    for token in tokens {
        let start = places.byte(token.span.start);
        let end = places.byte(token.span.end);
        if !matches!(token.token, Token::Whitespace(_) | Token::EOF) {
            pieces.push(PlacedToken { token: token.token, start, end });
        }
    }
    Some(pieces)
}

/// Places in bytes of places in lines and columns, in their order.
struct TokenPlaces<'a> {
    rest: std::str::Chars<'a>,
    at: usize,
    line: u64,
    column: u64,
}

impl TokenPlaces<'_> {
    fn byte(&mut self, to: Location) -> usize {
        while (self.line, self.column) < (to.line, to.column) {
            let Some(c) = self.rest.next() else { break };
            self.at += c.len_utf8();
            if c == '\n' {
                self.line += 1;
                self.column = 1;
            } else {
                self.column += 1;
            }
        }
        self.at
    }
}
