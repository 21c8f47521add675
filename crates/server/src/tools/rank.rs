//! Queries of words, their matches in a resource, and the ranking of resources.

use std::sync::Arc;

use larder_runtime::compute::Stop;
use larder_store::store::RequiredText;

use super::{
    regex::{SharedMatcher, Syntax, escape, matcher},
    required_text::required_text,
    scan::{LinePart, LineSink},
    wording::line_excerpt,
};
use crate::handler::ToolError;

/// The most words and phrases in a query.
const MAX_TERMS: usize = 16;
/// The most lines of one resource in a result.
const MAX_SNIPPETS: usize = 3;
/// The most bytes of each.
const LINE_BYTES: usize = 200;

/// Words and phrases to search for, ignoring case.
#[derive(Debug)]
pub(super) struct Query {
    pub(super) terms: Vec<String>,
    /// A regular expression that matches any of them, for `search_resource`.
    pub(super) pattern: String,
    any: SharedMatcher,
    /// The text that each line with a term contains.
    pub(super) required: Option<RequiredText>,
    each: Vec<SharedMatcher>,
}

impl Query {
    /// # Errors
    /// When the text has no word, or too many.
    pub(super) fn parse(text: &str) -> Result<Self, ToolError> {
        let terms = terms(text);
        if terms.is_empty() {
            return Err(ToolError::new(
                "query has no words: give one or more, with a phrase \"in quotes\".",
            ));
        }
        if terms.len() > MAX_TERMS {
            return Err(ToolError::new(format!(
                "query has {} words; at most {MAX_TERMS} are allowed. Leave out the common ones.",
                terms.len()
            )));
        }

        let patterns: Vec<_> = terms.iter().map(|term| escape(term)).collect();
        let syntax = Syntax { ignore_case: true, ..Syntax::default() };
        let build = |pattern: &str| {
            matcher(pattern, syntax)
                .map_err(|error| ToolError::new(format!("query cannot be searched for: {error}")))
        };

        let any = build(&patterns.join("|"))?;
        let required = required_text(&patterns.join("|"), syntax);
        let each = patterns.iter().map(|pattern| build(pattern)).collect::<Result<_, _>>()?;

        Ok(Self { pattern: format!("(?i){}", patterns.join("|")), terms, any, required, each })
    }

    pub(super) fn matcher(&self) -> SharedMatcher {
        Arc::clone(&self.any)
    }

    /// The terms in a text, as a bit mask; once `stop` is set, some of them.
    pub(super) fn terms_in(&self, bytes: &[u8], stop: &Stop) -> u32 {
        let has = |matcher: &SharedMatcher| matcher.find_at(bytes, 0, stop).is_some();
        (0..).zip(&self.each).filter(|(_, matcher)| has(matcher)).map(|(index, _)| 1 << index).sum()
    }
}

/// The words of a text; a phrase in quotes is one term. Repetitions are left
/// out.
fn terms(text: &str) -> Vec<String> {
    let mut terms: Vec<String> = Vec::new();
    for (index, part) in text.split('"').enumerate() {
        let part_terms: Vec<&str> =
            if index % 2 == 1 { vec![part.trim()] } else { part.split_whitespace().collect() };
        for term in part_terms {
            let term = term.split(['\n', '\r']).collect::<Vec<_>>().join(" ");
            if !term.is_empty() && !terms.iter().any(|known| known.eq_ignore_ascii_case(&term)) {
                terms.push(term);
            }
        }
    }
    terms
}

/// The matches of a query in one resource.
#[derive(Debug)]
pub(super) struct Hits {
    query: Arc<Query>,
    /// The number of lines that have any term.
    pub(super) lines: u64,
    /// The number of lines that have each term.
    by_term: Vec<u64>,
    /// The last line, and the terms in it so far.
    last: (u64, u32),
    /// The lines that have the most terms; among equals, the first ones.
    pub(super) best: Vec<Snippet>,
}

/// A matching line.
#[derive(Debug)]
pub(super) struct Snippet {
    /// The terms in it, as a bit mask.
    terms: u32,
    pub(super) line: u64,
    pub(super) text: String,
    /// The number of lines with a term up to this one.
    pub(super) rank: u64,
    /// Whether the line is searched in pieces, of which this is one.
    pub(super) is_piece: bool,
}

