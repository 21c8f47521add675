//! Words, what of them a resource has, and which resource has most.

use std::sync::Arc;

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;

use super::{
    pattern::{escape, matcher},
    scan::Report,
    wording::shown_of_line,
};
use crate::handler::ToolError;

/// How many words and phrases one query may have.
const MOST_TERMS: usize = 16;
/// How many lines of one resource are shown.
const SNIPPETS: usize = 3;
/// How much of each.
const SHOWN_OF_LINE: usize = 200;

/// Words and phrases to look for, in any case.
#[derive(Debug)]
pub(super) struct Query {
    pub(super) terms: Vec<String>,
    /// Finds any of them, for `search_resource`.
    pub(super) pattern: String,
    any: RegexMatcher,
    each: Vec<RegexMatcher>,
}

impl Query {
    /// # Errors
    /// When there is no word in it, or too many.
    pub(super) fn parse(text: &str) -> Result<Self, ToolError> {
        let terms = terms(text);
        if terms.is_empty() {
            return Err(ToolError::new(
                "query has no word in it: give one or more, \"in quotes\" for a phrase.",
            ));
        }
        if terms.len() > MOST_TERMS {
            return Err(ToolError::new(format!(
                "query has {} words; at most {MOST_TERMS} are looked for at once. Leave out the common ones.",
                terms.len()
            )));
        }
        let patterns: Vec<_> = terms.iter().map(|term| escape(term)).collect();
        let build = |pattern: &str| {
            matcher(pattern, true)
                .map_err(|error| ToolError::new(format!("query cannot be searched for: {error}")))
        };
        let any = build(&patterns.join("|"))?;
        let each = patterns.iter().map(|pattern| build(pattern)).collect::<Result<_, _>>()?;
        Ok(Self { pattern: format!("(?i){}", patterns.join("|")), terms, any, each })
    }

    pub(super) fn matcher(&self) -> RegexMatcher {
        self.any.clone()
    }

    /// Which of the terms stand in there, a bit each.
    pub(super) fn terms_in(&self, bytes: &[u8]) -> u32 {
        let has = |matcher: &RegexMatcher| matcher.is_match(bytes).unwrap_or(false);
        (0..).zip(&self.each).filter(|(_, matcher)| has(matcher)).map(|(at, _)| 1 << at).sum()
    }
}

/// The words of a text, and what stands in quotes as one.
fn terms(text: &str) -> Vec<String> {
    let mut terms: Vec<String> = Vec::new();
    for (at, part) in text.split('"').enumerate() {
        let found: Vec<&str> =
            if at % 2 == 1 { vec![part.trim()] } else { part.split_whitespace().collect() };
        for term in found {
            let term = term.split(['\n', '\r']).collect::<Vec<_>>().join(" ");
            if !term.is_empty() && !terms.iter().any(|known| known.eq_ignore_ascii_case(&term)) {
                terms.push(term);
            }
        }
    }
    terms
}

/// What of a query stands in one resource.
#[derive(Debug)]
pub(super) struct Hits {
    query: Arc<Query>,
    /// How many lines have any of the terms.
    pub(super) lines: u64,
    /// How many have each.
    by_term: Vec<u64>,
    /// Those with most of the terms, the first ones of them.
    pub(super) best: Vec<Snippet>,
}

#[derive(Debug)]
pub(super) struct Snippet {
    terms: u32,
    pub(super) line: u64,
    pub(super) text: String,
}

impl Hits {
    pub(super) fn new(query: Arc<Query>) -> Self {
        let by_term = vec![0; query.terms.len()];
        Self { query, lines: 0, by_term, best: Vec::new() }
    }

    /// Notes that the terms stand in its name or description: worth some lines.
    pub(super) fn note_name(&mut self, terms: u32) {
        for (at, count) in (0..).zip(&mut self.by_term) {
            *count += u64::from(terms >> at & 1) * 3;
        }
    }

    /// Which of the terms it has.
    pub(super) fn terms(&self) -> impl Iterator<Item = &str> {
        let has = self.query.terms.iter().zip(&self.by_term);
        has.filter(|(_, count)| **count > 0).map(|(term, _)| term.as_str())
    }
}

impl Report for Hits {
    fn matched(&mut self, line: u64, text: &[u8]) {
        self.lines += 1;
        let terms = if self.by_term.len() == 1 { 1 } else { self.query.terms_in(text) };
        for (at, count) in (0..).zip(&mut self.by_term) {
            *count += u64::from(terms >> at & 1);
        }
        let many = terms.count_ones();
        let is_better = self.best.last().is_none_or(|worst| many > worst.terms.count_ones());
        if self.best.len() < SNIPPETS || is_better {
            let at = self.query.any.find(text).ok().flatten().map_or(0, |m| m.start());
            let text = shown_of_line(text, at, SHOWN_OF_LINE);
            let place = self.best.partition_point(|known| known.terms.count_ones() >= many);
            self.best.insert(place, Snippet { terms, line, text });
            self.best.truncate(SNIPPETS);
        }
    }
}

