//! Integers beyond 64 bits in a statement: SQLite would read them as rounded numbers.

use std::borrow::Cow;

/// Words after which a minus sign belongs to the number that follows.
const BEFORE_SIGN: &str = " and or not between when then else select where in is by on having like \
    case limit values as return ";

/// The statement with each integer beyond 64 bits as a text, as the columns of such integers
/// have them. Texts, names and comments stay.
pub(super) fn as_texts(sql: &str) -> Cow<'_, str> {
    let mut changed = String::new();
    let mut copied = 0;
    let mut previous = Token { kind: Kind::Sign, start: 0, end: 0 };
    let mut before = previous;
    let mut at = 0;

    while let Some(token) = next(sql, at) {
        at = token.end;
        let text = &sql[token.start..token.end];
        if token.kind == Kind::Number && is_big(text) {
            let is_negative = previous.kind == Kind::Sign
                && &sql[previous.start..previous.end] == "-"
                && !before.is_operand(sql);

            // The least integer of 64 bits is written with a number that is too large.
            if !(is_negative && text.parse() == Ok(i64::MIN.unsigned_abs())) {
                let start = if is_negative { previous.start } else { token.start };
                let sign = if is_negative { "-" } else { "" };
                changed.push_str(&sql[copied..start]);
                changed.push_str(&format!("'{sign}{text}'"));
                copied = token.end;
            }
        }

        if token.kind != Kind::Blank {
            before = previous;
            previous = token;
        }
    }

    if copied == 0 {
        return sql.into();
    }
    changed.push_str(&sql[copied..]);
    changed.into()
}

fn is_big(number: &str) -> bool {
    number.bytes().all(|byte| byte.is_ascii_digit()) && number.parse::<i64>().is_err()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    /// A name or a keyword.
    Word,
    /// A text, or a name in quotes.
    Quoted,
    Sign,
    /// White space and comments.
    Blank,
}

#[derive(Debug, Clone, Copy)]
struct Token {
    kind: Kind,
    start: usize,
    end: usize,
}

impl Token {
    /// Whether a minus sign after it subtracts.
    fn is_operand(self, sql: &str) -> bool {
        let text = &sql[self.start..self.end];
        match self.kind {
            Kind::Number | Kind::Quoted => true,
            Kind::Word => !BEFORE_SIGN.split(' ').any(|word| word.eq_ignore_ascii_case(text)),
            Kind::Sign => text == ")",
            Kind::Blank => false,
        }
    }
}

/// The token that begins at an offset.
fn next(sql: &str, start: usize) -> Option<Token> {
    let rest = &sql[start..];
    let first = rest.chars().next()?;
    let until = |end: Option<usize>| end.unwrap_or(rest.len());
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$' || !c.is_ascii();

    let (kind, length) = match first {
        _ if rest.starts_with("--") => (Kind::Blank, until(rest.find('\n'))),
        _ if rest.starts_with("/*") => {
            (Kind::Blank, until(rest[2..].find("*/").map(|end| end + 4)))
        }
        '\'' | '"' | '`' => (Kind::Quoted, quoted_length(rest, first)),
        '[' => (Kind::Quoted, until(rest.find(']').map(|end| end + 1))),
        _ if first.is_ascii_digit() || is_fraction(rest) => {
            // A point, an exponent or a letter is a part of it, so that it is no integer.
            let is_part = |c: char| is_word(c) || c == '.';
            (Kind::Number, until(rest.find(|c| !is_part(c))))
        }
        _ if is_word(first) => (Kind::Word, until(rest.find(|c| !is_word(c)))),
        _ if first.is_whitespace() => (Kind::Blank, first.len_utf8()),
        _ => (Kind::Sign, first.len_utf8()),
    };
    Some(Token { kind, start, end: start + length })
}

fn is_fraction(rest: &str) -> bool {
    rest.strip_prefix('.').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// The length of a text or a name in quotes. A quote that is doubled begins the next token, which
/// is as good.
fn quoted_length(rest: &str, quote: char) -> usize {
    rest[1..].find(quote).map_or(rest.len(), |end| end + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_beyond_64_bits_become_texts_and_nothing_else_does() {
        for (sql, expected) in [
            ("id = 18446744073709551615", "id = '18446744073709551615'"),
            ("id IN (9223372036854775808,1)", "id IN ('9223372036854775808',1)"),
            ("id = -18446744073709551616", "id = '-18446744073709551616'"),
            ("id = -/* x */9223372036854775809", "id = '-9223372036854775809'"),
            ("a -18446744073709551616", "a -'18446744073709551616'"),
            ("WHERE -9223372036854775808 = id", "WHERE -9223372036854775808 = id"),
        ] {
            assert_eq!(as_texts(sql), expected);
        }

        for sql in [
            "id = 9223372036854775807",
            "id = 1844674407370955161.5 AND x > 1e30 AND y = .18446744073709551615",
            "id = '18446744073709551615' OR \"18446744073709551615\" = 1",
            "x 'it''s 18446744073709551615' -- 18446744073709551615",
            "/* 18446744073709551615 */ a18446744073709551615 [18446744073709551615]",
            "'open 18446744073709551615",
            "",
        ] {
            assert!(matches!(as_texts(sql), Cow::Borrowed(_)), "{sql}");
        }
    }
}
