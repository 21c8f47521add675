//! The forms of a reference.

use larder_protocol::quote::quoted;
use larder_store::store::ResourceUri;
use serde_json::Value;

/// A reference to stored content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reference {
    pub(super) uri: String,
    /// A JSON Pointer or a JSONPath.
    pub(super) select: Option<String>,
    pub(super) form: Option<Form>,
}

/// The form that the content gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    Json,
    Base64,
    /// A `data:` URL.
    Data,
}

/// Reads a reference: a string that is wholly `{{URI}}`, with or without white space around it, or
/// an object with `$larder`. `None` for other values.
pub(super) fn read(value: &Value) -> Option<Result<Reference, String>> {
    match value {
        Value::String(text) => {
            // Models and templates leave blanks and line breaks around a reference.
            let uri = text.trim().strip_prefix("{{")?.strip_suffix("}}")?.trim();
            let is_uri = !uri.contains(['{', '}']) && ResourceUri::parse(uri).is_ok();
            is_uri.then(|| Ok(Reference { uri: uri.to_owned(), select: None, form: None }))
        }
        Value::Object(members) => {
            let uri = members.get("$larder")?;
            Some(read_object(uri, members))
        }
        _ => None,
    }
}

fn read_object(uri: &Value, members: &serde_json::Map<String, Value>) -> Result<Reference, String> {
    let uri = uri.as_str().ok_or("\"$larder\" must be a URI, as a string.")?;
    if let Some(other) = members.keys().find(|key| !["$larder", "select", "as"].contains(&&***key))
    {
        let other = quoted(other);
        return Err(format!("{other} is not known beside \"$larder\": use \"select\" and \"as\"."));
    }

    let select = match members.get("select") {
        None => None,
        Some(Value::String(select)) => Some(select.clone()),
        Some(_) => {
            return Err("\"select\" must be a JSON Pointer or a JSONPath, as a string.".into());
        }
    };

    let form = match members.get("as").map(Value::as_str) {
        None => None,
        Some(Some("text")) => Some(Form::Text),
        Some(Some("json")) => Some(Form::Json),
        Some(Some("base64")) => Some(Form::Base64),
        Some(Some("data")) => Some(Form::Data),
        Some(_) => return Err("\"as\" must be text, json, base64 or data.".into()),
    };

    Ok(Reference { uri: uri.to_owned(), select, form })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_whole_values_are_references() {
        let reference = |uri: &str| Reference { uri: uri.into(), select: None, form: None };
        assert_eq!(read(&json!("{{a://b?lines=1-2}}")), Some(Ok(reference("a://b?lines=1-2"))));
        assert_eq!(read(&json!({ "$larder": "a:b" })), Some(Ok(reference("a:b"))));

        for around in ["{{a:b}} ", "\n{{a:b}}\n", "\t{{a:b}}\r\n", "{{ a:b }}", " {{\na:b}}\u{a0}"]
        {
            assert_eq!(read(&json!(around)), Some(Ok(reference("a:b"))), "{around:?}");
        }

        let full = json!({ "$larder": "a:b", "select": "/x", "as": "base64" });
        let expected =
            Reference { select: Some("/x".into()), form: Some(Form::Base64), ..reference("a:b") };
        assert_eq!(read(&full), Some(Ok(expected)));

        for literal in [
            json!("see {{a://b}}"),
            json!("{{a://b}}."),
            json!(" see\n{{a://b}}"),
            json!("{{a://b c}}"),
            json!("{{name}}"),
            json!("{{ }}"),
            json!("{{a://b}}{{c://d}}"),
            json!("{{}}"),
            json!({ "$ref": "a://b" }),
            json!(7),
        ] {
            assert_eq!(read(&literal), None, "{literal}");
        }

        for bad in [
            json!({ "$larder": 1 }),
            json!({ "$larder": "a:b", "lines": "1-2" }),
            json!({ "$larder": "a:b", "as": "xml" }),
            json!({ "$larder": "a:b", "select": 1 }),
        ] {
            assert!(matches!(read(&bad), Some(Err(_))), "{bad}");
        }
    }
}
