//! [`FieldPath`]: the place of a value within a result, such as `items[0].id`, `list.-1` or
//! `["a.b"]["c d"]`.

use std::borrow::Cow;

use larder_protocol::{
    near,
    quote::{quoted, shortened},
};
use serde_json::{Map, Value};

/// The most bytes of a text within a result that are read as JSON to go on in it. Parsing more
/// would take time that other callers need.
const NESTED_TEXT_BYTES: usize = 256 * 1024;
/// The most keys that an error lists.
const LISTED_KEYS: usize = 10;
/// The member that holds a value which is no object, as MCP servers wrap it.
const WRAPPER: &str = "result";

/// A path in a definition, parsed when the definition is made. The check of the workflow reports
/// its errors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FieldPath {
    text: String,
    steps: Result<Vec<PathStep>, String>,
}

/// One step into a value.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PathStep {
    /// A bare name or a number in brackets: an index into a list, a key of an object.
    Plain(String),
    /// A quoted key in brackets.
    Key(String),
}

impl PathStep {
    fn text(&self) -> &str {
        match self {
            Self::Plain(text) | Self::Key(text) => text,
        }
    }
}

impl From<String> for FieldPath {
    fn from(text: String) -> Self {
        Self { steps: parse(&text), text }
    }
}

impl FieldPath {
    /// The path as it was written.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Why the text is not a path.
    pub(super) fn problem(&self) -> Option<&str> {
        self.steps.as_ref().err().map(String::as_str)
    }

    /// The value at this place of a bound result.
    ///
    /// # Errors
    /// The place at which the path ends, and the value there.
    pub(super) fn find<'a>(&self, bound: &'a Bound) -> Result<Cow<'a, Value>, String> {
        let steps = self.steps.as_ref().map_err(String::clone)?;
        let Some(inner) = &bound.parsed else { return walk(&bound.value, steps) };

        match steps.split_first() {
            Some((first, rest)) if first.text() == WRAPPER && rest.is_empty() => {
                walk(&bound.value, steps)
            }
            Some((first, rest)) if first.text() == WRAPPER => walk(inner, rest),
            _ => walk(inner, steps),
        }
    }

    /// The value at this place of a value.
    ///
    /// # Errors
    /// The errors of [`FieldPath::find`].
    pub(super) fn find_in<'a>(&self, value: &'a Value) -> Result<Cow<'a, Value>, String> {
        walk(value, self.steps.as_ref().map_err(String::clone)?)
    }
}

/// A result that a step has bound.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bound {
    pub(super) value: Value,
    /// The JSON in the value, if the value is an object whose only member `result` is such a text.
    parsed: Option<Value>,
}

impl From<Value> for Bound {
    /// Parses a text, so large values belong into `compute`.
    fn from(value: Value) -> Self {
        let parsed = wrapped(&value).and_then(Value::as_str).and_then(json_in);
        Self { value, parsed }
    }
}

impl Bound {
    /// The list or object to go over: the value, or what it wraps.
    pub(super) fn unwrapped(&self) -> &Value {
        self.parsed.as_ref().or_else(|| wrapped_list(&self.value)).unwrap_or(&self.value)
    }
}

/// The value of an object's only member `result`.
fn wrapped(value: &Value) -> Option<&Value> {
    let members = value.as_object().filter(|members| members.len() == 1)?;
    members.get(WRAPPER)
}

/// The list that an object wraps.
fn wrapped_list(value: &Value) -> Option<&Value> {
    wrapped(value).filter(|inner| inner.is_array())
}

/// The object or list that a text is, unless the text is long.
pub(super) fn short_json(text: &str) -> Option<Value> {
    if text.len() > NESTED_TEXT_BYTES { None } else { json_in(text) }
}

/// The object or list that a text is.
fn json_in(text: &str) -> Option<Value> {
    if !text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    serde_json::from_str(text).ok()
}

fn walk<'a>(value: &'a Value, steps: &[PathStep]) -> Result<Cow<'a, Value>, String> {
    let mut current = value;
    for (index, step) in steps.iter().enumerate() {
        current = match current {
            Value::Array(items) => item(items, step)?,
            Value::Object(members) => match (members.get(step.text()), wrapped(current)) {
                (Some(member), _) => member,
                (None, Some(inner)) if inner.is_array() || inner.is_object() => {
                    return walk(inner, &steps[index..]);
                }
                (None, _) => return Err(no_key(members, step.text())),
            },
            Value::String(text) => {
                let inner = nested(text, step)?;
                return walk(&inner, &steps[index..]).map(|found| Cow::Owned(found.into_owned()));
            }
            other => {
                let kind = if other.is_null() { "null" } else { "a number or boolean" };
                return Err(format!("{} is a field of {kind}", quoted(step.text())));
            }
        };
    }
    Ok(Cow::Borrowed(current))
}

