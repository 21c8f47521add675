//! Changes of JSON: JSON Patch (RFC 6902) and JSON Merge Patch (RFC 7386).

use json_patch::Patch;
use larder_protocol::{exact, quote::shortened};
use larder_records::record_lines;
use serde::Serialize;
use serde_json::{Value, ser::PrettyFormatter};

/// A change of JSON.
#[derive(Debug, Clone)]
pub(super) enum JsonChange {
    Patch(Value),
    Merge(Value),
}

/// A document before and after a change, both in the same layout.
pub(super) struct Changed {
    pub(super) before: String,
    pub(super) after: String,
}

/// How a document is written.
enum Layout {
    /// A value on each line.
    Lines,
    /// A record on each line.
    Records,
    /// Indented by this.
    Indented(String),
}

/// Changes a document. Nothing of it changes but what the change names.
///
/// # Errors
/// The content is not JSON, or the change does not fit it.
pub(super) fn apply(text: &str, change: &JsonChange) -> Result<Changed, String> {
    if !exact::keeps_numbers(text.as_bytes()) {
        return Err("it has numbers that a patch would write in another way, such as 1.10 or integers beyond 64 bits: change its text by edits.".to_owned());
    }

    let (mut value, layout) = read(text)?;
    let before = written(&value, &layout);
    match change {
        JsonChange::Merge(patch) => json_patch::merge(&mut value, patch),
        JsonChange::Patch(patch) => {
            let patch: Patch = serde_json::from_value(patch.clone()).map_err(|error| {
                let error = error.to_string();
                format!(
                    "json_patch is a list such as [{{\"op\": \"add\", \"path\": \"/items/-\", \"value\": 1}}] (RFC 6902): {}.",
                    shortened(&error)
                )
            })?;
            json_patch::patch(&mut value, &patch).map_err(|error| {
                let error = error.to_string();
                format!("json_patch: {}. Nothing is changed.", shortened(&error))
            })?;
        }
    }

    if matches!(layout, Layout::Lines) && !value.is_array() {
        return Err("it is NDJSON, and has to stay a list of values.".to_owned());
    }
    Ok(Changed { before, after: written(&value, &layout) })
}

/// The value, and how it is written. The lines of NDJSON are the items of a list.
fn read(text: &str) -> Result<(Value, Layout), String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        return Ok((value, layout_of(text)));
    }

    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let values = lines.map(serde_json::from_str).collect::<Result<Vec<Value>, _>>();
    match values {
        Ok(values) if !values.is_empty() => Ok((Value::Array(values), Layout::Lines)),
        _ => Err("it is not JSON: change its text by edits.".to_owned()),
    }
}

/// The layout by the first line that is indented.
fn layout_of(text: &str) -> Layout {
    let mut lines = text.lines().skip(1);
    let first = lines.next().unwrap_or_default();
    let indent = &first[..first.len() - first.trim_start().len()];
    if indent.is_empty() { Layout::Records } else { Layout::Indented(indent.to_owned()) }
}

fn written(value: &Value, layout: &Layout) -> String {
    match layout {
        Layout::Records => {
            let pieces = record_lines(value.to_string().as_bytes());
            String::from_utf8_lossy(&pieces.concat()).into_owned()
        }
        Layout::Lines => {
            let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
            items.iter().map(|item| format!("{item}\n")).collect()
        }
        Layout::Indented(indent) => {
            let mut out = Vec::new();
            let formatter = PrettyFormatter::with_indent(indent.as_bytes());
            let mut writer = serde_json::Serializer::with_formatter(&mut out, formatter);
            // Writing a value to memory cannot fail.
            let _ = value.serialize(&mut writer);
            out.push(b'\n');
            String::from_utf8_lossy(&out).into_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    #[test]
    fn documents_keep_their_layout() {
        let add = JsonChange::Patch(json!([{ "op": "add", "path": "/1", "value": { "id": 9 } }]));
        for (text, after) in [
            ("[{\"id\":1},{\"id\":2}]", "[\n{\"id\":1},\n{\"id\":9},\n{\"id\":2}\n]"),
            ("{\"id\":1}\n{\"id\":2}\n", "{\"id\":1}\n{\"id\":9}\n{\"id\":2}\n"),
            ("[\n    1\n]\n", "[\n    1,\n    {\n        \"id\": 9\n    }\n]\n"),
        ] {
            let changed = apply(text, &add).unwrap();
            assert_eq!(changed.after.trim_end(), after.trim_end(), "{text}");
        }

        let merge = JsonChange::Merge(json!({ "a": null, "b": { "c": 2 } }));
        let changed = apply("{\"a\": 1, \"b\": {\"d\": 3}}", &merge).unwrap();
        let value: Value = serde_json::from_str(&changed.after).unwrap();
        assert_eq!(value, json!({ "b": { "d": 3, "c": 2 } }));
    }

    #[test]
    fn a_change_that_does_not_fit_is_an_error() {
        for (text, change, said) in [
            ("[1]", json!([{ "op": "remove", "path": "/4" }]), "json_patch: "),
            ("[1]", json!([{ "op": "test", "path": "/0", "value": 2 }]), "json_patch: "),
            ("[1]", json!([{ "op": "put", "path": "/0" }]), "is a list such as"),
            ("[1]", json!({ "op": "remove", "path": "/0" }), "is a list such as"),
            ("[1.10]", json!([]), "numbers that a patch would write"),
            ("a,b\n1,2\n", json!([]), "it is not JSON"),
            ("1\n2\n", json!([{ "op": "replace", "path": "", "value": 1 }]), "it is NDJSON"),
        ] {
            let refused = apply(text, &JsonChange::Patch(change.clone()));
            let problem = refused.err().unwrap_or_else(|| panic!("{text} {change}"));
            assert!(problem.contains(said), "{change}: {problem}");
        }
    }
}
