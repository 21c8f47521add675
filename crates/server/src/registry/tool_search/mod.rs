//! Ranking of tools by words (Okapi BM25, with related words and the share of the name that is
//! found). A few lines of our own: the tools differ by caller, so there is no index to keep.

mod words;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use larder_oauth::Identity;
use larder_runtime::compute::{Busy, Compute};
use rmcp::model;
use serde_json::Value;

use self::words::{query_stems, related, stems};

const K1: f64 = 1.2;
/// How much longer documents count less: descriptions of tools differ in length more than in
/// subject.
const B: f64 = 0.4;
/// How much a related word counts.
const RELATED: f64 = 0.7;
/// How much the share of the query that is found counts, and the share of the name.
const QUERY_SHARE: f64 = 2.0;
const NAME_SHARE: f64 = 2.0;

/// How much a word counts in the name of a tool, in the name of its upstream, in its description
/// and in the name of a parameter.
const NAME_WEIGHT: f64 = 4.0;
const UPSTREAM_WEIGHT: f64 = 2.0;
const TEXT_WEIGHT: f64 = 1.0;
const PARAMETER_WEIGHT: f64 = 0.5;

/// A tool: how much each word counts, and the words of its name.
#[derive(Debug, Default)]
struct Document {
    words: HashMap<String, f64>,
    length: f64,
    name: HashSet<String>,
}

impl Document {
    fn of(listed: &model::Tool) -> Self {
        let mut document = Self::default();

        let (upstream, name) = listed.name.split_once("__").unwrap_or(("", &listed.name));
        document.add_name(upstream, UPSTREAM_WEIGHT);
        document.add_name(name, NAME_WEIGHT);
        document.add(listed.title.as_deref().unwrap_or_default(), NAME_WEIGHT);
        document.add(listed.description.as_deref().unwrap_or_default(), TEXT_WEIGHT);

        let parameters = listed.input_schema.get("properties").and_then(Value::as_object);
        for parameter in parameters.into_iter().flat_map(serde_json::Map::keys) {
            document.add(parameter, PARAMETER_WEIGHT);
        }
        document
    }

    /// Adds a part of the name, whose words count `weight` each.
    fn add_name(&mut self, text: &str, weight: f64) {
        self.name.extend(stems(text));
        self.add(text, weight);
    }

    /// Adds text whose words count `weight` each.
    fn add(&mut self, text: &str, weight: f64) {
        for word in stems(text) {
            *self.words.entry(word).or_default() += weight;
            self.length += weight;
        }
    }

    /// The share of the name that is in the query.
    fn name_share(&self, wanted: &HashSet<&str>, nearly: &HashSet<&str>) -> f64 {
        let found = self.name.iter().map(|word| match word.as_str() {
            word if wanted.contains(word) => 1.0,
            word if nearly.contains(word) => RELATED,
            _ => 0.0,
        });
        found.sum::<f64>() / real(self.name.len().max(1))
    }
}

/// The documents of one query.
struct Ranking<'a> {
    documents: &'a [Document],
    mean_length: f64,
    /// In how many documents each word is.
    having: HashMap<&'a str, usize>,
}

impl<'a> Ranking<'a> {
    fn new(documents: &'a [Document]) -> Self {
        let mut having = HashMap::new();
        for word in documents.iter().flat_map(|document| document.words.keys()) {
            *having.entry(word.as_str()).or_default() += 1;
        }

        let length: f64 = documents.iter().map(|document| document.length).sum();
        Self { documents, mean_length: length / real(documents.len().max(1)), having }
    }

    fn rarity(&self, word: &str) -> f64 {
        let count = real(self.documents.len());
        let having = real(self.having.get(word).copied().unwrap_or_default());
        (1.0 + (count - having + 0.5) / (having + 0.5)).ln()
    }

    /// How well a document has a word of the query, or one that is related to it.
    fn word_score(&self, document: &Document, wanted: &str) -> f64 {
        let rarity = self.rarity(wanted);
        let related = related(wanted).iter();
        // A related word that is rare says no more than the word that was asked for.
        let related = related.map(|word| (word.as_str(), RELATED * rarity.min(self.rarity(word))));

        let length = 1.0 - B + B * document.length / self.mean_length;
        let scores = related.chain([(wanted, rarity)]).filter_map(|(word, weight)| {
            let found = document.words.get(word)?;
            Some(weight * found * (K1 + 1.0) / (found + K1 * length))
        });
        scores.fold(0.0, f64::max)
    }
}

/// The indexes of the tools that have any word of the query, or a related one, the best first.
///
/// # Errors
/// Too much work of the caller, or of all, waits already.
pub(crate) async fn rank_tools(
    identity: &Identity,
    query: &str,
    tools: &Arc<Vec<model::Tool>>,
) -> Result<Vec<usize>, Busy> {
    let texts = tools.iter().filter_map(|tool| tool.description.as_deref());
    let bytes = texts.map(str::len).sum();

    let tools = Arc::clone(tools);
    let query = query.to_owned();
    let ranking = Compute::run(identity.owner().as_str(), bytes, move || {
        let documents: Vec<_> = tools.iter().map(Document::of).collect();
        rank(&query, &documents)
    });
    ranking.done().await
}

/// The indexes of the documents that have any word of the query, or a related one, the best first;
/// among equals, in their order.
fn rank(query: &str, documents: &[Document]) -> Vec<usize> {
    let ranking = Ranking::new(documents);
    let words = stems(query);
    let is_known = |word: &String| words.contains(word) || ranking.having.contains_key(&**word);
    let wanted: Vec<_> = query_stems(query).into_iter().filter(is_known).collect();

    let exactly: HashSet<_> = wanted.iter().map(String::as_str).collect();
    let nearly = wanted.iter().flat_map(|word| related(word));
    let nearly: HashSet<_> = nearly.map(String::as_str).collect();

    let scores: Vec<f64> = documents
        .iter()
        .map(|document| {
            let scores: Vec<_> =
                wanted.iter().map(|word| ranking.word_score(document, word)).collect();
            let found = scores.iter().filter(|score| **score > 0.0).count();

            let share = real(found) / real(wanted.len().max(1));
            let name_share = document.name_share(&exactly, &nearly);
            scores.iter().sum::<f64>()
                * (1.0 + QUERY_SHARE * share)
                * (1.0 + NAME_SHARE * name_share)
        })
        .collect();

    let mut ranked: Vec<_> = (0..documents.len()).filter(|index| scores[*index] > 0.0).collect();
    ranked.sort_by(|left, right| scores[*right].total_cmp(&scores[*left]));
    ranked
}

#[allow(clippy::cast_precision_loss, reason = "there are few documents and words")]
fn real(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_words_and_names_come_first() {
        let documents = [
            "read a file and other things of many kinds, one after another",
            "read_file",
            "write_file",
            "list tables",
        ]
        .map(|text| {
            let mut document = Document::default();
            document.add_name(text, 1.0);
            document
        });

        assert_eq!(rank("Read files", &documents)[..2], [1, 0]);
        assert_eq!(rank("table", &documents), [3]);
        assert_eq!(rank("save a document", &documents)[0], 2);
        assert!(rank("zebra", &documents).is_empty());
        assert!(rank("the", &documents).is_empty());
        assert!(rank("x", &[]).is_empty());
    }
}