/// The JSON in a text, in which the path goes on.
fn nested(text: &str, step: &PathStep) -> Result<Value, String> {
    let key = quoted(step.text());
    if text.len() > NESTED_TEXT_BYTES {
        return Err(format!(
            "{key} is a field of a text of {} bytes, and only one of at most {NESTED_TEXT_BYTES} is read as JSON",
            text.len()
        ));
    }
    json_in(text).ok_or_else(|| format!("{key} is a field of a text that is not JSON"))
}

fn item<'a>(items: &'a [Value], step: &PathStep) -> Result<&'a Value, String> {
    let count = items.len();
    let text = step.text();
    let digits = digits_of_index(text).filter(|_| matches!(step, PathStep::Plain(_)));
    let digits =
        digits.ok_or_else(|| format!("{} is not an index into a list of {count}", quoted(text)))?;

    // A number that is too large is out of range, too.
    let number = digits.parse().unwrap_or(usize::MAX);
    let index = if text.starts_with('-') { count.checked_sub(number) } else { Some(number) };
    let found = index.and_then(|index| items.get(index));
    found.ok_or_else(|| format!("{} is out of range in a list of {count}", shortened(text)))
}

/// The digits of an index, which counts from the end after a minus sign. `None` if the text is no
/// index.
fn digits_of_index(text: &str) -> Option<&str> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some(digits)
}

fn no_key(members: &Map<String, Value>, key: &str) -> String {
    let keys: Vec<_> = members.keys().take(LISTED_KEYS).map(|key| quoted(key)).collect();
    let listed = match keys.as_slice() {
        [] => "it is an object without members".to_owned(),
        keys if members.len() > keys.len() => {
            format!("it is not one of the {}, such as {}", members.len(), keys.join(", "))
        }
        keys => format!("it is not one of {}", keys.join(", ")),
    };

    let near = near::suggestion(key, members.keys().take(1_000).map(String::as_str));
    format!("there is no {}: {listed}.{near}", quoted(key))
}

fn parse(text: &str) -> Result<Vec<PathStep>, String> {
    let mut steps = Vec::new();
    let mut rest = text;
    if rest.is_empty() {
        return Err("it is empty: leave it out for the whole value".into());
    }

    while !rest.is_empty() {
        if let Some(dotted) = rest.strip_prefix('.').filter(|_| !steps.is_empty()) {
            rest = dotted;
        } else if !steps.is_empty() && !rest.starts_with('[') {
            return Err(format!("before {} there must be . or [", quoted(rest)));
        }

        let (step, after) = match rest.strip_prefix('[') {
            Some(inner) => bracket(inner)?,
            None => bare(rest)?,
        };
        steps.push(step);
        rest = after;
    }
    Ok(steps)
}

fn bare(rest: &str) -> Result<(PathStep, &str), String> {
    let end = rest.find(['.', '[']).unwrap_or(rest.len());
    if end == 0 {
        return Err("it has an empty name: write [\"\"] for an empty key".into());
    }
    Ok((PathStep::Plain(rest[..end].to_owned()), &rest[end..]))
}

/// The step in brackets, of which the opening one was read.
fn bracket(inner: &str) -> Result<(PathStep, &str), String> {
    let inner = inner.trim_start();
    let (step, after) = match inner.chars().next() {
        Some('"') => {
            let mut strings = serde_json::Deserializer::from_str(inner).into_iter::<String>();
            let key = strings.next().and_then(Result::ok);
            let key = key.ok_or_else(|| format!("{} is not a quoted key", quoted(inner)))?;
            (PathStep::Key(key), &inner[strings.byte_offset()..])
        }
        Some('\'') => single_quoted(&inner[1..])?,
        _ => {
            let end = inner.find(']').ok_or("a [ has no ]")?;
            let number = inner[..end].trim_end();
            if digits_of_index(number).is_none() {
                return Err(format!(
                    "[{number}] is neither an index nor a quoted key: write [0], [-1] or [\"key\"]"
                ));
            }
            (PathStep::Plain(number.to_owned()), &inner[end..])
        }
    };

    let after = after.trim_start().strip_prefix(']').ok_or("a [ has no ]")?;
    Ok((step, after))
}

