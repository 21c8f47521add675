//! Ranking of short documents by words (Okapi BM25). A few lines of our own: the crates for it
//! bring stop words and stemmers of natural language, or hash words, while names such as
//! `createIssue` have to be split; and the documents differ by caller, so there is no index to keep.

use std::collections::HashMap;

const K1: f64 = 1.2;
const B: f64 = 0.75;

/// A document: how much each word counts.
#[derive(Debug, Default)]
pub(super) struct Document {
    words: HashMap<String, f64>,
    length: f64,
}

impl Document {
    /// Adds text whose words count `weight` each.
    pub(super) fn add(&mut self, text: &str, weight: f64) {
        for word in words(text) {
            *self.words.entry(word).or_default() += weight;
            self.length += weight;
        }
    }
}

/// The indexes of the documents that have any word of the query, the best first; among equals,
/// in their order.
#[allow(clippy::cast_precision_loss, reason = "there are few documents")]
pub(super) fn rank(query: &str, documents: &[Document]) -> Vec<usize> {
    let count = documents.len() as f64;
    let mean = documents.iter().map(|document| document.length).sum::<f64>() / count.max(1.0);

    let mut scores = vec![0.0; documents.len()];
    let mut wanted = words(query);
    wanted.sort();
    wanted.dedup();
    for word in wanted {
        let having = documents.iter().filter(|document| document.words.contains_key(&word));
        let having = having.count() as f64;
        let rarity = (1.0 + (count - having + 0.5) / (having + 0.5)).ln();

        for (score, document) in scores.iter_mut().zip(documents) {
            let Some(found) = document.words.get(&word) else { continue };
            let length = 1.0 - B + B * document.length / mean;
            *score += rarity * found * (K1 + 1.0) / (found + K1 * length);
        }
    }

    let mut ranked: Vec<_> = (0..documents.len()).filter(|index| scores[*index] > 0.0).collect();
    ranked.sort_by(|left, right| scores[*right].total_cmp(&scores[*left]));
    ranked
}

/// The words of a text in lower case: `createIssues` has `create` and `issue`.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut is_lower = false;

    for char in text.chars() {
        if (!char.is_alphanumeric() || (is_lower && char.is_uppercase())) && !word.is_empty() {
            words.push(singular(std::mem::take(&mut word)));
        }
        if char.is_alphanumeric() {
            word.extend(char.to_lowercase());
        }
        is_lower = char.is_lowercase();
    }

    if !word.is_empty() {
        words.push(singular(word));
    }
    words
}

/// Without the `s` of a plural.
fn singular(mut word: String) -> String {
    if word.len() > 3 && word.ends_with('s') && !word.ends_with("ss") {
        word.pop();
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_into_words() {
        for (text, expected) in [
            ("createIssues", &["create", "issue"][..]),
            ("git__diff_staged", &["git", "diff", "staged"]),
            ("HTTPServer v2 (class)", &["httpserver", "v2", "class"]),
            ("Ärger über alles", &["ärger", "über", "alle"]),
            ("--", &[]),
        ] {
            assert_eq!(words(text), expected, "{text}");
        }
    }

    #[test]
    fn rare_words_and_short_documents_come_first() {
        let documents = [
            "read a file and other things of many kinds, one after another",
            "read_file",
            "write_file",
            "list tables",
        ]
        .map(|text| {
            let mut document = Document::default();
            document.add(text, 1.0);
            document
        });

        assert_eq!(rank("Read files", &documents), [1, 0, 2]);
        assert_eq!(rank("table", &documents), [3]);
        assert!(rank("nothing", &documents).is_empty());
        assert!(rank("x", &[]).is_empty());
    }
}
