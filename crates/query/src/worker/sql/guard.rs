//! Guards in a statement: `min`, `max` and CAST to a number stay SQLite's own, with a function
//! beside or inside them that refuses texts that are no numbers.

use sqlparser::tokenizer::Token;

use super::tokens::{PlacedToken, pieces};

/// The maximum length of a guarded statement in bytes, which is that of any statement.
const MAX_BYTES: usize = 1 << 20;

/// A statement with guards.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Guarded {
    /// The statement needs no guards, or has no tokens of SQL, so that SQLite refuses it.
    Unchanged,
    Text(String),
    /// `min` and `max` are nested so deeply that the guards would take too much room.
    TooLong,
}

impl Guarded {
    /// Puts guards into a statement that SQLite accepts.
    pub(super) fn new(sql: &str) -> Self {
        let Some(tokens) = pieces(sql) else { return Self::Unchanged };
        let mut guard = Guard { sql, tokens: &tokens, any: false, is_too_long: false };
        let text = guard.range(0, tokens.len(), 0, sql.len());

        match guard {
            Guard { is_too_long: true, .. } => Self::TooLong,
            Guard { any: true, .. } => Self::Text(text),
            Guard { any: false, .. } => Self::Unchanged,
        }
    }
}

struct Guard<'a> {
    sql: &'a str,
    tokens: &'a [PlacedToken],
    any: bool,
    is_too_long: bool,
}

