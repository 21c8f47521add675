//! Definitions of tools, prompts, resources and templates, before clients and models read them:
//! they are bounded, and their control characters are shown.

use std::sync::LazyLock;

use larder_protocol::{
    json_exceeds,
    quote::{bounded, is_deceptive, shortened, visible},
};
use parking_lot::Mutex;
use serde_json::{Map, Value};

use super::{object::Object, problem::shown};
use crate::log_rate::LogRate;

/// The most bytes of one definition.
pub(super) const DEFINITION_BYTES: usize = 64 << 10;
/// The member of a tool that says what its results have.
const OUTPUT_SCHEMA: &str = "outputSchema";
/// The most characters of a description.
const DESCRIPTION_CHARS: usize = 10_000;
/// The most characters of a title.
const TITLE_CHARS: usize = 200;

/// An item that is not offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LeftOut {
    /// The name at the upstream, shortened.
    pub(crate) name: String,
    pub(crate) why: String,
}

/// A definition whose texts can be shown. `key` is the member that names it.
pub(super) fn presentable(definition: Value, key: &str) -> Result<Object, LeftOut> {
    let name = definition.get(key).and_then(Value::as_str);
    let name = name.map_or_else(|| shown(&definition), |name| shortened(name).into_owned());
    let left_out = |why: &str| LeftOut { name: name.clone(), why: why.to_owned() };

    let Value::Object(mut members) = definition else {
        return Err(left_out("it is not an object"));
    };

    let long = description(&mut members);
    if !make_visible(&mut members) {
        return Err(left_out("it has control characters where they would change its meaning"));
    }
    let mut definition = Value::Object(members);
    if json_exceeds(&definition, DEFINITION_BYTES) {
        // A tool works without it.
        let output = definition.as_object_mut().and_then(|members| members.remove(OUTPUT_SCHEMA));
        if output.is_none() || json_exceeds(&definition, DEFINITION_BYTES) {
            return Err(left_out(&format!(
                "its definition is over {} KiB",
                DEFINITION_BYTES >> 10
            )));
        }
        let problem = format!("with it the definition is over {} KiB", DEFINITION_BYTES >> 10);
        log_changed(&name, "the output schema of an upstream's tool is left out", &problem);
    }

    if let Some(chars) = long {
        let problem = format!("it has {chars} characters");
        log_changed(&name, "the description of an upstream's item is cut", &problem);
    }
    Object::of(definition, "a definition").map_err(|problem| left_out(&problem.to_string()))
}

/// Logs that a definition is not offered as it came. The rate is limited for all upstreams
/// together, because each may list thousands of items.
pub(super) fn log_changed(name: &str, what: &str, problem: &str) {
    static RATE: LazyLock<Mutex<LogRate>> = LazyLock::new(|| Mutex::new(LogRate::new()));

    let Some(skipped) = RATE.lock().take() else { return };
    let skipped = Some(skipped).filter(|skipped| *skipped > 0);
    tracing::warn!(name, problem, skipped, "{what}");
}

/// Cuts a description that is too long. Returns its length.
fn description(members: &mut Map<String, Value>) -> Option<usize> {
    let Some(Value::String(description)) = members.get_mut("description") else { return None };
    cut_description(description)
}

/// Cuts a description that is too long. Returns its length.
pub(super) fn cut_description(description: &mut String) -> Option<usize> {
    let (end, _) = description.char_indices().nth(DESCRIPTION_CHARS)?;
    let chars = description.chars().count();
    description.truncate(end);
    description.push_str(&format!("… (cut: the upstream's description has {chars} characters)"));
    Some(chars)
}

/// Shows the control characters of texts for people and models. Returns whether none are left.
fn make_visible(members: &mut Map<String, Value>) -> bool {
    members.iter_mut().all(|(name, value)| {
        !has_deceptive(name)
            && match value {
                Value::String(text) if is_for_readers(name) => {
                    let max = if name == "title" { TITLE_CHARS } else { usize::MAX };
                    *text = bounded(text, max).into_owned();
                    true
                }
                other => is_visible(other),
            }
    })
}

fn is_visible(value: &mut Value) -> bool {
    match value {
        Value::String(text) => !has_deceptive(text),
        Value::Array(items) => items.iter_mut().all(is_visible),
        Value::Object(members) => make_visible(members),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}

fn is_for_readers(member: &str) -> bool {
    matches!(member, "description" | "title" | "$comment")
}

/// Line breaks and tabs may be values, such as the separators of a table.
fn has_deceptive(text: &str) -> bool {
    text.contains(|c| is_deceptive(c) && !matches!(c, '\n' | '\r' | '\t'))
}

impl LeftOut {
    pub(crate) fn new(name: &str, why: &str) -> Self {
        let why = visible(&why.chars().take(TITLE_CHARS).collect::<String>()).into_owned();
        Self { name: shortened(name).into_owned(), why }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn presented(definition: Value) -> Result<Value, LeftOut> {
        presentable(definition, "name").map(Object::into_value)
    }

    #[test]
    fn texts_for_readers_show_their_control_characters_and_are_cut() {
        let tool = json!({
            "name": "a", "description": "x\u{1b}\ny", "title": "t".repeat(500),
            "inputSchema": { "properties": { "p": { "title": "\u{0}", "enum": ["\t", "é"] } } },
        });
        let shown = presented(tool).expect("it can be shown");

        assert_eq!(shown["description"], "x\\u{1b}\ny");
        assert_eq!(
            shown["title"].as_str().map(|title| title.chars().count()),
            Some(TITLE_CHARS + 1)
        );
        assert_eq!(
            shown["inputSchema"]["properties"]["p"],
            json!({ "title": "\\u{0}", "enum": ["\t", "é"] })
        );

        let long = presented(json!({ "name": "a", "description": "é".repeat(50_000) }));
        let long = long.expect("it is cut");
        let text = long["description"].as_str().expect("a text");
        assert!(text.contains("50000 characters") && text.chars().count() < 10_100);
    }

    #[test]
    fn a_long_output_schema_is_left_out_alone() {
        let long = json!({ "type": "object", "enum": vec!["long"; 20_000] });
        let tool = json!({ "name": "a", "inputSchema": { "type": "object" } });
        let mut with_output = tool.clone();
        with_output[OUTPUT_SCHEMA] = long.clone();
        assert_eq!(presented(with_output), Ok(tool));

        let both = json!({ "name": "a", "inputSchema": long, OUTPUT_SCHEMA: long });
        assert!(presented(both).is_err());
    }

    #[test]
    fn what_cannot_be_shown_is_left_out_by_name() {
        let schema = |schema: Value| json!({ "name": "a", "inputSchema": schema });
        for (definition, name) in [
            (schema(json!({ "properties": { "\u{1b}[31m": {} } })), "a"),
            (schema(json!({ "enum": ["\u{0}"] })), "a"),
            (schema(json!({ "x": vec!["long"; 20_000] })), "a"),
            (json!({ "name": "a\u{0}" }), "a\\u{0}"),
            (json!([5]), "[5]"),
        ] {
            assert_eq!(
                presented(definition).map_err(|left_out| left_out.name),
                Err(name.to_owned())
            );
        }
    }
}
