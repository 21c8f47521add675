//! Names that a mistyped one is near to.

/// How similar a name is at least, from 0 to 1.
const SIMILAR: f64 = 0.8;
/// How much less similar than the nearest name another one may be.
const MARGIN: f64 = 0.05;
/// The most names that are suggested.
const MAX: usize = 3;

/// The names that are near to `typed`, the nearest first.
pub(crate) fn nearest<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let typed = typed.to_lowercase();
    let scored = names.into_iter().filter_map(|name| {
        let lower = name.to_lowercase();
        // A part of a longer name is near, too.
        let is_part = typed.len() > 3 && lower.contains(&typed);
        let score = if is_part { 1.0 } else { strsim::jaro_winkler(&typed, &lower) };
        (score > SIMILAR).then_some((score, name))
    });

    let mut scored: Vec<_> = scored.collect();
    scored.sort_by(|(one, _), (other, _)| other.total_cmp(one));

    // Beside a very near name, others are only noise.
    let best = scored.first().map_or(0.0, |(score, _)| *score);
    scored.retain(|(score, _)| best - score < MARGIN);
    scored.into_iter().take(MAX).map(|(_, name)| name).collect()
}

/// A question about the names that are near; empty if there are none.
pub(crate) fn did_you_mean<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    asked(&nearest(typed, names))
}

/// A question about these names; empty without any.
pub(crate) fn asked<T: AsRef<str>>(names: &[T]) -> String {
    let names: Vec<_> = names.iter().map(AsRef::as_ref).collect();
    match names.as_slice() {
        [] => String::new(),
        [name] => format!(" Did you mean {name}?"),
        [names @ .., last] => format!(" Did you mean {} or {last}?", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_suggested_and_others_are_not() {
        let names = ["read_resource", "search_resource", "search_resources", "echo"];
        for (typed, told) in [
            ("serch_resource", " Did you mean search_resource or search_resources?"),
            ("ECHO", " Did you mean echo?"),
            ("eco", " Did you mean echo?"),
            ("delete", ""),
            ("", ""),
        ] {
            assert_eq!(did_you_mean(typed, names), told, "{typed}");
        }
    }
}
