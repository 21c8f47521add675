//! Changes of JSON: JSON Patch (RFC 6902) and JSON Merge Patch (RFC 7386).

mod layout;

use std::borrow::Cow;

use json_patch::{AddOperation, Patch, PatchOperation, jsonptr::Pointer};
use larder_protocol::{exact, json_size, quote::shortened};
use larder_records::words::number;
use serde_json::{Number, Value};

use self::layout::Document;
use super::text::too_large;
use crate::spill::{difference, has_unique_names};

/// The most operations of a patch.
const MAX_OPERATIONS: usize = 1_000;
/// The depth to which lists and objects are nested: deeper JSON cannot be read again.
const MAX_DEPTH: usize = 127;
/// Integers from here on are not kept by a number with a fraction.
const MAX_INTEGER: f64 = 9_007_199_254_740_992.0;

/// A change of JSON.
#[derive(Debug, Clone)]
pub(super) enum JsonChange {
    Patch(Value),
    Merge(Value),
}

/// A document after a change.
pub(super) struct Changed {
    pub(super) after: String,
    /// Whether the document is one line, in which a change does not show.
    is_one_line: bool,
    /// Whether what the change does not name is written as it was.
    keeps_layout: bool,
}

impl Changed {
    /// The changed lines; and that the layout has changed too, if it has.
    pub(super) fn difference(&self, before: &str, max_bytes: usize) -> String {
        let told = if self.is_one_line {
            let before = layout::with_line_breaks(before);
            difference(&before, &layout::with_line_breaks(&self.after), max_bytes)
        } else {
            difference(before, &self.after, max_bytes)
        };
        let told = told.into_text();
        if self.keeps_layout { told } else { format!("Its layout is written anew.\n{told}") }
    }
}

/// Changes a document, which is a list of values if it has one on each line. Nothing of it changes
/// but what the change names, or [`Changed::difference`] says so.
///
/// # Errors
/// The content is not JSON that a value keeps, or the change does not fit it.
pub(super) fn apply(
    text: &str,
    change: &JsonChange,
    has_lines: bool,
    max_bytes: u64,
) -> Result<Changed, String> {
    let Document { mut value, layout, keeps_layout } = Document::read(text, has_lines)?;
    if !exact::keeps_numbers(text.as_bytes()) {
        return Err("it has numbers that a patch would write in another way, such as 1.10 or integers beyond 64 bits: change its text by edits.".to_owned());
    }
    if !has_unique_names(text.trim_start_matches('\u{feff}')) {
        return Err("it has an object with a member that occurs twice, of which a patch would keep one: change its text by edits.".to_owned());
    }

    let (JsonChange::Patch(given) | JsonChange::Merge(given)) = change;
    if has_large_number(given) {
        return Err("the change has an integer beyond 64 bits, which would be rounded: change its text by edits.".to_owned());
    }

    let before = if keeps_layout { Cow::Borrowed(text) } else { Cow::Owned(layout.write(&value)) };
    let max_depth = MAX_DEPTH + usize::from(layout.has_lines());
    match change {
        JsonChange::Merge(patch) => merge(&mut value, patch),
        JsonChange::Patch(patch) => apply_patch(&mut value, patch, max_depth, max_bytes)?,
    }
    if is_deeper(&value, max_depth) {
        return Err(too_deep());
    }
    if layout.has_lines() && !value.is_array() {
        return Err("it is NDJSON, and has to stay a list of values.".to_owned());
    }

    let after = layout.write(&value);
    if after.len() as u64 > max_bytes {
        return Err(too_large(after.len() as u64, max_bytes));
    }
    if after == before {
        return Err("nothing of it would change.".to_owned());
    }
    Ok(Changed { after, is_one_line: layout.is_one_line(), keeps_layout })
}

