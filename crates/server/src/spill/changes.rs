//! The changes between two contents: of JSON by pointers, of other text by lines.

use json_patch::{AddOperation, PatchOperation, RemoveOperation, ReplaceOperation};
use larder_protocol::exact;
use serde_json::Value;

use super::{
    difference::{Difference, difference},
    excerpts::{beginning, excerpts},
    unique_names::has_unique_names,
};

/// The most bytes of the changes.
const MAX_BYTES: usize = 3_000;
/// The most bytes of a value.
const MAX_VALUE_BYTES: usize = 200;

/// The changes, if they take less than half of the content after them.
pub(super) fn changes(before: &str, after: &str) -> Option<String> {
    let limit = MAX_BYTES.min(after.len() / 2);
    let by_pointers = pointers(before, after).filter(|changes| changes.len() <= limit);

    by_pointers.or_else(|| {
        let Difference::Lines(lines) = difference(before, after, usize::MAX) else { return None };
        (!lines.is_empty() && lines.len() <= limit).then_some(lines)
    })
}

/// A line for each changed value: its JSON Pointer, and its value before and after. In their order,
/// as the operations of a JSON Patch. `None` where a value does not keep all of the text.
fn pointers(before: &str, after: &str) -> Option<String> {
    let container = |text: &str| {
        if !exact::keeps_numbers(text.as_bytes()) || !has_unique_names(text) {
            return None;
        }
        let value: Value = serde_json::from_str(text).ok()?;
        (value.is_object() || value.is_array()).then_some(value)
    };
    let before = container(before)?;
    let after = container(after)?;

    let mut text = String::new();
    let operations = json_patch::diff(&before, &after).0;
    // The items after a removed one have other indexes.
    let mut now = before;
    for operation in operations {
        let old = |path: &str| now.pointer(path).map_or_else(String::new, Value::to_string);
        let line = match &operation {
            PatchOperation::Add(AddOperation { path, value }) => {
                format!("+ {path}: {}\n", beginning(&value.to_string(), MAX_VALUE_BYTES))
            }
            PatchOperation::Remove(RemoveOperation { path }) => {
                format!("- {path}: {}\n", beginning(&old(path.as_str()), MAX_VALUE_BYTES))
            }
            PatchOperation::Replace(ReplaceOperation { path, value }) => {
                let old = old(path.as_str());
                let (old, new) = excerpts(&old, &value.to_string(), MAX_VALUE_BYTES);
                format!("{path}: {old} -> {new}\n")
            }
            _ => return None,
        };
        text += &line;
        if text.len() > MAX_BYTES {
            return None;
        }
        json_patch::patch_unsafe(&mut now, std::slice::from_ref(&operation)).ok()?;
    }
    (!text.is_empty()).then(|| text.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    #[test]
    fn few_changes_are_told_by_pointers_or_lines() {
        let rows =
            |n: u64| (0..n).map(|id| json!({ "id": id, "name": "a name" })).collect::<Vec<_>>();
        let before = json!({ "rows": rows(50), "total": 50 });
        let mut after = before.clone();
        after["rows"][7]["name"] = json!("another");
        assert_eq!(
            changes(&before.to_string(), &after.to_string()).as_deref(),
            Some("/rows/7/name: \"a name\" -> \"another\"")
        );
        after["more"] = json!(true);
        let told = changes(&before.to_string(), &after.to_string()).unwrap_or_default();
        assert!(told.contains("+ /more: true"), "{told}");

        let lines = (0..100).map(|n| format!("line {n}\n")).collect::<Vec<_>>().concat();
        let told = changes(&lines, &lines.replace("line 40\n", "row 40\n")).unwrap_or_default();
        assert!(told.contains("-line 40\n+row 40"), "{told}");

        assert_eq!(changes(&lines, &lines.replace("line", "row")), None);
        assert_eq!(changes("a\n", "b\n"), None);
    }

    #[test]
    fn where_more_is_changed_than_is_compared_nothing_is_told() {
        let lines =
            |word: &str| (0..120_000).map(|n| format!("{word} {n}\n")).collect::<Vec<_>>().concat();
        assert_eq!(changes(&lines("old"), &lines("new")), None);
    }

    #[test]
    fn long_values_are_shown_where_they_differ() {
        let value = |end: &str| json!({ "text": format!("{}{end}{}", "ä".repeat(500), "z".repeat(500)), "pad": "x".repeat(2_000) });
        let told = changes(&value("old").to_string(), &value("new").to_string()).unwrap();
        let (before, after) = told.split_once(" -> ").unwrap();
        assert!(before.contains("äoldz") && after.contains("änewz"), "{told}");
        assert!(before.starts_with("/text: …ä") && after.ends_with("z…"), "{told}");
        assert!(told.len() < 500, "{told}");
    }

    #[test]
    fn removed_items_are_told_with_the_values_that_they_had() {
        let before =
            json!({ "rows": ["first", "second", "third", "fourth"], "pad": "x".repeat(400) });
        let mut after = before.clone();
        after["rows"] = json!(["first"]);
        assert_eq!(
            changes(&before.to_string(), &after.to_string()).as_deref(),
            Some("- /rows/1: \"second\"\n- /rows/1: \"third\"\n- /rows/1: \"fourth\"")
        );
    }

    #[test]
    fn what_a_value_does_not_keep_is_told_by_lines_or_not_at_all() {
        let pad = "x".repeat(400);
        for (old, new) in [
            ("12345678901234567890123", "12345678901234567890124"),
            ("1.10", "1.100"),
            ("1, \"id\": 2", "3, \"id\": 2"),
        ] {
            let document = |id: &str| format!("{{\"pad\": \"{pad}\",\n\"id\": {id},\n\"n\": 1}}");
            let before = document(old);
            let after = document(new).replace("\"n\": 1", "\"n\": 2");
            let told = changes(&before, &after).unwrap_or_default();
            for line in [format!("-\"id\": {old}"), format!("+\"id\": {new}")] {
                assert!(told.contains(&line), "{line}: {told}");
            }
        }
    }
}