impl Hits {
    pub(super) fn new(query: Arc<Query>) -> Self {
        let by_term = vec![0; query.terms.len()];
        Self { query, lines: 0, by_term, last: (0, 0), best: Vec::new() }
    }

    /// Counts the terms in the resource's name or description, each as three
    /// lines.
    pub(super) fn add_metadata(&mut self, terms: u32) {
        for (index, count) in (0..).zip(&mut self.by_term) {
            *count += u64::from(terms >> index & 1) * 3;
        }
    }

    /// The terms that the resource has.
    pub(super) fn terms(&self) -> impl Iterator<Item = &str> {
        let has = self.query.terms.iter().zip(&self.by_term);
        has.filter(|(_, count)| **count > 0).map(|(term, _)| term.as_str())
    }
}

impl LineSink for Hits {
    fn matched(&mut self, part: &LinePart<'_>) {
        let line = part.line;
        let text = part.text;
        let terms = if self.by_term.len() == 1 { 1 } else { self.query.terms_in(text, part.stop) };

        // A long line comes in parts.
        let known = if self.last.0 == line { self.last.1 } else { 0 };
        self.lines += u64::from(self.last.0 != line);
        self.last = (line, known | terms);
        for (index, count) in (0..).zip(&mut self.by_term) {
            *count += u64::from((terms & !known) >> index & 1);
        }

        let term_count = terms.count_ones();
        let is_better = self.best.last().is_none_or(|worst| term_count > worst.terms.count_ones());

        if self.best.len() < MAX_SNIPPETS || is_better {
            let offset = part.matches().next().map_or(0, |found| found.start);
            let text = line_excerpt(text, offset, LINE_BYTES);
            let index = self.best.partition_point(|known| known.terms.count_ones() >= term_count);
            let rank = self.lines;
            let is_piece = part.is_piece;
            self.best.insert(index, Snippet { terms, line, text, rank, is_piece });
            self.best.truncate(MAX_SNIPPETS);
        }
    }
}

/// Sorts resources by the number of terms they have, and then by BM25: rare
/// terms weigh more, further lines of the same term less, and long resources
/// less than short ones. `searched` is the number of resources searched, `size`
/// returns the bytes of one.
pub(super) fn rank<T>(found: &mut [(T, Hits)], searched: usize, size: impl Fn(&T) -> u64) {
    const SATURATION: f64 = 1.2;
    const LENGTH_WEIGHT: f64 = 0.75;

    let float = |n: u64| f64::from(u32::try_from(n).unwrap_or(u32::MAX));
    let Some(terms) = found.first().map(|(_, hits)| hits.by_term.len()) else { return };

    let having = |term: usize| found.iter().filter(|(_, hits)| hits.by_term[term] > 0).count();
    let rarity: Vec<f64> = (0..terms)
        .map(|term| {
            let all = float(searched as u64);
            let having = float(having(term) as u64);
            (1.0 + (all - having + 0.5).max(0.0) / (having + 0.5)).ln()
        })
        .collect();

    // Lengths are in kilobytes, to fit 32 bits.
    let length = |resource: &T| float(size(resource) / 1024) + 1.0;
    let mean =
        found.iter().map(|(resource, _)| length(resource)).sum::<f64>() / float(found.len() as u64);

    let score = |(resource, hits): &(T, Hits)| -> f64 {
        let length_factor =
            SATURATION * (1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * length(resource) / mean);
        let terms = hits.by_term.iter().zip(&rarity);
        terms
            .map(|(n, rarity)| {
                rarity * float(*n) * (SATURATION + 1.0) / (float(*n) + length_factor)
            })
            .sum()
    };

    // The sort is stable: equal resources keep their order.
    found.sort_by(|a, b| {
        let term_count = |(_, hits): &(T, Hits)| hits.terms().count();
        term_count(b).cmp(&term_count(a)).then_with(|| score(b).total_cmp(&score(a)))
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
            if query.matcher().find_at(text.as_bytes(), 0, &Stop::default()).is_some() {
                hits.matched(&LinePart::whole(
                    &query.any,
                    line,
                    0,
                    text.as_bytes(),
                    &Stop::default(),
                ));
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
        let position = |text: &str| found.iter().position(|(t, _)| *t == text).unwrap();
        assert!(position("timeout") < position(&long), "{order:?}");
        assert!(position(&often) < position("error"), "{order:?}");
    }
}
