//! How much a search costs at worst, by the structure of its regular expression.

use regex_syntax::hir::{Class, Hir, HirKind};

/// The number of places of an expression in which a search can be at the same time: its characters
/// and classes, once for each repetition that is counted. The time of a search is at worst in
/// proportion to this number and to the length of the text.
pub(super) fn weight(hir: &Hir) -> u64 {
    // A literal, or one of several, is found in a time that does not depend on its length.
    if hir.properties().is_alternation_literal() {
        return 1;
    }

    places(hir).max(1)
}

fn places(hir: &Hir) -> u64 {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 0,
        HirKind::Literal(literal) => literal.0.len() as u64,
        HirKind::Class(Class::Bytes(_)) => 1,
        // A character of several bytes adds a few places.
        HirKind::Class(Class::Unicode(class)) => {
            if class.is_ascii() {
                1
            } else {
                4
            }
        }
        HirKind::Capture(capture) => places(&capture.sub),
        HirKind::Repetition(repetition) => {
            let times = repetition.max.unwrap_or(repetition.min.saturating_add(1));
            places(&repetition.sub).saturating_mul(times.max(1).into())
        }
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().map(places).fold(0, u64::saturating_add)
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{
        super::{Syntax, stoppable::parse},
        *,
    };

    #[test]
    fn counted_repetitions_weigh_most() {
        for (query, expected) in [
            ("needle", 1),
            ("one|other", 1),
            ("error: .*", 8),
            ("[ab]*a[ab]{20000}c", 20_003),
            ("([ab]{10}){20}", 200),
            ("a{0,50}b", 51),
            ("^$", 1),
        ] {
            let hir = parse(query, Syntax::default(), true).unwrap();
            let weight = weight(&hir);
            let is_near = weight.abs_diff(expected) <= 4;
            assert!(is_near, "{query}: {weight}");
        }
    }
}
