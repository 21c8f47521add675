//! Functions of regular expressions.

use std::{fmt::Write, sync::Arc};

use larder_protocol::quote::quoted;
use regex::{Captures, Regex};
use rusqlite::{Connection, Error, Result, functions::Context, types::ValueRef};

use super::{FLAGS, text};
use crate::worker::decode::regex_problem;

pub(super) fn add(connection: &Connection) -> Result<()> {
    // `x REGEXP y` calls regexp(y, x).
    connection.create_scalar_function("regexp", 2, FLAGS, |ctx| {
        let Some(regex) = regex(ctx, 0)? else { return Ok(None) };
        Ok(text(ctx, 1).map(|text| regex.is_match(&text)))
    })?;

    connection.create_scalar_function("regexp_extract", 2, FLAGS, extract)?;
    connection.create_scalar_function("regexp_extract", 3, FLAGS, extract)?;

    connection.create_scalar_function("regexp_replace", 3, FLAGS, |ctx| {
        let Some(regex) = regex(ctx, 1)? else { return Ok(None) };
        let (Some(text), Some(by)) = (text(ctx, 0), text(ctx, 2)) else { return Ok(None) };
        let by = Template::new(&by, &regex)?;
        Ok(Some(regex.replace_all(&text, |found: &Captures<'_>| by.fill(found)).into_owned()))
    })
}

fn extract(ctx: &mut Context<'_>) -> Result<Option<String>> {
    let Some(regex) = regex(ctx, 1)? else { return Ok(None) };
    let group = match ctx.len() {
        2 => usize::from(regex.captures_len() > 1),
        _ => match ctx.get_raw(2) {
            ValueRef::Null => return Ok(None),
            _ => named_group(&text(ctx, 2).unwrap_or_default(), &regex)?,
        },
    };

    let Some(text) = text(ctx, 0) else { return Ok(None) };
    let found = regex.captures(&text).and_then(|found| found.get(group));
    Ok(found.map(|found| found.as_str().to_owned()))
}

/// The regular expression of an argument, which is compiled once for a statement; `None` for null.
fn regex(ctx: &Context<'_>, index: usize) -> Result<Option<Arc<Regex>>> {
    if ctx.get_raw(index) == ValueRef::Null {
        return Ok(None);
    }

    let argument = i32::try_from(index).unwrap_or_default();
    let regex = ctx.get_or_create_aux(argument, |pattern| {
        let pattern = pattern.as_str().map_err(|_| "a regular expression must be text".to_owned());
        pattern.and_then(|pattern| {
            Regex::new(pattern)
                .map_err(|error| format!("invalid regular expression: {}", regex_problem(&error)))
        })
    })?;
    Ok(Some(regex))
}

/// The group of a name or a number.
fn named_group(name: &str, regex: &Regex) -> Result<usize> {
    let number = name.parse().ok().filter(|number| *number < regex.captures_len());
    let named = || regex.capture_names().position(|other| other == Some(name));
    number.or_else(named).ok_or_else(|| no_group(name, regex))
}

fn no_group(name: &str, regex: &Regex) -> Error {
    let groups = match regex.captures_len() {
        1 => "it has no groups; put parentheses around what you want".to_owned(),
        2 => "it has group 1".to_owned(),
        more => format!("it has groups 1 to {}", more - 1),
    };
    let names: Vec<_> = regex.capture_names().flatten().map(quoted).collect();
    let names = if names.is_empty() { String::new() } else { format!(", {}", names.join(", ")) };

    let problem = format!("the regular expression has no group {}: {groups}{names}", quoted(name));
    Error::UserFunctionError(problem.into())
}

/// A replacement: texts and groups.
struct Template(Vec<ReplacementPiece>);

enum ReplacementPiece {
    Text(String),
    Group(usize),
}

impl Template {
    /// Reads `$1`, `${1}`, `$name`, `${name}`, `\1` and `\g<name>` as groups, `$$` and `\\` as
    /// one character. After `$` the longest name or number of a group counts, so `$2_$1` has two.
    fn new(by: &str, regex: &Regex) -> Result<Self> {
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut rest = by;

        while let Some(at) = rest.find(['$', '\\']) {
            literal.push_str(&rest[..at]);
            let mark = rest.as_bytes()[at];
            let after = &rest[at + 1..];

            let (group, length) = match group(mark, after, regex)? {
                Reference::Group(group, length) => (group, length),
                Reference::Character(c, length) => {
                    literal.push(c);
                    rest = &after[length..];
                    continue;
                }
            };
            pieces.push(ReplacementPiece::Text(std::mem::take(&mut literal)));
            pieces.push(ReplacementPiece::Group(group));
            rest = &after[length..];
        }

        literal.push_str(rest);
        pieces.push(ReplacementPiece::Text(literal));
        Ok(Self(pieces))
    }

    fn fill(&self, found: &Captures<'_>) -> String {
        self.0.iter().fold(String::new(), |mut text, piece| {
            let piece = match piece {
                ReplacementPiece::Text(literal) => literal,
                ReplacementPiece::Group(group) => {
                    found.get(*group).map_or("", |found| found.as_str())
                }
            };
            // Writing to a string cannot fail.
            let _ = text.write_str(piece);
            text
        })
    }
}

/// The group of a mark, with the number of bytes after the mark that belong to it.
enum Reference {
    Group(usize, usize),
    Character(char, usize),
}

fn group(mark: u8, after: &str, regex: &Regex) -> Result<Reference> {
    let (open, close) = if mark == b'$' { ("{", '}') } else { ("g<", '>') };
    if let Some(inner) = after.strip_prefix(open)
        && let Some(end) = inner.find(close)
    {
        let group = named_group(&inner[..end], regex)?;
        return Ok(Reference::Group(group, open.len() + end + 1));
    }

    match after.chars().next() {
        Some('$') if mark == b'$' => Ok(Reference::Character('$', 1)),
        Some('&') if mark == b'$' => Ok(Reference::Group(0, 1)),
        Some('\\') if mark == b'\\' => Ok(Reference::Character('\\', 1)),
        Some(c) if c.is_ascii_digit() => longest(
            after,
            |c| c.is_ascii_digit(),
            regex,
            |name| name.parse().ok().filter(|number| *number < regex.captures_len()),
        ),
        Some(c) if mark == b'$' && (c.is_alphabetic() || c == '_') => longest(
            after,
            |c| c.is_alphanumeric() || c == '_',
            regex,
            |name| regex.capture_names().position(|other| other == Some(name)),
        ),
        _ => Ok(Reference::Character(char::from(mark), 0)),
    }
}

/// The group with the longest name at the start of a text.
fn longest(
    after: &str,
    is_part: impl Fn(char) -> bool,
    regex: &Regex,
    find: impl Fn(&str) -> Option<usize>,
) -> Result<Reference> {
    let name = &after[..after.find(|c| !is_part(c)).unwrap_or(after.len())];
    let ends = name.char_indices().map(|(at, c)| at + c.len_utf8());
    let found = ends.rev().find_map(|end| Some((find(&name[..end])?, end)));

    let (group, length) = found.ok_or_else(|| {
        let Error::UserFunctionError(problem) = no_group(name, regex) else {
            return Error::InvalidQuery;
        };
        Error::UserFunctionError(format!("{problem}; write $$ for a dollar sign").into())
    })?;
    Ok(Reference::Group(group, length))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn replaced(text: &str, pattern: &str, by: &str) -> std::result::Result<String, String> {
        let regex = Regex::new(pattern).unwrap();
        let by = Template::new(by, &regex).map_err(|error| error.to_string())?;
        Ok(regex.replace_all(text, |found: &Captures<'_>| by.fill(found)).into_owned())
    }

    #[test]
    fn a_replacement_has_its_groups() {
        let pattern = r"(?P<year>\d+)-(?P<month>\d+)";
        for (by, expected) in [
            ("$2_$1", "12_2025"),
            ("${2}x${1}", "12x2025"),
            (r"\2.\1", "12.2025"),
            ("$month/$year", "12/2025"),
            ("$month_$year", "12_2025"),
            ("${year}", "2025"),
            (r"\g<month>", "12"),
            ("$10", "20250"),
            ("$0!", "2025-12!"),
            ("$&!", "2025-12!"),
            ("$$1", "$1"),
            ("5 $ ", "5 $ "),
            (r"\\1", r"\1"),
            (r"a\nb", r"a\nb"),
            ("", ""),
        ] {
            assert_eq!(replaced("2025-12", pattern, by).as_deref(), Ok(expected), "{by}");
        }
    }

    #[test]
    fn a_group_that_is_missing_is_an_error() {
        for by in ["$3", r"\3", "$day", "${day}", "${3}", r"\g<day>", "$9.00"] {
            let problem = replaced("2025-12", r"(?P<year>\d+)-(\d+)", by).unwrap_err();
            assert!(problem.contains("no group"), "{by}: {problem}");
            assert!(problem.contains("it has groups 1 to 2, \"year\""), "{by}: {problem}");
        }
        assert!(replaced("a", "a", "$1").unwrap_err().contains("it has no groups"));
    }
}