/// Applies a JSON Patch. All that its operations add counts, also what later ones remove, so that
/// neither their memory nor their time grows with their number.
fn apply_patch(
    value: &mut Value,
    patch: &Value,
    max_depth: usize,
    max_bytes: u64,
) -> Result<(), String> {
    let patch: Patch = serde_json::from_value(patch.clone()).map_err(|error| {
        let error = error.to_string();
        format!(
            "json_patch is a list such as [{{\"op\": \"add\", \"path\": \"/items/-\", \"value\": 1}}] (RFC 6902): {}.",
            shortened(&error)
        )
    })?;
    if patch.len() > MAX_OPERATIONS {
        let most = number(MAX_OPERATIONS as u64);
        return Err(format!(
            "json_patch has at most {most} operations: give the rest in another call."
        ));
    }

    let mut added = 0u64;
    for (index, operation) in patch.0.into_iter().enumerate() {
        let path = operation.path().to_string();
        let placed = match &operation {
            PatchOperation::Add(add) => Some(&add.value),
            PatchOperation::Replace(replace) => Some(&replace.value),
            PatchOperation::Copy(copy) => value.pointer(copy.from.as_str()),
            PatchOperation::Move(from) => value.pointer(from.from.as_str()),
            PatchOperation::Remove(_) | PatchOperation::Test(_) => None,
        };

        if let Some(placed) = placed {
            let above = operation.path().tokens().count();
            if max_depth.checked_sub(above).is_none_or(|room| is_deeper(placed, room)) {
                return Err(format!("json_patch: operation {index}: {}", too_deep()));
            }
            if !matches!(operation, PatchOperation::Move(_)) {
                added = added.saturating_add(json_size(placed) as u64);
            }
            if added > max_bytes {
                let most = number(max_bytes);
                return Err(format!(
                    "json_patch: its operations add more than {most} bytes (limits.read_bytes)."
                ));
            }
        }

        apply_operation(value, operation).map_err(|problem| {
            format!(
                "json_patch: operation {index} at {}: {problem}. Nothing is changed.",
                shortened(&path)
            )
        })?;
    }
    Ok(())
}

/// Applies one operation. Where a member is removed, the others keep their order.
fn apply_operation(value: &mut Value, operation: PatchOperation) -> Result<(), String> {
    let operation = match operation {
        PatchOperation::Remove(removal) if remove_member(value, &removal.path).is_some() => {
            return Ok(());
        }
        PatchOperation::Move(moved) if !moved.path.starts_with(&moved.from) => {
            match remove_member(value, &moved.from) {
                Some(value) => PatchOperation::Add(AddOperation { path: moved.path, value }),
                None => PatchOperation::Move(moved),
            }
        }
        operation => operation,
    };
    json_patch::patch_unsafe(value, std::slice::from_ref(&operation))
        .map_err(|error| error.kind.to_string())
}

/// Takes a member out of an object.
fn remove_member(value: &mut Value, path: &Pointer) -> Option<Value> {
    let (parent, last) = path.split_back()?;
    let members = value.pointer_mut(parent.as_str())?.as_object_mut()?;
    members.shift_remove(last.decoded().as_ref())
}

/// Applies a JSON Merge Patch. Where a member is removed, the others keep their order.
fn merge(value: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *value = patch.clone();
        return;
    };
    if !value.is_object() {
        *value = Value::Object(serde_json::Map::new());
    }

    let Some(members) = value.as_object_mut() else { return };
    for (name, change) in changes {
        if change.is_null() {
            members.shift_remove(name);
        } else {
            merge(members.entry(name.as_str()).or_insert(Value::Null), change);
        }
    }
}

/// Whether lists and objects are nested to more than this depth.
fn is_deeper(value: &Value, depth: usize) -> bool {
    let Some(below) = depth.checked_sub(1) else {
        return value.is_array() || value.is_object();
    };
    match value {
        Value::Array(items) => items.iter().any(|item| is_deeper(item, below)),
        Value::Object(members) => members.values().any(|member| is_deeper(member, below)),
        _ => false,
    }
}

