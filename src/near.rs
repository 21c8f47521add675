//! Questions to a person about the names that a mistyped one is near to.

use larder_protocol::near::nearest;

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
