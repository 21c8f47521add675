//! Members of definitions beside their schemas that are not quite what the protocol says, written as
//! they are meant where that is clear.

use larder_protocol::quote::shortened;
use rmcp::model::{Icon, IconTheme, Role};
use serde_json::{Map, Value};

use super::{
    definition::log_changed,
    object::Object,
    problem::{Problem, shown},
};

/// Writes icons as a list of objects, whose sizes are lists of texts.
pub(super) fn icons(item: &mut Object) {
    let icons = match item.take("icons") {
        Some(Value::Array(icons)) => icons,
        Some(one @ (Value::Object(_) | Value::String(_))) => vec![one],
        _ => return,
    };

    let mended: Vec<Value> = icons.into_iter().filter_map(icon).collect();
    if !mended.is_empty() {
        item.set("icons", mended);
        item.drop_unfit::<Vec<Icon>>("icons");
    }
}

fn icon(icon: Value) -> Option<Value> {
    let mut members = match icon {
        Value::String(src) => Map::from_iter([("src".to_owned(), src.into())]),
        Value::Object(members) => members,
        _ => return None,
    };
    if !members.get("src").is_some_and(Value::is_string) {
        return None;
    }

    let sizes: Option<Vec<Value>> = match members.remove("sizes") {
        // Sizes in one text, as the attribute of HTML has them.
        Some(Value::String(sizes)) => {
            let sizes = sizes.split(|c: char| c.is_whitespace() || c == ',');
            Some(sizes.filter(|size| !size.is_empty()).map(Value::from).collect())
        }
        Some(Value::Array(sizes)) => Some(sizes.into_iter().filter(Value::is_string).collect()),
        Some(Value::Number(size)) => Some(vec![format!("{size}x{size}").into()]),
        _ => None,
    };
    if let Some(sizes) = sizes.filter(|sizes| !sizes.is_empty()) {
        members.insert("sizes".into(), sizes.into());
    }
    let mut icon = Object::from(members);
    icon.drop_unfit::<String>("mimeType");
    icon.drop_unfit::<IconTheme>("theme");
    Some(icon.into_value())
}

/// Keeps the hints of a tool that are clear.
pub(super) fn annotations(tool: &mut Object) {
    let Some(members) = tool.take_members("annotations") else { return };
    let mut hints = Object::from(members);

    for hint in ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] {
        if let Ok(Some(flag)) = hints.take_flag(hint) {
            hints.set(hint, flag);
        }
    }
    hints.drop_unfit::<String>("title");
    tool.set("annotations", hints.into_value());
}

/// Keeps the annotations of a resource or a content block that are clear.
pub(super) fn hints_for_readers(item: &mut Object) {
    let Some(members) = item.take_members("annotations") else { return };
    let was_empty = members.is_empty();
    let mut hints = Object::from(members);

    hints.drop_unfit::<Vec<Role>>("audience");
    hints.drop_unfit::<f32>("priority");
    hints.drop_unfit::<String>("lastModified");
    if was_empty || !hints.members().is_empty() {
        item.set("annotations", hints.into_value());
    }
}

/// Names an item without a name by the last part of its URI. `key` is the member with the URI.
pub(super) fn name_by_uri(item: &mut Object, key: &str) {
    if item.text("name").is_some_and(|name| !name.is_empty()) {
        return;
    }
    let name = item.text(key).map(|uri| shortened(last_part(uri)).into_owned());
    if let Some(name) = name {
        item.set("name", name);
    }
}

/// The last part of a URI that is not empty, or the whole of it.
fn last_part(uri: &str) -> &str {
    let path = uri.split(['?', '#']).next().unwrap_or(uri).trim_end_matches('/');
    let last = path.rsplit(['/', ':']).next().filter(|part| !part.is_empty());
    last.unwrap_or(uri)
}

