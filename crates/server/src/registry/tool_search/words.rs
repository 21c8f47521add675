//! The words of names, descriptions and queries: split, without endings and stop words; and which
//! words mean about the same where tools are named.
//!
//! The lists are of our own: stemmers and lists of stop words are made for prose, and do not know
//! that `createIssue` opens a ticket.

use std::{
    collections::{HashMap, HashSet},
    sync::LazyLock,
};

/// Words that say nothing about a task.
const STOP_WORDS: &str = "\
    a about across all am an and any are as at be been between by can could currently did do \
    does exist existing exists for from he her his how i if in inside into is it its let me my \
    need no not of on or our out over please shall she should so some than that the their them \
    then there these they this those to up us want was we what when where which who whom why \
    will with within would you your";

/// Words that stand for each other in the names of tools. A word may be in several groups.
const GROUPS: &[&str] = &[
    "create add new make insert open start post append write save",
    "delete remove drop erase forget cancel clear destroy uninstall",
    "update change edit modify patch set replace alter",
    "get read fetch show view retrieve describe display inspect",
    "list enumerate all",
    "find search look query locate lookup",
    "send post publish message",
    "run execute invoke exec call",
    "start launch begin trigger",
    "stop end terminate kill abort cancel",
    "move rename",
    "file document",
    "directory folder",
    "picture screenshot image photo",
    "browser page web website site url tab",
    "open navigate go visit goto",
    "crm hubspot salesforce customer contact account",
    "append add insert extend",
    "rollback rollout undo revert",
    "paragraph block text content",
    "commit push",
    "upload push attach",
    "several many multiple batch bulk",
    "count number total many",
    "login sign authenticate",
    "text markdown content",
    "translate convert",
    "download export",
    "email mail gmail inbox",
    "test check verify assert",
    "permission access share",
    "reply answer respond comment",
    "join merge combine union",
    "watch monitor track observe",
    "nearby near closest around",
    "javascript script code",
    "repository repo",
    "issue bug ticket",
    "user member person people contact",
    "event meeting appointment calendar",
    "schedule create",
    "message chat",
    "pod container",
    "log error output",
    "build pipeline ci job",
    "table row record column field",
    "database sql db",
    "route direction",
    "elevation height altitude",
    "comment note reply",
    "free busy availability",
    "flaky unreliable",
    "size count many number",
    "command shell process terminal",
    "fail failure failed",
    "remember store memory knowledge note",
    "measure performance speed fast slow trace audit time",
    "schedule plan event",
    "react reaction emoji thumb",
    "forget delete remove",
    "article paper",
    "pr pull",
];

static STOP: LazyLock<HashSet<&str>> = LazyLock::new(|| STOP_WORDS.split(' ').collect());

static RELATED: LazyLock<HashMap<String, Vec<String>>> = LazyLock::new(|| {
    let mut related: HashMap<String, Vec<String>> = HashMap::new();
    for group in GROUPS {
        let stems: Vec<_> = group.split(' ').map(stem).collect();
        for word in &stems {
            let others = stems.iter().filter(|other| *other != word).cloned();
            related.entry(word.clone()).or_default().extend(others);
        }
    }
    related
});

/// The stems of the words of a text that say something.
pub(super) fn stems(text: &str) -> Vec<String> {
    let words = split(text).into_iter().filter(|word| !STOP.contains(word.as_str()));
    words.map(|word| stem(&word)).collect()
}

/// The stems of a query: also of two words that names write as one, such as `roll back`.
pub(super) fn query_stems(text: &str) -> Vec<String> {
    let all = split(text);
    let pairs = all.windows(2).map(|pair| stem(&pair.concat()));

    let mut wanted = stems(text);
    wanted.extend(pairs);
    let mut seen = HashSet::new();
    wanted.retain(|stem| seen.insert(stem.clone()));
    wanted
}

/// The stems that mean about the same.
pub(super) fn related(stem: &str) -> &'static [String] {
    RELATED.get(stem).map_or(&[], Vec::as_slice)
}

/// The words of a text in lower case: `createIssues` has `create` and `issues`.
fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut is_lower = false;

    for char in text.chars() {
        if (!char.is_alphanumeric() || (is_lower && char.is_uppercase())) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if char.is_alphanumeric() {
            word.extend(char.to_lowercase());
        }
        is_lower = char.is_lowercase() || char.is_numeric();
    }

    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// A word without the endings of English: `issues`, `creating` and `creation` are as `issue` and
/// `create`.
fn stem(word: &str) -> String {
    if let Some(start) = word.strip_suffix("ies").filter(|start| start.len() > 1) {
        return format!("{start}y");
    }
    if word.len() > 4 && ["sses", "xes", "ches", "shes"].iter().any(|end| word.ends_with(end)) {
        return word[..word.len() - 2].to_owned();
    }

    let is_plural = word.len() > 3 && word.ends_with('s') && !word.ends_with("ss");
    let word = if is_plural { &word[..word.len() - 1] } else { word };

    let ends = ["ion", "ing", "ed"].into_iter();
    let start = ends.filter_map(|end| word.strip_suffix(end)).find(|start| start.len() >= 3);
    if let Some(start) = start {
        return without_last_e(undoubled(start)).to_owned();
    }
    if word.len() > 4 { without_last_e(word) } else { word }.to_owned()
}

fn without_last_e(word: &str) -> &str {
    word.strip_suffix('e').unwrap_or(word)
}

/// Without the second of two equal consonants at the end, as in `stopped`.
fn undoubled(start: &str) -> &str {
    let mut last = start.chars().rev();
    match (last.next(), last.next()) {
        (Some(last), Some(before))
            if last == before && last.is_ascii() && !"lsz".contains(last) =>
        {
            &start[..start.len() - 1]
        }
        _ => start,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_into_words() {
        for (text, expected) in [
            ("createIssues", &["create", "issues"][..]),
            ("git__diff_staged", &["git", "diff", "staged"]),
            ("HTTPServer v2 (class)", &["httpserver", "v2", "class"]),
            ("Ärger über alles", &["ärger", "über", "alles"]),
            ("--", &[]),
        ] {
            assert_eq!(split(text), expected, "{text}");
        }
    }

    #[test]
    fn forms_of_a_word_have_one_stem() {
        for forms in [
            &["create", "creates", "creating", "created", "creation"][..],
            &["issue", "issues"],
            &["stop", "stopped", "stopping", "stops"],
            &["query", "queries"],
            &["branch", "branches"],
            &["react", "reaction", "reactions"],
        ] {
            let stems: HashSet<_> = forms.iter().map(|form| stem(form)).collect();
            assert_eq!(stems.len(), 1, "{forms:?}: {stems:?}");
        }
        assert_eq!(["ring", "bed", "ion", "é", ""].map(stem), ["ring", "bed", "ion", "é", ""]);
    }

    #[test]
    fn a_query_has_its_words_and_pairs_of_them() {
        assert_eq!(
            query_stems("Roll back the deployment"),
            ["roll", "back", "deployment", "rollback", "backth", "thedeployment"]
        );
        assert!(related(&stem("folders")).contains(&stem("directory")));
        assert!(related("zebra").is_empty());
    }
}