fn too_deep() -> String {
    format!(
        "lists and objects would be nested deeper than {MAX_DEPTH}, and could not be read again."
    )
}

/// Whether a value has a number that stands for an integer that it does not keep.
fn has_large_number(value: &Value) -> bool {
    match value {
        Value::Number(number) => is_rounded(number),
        Value::Array(items) => items.iter().any(has_large_number),
        Value::Object(members) => members.values().any(has_large_number),
        _ => false,
    }
}

fn is_rounded(number: &Number) -> bool {
    number.is_f64() && number.as_f64().is_some_and(|number| number.abs() >= MAX_INTEGER)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    fn applied(text: &str, change: &JsonChange) -> Result<Changed, String> {
        apply(text, change, false, 100_000)
    }

    #[test]
    fn documents_keep_their_layout() {
        let add = JsonChange::Patch(json!([{ "op": "add", "path": "/1", "value": { "id": 9 } }]));
        for (text, after) in [
            ("[{\"id\":1},{\"id\":2}]", "[{\"id\":1},{\"id\":9},{\"id\":2}]"),
            ("[{\"id\": 1}, {\"id\": 2}]\n", "[{\"id\": 1}, {\"id\": 9}, {\"id\": 2}]\n"),
            ("[\n{\"id\":1},\n{\"id\":2}\n]", "[\n{\"id\":1},\n{\"id\":9},\n{\"id\":2}\n]"),
            ("{\"id\":1}\n{\"id\":2}\n", "{\"id\":1}\n{\"id\":9}\n{\"id\":2}\n"),
            ("{\"id\": 1}\n{\"id\": 2}", "{\"id\": 1}\n{\"id\": 9}\n{\"id\": 2}"),
            ("[\n    1\n]\n", "[\n    1,\n    {\n        \"id\": 9\n    }\n]\n"),
            ("\u{feff}[\n\t1\n]", "\u{feff}[\n\t1,\n\t{\n\t\t\"id\": 9\n\t}\n]"),
        ] {
            let changed = applied(text, &add).unwrap();
            assert_eq!(changed.after, after, "{text}");
            let told = changed.difference(text, 1_000);
            assert!(told.starts_with("@@ ") && told.contains('9'), "{text}: {told}");
        }

        let merge = JsonChange::Merge(json!({ "a": null, "b": { "c": 2 } }));
        let changed = applied("{\"a\": 1, \"b\": {\"d\": 3}, \"e\": 4}", &merge).unwrap();
        assert_eq!(changed.after, "{\"b\": {\"d\": 3, \"c\": 2}, \"e\": 4}");
    }

    #[test]
    fn another_layout_is_told() {
        let merge = JsonChange::Merge(json!({ "a": 2 }));
        for text in [
            "{ \"a\": 1, \"b\": [1, 2] }",
            "{\n  \"a\": 1,\n  \"b\": [1, 2]\n}",
            "{\"a\":1,\"b\":\"\\u00e4\"}",
            "{\r\n  \"a\": 1\r\n}",
        ] {
            let changed = applied(text, &merge).unwrap();
            let value: Value = serde_json::from_str(&changed.after).unwrap();
            assert_eq!(value["a"], 2, "{text}");
            let told = changed.difference(text, 1_000);
            assert!(told.starts_with("Its layout is written anew.\n@@ "), "{text}: {told}");
        }
        // A change of the layout alone is none.
        let same = JsonChange::Merge(json!({ "a": 1 }));
        assert!(applied("{ \"a\": 1 }", &same).is_err());
    }

    #[test]
    fn members_keep_their_order() {
        let text = "{\"a\":1,\"b\":2,\"c\":3,\"d\":4}";
        for (patch, after) in [
            (json!([{ "op": "remove", "path": "/a" }]), "{\"b\":2,\"c\":3,\"d\":4}"),
            (
                json!([{ "op": "move", "from": "/b", "path": "/e" }]),
                "{\"a\":1,\"c\":3,\"d\":4,\"e\":2}",
            ),
        ] {
            assert_eq!(applied(text, &JsonChange::Patch(patch)).unwrap().after, after);
        }
    }

    #[test]
    fn one_record_of_ndjson_is_a_list() {
        let add = JsonChange::Patch(json!([{ "op": "add", "path": "/-", "value": { "id": 2 } }]));
        let changed = apply("{\"id\":1}\n", &add, true, 1_000).unwrap();
        assert_eq!(changed.after, "{\"id\":1}\n{\"id\":2}\n");
        let object = applied("{\"id\":1}\n", &add).unwrap();
        assert_eq!(object.after, "{\"id\":1,\"-\":{\"id\":2}}\n");
    }

    #[test]
    fn a_change_that_does_not_fit_is_an_error() {
        let twice = "{\"a\":1,\"a\":2}";
        for (text, change, said) in [
            ("[1]", json!([{ "op": "remove", "path": "/4" }]), "json_patch: operation 0 at /4: "),
            ("[1]", json!([{ "op": "test", "path": "/0", "value": 2 }]), "json_patch: "),
            ("[1]", json!([{ "op": "put", "path": "/0" }]), "is a list such as"),
            ("[1]", json!({ "op": "remove", "path": "/0" }), "is a list such as"),
            ("[1.10]", json!([]), "numbers that a patch would write"),
            (twice, json!([{ "op": "add", "path": "/b", "value": 1 }]), "occurs twice"),
            ("a,b\n1,2\n", json!([]), "it is not JSON"),
            ("1\n2\n", json!([{ "op": "replace", "path": "", "value": 1 }]), "it is NDJSON"),
            ("[1]", json!([{ "op": "add", "path": "/0", "value": 1.5e22 }]), "beyond 64 bits"),
        ] {
            let refused = applied(text, &JsonChange::Patch(change.clone()));
            let problem = refused.err().unwrap_or_else(|| panic!("{text} {change}"));
            assert!(problem.contains(said), "{change}: {problem}");
        }
    }

    #[test]
    fn a_patch_that_doubles_or_nests_without_end_is_refused() {
        let doubled = json!({ "op": "copy", "from": "", "path": "/x/-" });
        let nested = json!({ "op": "copy", "from": "", "path": "/x" });
        let times = |operation: &Value, n: usize| Value::Array(vec![operation.clone(); n]);
        let deep = "{\"a\":".repeat(100) + "1" + &"}".repeat(100);
        let deeper = json!([
            { "op": "add", "path": "/b", "value": { "a": 1 } },
            { "op": "copy", "from": "/a", "path": format!("{}/b", "/a".repeat(99)) },
        ]);
        let long = json!([{ "op": "add", "path": "/b", "value": "x".repeat(200_000) }]);
        let path = json!([{ "op": "add", "path": "/a".repeat(30_000), "value": 1 }]);

        for (text, change, said) in [
            ("{\"x\":[]}", times(&doubled, 20_000), "at most 1,000 operations"),
            ("{\"x\":[]}", times(&doubled, 60), "add more than 100,000 bytes"),
            ("{}", times(&nested, 200), "nested deeper than 127"),
            (&*deep, deeper, "nested deeper than 127"),
            ("{}", long, "add more than 100,000 bytes"),
            ("{}", path, "nested deeper than 127"),
        ] {
            let refused = applied(text, &JsonChange::Patch(change)).err().unwrap_or_default();
            assert!(refused.contains(said), "{said}: {refused}");
        }

        let merge = JsonChange::Merge(json!({ "b": "x".repeat(200_000) }));
        let refused = applied("{}", &merge).err().unwrap_or_default();
        assert!(refused.contains("limits.read_bytes"), "{refused}");
    }
}