/// Keeps the arguments of a prompt that are clear, and logs which are left out.
pub(super) fn prompt_arguments(prompt: &mut Object) {
    let Some(sent) = prompt.take("arguments") else { return };
    let name = prompt.text("name").map(|name| shortened(name).into_owned()).unwrap_or_default();
    let left_out = |problem: &Problem| {
        log_changed(&name, "an argument of a prompt is left out", &problem.to_string());
    };

    let Value::Array(arguments) = sent else {
        left_out(&Problem::of("arguments must be a list", &sent));
        return;
    };
    let mut kept = Vec::with_capacity(arguments.len());
    for argument in arguments {
        match prompt_argument(argument) {
            Ok(argument) => kept.push(argument),
            Err(problem) => left_out(&problem),
        }
    }
    prompt.set("arguments", kept);
}

fn prompt_argument(argument: Value) -> Result<Value, Problem> {
    let what = shown(&argument);
    let mut argument = Object::of(argument, "an argument")?;
    if argument.text("name").is_none() {
        return Err(Problem::new(format!("an argument must have a name, not {what}")));
    }

    argument.drop_unfit::<String>("title");
    argument.drop_unfit::<String>("description");
    let required = argument.take_flag("required").ok().flatten();
    if let Some(required) = required {
        argument.set("required", required);
    }
    Ok(argument.into_value())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn icons_are_lists_of_objects_with_lists_of_sizes() {
        let of = |icons: Value| {
            let mut item = Object::from(Map::from_iter([("icons".to_owned(), icons)]));
            super::icons(&mut item);
            item.take("icons")
        };
        let sized = |sizes: Value| Some(json!([{ "src": "a", "sizes": sizes }]));

        assert_eq!(of(json!([{ "src": "a", "sizes": "48x48" }])), sized(json!(["48x48"])));
        assert_eq!(
            of(json!([{ "src": "a", "sizes": "16x16 32x32" }])),
            sized(json!(["16x16", "32x32"]))
        );
        assert_eq!(of(json!({ "src": "a", "sizes": 48 })), sized(json!(["48x48"])));
        assert_eq!(
            of(json!([{ "src": "a", "sizes": ["any", 5] }, { "sizes": "any" }])),
            sized(json!(["any"]))
        );
        assert_eq!(of(json!(["a"])), Some(json!([{ "src": "a" }])));
        assert_eq!(of(json!(5)), None);
    }

    #[test]
    fn an_item_without_a_name_has_one_from_its_uri() {
        for (item, name) in [
            (json!({ "uri": "a:b/c.txt?x=1", "name": "n" }), "n"),
            (json!({ "uri": "a:b/c.txt?x=1" }), "c.txt"),
            (json!({ "uri": "a:b/c/", "name": null }), "c"),
            (json!({ "uri": "a:", "name": "" }), "a:"),
            (json!({ "uri": "a:b", "name": 5, "title": "The b" }), "b"),
        ] {
            let mut object = Object::of(item.clone(), "it").expect("it is an object");
            name_by_uri(&mut object, "uri");
            assert_eq!(object.text("name"), Some(name), "{item}");
        }
    }

    #[test]
    fn a_bad_argument_of_a_prompt_costs_no_other_one() {
        let of = |arguments: Value| {
            let mut prompt = Object::of(json!({ "name": "p", "arguments": arguments }), "it");
            let prompt = prompt.as_mut().expect("it is an object");
            prompt_arguments(prompt);
            prompt.take("arguments")
        };

        let sent =
            json!([null, { "name": "a", "required": "true", "description": 5 }, "b", { "x": 1 }]);
        assert_eq!(of(sent), Some(json!([{ "name": "a", "required": true }])));
        let unclear = json!([{ "name": "a", "required": [] }]);
        assert_eq!(of(unclear), Some(json!([{ "name": "a" }])));
        assert_eq!(of(json!({ "a": {} })), None);
        assert_eq!(of(json!(null)), None);
    }
}