/// The key before a single quote, in which `\` stands before a quote or a `\`.
fn single_quoted(text: &str) -> Result<(PathStep, &str), String> {
    let mut key = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\'' => return Ok((PathStep::Key(key), &text[at + 1..])),
            '\\' => key.extend(characters.next().map(|(_, escaped)| escaped)),
            other => key.push(other),
        }
    }
    Err("a quoted key does not end".into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    fn found(value: &Value, path: &str) -> Result<Value, String> {
        let path = FieldPath::from(path.to_owned());
        path.find(&Bound::from(value.clone())).map(Cow::into_owned)
    }

    #[test]
    fn each_key_can_be_reached() {
        let value = json!({
            "a.b": { "c d": 1, "": 2, "[0]": 3, "\"q\"": 4, "it's": 5, "\\": 6 },
            "items": [{ "id": "x" }, { "id": "y" }],
            "0": { "-1": "minus", "01": "padded" },
            "größe": { "日本": ["z"] },
            "nested": [[1, 2], [3, [4]]],
        });

        for (path, expected) in [
            (r#"["a.b"]["c d"]"#, json!(1)),
            (r#"["a.b"].c d"#, json!(1)),
            (r#"['a.b'][""]"#, json!(2)),
            (r#"["a.b"]["[0]"]"#, json!(3)),
            (r#"["a.b"]["\"q\""]"#, json!(4)),
            (r#"["a.b"]['it\'s']"#, json!(5)),
            (r#"["a.b"]["\\"]"#, json!(6)),
            ("items[0].id", json!("x")),
            ("items.1.id", json!("y")),
            ("items[-1].id", json!("y")),
            ("items.-2.id", json!("x")),
            ("items.[ 0 ].id", json!("x")),
            ("0.-1", json!("minus")),
            ("[0][-1]", json!("minus")),
            ("0.01", json!("padded")),
            (r#"["gr\u00f6\u00dfe"].日本[0]"#, json!("z")),
            ("größe.日本.0", json!("z")),
            ("nested[1][1][0]", json!(4)),
            ("nested.-1.-1.-1", json!(4)),
        ] {
            assert_eq!(found(&value, path), Ok(expected), "{path}");
        }
    }

    #[test]
    fn text_that_is_json_is_gone_into() {
        let list = json!([{ "id": 7 }]);
        let page = json!({ "items": list, "result": "own" });
        for wrapped in [
            json!({ "result": page.to_string() }),
            json!({ "result": format!(" \n{page}\n") }),
            json!({ "result": page }),
        ] {
            assert_eq!(found(&wrapped, "result.items[0].id"), Ok(json!(7)), "{wrapped}");
            assert_eq!(found(&wrapped, "items[0].id"), Ok(json!(7)), "{wrapped}");
            assert_eq!(found(&wrapped, "result"), Ok(wrapped["result"].clone()));
        }

        let inside =
            json!({ "a": { "body": json!({ "b": list.to_string() }).to_string() }, "c": 1 });
        assert_eq!(found(&inside, "a.body.b.-1.id"), Ok(json!(7)));
        assert_eq!(found(&json!({ "result": list }), "0.id"), Ok(json!(7)));
        assert_eq!(found(&json!(list.to_string()), "[0].id"), Ok(json!(7)));
    }

    #[test]
    fn what_is_not_there_is_told_with_near_names() {
        let value = json!({ "items": [1, 2], "name": "x", "none": null, "n": 5 });
        for (path, words) in [
            ("item", "no \"item\": it is not one of \"items\", \"n"),
            ("nmae", "Did you mean \"name\""),
            ("items[2]", "2 is out of range in a list of 2"),
            ("items[-3]", "-3 is out of range"),
            ("items[99999999999999999999999]", "out of range"),
            ("items.+1", "\"+1\" is not an index"),
            (r#"items["0"]"#, "\"0\" is not an index"),
            ("items.x", "not an index into a list of 2"),
            ("name.x", "a text that is not JSON"),
            ("none.x", "\"x\" is a field of null"),
            ("n.x", "a number or boolean"),
        ] {
            let problem = found(&value, path).unwrap_err();
            assert!(problem.contains(words), "{path}: {problem}");
        }

        let long = json!({ "text": format!("[{}1]", "1,".repeat(200_000)), "b": 1 });
        assert!(found(&long, "text[0]").unwrap_err().contains("400003 bytes"));
        assert!(found(&json!({ "result": "plain" }), "a").unwrap_err().contains("\"result\""));
        let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
        assert!(found(&json!({ "result": deep }), "0.0").is_err());
    }

    #[test]
    fn what_is_not_a_path_is_told() {
        for text in [
            "",
            ".",
            "a.",
            "a..b",
            ".a",
            "a[",
            "a[]",
            "a[x]",
            "a[*]",
            "a[0",
            "a[\"x]",
            "a['x]",
            "a[0]b",
            "a[\"x\"",
            "a[1.5]",
            "a[--1]",
            "a[\"x\" y]",
        ] {
            assert!(FieldPath::from(text.to_owned()).problem().is_some(), "{text}");
        }
    }

    #[test]
    fn only_a_list_is_unwrapped_to_be_gone_over() {
        let list = json!(["a"]);
        assert_eq!(*Bound::from(json!({ "result": list })).unwrapped(), list);
        assert_eq!(*Bound::from(json!({ "result": list.to_string() })).unwrapped(), list);
        let object = json!({ "result": "plain" });
        assert_eq!(*Bound::from(object.clone()).unwrapped(), object);
    }
}
