//! Names that are near to a name that does not exist, for messages that say what was meant.

use strsim::normalized_damerau_levenshtein;

/// The most names that a message suggests.
const MAX_NAMES: usize = 3;
/// The least similarity of a suggestion, where 1 is an equal name.
const LEAST: f64 = 0.6;
/// How much less similar than the nearest name a suggestion may be.
const MARGIN: f64 = 0.15;
/// The similarity of a longer name that has the name as a part.
const PART: f64 = 0.9;
/// The least characters of such a part.
const LEAST_PART: usize = 4;
/// The most characters of a name that are compared: the cost grows with their square.
const MAX_CHARS: usize = 200;

/// The candidates that are most like the name, best first: at most three, and none that is unlike
/// it or much less like it than the best. The part of a candidate behind a prefix of an upstream
/// (`crm__`, `crm+`) counts as well as the whole, and a name that is a part of a candidate is near.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let name = comparable(name);
    let mut near: Vec<(f64, &str)> = candidates
        .into_iter()
        .map(|candidate| (similarity(&name, candidate), candidate))
        .filter(|(similarity, _)| *similarity >= LEAST)
        .collect();

    // Equal candidates keep their order, so a message is the same each time.
    near.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    near.dedup_by_key(|(_, candidate)| *candidate);
    // Beside a very near name, others are only noise.
    let best = near.first().map_or(0.0, |(similarity, _)| *similarity);
    near.retain(|(similarity, _)| best - similarity <= MARGIN);
    near.into_iter().take(MAX_NAMES).map(|(_, candidate)| candidate).collect()
}

/// A sentence that suggests the nearest candidates, after a space; empty if none is near.
pub fn suggestion<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    let near: Vec<_> = nearest(name, candidates).into_iter().map(crate::quote::quoted).collect();
    match near.as_slice() {
        [] => String::new(),
        names => format!(" Did you mean {}?", names.join(", ")),
    }
}

fn similarity(name: &str, candidate: &str) -> f64 {
    let candidate = comparable(candidate);
    let whole = normalized_damerau_levenshtein(name, &candidate);
    let without_prefix = candidate.split_once("__").or_else(|| candidate.split_once('+'));
    let rest = without_prefix.map_or(0.0, |(_, rest)| normalized_damerau_levenshtein(name, rest));
    let is_part = name.chars().count() >= LEAST_PART && candidate.contains(name);
    let part = if is_part { PART } else { 0.0 };
    whole.max(rest).max(part)
}

fn comparable(name: &str) -> String {
    name.chars().take(MAX_CHARS).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_names_come_first_and_strange_ones_not_at_all() {
        let tools = ["crm__find_user", "crm__find_users", "delete_all", "find_user_by_mail"];
        assert_eq!(nearest("find_usr", tools), ["crm__find_user", "crm__find_users"]);
        assert_eq!(nearest("crm__find_usre", tools)[0], "crm__find_user");
        assert_eq!(nearest("FIND_USER", tools)[0], "crm__find_user");
        assert_eq!(nearest("weather", tools), [""; 0]);
        assert_eq!(nearest("", tools), [""; 0]);
        assert_eq!(nearest("x", []), [""; 0]);
        assert_eq!(nearest("listing", ["tools.listing", "lasting"]), ["tools.listing", "lasting"]);
        assert_eq!(
            nearest("serch_resource", ["read_resource", "search_resource", "search_resources"]),
            ["search_resource", "search_resources"]
        );
        assert_eq!(nearest("größe", ["groesse", "grösse", "Größe"])[0], "Größe");
    }

    #[test]
    fn a_suggestion_shows_foreign_names_safely() {
        assert_eq!(suggestion("naem", ["name"]), " Did you mean \"name\"?");
        assert_eq!(
            suggestion("na\u{202e}me", ["na\u{202e}me2"]),
            " Did you mean \"na\\u{202e}me2\"?"
        );
        assert_eq!(suggestion("other", ["name"]), "");

        let long = "x".repeat(100_000);
        assert!(suggestion(&long, [long.as_str()]).len() < 200);
    }
}