impl Guard<'_> {
    /// The text from byte `start` to byte `end`, with guards around its tokens.
    fn range(&mut self, from: usize, to: usize, start: usize, end: usize) -> String {
        let mut text = String::new();
        let mut copied = start;
        let mut index = from;

        while index < to && !self.is_too_long {
            match self.call(index, to) {
                Some((guarded, next)) => {
                    text.push_str(&self.sql[copied..self.tokens[index].start]);
                    text.push_str(&guarded);
                    copied = self.tokens[next - 1].end;
                    index = next;
                    self.any = true;
                }
                None => index += 1,
            }
            self.is_too_long |= text.len() > MAX_BYTES;
        }

        text.push_str(&self.sql[copied..end]);
        text
    }

    /// The guarded form of the call that begins at a token, and the index of the token after it.
    fn call(&mut self, index: usize, to: usize) -> Option<(String, usize)> {
        let Token::Word(word) = &self.tokens[index].token else { return None };
        let name = word.value.to_ascii_lowercase();
        if !matches!(&*name, "min" | "max" | "cast") {
            return None;
        }

        let is_open = self.tokens.get(index + 1)?.token == Token::LParen;
        let close = self.close(index + 1, to).filter(|_| is_open)?;
        if close == index + 2 || self.is_table(index, close) {
            return None;
        }

        match &*name {
            "cast" => self.cast(index, close),
            name => Some(self.extreme(name, index, close, to)),
        }
    }

    fn cast(&mut self, index: usize, close: usize) -> Option<(String, usize)> {
        let as_ = self.top_level(index + 2, close).find(|at| self.tokens[*at].is_word("as"))?;
        let kind = self.sql[self.tokens[as_].end..self.tokens[close].start].to_ascii_uppercase();
        if !is_numeric(&kind) {
            return None;
        }

        let start = self.tokens[index + 1].end;
        let end = self.tokens[as_].start;
        let inner = self.range(index + 2, as_, start, end);
        let rest = &self.sql[end..self.tokens[close].end];
        Some((format!("CAST(larder_castable({inner}) {rest}"), close + 1))
    }

    fn extreme(&mut self, name: &str, index: usize, close: usize, to: usize) -> (String, usize) {
        let is_scalar =
            self.top_level(index + 2, close).any(|at| self.tokens[at].token == Token::Comma);
        let after = if is_scalar { close + 1 } else { self.after_call(close + 1, to) };

        let start = self.tokens[index + 1].end;
        let end = self.tokens[after - 1].end;
        let inner = self.range(index + 2, after, start, end);
        if inner.len() > MAX_BYTES / 2 {
            self.is_too_long = true;
            return (String::new(), after);
        }

        let is_frame = (close + 1..after).any(|at| self.tokens[at].is_word("over"));
        let check = match (is_scalar, is_frame) {
            (true, _) => "larder_of",
            (false, true) => "larder_frame",
            (false, false) => "larder_group",
        };
        (format!("larder_{name}({name}({inner}, {check}_{name}({inner})"), after)
    }

    /// The index after FILTER and OVER, which belong to the call before them.
    fn after_call(&self, mut at: usize, to: usize) -> usize {
        let is_open = |at: usize| self.tokens.get(at).is_some_and(|p| p.token == Token::LParen);
        let is = |at: usize, name: &str| at < to && self.tokens[at].is_word(name);

        if is(at, "filter")
            && is_open(at + 1)
            && let Some(close) = self.close(at + 1, to)
        {
            at = close + 1;
        }
        if is(at, "over") && at + 1 < to {
            return match self.close(at + 1, to).filter(|_| is_open(at + 1)) {
                Some(close) => close + 1,
                None if matches!(self.tokens[at + 1].token, Token::Word(_)) => at + 2,
                None => at,
            };
        }
        at
    }

    /// Whether the name is that of a common table expression with columns: `max(x) AS (SELECT …)`.
    fn is_table(&self, index: usize, close: usize) -> bool {
        let after = |offset: usize| self.tokens.get(close + offset);
        let is_body = after(2).is_some_and(|piece| {
            piece.token == Token::LParen || piece.is_word("materialized") || piece.is_word("not")
        });
        index > 0 && is_body && after(1).is_some_and(|piece| piece.is_word("as"))
    }

    /// The index of the parenthesis that closes the one at an index.
    fn close(&self, open: usize, to: usize) -> Option<usize> {
        let mut depth = 0_usize;
        for at in open..to {
            match self.tokens[at].token {
                Token::LParen => depth += 1,
                Token::RParen => {
                    depth = depth.checked_sub(1)?;
                    if depth == 0 {
                        return Some(at);
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// The indexes of the tokens that stand in no parentheses.
    fn top_level(&self, from: usize, to: usize) -> impl Iterator<Item = usize> {
        let mut depth = 0_usize;
        (from..to).filter(move |at| {
            match self.tokens[*at].token {
                Token::LParen => depth += 1,
                Token::RParen => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0
        })
    }
}

/// Whether SQLite makes numbers for a type of this name.
fn is_numeric(kind: &str) -> bool {
    let has = |names: &[&str]| names.iter().any(|name| kind.contains(name));
    has(&["INT"]) || !(has(&["CHAR", "CLOB", "TEXT", "BLOB"]) || kind.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_get_guards_where_they_stand() {
        for (sql, expected) in [
            ("SELECT max(a) FROM t", "SELECT larder_max(max(a), larder_group_max(a)) FROM t"),
            (
                "SELECT MIN ( DISTINCT a )FILTER(WHERE b)OVER w, c FROM t",
                "SELECT larder_min(min( DISTINCT a )FILTER(WHERE b)OVER w, larder_frame_min( DISTINCT a )FILTER(WHERE b)OVER w), c FROM t",
            ),
            (
                "SELECT max(a, 'x, max(y)') -- max(z)\n FROM t",
                "SELECT larder_max(max(a, 'x, max(y)'), larder_of_max(a, 'x, max(y)')) -- max(z)\n FROM t",
            ),
            (
                "SELECT 'ä', cast(a || (b) as REAL)",
                "SELECT 'ä', CAST(larder_castable(a || (b) ) as REAL)",
            ),
            (
                "SELECT max(CAST(a AS int)) OVER (ORDER BY b)",
                "SELECT larder_max(max(CAST(larder_castable(a ) AS int)) OVER (ORDER BY b), larder_frame_max(CAST(larder_castable(a ) AS int)) OVER (ORDER BY b))",
            ),
        ] {
            assert_eq!(Guarded::new(sql), Guarded::Text(expected.into()), "{sql}");
        }

        for sql in [
            "SELECT a, \"max\" FROM t",
            "WITH max(x) AS (SELECT 1) SELECT x FROM max",
            "SELECT CAST(a AS TEXT), 'max(a)', max, min() FROM t",
            "SELECT 'unterminated",
            "SELECT max(a",
        ] {
            assert_eq!(Guarded::new(sql), Guarded::Unchanged, "{sql}");
        }
    }

    #[test]
    fn a_guarded_statement_is_bounded() {
        let nested = "max(".repeat(400) + "a" + &", 1)".repeat(400);
        assert_eq!(Guarded::new(&format!("SELECT {nested}")), Guarded::TooLong);
    }
}
