//! The part of a JSON value that a reference selects.

use larder_protocol::quote::{quoted, shortened};
use serde_json::Value;
use serde_json_path::JsonPath;

/// Selects the value at a JSON Pointer (`/rows/0/id`), or the matches of a JSONPath
/// (`$.rows[*].id`): one match as it is, several as an array.
///
/// A JSONPath consists of names, indexes, slices and wildcards, so no value matches
/// twice, and the matches are not larger than the whole.
///
/// # Errors
/// The fault of the expression, or that nothing matches.
pub(super) fn select(value: &Value, select: &str) -> Result<Value, String> {
    let shown = quoted(select);
    let nothing = || format!("\"select\" {shown} matches nothing in it.");

    if select.is_empty() || select.starts_with('/') {
        return value.pointer(select).cloned().ok_or_else(nothing);
    }

    if let Some(part) = costly_part(select) {
        return Err(format!(
            "\"select\" {shown} has {part}: use names, indexes, slices and [*], or store what you want with query_resource and \"into\" first."
        ));
    }

    let path = JsonPath::parse(select).map_err(|error| {
        let error = shortened(&error.to_string()).into_owned();
        format!("\"select\" {shown} is neither a JSON Pointer nor a JSONPath: {error}.")
    })?;

    let matches = path.query(value).all();
    match matches.as_slice() {
        [] => Err(nothing()),
        [one] => Ok((*one).clone()),
        several => Ok(Value::Array(several.iter().map(|value| (*value).clone()).collect())),
    }
}

/// A part by which a value could match many times, or be compared with all others.
fn costly_part(path: &str) -> Option<&'static str> {
    let mut quote = None;
    let mut characters = path.chars().peekable();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (Some(_), '\\') => {
                characters.next();
            }
            (Some(open), _) if open == character => quote = None,
            (None, '"' | '\'') => quote = Some(character),
            (None, '.') if characters.peek() == Some(&'.') => return Some("\"..\""),
            (None, ',') => return Some("a list of selectors"),
            (None, '?') => return Some("a filter"),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pointers_and_paths_select() {
        let value = json!({ "rows": [{ "id": 1 }, { "id": "b" }] });
        assert_eq!(select(&value, "/rows/1/id"), Ok(json!("b")));
        assert_eq!(select(&value, "$.rows[0].id"), Ok(json!(1)));
        assert_eq!(select(&value, "$.rows[*].id"), Ok(json!([1, "b"])));
        assert_eq!(select(&value, ""), Ok(value.clone()));

        let odd = json!({ "a,b..c?'": 2 });
        assert_eq!(select(&odd, r#"$["a,b..c?'"]"#), Ok(json!(2)));
        assert_eq!(select(&odd, r"$['a,b..c?\'']"), Ok(json!(2)));

        for costly in ["$..id", "$[*,*][*,*]", "$.rows[?@.id == 1]", "$['rows', 'x']"] {
            let refused = select(&value, costly).expect_err("it is not evaluated");
            assert!(refused.contains("query_resource"), "{refused}");
        }

        for bad in ["/rows/7", "$.none", "rows", "$["] {
            assert!(select(&value, bad).is_err(), "{bad}");
        }
    }
}