/// Orders what was found: resources with more of the terms first, and among
/// those by BM25, where rare terms count for more, further lines for less, and
/// long resources for less than short ones. `searched` is how many there were,
/// `size` how large one is.
pub(super) fn rank<T>(found: &mut [(T, Hits)], searched: usize, size: impl Fn(&T) -> u64) {
    const SATURATION: f64 = 1.2;
    const BY_LENGTH: f64 = 0.75;
    let float = |n: u64| f64::from(u32::try_from(n).unwrap_or(u32::MAX));
    let Some(terms) = found.first().map(|(_, hits)| hits.by_term.len()) else { return };
    let having = |term: usize| found.iter().filter(|(_, hits)| hits.by_term[term] > 0).count();
    let rarity: Vec<f64> = (0..terms)
        .map(|term| {
            let (all, having) = (float(searched as u64), float(having(term) as u64));
            (1.0 + (all - having + 0.5).max(0.0) / (having + 0.5)).ln()
        })
        .collect();
    // In kilobytes, so that nothing overflows.
    let length = |of: &T| float(size(of) / 1024) + 1.0;
    let mean = found.iter().map(|(of, _)| length(of)).sum::<f64>() / float(found.len() as u64);
    let score = |(of, hits): &(T, Hits)| -> f64 {
        let long = SATURATION * (1.0 - BY_LENGTH + BY_LENGTH * length(of) / mean);
        let terms = hits.by_term.iter().zip(&rarity);
        terms.map(|(n, rarity)| rarity * float(*n) * (SATURATION + 1.0) / (float(*n) + long)).sum()
    };
    // What is equal stays in the order in which it came.
    found.sort_by(|a, b| {
        let many = |(_, hits): &(T, Hits)| hits.terms().count();
        many(b).cmp(&many(a)).then_with(|| score(b).total_cmp(&score(a)))
    });
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn quotes_hold_phrases_together() {
        for (text, expected) in [
            ("disk full", vec!["disk", "full"]),
            ("\"disk full\" error", vec!["disk full", "error"]),
            ("a \"b c", vec!["a", "b c"]),
            ("Disk disk DISK", vec!["Disk"]),
            ("  \"\" ", vec![]),
        ] {
            assert_eq!(terms(text), expected, "{text}");
        }
        assert!(Query::parse(" ").is_err());
        assert!(
            Query::parse(&(0..17).map(|n| n.to_string()).collect::<Vec<_>>().join(" ")).is_err()
        );
    }

    fn hits(query: &Arc<Query>, text: &str) -> Hits {
        let mut hits = Hits::new(Arc::clone(query));
        for (line, text) in (1..).zip(text.split_inclusive('\n')) {
            if query.matcher().is_match(text.as_bytes()).unwrap() {
                hits.matched(line, text.as_bytes());
            }
        }
        hits
    }

    #[test]
    fn lines_with_most_of_the_terms_are_shown_the_first_of_them_first() {
        let query = Arc::new(Query::parse("disk full").unwrap());
        let hits = hits(&query, "disk\nfull\nthe disk is FULL\nother\ndisk\nDisk full\n");
        assert_eq!((hits.lines, &hits.by_term[..]), (5, &[4, 3][..]));
        let shown: Vec<_> = hits.best.iter().map(|s| (s.line, s.text.as_str())).collect();
        assert_eq!(shown, [(3, "the disk is FULL"), (6, "Disk full"), (1, "disk")]);
    }

    #[test]
    fn more_terms_then_rarer_ones_then_shorter_texts_come_first() {
        let query = Arc::new(Query::parse("error timeout").unwrap());
        let long = "nothing\n".repeat(10_000) + "timeout\n";
        let often = "error\n".repeat(100);
        let texts = [&*often, "error", "timeout", &long, "a timeout is an error"];
        let mut found: Vec<_> = texts.iter().map(|text| (*text, hits(&query, text))).collect();
        rank(&mut found, 10, |text| text.len() as u64);
        let order: Vec<_> = found.iter().map(|(text, _)| &text[..text.len().min(7)]).collect();
        assert_eq!(order[0], "a timeo");
        let place = |text: &str| found.iter().position(|(t, _)| *t == text).unwrap();
        assert!(place("timeout") < place(&long), "{order:?}");
        assert!(place(&often) < place("error"), "{order:?}");
    }
}
