//! The texts that a regular expression requires: each match contains one of them.

use larder_store::store::RequiredText;
use regex_syntax::{
    ParserBuilder, escape,
    hir::{Class, Hir, HirKind},
};

use super::regex::Syntax;

/// Longer texts are cut off here: the first bytes of a text leave out most blocks.
const MAX_BYTES: usize = 64;
/// With more alternatives, few blocks would be left out.
const MAX_TEXTS: usize = 32;

/// The characters besides ASCII that match an ASCII letter where case is ignored. A filter of
/// blocks knows them.
const FOLDED_TO_ASCII: [char; 2] = ['\u{17F}', '\u{212A}'];

/// The text that each match of the query contains, if that is long enough to leave out blocks.
pub(super) fn required_text(query: &str, syntax: Syntax) -> Option<RequiredText> {
    let escaped = syntax.literal.then(|| escape(query));
    let mut parser = ParserBuilder::new();
    parser.utf8(false).multi_line(true).case_insensitive(syntax.ignore_case);
    let hir = parser.build().parse(escaped.as_deref().unwrap_or(query)).ok()?;

    match requirement(&hir) {
        Requirement::Exactly(text) => RequiredText::any_of([text]),
        Requirement::AnyOf(texts) => RequiredText::any_of(texts),
    }
}

/// The text that matches of an expression must contain. Letters are without case.
enum Requirement {
    /// Each match is this text.
    Exactly(Vec<u8>),
    /// Each match contains one of these texts. No texts: nothing is known.
    AnyOf(Vec<Vec<u8>>),
}

impl Requirement {
    const NONE: Self = Self::AnyOf(Vec::new());

    fn into_texts(self) -> Vec<Vec<u8>> {
        match self {
            Self::Exactly(text) => vec![text],
            Self::AnyOf(texts) => texts,
        }
    }
}

fn requirement(hir: &Hir) -> Requirement {
    match hir.kind() {
        // Assertions take no text: the texts before and after them are adjacent.
        HirKind::Empty | HirKind::Look(_) => Requirement::Exactly(Vec::new()),
        HirKind::Literal(literal) => Requirement::Exactly(literal.0.to_vec()),
        HirKind::Class(class) => match only_letter(class) {
            Some(byte) => Requirement::Exactly(vec![byte]),
            None => Requirement::NONE,
        },
        HirKind::Capture(capture) => requirement(&capture.sub),
        HirKind::Repetition(repetition) => {
            let min = usize::try_from(repetition.min).unwrap_or(usize::MAX);
            match requirement(&repetition.sub) {
                _ if min == 0 => Requirement::NONE,
                Requirement::Exactly(text) => {
                    let is_exact = repetition.max == Some(repetition.min)
                        && text.len().saturating_mul(min) <= MAX_BYTES;
                    let times = min.min(MAX_BYTES.div_ceil(text.len().max(1)));
                    let text = text.repeat(times);

                    if is_exact {
                        Requirement::Exactly(text)
                    } else {
                        Requirement::AnyOf(vec![text])
                    }
                }
                texts @ Requirement::AnyOf(_) => texts,
            }
        }
        HirKind::Concat(parts) => concatenation(parts),
        HirKind::Alternation(alternatives) => alternation(alternatives),
    }
}

/// A part that is certain to be in each match, the best one.
fn concatenation(parts: &[Hir]) -> Requirement {
    let mut best = Vec::new();
    let mut adjacent = Vec::new();
    let mut is_exact = true;

    for part in parts {
        match requirement(part) {
            Requirement::Exactly(text) => adjacent.extend(text),
            Requirement::AnyOf(texts) => {
                is_exact = false;
                best = better(best, vec![std::mem::take(&mut adjacent)]);
                best = better(best, texts);
            }
        }
    }

    if is_exact {
        return Requirement::Exactly(adjacent);
    }
    Requirement::AnyOf(better(best, vec![adjacent]))
}

/// The texts of all alternatives, if each has one.
fn alternation(alternatives: &[Hir]) -> Requirement {
    let mut all = Vec::new();
    for alternative in alternatives {
        let texts = requirement(alternative).into_texts();
        if texts.is_empty() || all.len() + texts.len() > MAX_TEXTS {
            return Requirement::NONE;
        }
        all.extend(texts);
    }
    Requirement::AnyOf(all)
}

