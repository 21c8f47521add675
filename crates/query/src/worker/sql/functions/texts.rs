//! `lower`, `upper`, LIKE and the collation NOCASE for all letters of Unicode, of which SQLite's
//! own know ASCII only; `plain`, a text without terminal escapes.

use std::cmp::Ordering;

use larder_records::without_escapes;
use rusqlite::{Connection, Error, Result, functions::Context};

use super::{FLAGS, text, written};

/// The maximum length of a pattern in bytes: matching takes pattern times text.
const MAX_PATTERN: usize = 1_000;

pub(super) fn add(connection: &Connection) -> Result<()> {
    let lower = |ctx: &mut Context<'_>| Ok(text(ctx, 0).map(|text| text.to_lowercase()));
    connection.create_scalar_function("lower", 1, FLAGS, lower)?;
    let upper = |ctx: &mut Context<'_>| Ok(text(ctx, 0).map(|text| text.to_uppercase()));
    connection.create_scalar_function("upper", 1, FLAGS, upper)?;

    let plain =
        |ctx: &mut Context<'_>| Ok(text(ctx, 0).map(|text| without_escapes(&text).into_owned()));
    connection.create_scalar_function("plain", 1, FLAGS, plain)?;

    // `x LIKE y` calls like(y, x), with the character of ESCAPE as the third argument.
    connection.create_scalar_function("like", 2, FLAGS, |ctx| {
        let Some(subject) = text(ctx, 1) else { return Ok(None) };
        if text(ctx, 0).is_none() {
            return Ok(None);
        }

        let pattern = ctx.get_or_create_aux(0, |value| {
            Pattern::new(&written(value).unwrap_or_default(), None)
        })?;
        Ok(Some(pattern.matches(&subject)))
    })?;

    connection.create_scalar_function("like", 3, FLAGS, |ctx| {
        let (Some(pattern), Some(subject), Some(escape)) =
            (text(ctx, 0), text(ctx, 1), text(ctx, 2))
        else {
            return Ok(None);
        };

        let mut characters = escape.chars();
        let (Some(escape), None) = (characters.next(), characters.next()) else {
            let problem = "ESCAPE expression must be a single character";
            return Err(Error::UserFunctionError(problem.into()));
        };
        let pattern = Pattern::new(&pattern, Some(escape));
        let pattern = pattern.map_err(|problem| Error::UserFunctionError(problem.into()))?;
        Ok(Some(pattern.matches(&subject)))
    })?;

    connection.create_collation("NOCASE", compare)
}

/// A letter without its case: one character for one, so that `_` of LIKE stays one character.
fn fold(c: char) -> char {
    if c.is_ascii() {
        return c.to_ascii_lowercase();
    }

    // The way over the upper case makes σ and ς one letter.
    let only = |mut all: std::char::ToUppercase| all.next().filter(|_| all.next().is_none());
    let upper = only(c.to_uppercase()).unwrap_or(c);
    let mut lower = upper.to_lowercase();
    lower.next().filter(|_| lower.next().is_none()).unwrap_or(upper)
}

fn compare(a: &str, b: &str) -> Ordering {
    a.chars().map(fold).cmp(b.chars().map(fold))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PatternPart {
    /// `%`
    Any,
    /// `_`
    One,
    Letter(char),
}

/// A pattern of LIKE.
#[derive(Debug, Clone)]
struct Pattern(Vec<PatternPart>);

impl Pattern {
    fn new(text: &str, escape: Option<char>) -> std::result::Result<Self, String> {
        if text.len() > MAX_PATTERN {
            return Err("LIKE or GLOB pattern too complex".into());
        }

        let mut parts = Vec::new();
        let mut characters = text.chars();
        while let Some(c) = characters.next() {
            parts.push(match c {
                c if Some(c) == escape => match characters.next() {
                    Some(c) => PatternPart::Letter(fold(c)),
                    // A pattern that ends so matches nothing, as in SQLite.
                    None => PatternPart::Letter('\0'),
                },
                '%' => PatternPart::Any,
                '_' => PatternPart::One,
                c => PatternPart::Letter(fold(c)),
            });
        }
        Ok(Self(parts))
    }

    fn matches(&self, text: &str) -> bool {
        let mut rest = text.chars();
        let mut at = 0;
        // The positions to go on from if the text does not match after the last `%`.
        let mut retry = None;

        loop {
            let before = rest.clone();
            match (self.0.get(at), rest.next()) {
                (Some(PatternPart::Any), _) => {
                    at += 1;
                    rest = before;
                    retry = Some((at, rest.clone()));
                    continue;
                }
                (None, None) => return true,
                (Some(PatternPart::One), Some(_)) => {
                    at += 1;
                    continue;
                }
                (Some(PatternPart::Letter(letter)), Some(c)) if fold(c) == *letter => {
                    at += 1;
                    continue;
                }
                _ => {}
            }

            let Some((after, from)) = &mut retry else { return false };
            if from.next().is_none() {
                return false;
            }
            at = *after;
            rest = from.clone();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_match_in_either_case() {
        let matches = |text: &str, pattern: &str| {
            Pattern::new(pattern, None).is_ok_and(|pattern| pattern.matches(text))
        };
        for (text, pattern, expected) in [
            ("Ärger", "ä%", true),
            ("ΟΔΟΣ", "οδος", true),
            ("ΟΔΟΣ", "οδοσ", true),
            ("Ünïted", "%ÏT_D", true),
            ("日本", "__", true),
            ("日本", "_", false),
            ("abcabd", "%abd", true),
            ("abc", "%abd", false),
            ("", "%", true),
            ("", "_", false),
            ("İ", "_", true),
            ("straße", "STRAßE", true),
            ("straße", "strasse", false),
            ("aaaa", "%a%a%", true),
            ("MОСКВА", "mосква", true),
        ] {
            assert_eq!(matches(text, pattern), expected, "{text} {pattern}");
        }

        let escaped =
            Pattern::new("10\\%", Some('\\')).map(|p| (p.matches("10%"), p.matches("100")));
        assert_eq!(escaped, Ok((true, false)));
        assert_eq!(compare("ÄPFEL", "äpfel"), Ordering::Equal);
        assert_eq!(compare("a", "B"), Ordering::Less);
    }
}
