//! Alternatives of one type as one schema.

use serde_json::{Map, Value, json};

/// One schema for what any of these allows, if all are of one type. It may allow more.
pub(super) fn union(options: &[Value]) -> Option<Map<String, Value>> {
    let options: Vec<&Map<String, Value>> =
        options.iter().map(Value::as_object).collect::<Option<_>>()?;
    let names: Vec<&str> = options
        .iter()
        .map(|option| option.get("type").and_then(Value::as_str))
        .collect::<Option<_>>()?;

    let first = *names.first()?;
    let mut union = if names.iter().all(|name| matches!(*name, "integer" | "number"))
        && names.contains(&"number")
    {
        Map::from_iter([("type".to_owned(), json!("number"))])
    } else if names.iter().any(|name| *name != first) {
        return None;
    } else {
        match first {
            "object" => union_of_objects(&options)?,
            name => {
                let mut union = Map::from_iter([("type".to_owned(), json!(name))]);
                union.extend(all_values(&options).map(|values| ("enum".to_owned(), values)));
                if name == "array" {
                    let items: Vec<_> = options
                        .iter()
                        .map(|o| o.get("items").cloned().unwrap_or(json!({})))
                        .collect();
                    let items = merged(&items);
                    union.insert("items".into(), items);
                }
                union
            }
        }
    };

    if let Some(text) = descriptions(&options) {
        union.insert("description".into(), text.into());
    }
    Some(union)
}

/// The values of all options, if each lists its values.
fn all_values(options: &[&Map<String, Value>]) -> Option<Value> {
    let mut values: Vec<Value> = Vec::new();
    for option in options {
        let listed = option.get("enum")?.as_array()?;
        for value in listed {
            if !values.contains(value) {
                values.push(value.clone());
            }
        }
    }
    Some(values.into())
}

/// The descriptions of options, each with the values that it describes.
fn descriptions(options: &[&Map<String, Value>]) -> Option<String> {
    let mut lines = Vec::new();
    for option in options {
        let Some(text) = option.get("description").and_then(Value::as_str) else { continue };
        match option.get("enum").and_then(Value::as_array).map(Vec::as_slice) {
            Some([Value::String(value)]) => lines.push(format!("{value}: {text}")),
            _ => lines.push(text.to_owned()),
        }
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// An object with the members of all options. What all require is required.
fn union_of_objects(options: &[&Map<String, Value>]) -> Option<Map<String, Value>> {
    let mut names: Vec<&String> = Vec::new();
    for option in options {
        for name in option.get("properties").and_then(Value::as_object)?.keys() {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }

    let mut properties = Map::new();
    for name in names {
        let known: Vec<Value> = options
            .iter()
            .filter_map(|option| option.get("properties")?.get(name).cloned())
            .collect();
        properties.insert(name.clone(), merged(&known));
    }

    let required = |option: &&Map<String, Value>, name: &str| {
        let names = option.get("required").and_then(Value::as_array);
        names.is_some_and(|names| names.iter().any(|n| n == name))
    };
    let by_all: Vec<Value> = properties
        .keys()
        .filter(|name| options.iter().all(|option| required(option, name)))
        .map(|name| json!(name))
        .collect();

    let mut union = Map::new();
    union.insert("type".into(), json!("object"));
    union.insert("properties".into(), properties.into());
    if !by_all.is_empty() {
        union.insert("required".into(), by_all.into());
    }
    if options.iter().all(|option| option.get("additionalProperties") == Some(&json!(false))) {
        union.insert("additionalProperties".into(), json!(false));
    }
    Some(union)
}

/// One schema for what any of these allows.
fn merged(schemas: &[Value]) -> Value {
    match schemas {
        [first, rest @ ..] if rest.iter().all(|other| other == first) => first.clone(),
        schemas => match union(schemas) {
            Some(one) => one.into(),
            None => json!({ "anyOf": schemas }),
        },
    }
}