/// Of two groups of texts the one that leaves out more: its shortest text is longer, or it
/// has fewer texts.
fn better(known: Vec<Vec<u8>>, other: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let shortest = |texts: &[Vec<u8>]| texts.iter().map(Vec::len).min().unwrap_or(0).min(16);
    let rank = |texts: &[Vec<u8>]| (shortest(texts), std::cmp::Reverse(texts.len()));
    if rank(&other) > rank(&known) { other } else { known }
}

/// The lower-case letter of a class that has only its cases, such as `[Ss]` and, as it is
/// with `(?i)s`, `[Ssſ]`; any other character if the class has only that.
fn only_letter(class: &Class) -> Option<u8> {
    let mut letters = Vec::new();

    match class {
        Class::Unicode(class) => {
            for range in class.ranges() {
                let start = u32::from(range.start());
                let end = u32::from(range.end());
                if start != end {
                    return None;
                }

                match u8::try_from(start) {
                    Ok(byte) if byte.is_ascii() => letters.push(byte),
                    _ if FOLDED_TO_ASCII.contains(&range.start()) => {}
                    _ => return None,
                }
            }
        }
        Class::Bytes(class) => {
            for range in class.ranges() {
                if range.start() != range.end() {
                    return None;
                }
                letters.push(range.start());
            }
        }
    }

    let first = letters.first()?.to_ascii_lowercase();
    letters.iter().all(|letter| letter.to_ascii_lowercase() == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn required(query: &str) -> Option<RequiredText> {
        required_text(query, Syntax::default())
    }

    fn any_of(texts: &[&str]) -> Option<RequiredText> {
        RequiredText::any_of(texts)
    }

    #[test]
    fn a_match_contains_the_longest_certain_text() {
        for (query, texts) in [
            ("timeout", &["timeout"][..]),
            ("^(time)(out)$", &["timeout"]),
            (r"\btimeout\b", &["timeout"]),
            (r"error.*time\s+out of disk", &["out of disk"]),
            ("timeout|out of disk", &["timeout", "out of disk"]),
            ("a (timeout|failure) of", &["timeout", "failure"]),
            ("a very (timeout|failure) of", &["a very "]),
            ("something (timeout|failure) of", &["something "]),
            ("(?i)Timeout", &["timeout"]),
            ("(?i)disks", &["disks"]),
            ("(?i-u)disks", &["disks"]),
            ("[Tt]imeout", &["timeout"]),
            ("x+timeouts?", &["timeout"]),
            ("(timeout)+", &["timeout"]),
            ("(abc){2}!", &["abcabc!"]),
            ("(abc){2,}!", &["abcabc"]),
            ("grün und", &["grün und"]),
            ("(?i)grün und", &["n und"]),
        ] {
            assert!(any_of(texts).is_some(), "{texts:?}");
            assert_eq!(required(query), any_of(texts), "{query}");
        }

        let literal = Syntax { ignore_case: true, literal: true, whole_word: true };
        assert_eq!(required_text("a.timeout(", literal), any_of(&["a.timeout("]));
    }

    #[test]
    fn other_queries_require_nothing() {
        for query in [
            "disk",
            "timeout|disk",
            "(timeout)?",
            "(timeout)*",
            "",
            "timeout|",
            "[a-z]+",
            "t.m.o.t",
            "(?i)größe",
            "[Tt1]ime",
            "(timeout",
            "a{5}|b",
        ] {
            assert_eq!(required(query), None, "{query}");
        }

        let words: Vec<_> = (0..=MAX_TEXTS).map(|n| format!("{n:03} word")).collect();
        assert!(required(&words[1..].join("|")).is_some());
        assert_eq!(required(&words.join(r"\b|")), None);
    }

    #[test]
    fn texts_stay_short() {
        let long = "timeout".repeat(100);
        assert_eq!(required(&long), any_of(&[&long[..MAX_BYTES]]));
        assert_eq!(required("(((a{9}){9}){9}){9}"), any_of(&["a".repeat(MAX_BYTES).as_str()]));
    }
}
