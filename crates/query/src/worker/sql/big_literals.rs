//! Integers beyond 64 bits in a statement: SQLite would read them as rounded numbers.

use std::borrow::Cow;

use sqlparser::tokenizer::Token;

use super::tokens::{PlacedToken, pieces};

/// Words after which a minus sign belongs to the number that follows.
const BEFORE_SIGN: &str = " and or not between when then else select where in is by on having like \
    case limit values as return ";

/// The statement with each integer beyond 64 bits as a text, as the columns of such integers
/// have them. Texts, names and comments stay.
pub(super) fn as_texts(sql: &str) -> Cow<'_, str> {
    let Some(tokens) = pieces(sql) else { return sql.into() };
    let mut changed = String::new();
    let mut copied = 0;

    for (index, piece) in tokens.iter().enumerate() {
        let Some(digits) = big(piece) else { continue };
        let sign = index.checked_sub(1).map(|before| &tokens[before]);
        let sign = sign.filter(|sign| sign.token == Token::Minus);
        let operand = index.checked_sub(2).map(|before| &tokens[before]);
        let sign = sign.filter(|_| !operand.is_some_and(is_operand));

        // The least integer of 64 bits is written with a number that is too large.
        if sign.is_some() && digits.parse() == Ok(i64::MIN.unsigned_abs()) {
            continue;
        }
        let start = sign.map_or(piece.start, |sign| sign.start);
        let sign = if sign.is_some() { "-" } else { "" };
        changed.push_str(&sql[copied..start]);
        changed.push_str(&format!("'{sign}{digits}'"));
        copied = piece.end;
    }

    if copied == 0 {
        return sql.into();
    }
    changed.push_str(&sql[copied..]);
    changed.into()
}

/// The digits of an integer beyond 64 bits.
fn big(piece: &PlacedToken) -> Option<String> {
    let Token::Number(number, _) = &piece.token else { return None };
    let digits = number.replace('_', "");
    let is_integer = digits.bytes().all(|byte| byte.is_ascii_digit());
    (is_integer && digits.parse::<i64>().is_err()).then_some(digits)
}

/// Whether a minus sign after it subtracts.
fn is_operand(piece: &PlacedToken) -> bool {
    match &piece.token {
        Token::Word(word) if word.quote_style.is_none() => {
            !BEFORE_SIGN.split(' ').any(|keyword| keyword.eq_ignore_ascii_case(&word.value))
        }
        Token::Word(_)
        | Token::Number(..)
        | Token::SingleQuotedString(_)
        | Token::DoubleQuotedString(_)
        | Token::HexStringLiteral(_)
        | Token::RParen => true,
        _ => false,
    }
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
            ("id = 18_446_744_073_709_551_615", "id = '18446744073709551615'"),
            ("'ä' = id-- x\n+18446744073709551615", "'ä' = id-- x\n+'18446744073709551615'"),
            ("(a) -18446744073709551616", "(a) -'18446744073709551616'"),
            ("\"in\" -18446744073709551616", "\"in\" -'18446744073709551616'"),
            ("18446744073709551615", "'18446744073709551615'"),
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
